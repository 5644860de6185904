//! Logs of messages sent and handled, which are compared entry by entry.

use super::memory::{Layout, bytes};
use super::shape::Shape;
use argonet_am::{AmError, Category, Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{Directory, SharedBytes};
use core::ops::Range;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const REQUEST: HandlerIndex = HandlerIndex(130);
const REPLY: HandlerIndex = HandlerIndex(131);

/// A reply's bytes differ from its request's.
const OF_REPLY: u32 = 1 << 31;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) number: u32,
    pub(super) category: Category,
    pub(super) nargs: usize,
    pub(super) len: usize,
    pub(super) offset: u64,
    pub(super) reply: Option<Answer>,
}

/// The reply that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) category: Category,
    pub(super) len: usize,
    pub(super) offset: u64,
}

/// Arguments before the filling.
pub(super) const FIXED_ARGS: usize = 3;

impl Entry {
    /// The arguments that carry it.
    pub(super) fn args(&self) -> Vec<u32> {
        let (kind, len, offset) = self
            .reply
            .map_or((0, 0, 0), |a| (a.category as u32, a.len, a.offset));
        let mut args = vec![self.number, kind | (len as u32) << 2, offset as u32];
        args.extend((FIXED_ARGS..self.nargs).map(|i| self.number.wrapping_mul(i as u32 + 7)));
        args
    }
}

/// Everything that a run has done, by all ranks.
pub(super) struct Observed {
    ranks: u32,
    /// Whether requests, and replies, of a rank to another must come in the order in which they
    /// were sent.
    is_ordered: bool,
    /// Requests by sender and target, in the order in which they were sent.
    sent: Vec<Vec<Entry>>,
    /// How many of them have been handled, and whether each one has.
    done: Vec<usize>,
    is_done: Vec<Vec<bool>>,
    /// Requests by sender and target whose replies have not come, in order.
    awaited: Vec<VecDeque<Entry>>,
    /// Bytes that each writer has put into each target's segment: writer, target.
    pub(super) model: Vec<Vec<u8>>,
    /// The segment of each rank that has begun.
    pub(super) segments: Vec<Option<Arc<Directory>>>,
    /// Ranks that have entered each barrier.
    pub(super) entered: Vec<u32>,
    /// Ranks that have begun each operation that goes on in the background.
    in_background: Vec<u32>,
    pub(super) violations: Vec<String>,
    pub(super) handled: u64,
}

impl Observed {
    pub(super) fn new(shape: &Shape, is_ordered: bool) -> Self {
        let ranks = shape.job.sim.ranks;
        let pairs = (ranks * ranks) as usize;
        Self {
            ranks,
            is_ordered,
            sent: vec![Vec::new(); pairs],
            done: vec![0; pairs],
            is_done: vec![Vec::new(); pairs],
            awaited: vec![VecDeque::new(); pairs],
            model: vec![vec![0; shape.area_bytes as usize / 2]; pairs],
            segments: vec![None; ranks as usize],
            entered: vec![0; shape.phases as usize + 1],
            in_background: Vec::new(),
            violations: Vec::new(),
            handled: 0,
        }
    }

    /// A rank begins an operation that goes on in the background.
    pub(super) fn enters(&mut self, number: u32) {
        let at = number as usize;
        let least = self.in_background.len().max(at + 1);
        self.in_background.resize(least, 0);
        self.in_background[at] += 1;
    }

    /// Ranks that have begun it.
    pub(super) fn entered_in_background(&self, number: u32) -> u32 {
        self.in_background[number as usize]
    }

    pub(super) fn pair(&self, from: u32, to: u32) -> usize {
        (from * self.ranks + to) as usize
    }

    /// Number of the next request.
    pub(super) fn next(&self, from: u32, to: u32) -> u32 {
        self.sent[self.pair(from, to)].len() as u32
    }

    /// A request is about to be sent.
    pub(super) fn sends(&mut self, from: u32, to: u32, entry: Entry) {
        let pair = self.pair(from, to);
        self.sent[pair].push(entry);
        self.is_done[pair].push(false);
        if entry.reply.is_some() {
            self.awaited[pair].push_back(entry);
        }
    }

    /// Whether a rank waits for the reply to a request like that.
    pub(super) fn awaits_any(&self, from: u32, to: u32, like: impl FnMut(&Entry) -> bool) -> bool {
        self.awaited[self.pair(from, to)].iter().any(like)
    }

    /// Replies that a rank waits for.
    pub(super) fn awaits(&self, from: u32) -> usize {
        let pairs = (0..self.ranks).map(|to| self.awaited[self.pair(from, to)].len());
        pairs.sum()
    }

    /// A put of a writer is remotely complete: looks whether its bytes lie at the target, whose
    /// help is not asked for.
    pub(super) fn lies_there(
        &mut self,
        writer: u32,
        at: u32,
        offset: SegmentOffset,
        place: Range<usize>,
    ) {
        let pair = self.pair(writer, at);
        let model = &self.model[pair][place];
        let mut lies = vec![0; model.len()];
        let segment = self.segments[at as usize].as_ref();
        let seen = segment.and_then(|segment| {
            let bytes = segment.bytes(JobRank(at), offset, lies.len())?;
            bytes.copy_to(0, &mut lies).ok()
        });
        if seen.is_none() || lies != *model {
            self.violation(format!(
                "a put of rank {writer} to rank {at} is complete, but its bytes are not there"
            ));
        }
    }

    fn violation(&mut self, text: String) {
        // The first ones say the most.
        if self.violations.len() < 20 {
            self.violations.push(text);
        }
    }

