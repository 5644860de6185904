//! What is known of the path to a peer: whether datagrams pass, each way, and how long ones do.

use super::config::ReliableConfig;
use core::time::Duration;

/// Moments at which a peer was asked, or has asked, before an answer that never came counts.
///
/// Sockets of ranks that share few processors lose many datagrams while all pairs begin to talk.
const LEAST_MOMENTS: u32 = 5;

/// They are so far apart: a burst is one, and so is what a process finds that was stopped.
const APART: Duration = Duration::from_millis(50);

/// When the questions of a check are sent again first; then after twice as long each time.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// At last so often.
const MOST_AGAIN: Duration = Duration::from_millis(500);

/// Datagrams that fit packets of 576 bytes, which every host takes (RFC 791).
const SHORT_BYTES: usize = 548;

/// Longer ones go where the path is known, or on one host: they are lost for other reasons.
pub(super) const JUMBO_BYTES: usize = 9216;

/// Sends of a record after which the peer is asked whether short ones arrive.
const DOUBTFUL_SENDS: u32 = 2;

/// What is known of the path between this rank and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathState {
    /// A datagram of the peer's has come.
    pub heard: bool,
    /// The peer has said that a datagram of this rank's has come there.
    pub answered: bool,
    /// A datagram of the first length has come there, or none was asked for.
    pub full: bool,
}

impl PathState {
    /// Everything passes.
    pub const WELL: Self = Self {
        heard: true,
        answered: true,
        full: true,
    };

    /// Whether short datagrams arrive there, and none of the first length does.
    pub(super) fn misses_full(self) -> bool {
        self.answered && !self.full
    }
}

/// Times that are some way apart.
#[derive(Debug, Default)]
struct Moments {
    count: u32,
    first: Duration,
    /// The last one that was counted: no more are than are needed.
    last: Duration,
}

impl Moments {
    fn add(&mut self, now: Duration) {
        if self.count == 0 {
            self.first = now;
        } else if self.are_enough() || now < self.last + APART {
            return;
        }
        self.last = now;
        self.count += 1;
    }

    fn are_enough(&self) -> bool {
        self.count >= LEAST_MOMENTS
    }
}

/// Questions whether datagrams pass.
#[derive(Debug)]
struct Check {
    /// To be sent now: a short one, and one of full length.
    due: [bool; 2],
    wants_full: bool,
    /// `None` once all has been answered.
    again_at: Option<Duration>,
    wait: Duration,
}

/// What a check sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    Short,
    Full,
}

// spec U10: each pair is checked, some at the start, others at the first use.
#[derive(Debug, Default)]
pub(super) struct Path {
    heard: bool,
    answered: bool,
    /// Longest datagram that the peer has said to have got.
    reached: usize,
    /// When this rank has sent something that a peer has to answer which was never heard.
    asked: Moments,
    /// The first datagram to a peer that was heard.
    answered_at: Option<Duration>,
    /// When datagrams have come that deny that any has come there, behind that one.
    denied: Moments,
    /// Since when it is known that they go on to come.
    deaf_at: Option<Duration>,
    check: Option<Check>,
}

impl Path {
    /// Whether a datagram of the peer's has come.
    #[inline]
    pub(super) fn is_heard(&self) -> bool {
        self.heard
    }

    pub(super) fn state(&self, config: &ReliableConfig) -> PathState {
        let wants_full = self.check.as_ref().is_none_or(|check| check.wants_full);
        PathState {
            heard: self.heard,
            answered: self.answered,
            full: !wants_full || self.reached >= config.datagram_bytes,
        }
    }

    /// Begins to ask, also whether datagrams of full length pass.
    pub(super) fn ask(&mut self, now: Duration, full: bool) {
        self.check = Some(Check {
            due: [true, full],
            wants_full: full,
            again_at: Some(now + AGAIN_AFTER),
            wait: AGAIN_AFTER,
        });
    }

    pub(super) fn end_asking(&mut self) {
        self.check = None;
    }

    /// The next question.
    #[inline]
    pub(super) fn due(&self) -> Option<Question> {
        match self.check.as_ref()?.due {
            [true, _] => Some(Question::Short),
            [false, true] => Some(Question::Full),
            [false, false] => None,
        }
    }

    /// A datagram has come, which says whether one of this rank's has come to the peer.
    #[inline]
    pub(super) fn came(&mut self, now: Duration, says_heard: bool, config: &ReliableConfig) {
        self.heard = true;
        if says_heard {
            (self.answered, self.deaf_at) = (true, None);
        } else if let Some(since) = self.answered_at {
            self.denied.add(now);
            // Sooner than the peer gives up, so that this end reports what it knows.
            let limit = config.unheard_after.min(config.give_up_after);
            let is_late = now >= since + limit * 3 / 4;
            if is_late && self.denied.are_enough() && !self.answered {
                self.deaf_at.get_or_insert(now);
            }
        }
    }

    /// Since when the peer says that it hears nothing of this rank, if it has done so for long; and
    /// since when that is known.
    pub(super) fn deaf_since(&self) -> Option<[Duration; 2]> {
        let deaf_at = self.deaf_at.filter(|_| self.check.is_none())?;
        Some([self.answered_at?, deaf_at])
    }

    /// The peer has got a datagram of that length.
    pub(super) fn reached(&mut self, bytes: usize) {
        self.reached = self.reached.max(bytes);
    }

    /// A question is sent.
    pub(super) fn asked(&mut self, question: Question) {
        if let Some(check) = &mut self.check {
            check.due[question as usize] = false;
        }
    }

    /// A datagram is sent, which the peer has to answer or not.
    #[inline]
    pub(super) fn sent(&mut self, now: Duration, wants_answer: bool) {
        if self.heard {
            self.answered_at.get_or_insert(now);
        } else if wants_answer {
            self.asked.add(now);
        }
    }

    /// Since when the peer is asked in vain, if it was never heard and was asked often enough; and
    /// when it had the last of these questions.
    pub(super) fn unheard_since(&self) -> Option<[Duration; 2]> {
        let is_unheard = !self.heard && self.asked.are_enough();
        is_unheard.then_some([self.asked.first, self.asked.last])
    }

    /// This process has been paused for so long.
    pub(super) fn paused(&mut self, time: Duration) {
        self.asked.first += time;
        if let Some(at) = &mut self.answered_at {
            *at += time;
        }
    }

    /// Whether the path may not take a datagram that was sent so often; `longest` is the longest
    /// that has arrived.
    pub(super) fn doubts(&self, bytes: usize, longest: usize, sends: u32) -> bool {
        let known = longest.max(self.reached).max(SHORT_BYTES);
        bytes > known && bytes <= JUMBO_BYTES && sends >= DOUBTFUL_SENDS
    }

    /// The same, often enough to give the peer up.
    pub(super) fn is_sure(sends: u32) -> bool {
        sends >= LEAST_MOMENTS
    }

    /// When to look at it again.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.check.as_ref()?.again_at
    }

    /// Asks again what has no answer yet.
    pub(super) fn handle_timeout(&mut self, now: Duration, config: &ReliableConfig) {
        let PathState { answered, full, .. } = self.state(config);
        let Some(check) = &mut self.check else {
            return;
        };
        if check.again_at.is_none_or(|at| at > now) {
            return;
        }
        check.due = [!answered, !full];
        check.wait = MOST_AGAIN.min(2 * check.wait);
        check.again_at = (!answered || !full).then(|| now + check.wait);
    }
}
