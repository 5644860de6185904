//! Payloads of large mediums that come in parts, put together.

use super::config::LARGE_BYTES;
use super::wire::Piece;
use argonet_am::record::RecordError;
use argonet_base::JobRank;
use argonet_segment::bulk;
use core::ptr::NonNull;
use memmap2::MmapMut;
use std::collections::BTreeMap;

/// Payloads of which parts are missing, and memory for them and for those that are whole and not
/// handled.
///
/// A rank sends the parts of a payload in their order, and no other payload of a kind before the
/// last is acknowledged. So there is one of each sender at most, and each part is copied at once:
/// no sender waits for another.
pub(super) struct Assembly {
    /// By sender.
    partial: BTreeMap<u32, Partial>,
    /// Made as it is needed, and kept.
    memory: Vec<WholeBuffer>,
    free: Vec<u32>,
    /// Most of `memory`.
    most: usize,
}

struct Partial {
    lid: u32,
    buffer: u32,
    /// Bytes that have come.
    len: usize,
    total: usize,
}

/// Memory for a payload of any length.
struct WholeBuffer {
    /// Where it begins, on a page.
    start: NonNull<u8>,
    _mapping: MmapMut,
}

// SAFETY: the pointer is to the mapping that the value owns, which is accessed by `bulk` only.
unsafe impl Send for WholeBuffer {}

