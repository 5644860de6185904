//! Messages of the suite, and how they are sent.

use crate::log::{ANSWER, ASK, Answer, ECHO, Entry, NOTE, message};
use crate::pattern;
use argonet_am::record::Short;
use argonet_am::{Category, MAX_ARGS};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Conduit, SendError};

/// A request of the suite.
///
/// Its bytes and arguments follow from its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mail {
    handler: HandlerIndex,
    tag: u32,
    category: Category,
    nargs: usize,
    len: usize,
    offset: u64,
    answer: Option<Answer>,
}

impl Mail {
    /// A short with one argument.
    pub(crate) fn note(tag: u32) -> Self {
        Self {
            handler: NOTE,
            tag,
            category: Category::Short,
            nargs: 1,
            len: 0,
            offset: 0,
            answer: None,
        }
    }

    /// With another number of arguments.
    pub(crate) fn args(self, nargs: usize) -> Self {
        Self { nargs, ..self }
    }

    /// With the payload of a medium.
    pub(crate) fn medium(self, len: usize) -> Self {
        Self {
            category: Category::Medium,
            len,
            offset: 0,
            ..self
        }
    }

    /// With the payload of a long.
    pub(crate) fn long(self, len: usize, offset: u64) -> Self {
        Self {
            category: Category::Long,
            len,
            offset,
            ..self
        }
    }

    /// Wants its payload back.
    pub(crate) fn echo(self) -> Self {
        Self {
            handler: ECHO,
            ..self
        }
    }

    /// Wants a reply, which has as many arguments as a handler may give at most.
    pub(crate) fn asks(self, category: Category, nargs: usize, len: usize, offset: u64) -> Self {
        let answer = Some(Answer {
            category,
            nargs: nargs.min(MAX_ARGS),
            len,
            offset,
        });
        Self {
            handler: ASK,
            nargs: 4,
            answer,
            ..self
        }
    }

    /// Wants a short reply.
    pub(crate) fn asks_short(self) -> Self {
        self.asks(Category::Short, 1, 0, 0)
    }

    /// For another handler.
    pub(crate) fn to_handler(self, handler: HandlerIndex) -> Self {
        Self { handler, ..self }
    }

    /// Its arguments.
    pub(crate) fn arguments(&self) -> Vec<u32> {
        match self.answer {
            None => pattern::args(self.tag, self.nargs),
            Some(answer) => std::iter::once(self.tag).chain(answer.pack()).collect(),
        }
    }

    /// Its payload.
    pub(crate) fn payload(&self) -> Vec<u8> {
        pattern::bytes(self.seed(), self.len)
    }

    fn seed(&self) -> u32 {
        if self.nargs == 0 {
            self.len as u32
        } else {
            self.tag
        }
    }

    /// The entry that its handler will write.
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            tag: self.seed(),
            handler: self.handler.0,
            category: self.category.into(),
            nargs: self.nargs,
            len: self.len,
            offset: self.offset,
        }
    }

    /// The entry that the reply's handler will write, if there will be a reply.
    pub(crate) fn reply_entry(&self) -> Option<Entry> {
        if self.handler == ECHO {
            return Some(Entry {
                handler: ANSWER.0,
                category: Category::Medium.into(),
                nargs: 3,
                offset: 0,
                ..self.entry()
            });
        }
        let answer = self.answer?;
        Some(Entry {
            tag: if answer.nargs == 0 {
                answer.len as u32
            } else {
                self.tag
            },
            handler: ANSWER.0,
            category: answer.category.into(),
            nargs: answer.nargs,
            len: answer.len,
            offset: if answer.category == Category::Long {
                answer.offset
            } else {
                0
            },
        })
    }

    /// Sends it once.
    ///
    /// Shorts take both ways in turn.
    pub(crate) fn try_send(&self, over: &impl Conduit, to: JobRank) -> Result<(), SendError> {
        self.try_send_with(over, to, &self.arguments(), &self.payload())
    }

    /// [`try_send`](Self::try_send) with arguments and payload made before.
    pub(crate) fn try_send_with(
        &self,
        over: &impl Conduit,
        to: JobRank,
        args: &[u32],
        bytes: &[u8],
    ) -> Result<(), SendError> {
        if self.category == Category::Short
            && self.tag % 2 == 1
            && let Some(short) = Short::pack(self.handler, args)
            && over.request_short(to, short)
        {
            return Ok(());
        }
        over.request(
            to,
            &message(self.handler, self.category, args, bytes, self.offset),
        )
    }
}
