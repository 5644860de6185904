//! Bytes that lie in several places, as system calls take them.

use argonet_segment::bulk;
use core::mem::MaybeUninit;

/// Places of one call, at most: a control frame, a lent payload, and the payloads of one burst that
/// stay where they are, with twice two parts of the ring around each at its wrap.
const MAX_PIECES: usize = 32;

/// Bytes in one place, as system calls take them.
///
/// Other threads and processes may read and write them meanwhile, so only the system touches them,
/// or [`argonet_segment::bulk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Piece {
    /// The first.
    pub at: *mut u8,
    /// How many.
    pub len: usize,
}

static_assertions::const_assert_eq!(size_of::<Piece>(), size_of::<libc::iovec>());
static_assertions::const_assert_eq!(
    core::mem::offset_of!(Piece, len),
    core::mem::offset_of!(libc::iovec, iov_len)
);

/// Bytes to write, or room to read into, in order.
#[derive(Debug)]
pub struct Pieces {
    /// The first `count` are there.
    all: [MaybeUninit<Piece>; MAX_PIECES],
    count: usize,
    bytes: usize,
}

impl Pieces {
    /// None.
    #[inline]
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            all: [const { MaybeUninit::uninit() }; MAX_PIECES],
            count: 0,
            bytes: 0,
        }
    }

    /// Adds a place, if it is not empty.
    ///
    /// # Panics
    /// If there are too many.
    #[inline]
    pub(crate) fn add(&mut self, at: *mut u8, len: usize) {
        if len > 0 {
            self.all[self.count].write(Piece { at, len });
            self.count += 1;
            self.bytes += len;
        }
    }

    /// All places, none of them empty.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Piece] {
        let first = self.all[..self.count].as_ptr().cast();
        // SAFETY: `add` has written as many as `count` says.
        unsafe { core::slice::from_raw_parts(first, self.count) }
    }

    /// Bytes of all places.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first of them, at most so many bytes, with room for one more place.
    pub(crate) fn first_bytes(&self, most: usize) -> Self {
        let mut first = Self::new();
        for piece in self.as_slice().iter().take(MAX_PIECES - 1) {
            first.add(piece.at, piece.len.min(most - first.bytes));
        }
        first
    }

    /// Those behind the first so many bytes.
    pub(crate) fn behind(&self, mut bytes: usize) -> Self {
        let mut rest = Self::new();
        for piece in self.as_slice() {
            let passed = bytes.min(piece.len);
            bytes -= passed;
            rest.add(piece.at.wrapping_add(passed), piece.len - passed);
        }
        rest
    }

    /// Copies all the bytes into one place, if it has room for them; how many.
    ///
    /// # Safety
    /// All places can be read.
    #[inline]
    pub unsafe fn gather(&self, place: &mut [MaybeUninit<u8>]) -> Option<usize> {
        if self.bytes > place.len() {
            return None;
        }
        let mut at = 0;
        for piece in self.as_slice() {
            let to = place[at..].as_mut_ptr().cast();
            // SAFETY: the caller promises the bytes, and all of them together fit.
            unsafe { bulk::copy(to, piece.at, piece.len) };
            at += piece.len;
        }
        Some(at)
    }
}

/// Places of a call, from where the last copy ended on.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    pieces: &'a [Piece],
    /// How much of the first was used.
    used: usize,
}

impl Cursor<'_> {
    /// Copies to the next places as many of the bytes as they hold; how many.
    ///
    /// # Safety
    /// The places can be written.
    pub(crate) unsafe fn fill(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty()
            && let Some((to, len)) = self.next(rest.len())
        {
            // SAFETY: the caller promises the places, and `to` is within one.
            unsafe { bulk::copy(to, rest.as_ptr(), len) };
            rest = &rest[len..];
        }
        bytes.len() - rest.len()
    }

    /// Copies from the next places as many bytes as there is room for.
    ///
    /// # Safety
    /// The places can be read.
    pub(crate) unsafe fn take(&mut self, mut room: &mut [u8]) {
        while !room.is_empty()
            && let Some((from, len)) = self.next(room.len())
        {
            let (to, rest) = core::mem::take(&mut room).split_at_mut(len);
            // SAFETY: the caller promises the places, and `from` is within one.
            unsafe { bulk::copy(to.as_mut_ptr(), from, len) };
            room = rest;
        }
    }
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(pieces: &'a Pieces) -> Self {
        Self {
            pieces: pieces.as_slice(),
            used: 0,
        }
    }

    /// The next place, of at most `len` bytes; `None` behind the last.
    pub(crate) fn next(&mut self, len: usize) -> Option<(*mut u8, usize)> {
        let (piece, rest) = self.pieces.split_first()?;
        let part = len.min(piece.len - self.used);
        let at = piece.at.wrapping_add(self.used);
        self.used += part;
        if self.used == piece.len {
            (self.pieces, self.used) = (rest, 0);
        }
        Some((at, part))
    }
}
