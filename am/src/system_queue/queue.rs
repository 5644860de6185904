//! Questions that wait for their answers.

use super::frame::{Answer, Content, Frame, FrameError, Question};
use core::time::Duration;
use std::collections::VecDeque;

/// State about one peer.
///
/// All zero until the first message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// The last answer given to the peer, without its sequence: kind and epoch in bits 31 and 30,
    /// count in bits 0 to 15.
    ///
    /// It is given again when the question is repeated. Bits 16 to 23 are the code of an exit that
    /// waits.
    answered: u32,
    /// The sequence of the last question to the peer.
    sequence: u8,
    /// The sequence of the last question from the peer.
    heard: u8,
    marks: u8,
}

static_assertions::const_assert!(size_of::<Slot>() <= 8);

/// A question is not answered.
const OPEN: u8 = 1;
/// The peer has asked before, so `heard` and `answered` say something.
const HEARD: u8 = 2;
/// The question that was heard last is still to be answered.
const OWES: u8 = 4;
/// An exit waits until the open question is answered.
const EXIT_WAITS: u8 = 8;
/// The peer knows that the job ends.
const EXIT_KNOWN: u8 = 16;
/// The open question is an exit.
const OPEN_EXIT: u8 = 32;

/// The code of an exit that waits, in [`Slot::answered`].
const CODE: u32 = 0xff_0000;
const CODE_SHIFT: u32 = 16;

impl Slot {
    /// Whether a question to the peer is not answered yet.
    #[inline]
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.marks & (OPEN | EXIT_WAITS) != 0
    }

    /// Whether the peer has said, or confirmed, that the job ends.
    #[must_use]
    pub fn knows_of_exit(&self) -> bool {
        self.marks & EXIT_KNOWN != 0
    }

    /// Whether an exit waits until the peer has answered the question before.
    #[must_use]
    pub fn has_exit_waiting(&self) -> bool {
        self.marks & EXIT_WAITS != 0
    }

    fn set(&mut self, mark: u8, on: bool) {
        if on {
            self.marks |= mark;
        } else {
            self.marks &= !mark;
        }
    }
}

/// The meaning of a frame for its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A question, to be carried out and answered by [`SystemQueue::answer`] at once.
    Question(Question),
    /// A question that was answered before: send this.
    Repeated(Frame),
    /// The answer to the open question.
    Answered(Answer),
    /// The same, and a question that had waited for it is to be sent now.
    AnsweredAndNext(Answer, Frame),
    /// An answer that came twice.
    Stale,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    due: Duration,
    peer: u32,
    frame: Frame,
}

/// The open questions of a rank, under one lock.
///
/// It holds at most one entry for each peer.
#[derive(Debug)]
pub struct SystemQueue {
    resend: Duration,
    /// In the order in which they are due: all wait equally long.
    open: VecDeque<Open>,
    resent: u64,
}

impl SystemQueue {
    /// A queue that repeats questions which are not answered within `resend`; zero is for networks
    /// that lose nothing, where nothing is kept to be repeated.
    #[must_use]
    pub fn new(resend: Duration) -> Self {
        Self {
            resend,
            open: VecDeque::new(),
            resent: 0,
        }
    }

    /// Puts a question to a peer.
    ///
    /// `None`: another is not answered yet.
    ///
    /// An exit then follows by itself ([`Heard::AnsweredAndNext`]); anything else is for the caller
    /// to ask again, if it still wants to.
    pub fn ask(
        &mut self,
        now: Duration,
        peer: u32,
        slot: &mut Slot,
        question: Question,
    ) -> Option<Frame> {
        if slot.marks & OPEN != 0 {
            if let Question::Exit(code) = question {
                slot.set(EXIT_WAITS, true);
                slot.answered = slot.answered & !CODE | u32::from(code) << CODE_SHIFT;
            }
            return None;
        }
        slot.sequence = slot.sequence.wrapping_add(1);
        slot.set(OPEN, true);
        slot.set(OPEN_EXIT, matches!(question, Question::Exit(_)));
        let frame = Frame::question(question, slot.sequence);
        if !self.resend.is_zero() {
            self.open.push_back(Open {
                due: now + self.resend,
                peer,
                frame,
            });
        }
        Some(frame)
    }

