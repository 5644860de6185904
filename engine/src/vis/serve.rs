//! Handlers of messages of non-contiguous transfers.
//!
//! Nothing in them is believed.

use super::super::bound::{ARGUMENTS, Args, LENGTHS, Landing, Wrong, unpack};
use super::super::core::Engine;
use super::super::limits::internal;
use super::call::Direction;
use super::copy::{Ways, walks};
use super::space::Space;
use super::walk::{Place, Runs, Walk};
use super::wire::{Named, Naming};
use argonet_am::{Delivery, Message, Payload};
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use core::ptr::{NonNull, with_exposed_provenance_mut};

const NAME: Wrong = "its description of memory contradicts itself";

impl Space {
    /// A space, and how its memory is named, as one number.
    pub(super) fn code(self, naming: Naming) -> u64 {
        u64::from(self.0) | naming.code() << 32
    }

    fn of_code(code: u64) -> Option<(Self, Naming)> {
        Some((Self(code as u32), Naming::of_code(code >> 32)?))
    }
}

impl<C: Conduit> Engine<C> {
    pub(in super::super) fn serve_vis_put(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op, space, name_len] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let (space, naming) = Space::of_code(space).ok_or(ARGUMENTS)?;
        let payload = delivery.payload();
        let name_len = usize::try_from(name_len).map_err(|_| LENGTHS)?;
        let name = payload.slice(0, name_len).map_err(|_| LENGTHS)?;
        let bytes = payload.len() - name_len;
        let named = Named::read(naming, &name, bytes).ok_or(NAME)?;
        let (runs, place) = named.runs();
        if !self.vis_may(delivery, Direction::Put, space, &runs, (place, bytes)) {
            return Ok(());
        }
        let mut line = Walk::Line {
            address: delivery.payload().as_ptr().expose_provenance() + name_len,
            len: bytes,
        };
        let ways = Ways {
            to: self.vis_own_way(space),
            from: 0,
        };
        // SAFETY: all runs lie in memory bound here, and the client that bound it promised that it
        // is writable; the bytes are those behind the name, in other memory.
        unsafe { walks(&mut runs.walk(place), &mut line, bytes, ways) };
        self.answer(
            delivery,
            &Message {
                handler: internal::BOUND_PUT_DONE,
                args: Args::pack([op]).words(),
                payload: Payload::None,
            },
        );
        Ok(())
    }

    pub(in super::super) fn serve_vis_get(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op, piece, space, bytes] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let (space, naming) = Space::of_code(space).ok_or(ARGUMENTS)?;
        let bytes = usize::try_from(bytes).map_err(|_| LENGTHS)?;
        if bytes == 0 || bytes > self.conduit.limits().medium_reply {
            return Err(LENGTHS);
        }
        let named = Named::read(naming, &delivery.payload(), bytes).ok_or(NAME)?;
        let (runs, place) = named.runs();
        if !self.vis_may(delivery, Direction::Get, space, &runs, (place, bytes)) {
            return Ok(());
        }
        let mut there = runs.walk(place);
        let way = self.vis_own_way(space);
        let mut packed = Vec::new();
        let first = there.now();
        let line = first.filter(|(_, together)| *together >= bytes);
        let address = match line {
            // It goes as it lies.
            Some((address, _)) => with_exposed_provenance_mut(address.wrapping_add_signed(way)),
            None => {
                packed.resize(bytes, 0);
                let mut line = Walk::Line {
                    address: packed.as_mut_ptr().expose_provenance(),
                    len: bytes,
                };
                // SAFETY: all runs lie in memory bound here, and the client that bound it promised
                // that it is readable; the vector has as many bytes.
                unsafe { walks(&mut line, &mut there, bytes, Ways { to: 0, from: way }) };
                packed.as_mut_ptr()
            }
        };
        let address = NonNull::new(address).ok_or(NAME)?;
        // SAFETY: as above; it is so until the answer has been sent.
        let data = unsafe { SharedBytes::from_raw(address, bytes) };
        self.answer(
            delivery,
            &Message {
                handler: internal::VIS_GET_DATA,
                args: Args::pack([op, piece]).words(),
                payload: Payload::Medium(data),
            },
        );
        Ok(())
    }

    /// Whether runs may be used; if not, reports the refusal to the sender.
    fn vis_may(
        &self,
        delivery: &mut Delivery<'_>,
        direction: Direction,
        space: Space,
        runs: &Runs<'_>,
        bytes: (Place, usize),
    ) -> bool {
        let checked = self.vis_own(space, runs, bytes, direction.access());
        if let Err((range, outside)) = checked {
            self.refuse(delivery, range, outside);
            return false;
        }
        true
    }

    pub(in super::super) fn take_vis_data(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op, piece] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let payload = delivery.payload();
        let Landing::Scatter(scatter) = self.bound.flights.land(op, delivery.source())? else {
            return Err("it brings bytes of a get, but its operation is no get");
        };
        let place = scatter.take(piece, payload.len()).ok_or(LENGTHS)?;
        let mut line = Walk::Line {
            address: payload.as_ptr().expose_provenance(),
            len: payload.len(),
        };
        scatter.with_walk(place, |mut here| {
            // SAFETY: the get's caller promised that its destination is writable, and its lists are
            // there, until it is complete, which it is not before `bound_arrived` below.
            unsafe { walks(&mut here, &mut line, payload.len(), Ways::default()) }
        });
        self.bound_arrived(op);
        Ok(())
    }
}
