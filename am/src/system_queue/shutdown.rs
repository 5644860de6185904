//! The end of a job over the system queue.
//!
//! The rank that ends first reports its exit to all others and waits until they have confirmed, for
//! a bounded time, a window of them at a time. A rank that hears of it confirms and reports to no
//! rank, so the job ends with two messages a rank. Ranks that end at the same moment report to each
//! other; a question counts as a confirmation. When the time is over, the job is to be ended by
//! force, through the launcher. A signal handler starts none of this: it sets a word that polls
//! read (docs/adr/0012).
//!
//! An end with code 0, which is how most jobs end, all ranks at once, is forwarded: each rank
//! reports to one of each distance that is 1, 2 to 3, 4 to 7 and so on, and a rank that first hears
//! of it does the same. So no rank sends more than a binary logarithm of messages.
//!
//! Conduits over a network run it when a rank exits (docs/adr/0028, 0030).
// spec P13: the end of a job between hosts.

use super::frame::{Answer, Frame, Question};
use super::queue::{Heard, Slot, SystemQueue};
use core::time::Duration;
use std::collections::VecDeque;

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownState {
    /// The job goes on.
    Running,
    /// The exit is being reported.
    Reporting,
    /// Every targeted rank has acknowledged.
    ///
    /// The code is that of the first exit, as far as this rank knows.
    Clean(u8),
    /// The time is over and some have not confirmed: end the job by force.
    Forced {
        /// Exit code.
        code: u8,
        /// How many have not confirmed.
        silent: u32,
    },
}

/// The end of a job, at one rank.
#[derive(Debug)]
pub struct Shutdown {
    me: u32,
    ranks: u32,
    /// Most reports at a time that are not confirmed.
    window: usize,
    state: ShutdownState,
    code: u8,
    deadline: Duration,
    /// How long a report counts for the window.
    patience: Duration,
    /// Ranks up to this distance, that one left out, got a report, or were passed over; 0 before
    /// the first report.
    next: u32,
    /// Reports that are not confirmed, in their order: the rank, and when.
    open: VecDeque<(u32, Duration)>,
    reported: u32,
    confirmed: u32,
}

/// After the time limit divided by this a report that is not confirmed leaves the window.
const PATIENCE_PART: u32 = 16;

impl Shutdown {
    /// Nothing ends yet.
    ///
    /// At most `window` reports (at least 1) are open at a time.
    #[must_use]
    pub fn new(me: u32, ranks: u32, window: u32) -> Self {
        Self {
            me,
            ranks,
            window: window.max(1) as usize,
            state: ShutdownState::Running,
            code: 0,
            deadline: Duration::ZERO,
            patience: Duration::ZERO,
            next: 0,
            open: VecDeque::new(),
            reported: 0,
            confirmed: 0,
        }
    }

    /// How far it is.
    #[must_use]
    pub fn state(&self) -> ShutdownState {
        self.state
    }

    /// Reports of this rank, and how many of their targets have confirmed or are gone.
    #[must_use]
    pub fn reported(&self) -> (u32, u32) {
        (self.reported, self.confirmed)
    }

    /// Ranks that got a report and have not confirmed.
    pub fn open(&self) -> impl Iterator<Item = u32> {
        self.open.iter().map(|(rank, _)| *rank)
    }

    /// This rank ends the job, or forwards an end with code 0 that it has heard of.
    ///
    /// Has no effect if it does so already, nor if it has heard of another end: the first code
    /// stays.
    pub fn begin(&mut self, now: Duration, code: u8, limit: Duration) {
        let forwards = self.state == ShutdownState::Clean(0) && code == 0 && self.next == 0;
        if self.state == ShutdownState::Running || forwards {
            self.state = ShutdownState::Reporting;
            self.code = code;
            self.deadline = now + limit;
            self.patience = limit / PATIENCE_PART;
            self.next = 1;
            self.settle();
        }
    }

    /// Reports to the next ranks, as far as the window goes.
    ///
    /// `send(rank, ask)` calls `ask` with the slot of that rank's stream and sends the frame that
    /// it may get; a rank for which it does not call it is passed over.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        queue: &mut SystemQueue,
        mut send: impl FnMut(u32, &mut dyn FnMut(&mut Slot) -> Option<Frame>),
    ) {
        // The oldest reports are first. A rank that is silent, because it computes perhaps, must
        // not keep the others from hearing.
        let silent = self
            .open
            .partition_point(|(_, at)| *at + self.patience <= now);
        while self.state == ShutdownState::Reporting
            && self.open.len() - silent < self.window
            && self.next < self.ranks
        {
            let place = u64::from(self.me) + u64::from(self.next);
            let rank = (place % u64::from(self.ranks)) as u32;
            self.next += 1;
            let (mut asked, mut knows) = (false, false);
            send(rank, &mut |slot| {
                asked = true;
                knows = slot.knows_of_exit();
                if knows {
                    return None;
                }
                queue.ask(now, rank, slot, Question::Exit(self.code))
            });
            if !asked {
                continue;
            }
            self.reported += 1;
            if self.code == 0 {
                // One of these distances gets a report.
                self.next = self.next.checked_next_power_of_two().unwrap_or(self.ranks);
            }
            match knows {
                true => self.confirmed += 1,
                false => self.open.push_back((rank, now)),
            }
        }
        self.settle();
    }

    /// Takes the meaning of a frame from `from`.
    ///
    /// Returns the answer to give if it was an exit.
    pub fn heard(&mut self, from: u32, heard: Heard) -> Option<Answer> {
        match heard {
            Heard::Question(Question::Exit(code)) => {
                if self.state == ShutdownState::Running {
                    self.code = code;
                    self.state = ShutdownState::Clean(code);
                }
                // A rank that reports an exit itself need not confirm.
                self.has_confirmed(from);
                Some(Answer::Exiting)
            }
            Heard::Answered(Answer::Exiting) | Heard::AnsweredAndNext(Answer::Exiting, _) => {
                self.has_confirmed(from);
                None
            }
            _ => None,
        }
    }

    /// Ranks that cannot confirm any more, as they have come to their end or cannot be reached, are
    /// not waited for.
    pub fn forget(&mut self, mut is_gone: impl FnMut(u32) -> bool) {
        let before = self.open.len();
        self.open.retain(|(rank, _)| !is_gone(*rank));
        self.confirmed += (before - self.open.len()) as u32;
        self.settle();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        (self.state == ShutdownState::Reporting).then_some(self.deadline)
    }

    /// The time may be over.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.state == ShutdownState::Reporting && now >= self.deadline {
            let unreported = self.ranks.saturating_sub(self.next);
            self.state = ShutdownState::Forced {
                code: self.code,
                silent: self.open.len() as u32 + unreported,
            };
        }
    }

    fn has_confirmed(&mut self, rank: u32) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == rank) {
            self.open.remove(at);
            self.confirmed += 1;
            self.settle();
        }
    }

    fn settle(&mut self) {
        let all = self.next >= self.ranks;
        if self.state == ShutdownState::Reporting && self.open.is_empty() && all {
            self.state = ShutdownState::Clean(self.code);
        }
    }
}
