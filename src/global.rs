//! Types of values in global memory, and pointers to it.

use argonet_base::{Rank, SegmentOffset};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A type that may live in memory which other ranks write: every bit pattern is a valid value,
/// there is no padding, no interior mutability and no address.
///
/// Implemented for all types that are `Copy` and `Send` and derive zerocopy's `FromBytes`,
/// `IntoBytes`, `Immutable` and `KnownLayout`: integers, floats, arrays of them, `#[repr(C)]`
/// structs of them. A torn value, seen when two ranks race, is therefore still a value.
///
/// [`argonet::zerocopy`](crate::zerocopy) has the derives, and the attribute `zerocopy` names it to
/// them, so a program needs no dependency on zerocopy:
///
/// ```
/// # use argonet::{SharedArray, World};
/// use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "argonet::zerocopy")]
/// #[repr(C)]
/// struct Body { position: [f64; 3], mass: f64 }
/// # let world = World::init().unwrap();
/// let bodies = SharedArray::<Body>::alloc(&world, 10).unwrap();
/// assert_eq!(bodies.read(&world, 9).mass, 0.0);
/// ```
///
/// Without the derives it does not compile, and the error has the lines to add:
///
/// ```compile_fail,E0277
/// # use argonet::{SharedArray, World};
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Body { position: [f64; 3], mass: f64 }
/// # fn f(world: &World) -> argonet::Result<()> {
/// let bodies = SharedArray::<Body>::alloc(world, 10)?;
/// # Ok(()) }
/// ```
///
/// References, `bool` and `char` are refused, too:
///
/// ```compile_fail,E0277
/// # use argonet::{SharedArray, World};
/// # fn f(world: &World) -> argonet::Result<()> {
/// let flags = SharedArray::<bool>::alloc(world, 1)?;
/// # Ok(()) }
/// ```
/// ```compile_fail,E0277
/// # use argonet::{SharedArray, World};
/// # fn f(world: &World) -> argonet::Result<()> {
/// let letters = SharedArray::<char>::alloc(world, 1)?;
/// # Ok(()) }
/// ```
/// ```compile_fail,E0277
/// # use argonet::{SharedArray, World};
/// # fn f(world: &World) -> argonet::Result<()> {
/// let references = SharedArray::<&'static u8>::alloc(world, 1)?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "other ranks cannot read and write values of `{Self}`",
    label = "this type is not `Global`",
    note = "a tuple is not `Global`, so a message with several arguments has a type like `Am<(u8, f64), SeveralValues>`",
    note = "numbers and arrays of them are `Global`; a struct without padding is with these lines:
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = \"argonet::zerocopy\")]
#[repr(C)]",
    note = "the derives are in `argonet::zerocopy`",
    note = "references, `bool` and `char` are never `Global`, as some bytes are no value of them"
)]
pub trait Global: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Send + 'static {}

// So that an error is about `Global` and shows its notes.
#[diagnostic::do_not_recommend]
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Send + 'static> Global for T {}

/// Names one `T` in the segment of some rank.
///
/// It cannot be dereferenced; it can be copied, sent in messages, and used by any rank. Rank and
/// offset are checked where it is used, so a forged or stale pointer yields an error or other data,
/// never undefined behavior.
///
/// Arrays hand it out, for one element ([`SharedArray::ptr`](crate::SharedArray::ptr),
/// [`GlobalSlice::at`](crate::GlobalSlice::at)). Nothing leads from it to the element beside it:
/// several elements are a [`GlobalSlice`](crate::GlobalSlice), which knows where it ends. Pointer
/// arithmetic, and pointers made of a rank and an offset, are in [`raw`](crate::raw).
///
/// ```
/// # use argonet::{GlobalPtr, SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u32>::alloc(&world, 10).unwrap();
/// let p = v.ptr(world.rank(), 3);
/// world.put_value(p, 0x4010_0000).unwrap();
/// let bits: GlobalPtr<f32> = p.cast();
/// assert_eq!(world.get_value(bits).unwrap(), 2.25);
/// assert_eq!((p.rank(), p.offset()), (bits.rank(), bits.offset()));
/// ```
///
/// ```compile_fail,E0599
/// # use argonet::{GlobalPtr, World};
/// # fn f(world: &World, p: GlobalPtr<u32>) {
/// world.put_value(p.add(1), 9).unwrap();
/// # }
/// ```
pub struct GlobalPtr<T: Global> {
    rank: Rank,
    offset: SegmentOffset,
    _type: PhantomData<fn(T) -> T>,
}

impl<T: Global> GlobalPtr<T> {
    /// A pointer to `offset` bytes from the start of the segment of `rank`.
    ///
    /// Checked when used.
    #[inline(always)]
    pub(crate) const fn new(rank: Rank, offset: SegmentOffset) -> Self {
        Self {
            rank,
            offset,
            _type: PhantomData,
        }
    }

    /// The rank whose segment it points into.
    ///
    /// See the example of [`GlobalPtr`].
    #[inline(always)]
    #[must_use]
    pub const fn rank(self) -> Rank {
        self.rank
    }

    /// Bytes from the start of that segment.
    ///
    /// See the example of [`GlobalPtr`].
    #[inline(always)]
    #[must_use]
    pub const fn offset(self) -> SegmentOffset {
        self.offset
    }

    /// The pointer `elements` further on.
    ///
    /// Saturates; an offset too large is refused when used.
    #[inline(always)]
    pub(crate) const fn offset_by(self, elements: usize) -> Self {
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64);
        Self::new(
            self.rank,
            SegmentOffset(self.offset.0.saturating_add(bytes)),
        )
    }

    /// The same place seen as another type of the same size.
    ///
    /// See the example of [`GlobalPtr`].
    ///
    /// Another size is refused when compiling, so that words which are changed atomically are not
    /// seen as words of another size by accident:
    ///
    /// ```compile_fail,E0080
    /// # use argonet::{GlobalPtr, World};
    /// # fn f(world: &World, p: GlobalPtr<u64>) {
    /// world.fetch_add(p.cast::<u32>(), 1).unwrap();
    /// # }
    /// # fn main() { f(&World::init().unwrap(), argonet::raw::global_ptr(argonet::Rank(0), argonet::SegmentOffset(0))) }
    /// ```
    ///
    /// [`raw::global_ptr`](crate::raw::global_ptr) makes a pointer to the bytes of a place.
    #[must_use]
    pub const fn cast<U: Global>(self) -> GlobalPtr<U> {
        const {
            assert!(
                size_of::<T>() == size_of::<U>(),
                "a global pointer is cast to a type of the same size; `raw::global_ptr` makes others"
            );
        }
        GlobalPtr::new(self.rank, self.offset)
    }
}

impl<T: Global> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Global> Copy for GlobalPtr<T> {}

impl<T: Global> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.rank, self.offset) == (other.rank, other.offset)
    }
}

impl<T: Global> Eq for GlobalPtr<T> {}

impl<T: Global> Hash for GlobalPtr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.rank, self.offset).hash(state);
    }
}

impl<T: Global> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GlobalPtr<{}>({:?}, {})",
            core::any::type_name::<T>(),
            self.rank,
            self.offset
        )
    }
}

impl<T: Global> serde::Serialize for GlobalPtr<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.rank.0, self.offset.0).serialize(serializer)
    }
}

impl<'de, T: Global> serde::Deserialize<'de> for GlobalPtr<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (rank, offset) = <(u32, u64)>::deserialize(deserializer)?;
        Ok(Self::new(Rank(rank), SegmentOffset(offset)))
    }
}
