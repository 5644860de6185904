//! What handlers leave to be sent in parts.
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
use std::collections::HashSet;
use std::sync::Arc;

/// Parts of one answer that one poll sends at most.
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
    /// `handler` runs at `to` for each part, with `args` and the part's offset in two more, which
    /// are at most [`MAX_ARGS`](argonet_am::MAX_ARGS) together.
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

/// Answers that are not all sent.
#[derive(Default)]
pub(super) struct Queue {
    answers: Mutex<Vec<InParts>>,
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
        answers.push(answer);
        self.begin(kind::OUTGOING);
    }
}

impl<C: Conduit> Engine<C> {
    /// Forgets what was to be sent to a rank that is lost.
    pub(super) fn forget_outgoing_to(&self, rank: JobRank) {
        let mut answers = self.background.outgoing.answers.lock();
        answers.retain(|answer| answer.to != rank);
        if answers.is_empty() {
            self.background.end(kind::OUTGOING);
        }
    }

    /// Sends parts as far as there is room.
    pub(super) fn advance_outgoing(&self) -> usize {
        let outgoing = &self.background.outgoing;
        let mut steps = Steps::default();
        let mut answers = outgoing.answers.lock();
        // One answer to a rank at a time: it keeps account of those whose parts are not all there.
        let mut begun = HashSet::new();
        answers.retain_mut(|answer| {
            if self.unless_lost(|lost| lost == answer.to).is_err() {
                return false;
            }
            let sent = !begun.contains(&answer.to) && self.send_parts(answer, &mut steps);
            if !sent {
                begun.insert(answer.to);
            }
            !sent
        });
        let taken = steps.publish(&self.background, &outgoing.stuck);
        if answers.is_empty() {
            self.background.end(kind::OUTGOING);
        }
        taken
    }

    /// Sends parts of an answer; whether all are sent.
    fn send_parts(&self, answer: &mut InParts, steps: &mut Steps) -> bool {
        let before = answer.head.as_ref().map_or(0, |head| head.len() + OFFSET);
        let most = self.conduit.limits().medium_request - before;
        let mut message = Vec::new();
        for _ in 0..PARTS_A_POLL {
            let rest = &answer.payload[answer.sent..];
            if rest.is_empty() {
                break;
            }
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

    /// Whether all that this rank's handlers have left is sent, and all that it sent is handled.
    ///
    /// What is outgoing is looked at twice: before the conduit, so that the conduit knows of parts
    /// that were sent meanwhile; and after it, because taking the last message may leave some.
    pub(super) fn has_sent_all(&self) -> bool {
        let nothing_outgoing = || self.background.nothing_outgoing();
        nothing_outgoing() && self.conduit.is_quiescent() && nothing_outgoing()
    }
}
