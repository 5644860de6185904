//! Halves of messages that wait for the other half, and where they lie.

use super::large::{Large, Lies};
use super::stock::Stock;
use super::wire::{Body, HEADER_ARGS, Head, Kind, extent};
use argonet_am::credit::Debt;
use argonet_am::lid_cache::LidCache;
use argonet_am::record::RecordError;
use argonet_am::recycling::Place;
use argonet_am::{MAX_CARRIED, MAX_MEDIUM};
use argonet_segment::bulk;
use core::ptr::NonNull;

/// A message as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) head: Head,
    args: [u32; MAX_CARRIED],
    /// Bytes of the payload.
    pub(super) len: usize,
    /// Where a long goes.
    pub(super) offset: u64,
    /// Where in its chunk the payload is that came with it.
    pub(super) payload_at: usize,
}

impl Parsed {
    /// Reads the `moved` bytes at `from`.
    ///
    /// # Errors
    /// They do not agree with the head.
    ///
    /// # Safety
    /// They can be read.
    #[inline]
    pub(super) unsafe fn read(
        head: Head,
        header: u64,
        from: NonNull<u8>,
        moved: u64,
    ) -> Result<Self, RecordError> {
        let (mut len, offset) = extent(head.kind, header)?;
        let in_chunk = if head.kind.is_split() { 0 } else { len };
        let body = Body::of(head.kind, head.nargs, in_chunk);
        if body.len() as u64 != moved {
            let (len, max) = (body.len() as u64, moved);
            return Err(RecordError::Payload { len, max });
        }
        let mut args = [0; MAX_CARRIED];
        let first = if head.kind == Kind::Short {
            args[0] = header as u32;
            args[1] = (header >> 32) as u32;
            HEADER_ARGS
        } else {
            0
        };
        let copy = |to: *mut u8, at: usize, len: usize| {
            // SAFETY: `at + len` is at most the body's length, which was found to be `moved`; the
            // caller promises those. The target is an array of this function of at least that size:
            // `nargs` is checked by `Head::of`.
            unsafe { bulk::copy(to, from.as_ptr().add(at), len) };
        };
        if body.args > 0 {
            copy(
                args[first..first + body.args].as_mut_ptr().cast(),
                body.before,
                body.args * 4,
            );
        }
        if head.kind == Kind::SplitLong {
            let mut bytes = [0; 8];
            copy(bytes.as_mut_ptr(), 0, 8);
            let long = u64::from_le_bytes(bytes);
            len = usize::try_from(long).map_err(|_| RecordError::Payload {
                len: long,
                max: usize::MAX as u64,
            })?;
        }
        Ok(Self {
            head,
            args,
            len,
            offset,
            payload_at: body.payload_at(),
        })
    }

    pub(super) fn args(&self) -> &[u32] {
        &self.args[..self.head.nargs]
    }

    /// Whether a half with data belongs to it.
    pub(super) fn has_half(&self) -> bool {
        self.head.kind.is_split() && self.len > 0
    }

    /// Whether a half is that of this message.
    pub(super) fn fits(&self, half: &Half) -> bool {
        match half.place {
            Some(_) => self.head.kind == Kind::LargeMedium && self.len <= MAX_MEDIUM.min(half.len),
            None => {
                let same = (self.offset, self.len) == (half.offset, half.len);
                self.head.kind == Kind::SplitLong && same
            }
        }
    }
}

/// A request of which the header is here.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) parsed: Parsed,
    pub(super) debt: Option<Debt>,
    /// Where it lies.
    pub(super) place: Place,
}

/// A reply of which the header is here, in its chunk.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) parsed: Parsed,
    pub(super) chunk: u32,
}

/// Data that is here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    /// Of a large medium.
    pub(super) place: Option<Lies>,
    /// Of a long, in the segment.
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// State of arrivals by the queue of requests.
pub(super) struct Arrivals {
    pub(super) requests: Stock,
    pub(super) large: Large,
    pub(super) halves: LidCache<Request, Half>,
}

/// State of arrivals by the queue that is safe to poll.
pub(super) struct Returns {
    pub(super) large: Large,
    pub(super) halves: LidCache<Reply, Half>,
}
