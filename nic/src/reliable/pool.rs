//! Buffers of one datagram each, used again.

use super::datagram::SEAL_BYTES;

/// Bytes of spare buffers that are kept, at most.
const MOST_SPARE_BYTES: usize = 4 << 20;

/// Sizes of buffers for records that are shorter than datagrams can be: many short ones take little
/// more memory than they count in windows.
const SHORTER_BYTES: [usize; 4] = [1 << 10, 2 << 10, 4 << 10, 16 << 10];

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
    /// Of buffers, ascending; the last one is that of datagrams.
    sizes: [usize; SHORTER_BYTES.len() + 1],
    /// By size.
    spare: [Vec<Box<[u8]>>; SHORTER_BYTES.len() + 1],
    spare_bytes: usize,
}

impl Pool {
    pub(super) fn new(datagram_bytes: usize) -> Self {
        let sizes = SHORTER_BYTES.map(|bytes| bytes.min(datagram_bytes));
        let [shortest, short, middle, long] = sizes;
        Self {
            sizes: [shortest, short, middle, long, datagram_bytes],
            spare: Default::default(),
            spare_bytes: 0,
        }
    }

    /// A buffer of a datagram, with a record of so many bytes from `from` on; `None` for one that
    /// does not fit.
    pub(super) fn record(&mut self, from: usize, len: usize) -> Option<Record> {
        let to = from.checked_add(len)?;
        let [.., most] = self.sizes;
        let needed = most.min(to.saturating_add(SEAL_BYTES));
        let size = self.sizes.iter().position(|size| *size >= needed)?;
        let buffer = match self.spare[size].pop() {
            Some(buffer) => {
                self.spare_bytes -= buffer.len();
                buffer
            }
            None => vec![0; self.sizes[size]].into_boxed_slice(),
        };
        (to <= buffer.len()).then_some(Record { buffer, from, to })
    }

    pub(super) fn give_back(&mut self, record: Record) {
        let len = record.buffer.len();
        if let Some(size) = self.sizes.iter().position(|size| *size == len)
            && self.spare_bytes + len <= MOST_SPARE_BYTES
        {
            self.spare_bytes += len;
            self.spare[size].push(record.buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_their_records_and_spare_ones_are_bounded() {
        for (datagram_bytes, len, bytes) in [
            (60_000, 0, 1 << 10),
            (60_000, (1 << 10) - SEAL_BYTES, 1 << 10),
            (60_000, (1 << 10) - SEAL_BYTES + 1, 2 << 10),
            (60_000, 2 << 10, 4 << 10),
            (60_000, 16 << 10, 60_000),
            (60_000, 60_000, 60_000),
            (1232, 1100, 1232),
            (1232, 1232, 1232),
            (400, 1, 400),
        ] {
            let mut pool = Pool::new(datagram_bytes);
            let mut record = pool.record(0, len).unwrap();
            assert_eq!(record.datagram().len(), bytes, "{len} of {datagram_bytes}");
            let at = record.datagram().as_ptr();
            pool.give_back(record);
            let mut again = pool.record(0, len).unwrap();
            assert_eq!(again.datagram().as_ptr(), at, "it is used again");
            assert!(pool.record(0, datagram_bytes + 1).is_none());
        }
        let mut pool = Pool::new(60_000);
        let records: Vec<Record> = (0..6000).map(|_| pool.record(0, 1).unwrap()).collect();
        records
            .into_iter()
            .for_each(|record| pool.give_back(record));
        assert_eq!(pool.spare_bytes, MOST_SPARE_BYTES);
        assert_eq!(pool.spare[0].len(), MOST_SPARE_BYTES >> 10);
    }
}