    /// The answer to the question that was heard last.
    ///
    /// # Panics
    /// If there is none that is not answered.
    pub fn answer(slot: &mut Slot, answer: Answer) -> Frame {
        assert!(slot.marks & OWES != 0, "no question is to be answered");
        slot.set(OWES, false);
        let frame = Frame::answer(answer, slot.heard);
        let (exiting, epoch) = match answer {
            Answer::Return(r) => (false, r.epoch),
            Answer::Exiting => (true, false),
        };
        slot.answered = slot.answered & CODE
            | u32::from(exiting) << 31
            | u32::from(epoch) << 30
            | frame.0 as u32 & 0xffff;
        frame
    }

    fn answer_again(slot: &Slot) -> Frame {
        let answer = if slot.answered >> 31 != 0 {
            Answer::Exiting
        } else {
            Answer::Return(crate::credit::Return {
                epoch: slot.answered >> 30 & 1 != 0,
                count: slot.answered as u16,
            })
        };
        Frame::answer(answer, slot.heard)
    }

    /// A frame has come from a peer.
    ///
    /// # Errors
    /// It is no system message, or one that cannot come now.
    pub fn handle_recv(
        &mut self,
        now: Duration,
        peer: u32,
        slot: &mut Slot,
        frame: Frame,
    ) -> Result<Heard, FrameError> {
        match frame.content()? {
            Content::Question(question) => Ok(Self::heard(slot, frame, question)),
            Content::Answer(answer) => self.answered(now, peer, slot, frame, answer),
        }
    }

    fn heard(slot: &mut Slot, frame: Frame, question: Question) -> Heard {
        let sequence = frame.sequence();
        if slot.marks & HEARD != 0 {
            // One question is open at a time, so any but the next is an old one that the network
            // has repeated.
            if sequence == slot.heard && slot.marks & OWES == 0 {
                return Heard::Repeated(Self::answer_again(slot));
            }
            if sequence != slot.heard.wrapping_add(1) {
                return Heard::Stale;
            }
        } else if sequence != 1 {
            return Heard::Stale;
        }
        slot.heard = sequence;
        slot.marks |= HEARD | OWES;
        if let Question::Exit(_) = question {
            slot.marks |= EXIT_KNOWN;
        }
        Heard::Question(question)
    }

    fn answered(
        &mut self,
        now: Duration,
        peer: u32,
        slot: &mut Slot,
        frame: Frame,
        answer: Answer,
    ) -> Result<Heard, FrameError> {
        if slot.marks & OPEN == 0 || frame.sequence() != slot.sequence {
            return Ok(Heard::Stale);
        }
        if (slot.marks & OPEN_EXIT != 0) != (answer == Answer::Exiting) {
            return Err(FrameError {
                word: frame.0,
                what: "an answer of another kind than its question",
            });
        }
        if let Some(at) = self.open.iter().position(|open| open.peer == peer) {
            self.open.remove(at);
        }
        slot.set(OPEN, false);
        if answer == Answer::Exiting {
            slot.set(EXIT_KNOWN, true);
        }
        if slot.marks & EXIT_WAITS != 0 {
            slot.set(EXIT_WAITS, false);
            let code = (slot.answered >> CODE_SHIFT) as u8;
            if let Some(next) = self.ask(now, peer, slot, Question::Exit(code)) {
                return Ok(Heard::AnsweredAndNext(answer, next));
            }
        }
        Ok(Heard::Answered(answer))
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.open.front().map(|open| open.due)
    }

    /// Repeats due questions, by `send`.
    pub fn handle_timeout(&mut self, now: Duration, mut send: impl FnMut(u32, Frame)) {
        while let Some(mut open) = self.open.pop_front_if(|open| open.due <= now) {
            open.due = now + self.resend;
            self.resent += 1;
            send(open.peer, open.frame);
            self.open.push_back(open);
        }
    }

    /// A peer is gone: nothing is repeated to it.
    pub fn forget(&mut self, peer: u32, slot: &mut Slot) {
        self.open.retain(|open| open.peer != peer);
        *slot = Slot::default();
    }

    /// Questions repeated since the start.
    #[must_use]
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Questions without an answer.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }
}
