//! Views of memory that peers may write at any moment.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{copy, fill};

/// An access that does not fit the view it was made through.
///
/// Nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{len_bytes} bytes at offset {offset_bytes} are outside a range of {available_bytes} bytes"
)]
pub struct OutOfRange {
    /// Where the access should have begun.
    pub offset_bytes: usize,
    /// How long it should have been.
    pub len_bytes: usize,
    /// Length of the view.
    pub available_bytes: usize,
}

/// Whether `[offset, offset + len)` lies inside `[0, available)`.
#[inline]
fn check(offset: usize, len: usize, available: usize) -> Result<(), OutOfRange> {
    match offset.checked_add(len) {
        Some(end) if end <= available => Ok(()),
        _ => Err(OutOfRange {
            offset_bytes: offset,
            len_bytes: len,
            available_bytes: available,
        }),
    }
}

/// A read view of memory that peers may write at any moment.
///
/// Bytes may change between two reads, and one read may see some bytes old and some new; copy out
/// once, then check, then use. There is no way to a `&[u8]`: see the [module's
/// documentation](super).
///
/// Reads do not block, order nothing, and may be made by any number of threads at once.
#[derive(Clone, Copy)]
pub struct SharedBytes<'a> {
    ptr: NonNull<u8>,
    len: usize,
    lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: every access through a view goes through the bulk routine, which any number of threads
// may use on the same memory at once; `from_raw` and `from_slice` establish that the memory stays
// valid for the view's lifetime on every thread.
unsafe impl Send for SharedBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes<'_> {}

impl<'a> SharedBytes<'a> {
    /// A view of `len` bytes at `ptr`.
    ///
    /// # Safety
    ///
    /// For the whole of `'a` the memory is valid for reads and initialized (mappings of files
    /// always are), and in this process it is written only through [`copy`], [`fill`] or atomics.
    /// Other processes may write it in any way.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(ptr: NonNull<u8>, len: usize) -> Self {
        Self {
            ptr,
            len,
            lifetime: PhantomData,
        }
    }

    /// A view of memory that nothing writes.
    #[inline]
    #[must_use]
    pub fn from_slice(slice: &'a [u8]) -> Self {
        Self {
            ptr: NonNull::from(slice).cast(),
            len: slice.len(),
            lifetime: PhantomData,
        }
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, for `unsafe` users: reading through it is subject to the rules
    /// that the [module's documentation](super) explains.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// The part of `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// When it does not lie inside this view.
    #[inline]
    pub fn slice(&self, offset: usize, len: usize) -> Result<SharedBytes<'a>, OutOfRange> {
        check(offset, len, self.len)?;
        Ok(Self {
            // SAFETY: `check` establishes offset <= self.len, so the result is inside the view or
            // one past its end.
            ptr: unsafe { self.ptr.add(offset) },
            len,
            lifetime: PhantomData,
        })
    }

    /// Copies the bytes from `offset` on into `dst`, all of it.
    ///
    /// # Errors
    ///
    /// When the view holds fewer bytes from there.
    #[inline]
    pub fn copy_to(&self, offset: usize, dst: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.slice(offset, dst.len())?;
        // SAFETY: `slice` establishes that the source is inside the view, which is valid by the
        // constructor's contract; the destination is exclusively borrowed Rust memory of that
        // length, so it does not overlap memory that a view may cover.
        unsafe { copy(dst.as_mut_ptr(), from.as_ptr(), dst.len()) };
        Ok(())
    }

    /// Copies out one value from any offset, aligned or not.
    ///
    /// # Errors
    ///
    /// When the view does not hold a whole `T` there.
    #[inline]
    pub fn read<T: FromBytes>(&self, byte_offset: usize) -> Result<T, OutOfRange> {
        let from = self.slice(byte_offset, size_of::<T>())?;
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: source as in `copy_to`; the destination is a local of exactly that size. After
        // the copy all its bytes are set, and `FromBytes` says that any bytes are a valid `T`.
        unsafe {
            copy(value.as_mut_ptr().cast(), from.as_ptr(), size_of::<T>());
            Ok(value.assume_init())
        }
    }

    /// Copies out as many values as `dst` holds, from any offset, aligned or not.
    ///
    /// # Errors
    ///
    /// When the view does not hold that many there.
    #[inline]
    pub fn copy_to_slice<T: FromBytes + IntoBytes>(
        &self,
        byte_offset: usize,
        dst: &mut [T],
    ) -> Result<(), OutOfRange> {
        self.copy_to(byte_offset, dst.as_mut_bytes())
    }

    /// Copies the whole view into a new vector.
    ///
    /// Allocates.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes);
        bytes
    }

    /// Copies the whole view behind what is in the vector.
    ///
    /// Allocates if it has no room.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let before = bytes.len();
        bytes.reserve(self.len);
        // SAFETY: source as in `copy_to`; the vector's allocation has room for `self.len` bytes
        // more, all of which are set before the length says so.
        unsafe {
            copy(bytes.as_mut_ptr().add(before), self.ptr.as_ptr(), self.len);
            bytes.set_len(before + self.len);
        }
    }
}

