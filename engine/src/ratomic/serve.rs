//! Handlers of messages about atomic operations: at the owner of the word, and at the rank that
//! waits for the value.

use super::super::bound::{ARGUMENTS, Access, Args, Landing, Range, Wrong, unpack};
use super::super::core::Engine;
use super::super::datatype::{DataType, Operation};
use super::super::limits::internal;
use super::super::location::Target;
use super::super::regions::Outside;
use super::wire::{Request, Untyped};
use super::{Atomic, AtomicWord};
use argonet_am::{Delivery, Message, Payload};
use argonet_conduit::Conduit;
use core::ptr::{NonNull, with_exposed_provenance_mut};

/// How an operation uses its word.
pub(super) fn access(operation: Operation) -> Access {
    match operation {
        Operation::Get => Access::Read,
        _ => Access::ReadWrite,
    }
}

impl Untyped {
    /// [`AtomicWord::apply`] by a type that is a value.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn apply(self, at: NonNull<u8>) -> u64 {
        // SAFETY: this function's contract, in each of them.
        unsafe {
            match self.dt {
                DataType::I32 => self.apply_as::<i32>(at),
                DataType::U32 => self.apply_as::<u32>(at),
                DataType::I64 => self.apply_as::<i64>(at),
                DataType::U64 => self.apply_as::<u64>(at),
                DataType::F32 => self.apply_as::<f32>(at),
                DataType::F64 => self.apply_as::<f64>(at),
                // No request names it.
                DataType::User => 0,
            }
        }
    }

    /// # Safety
    /// As [`AtomicWord::apply`].
    unsafe fn apply_as<T: AtomicWord>(self, at: NonNull<u8>) -> u64 {
        let [operand1, operand2] = self.operands.map(T::of_bits);
        let what = Atomic {
            operation: self.operation,
            operand1,
            operand2,
        };
        // SAFETY: this function's contract.
        unsafe { T::apply(at.as_ptr().cast(), what) }.bits()
    }
}

impl<C: Conduit> Engine<C> {
    /// Does the operation of a peer's request.
    ///
    /// Each request is handled once, as each message is, even if the wire repeats it.
    pub(in super::super) fn serve_atomic(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let request = Request::unpack(self.rank, delivery.args()).ok_or(ARGUMENTS)?;
        let Request { target, what, op } = request;
        let Some(place) = self.owned_or_refused(delivery, target, what) else {
            return Ok(());
        };
        // SAFETY: it lies in memory attached or bound here, as was just checked with its alignment;
        // the client that bound it promised that it is writable and how it is accessed.
        let before = unsafe { what.apply(place) };
        let args = match what.operation.is_fetching() {
            true => Args::pack([op, before]),
            false => Args::pack([op]),
        };
        self.answer(
            delivery,
            &Message {
                handler: internal::RATOMIC_DONE,
                args: args.words(),
                payload: Payload::None,
            },
        );
        Ok(())
    }

    /// Where a word that a peer names lies here; if it lies nowhere, the message is refused.
    pub(super) fn owned_or_refused(
        &self,
        delivery: &mut Delivery<'_>,
        target: Target,
        what: Untyped,
    ) -> Option<NonNull<u8>> {
        match self.owned(target, what) {
            Ok(place) => Some(place),
            Err((range, outside)) => {
                self.refuse(delivery, range, outside);
                None
            }
        }
    }

    fn owned(&self, target: Target, what: Untyped) -> Result<NonNull<u8>, (Range, Outside)> {
        let bytes = what.dt.bytes().unwrap_or(0);
        let base = (self.segment_base)(self.rank);
        let (endpoint, address) = match target {
            Target::Segment { offset, .. } => (Range::SEGMENT, base.wrapping_add(offset.0)),
            Target::Bound(place) => (place.endpoint, place.address),
        };
        let range = Range {
            endpoint,
            address,
            len: bytes as u64,
        };
        if bytes == 0 || !address.is_multiple_of(bytes as u64) {
            return Err((range, Outside::Unaligned));
        }
        match target {
            Target::Segment { rank, offset } => {
                let place = self.directory.resolve(rank, offset, bytes);
                let outside = Outside::Segment {
                    address: base,
                    len: (self.segment_len)(rank),
                };
                place.ok_or((range, outside))
            }
            Target::Bound(_) => {
                let own = self.own(range, access(what.operation));
                own.map_err(|outside| (range, outside))
            }
        }
    }

    /// An operation is done.
    pub(in super::super) fn take_atomic(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let args = delivery.args();
        let [op] = unpack(args.get(..2).ok_or(ARGUMENTS)?).ok_or(ARGUMENTS)?;
        let landing = self.bound.flights.land(op, delivery.source())?;
        let Landing::Atomic { address, bytes } = landing else {
            return Err("it completes an atomic operation, but its operation is none");
        };
        if bytes == 0 {
            unpack(&args[2..]).map(|[]| ()).ok_or(ARGUMENTS)?;
        } else {
            let [before] = unpack::<1>(&args[2..]).ok_or(ARGUMENTS)?;
            // SAFETY: the operation's caller promised that the result is writable until it is
            // complete, which it is not before `bound_arrived` below.
            unsafe {
                match (address, bytes) {
                    (0, _) => {}
                    (_, 4) => {
                        with_exposed_provenance_mut::<u32>(address).write_unaligned(before as u32);
                    }
                    _ => with_exposed_provenance_mut::<u64>(address).write_unaligned(before),
                }
            }
        }
        self.bound_arrived(op);
        Ok(())
    }
}
