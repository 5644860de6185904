//! Bytes that lie in several places, as system calls take them.

/// Places of one call, at most.
pub(crate) const MAX_PIECES: usize = 40;

/// Bytes in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) at: *mut u8,
    pub(crate) len: usize,
}

/// Bytes to write, or room to read into, in order.
#[derive(Debug)]
pub(crate) struct Pieces {
    all: [Piece; MAX_PIECES],
    count: usize,
    bytes: usize,
}

impl Pieces {
    pub(crate) const fn new() -> Self {
        let nothing = Piece {
            at: core::ptr::null_mut(),
            len: 0,
        };
        Self {
            all: [nothing; MAX_PIECES],
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
            self.all[self.count] = Piece { at, len };
            self.count += 1;
            self.bytes += len;
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.all[..self.count]
    }

    /// Bytes of all places.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
