//! Bound memory: memory of peers that is bound to an endpoint and not attached.
//!
//! Put, get and long active messages reach it over active messages to its owner, which checks each
//! against its bound memory ([`Regions`]). Where a rank has bound all its memory, the kernel copies
//! if it may ([`cross`]).
//!
//! A put or a get travels in fragments. Each names the whole range, so that a range that is
//! refused changes nothing at its target. An answer names its operation by a number
//! ([`flights`]); where its bytes go is known here alone.
#![allow(unsafe_code)]

mod cross;
mod flights;
mod fragments;
mod known;
mod long;
mod owed;
mod serve;
mod wire;

use super::core::{Engine, Injection};
use super::events::OpError;
use super::limits::internal;
use super::regions::Regions;
use super::thread::ThreadCtx;
use super::token::Counts;
use argonet_am::{AmError, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_conduit::{Completion, Conduit};
use argonet_event::{Category, Event};
pub(super) use argonet_segment::registration::Access;
use core::sync::atomic::AtomicU64;
use cross::Cross;
pub use cross::ProcessOf;
use flights::{Answer, Flights};
pub(super) use flights::{Flight, Landing};
use known::Known;
pub use long::Long;
use owed::Coming;
pub(super) use serve::{ARGUMENTS, LENGTHS, Wrong};
pub(super) use wire::{Args, Range, Refusal, Subject, unpack};

/// A place in a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundPlace {
    /// The rank of the memory.
    pub rank: JobRank,
    /// Endpoint of that rank to which the memory is bound.
    pub endpoint: u32,
    /// Address in that rank's process.
    pub address: u64,
}

/// The memory that a rank has bound at an endpoint; all zero if none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BoundMemory {
    /// Where it begins, in that rank's process.
    pub address: u64,
    /// Bytes.
    pub len: u64,
}

/// The engine's part of bound memory.
#[derive(Default)]
pub(super) struct Bound {
    regions: Regions,
    pub(super) flights: Flights,
    known: Known,
    coming: Coming,
    /// How many long replies in parts this rank has given.
    replies: AtomicU64,
    cross: Cross,
}

impl Bound {
    /// Takes the indices of the messages that [`Engine::serve`] handles.
    pub(super) fn register(handlers: &mut HandlerTable) -> Result<(), AmError> {
        for (index, name) in [
            (internal::BOUND_PUT, "argonet::bound_put"),
            (internal::BOUND_PUT_DONE, "argonet::bound_put_done"),
            (internal::BOUND_GET, "argonet::bound_get"),
            (internal::BOUND_GET_DATA, "argonet::bound_get_data"),
            (internal::BOUND_LONG, "argonet::bound_long"),
            (internal::BOUND_QUERY, "argonet::bound_query"),
            (internal::BOUND_ANSWER, "argonet::bound_answer"),
            (internal::BOUND_REFUSED, "argonet::bound_refused"),
            (internal::BOUND_LONG_PART, "argonet::bound_long_part"),
            (internal::VIS_PUT, "argonet::vis_put"),
            (internal::VIS_GET, "argonet::vis_get"),
            (internal::VIS_GET_DATA, "argonet::vis_get_data"),
            (internal::VIS_NOTICE, "argonet::vis_notice"),
        ] {
            handlers.reserve_internal(index, name)?;
        }
        Ok(())
    }
}

impl<C: Conduit> Engine<C> {
    /// The memory of this process that peers may reach by address.
    pub fn regions(&self) -> &Regions {
        &self.bound.regions
    }

