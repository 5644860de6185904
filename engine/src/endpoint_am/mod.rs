//! Active messages from and to further endpoints of a process.
//!
//! Each such endpoint has a handler table of its own. Their messages travel as the library's own
//! ([`internal::ENDPOINT_AM`]) with a word in front that names both endpoints and the handler
//! ([`Endpoints`]), in the category that they are of, so payloads may be as long as those of plain
//! messages, and are copied as often.

mod asked;

pub use asked::EndpointState;

use crate::bound::Wrong;
use crate::core::{Engine, Injection};
use crate::limits::internal;
use crate::thread::ThreadCtx;
use crate::traced::{message_kind, request_sent, span, trace_handlers};
use argonet_am::{AmError, CLIENT_BASE, Carried, Delivery, Endpoints, HandlerTable, MessageClass};
use argonet_am::{Category, ENDPOINTS, MAX_ARGS, Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Conduit, PrepareRequest, Prepared, SendError};
use asked::Asked;
use std::sync::OnceLock;

/// Further endpoints.
pub(crate) struct Tables {
    /// Handler tables of this process's, by index.
    ///
    /// Each is complete before it gets here, and stays.
    open: [OnceLock<Box<HandlerTable>>; ENDPOINTS as usize],
    asked: Asked,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            open: [const { OnceLock::new() }; ENDPOINTS as usize],
            asked: Asked::default(),
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Lets an endpoint of this process send and receive active messages from now on.
    ///
    /// Indices that the table does not have end the job when a message names them.
    ///
    /// # Errors
    /// [`AmError::NotOpened`] for index 0, whose table the engine was made with, one beyond
    /// [`ENDPOINTS`], and one that is open.
    pub fn open_endpoint(&self, index: u32, mut handlers: HandlerTable) -> Result<(), AmError> {
        let refused = |why| AmError::NotOpened {
            endpoint: index,
            rank: self.rank,
            why,
        };
        if index == 0 {
            return Err(refused("the primordial endpoint is open from the start"));
        }
        let slot = self.tables.open.get(index as usize);
        let slot = slot.ok_or_else(|| refused("a process has endpoints 0 to 31"))?;
        trace_handlers(&mut handlers);
        let set = slot.set(Box::new(handlers));
        set.map_err(|_| refused("it is open already"))
    }

    /// The handlers of an endpoint of this process, if messages may go there.
    fn table(&self, index: u8) -> Option<&HandlerTable> {
        match index {
            0 => Some(&self.handlers),
            index => self
                .tables
                .open
                .get(usize::from(index))?
                .get()
                .map(|table| &**table),
        }
    }

    /// Checks the ends of a message for a client's handler, as far as this process knows them.
    pub(crate) fn check_ends(
        &self,
        to: JobRank,
        ends: Endpoints,
        handler: HandlerIndex,
    ) -> Result<(), AmError> {
        let (rank, Endpoints { from, to: there }) = (self.rank, ends);
        let missing = |rank, endpoint: u8| AmError::NoEndpoint {
            endpoint: endpoint.into(),
            rank,
            operation: format!(
                "a message from endpoint {from} of rank {} to endpoint {there} of rank {to}, handler {handler}",
                self.rank
            ),
        };
        if self.table(from).is_none() {
            return Err(missing(rank, from));
        }
        let known_there = to != rank || self.table(there).is_some();
        if u32::from(there) >= ENDPOINTS || !known_there {
            return Err(missing(to, there));
        }
        if handler < CLIENT_BASE {
            return Err(AmError::NotForClients {
                index: handler,
                from: rank,
                to,
            });
        }
        Ok(())
    }

    /// [`request`](Self::request) from one endpoint of this process to one of `to`.
    ///
    /// A long's payload goes into the segment that `to` has attached; other memory is reached by
    /// [`request_long`](Self::request_long).
    ///
    /// # Errors
    /// As [`request`](Self::request), and [`AmError::NoEndpoint`]. Only another process knows its
    /// endpoints and handlers: a message for a missing one ends the job there.
    #[inline]
    pub fn request_endpoint(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        ends: Endpoints,
        message: &Message<'_>,
        injection: Injection,
    ) -> Result<(), AmError> {
        if ends.are_primordial() {
            return self.request(ctx, to, message, injection);
        }
        self.request_carried(ctx, to, ends, message, injection)
    }

