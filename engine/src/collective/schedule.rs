//! The steps of one member in a collective operation: the result of a pure function, executed by
//! [`message_call`](super::message_call).
//!
//! Steps come in rounds. The messages of a round are all under way at once, in any order; when the
//! last of them is complete, its local steps are done one after another, and then the next round
//! begins. Rounds are each member's own: messages find each other by (sender, receiver, tag), and
//! two members may take different numbers of rounds. The memory that a round receives into is
//! neither sent from nor received into by another message of that round.

use std::collections::HashMap;

/// One of the memories that a call works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Area {
    /// The member's contribution: only read.
    Source,
    /// Where its result goes.
    Target,
    /// The call's own.
    Scratch,
}

/// Bytes of an area.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The area.
    pub area: Area,
    /// Where they begin.
    pub at: usize,
    /// Their number.
    pub len: usize,
}

impl Range {
    /// Nothing, for messages whose arrival is the signal.
    pub const NONE: Self = Self {
        area: Area::Scratch,
        at: 0,
        len: 0,
    };

    /// Bytes of an area.
    #[must_use]
    pub const fn new(area: Area, at: usize, len: usize) -> Self {
        Self { area, at, len }
    }

    /// `len` of its bytes, from byte `at` on.
    #[must_use]
    pub fn part(self, at: usize, len: usize) -> Self {
        debug_assert!(at + len <= self.len);
        Self::new(self.area, self.at + at, len)
    }
}

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// To a member.
    Send {
        /// The receiver.
        to: u32,
        /// The source.
        from: Range,
        /// How many this member has sent it before in this call.
        tag: u32,
    },
    /// From a member, which sends as many bytes.
    Receive {
        /// The sender.
        from: u32,
        /// The destination.
        into: Range,
        /// How many this member has received from it before in this call.
        tag: u32,
    },
    /// Local.
    Copy {
        /// The source.
        from: Range,
        /// Where to; as long, elsewhere.
        into: Range,
    },
    /// Local: each element of `right` becomes `left op right`.
    Fold {
        /// Of the lower ranks, where the operation does not commute.
        left: Range,
        /// Of the higher ranks, and where the result goes.
        right: Range,
    },
}

/// Where the steps of a round end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Round {
    /// Its messages.
    messages: usize,
    /// All of it.
    end: usize,
}

/// Where pieces of scratch begin: at the alignment of every predefined type, and of cache lines.
pub(super) const ALIGN: usize = 64;

/// The steps of one member.
///
/// Its memory is used again for the next call.
#[derive(Default)]
pub struct Schedule {
    steps: Vec<Step>,
    /// Rounds that have ended.
    rounds: Vec<Round>,
    /// Messages and all steps up to here, of the round that is being added to.
    messages: usize,
    scratch: usize,
    /// The most that it has been.
    most_scratch: usize,
    sent: HashMap<u32, u32>,
    received: HashMap<u32, u32>,
}

impl Schedule {
    /// Empties it.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.rounds.clear();
        self.messages = 0;
        self.scratch = 0;
        self.most_scratch = 0;
        self.sent.clear();
        self.received.clear();
    }

    /// The round ends, if it has begun.
    pub fn round(&mut self) {
        let end = self.steps.len();
        if self.rounds.last().map_or(0, |round| round.end) < end {
            let messages = self.messages;
            self.rounds.push(Round { messages, end });
        }
        self.messages = end;
    }

    fn message(&mut self, step: Step) {
        if self.messages < self.steps.len() {
            self.round();
        }
        self.steps.push(step);
        self.messages = self.steps.len();
    }

    /// Sends in this round; in a new one if there is something local in this.
    pub fn send(&mut self, to: u32, from: Range) {
        let count = self.sent.entry(to).or_default();
        let tag = *count;
        *count += 1;
        self.message(Step::Send { to, from, tag });
    }

    /// Receives in this round; in a new one if there is something local in this.
    pub fn receive(&mut self, from: u32, into: Range) {
        let count = self.received.entry(from).or_default();
        let tag = *count;
        *count += 1;
        self.message(Step::Receive { from, into, tag });
    }

    /// Copies after the messages of this round, unless there is nothing to be copied.
    pub fn copy(&mut self, from: Range, into: Range) {
        debug_assert_eq!(from.len, into.len);
        if from != into && from.len > 0 {
            self.steps.push(Step::Copy { from, into });
        }
    }

    /// Folds after the messages of this round.
    pub fn fold(&mut self, left: Range, right: Range) {
        debug_assert_eq!(left.len, right.len);
        if right.len > 0 {
            self.steps.push(Step::Fold { left, right });
        }
    }

    /// New scratch.
    pub fn scratch(&mut self, len: usize) -> Range {
        let at = self.scratch;
        self.scratch += len.next_multiple_of(ALIGN);
        self.most_scratch = self.most_scratch.max(self.scratch);
        Range::new(Area::Scratch, at, len)
    }

    /// How much scratch has been given out.
    #[must_use]
    pub fn scratch_mark(&self) -> usize {
        self.scratch
    }

    /// Takes back scratch that was given out since, for rounds to come; those that use it are over
    /// then.
    pub fn scratch_back(&mut self, mark: usize) {
        self.round();
        self.scratch = mark;
    }

    /// Bytes of scratch that it needs.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        self.most_scratch
    }

    /// Rounds, after [`round`](Self::round) has ended the last.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Messages of a round.
    #[must_use]
    pub fn messages(&self, round: usize) -> &[Step] {
        let begin = round.checked_sub(1).map_or(0, |last| self.rounds[last].end);
        &self.steps[begin..self.rounds[round].messages]
    }

    /// The local steps of a round.
    #[must_use]
    pub fn local(&self, round: usize) -> &[Step] {
        let Round { messages, end } = self.rounds[round];
        &self.steps[messages..end]
    }
}
