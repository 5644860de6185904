//! Handlers of messages about bound memory.
//!
//! Nothing in them is believed: ranges are checked against the memory bound here, answers against
//! the operations under way here.

use super::super::core::Engine;
use super::super::limits::internal;
use super::super::regions::Outside;
use super::BoundMemory;
use super::flights::{Flight, Landing};
use super::wire::{Args, Range, Refusal, Subject, unpack};
use argonet_am::{AmError, Delivery, Message, MessageClass, Payload};
use argonet_conduit::{Completion, Conduit};
use argonet_segment::registration::Access;
use argonet_segment::{SharedBytes, bulk};
use core::ptr::{NonNull, with_exposed_provenance_mut};

/// Why a message is broken.
pub(in super::super) type Wrong = &'static str;

pub(in super::super) const ARGUMENTS: Wrong = "it has other arguments than such a message has";
pub(in super::super) const LENGTHS: Wrong = "its lengths contradict each other";

impl<C: Conduit> Engine<C> {
    /// Handles a message that no function in the handler table takes.
    #[cold]
    #[inline(never)]
    pub(crate) fn serve(&self, delivery: &mut Delivery<'_>) {
        let (handler, from) = (delivery.handler(), delivery.source());
        let (class, served) = match handler {
            internal::BOUND_PUT => (
                Some(MessageClass::Request),
                Self::serve_put as fn(&_, &mut _) -> _,
            ),
            internal::BOUND_GET => (Some(MessageClass::Request), Self::serve_get as _),
            internal::BOUND_QUERY => (Some(MessageClass::Request), Self::serve_query as _),
            internal::BOUND_PUT_DONE => (Some(MessageClass::Reply), Self::take_put_done as _),
            internal::BOUND_GET_DATA => (Some(MessageClass::Reply), Self::take_get_data as _),
            internal::BOUND_ANSWER => (Some(MessageClass::Reply), Self::take_answer as _),
            internal::BOUND_REFUSED => (Some(MessageClass::Reply), Self::take_refusal as _),
            internal::BOUND_LONG => (None, Self::serve_long as _),
            internal::ENDPOINT_AM => (None, Self::serve_endpoint_am as _),
            internal::BOUND_LONG_PART => (Some(MessageClass::Request), Self::serve_long_part as _),
            internal::RATOMIC => (Some(MessageClass::Request), Self::serve_atomic as _),
            internal::RATOMIC_DONE => (Some(MessageClass::Reply), Self::take_atomic as _),
            internal::RATOMIC_BATCH => (Some(MessageClass::Request), Self::serve_atomic_batch as _),
            internal::RATOMIC_BATCH_DONE => {
                (Some(MessageClass::Reply), Self::take_atomic_batch as _)
            }
            internal::SIGNAL => (Some(MessageClass::Request), Self::serve_signal as _),
            internal::VIS_PUT => (Some(MessageClass::Request), Self::serve_vis_put as _),
            internal::VIS_GET => (Some(MessageClass::Request), Self::serve_vis_get as _),
            internal::VIS_GET_DATA => (Some(MessageClass::Reply), Self::take_vis_data as _),
            internal::VIS_NOTICE => (Some(MessageClass::Request), Self::serve_vis_notice as _),
            index => self.fatal_am(AmError::Unregistered {
                index,
                from,
                to: self.rank,
            }),
        };
        let served = if class.is_none_or(|class| class == delivery.class()) {
            served(self, delivery)
        } else {
            Err("it has come in the wrong class")
        };
        if let Err(wrong) = served {
            let rank = self.rank;
            self.fatal(&format!(
                "rank {rank} got a broken message from rank {from}, of the library's own handler {handler}: {wrong}; memory of that rank is damaged or its version differs"
            ));
        }
    }

