//! The end of a job over the system queue.
//!
//! The rank that ends first tells all others and waits until they have confirmed, for a bounded time. Who is told confirms and tells nobody,
//! so the job ends with two messages a rank. Ranks that end at the same moment tell each other; a question counts as a confirmation.
//! When the time is over, the job is to be ended by force, through the launcher. A signal handler starts none of this: it
//! sets a word that polls read (docs/adr/0012).
// seed P13: the end of a job between hosts.

use super::frame::{Answer, Frame, Question};
use super::queue::{Heard, Slot, SystemQueue};
use core::time::Duration;

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownState {
    /// The job goes on.
    Running,
    /// Others are being told.
    Telling,
    /// All know. The code is that of the one who ended first, as far as this rank knows.
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
    /// Most that are told and have not confirmed.
    window: u32,
    state: ShutdownState,
    code: u8,
    deadline: Duration,
    /// Ranks below this one were told.
    next: u32,
    told: u32,
    confirmed: u32,
}

impl Shutdown {
    /// Nothing ends yet. At most `window` ranks (at least 1) are told at a time.
    #[must_use]
    pub fn new(me: u32, ranks: u32, window: u32) -> Self {
        Self {
            me,
            ranks,
            window: window.max(1),
            state: ShutdownState::Running,
            code: 0,
            deadline: Duration::ZERO,
            next: 0,
            told: 0,
            confirmed: 0,
        }
    }

    /// How far it is.
    #[must_use]
    pub fn state(&self) -> ShutdownState {
        self.state
    }

    /// This rank ends the job. Has no effect if it is ending already: the first code stays.
    pub fn begin(&mut self, now: Duration, code: u8, limit: Duration) {
        if self.state == ShutdownState::Running {
            self.state = ShutdownState::Telling;
            self.code = code;
            self.deadline = now + limit;
            self.settle();
        }
    }

    /// Tells the next ranks, as far as the window goes. `tell(rank, ask)` calls `ask` with the slot of that rank's lane and sends the frame
    /// that it may get.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        queue: &mut SystemQueue,
        mut tell: impl FnMut(u32, &mut dyn FnMut(&mut Slot) -> Option<Frame>),
    ) {
        while self.state == ShutdownState::Telling
            && self.told - self.confirmed < self.window
            && self.next < self.ranks
        {
            let rank = self.next;
            self.next += 1;
            if rank == self.me {
                continue;
            }
            let mut knows = false;
            tell(rank, &mut |slot| {
                knows = slot.knows_of_exit();
                if knows {
                    return None;
                }
                queue.ask(now, rank, slot, Question::Exit(self.code))
            });
            self.told += 1;
            if knows {
                self.confirmed += 1;
            }
        }
        self.settle();
    }

    /// What a frame from `from` meant. Returns the answer to give if it was an exit.
    pub fn heard(&mut self, from: u32, heard: Heard) -> Option<Answer> {
        match heard {
            Heard::Question(Question::Exit(code)) => {
                // Of those that are told and have not confirmed, it is one.
                if self.state == ShutdownState::Running {
                    self.code = code;
                    self.state = ShutdownState::Clean(code);
                }
                let _ = from;
                Some(Answer::Exiting)
            }
            Heard::Answered(Answer::Exiting) => {
                self.confirmed += 1;
                self.settle();
                None
            }
            _ => None,
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        (self.state == ShutdownState::Telling).then_some(self.deadline)
    }

    /// The time may be over.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.state == ShutdownState::Telling && now >= self.deadline {
            self.state = ShutdownState::Forced {
                code: self.code,
                silent: self.ranks - 1 - self.confirmed,
            };
        }
    }

    fn settle(&mut self) {
        if self.state == ShutdownState::Telling && self.confirmed == self.ranks - 1 {
            self.state = ShutdownState::Clean(self.code);
        }
    }
}
