//! Reports of the engine to a trace.
//!
//! None of this runs unless the process traces or counts: a thread that is traced has another
//! [`Context`](super::Context) than a free one, so every call that asks for permission comes here
//! by the branch that it has anyway.
#![allow(unsafe_code)]

use super::core::{Engine, Injection};
use super::events::OpError;
use super::thread::{LookedAway, ThreadCtx};
use super::transfer::{LocalCompletion, Side, Transfer};
use argonet_am::{
    AmError, CLIENT_BASE, Category, Delivery, HandlerTable, Message, MessageClass, Payload,
};
use argonet_am::{Endpoints, Registered, ReplyPort};
use argonet_base::{HandlerIndex, JobRank};
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, Prepared, SendError};
use argonet_event::Event as Handle;
use argonet_settings::Letter;
use argonet_trace::{Event, Flow, Kind, Peer, Way, What, now_ns};
use core::sync::atomic::{AtomicU64, Ordering};

/// Something that a traced thread does; reported when this is dropped.
pub struct Span<'c> {
    kind: Kind,
    begin_ns: u64,
    what: What<'c>,
    flow: Option<Flow>,
    /// Whether it has come to something.
    counts: bool,
    _looked_away: LookedAway<'c>,
}

impl<'c> Span<'c> {
    #[cold]
    #[inline(never)]
    fn open(ctx: &'c ThreadCtx, kind: Kind) -> Option<Self> {
        Some(Self {
            kind,
            what: What::Time,
            flow: None,
            counts: true,
            _looked_away: ctx.look_away()?,
            begin_ns: now_ns(),
        })
    }

    /// Says more about it.
    pub fn describe(&mut self, what: What<'c>) {
        self.what = what;
    }

    /// It was not done.
    pub fn forget(&mut self) {
        self.counts = false;
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if self.counts {
            argonet_trace::event(&Event {
                kind: self.kind,
                begin_ns: self.begin_ns,
                end_ns: now_ns(),
                what: self.what,
                flow: self.flow,
            });
        }
    }
}

/// Begins an event of the calling thread, if it is traced; it ends when the span is dropped.
#[inline(always)]
pub fn span(ctx: &ThreadCtx, kind: Kind) -> Option<Span<'_>> {
    if ctx.is_free() {
        return None;
    }
    Span::open(ctx, kind)
}

/// As [`span`], of a call that has permission but has not asked whether the thread is traced.
fn permitted<'c>(
    ctx: &'c ThreadCtx,
    operation: &'static str,
    rank: JobRank,
    kind: Kind,
) -> Result<Option<Span<'c>>, AmError> {
    ctx.permit(operation, rank)?;
    Ok(span(ctx, kind))
}

/// The kind of a request, of a reply, or of their handlers.
pub(super) const fn message_kind(class: MessageClass, category: Category, runs: bool) -> Kind {
    match (class, category, runs) {
        (MessageClass::Request, Category::Short, false) => Kind::RequestShort,
        (MessageClass::Request, Category::Medium, false) => Kind::RequestMedium,
        (MessageClass::Request, Category::Long, false) => Kind::RequestLong,
        (MessageClass::Reply, Category::Short, false) => Kind::ReplyShort,
        (MessageClass::Reply, Category::Medium, false) => Kind::ReplyMedium,
        (MessageClass::Reply, Category::Long, false) => Kind::ReplyLong,
        (MessageClass::Request, Category::Short, true) => Kind::HandlerRequestShort,
        (MessageClass::Request, Category::Medium, true) => Kind::HandlerRequestMedium,
        (MessageClass::Request, Category::Long, true) => Kind::HandlerRequestLong,
        (MessageClass::Reply, Category::Short, true) => Kind::HandlerReplyShort,
        (MessageClass::Reply, Category::Medium, true) => Kind::HandlerReplyMedium,
        (MessageClass::Reply, Category::Long, true) => Kind::HandlerReplyLong,
    }
}

const fn way(class: MessageClass) -> Way {
    match class {
        MessageClass::Request => Way::Request,
        MessageClass::Reply => Way::Reply,
    }
}

/// The description of a message.
fn about<'m>(peer: JobRank, message: &Message<'m>) -> What<'m> {
    let (bytes, payload) = match &message.payload {
        Payload::None => (None, 0),
        Payload::Medium(bytes) | Payload::Long(bytes, _) => {
            (Some(bytes.len() as u64), bytes.as_ptr().addr() as u64)
        }
    };
    What::Message {
        peer: peer.0,
        handler: message.handler.0,
        bytes,
        payload,
        args: message.args,
    }
}

