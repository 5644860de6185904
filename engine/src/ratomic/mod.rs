//! Remote atomic operations (GASNet-EX 0.19, "Remote Atomic Operations").
//!
//! A word that is mapped here is changed by this processor, and the operation is complete when the
//! call returns. Any other is changed by its owner's processor when a message asks for it
//! ([`serve`](Engine::serve_atomic)). Both come to [`AtomicWord::apply`], so that operations of
//! mapped and of unmapped memory are atomic for each other, on any set of operations.
#![allow(unsafe_code)]

mod batch;
mod messages;
mod serve;
mod signal;
mod wire;
mod word;

pub use batch::AtomicBatch;
pub use word::{Atomic, AtomicWord};

use super::core::{Engine, Injection};
use super::datatype::Operation;
use super::events::OpError;
use super::limits::internal;
use super::location::Target;
use super::thread::ThreadCtx;
use super::token::Counts;
use super::traced::{Span, span};
use argonet_am::{AmError, HandlerTable};
use argonet_conduit::Conduit;
use argonet_event::{Category, Event};
use argonet_trace::Kind;

/// The category of implicit operations that an operation counts for.
#[must_use]
pub(super) fn category_of(operation: Operation) -> Category {
    match operation {
        Operation::Set => Category::Put,
        Operation::Get => Category::Get,
        _ => Category::Rmw,
    }
}

/// An operation that failed is no event of a trace.
#[inline(always)]
fn forget<T>(span: &mut Option<Span<'_>>, outcome: &Result<T, OpError>) {
    if let (Some(span), Err(_)) = (span, outcome) {
        span.forget();
    }
}

const NAME: &str = "an atomic operation";

/// Takes the indices of the messages that [`Engine::serve`] handles.
pub(super) fn register(handlers: &mut HandlerTable) -> Result<(), AmError> {
    handlers.reserve_internal(internal::RATOMIC, "argonet::ratomic")?;
    handlers.reserve_internal(internal::RATOMIC_DONE, "argonet::ratomic_done")?;
    handlers.reserve_internal(internal::RATOMIC_BATCH, "argonet::ratomic_batch")?;
    handlers.reserve_internal(internal::RATOMIC_BATCH_DONE, "argonet::ratomic_batch_done")?;
    handlers.reserve_internal(internal::SIGNAL, "argonet::signal")
}

