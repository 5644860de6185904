//! A system message: one word of 64 bits, which fits match bits, immediate data or a header.
//!
//! ```text
//!   bits 63..56   55..48      47..40            39..32   31..0
//!        kind     sequence    0, or 1 for E     0        value
//! ```

use crate::credit::{Return, Revoke};

/// A question or report of one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Give credits back.
    Revoke(Revoke),
    /// The job ends with this code.
    Exit(u8),
}

/// The answer of the other rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Credits given back.
    Return(Return),
    /// It ends, too.
    Exiting,
}

/// A question or an answer as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame(pub u64);

/// A word that is no system message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{word:#018x} is no system message: {what}")]
pub struct FrameError {
    /// The word.
    pub word: u64,
    /// The error.
    pub what: &'static str,
}

/// The meaning of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Question(Question),
    Answer(Answer),
}

const REVOKE: u8 = 1;
const EXIT: u8 = 2;
const RETURN: u8 = 0x81;
const EXITING: u8 = 0x82;

impl Frame {
    pub(super) fn question(question: Question, sequence: u8) -> Frame {
        match question {
            Question::Revoke(Revoke { epoch, wanted }) => {
                Self::pack(REVOKE, sequence, epoch, wanted.into())
            }
            Question::Exit(code) => Self::pack(EXIT, sequence, false, code.into()),
        }
    }

    pub(super) fn answer(answer: Answer, sequence: u8) -> Frame {
        match answer {
            Answer::Return(Return { epoch, count }) => {
                Self::pack(RETURN, sequence, epoch, count.into())
            }
            Answer::Exiting => Self::pack(EXITING, sequence, false, 0),
        }
    }

    fn pack(kind: u8, sequence: u8, flag: bool, value: u32) -> Frame {
        Frame(
            u64::from(kind) << 56
                | u64::from(sequence) << 48
                | u64::from(flag) << 40
                | u64::from(value),
        )
    }

    pub(super) fn sequence(self) -> u8 {
        (self.0 >> 48) as u8
    }

    pub(super) fn content(self) -> Result<Content, FrameError> {
        let wrong = |what| FrameError { word: self.0, what };
        let value = self.0 as u32;
        let epoch = match (self.0 >> 32) & 0xffff {
            0 => false,
            0x100 => true,
            _ => return Err(wrong("bits that no message has are set")),
        };
        let count = || u16::try_from(value).map_err(|_| wrong("a count of more than 16 bits"));
        let kind = (self.0 >> 56) as u8;
        if epoch && !matches!(kind, REVOKE | RETURN) {
            return Err(wrong("an epoch in a message that has none"));
        }
        Ok(match kind {
            REVOKE => {
                let wanted = count()?;
                Content::Question(Question::Revoke(Revoke { epoch, wanted }))
            }
            EXIT => {
                let code = u8::try_from(value).map_err(|_| wrong("an exit code above 255"))?;
                Content::Question(Question::Exit(code))
            }
            RETURN => {
                let count = count()?;
                Content::Answer(Answer::Return(Return { epoch, count }))
            }
            EXITING if value == 0 => Content::Answer(Answer::Exiting),
            EXITING => return Err(wrong("an answer with a value that has none")),
            _ => return Err(wrong("unknown kind")),
        })
    }
}
