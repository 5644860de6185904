//! Puts that signal, and waits for them.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::global::{Global, GlobalPtr};
use crate::global_slice::GlobalSlice;
use crate::process;
use crate::world::{Threading, World};
use argonet_engine::{Atomic, Operation, Side};

/// A change of a word at the target of a put, by which the target knows that the values are there.
///
/// ```
/// use argonet::{SharedArray, Signal};
/// # let world = argonet::World::init().unwrap();
/// let counts = SharedArray::<u64>::alloc(&world, 2).unwrap();
/// let (me, next) = (world.rank(), world.rank_offset(1));
/// world.signal(Signal::add(counts.ptr(next, 0), 2)).unwrap();
/// world.signal(Signal::set(counts.ptr(next, 1), 7)).unwrap();
/// assert_eq!(world.wait_signal(counts.ptr(me, 0), |count| count >= 2).unwrap(), 2);
/// assert_eq!(world.wait_signal(counts.ptr(me, 1), |flag| flag != 0).unwrap(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    word: GlobalPtr<u64>,
    operation: Operation,
    operand: u64,
}

impl Signal {
    /// Stores `value` in the word, as a flag; of several signals any may be the last.
    ///
    /// See the example of [`Signal`].
    #[must_use]
    pub const fn set(word: GlobalPtr<u64>, value: u64) -> Self {
        Self {
            word,
            operation: Operation::Set,
            operand: value,
        }
    }

    /// `value` is added to the word, as a counter; it wraps around.
    ///
    /// See the example of [`Signal`].
    #[must_use]
    pub const fn add(word: GlobalPtr<u64>, value: u64) -> Self {
        Self {
            word,
            operation: Operation::Add,
            operand: value,
        }
    }
}

impl<M: Threading> World<M> {
    /// Writes a slice, and changes a word of the same rank when the values lie there (as
    /// `shmem_put_signal` of OpenSHMEM 1.5).
    ///
    /// `values` may be written again when this returns. Over a network it is one message, where a
    /// put, a wait and an atomic operation are two round trips, and this waits, polling, only while
    /// there is no room. Above [`Limits::long`](crate::Limits::long) bytes it is a put and an
    /// atomic operation, and this waits for both.
    ///
    /// The target reads the values once [`wait_signal`](Self::wait_signal), or an atomic operation,
    /// has shown it the word changed; over a network it has to poll for that. Unlike in OpenSHMEM
    /// no barrier completes them; [`drain`](Self::drain) does. A signal stands for its own values
    /// alone: nothing orders several, nor puts that are under way, so count with [`Signal::add`] to
    /// know that several have arrived. The change is atomic with respect to all atomic operations.
    ///
    /// Free neither slice nor word before the target has seen the signal, or all ranks have called
    /// [`drain`](Self::drain): a late one would change memory that is used for something else by
    /// then.
    ///
    /// ```
    /// use argonet::{SharedArray, Signal};
    /// # let world = argonet::World::init().unwrap();
    /// let there = SharedArray::<f64>::alloc(&world, 3).unwrap();
    /// let arrived = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let next = world.rank_offset(1);
    /// let signal = Signal::add(arrived.ptr(next, 0), 1);
    /// world.put_signal(there.on(next), &[1.0, 2.0, 3.0], signal).unwrap();
    /// world.wait_signal(arrived.ptr(world.rank(), 0), |count| count == 1).unwrap();
    /// assert_eq!(there.read(&world, 2), 3.0);
    /// ```
    ///
    /// # Errors
    /// As [`put_from`](Self::put_from); [`Error::SignalElsewhere`]; a word outside its segment or
    /// not aligned. Nothing has been written then; but after
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) the values may lie there without a signal.
    /// Values of a call without an error may not have arrived, either, where the target is lost.
    pub fn put_signal<T: Global>(
        &self,
        to: GlobalSlice<T>,
        values: &[T],
        signal: Signal,
    ) -> Result<()> {
        to.check_len(values.len())?;
        let Signal {
            word,
            operation,
            operand,
        } = signal;
        if word.rank() != to.rank() {
            return Err(Error::SignalElsewhere {
                word: word.rank(),
                expected: to.rank(),
            });
        }
        let what = Atomic {
            operation,
            operand1: operand,
            operand2: 0,
        };
        let put = Self::transfer_of(to, Side::Put(values.as_ptr().cast()));
        let word = Self::target_of(word);
        // SAFETY: `check_len` has found the slice to be as long as the transfer.
        process::with(|ctx| unsafe { self.engine().put_signal(ctx, put, word, what) })?;
        Ok(())
    }

    /// Changes a word of a rank, without values; there is no reply.
    ///
    /// As [`put_signal`](Self::put_signal) without values.
    ///
    /// See the example of [`Signal`].
    ///
    /// # Errors
    /// As [`put_signal`](Self::put_signal).
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.put_signal(GlobalSlice::new(signal.word, 0), &[], signal)
    }

    /// Polls until `done` is true of a word of this rank; returns the value of which it was.
    ///
    /// It waits as [`wait_until`](Self::wait_until) does. Signals wake it; a change by a neighbor's
    /// plain put or atomic operation may be noticed half a second late, if this rank sleeps. The
    /// values of every put whose signal is in that value can be read after this. It does not end
    /// because a rank that should signal is lost.
    ///
    /// See the example of [`put_signal`](Self::put_signal).
    ///
    /// # Errors
    /// [`Error::SignalElsewhere`] for a word of another rank, a word outside the segment or not
    /// aligned, or a call from inside a handler.
    pub fn wait_signal(&self, word: GlobalPtr<u64>, done: impl FnMut(u64) -> bool) -> Result<u64> {
        if word.rank() != self.rank() {
            return Err(Error::SignalElsewhere {
                word: word.rank(),
                expected: self.rank(),
            });
        }
        let word = Self::target_of(word);
        Ok(process::with(|ctx| {
            self.engine().wait_signal(ctx, word, done)
        })?)
    }
}
