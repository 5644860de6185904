//! Puts that signal: when their bytes lie at the target, an atomic operation changes a word there
//! (OpenSHMEM 1.5, "Signaling Operations").
//!
//! Where the word is mapped here, this processor writes the bytes and changes it. Otherwise one
//! long message carries the bytes, and its handler changes the word; bytes that none can carry are
//! put before.

use super::super::bound::{ARGUMENTS, Wrong};
use super::super::core::{Engine, Injection};
use super::super::datatype::Operation;
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::location::Target;
use super::super::thread::ThreadCtx;
use super::super::traced::span;
use super::super::transfer::{Side, Transfer};
use super::wire::Request;
use super::{Atomic, AtomicWord};
use argonet_am::{AmError, Delivery, Message, Payload};
use argonet_base::{JobRank, SegmentOffset};
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use argonet_trace::Kind;
use core::ptr::NonNull;

const NAME: &str = "a put that signals";

/// The number of an operation that nothing waits for.
const UNANSWERED: u64 = 0;

impl<C: Conduit> Engine<C> {
    /// Puts, and has the target do an operation on a word of its memory when the bytes lie there.
    ///
    /// The source may be written again when this returns. The target finds the bytes once it has
    /// seen the word changed, by an operation of this module or [`wait_signal`](Self::wait_signal);
    /// of other calls [`drain`](Self::drain) alone waits for that.
    ///
    /// # Safety
    /// The source of the put is readable for its length.
    ///
    /// # Errors
    /// As a put, and as [`atomic`](Self::atomic). Nothing has been written then, unless the target
    /// is lost in between.
    ///
    /// # Panics
    /// If the transfer is a get, the word is of another rank, or the operation returns a value or
    /// is none on such a word.
    pub unsafe fn put_signal<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        put: Transfer,
        word: Target,
        what: Atomic<T>,
    ) -> Result<(), OpError> {
        let Side::Put(source) = put.side else {
            panic!("a get cannot signal");
        };
        let to = put.target.rank();
        assert_eq!(to, word.rank(), "the word is of the target");
        assert!(!what.operation.is_fetching(), "nothing waits for a value");
        ctx.permit(NAME, self.rank)?;
        if !self.is_word_mapped::<T>(word)?
            && let Target::Segment { offset, .. } = put.target
        {
            let bytes = NonNull::new(source.cast_mut());
            let bytes = match bytes.filter(|_| put.len > 0) {
                // SAFETY: the caller's promise.
                Some(bytes) => unsafe { SharedBytes::from_raw(bytes, put.len) },
                None => SharedBytes::from_slice(&[]),
            };
            match self.send_signal(ctx, (to, offset), bytes, word, what) {
                Err(AmError::TooLong { .. }) => {}
                sent => return Ok(sent?),
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.transfer(ctx, put) }?;
        self.atomic(ctx, word, what)?;
        self.wake(to);
        Ok(())
    }

    /// One message for all of it.
    fn send_signal<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        (to, offset): (JobRank, SegmentOffset),
        bytes: SharedBytes<'_>,
        word: Target,
        what: Atomic<T>,
    ) -> Result<(), AmError> {
        let request = Request {
            target: word,
            what: what.untyped(),
            op: UNANSWERED,
        };
        let payload = match bytes.is_empty() {
            true => Payload::None,
            false => Payload::Long(bytes, offset),
        };
        let args = request.pack();
        let message = Message {
            handler: internal::SIGNAL,
            args: args.words(),
            payload,
        };
        self.request(ctx, to, &message, Injection::Blocking)
    }

    /// The bytes of a peer's put lie here.
    pub(in super::super) fn serve_signal(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let request = Request::unpack(self.rank, delivery.args()).ok_or(ARGUMENTS)?;
        let Request { target, what, op } = request;
        if op != UNANSWERED || what.operation.is_fetching() {
            return Err(ARGUMENTS);
        }
        if let Some(place) = self.owned_or_refused(delivery, target, what) {
            // SAFETY: it lies in memory attached or bound here, as was just checked with its
            // alignment; the client that bound it promised that it is writable and how it is
            // accessed.
            unsafe { what.apply(place) };
        }
        Ok(())
    }

    /// Wakes the sleeping threads of a rank after a change of a word, where it shares memory with
    /// this one.
    fn wake(&self, rank: JobRank) {
        if rank == self.rank {
            self.conduit.wake();
        }
        self.conduit.wake_rank(rank);
    }

    /// Polls until `done` says so of the value of a word in this rank's own memory; returns that
    /// value.
    ///
    /// It may sleep while nothing arrives; a put that signals wakes it. The bytes of each put whose
    /// signal is in that value can be read after this.
    ///
    /// # Errors
    /// A word outside the segment or not aligned; [`AmError::Restricted`] inside a handler.
    ///
    /// # Panics
    /// If the word is of another rank.
    pub fn wait_signal<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        word: Target,
        done: impl FnMut(T) -> bool,
    ) -> Result<T, OpError> {
        assert_eq!(word.rank(), self.rank, "the word is of the rank that waits");
        ctx.permit("waiting", self.rank)?;
        let get = Atomic {
            operation: Operation::Get,
            operand1: T::of_bits(0),
            operand2: T::of_bits(0),
        };
        let first = self.atomic(ctx, word, get)?;
        let look = || self.atomic_here(word, get).ok().flatten().unwrap_or(first);
        Ok(self.wait_word(ctx, look, done)?)
    }

    /// [`wait_signal`](Self::wait_signal) for a word that `look` loads, atomically and with Acquire
    /// at least.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn wait_word<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        look: impl Fn() -> T,
        mut done: impl FnMut(T) -> bool,
    ) -> Result<T, AmError> {
        ctx.permit("waiting", self.rank)?;
        let _span = span(ctx, Kind::WaitUntil);
        let mut wait = self.waiting(Waiting::new(WaitFor::Signal));
        let mut seen = look();
        if done(seen) {
            return Ok(seen);
        }
        loop {
            // As in `wait_until`.
            ctx.permit("waiting", self.rank)?;
            wait.pause_unless(ctx, &|| look().bits() != seen.bits());
            seen = look();
            if self.decide(ctx, || done(seen)) {
                return Ok(seen);
            }
        }
    }
}