    fn serve_put(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [endpoint, address, len, offset, op] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let range = Range::read(endpoint, address, len).ok_or(ARGUMENTS)?;
        let bytes = delivery.payload();
        inside(range, offset, bytes.len() as u64)?;
        let place = match self.own(range, Access::ReadWrite) {
            Ok(place) => place,
            Err(outside) => {
                self.refuse(delivery, range, outside);
                return Ok(());
            }
        };
        // SAFETY: the piece lies inside the range, which lies in memory bound here, and the client
        // that bound it promised that it is writable. The payload is a view of other memory.
        unsafe {
            let place = place.add(offset as usize);
            bulk::copy(place.as_ptr(), bytes.as_ptr(), bytes.len());
        }
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

    fn serve_get(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [endpoint, address, len, offset, op, piece] =
            unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let range = Range::read(endpoint, address, len).ok_or(ARGUMENTS)?;
        inside(range, offset, piece)?;
        if piece > self.conduit.limits().medium_reply as u64 {
            return Err(LENGTHS);
        }
        let place = match self.own(range, Access::Read) {
            Ok(place) => place,
            Err(outside) => {
                self.refuse(delivery, range, outside);
                return Ok(());
            }
        };
        // SAFETY: as in `serve_put`, for reading.
        let bytes = unsafe {
            let place = place.add(offset as usize);
            SharedBytes::from_raw(place, piece as usize)
        };
        self.answer(
            delivery,
            &Message {
                handler: internal::BOUND_GET_DATA,
                args: Args::pack([op, offset]).words(),
                payload: Payload::Medium(bytes),
            },
        );
        Ok(())
    }

    fn serve_query(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [asked, op] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let (subject, endpoint) = Subject::of_number(asked).ok_or(ARGUMENTS)?;
        let BoundMemory { address, len } = match subject {
            Subject::Memory => self.memory_bound_here(endpoint),
            // No length, so that no peer takes it for memory.
            Subject::Messages => BoundMemory {
                address: self.own_endpoint(endpoint).number(),
                len: 0,
            },
        };
        self.answer(
            delivery,
            &Message {
                handler: internal::BOUND_ANSWER,
                args: Args::pack([op, address, len]).words(),
                payload: Payload::None,
            },
        );
        Ok(())
    }

    fn take_put_done(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        match self.bound.flights.land(op, delivery.source())? {
            Landing::Put | Landing::Noticed(_) => self.bound_arrived(op),
            _ => return Err("it completes a put, but its operation is no put"),
        }
        Ok(())
    }

    fn take_get_data(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op, offset] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let bytes = delivery.payload();
        let landing = self.bound.flights.land(op, delivery.source())?;
        let Landing::Get {
            address,
            len,
            piece,
        } = landing
        else {
            return Err("it brings bytes of a get, but its operation is no get");
        };
        let offset = usize::try_from(offset).map_err(|_| LENGTHS)?;
        // Each piece that was asked for, and nothing else.
        let asked = offset < len && offset % piece == 0 && bytes.len() == piece.min(len - offset);
        if !asked {
            return Err(LENGTHS);
        }
        let place = with_exposed_provenance_mut::<u8>(address);
        // SAFETY: the get's caller promised `len` writable bytes until it is complete, which it is
        // not before `bound_arrived` below; the piece lies inside.
        unsafe { bulk::copy(place.add(offset), bytes.as_ptr(), bytes.len()) };
        self.bound_arrived(op);
        Ok(())
    }

    fn take_answer(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let [op, bound_at, len] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let Landing::Query(answer) = self.bound.flights.land(op, delivery.source())? else {
            return Err("it answers a query, but its operation is no query");
        };
        let bound = BoundMemory {
            address: bound_at,
            len,
        };
        let (rank, endpoint) = (delivery.source(), answer.endpoint);
        self.bound.known.note(rank, endpoint, bound);
        // SAFETY: the query's caller promised that the places are aligned and writable until it is
        // complete, which it is not before `bound_arrived` below.
        unsafe { answer.write(bound) };
        self.bound_arrived(op);
        Ok(())
    }

    fn take_refusal(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let refusal = Refusal::unpack(delivery.args()).ok_or(ARGUMENTS)?;
        self.fatal(&refusal.message(self.rank, delivery.source()))
    }

    /// An answer has been dealt with.
    pub(in super::super) fn bound_arrived(&self, op: u64) {
        if let Some(flight) = self.bound.flights.landed(op) {
            self.bound_landed(flight);
        }
    }

    /// All answers of an operation have been dealt with.
    pub(in super::super) fn bound_landed(&self, flight: Flight) {
        let Flight { peer, token, .. } = flight;
        match flight.landing {
            Landing::Noticed(notice) => self.vis_owe_notice(peer, notice, token),
            _ => self.complete(token, Completion::Remote, 1),
        }
    }

    /// Where a range lies here, if all of it is bound and may be used in this way.
    pub(in super::super) fn own(
        &self,
        range: Range,
        access: Access,
    ) -> Result<NonNull<u8>, Outside> {
        let Range {
            endpoint,
            address,
            len,
        } = range;
        let regions = &self.bound.regions;
        let bound = regions.check(endpoint, address, len as usize, access);
        match bound {
            Err(Outside::Nothing) if endpoint == Range::FIRST => {
                self.own_attached(range).ok_or(Outside::Nothing)
            }
            bound => bound,
        }
    }

    /// Where a range of this rank's attached segment lies.
    ///
    /// Messages for it come this way while their sender, elsewhere, is attaching still and has not
    /// learned yet that this rank has attached.
    #[cold]
    fn own_attached(&self, range: Range) -> Option<NonNull<u8>> {
        let offset = self.offset_of(self.rank, range.address);
        let len = usize::try_from(range.len).ok()?;
        self.directory.resolve(self.rank, offset, len)
    }

    /// Reports that a range cannot be reached here: to the sender of a request, or, for a reply, to
    /// all ranks.
    pub(in super::super) fn refuse(
        &self,
        delivery: &mut Delivery<'_>,
        range: Range,
        outside: Outside,
    ) {
        let refusal = Refusal {
            what: delivery.handler(),
            range,
            outside,
        };
        if delivery.class() == MessageClass::Reply {
            self.fatal(&refusal.message(delivery.source(), self.rank));
        }
        self.answer(
            delivery,
            &Message {
                handler: internal::BOUND_REFUSED,
                args: refusal.pack().words(),
                payload: Payload::None,
            },
        );
    }

    pub(in super::super) fn answer(&self, delivery: &mut Delivery<'_>, message: &Message<'_>) {
        if let Err(error) = delivery.reply(message) {
            self.fatal_am(error);
        }
    }
}

/// Refuses a piece that is empty or does not lie inside its range.
pub(super) fn inside(range: Range, offset: u64, piece: u64) -> Result<(), Wrong> {
    let end = offset.checked_add(piece);
    match end {
        Some(end) if piece > 0 && end <= range.len => Ok(()),
        _ => Err(LENGTHS),
    }
}