impl<C: Conduit> Engine<C> {
    /// Does an operation and returns the value before, or a zero if it does not fetch.
    ///
    /// Sequentially consistent with all other such operations.
    ///
    /// # Errors
    /// A word outside its segment or not aligned, a rank that does not exist, a call from inside a
    /// handler. A word that only its owner knows to be outside ends the job.
    ///
    /// # Panics
    /// If there is no such operation on the type.
    #[inline]
    pub fn atomic<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
    ) -> Result<T, OpError> {
        // The usual path is apart from all others, so that it is a handful of instructions.
        if ctx.is_free()
            && let Some(before) = self.atomic_mapped(target, what)
        {
            return Ok(before);
        }
        self.atomic_otherwise(ctx, target, what)
    }

    #[inline(never)]
    fn atomic_otherwise<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
    ) -> Result<T, OpError> {
        let _reading = ctx.reading(what.operation == Operation::Get);
        ctx.permit(NAME, self.rank)?;
        let mut span = self.atomic_span::<T>(ctx, Kind::Atomic, target);
        let outcome = match self.atomic_here(target, what) {
            Ok(None) => self.atomic_awaited(ctx, target, what),
            Ok(Some(before)) => Ok(before),
            Err(error) => Err(error),
        };
        forget(&mut span, &outcome);
        outcome
    }

    /// Starts an operation and returns the event of its completion, when the value before is at
    /// `result` if it fetches.
    ///
    /// # Safety
    /// `result` is null, if the value is not wanted, or writable until the event is complete; it
    /// counts for nothing if the operation does not fetch.
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic); with [`Injection::Immediate`] also that there is no room or no
    /// handle for it, and nothing has been sent then.
    ///
    /// # Panics
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub unsafe fn atomic_start<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
        result: *mut T,
        injection: Injection,
    ) -> Result<Event, OpError> {
        if ctx.is_free()
            && let Some(before) = self.atomic_mapped(target, what)
        {
            // SAFETY: the caller's promise.
            unsafe { what.store_fetched(before, result) };
            return Ok(Event::DONE);
        }
        let counts = Counts::Explicitly;
        // SAFETY: the caller's promise.
        unsafe { self.atomic_start_otherwise(ctx, target, what, result, counts, injection) }
    }

    /// Starts an operation that counts for the thread's access region, or else for its implicit
    /// operations: a [`Operation::Set`] as a put, a [`Operation::Get`] as a get, any other as
    /// [`Category::Rmw`].
    ///
    /// # Safety
    /// As [`atomic_start`](Self::atomic_start), until the implicit operations, or the region, are
    /// complete.
    ///
    /// # Errors
    /// As [`atomic_start`](Self::atomic_start).
    ///
    /// # Panics
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub unsafe fn atomic_start_implicit<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
        result: *mut T,
        injection: Injection,
    ) -> Result<(), OpError> {
        if ctx.is_free()
            && let Some(before) = self.atomic_mapped(target, what)
        {
            // SAFETY: the caller's promise.
            unsafe { what.store_fetched(before, result) };
            return Ok(());
        }
        let counts = Counts::Implicitly;
        // SAFETY: the caller's promise.
        unsafe { self.atomic_start_otherwise(ctx, target, what, result, counts, injection) }?;
        Ok(())
    }

    #[inline(never)]
    unsafe fn atomic_start_otherwise<T: AtomicWord>(
        &self,
        ctx: &ThreadCtx,
        target: Target,
        what: Atomic<T>,
        result: *mut T,
        counts: Counts,
        injection: Injection,
    ) -> Result<Event, OpError> {
        ctx.permit(NAME, self.rank)?;
        let kind = match counts {
            Counts::Explicitly => Kind::AtomicNb,
            Counts::Implicitly => Kind::AtomicNbi,
        };
        let mut span = self.atomic_span::<T>(ctx, kind, target);
        let outcome = match self.atomic_here(target, what) {
            Ok(Some(before)) => {
                // SAFETY: the caller's promise.
                unsafe { what.store_fetched(before, result) };
                Ok(Event::DONE)
            }
            // SAFETY: the caller's promise.
            Ok(None) => unsafe {
                self.atomic_unmapped(ctx, target, what, result, counts, injection)
            },
            Err(error) => Err(error),
        };
        forget(&mut span, &outcome);
        outcome
    }

    #[inline(always)]
    fn atomic_span<'c, T>(
        &self,
        ctx: &'c ThreadCtx,
        kind: Kind,
        target: Target,
    ) -> Option<Span<'c>> {
        let mut span = span(ctx, kind);
        if let Some(span) = &mut span {
            span.describe(self.about_bytes(target.rank(), size_of::<T>(), 0, target.place()));
        }
        span
    }

    /// Does it now if the word is known to be mapped here.
    #[inline(always)]
    fn atomic_mapped<T: AtomicWord>(&self, target: Target, what: Atomic<T>) -> Option<T> {
        let Target::Segment { rank, offset } = target else {
            return None;
        };
        let place = self.directory.resolve(rank, offset, size_of::<T>())?;
        // Segments begin at pages, so that offset and address are aligned alike.
        if !place.cast::<T>().is_aligned() {
            return None;
        }
        // SAFETY: the directory has checked it, it is aligned, and segments are only accessed
        // through the bulk routine and atomics.
        Some(unsafe { T::apply(place.as_ptr().cast(), what) })
    }

    /// Does it now if the word is mapped here.
    #[inline(always)]
    fn atomic_here<T: AtomicWord>(
        &self,
        target: Target,
        what: Atomic<T>,
    ) -> Result<Option<T>, OpError> {
        if let Some(before) = self.atomic_mapped(target, what) {
            return Ok(Some(before));
        }
        self.atomic_here_slow(target, what)
    }

    /// Whether a word is mapped here, so that this processor may change it.
    fn is_word_mapped<T: AtomicWord>(&self, word: Target) -> Result<bool, OpError> {
        let bytes = size_of::<T>();
        if !word.place().is_multiple_of(bytes as u64) {
            return Err(OpError::Unaligned {
                rank: self.rank,
                peer: word.rank(),
                place: word.place(),
                bytes,
            });
        }
        match word {
            // The segment may have grown.
            Target::Segment { rank, offset } => Ok(self.ensure_mapped(rank, offset, bytes)?),
            Target::Bound(place) => Ok(place.rank == self.rank),
        }
    }

    #[cold]
    #[inline(never)]
    fn atomic_here_slow<T: AtomicWord>(
        &self,
        target: Target,
        what: Atomic<T>,
    ) -> Result<Option<T>, OpError> {
        if !self.is_word_mapped::<T>(target)? {
            return Ok(None);
        }
        let bytes = size_of::<T>();
        let place = match target {
            Target::Segment { rank, offset } => self.directory.resolve(rank, offset, bytes),
            Target::Bound(place) => Some(self.atomic_own(place, what.operation, bytes)),
        };
        // SAFETY: checked by the directory, or bound by a client that promised that it is accessed
        // as segments are; aligned, as was just checked.
        Ok(place.map(|place| unsafe { T::apply(place.as_ptr().cast(), what) }))
    }
}

#[cfg(test)]
mod tests;
