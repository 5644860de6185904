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
    /// The word becomes `value`, as a flag.
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
    /// Writes a slice, and changes a word of the same rank when the values lie there (OpenSHMEM
    /// 1.5, `shmem_put_signal`).
    ///
    /// `values` may be written again when this returns, and it waits, polling, only while the
    /// target has no room. The target reads the values after [`wait_signal`](Self::wait_signal), or
    /// an atomic operation, has shown it the word changed; a barrier does not wait for them. The
    /// change is atomic with respect to all atomic operations; signals of several puts come in any
    /// order. Over a network it is one message, where put, wait and atomic operation are two round
    /// trips.
    ///
    /// ```
    /// use argonet::{SharedArray, Signal};
    /// # let world = argonet::World::init().unwrap();
    /// let inbox = SharedArray::<f64>::alloc(&world, 3).unwrap();
    /// let arrived = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let next = world.rank_offset(1);
    /// let signal = Signal::add(arrived.ptr(next, 0), 1);
    /// world.put_signal(inbox.on(next), &[1.0, 2.0, 3.0], signal).unwrap();
    /// world.wait_signal(arrived.ptr(world.rank(), 0), |count| count == 1).unwrap();
    /// assert_eq!(inbox.read(&world, 2), 3.0);
    /// ```
    ///
    /// # Errors
    /// As [`put_from`](Self::put_from), [`Error::SignalElsewhere`], and a word that is not aligned;
    /// nothing has been written then.
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
                values: to.rank(),
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

    /// Changes a word of a rank, which may wait for that, and waits for no answer.
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

    /// Polls until `done` says so of the value of a word of this rank; returns that value.
    ///
    /// It waits as [`wait_until`](Self::wait_until) does, and signals wake it; other changes of
    /// memory that is mapped where they are made may be noticed half a second late, if this rank
    /// sleeps. Whatever was put with a signal that the value has in it can be read after this.
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
                values: self.rank(),
            });
        }
        let word = Self::target_of(word);
        Ok(process::with(|ctx| {
            self.engine().wait_signal(ctx, word, done)
        })?)
    }
}
