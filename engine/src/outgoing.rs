//! What handlers, and functions that run after them, leave to be sent in parts.
//!
//! A handler may not send and must not wait, so it leaves an answer that is too long for its reply
//! here, and polls send it in parts, as requests, as far as there is room. Each part says at which
//! offset its bytes are: in two further arguments; or, where clients' arguments may take them all,
//! in the payload.
//!
//! ```text
//! arguments, offset low, offset high        | bytes
//! arguments                                 | head | offset, 8 bytes | bytes
//! ```

use super::background::{Background, Steps, kind};
use super::core::Engine;
use argonet_am::{Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use core::sync::atomic::AtomicBool;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Parts that one poll sends at most.
const PARTS_A_POLL: usize = 16;

/// Bytes between the head and the bytes of a part that has one.
pub(super) const OFFSET: usize = 8;

/// An answer that goes in parts.
pub struct InParts {
    to: JobRank,
    handler: HandlerIndex,
    args: Vec<u32>,
    head: Option<Vec<u8>>,
    payload: Vec<u8>,
    sent: usize,
}

impl InParts {
    /// `handler` runs at `to` for each part, with `args` and the part's offset in two words more.
    ///
    /// Together they are at most [`MAX_ARGS`](argonet_am::MAX_ARGS), or sending it ends the job. An
    /// empty payload sends nothing.
    #[must_use]
    pub fn new(to: JobRank, handler: HandlerIndex, args: &[u32], payload: Vec<u8>) -> Self {
        Self {
            to,
            handler,
            args: args.to_vec(),
            head: None,
            payload,
            sent: 0,
        }
    }

    /// The offset stands behind `head` in the payload instead.
    #[must_use]
    pub(super) fn behind(self, head: Vec<u8>) -> Self {
        Self {
            head: Some(head),
            ..self
        }
    }
}

/// Answers that are not all sent, one after another for each rank: a rank keeps account of those
/// whose parts are not all there.
#[derive(Default)]
struct Answers {
    to: BTreeMap<JobRank, VecDeque<InParts>>,
    /// Where the next poll begins, so that no rank waits for others.
    next: JobRank,
}

impl Answers {
    /// The ranks to send to, in the order in which this poll tries them.
    fn in_turn(&self) -> Vec<JobRank> {
        let all = self.to.range(self.next..).chain(self.to.range(..self.next));
        all.map(|(&to, _)| to).collect()
    }

    /// Forgets what was to be sent to a rank.
    fn forget(&mut self, rank: JobRank, background: &Background) {
        self.to.remove(&rank);
        if self.to.is_empty() {
            background.end(kind::OUTGOING);
        }
    }
}

/// Answers that are not all sent, for polls.
#[derive(Default)]
pub(super) struct Queue {
    answers: Mutex<Answers>,
    /// Whether a part could not be sent for want of room.
    pub(super) stuck: AtomicBool,
}

/// Takes answers over from handlers.
#[derive(Clone)]
pub struct Outgoing(Arc<Background>);

impl Outgoing {
    pub(super) fn new(background: &Arc<Background>) -> Self {
        Self(Arc::clone(background))
    }

    /// Polls of this rank send it from now on; any thread may call it, also in a handler.
    pub fn add(&self, answer: InParts) {
        self.0.add_outgoing(answer);
    }
}

impl Background {
    pub(super) fn add_outgoing(&self, answer: InParts) {
        let mut answers = self.outgoing.answers.lock();
        answers.to.entry(answer.to).or_default().push_back(answer);
        self.begin(kind::OUTGOING);
    }
}

impl<C: Conduit> Engine<C> {
    /// Forgets what was to be sent to a rank that is lost.
    pub(super) fn forget_outgoing_to(&self, rank: JobRank) {
        let mut answers = self.background.outgoing.answers.lock();
        answers.forget(rank, &self.background);
    }

    /// Sends parts as far as there is room.
    pub(super) fn advance_outgoing(&self) -> usize {
        let outgoing = &self.background.outgoing;
        let mut steps = Steps::default();
        let mut answers = outgoing.answers.lock();
        let mut parts = PARTS_A_POLL;
        for to in answers.in_turn() {
            if parts == 0 {
                break;
            }
            self.send_answers(&mut answers, to, &mut parts, &mut steps);
            answers.next = JobRank(to.0.wrapping_add(1));
        }
        let taken = steps.publish(&self.background, &outgoing.stuck);
        if answers.to.is_empty() {
            self.background.end(kind::OUTGOING);
        }
        taken
    }

    /// Sends answers to one rank, one after another, as far as there is room and `parts` are left.
    fn send_answers(
        &self,
        answers: &mut Answers,
        to: JobRank,
        parts: &mut usize,
        steps: &mut Steps,
    ) {
        if self.unless_lost(|lost| lost == to).is_err() {
            answers.to.remove(&to);
            return;
        }
        let Some(queue) = answers.to.get_mut(&to) else {
            return;
        };
        while let Some(answer) = queue.front_mut() {
            if !self.send_parts(answer, parts, steps) {
                return;
            }
            queue.pop_front();
        }
        answers.to.remove(&to);
    }

    /// Sends parts of an answer; whether all are sent.
    fn send_parts(&self, answer: &mut InParts, parts: &mut usize, steps: &mut Steps) -> bool {
        let before = answer.head.as_ref().map_or(0, |head| head.len() + OFFSET);
        let most = self.conduit.limits().medium_request - before;
        let mut message = Vec::new();
        while *parts > 0 {
            let rest = &answer.payload[answer.sent..];
            if rest.is_empty() {
                break;
            }
            *parts -= 1;
            let part = &rest[..rest.len().min(most)];
            let offset = answer.sent as u64;
            let arguments = answer.args.len();
            let payload = match &answer.head {
                Some(head) => {
                    message.clear();
                    message.extend_from_slice(head);
                    message.extend_from_slice(&offset.to_le_bytes());
                    message.extend_from_slice(part);
                    &message
                }
                None => {
                    answer.args.extend([offset as u32, (offset >> 32) as u32]);
                    part
                }
            };
            let request = Message {
                handler: answer.handler,
                args: &answer.args,
                payload: Payload::Medium(SharedBytes::from_slice(payload)),
            };
            let sent = self.send_now(answer.to, &request, steps);
            let part = part.len();
            answer.args.truncate(arguments);
            if !sent {
                break;
            }
            answer.sent += part;
        }
        answer.sent == answer.payload.len()
    }

    /// Whether nothing is left to be sent, and the conduit is quiescent: a network's when all that
    /// was sent has been handled, that of shared memory when this rank has taken all that has come.
    ///
    /// What is outgoing is looked at twice: before the conduit, so that the conduit knows of parts
    /// that were sent meanwhile; and after it, because taking the last message may leave some.
    pub(super) fn nothing_is_left(&self) -> bool {
        let nothing_outgoing = || self.background.nothing_outgoing();
        nothing_outgoing() && self.conduit.is_quiescent() && nothing_outgoing()
    }
}