    /// A request of which one end is a further endpoint.
    #[inline(never)]
    fn request_carried(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        ends: Endpoints,
        message: &Message<'_>,
        injection: Injection,
    ) -> Result<(), AmError> {
        ctx.permit("a request", self.rank)?;
        let Message {
            handler,
            args,
            payload,
        } = *message;
        self.check(
            to,
            &Message {
                handler: internal::ENDPOINT_AM,
                ..*message
            },
        )?;
        self.check_ends(to, ends, handler)?;
        let (len, source) = match &payload {
            Payload::None => (0, core::ptr::null()),
            Payload::Medium(bytes) | Payload::Long(bytes, _) => (bytes.len(), bytes.as_ptr()),
        };
        let mut span = span(
            ctx,
            message_kind(MessageClass::Request, payload.category(), false),
        );
        let carried = Carried::new(ends, handler, args);
        let message = Message {
            handler: internal::ENDPOINT_AM,
            args: carried.args(),
            payload,
        };
        let sent = match self.inject(to, &message) {
            Ok(()) => Ok(()),
            Err(SendError::Message(error)) => Err(self.refusal(ctx, error, injection)),
            Err(_) => self.request_slow(ctx, to, &message, injection),
        };
        if let Some(span) = &mut span {
            span.describe(request_sent(to, handler, args, len, source));
            if sent.is_err() {
                span.forget();
            }
        }
        sent
    }

    /// [`prepare`](Self::prepare) of a medium request between endpoints, for
    /// [`commit_endpoint`](Self::commit_endpoint).
    ///
    /// # Errors
    /// As [`request_endpoint`](Self::request_endpoint).
    pub fn prepare_endpoint(
        &self,
        ctx: &ThreadCtx,
        ends: Endpoints,
        want: &PrepareRequest,
        injection: Injection,
    ) -> Result<Prepared, AmError> {
        if ends.are_primordial() {
            return self.prepare(ctx, want, injection);
        }
        // The handler comes with the commit.
        self.check_ends(want.to, ends, CLIENT_BASE)?;
        // Before the word is counted among them.
        if want.nargs > MAX_ARGS {
            return Err(AmError::TooManyArgs {
                count: want.nargs,
                from: self.rank,
                to: want.to,
            });
        }
        let carried = PrepareRequest {
            nargs: want.nargs + 1,
            ..*want
        };
        self.prepare_carried(ctx, &carried, MAX_ARGS + 1, injection)
    }

    /// Sends the payload that [`prepare_endpoint`](Self::prepare_endpoint) has prepared for the
    /// same endpoints.
    ///
    /// # Errors
    /// [`AmError::NotForClients`]; the payload is canceled then.
    ///
    /// # Panics
    /// As [`commit`](Self::commit).
    pub fn commit_endpoint(
        &self,
        ctx: &ThreadCtx,
        prepared: Prepared,
        ends: Endpoints,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) -> Result<(), AmError> {
        if ends.are_primordial() {
            return self.commit(ctx, prepared, handler, args, len);
        }
        let to = prepared.to();
        if let Err(error) = self.check_ends(to, ends, handler) {
            self.cancel(ctx, prepared);
            return Err(error);
        }
        if args.len() > MAX_ARGS {
            self.broken_commit(ctx, prepared, args.len(), len);
        }
        let carried = Carried::new(ends, handler, args);
        self.commit(ctx, prepared, internal::ENDPOINT_AM, carried.args(), len)?;
        if let Some(mut span) = span(
            ctx,
            message_kind(MessageClass::Request, Category::Medium, false),
        ) {
            span.describe(request_sent(to, handler, args, len, core::ptr::null()));
        }
        Ok(())
    }

    /// A message between endpoints has arrived.
    pub(crate) fn serve_endpoint_am(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let word = delivery.args().first().copied();
        let (ends, handler) = word
            .and_then(Endpoints::of_word)
            .ok_or("it does not name the endpoints of the message")?;
        self.run_endpoint_am(delivery, ends, handler, 1);
        Ok(())
    }

    /// Runs the handler of a message that came inside this one, with the arguments from `first_arg`
    /// on.
    pub(crate) fn run_endpoint_am(
        &self,
        delivery: &mut Delivery<'_>,
        ends: Endpoints,
        handler: HandlerIndex,
        first_arg: usize,
    ) {
        let carrier = internal::ENDPOINT_AM;
        delivery.unwrap_endpoint_am(ends, handler, first_arg, carrier, |inner| {
            self.dispatch_endpoint_am(inner, ends, handler);
        });
    }

    /// Runs the handler of an endpoint of this process.
    pub(crate) fn dispatch_endpoint_am(
        &self,
        delivery: &mut Delivery<'_>,
        ends: Endpoints,
        handler: HandlerIndex,
    ) {
        let ran = self.table(ends.to).map(|table| table.dispatch(delivery));
        if ran != Some(true) {
            self.missing_handler(delivery.source(), ends, handler, ran.is_some());
        }
    }

    #[cold]
    fn missing_handler(
        &self,
        source: JobRank,
        ends: Endpoints,
        handler: HandlerIndex,
        open: bool,
    ) -> ! {
        let (rank, Endpoints { from, to }) = (self.rank, ends);
        let sent = format!("a message from endpoint {from} of rank {source}");
        if open {
            self.fatal(&format!(
                "handler index {handler} is not registered at endpoint {to} of rank {rank} ({sent}); register it there before any message names it"
            ));
        }
        self.fatal_am(AmError::NoEndpoint {
            endpoint: to.into(),
            rank,
            operation: format!("{sent} has come for it, handler {handler}"),
        })
    }
}

#[cfg(test)]
mod tests;
