//! The bytes of frames that the peer has not taken, in a ring that grows up to a limit.

use super::pieces::Pieces;
use argonet_segment::{SharedBytes, bulk};

/// Bytes of a ring that was used, at least.
const LEAST: usize = 4096;

/// Positions count bytes from the beginning of the stream, without those that lie elsewhere.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    tail: u64,
    head: u64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Box::default(),
            tail: 0,
            head: 0,
        }
    }

    #[inline]
    pub(crate) fn used(&self) -> usize {
        (self.head - self.tail) as usize
    }

    /// Bytes that it holds without growing.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Frees its memory if none of it is in use.
    pub(crate) fn free(&mut self) {
        if self.used() == 0 {
            self.bytes = Box::default();
        }
    }

    /// Writes bytes at the head, of which there is one at least.
    ///
    /// Its user has a limit for [`used`](Self::used).
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let at = self.reserve(bytes.len());
        if at + bytes.len() <= self.bytes.len() {
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        } else {
            let (first, rest) = bytes.split_at(self.bytes.len() - at);
            self.bytes[at..].copy_from_slice(first);
            self.bytes[..rest.len()].copy_from_slice(rest);
        }
    }

    /// Writes a head, which is not empty, and makes room for `len` bytes behind it, which `fill`
    /// writes as below.
    #[inline]
    pub(crate) fn push_both(
        &mut self,
        head: &[u8],
        len: usize,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) {
        let all = head.len() + len;
        let at = self.index_for(all);
        if at + all > self.bytes.len() {
            self.push(head);
            return self.push_with(len, fill);
        }
        self.head += all as u64;
        let (first, rest) = self.bytes[at..at + all].split_at_mut(head.len());
        first.copy_from_slice(head);
        fill(0, rest);
    }

    /// Makes room for `len` bytes at the head and lets `fill(at, place)` write them, in one part or
    /// two: `at` says which of the bytes the place begins with.
    #[inline]
    pub(crate) fn push_with(&mut self, len: usize, mut fill: impl FnMut(usize, &mut [u8])) {
        if len == 0 {
            return;
        }
        let at = self.reserve(len);
        let first = len.min(self.bytes.len() - at);
        fill(0, &mut self.bytes[at..at + first]);
        if first < len {
            fill(first, &mut self.bytes[..len - first]);
        }
    }

    /// Writes a head and takes the room of the bytes behind it, which [`fill`](Self::fill) writes;
    /// the position of those.
    #[inline]
    pub(crate) fn push_head(&mut self, head: &[u8], len: usize) -> u64 {
        // Both at once: the ring grows before anything is where it stays.
        self.index_for(head.len() + len);
        self.push(head);
        let position = self.head;
        self.reserve(len);
        position
    }

    /// Writes bytes that are in use, from a position on.
    pub(crate) fn fill(&mut self, position: u64, bytes: SharedBytes<'_>) {
        debug_assert!(position >= self.tail && position + bytes.len() as u64 <= self.head);
        let at = self.index(position);
        let first = bytes.len().min(self.bytes.len() - at);
        let (to, from) = (self.bytes.as_mut_ptr(), bytes.as_ptr());
        // SAFETY: the bytes are in use, so there are as many in the ring, in one part or two, and
        // only `self` has it.
        unsafe {
            bulk::copy(to.add(at), from, first);
            bulk::copy(to, from.add(first), bytes.len() - first);
        }
    }

    /// Takes `len` bytes at the head; where they begin.
    #[inline]
    fn reserve(&mut self, len: usize) -> usize {
        let at = self.index_for(len);
        self.head += len as u64;
        at
    }

    /// Where the next bytes go, with room for `len`.
    #[inline]
    fn index_for(&mut self, len: usize) -> usize {
        if self.used() + len > self.bytes.len() {
            self.grow(self.used() + len);
        }
        self.index(self.head)
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.bytes.len() - 1)
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        let mut bytes = vec![0; least.next_power_of_two().max(LEAST)].into_boxed_slice();
        let mask = bytes.len() - 1;
        let mut position = self.tail;
        while position < self.head {
            let (from, to) = (self.index(position), position as usize & mask);
            // The new one ends nowhere that the old one does not.
            let end = self.head.min(position + (self.bytes.len() - from) as u64);
            let len = (end - position) as usize;
            bytes[to..to + len].copy_from_slice(&self.bytes[from..from + len]);
            position = end;
        }
        self.bytes = bytes;
    }

    /// A byte that is in use.
    pub(crate) fn byte_mut(&mut self, position: u64) -> &mut u8 {
        debug_assert!((self.tail..self.head).contains(&position));
        let at = self.index(position);
        &mut self.bytes[at]
    }

    /// Gives up everything before a position.
    #[inline]
    pub(crate) fn release(&mut self, to: u64) {
        debug_assert!((self.tail..=self.head).contains(&to));
        self.tail = to;
    }

    /// Adds the places of `len` bytes from a position on.
    #[inline]
    pub(crate) fn pieces(&mut self, from: u64, len: usize, out: &mut Pieces) {
        debug_assert!(from >= self.tail && from + len as u64 <= self.head);
        if len == 0 {
            return;
        }
        let at = self.index(from);
        let first = len.min(self.bytes.len() - at);
        // One pointer for both: another borrow of the bytes would end the first one.
        let start = self.bytes.as_mut_ptr();
        out.add(start.wrapping_add(at), first);
        out.add(start, len - first);
    }
}
