//! Many operations on words of one rank, by one message and one answer.
//!
//! The payload is a record for each operation, of numbers of 64 bits. Like the bytes of a put they
//! have the order of the processor, which is little-endian wherever this is compiled.
//!
//! ```text
//!  63                       8 7         0
//! | offset in the segment    | operation |  operation: which bit
//! | first operand, if it has one         |
//! | second operand, if it has two        |
//! ```
//!
//! The answer has the values before, a number of 64 bits for each operation that fetches.

use super::super::bound::{ARGUMENTS, Args, Flight, LENGTHS, Landing, Wrong, unpack};
use super::super::core::{Engine, Injection};
use super::super::datatype::{DataType, Operation};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::location::Target;
use super::super::thread::ThreadCtx;
use super::super::token::Counts;
use super::super::traced::span;
use super::wire::Untyped;
use super::{Atomic, AtomicWord, NAME, forget};
use argonet_am::{Delivery, Message, Payload};
use argonet_base::{JobRank, SegmentOffset, cpu};
use argonet_conduit::Conduit;
use argonet_event::{Category, Event};
use argonet_segment::{SharedBytes, bulk};
use argonet_trace::Kind;
use core::marker::PhantomData;
use core::ptr::with_exposed_provenance_mut;
use zerocopy::IntoBytes;

/// Most bytes of records in a message; their answer has no more.
const MOST_BYTES: usize = 4096;

/// Bytes of a number.
const NUMBER: usize = 8;

/// More than any offset of a word.
const NO_OFFSET: u64 = u64::MAX >> 8 & !7;

/// Operations on words of one rank, for [`Engine::atomic_batch_start`].
#[derive(Debug)]
pub struct AtomicBatch<T> {
    records: Vec<u8>,
    room: usize,
    values: usize,
    of: PhantomData<T>,
}

impl<T: AtomicWord> AtomicBatch<T> {
    /// An empty one for records of so many bytes.
    fn with_room(room: usize) -> Self {
        Self {
            records: Vec::new(),
            room,
            values: 0,
            of: PhantomData,
        }
    }

    /// Adds an operation on the word at `offset`; false if there is no room for it.
    ///
    /// # Panics
    /// If there is no such operation on the type ([`Operation::is_atomic_on`]).
    #[inline]
    #[must_use]
    pub fn push(&mut self, offset: SegmentOffset, what: Atomic<T>) -> bool {
        assert!(what.operation.is_atomic_on(T::TYPE), "no such operation");
        let operands = what.operation.operands();
        let bytes = NUMBER * (1 + operands);
        if self.room - self.records.len() < bytes {
            return false;
        }
        if self.records.capacity() == 0 {
            self.records.reserve_exact(self.room);
        }
        // A larger offset does not fit a record. It is outside of every segment, so the owner
        // refuses the capped one too.
        let offset = offset.0.min(NO_OFFSET);
        let head = offset << 8 | u64::from(what.operation.bit().trailing_zeros());
        let numbers = [head, what.operand1.bits(), what.operand2.bits()];
        for number in &numbers[..1 + operands] {
            self.records.extend_from_slice(&number.to_ne_bytes());
        }
        self.values += usize::from(what.operation.is_fetching());
        true
    }

    /// Whether there is no operation in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many of its operations fetch.
    #[must_use]
    pub fn values(&self) -> usize {
        self.values
    }

    /// Forgets its operations, and keeps its memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.values = 0;
    }
}

impl<C: Conduit> Engine<C> {
    /// An empty batch, with as much room as a message of this job can have.
    #[must_use]
    pub fn atomic_batch<T: AtomicWord>(&self) -> AtomicBatch<T> {
        let limits = self.conduit.limits();
        let most = limits.medium_request.min(limits.medium_reply);
        AtomicBatch::with_room(most.min(MOST_BYTES) / NUMBER * NUMBER)
    }

    /// Whether an operation on a word is for a batch: its rank shares no memory with this one.
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    pub fn is_for_batch<T: AtomicWord>(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
    ) -> Result<bool, OpError> {
        let word = Target::Segment { rank, offset };
        Ok(!self.is_word_mapped::<T>(word)?)
    }