    /// Asks a rank for the memory that it has bound at an endpoint.
    ///
    /// The answer is in `answer` when the event is complete; for this rank it is so at once.
    ///
    /// # Safety
    /// `answer` is aligned, and writable until the event is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub unsafe fn bound_query(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        endpoint: u32,
        answer: *mut BoundMemory,
        injection: Injection,
    ) -> Result<Event, OpError> {
        // SAFETY: the caller's promise; the fields lie inside.
        unsafe {
            let (address, len) = (&raw mut (*answer).address, &raw mut (*answer).len);
            self.bound_query_parts(ctx, rank, endpoint, address, len, injection)
        }
    }

    /// The memory that a rank has bound at an endpoint; asks the rank.
    ///
    /// # Errors
    /// As [`bound_query`](Self::bound_query).
    pub fn bound_memory(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        endpoint: u32,
    ) -> Result<BoundMemory, OpError> {
        let mut bound = BoundMemory::default();
        let answer = &raw mut bound;
        // SAFETY: the answer is waited for before the variable ends, or the process ends.
        let asked = unsafe { self.bound_query(ctx, rank, endpoint, answer, Injection::Blocking) }?;
        self.wait_or_end(ctx, asked)?;
        // SAFETY: a variable of this function; it was written through the same pointer.
        Ok(unsafe { answer.read() })
    }

    /// [`bound_query`](Self::bound_query) whose answer goes to two places, each null if that number
    /// is not wanted.
    ///
    /// # Safety
    /// Each place is null, or aligned and writable until the event is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub unsafe fn bound_query_parts(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        endpoint: u32,
        address: *mut u64,
        len: *mut u64,
        injection: Injection,
    ) -> Result<Event, OpError> {
        self.permit_messages(ctx, "a query of a segment", rank)?;
        if rank == self.rank {
            let answer = Answer::new(endpoint, [address, len]);
            // SAFETY: the caller's promise.
            unsafe { answer.write(self.memory_bound_here(endpoint)) };
            return Ok(Event::DONE);
        }
        let what = (Subject::Memory, endpoint);
        // SAFETY: the caller's promise.
        unsafe { self.bound_ask(ctx, rank, what, [address, len], injection) }
    }

    /// Asks another rank about an endpoint.
    ///
    /// # Safety
    /// Each place is null, or aligned and writable until the event is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) unsafe fn bound_ask(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        (subject, endpoint): (Subject, u32),
        places: [*mut u64; 2],
        injection: Injection,
    ) -> Result<Event, OpError> {
        let (counts, category) = (Counts::Explicitly, Category::Get);
        self.with_token(ctx, counts, category, injection, |token| {
            let op = self.bound.flights.begin(Flight {
                peer: rank,
                token,
                landing: Landing::Query(Answer::new(endpoint, places)),
                coming: 1,
                landing_now: 0,
            });
            let args = Args::pack([subject.with(endpoint), op]);
            let message = Message {
                handler: internal::BOUND_QUERY,
                args: args.words(),
                payload: Payload::None,
            };
            let sent = self.request(ctx, rank, &message, injection);
            sent.or_else(|error| self.not_sent(rank, op, error))
        })
    }

    /// A message of an operation could not be sent, its first one unless the peer is lost.
    ///
    /// # Errors
    /// `error`, where nothing was sent. An operation whose peer is lost, or will be, ends as those
    /// that are under way: its event says so.
    #[cold]
    pub(super) fn not_sent(&self, rank: JobRank, op: u64, error: AmError) -> Result<(), AmError> {
        let Some(peer) = self.lost_by(&error) else {
            if self.bound.flights.abandon(op) {
                return Err(error);
            }
            // Another thread may have noticed the loss since, and ended the operation.
            if self.unless_lost(|lost| lost == rank).is_err() {
                return Ok(());
            }
            // Its answer may write memory of the caller's after the call has returned the error.
            self.fatal(&format!(
                "rank {}: rank {rank} has answered an operation that was not sent to it",
                self.rank
            ));
        };
        // One that was there when the loss was noticed has ended. Elsewhere an answer may be dealt
        // with, or wait.
        if self.unless_lost(|lost| lost == peer).is_err()
            && let Some(flight) = self.bound.flights.take_idle(op)
        {
            self.end_by_loss(peer, flight.token, Completion::Remote, 1);
        }
        Ok(())
    }

    /// The memory that a rank has bound at an endpoint, if that rank has answered so since
    /// [`bound_forget`](Self::bound_forget).
    pub fn bound_known(&self, rank: JobRank, endpoint: u32) -> Option<BoundMemory> {
        self.bound.known.get(rank, endpoint)
    }

    /// Forgets the answers that [`bound_known`](Self::bound_known) returns: ranks may have bound
    /// other memory.
    pub fn bound_forget(&self) {
        self.bound.known.clear();
    }

    /// A rank is lost, and its memory with it.
    pub(super) fn bound_forget_rank(&self, rank: JobRank) {
        self.bound.known.forget(rank);
    }

    pub(super) fn permit_messages(
        &self,
        ctx: &ThreadCtx,
        what: &'static str,
        rank: JobRank,
    ) -> Result<(), AmError> {
        ctx.permit(what, self.rank)?;
        self.check_rank(rank)
    }

    /// The memory that this rank has bound.
    pub(super) fn memory_bound_here(&self, endpoint: u32) -> BoundMemory {
        let bound = self.bound.regions.lookup(endpoint);
        bound.map_or_else(BoundMemory::default, |(address, len)| BoundMemory {
            address,
            len: len as u64,
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