/// The way for replies of a handler that is traced.
struct Replies<'a>(&'a dyn ReplyPort);

impl ReplyPort for Replies<'_> {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        if message.handler < CLIENT_BASE {
            return self.0.reply(to, message);
        }
        let begin_ns = now_ns();
        let send = || self.0.reply(to, message);
        let flow = if self.0.endpoints().are_primordial() {
            argonet_trace::sent_in_order(to.0, Way::Reply, send)?.1
        } else {
            // It goes inside another message, which its receiver does not count.
            send()?;
            None
        };
        argonet_trace::event(&Event {
            kind: message_kind(MessageClass::Reply, message.payload.category(), false),
            begin_ns,
            end_ns: now_ns(),
            what: about(to, message),
            flow,
        });
        Ok(())
    }

    fn rank(&self) -> JobRank {
        self.0.rank()
    }

    fn registered(&self) -> &Registered {
        self.0.registered()
    }

    fn endpoints(&self) -> Endpoints {
        self.0.endpoints()
    }
}

/// Has handlers of clients traced, if this process traces or counts.
pub fn trace_handlers(handlers: &mut HandlerTable) {
    if !argonet_trace::is_on() {
        return;
    }
    handlers.wrap_clients(|run| Box::new(move |delivery| deliver(delivery, &run)));
}

fn deliver(delivery: &mut Delivery<'_>, run: &dyn Fn(&mut Delivery<'_>)) {
    let (peer, class, category) = (delivery.source(), delivery.class(), delivery.category());
    // A message that came inside another one, or in parts, was not counted by its sender.
    let flow = match delivery.came_inside() {
        true => None,
        false => argonet_trace::flows(peer.0, way(class)),
    };
    let begin_ns = now_ns();
    let (bytes, payload) = (delivery.payload().len() as u64, delivery.payload().as_ptr());
    let event = Event {
        kind: message_kind(class, category, true),
        begin_ns,
        end_ns: begin_ns,
        what: What::Message {
            peer: peer.0,
            handler: delivery.handler().0,
            bytes: (category != Category::Short).then_some(bytes),
            payload: payload.addr() as u64,
            args: delivery.args(),
        },
        flow,
    };
    argonet_trace::received(&event, || {
        delivery.through(Replies, |delivery| run(delivery))
    });
}

/// The description of a long that goes inside another message, or in parts.
pub(super) fn request_sent(
    peer: JobRank,
    handler: HandlerIndex,
    args: &[u32],
    bytes: usize,
    payload: *const u8,
) -> What<'_> {
    What::Message {
        peer: peer.0,
        handler: handler.0,
        bytes: Some(bytes as u64),
        payload: payload.addr() as u64,
        args,
    }
}

/// Reports a long reply of that kind.
pub(super) fn reply_sent(
    to: JobRank,
    handler: HandlerIndex,
    args: &[u32],
    bytes: usize,
    payload: *const u8,
) {
    if argonet_trace::is_on() {
        let now = now_ns();
        argonet_trace::event(&Event {
            kind: Kind::ReplyLong,
            begin_ns: now,
            end_ns: now,
            what: request_sent(to, handler, args, bytes, payload),
            flow: None,
        });
    }
}

/// From the first half of a barrier to the second.
#[derive(Default)]
pub(super) struct Between(AtomicU64);

impl Between {
    /// The first half is done.
    pub(super) fn note(&self) {
        if argonet_trace::is_on() {
            self.0.store(now_ns(), Ordering::Relaxed);
        }
    }

    /// The second begins.
    pub(super) fn report(&self, ctx: &ThreadCtx) {
        if !ctx.is_free() {
            argonet_trace::event(&Event {
                kind: Kind::BarrierNotifyWait,
                begin_ns: self.0.load(Ordering::Relaxed),
                end_ns: now_ns(),
                what: What::Time,
                flow: None,
            });
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// The description of a transfer.
    fn about(&self, transfer: Transfer) -> What<'static> {
        let Transfer { target, side, len } = transfer;
        let here = match side {
            Side::Put(src) => src.addr(),
            Side::Get(dst) => dst.addr(),
        };
        self.about_bytes(target.rank(), len, here, target.place())
    }

    /// The description of bytes that are put or got.
    #[must_use]
    pub fn about_bytes(
        &self,
        rank: JobRank,
        bytes: usize,
        here: usize,
        there: u64,
    ) -> What<'static> {
        What::Transfer {
            peer: Peer {
                rank: rank.0,
                is_self: rank == self.rank,
            },
            bytes: bytes as u64,
            here: here as u64,
            there,
        }
    }

