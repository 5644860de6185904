//! The symmetric heap: every rank allocates the same pieces in the same order, so an array has
//! one offset on all of them.

/// The heap of one segment: pure bookkeeping, the same on every rank.
#[derive(Debug, Clone)]
pub struct Heap {
    /// Free pieces below `top`, sorted by offset, never touching each other.
    free: Vec<Piece>,
    /// Everything from here on is free.
    top: u64,
    /// Bytes that may be used at most.
    limit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    offset: u64,
    len: u64,
}

/// Why an allocation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{wanted} bytes do not fit: the segment may grow to {limit} bytes and {used} are taken; raise \
     GASNET_MAX_SEGSIZE or free arrays"
)]
pub struct HeapError {
    /// Bytes asked for.
    pub wanted: u64,
    /// Bytes in use or in pieces too small.
    pub used: u64,
    /// Largest size of the segment.
    pub limit: u64,
}

/// Pieces start at multiples of a cache line.
const ALIGN: u64 = 64;

impl Heap {
    /// An empty heap of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            free: Vec::new(),
            top: 0,
            limit,
        }
    }

    fn rounded(len: u64) -> Option<u64> {
        len.max(1).checked_next_multiple_of(ALIGN)
    }

    /// Takes `len` bytes and returns their offset: the first piece that fits.
    ///
    /// # Errors
    /// [`HeapError`]; nothing has changed then.
    pub fn allocate(&mut self, len: u64) -> Result<u64, HeapError> {
        let error = HeapError {
            wanted: len,
            used: self.top,
            limit: self.limit,
        };
        let len = Self::rounded(len).ok_or(error)?;
        if let Some(i) = self.free.iter().position(|piece| piece.len >= len) {
            let piece = &mut self.free[i];
            let offset = piece.offset;
            piece.offset += len;
            piece.len -= len;
            if piece.len == 0 {
                self.free.remove(i);
            }
            return Ok(offset);
        }
        let offset = self.top;
        let end = offset
            .checked_add(len)
            .filter(|&end| end <= self.limit)
            .ok_or(error)?;
        self.top = end;
        Ok(offset)
    }

    /// Gives back a piece that [`allocate`](Self::allocate) returned for the same length.
    pub fn release(&mut self, offset: u64, len: u64) {
        let Some(len) = Self::rounded(len) else {
            return;
        };
        debug_assert!(
            offset + len <= self.top,
            "only allocated pieces are released"
        );
        let at = self.free.partition_point(|piece| piece.offset < offset);
        self.free.insert(at, Piece { offset, len });
        self.merge(at);
        if at > 0 {
            self.merge(at - 1);
        }
        if let Some(last) = self.free.last().copied()
            && last.offset + last.len == self.top
        {
            self.top = last.offset;
            self.free.pop();
        }
    }

    fn merge(&mut self, at: usize) {
        if let (Some(&here), Some(&next)) = (self.free.get(at), self.free.get(at + 1))
            && here.offset + here.len == next.offset
        {
            self.free[at].len += next.len;
            self.free.remove(at + 1);
        }
    }

    /// Bytes that may be used at most.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that the segment must have.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn released_memory_is_used_again_and_the_top_sinks() {
        let mut heap = Heap::new(1 << 20);
        let a = heap.allocate(100).unwrap();
        let b = heap.allocate(1).unwrap();
        let c = heap.allocate(64).unwrap();
        assert_eq!((a, b, c), (0, 128, 192));
        heap.release(a, 100);
        assert_eq!(heap.allocate(128).unwrap(), 0);
        heap.release(b, 1);
        heap.release(c, 64);
        assert_eq!(heap.top(), 128);
        heap.release(0, 128);
        assert_eq!(heap.top(), 0);
    }

    #[test]
    fn too_much_is_refused_and_changes_nothing() {
        let mut heap = Heap::new(1024);
        assert!(heap.allocate(1025).is_err());
        assert!(heap.allocate(u64::MAX).is_err());
        assert_eq!(heap.allocate(1024).unwrap(), 0);
        assert!(heap.allocate(1).is_err());
    }

    proptest! {
        #[test]
        fn pieces_never_overlap(steps in prop::collection::vec((any::<bool>(), 1u64..5000, any::<prop::sample::Index>()), 1..200)) {
            let mut heap = Heap::new(1 << 17);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (take, len, index) in steps {
                if take {
                    if let Ok(offset) = heap.allocate(len) {
                        for &(o, l) in &live {
                            prop_assert!(offset + len <= o || o + l <= offset);
                        }
                        prop_assert!(offset + len <= 1 << 17);
                        live.push((offset, len));
                    }
                } else if !live.is_empty() {
                    let (offset, len) = live.swap_remove(index.index(live.len()));
                    heap.release(offset, len);
                }
            }
            for (offset, len) in live {
                heap.release(offset, len);
            }
            prop_assert_eq!(heap.top(), 0);
        }
    }
}
