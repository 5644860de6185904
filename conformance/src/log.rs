//! Arrivals, written down entry by entry; and the handlers of the suite.

use crate::pattern;
use crate::rig::Promises;
use crate::watchdog::Board;
use argonet_am::{
    AmError, Category, Delivery, HandlerTable, Message, MessageClass, Payload, Registered,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::{Completion, Limits, OpToken, Sink};
use argonet_segment::SharedBytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Is logged, and does nothing else.
pub(crate) const NOTE: HandlerIndex = HandlerIndex(128);
/// Replies as its arguments say, see [`Answer`].
pub(crate) const ASK: HandlerIndex = HandlerIndex(129);
/// Replies with its own payload.
pub(crate) const ECHO: HandlerIndex = HandlerIndex(130);
/// The handler that replies name.
pub(crate) const ANSWER: HandlerIndex = HandlerIndex(131);
/// As [`ASK`], after trying all replies that must be refused.
pub(crate) const PICKY: HandlerIndex = HandlerIndex(132);
/// Is not registered.
pub(crate) const ABSENT: HandlerIndex = HandlerIndex(133);

/// The suite's handlers, as a conduit wants to know of them.
pub(crate) fn registered() -> Registered {
    let mut table = HandlerTable::default();
    for index in [NOTE, ASK, ECHO, ANSWER, PICKY] {
        let name = format!("handler {index}");
        let placed = table.register_at(index, &name, Box::new(|_| {}));
        placed.expect("the indices differ and are clients'");
    }
    table.registered()
}

/// The reply that a request asks for, as it travels in the arguments after the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) category: Category,
    pub(crate) nargs: usize,
    pub(crate) len: usize,
    /// The place of a long.
    pub(crate) offset: u64,
}

impl Answer {
    pub(crate) fn pack(&self) -> [u32; 3] {
        let kind = u8::from(self.category);
        [
            u32::from(kind) | (self.nargs as u32) << 8,
            self.len as u32,
            self.offset as u32,
        ]
    }

    fn unpack(args: &[u32]) -> Option<Self> {
        let &[_, kind, len, offset] = args else {
            return None;
        };
        Some(Self {
            category: Category::try_from(kind as u8).ok()?,
            nargs: (kind >> 8) as usize,
            len: len as usize,
            offset: offset.into(),
        })
    }
}

/// One message as its handler saw it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    pub(crate) tag: u32,
    pub(crate) handler: u8,
    pub(crate) category: u8,
    pub(crate) nargs: usize,
    pub(crate) len: usize,
    pub(crate) offset: u64,
}

/// The sink of one endpoint, or of one thread that polls it.
pub(crate) struct Log {
    rank: usize,
    limits: Limits,
    knows_segments: bool,
    board: Arc<Board>,
    /// By source: requests, then replies.
    pub(crate) requests: Vec<Vec<Entry>>,
    pub(crate) replies: Vec<Vec<Entry>>,
    pub(crate) completed: Vec<(u64, Completion)>,
    pub(crate) broken: Vec<AmError>,
    /// Errors in arrivals.
    pub(crate) faults: Vec<String>,
}

