//! One element of an array, checked once.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::process;
use crate::shared_array::SharedArray;
use crate::world::{Threading, World};
use argonet_base::Rank;
use argonet_segment::bulk;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// One element of a [`SharedArray`] whose rank and offset were checked when it was made.
///
/// A put or a get through it asks for nothing but the thread's context; where the element is mapped
/// here, only a load or a store remains. So the call succeeds on a mapped element of a lost rank,
/// whose memory stays as it is; on one that is not mapped it fails with
/// [`AmError::PeerLost`](crate::AmError::PeerLost).
///
/// It borrows its array, so it cannot name memory that was given back, and it cannot be sent in a
/// message: a peer that forged one would pass the check. A [`GlobalPtr`] travels, and is checked at
/// every use.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u64>::alloc(&world, 4).unwrap();
/// let counter = v.element(&world, world.rank(), 2).unwrap();
/// world.put_at(&counter, 41).unwrap();
/// let before = world.get_at(&counter).unwrap();
/// world.put_at(&counter, before + 1).unwrap();
/// assert_eq!(v.read(&world, 2), 42);
/// ```
///
/// ```compile_fail,E0505
/// # use argonet::{SharedArray, World};
/// # fn f(world: &World, v: SharedArray<u64>) {
/// let counter = v.element(world, world.rank(), 2).unwrap();
/// v.free(world).unwrap();
/// world.put_at(&counter, 41).unwrap();
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use argonet::GlobalRef;
/// fn is_sent<T: serde::Serialize>(_: T) {}
/// # fn f(counter: GlobalRef<'static, u64>) {
/// is_sent(counter);
/// # }
/// ```
pub struct GlobalRef<'a, T: Global> {
    at: GlobalPtr<T>,
    /// Where it is mapped in this process, if it is.
    ///
    /// The array keeps it mapped.
    mapped: Option<NonNull<u8>>,
    _array: PhantomData<&'a SharedArray<T>>,
}

// SAFETY: it is an address in a shared mapping, which every thread of the process has, and is used
// by calls of a world alone: those of a `World<Seq>` stay on its thread whichever thread holds the
// reference.
unsafe impl<T: Global> Send for GlobalRef<'_, T> {}
// SAFETY: as above; it has nothing that changes.
unsafe impl<T: Global> Sync for GlobalRef<'_, T> {}

impl<T: Global> Clone for GlobalRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Global> Copy for GlobalRef<'_, T> {}

impl<T: Global> fmt::Debug for GlobalRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.mapped.is_some() {
            "mapped"
        } else {
            "not mapped"
        };
        write!(f, "{:?} ({how})", self.at)
    }
}

impl<T: Global> SharedArray<T> {
    /// Element `i` of the part of `rank`, checked for [`World::put_at`] and [`World::get_at`].
    ///
    /// See the example of [`GlobalRef`].
    ///
    /// # Errors
    /// A rank that does not exist.
    ///
    /// # Panics
    /// If there is no element `i`.
    pub fn element<M: Threading>(
        &self,
        world: &World<M>,
        rank: Rank,
        i: usize,
    ) -> Result<GlobalRef<'_, T>> {
        let at = self.ptr(rank, i);
        let mapped = world.reach(at)?;
        Ok(GlobalRef {
            at,
            mapped,
            _array: PhantomData,
        })
    }
}

impl<T: Global> GlobalRef<'_, T> {
    /// The pointer to it, which may be sent in messages.
    ///
    /// See the example of [`GlobalRef`].
    #[must_use]
    pub const fn ptr(&self) -> GlobalPtr<T> {
        self.at
    }

    /// Where this call may load and store it.
    #[inline(always)]
    fn place(&self) -> Option<NonNull<u8>> {
        // In a handler, with a payload prepared, or in a traced program the engine makes the call.
        self.mapped.filter(|_| process::with(|ctx| ctx.is_free()))
    }
}

impl<M: Threading> World<M> {
    /// Writes one value, as [`put_value`](Self::put_value) does.
    ///
    /// See the example of [`GlobalRef`].
    ///
    /// # Errors
    /// A call from inside a handler; a lost rank, as [`GlobalRef`] says.
    #[inline]
    pub fn put_at<T: Global>(&self, at: &GlobalRef<'_, T>, value: T) -> Result<()> {
        let Some(place) = at.place() else {
            return self.put_unmapped(at.at, value);
        };
        // SAFETY: `World::reach` gave the place of a `T` in a mapped segment. The array that `at`
        // borrows keeps the directory, which unmaps nothing while it lives. A `Global` type has no
        // padding.
        unsafe { bulk::put_value(place.as_ptr(), value) };
        Ok(())
    }

    /// Reads one value, as [`get_value`](Self::get_value) does.
    ///
    /// See the example of [`GlobalRef`].
    ///
    /// # Errors
    /// As [`put_at`](Self::put_at).
    #[inline]
    pub fn get_at<T: Global>(&self, at: &GlobalRef<'_, T>) -> Result<T> {
        let Some(place) = at.place() else {
            return self.get_unmapped(at.at);
        };
        // SAFETY: as in `put_at`; any bytes are a value of a `Global` type.
        Ok(unsafe { bulk::get_value(place.as_ptr()) })
    }
}