    fn request(&mut self, delivery: &Delivery<'_>) -> Option<Entry> {
        let (from, at) = (delivery.source().0, delivery.rank().0);
        self.handled += 1;
        let pair = self.pair(from, at);
        let number = match self.is_ordered {
            true => self.done[pair],
            false => delivery.arg(0) as usize,
        };
        let expected = self.sent[pair].get(number).copied();
        let is_done = self.is_done[pair].get_mut(number);
        let Some((expected, is_done)) = expected.zip(is_done.filter(|done| !**done)) else {
            self.violation(format!(
                "rank {at} handled a request more of rank {from} than was sent"
            ));
            return None;
        };
        *is_done = true;
        self.done[pair] += 1;
        let seen = (
            delivery.category(),
            delivery.payload().len(),
            delivery.args().to_vec(),
        );
        if seen != (expected.category, expected.len, expected.args())
            || delivery.offset().0 != expected.offset
        {
            let seen = (seen, delivery.offset());
            self.violation(format!(
                "rank {at} from rank {from}: {seen:?} instead of {expected:?}"
            ));
            return None;
        }
        if delivery.payload().to_vec() != bytes(from, at, expected.number, expected.len) {
            self.violation(format!(
                "rank {at} from rank {from}: the payload of {expected:?} differs"
            ));
        }
        Some(expected)
    }

    fn reply(&mut self, delivery: &Delivery<'_>) {
        let (from, at) = (delivery.source().0, delivery.rank().0);
        self.handled += 1;
        let pair = self.pair(at, from);
        let place = match self.is_ordered {
            true => Some(0),
            false => {
                let mut all = self.awaited[pair].iter();
                all.position(|request| request.number == delivery.arg(0))
            }
        };
        let Some(request) = place.and_then(|place| self.awaited[pair].remove(place)) else {
            self.violation(format!(
                "rank {at} got a reply more of rank {from} than it asked for"
            ));
            return;
        };
        let number = request.number;
        let as_asked = request.reply.is_some_and(|answer| {
            delivery.category() == answer.category
                && delivery.payload().len() == answer.len
                && delivery.offset().0 == answer.offset
                && delivery.args() == [number, !number]
        });
        let expected = bytes(from, at, number | OF_REPLY, delivery.payload().len());
        if !as_asked || delivery.payload().to_vec() != expected {
            let args = delivery.args();
            self.violation(format!(
                "rank {at}: reply {args:?} of rank {from} is not that of {request:?}"
            ));
        }
    }

    /// A rank has drained: all messages to it have been handled, and its own replies have come.
    pub(super) fn drained(&mut self, at: u32) {
        for from in 0..self.ranks {
            let pair = self.pair(from, at);
            if self.sent[pair].len() != self.done[pair] {
                self.violation(format!(
                    "rank {at} has drained before all of rank {from} was handled"
                ));
            }
        }
        if self.awaits(at) > 0 {
            self.violation(format!(
                "rank {at} has drained before all its replies had come"
            ));
        }
    }

    /// Messages that are missing at the end.
    pub(super) fn incomplete(&self, ranks: u32) -> Vec<String> {
        let mut missing = Vec::new();
        for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
            let pair = self.pair(from, to);
            let (sent, done) = (self.sent[pair].len(), self.done[pair]);
            let awaited = self.awaited[pair].len();
            if sent != done || awaited > 0 {
                missing.push(format!(
                    "rank {from} to rank {to}: {done} of {sent} requests handled, {awaited} replies missing"
                ));
            }
        }
        missing
    }
}

/// Registers the handlers of the workload.
pub(super) fn register(
    rank: JobRank,
    handlers: &mut HandlerTable,
    observed: &Arc<Mutex<Observed>>,
) -> Result<(), AmError> {
    let seen = Arc::clone(observed);
    let request = move |delivery: &mut Delivery<'_>| {
        debug_assert_eq!(delivery.rank(), rank);
        let entry = seen.lock().request(delivery);
        let Some((entry, answer)) = entry.and_then(|entry| Some((entry, entry.reply?))) else {
            return;
        };
        let number = entry.number;
        let (from, at) = (delivery.source().0, delivery.rank().0);
        let payload = bytes(at, from, number | OF_REPLY, answer.len);
        let payload = SharedBytes::from_slice(&payload);
        let sent = delivery.reply(&Message {
            handler: REPLY,
            args: &[number, !number],
            payload: match answer.category {
                Category::Short => Payload::None,
                Category::Medium => Payload::Medium(payload),
                Category::Long => Payload::Long(payload, SegmentOffset(answer.offset)),
            },
        });
        if let Err(error) = sent {
            seen.lock()
                .violation(format!("a reply was refused: {error}"));
        }
    };
    handlers.register_at(REQUEST, "request", Box::new(request))?;
    let seen = Arc::clone(observed);
    let reply = move |delivery: &mut Delivery<'_>| seen.lock().reply(delivery);
    handlers.register_at(REPLY, "reply", Box::new(reply))
}

/// Compares the bytes that writers have put into a rank's segment with those that lie there.
pub(super) fn check_memory(observed: &mut Observed, layout: Layout, at: u32, segment: &[u8]) {
    for writer in 0..observed.ranks {
        let start = layout.area(writer).0 as usize;
        let pair = observed.pair(writer, at);
        let model = &observed.model[pair];
        let lies = &segment[start..start + model.len()];
        if let Some(i) = (0..model.len()).find(|i| model[*i] != lies[*i]) {
            let (should, is) = (model[i], lies[i]);
            observed.violation(format!(
                "segment of rank {at}: byte {i} that rank {writer} has put is {is}, not {should}"
            ));
        }
    }
}