impl fmt::Debug for SharedBytes<'_> {
    /// Address and length only: the content may change while it is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({:p}, {} bytes)", self.ptr, self.len)
    }
}

impl Default for SharedBytes<'_> {
    /// A view of nothing.
    fn default() -> Self {
        Self::from_slice(&[])
    }
}

/// A view through which memory is written that peers may read and write at any moment.
///
/// Writes do not block and order nothing: a peer may see the bytes in any order, and some of
/// them before the call returns. They are in place when the call has returned.
pub struct SharedBytesMut<'a> {
    ptr: NonNull<u8>,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: as for `SharedBytes`; writes go through the bulk routine as well.
unsafe impl Send for SharedBytesMut<'_> {}
// SAFETY: a shared reference to the view gives reads only, as `SharedBytes`.
unsafe impl Sync for SharedBytesMut<'_> {}

impl<'a> SharedBytesMut<'a> {
    /// A view of `len` bytes at `ptr`.
    ///
    /// # Safety
    ///
    /// For the whole of `'a` the memory is valid for reads and writes and initialized, and in
    /// this process it is accessed only through [`copy`], [`fill`], atomics or other views. Other
    /// processes may access it in any way, and several views may cover it at once.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(ptr: NonNull<u8>, len: usize) -> Self {
        Self {
            ptr,
            len,
            lifetime: PhantomData,
        }
    }

    /// A view of memory that nothing else accesses.
    #[inline]
    #[must_use]
    pub fn from_slice(slice: &'a mut [u8]) -> Self {
        Self {
            len: slice.len(),
            ptr: NonNull::from(slice).cast(),
            lifetime: PhantomData,
        }
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, for `unsafe` users.
    #[inline]
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The same memory, to read.
    #[inline]
    #[must_use]
    pub fn as_shared(&self) -> SharedBytes<'_> {
        SharedBytes {
            ptr: self.ptr,
            len: self.len,
            lifetime: PhantomData,
        }
    }

    /// The part of `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// When it does not lie inside this view.
    #[inline]
    pub fn slice_mut(
        &mut self,
        offset: usize,
        len: usize,
    ) -> Result<SharedBytesMut<'_>, OutOfRange> {
        check(offset, len, self.len)?;
        Ok(SharedBytesMut {
            // SAFETY: `check` establishes offset <= self.len, so the result is inside the view or
            // one past its end.
            ptr: unsafe { self.ptr.add(offset) },
            len,
            lifetime: PhantomData,
        })
    }

    /// Copies all of `src` to `offset`.
    ///
    /// # Errors
    ///
    /// When the view has less room from there; nothing is written then.
    #[inline]
    pub fn copy_from(&mut self, offset: usize, src: &[u8]) -> Result<(), OutOfRange> {
        let mut to = self.slice_mut(offset, src.len())?;
        // SAFETY: `slice_mut` establishes that the destination is inside the view, which is valid
        // by the constructor's contract; the source is borrowed Rust memory of that length, which
        // no view covers for writing meanwhile.
        unsafe { copy(to.as_mut_ptr(), src.as_ptr(), src.len()) };
        Ok(())
    }

    /// Writes one value at any offset, aligned or not.
    ///
    /// # Errors
    ///
    /// When the view has no room for a whole `T` there; nothing is written then.
    #[inline]
    pub fn write<T: IntoBytes + Immutable>(
        &mut self,
        byte_offset: usize,
        value: &T,
    ) -> Result<(), OutOfRange> {
        self.copy_from(byte_offset, value.as_bytes())
    }

    /// Writes all values of `src` from any offset on, aligned or not.
    ///
    /// # Errors
    ///
    /// When the view has less room from there; nothing is written then.
    #[inline]
    pub fn copy_from_slice<T: IntoBytes + Immutable>(
        &mut self,
        byte_offset: usize,
        src: &[T],
    ) -> Result<(), OutOfRange> {
        self.copy_from(byte_offset, src.as_bytes())
    }

    /// Sets `len` bytes from `offset` on to `byte`.
    ///
    /// # Errors
    ///
    /// When the view has less room from there; nothing is written then.
    #[inline]
    pub fn fill(&mut self, offset: usize, len: usize, byte: u8) -> Result<(), OutOfRange> {
        let mut to = self.slice_mut(offset, len)?;
        // SAFETY: destination as in `copy_from`.
        unsafe { fill(to.as_mut_ptr(), byte, len) };
        Ok(())
    }
}

impl fmt::Debug for SharedBytesMut<'_> {
    /// Address and length only: the content may change while it is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytesMut({:p}, {} bytes)", self.ptr, self.len)
    }
}