    /// Starts a batch on words of `to` and returns the event of its completion.
    ///
    /// The operations are done in their order. When the event is complete, the values before of
    /// those that fetch are at `values`. The batch may be changed when this returns.
    ///
    /// # Safety
    /// `values` is writable for as many numbers as the batch has values, until the event is
    /// complete.
    ///
    /// # Errors
    /// As [`atomic_start`](Self::atomic_start).
    pub unsafe fn atomic_batch_start<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        batch: &AtomicBatch<T>,
        values: *mut u64,
        injection: Injection,
    ) -> Result<Event, OpError> {
        ctx.permit(NAME, self.rank)?;
        self.permit_messages(ctx, NAME, to)?;
        let mut span = span(ctx, Kind::AtomicNb);
        if let Some(span) = &mut span {
            span.describe(self.about_bytes(to, batch.records.len(), 0, 0));
        }
        let (counts, category) = (Counts::Explicitly, Category::Rmw);
        let outcome = self.with_token(ctx, counts, category, injection, |token| {
            let op = self.bound.flights.begin(Flight {
                peer: to,
                token,
                landing: Landing::Batch {
                    address: values.expose_provenance(),
                    values: batch.values,
                },
                coming: 1,
                landing_now: 0,
            });
            let dt = u64::from(u32::from(T::TYPE).trailing_zeros());
            let args = Args::pack([op, dt]);
            let message = Message {
                handler: internal::RATOMIC_BATCH,
                args: args.words(),
                payload: Payload::Medium(SharedBytes::from_slice(&batch.records)),
            };
            let sent = self.request(ctx, to, &message, injection);
            sent.or_else(|error| self.not_sent(to, op, error))
        });
        forget(&mut span, &outcome);
        outcome
    }

    /// Does the operations of a peer's batch.
    pub(in super::super) fn serve_atomic_batch(
        &self,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Wrong> {
        let [op, dt] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let dt = u8::try_from(dt).ok().and_then(bit);
        let dt = dt.and_then(|bit| DataType::try_from(bit).ok());
        let dt = dt.ok_or(ARGUMENTS)?;
        let payload = delivery.payload();
        let count = payload.len() / NUMBER;
        if !payload.len().is_multiple_of(NUMBER) || payload.len() > MOST_BYTES {
            return Err(LENGTHS);
        }
        let mut numbers = [0u64; MOST_BYTES / NUMBER];
        let numbers = &mut numbers[..count];
        payload.copy_to_slice(0, numbers).map_err(|_| LENGTHS)?;
        self.prefetch_words(numbers);
        let mut values = [0u64; MOST_BYTES / NUMBER];
        let mut fetched = 0;
        let mut left = &*numbers;
        while let Some((head, rest)) = left.split_first() {
            let (what, operands) = untyped(dt, *head, rest).ok_or(ARGUMENTS)?;
            left = &rest[operands..];
            let target = Target::Segment {
                rank: self.rank,
                offset: SegmentOffset(head >> 8),
            };
            let Some(place) = self.owned_or_refused(delivery, target, what) else {
                return Ok(());
            };
            // SAFETY: it lies in memory attached here, as was just checked with its alignment.
            let before = unsafe { what.apply(place) };
            if what.operation.is_fetching() {
                values[fetched] = before;
                fetched += 1;
            }
        }
        let values = SharedBytes::from_slice(values[..fetched].as_bytes());
        self.answer(
            delivery,
            &Message {
                handler: internal::RATOMIC_BATCH_DONE,
                args: Args::pack([op]).words(),
                payload: Payload::Medium(values),
            },
        );
        Ok(())
    }

    /// Prefetches the words of records, so that their cache misses overlap.
    fn prefetch_words(&self, mut numbers: &[u64]) {
        let Some(base) = self.directory.directory().span_base(self.rank) else {
            return;
        };
        while let Some((head, rest)) = numbers.split_first() {
            cpu::prefetch(base.as_ptr().wrapping_add((head >> 8) as usize));
            let operation = bit(*head as u8).and_then(|bit| Operation::try_from(bit).ok());
            let operands = operation.map_or(0, Operation::operands);
            numbers = rest.get(operands..).unwrap_or_default();
        }
    }

    /// The operations of a batch are done.
    pub(in super::super) fn take_atomic_batch(
        &self,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Wrong> {
        let [op] = unpack(delivery.args()).ok_or(ARGUMENTS)?;
        let landing = self.bound.flights.land(op, delivery.source())?;
        let Landing::Batch { address, values } = landing else {
            return Err("it completes a batch of operations, but its operation is none");
        };
        let bytes = delivery.payload();
        if bytes.len() != values * NUMBER {
            return Err(LENGTHS);
        }
        let place = with_exposed_provenance_mut::<u8>(address);
        // SAFETY: the batch's caller promised room for as many values until it is complete, which
        // it is not before `bound_arrived` below.
        unsafe { bulk::copy(place, bytes.as_ptr(), bytes.len()) };
        self.bound_arrived(op);
        Ok(())
    }
}

/// The bit of such a number.
fn bit(number: u8) -> Option<u32> {
    1u32.checked_shl(number.into())
}

/// The operation of a record, if it is one on the type, and how many operands it takes of the
/// numbers that follow.
fn untyped(dt: DataType, head: u64, rest: &[u64]) -> Option<(Untyped, usize)> {
    let operation = Operation::try_from(bit(head as u8)?).ok()?;
    let count = operation.operands();
    let given = rest.get(..count)?;
    let mut operands = [0; 2];
    operands[..count].copy_from_slice(given);
    let fits = |number: &u64| dt.bytes() != Some(4) || number >> 32 == 0;
    let valid = operation.is_atomic_on(dt) && operands.iter().all(fits);
    let what = Untyped {
        dt,
        operation,
        operands,
    };
    valid.then_some((what, count))
}
