//! Operations on words that are not mapped here, as their initiator sends them.

use super::super::bound::{BoundPlace, Flight, Landing, Range, Refusal};
use super::super::core::{Engine, Injection};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::location::Target;
use super::super::thread::ThreadCtx;
use super::super::token::Counts;
use super::serve::access;
use super::wire::{Request, Untyped};
use super::{Atomic, AtomicWord, NAME, category_of};
use crate::Operation;
use argonet_am::{AmError, Message, Payload};
use argonet_conduit::{Conduit, OpToken};
use argonet_event::Event;
use core::ptr::NonNull;

impl<T: AtomicWord> Atomic<T> {
    pub(super) fn untyped(self) -> Untyped {
        let operands = match self.operation.operands() {
            0 => [0, 0],
            1 => [self.operand1.bits(), 0],
            _ => [self.operand1.bits(), self.operand2.bits()],
        };
        Untyped {
            dt: T::TYPE,
            operation: self.operation,
            operands,
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// A word of this rank's own that is bound and not attached; ends the job if it is neither.
    pub(super) fn atomic_own(
        &self,
        place: BoundPlace,
        operation: Operation,
        bytes: usize,
    ) -> NonNull<u8> {
        let range = Range {
            endpoint: place.endpoint,
            address: place.address,
            len: bytes as u64,
        };
        match self.own(range, access(operation)) {
            Ok(own) => own,
            Err(outside) => {
                let refusal = Refusal {
                    what: internal::RATOMIC,
                    range,
                    outside,
                };
                self.fatal(&refusal.message(self.rank, self.rank))
            }
        }
    }

    /// Sends the request and waits for the value.
    #[cold]
    #[inline(never)]
    pub(super) fn atomic_awaited<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
    ) -> Result<T, OpError> {
        let mut before = T::of_bits(0);
        let (result, counts) = (&raw mut before, Counts::Explicitly);
        // SAFETY: the value is there until the event is complete, or the process ends.
        let event = unsafe {
            self.atomic_unmapped(ctx, target, what, result, counts, Injection::Blocking)
        }?;
        self.wait_or_end(ctx, event)?;
        Ok(before)
    }

    /// Sends the request.
    ///
    /// # Safety
    /// As [`atomic_start`](Self::atomic_start) or
    /// [`atomic_start_implicit`](Self::atomic_start_implicit).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn atomic_unmapped<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
        result: *mut T,
        counts: Counts,
        injection: Injection,
    ) -> Result<Event, OpError> {
        self.permit_messages(ctx, NAME, target.rank())?;
        let category = category_of(what.operation);
        self.with_token(ctx, counts, category, injection, |token| {
            let address = result.expose_provenance();
            self.atomic_send(ctx, target, what.untyped(), address, injection, token)
        })
    }

    /// Sends the request.
    ///
    /// `result` is an exposed address, as the caller of the operation has promised it.
    fn atomic_send(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Untyped,
        result: usize,
        injection: Injection,
        token: OpToken,
    ) -> Result<(), AmError> {
        let op = self.bound.flights.begin(Flight {
            peer: target.rank(),
            token,
            landing: Landing::Atomic {
                address: result,
                bytes: match what.operation.is_fetching() {
                    true => what.dt.bytes().unwrap_or(0),
                    false => 0,
                },
            },
            coming: 1,
            landing_now: 0,
        });
        let args = Request { target, what, op }.pack();
        let message = Message {
            handler: internal::RATOMIC,
            args: args.words(),
            payload: Payload::None,
        };
        let sent = self.request(ctx, target.rank(), &message, injection);
        sent.or_else(|error| self.not_sent(target.rank(), op, error))
    }
}
