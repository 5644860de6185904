//! Puts to and gets from bound memory, as their initiator sends them: in fragments.

use super::super::core::{Engine, Injection};
use super::super::limits::internal;
use super::super::thread::ThreadCtx;
use super::super::transfer::Side;
use super::BoundPlace;
use super::flights::{Flight, Landing};
use super::wire::{Args, Range, Refusal};
use argonet_am::{AmError, Message, Payload};
use argonet_base::HandlerIndex;
use argonet_conduit::{Conduit, OpToken};
use argonet_segment::registration::Access;
use argonet_segment::{SharedBytes, bulk};
use core::ptr::NonNull;

impl Side {
    /// How its owner's memory is used.
    pub(super) fn access(self) -> Access {
        match self {
            Side::Put(_) => Access::ReadWrite,
            Side::Get(_) => Access::Read,
        }
    }

    pub(super) fn handler(self) -> HandlerIndex {
        match self {
            Side::Put(_) => internal::BOUND_PUT,
            Side::Get(_) => internal::BOUND_GET,
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Does a transfer that needs no message; says whether it did.
    ///
    /// # Safety
    /// As [`start`](Self::start).
    pub(in super::super) unsafe fn bound_here(
        &self,
        place: BoundPlace,
        side: Side,
        len: usize,
    ) -> bool {
        let BoundPlace {
            rank,
            endpoint,
            address,
        } = place;
        if len == 0 {
            return true;
        }
        let range = Range {
            endpoint,
            address,
            len: len as u64,
        };
        if rank != self.rank {
            // SAFETY: the caller's promise.
            return unsafe { self.cross(rank, range, side) };
        }
        let own = match self.own(range, side.access()) {
            Ok(own) => own,
            Err(outside) => {
                let refusal = Refusal {
                    what: side.handler(),
                    range,
                    outside,
                };
                self.fatal(&refusal.message(self.rank, self.rank))
            }
        };
        match side {
            // SAFETY: the caller promises its side, the client that bound the region the other.
            Side::Put(src) => unsafe { bulk::copy(own.as_ptr(), src, len) },
            // SAFETY: as above.
            Side::Get(dst) => unsafe { bulk::copy(dst, own.as_ptr(), len) },
        }
        true
    }

    /// Sends a put or the requests of a get, in fragments.
    ///
    /// Only the first may be refused for want of room.
    ///
    /// # Safety
    /// As [`start`](Self::start), and `len` is not 0.
    pub(in super::super) unsafe fn bound_send(
        &self,
        ctx: &ThreadCtx,
        place: BoundPlace,
        side: Side,
        len: usize,
        mut injection: Injection,
        token: OpToken,
    ) -> Result<(), AmError> {
        let limits = self.conduit.limits();
        let (piece, landing) = match side {
            Side::Put(_) => (aligned(limits.medium_request), Landing::Put),
            Side::Get(dst) => {
                let piece = aligned(limits.medium_reply);
                let address = dst.expose_provenance();
                let landing = Landing::Get {
                    address,
                    len,
                    piece,
                };
                (piece, landing)
            }
        };
        // All are counted before the first is sent: answers come while later ones wait for room.
        let op = self.bound.flights.begin(Flight {
            peer: place.rank,
            token,
            landing,
            coming: len.div_ceil(piece) as u64,
            landing_now: 0,
        });
        for offset in (0..len).step_by(piece) {
            let piece = piece.min(len - offset);
            let (put, get);
            let (args, payload) = match side {
                Side::Put(src) => {
                    // SAFETY: the caller promises `len` readable bytes, which are not at null.
                    let bytes = unsafe {
                        let at = NonNull::new_unchecked(src.add(offset).cast_mut());
                        SharedBytes::from_raw(at, piece)
                    };
                    put = Args::pack(numbers(place, len, offset, op));
                    (put.words(), Payload::Medium(bytes))
                }
                Side::Get(_) => {
                    let [endpoint, address, len, offset, op] = numbers(place, len, offset, op);
                    get = Args::pack([endpoint, address, len, offset, op, piece as u64]);
                    (get.words(), Payload::None)
                }
            };
            let message = Message {
                handler: side.handler(),
                args,
                payload,
            };
            match self.request(ctx, place.rank, &message, injection) {
                Ok(()) => injection = Injection::Blocking,
                Err(error) if offset == 0 || self.lost_by(&error).is_some() => {
                    return self.not_sent(place.rank, op, error);
                }
                // Half of it is on its way, and an error could not say which.
                Err(error) => self.fatal_am(error),
            }
        }
        Ok(())
    }
}

/// The numbers of each piece: the whole range, where in it the piece begins, and the operation.
fn numbers(place: BoundPlace, len: usize, offset: usize, op: u64) -> [u64; 5] {
    let endpoint = place.endpoint.into();
    [endpoint, place.address, len as u64, offset as u64, op]
}

/// The largest piece that keeps the alignment of words from one to the next.
fn aligned(most: usize) -> usize {
    const WORDS: usize = 64;
    if most > WORDS {
        return most - most % WORDS;
    }
    most.max(1)
}
