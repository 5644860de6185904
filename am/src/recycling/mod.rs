//! Receive buffers that fill from their beginning and are used again as a whole, without the memory
//! itself.
//!
//! The buffers stand in a chain. A request goes behind the last one in the first buffer of the
//! chain; when less than a chunk is left there, the buffer leaves the chain (is *unlinked*). When
//! all of its requests have been handled, it comes back, empty, at the end. Portals does so with
//! locally managed memory descriptors, and any ring of large buffers can.
//!
//! **How much may be promised.** A handled request gives its credits back at once, its buffer only
//! with the last one in it. Let there be `b` buffers of `k` chunks, and `(b - 1) x (k - 1)` chunks
//! promised ([`Space::credits`](crate::credit::Space::credits)). A request finds no buffer only if
//! all `b` are unlinked; each then holds more than `k - 1` chunks. If requests are handled in the
//! order of their arrival, those that are not handled lie one behind the other: the first buffer
//! has at least one of them, all other `b - 1` are full of them. That is more than was promised, so
//! it does not happen. If they are handled in any order, as by several threads, one slow handler in
//! each buffer holds all of them, and credits do not exclude that the space is full. Then
//! [`Chain::place`] says [`Full`], and the request is pushed back; it is never lost.
// spec P8: buffers are chained, unlinked when less than a chunk is left, and linked again when all
// their requests have run.

use crate::credit::Space;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// Where a request lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which buffer.
    pub buffer: u32,
    /// Where in it, in bytes.
    pub offset: u32,
}

/// No buffer of the chain has room.
///
/// The request is to be pushed back and sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no receive buffer has room for {len} bytes: all {buffers} are full and wait for handlers ({waiting} requests)"
)]
pub struct Full {
    /// Length of the request.
    pub len: u32,
    /// Buffers.
    pub buffers: u32,
    /// Requests that were not handled.
    pub waiting: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    used: u32,
    waiting: u32,
    unlinked: bool,
}

/// Outcome for a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handled {
    /// Others of its requests wait, or it is still being filled.
    Kept,
    /// It is empty and stands at the end of the chain: give it to the network again.
    Relinked(u32),
}

/// The chain of receive buffers of a rank.
#[derive(Debug)]
pub struct Chain {
    buffers: Vec<Buffer>,
    /// Buffers that the network may fill, the first one first.
    linked: VecDeque<u32>,
    chunk: u32,
    size: u32,
    waiting: u32,
}

impl Chain {
    /// All buffers of a space, empty.
    #[must_use]
    pub fn new(space: &Space) -> Self {
        Self {
            buffers: vec![Buffer::default(); space.buffers as usize],
            linked: (0..space.buffers).collect(),
            chunk: space.costs.chunk_bytes,
            size: space.chunks.saturating_mul(space.costs.chunk_bytes),
            waiting: 0,
        }
    }

    /// Where the next request of `len` bytes goes, and whether its buffer was unlinked by it.
    ///
    /// # Errors
    /// [`Full`].
    ///
    /// # Panics
    /// If it is longer than a chunk: no request is.
    pub fn place(&mut self, len: u32) -> Result<(Place, bool), Full> {
        assert!(
            len <= self.chunk,
            "a request of {len} bytes, larger than a chunk of {}",
            self.chunk
        );
        let full = Full {
            len,
            buffers: self.buffers.len() as u32,
            waiting: self.waiting,
        };
        let &number = self.linked.front().ok_or(full)?;
        let buffer = self.buffers.get_mut(number as usize).ok_or(full)?;
        let place = Place {
            buffer: number,
            offset: buffer.used,
        };
        // A linked buffer has at least a chunk left.
        buffer.used += len;
        buffer.waiting += 1;
        self.waiting += 1;
        buffer.unlinked = self.size - buffer.used < self.chunk;
        if buffer.unlinked {
            self.linked.pop_front();
        }
        Ok((place, buffer.unlinked))
    }

    /// A request was handled; its bytes are not needed any more.
    ///
    /// # Panics
    /// If the buffer has no request that waits.
    pub fn handled(&mut self, place: Place) -> Handled {
        let buffer = self.buffers.get_mut(place.buffer as usize);
        let buffer = buffer.filter(|buffer| buffer.waiting > 0);
        let Some(buffer) = buffer else {
            panic!(
                "buffer {} has no request that was not handled",
                place.buffer
            );
        };
        buffer.waiting -= 1;
        self.waiting -= 1;
        if buffer.waiting > 0 || !buffer.unlinked {
            return Handled::Kept;
        }
        *buffer = Buffer::default();
        self.linked.push_back(place.buffer);
        Handled::Relinked(place.buffer)
    }

    /// Requests that were not handled.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Buffers that the network may fill.
    #[must_use]
    pub fn linked(&self) -> u32 {
        self.linked.len() as u32
    }
}