impl WholeBuffer {
    fn new() -> std::io::Result<Self> {
        let mut mapping = MmapMut::map_anon(LARGE_BYTES)?;
        // A mapping is not at address 0.
        let start = NonNull::new(mapping.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Ok(Self {
            start,
            _mapping: mapping,
        })
    }
}

/// Why a part cannot be used.
#[derive(Debug)]
pub(super) enum PartError {
    /// Its sender may not send it.
    Broken(RecordError),
    /// The system gives no memory.
    NoMemory(std::io::Error),
}

/// A part that is not the next one of its payload.
fn out_of_turn(got: usize, due: usize) -> PartError {
    PartError::Broken(RecordError::Account {
        what: "a part of a payload begins",
        got: got as u64,
        most: due as u64,
    })
}

impl Assembly {
    /// An assembly that has at most so many buffers.
    pub(super) fn new(most: usize) -> Self {
        Self {
            partial: BTreeMap::new(),
            memory: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// Copies a part to its place.
    ///
    /// The buffer of the payload if that was the last one.
    ///
    /// # Errors
    /// The part does not follow the one before; no memory. Nothing was copied.
    ///
    /// # Safety
    /// `len` bytes at `bytes` can be read.
    pub(super) unsafe fn part(
        &mut self,
        from: JobRank,
        lid: u32,
        piece: Piece,
        (bytes, len): (NonNull<u8>, usize),
    ) -> Result<Option<u32>, PartError> {
        let Piece { total, offset } = piece;
        let end = offset.saturating_add(len);
        if len == 0 || end > total || total > LARGE_BYTES {
            return Err(PartError::Broken(RecordError::Payload {
                len: end as u64,
                max: total.min(LARGE_BYTES) as u64,
            }));
        }
        let buffer = match self.partial.get(&from.0) {
            None if offset > 0 => return Err(out_of_turn(offset, 0)),
            None => self.take()?,
            Some(partial) if (partial.lid, partial.len, partial.total) != (lid, offset, total) => {
                return Err(out_of_turn(offset, partial.len));
            }
            Some(partial) => partial.buffer,
        };
        let to = self.memory(buffer);
        // SAFETY: the buffer has `LARGE_BYTES`, which `end` was compared with, and no other code
        // has it; the caller promises the source.
        unsafe { bulk::copy(to.as_ptr().add(offset), bytes.as_ptr(), len) };
        if end == total {
            self.partial.remove(&from.0);
            return Ok(Some(buffer));
        }
        let partial = Partial {
            lid,
            buffer,
            len: end,
            total,
        };
        self.partial.insert(from.0, partial);
        Ok(None)
    }

    fn take(&mut self) -> Result<u32, PartError> {
        if let Some(buffer) = self.free.pop() {
            return Ok(buffer);
        }
        let count = self.memory.len();
        if count >= self.most {
            return Err(PartError::Broken(RecordError::Account {
                what: "payloads in parts",
                got: count as u64 + 1,
                most: self.most as u64,
            }));
        }
        self.memory
            .push(WholeBuffer::new().map_err(PartError::NoMemory)?);
        Ok(count as u32)
    }

    /// Where a payload lies that is all here.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub(super) fn memory(&self, buffer: u32) -> NonNull<u8> {
        self.memory[buffer as usize].start
    }

    /// A payload was handled.
    pub(super) fn handled(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Buffers that are in use.
    pub(super) fn in_use(&self) -> u32 {
        (self.memory.len() - self.free.len()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: JobRank = JobRank(3);

    fn give(
        assembly: &mut Assembly,
        (from, lid): (JobRank, u32),
        (offset, total): (usize, usize),
        bytes: &[u8],
    ) -> Result<Option<u32>, PartError> {
        let start = NonNull::from(bytes).cast();
        // SAFETY: a slice can be read.
        unsafe { assembly.part(from, lid, Piece { total, offset }, (start, bytes.len())) }
    }

    fn read(assembly: &Assembly, buffer: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: a buffer has as many bytes, and nothing writes there.
        unsafe { bulk::copy(bytes.as_mut_ptr(), assembly.memory(buffer).as_ptr(), len) };
        bytes
    }

    #[test]
    fn parts_of_several_senders_are_put_together_each_for_itself_and_buffers_are_used_again() {
        let mut assembly = Assembly::new(2);
        for lid in 0..3 {
            let other = JobRank(4);
            assert_eq!(
                give(&mut assembly, (FROM, lid), (0, 5), b"ab").unwrap(),
                None
            );
            assert_eq!(
                give(&mut assembly, (other, lid), (0, 4), b"wxy").unwrap(),
                None
            );
            assert_eq!(
                give(&mut assembly, (FROM, lid), (2, 5), b"c").unwrap(),
                None
            );
            let first = give(&mut assembly, (FROM, lid), (3, 5), b"de")
                .unwrap()
                .unwrap();
            let second = give(&mut assembly, (other, lid), (3, 4), b"z")
                .unwrap()
                .unwrap();
            assert_eq!(read(&assembly, first, 5), b"abcde");
            assert_eq!(read(&assembly, second, 4), b"wxyz");
            assert_eq!(assembly.in_use(), 2);
            assembly.handled(first);
            assembly.handled(second);
            assert_eq!(assembly.in_use(), 0);
        }
    }

    #[test]
    fn parts_that_do_not_follow_are_refused_and_change_nothing() {
        let mut assembly = Assembly::new(2);
        let mut give = |lid, place, bytes| give(&mut assembly, (FROM, lid), place, bytes);
        let is_broken = |result| matches!(result, Err(PartError::Broken(_)));
        // No beginning, no bytes, bytes behind the end, more than a medium has, an end that does
        // not fit a number.
        assert!(is_broken(give(0, (1, 3), b"a")));
        assert!(is_broken(give(0, (0, 3), b"")));
        assert!(is_broken(give(0, (0, 3), b"abcd")));
        assert!(is_broken(give(0, (0, LARGE_BYTES + 1), b"a")));
        assert!(is_broken(give(0, (usize::MAX, 3), b"a")));
        assert_eq!(give(0, (0, 3), b"a").unwrap(), None);
        // A second one before the end of the first, another total, a part twice, one left out.
        assert!(is_broken(give(1, (0, 3), b"x")));
        assert!(is_broken(give(1, (1, 3), b"x")));
        assert!(is_broken(give(0, (1, 2), b"x")));
        assert!(is_broken(give(0, (0, 3), b"x")));
        assert!(is_broken(give(0, (2, 3), b"x")));
        let buffer = give(0, (1, 3), b"bc").unwrap().unwrap();
        assert_eq!(read(&assembly, buffer, 3), b"abc");
    }

    #[test]
    fn more_payloads_than_there_may_be_are_refused() {
        let mut assembly = Assembly::new(1);
        let buffer = give(&mut assembly, (FROM, 0), (0, 1), b"a")
            .unwrap()
            .unwrap();
        let over = give(&mut assembly, (FROM, 1), (0, 1), b"a");
        assert!(matches!(
            over,
            Err(PartError::Broken(RecordError::Account {
                got: 2,
                most: 1,
                ..
            }))
        ));
        assembly.handled(buffer);
        assert_eq!(
            give(&mut assembly, (FROM, 1), (0, 1), b"a").unwrap(),
            Some(buffer)
        );
    }
}
