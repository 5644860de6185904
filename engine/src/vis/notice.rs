//! The notice that a peer gets when all of a put lies there: a handler of its client's runs, as
//! that of a medium reply without arguments, at the endpoint whose memory the put went to
//! (GASNet-EX, `gex_VIS_SetPeerCompletionHandler`), or the primordial one if that cannot have
//! messages.

use super::super::EndpointState;
use super::super::background::{Steps, kind};
use super::super::bound::Wrong;
use super::super::core::{Engine, Injection};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::thread::ThreadCtx;
use argonet_am::{AmError, Delivery, Endpoints, Message, MessageClass, Payload};
use argonet_base::gasnet::number32;
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Completion, Conduit, OpToken};
use argonet_segment::SharedBytes;
use core::ptr::NonNull;
use core::sync::atomic::AtomicBool;
use parking_lot::Mutex;
use std::sync::Arc;

/// A handler to run at a peer, and its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Its index there.
    pub handler: HandlerIndex,
    /// The endpoint of this process that puts, and the peer's whose handler runs.
    pub ends: Endpoints,
    /// Readable for `len` bytes until the operation is complete, or null if there are none.
    pub payload: *const u8,
    /// Bytes; at most [`MOST`](Self::MOST).
    pub len: usize,
}

impl Notice {
    /// The longest payload (GASNet-EX, `GEX_VIS_MAX_PEERCOMPLETION`).
    ///
    /// It fits a medium of every conduit.
    pub const MOST: usize = number32("GEX_VIS_MAX_PEERCOMPLETION") as usize;

    fn bytes(&self) -> SharedBytes<'_> {
        match NonNull::new(self.payload.cast_mut()) {
            // SAFETY: the maker of the notice promised that the payload is readable.
            Some(payload) if self.len > 0 => unsafe { SharedBytes::from_raw(payload, self.len) },
            _ => SharedBytes::from_slice(&[]),
        }
    }

    pub(super) fn copied(&self) -> Kept {
        Kept {
            word: self.ends.word(self.handler),
            payload: self.bytes().to_vec(),
        }
    }
}

/// A notice with a copy of its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Kept {
    /// Endpoints and handler.
    word: u32,
    payload: Vec<u8>,
}

/// A notice whose operation is over but for it.
struct Due {
    to: JobRank,
    kept: Arc<Kept>,
    token: OpToken,
}

/// Notices that are to be sent.
///
/// Answers to puts come in handlers, which may not send.
#[derive(Default)]
pub(in super::super) struct Notices {
    queue: Mutex<Vec<Due>>,
    /// Whether one could not be sent for want of room.
    pub(in super::super) stuck: AtomicBool,
}

fn message<'a>(args: &'a [u32; 1], payload: SharedBytes<'a>) -> Message<'a> {
    Message {
        handler: internal::VIS_NOTICE,
        args,
        payload: Payload::Medium(payload),
    }
}

impl<C: Conduit> Engine<C> {
    /// Sends a peer the notice of an operation that is complete.
    pub(super) fn vis_notify(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        notice: Option<Notice>,
    ) -> Result<(), OpError> {
        if let Some(notice) = notice {
            let args = [notice.ends.word(notice.handler)];
            let message = message(&args, notice.bytes());
            self.request(ctx, to, &message, Injection::Blocking)?;
        }
        Ok(())
    }

    /// Has polls send a notice, and complete the operation then.
    pub(in super::super) fn vis_owe_notice(&self, to: JobRank, kept: Arc<Kept>, token: OpToken) {
        let notices = &self.background.notices;
        let mut queue = notices.queue.lock();
        queue.push(Due { to, kept, token });
        self.background.begin(kind::VIS);
    }

    /// Takes out the notices to a rank that is lost: the operations that wait for them.
    pub(in super::super) fn take_notices_to(&self, rank: JobRank) -> Vec<OpToken> {
        let mut queue = self.background.notices.queue.lock();
        let taken: Vec<Due> = queue.extract_if(.., |due| due.to == rank).collect();
        if queue.is_empty() {
            self.background.end(kind::VIS);
        }
        taken.into_iter().map(|due| due.token).collect()
    }

    /// Sends notices as far as there is room.
    pub(in super::super) fn advance_notices(&self) -> usize {
        let notices = &self.background.notices;
        let mut steps = Steps::default();
        let mut queue = notices.queue.lock();
        queue.retain(|due| {
            let args = [due.kept.word];
            let message = message(&args, SharedBytes::from_slice(&due.kept.payload));
            let sent = self.send_now(due.to, &message, &mut steps);
            if sent {
                self.complete(due.token, Completion::Remote, 1);
            } else if self.unless_lost(|lost| lost == due.to).is_err() {
                self.end_by_loss(due.to, due.token, Completion::Remote, 1);
                return false;
            }
            !sent
        });
        let taken = steps.publish(&self.background, &notices.stuck);
        if queue.is_empty() {
            self.background.end(kind::VIS);
        }
        taken
    }

    /// A peer's put is complete: the client's handler runs.
    pub(in super::super) fn serve_vis_notice(
        &self,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Wrong> {
        let &[word] = delivery.args() else {
            return Err("it has other arguments than such a message has");
        };
        let (ends, index) =
            Endpoints::of_any_word(word).ok_or("it does not name a handler of a client")?;
        delivery.unwrap_medium(MessageClass::Reply, ends, index, |inner| {
            // An endpoint that cannot have messages has no handlers, but may have memory that is
            // put to.
            let own =
                !ends.are_primordial() && self.own_endpoint(ends.to.into()) != EndpointState::Mute;
            if own {
                self.dispatch_endpoint_am(inner, ends, index);
            } else if !self.handlers.dispatch(inner) {
                self.fatal_am(AmError::Unregistered {
                    index,
                    from: inner.source(),
                    to: self.rank,
                });
            }
        });
        Ok(())
    }
}
