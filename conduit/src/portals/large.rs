//! Where payloads of large mediums arrive: in a buffer, or in parts that are put together.

use super::arrivals::Half;
use super::assembly::{Assembly, PartError};
use super::core::Portals;
use super::requests::OUT_OF_TURN;
use super::stock::Stock;
use super::wire::{Piece, lid_of};
use argonet_am::AmError;
use argonet_am::recycling::Place;
use argonet_nic::portals::{Event, EventKind, NicError, Outcome, Portals as Interface};
use core::ptr::NonNull;

/// Payloads of one class.
pub(super) struct Large {
    pub(super) buffers: Stock,
    pub(super) parts: Assembly,
}

/// Where a payload is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lies {
    /// In a buffer, as it came.
    Buffer(Place),
    /// In a buffer of the assembly.
    Assembled(u32),
}

impl Large {
    pub(super) fn memory(&self, lies: Lies) -> NonNull<u8> {
        match lies {
            Lies::Buffer(place) => self.buffers.memory(place),
            Lies::Assembled(index) => self.parts.memory(index),
        }
    }

    /// A payload was handled.
    pub(super) fn handled(&mut self, nic: &impl Interface, lies: Lies) -> Result<(), NicError> {
        match lies {
            Lies::Buffer(place) => self.buffers.handled(nic, place),
            Lies::Assembled(index) => {
                self.parts.handled(index);
                Ok(())
            }
        }
    }

    /// Payloads that were not handled, or have not come wholly, and buffers that the interface has
    /// not got.
    pub(super) fn in_use(&self) -> u32 {
        self.buffers.in_use() + self.parts.in_use()
    }
}

impl<N: Interface> Portals<N> {
    /// Follows the buffers of large mediums by an event of one; the payload that is all here with
    /// it.
    pub(super) fn follow_large(
        &self,
        large: &mut Large,
        buffer: u32,
        event: &Event,
    ) -> Result<Option<Half>, AmError> {
        if event.kind == EventKind::Unlink {
            let unlinked = large.buffers.unlinked(&self.nic, buffer);
            self.unless_linked(&unlinked);
            return Ok(None);
        }
        let place = large.buffers.arrived(buffer, event);
        let place = place.ok_or_else(|| self.broken(event.peer, OUT_OF_TURN))?;
        let came = match event.outcome {
            Outcome::Done => self.payload(large, place, event),
            // A payload that its sender did not end does not count as arrived.
            _ => Ok(None),
        };
        if !matches!(
            came,
            Ok(Some(Half {
                place: Some(Lies::Buffer(_)),
                ..
            }))
        ) {
            self.unless_linked(&large.buffers.handled(&self.nic, place));
        }
        came
    }

    fn payload(
        &self,
        large: &mut Large,
        place: Place,
        event: &Event,
    ) -> Result<Option<Half>, AmError> {
        let len = event.moved_bytes as usize;
        let piece = Piece::from_header(event.header);
        let whole = |lies, len| Half {
            place: Some(lies),
            offset: 0,
            len,
        };
        if (piece.offset, piece.total) == (0, len) {
            return Ok(Some(whole(Lies::Buffer(place), len)));
        }
        let bytes = (large.buffers.memory(place), len);
        // SAFETY: the interface has moved so many bytes there, in a buffer of this rank, as
        // `arrived` has checked.
        let part = unsafe {
            large
                .parts
                .part(event.peer, lid_of(event.bits), piece, bytes)
        };
        let part = part.map_err(|error| match error {
            PartError::Broken(cause) => self.broken(event.peer, cause),
            PartError::NoMemory(cause) => {
                let what = format_args!("no memory for a payload that it sends in parts: {cause}");
                self.refuses(event.peer, &what)
            }
        })?;
        Ok(part.map(|index| whole(Lies::Assembled(index), piece.total)))
    }
}