impl Log {
    pub(crate) fn new(
        rank: usize,
        ranks: usize,
        limits: Limits,
        promises: &Promises,
        board: Arc<Board>,
    ) -> Self {
        Self {
            rank,
            limits,
            knows_segments: promises.knows_segments,
            board,
            requests: vec![Vec::new(); ranks],
            replies: vec![Vec::new(); ranks],
            completed: Vec::new(),
            broken: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Messages and completions so far.
    pub(crate) fn count(&self) -> usize {
        let classes = self.requests.iter().chain(&self.replies);
        classes.map(Vec::len).sum::<usize>() + self.completed.len()
    }

    fn fault(&mut self, delivery: &Delivery<'_>, what: &str) {
        self.faults.push(format!(
            "rank {} got from {}: {:?} {:?} of {} bytes, handler {}, arguments {:x?}: {what}",
            self.rank,
            delivery.source(),
            delivery.class(),
            delivery.category(),
            delivery.payload().len(),
            delivery.handler(),
            delivery.args(),
        ));
    }

    fn act(&mut self, delivery: &mut Delivery<'_>) -> Result<(), String> {
        let tag = delivery.arg(0);
        match delivery.handler() {
            NOTE => Ok(()),
            ECHO => {
                let echoed = delivery.echo(ANSWER, &pattern::args(tag, 3));
                echoed.map_err(|error| error.to_string())
            }
            ASK | PICKY => {
                let answer = Answer::unpack(delivery.args()).ok_or("no such answer")?;
                if delivery.handler() == PICKY {
                    self.refusals(delivery)?;
                }
                let args = pattern::args(tag, answer.nargs);
                let seed = if answer.nargs == 0 {
                    answer.len as u32
                } else {
                    tag
                };
                let bytes = pattern::bytes(seed, answer.len);
                let reply = message(ANSWER, answer.category, &args, &bytes, answer.offset);
                delivery.reply(&reply).map_err(|error| error.to_string())?;
                match delivery.reply(&reply) {
                    Err(AmError::RepliedTwice { .. }) => Ok(()),
                    other => Err(format!("a second reply: {other:?}")),
                }
            }
            ANSWER => {
                let reply = message(ANSWER, Category::Short, &[], &[], 0);
                match delivery.reply(&reply) {
                    Err(AmError::ReplyToReply { .. }) => Ok(()),
                    other => Err(format!("a reply to a reply: {other:?}")),
                }
            }
            other => Err(format!("handler {other} runs")),
        }
    }

    /// Replies that must be refused, and leave the right to reply.
    fn refusals(&self, delivery: &mut Delivery<'_>) -> Result<(), String> {
        let long = vec![0; self.limits.medium_reply + 1];
        let args = vec![0; self.limits.args + 1];
        for (what, reply) in [
            ("no handler", message(ABSENT, Category::Short, &[], &[], 0)),
            (
                "too many arguments",
                message(ANSWER, Category::Short, &args, &[], 0),
            ),
            (
                "too long",
                message(ANSWER, Category::Medium, &[1], &long, 0),
            ),
            (
                "outside",
                message(ANSWER, Category::Long, &[1], &[1, 2], 1 << 40),
            ),
        ] {
            if what == "outside" && !self.knows_segments {
                continue;
            }
            if delivery.reply(&reply).is_ok() {
                return Err(format!("a reply went out that must be refused: {what}"));
            }
            if delivery.has_replied() {
                return Err(format!("a refused reply counts as one: {what}"));
            }
        }
        Ok(())
    }
}

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let (source, handler) = (delivery.source().index(), delivery.handler());
        let entry = Entry {
            tag: match delivery.args() {
                [] => delivery.payload().len() as u32,
                [tag, ..] => *tag,
            },
            handler: handler.0,
            category: delivery.category().into(),
            nargs: delivery.args().len(),
            len: delivery.payload().len(),
            offset: delivery.offset().0,
        };
        if source >= self.requests.len() || delivery.rank() != JobRank(self.rank as u32) {
            self.fault(delivery, "the wrong rank");
            return;
        }
        let asks = handler == ASK || handler == PICKY;
        if let Some(what) = pattern::fault(delivery, asks) {
            self.fault(delivery, &what);
        }
        let counts = self.board.counts(self.rank);
        if delivery.class() == MessageClass::Request {
            counts.requests.fetch_add(1, Ordering::Relaxed);
            self.requests[source].push(entry);
        } else {
            counts.replies.fetch_add(1, Ordering::Relaxed);
            self.replies[source].push(entry);
        }
        if (delivery.class() == MessageClass::Reply) != (handler == ANSWER) {
            self.fault(delivery, "the wrong class");
        }
        if let Err(what) = self.act(delivery) {
            self.fault(delivery, &what);
        }
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.board
            .counts(self.rank)
            .completions
            .fetch_add(1, Ordering::Relaxed);
        if op.implicit != (op.handle & 1 == 1) {
            self.faults
                .push(format!("a token came back changed: {op:?}"));
        }
        self.completed.push((op.handle, completion));
    }

    fn on_error(&mut self, error: AmError) {
        self.broken.push(error);
    }
}

/// A message of any category.
pub(crate) fn message<'a>(
    handler: HandlerIndex,
    category: Category,
    args: &'a [u32],
    bytes: &'a [u8],
    offset: u64,
) -> Message<'a> {
    let shared = SharedBytes::from_slice(bytes);
    let payload = match category {
        Category::Short => Payload::None,
        Category::Medium => Payload::Medium(shared),
        Category::Long => Payload::Long(shared, SegmentOffset(offset)),
    };
    Message {
        handler,
        args,
        payload,
    }
}

/// The token of operation `n`.
pub(crate) fn token(n: u64) -> OpToken {
    OpToken {
        handle: n,
        implicit: n & 1 == 1,
    }
}