    /// # Safety
    /// As [`transfer`](Self::transfer).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn transfer_traced(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
    ) -> Result<(), OpError> {
        let kind = if transfer.side.is_put() {
            Kind::Put
        } else {
            Kind::Get
        };
        let _reading = ctx.reading(!transfer.side.is_put());
        let mut span = permitted(ctx, transfer.side.name(), self.rank, kind)?;
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.transfer(ctx, transfer) };
        self.describe(&mut span, transfer, outcome.is_ok());
        outcome
    }

    /// # Safety
    /// As [`start`](Self::start).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn start_traced(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<Handle, OpError> {
        let kind = if transfer.side.is_put() {
            Kind::PutNb
        } else {
            Kind::GetNb
        };
        let mut span = permitted(ctx, transfer.side.name(), self.rank, kind)?;
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.start(ctx, transfer, injection) };
        self.describe(&mut span, transfer, outcome.is_ok());
        outcome
    }

    /// # Safety
    /// As [`start_implicit`](Self::start_implicit).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn start_implicit_traced(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<LocalCompletion, OpError> {
        let kind = if transfer.side.is_put() {
            Kind::PutNbi
        } else {
            Kind::GetNbi
        };
        let mut span = permitted(ctx, transfer.side.name(), self.rank, kind)?;
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.start_implicit(ctx, transfer, injection) };
        self.describe(&mut span, transfer, outcome.is_ok());
        outcome
    }

    fn describe(&self, span: &mut Option<Span<'_>>, transfer: Transfer, done: bool) {
        if let Some(span) = span {
            span.describe(self.about(transfer));
            span.counts = done;
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn request_traced(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        message: &Message<'_>,
        injection: Injection,
    ) -> Result<(), AmError> {
        let kind = message_kind(MessageClass::Request, message.payload.category(), false);
        ctx.permit("a request", self.rank)?;
        let Some(looked_away) = ctx.look_away() else {
            return self.request(ctx, to, message, injection);
        };
        if message.handler < CLIENT_BASE {
            return self.request(ctx, to, message, injection);
        }
        self.check(to, message)?;
        let begin_ns = now_ns();
        let mut wait = self.waiting_unannounced(Waiting::on(WaitFor::Room, to));
        let mut noted = false;
        let flow = loop {
            let send = || self.inject(to, message);
            match argonet_trace::sent_in_order(to.0, Way::Request, send) {
                Ok(((), flow)) => break flow,
                Err(SendError::Message(error)) => {
                    drop(wait);
                    return Err(self.refusal(ctx, error, injection));
                }
                Err(_) if injection == Injection::Immediate => {
                    return Err(AmError::Full {
                        from: self.rank,
                        to,
                    });
                }
                Err(_) => {
                    if !core::mem::replace(&mut noted, true) {
                        argonet_trace::note_with(Letter::Conduit, || {
                            format!("{}: waits for room at node {to}", kind.name())
                        });
                    }
                    wait.pause(ctx);
                }
            }
        };
        drop(looked_away);
        argonet_trace::event(&Event {
            kind,
            begin_ns,
            end_ns: now_ns(),
            what: about(to, message),
            flow,
        });
        Ok(())
    }

    /// Sends a prepared payload, and reports it as the request or reply that it is.
    #[cold]
    #[inline(never)]
    pub(super) fn commit_traced(
        &self,
        prepared: Prepared,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) {
        if handler < CLIENT_BASE {
            return self.conduit.commit(prepared, handler, args, len);
        }
        let (to, class, begin_ns) = (prepared.to(), prepared.class(), now_ns());
        let category = match prepared.offset() {
            Some(_) => Category::Long,
            None => Category::Medium,
        };
        let send = || {
            self.conduit.commit(prepared, handler, args, len);
            Ok::<(), AmError>(())
        };
        let flow = argonet_trace::sent_in_order(to.0, way(class), send);
        argonet_trace::event(&Event {
            kind: message_kind(class, category, false),
            begin_ns,
            end_ns: now_ns(),
            what: What::Message {
                peer: to.0,
                handler: handler.0,
                bytes: Some(len as u64),
                payload: 0,
                args,
            },
            flow: flow.ok().and_then(|((), flow)| flow),
        });
    }

    #[cold]
    #[inline(never)]
    pub(super) fn poll_traced(&self, ctx: &ThreadCtx) -> Result<usize, AmError> {
        let mut span = permitted(ctx, "a poll", self.rank, Kind::Poll)?;
        let taken = self.progress_and_run(ctx, true);
        if let Some(span) = &mut span {
            span.describe(What::Value(taken as u64));
        }
        Ok(taken)
    }
}
