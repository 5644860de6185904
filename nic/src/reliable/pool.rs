//! Buffers of one datagram each, used again.

/// Bytes of spare buffers that are kept, at most, and how many of them.
const MOST_SPARE_BYTES: usize = 4 << 20;
const MOST_SPARE: usize = 256;

/// A record that came before its turn, in a buffer of the endpoint's.
#[derive(Debug)]
pub struct Record {
    buffer: Box<[u8]>,
    /// Where in the buffer it is.
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Record {
    /// A copy, in no more memory than it needs.
    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        Self {
            buffer: bytes.into(),
            from: 0,
            to: bytes.len(),
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.from..self.to).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.to - self.from
    }

    /// The whole buffer, with room for header and code.
    pub(super) fn datagram(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.from..self.to]
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    datagram_bytes: usize,
    spare: Vec<Box<[u8]>>,
}

impl Pool {
    pub(super) fn new(datagram_bytes: usize) -> Self {
        Self {
            datagram_bytes,
            spare: Vec::new(),
        }
    }

    /// A buffer of a datagram, with a record of so many bytes from `from` on; `None` for one that
    /// does not fit.
    pub(super) fn record(&mut self, from: usize, len: usize) -> Option<Record> {
        let to = from
            .checked_add(len)
            .filter(|to| *to <= self.datagram_bytes)?;
        let fresh = || vec![0; self.datagram_bytes].into_boxed_slice();
        let buffer = self.spare.pop().unwrap_or_else(fresh);
        Some(Record { buffer, from, to })
    }

    pub(super) fn give_back(&mut self, record: Record) {
        let most = MOST_SPARE.min(MOST_SPARE_BYTES / self.datagram_bytes);
        if self.spare.len() < most && record.buffer.len() == self.datagram_bytes {
            self.spare.push(record.buffer);
        }
    }
}
