//! The two ends of a stream's bytes: a rail, or memory for messages of a rank to itself.

use crate::channel::rail::{Rail, Vital};
use crate::channel::stream::Pieces;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Bytes that a rank has sent to itself and not read, at most.
const OWN_BYTES: usize = 64 << 10;

/// The first rail to a peer, or its substitute.
///
/// Clones are the same.
#[derive(Clone, Debug)]
pub(super) enum Wire<R> {
    /// To another rank.
    Rail(R),
    /// To this rank.
    Own(Arc<Mutex<VecDeque<u8>>>),
}

impl<R: Rail> Wire<R> {
    pub(super) fn own() -> Self {
        Wire::Own(Arc::default())
    }

    /// The rail, if it is one.
    pub(super) fn rail(&self) -> Option<&R> {
        match self {
            Wire::Rail(rail) => Some(rail),
            Wire::Own(_) => None,
        }
    }

    pub(super) fn queued(&self) -> u64 {
        self.rail().map_or(0, Rail::queued)
    }

    pub(super) fn vital(&self) -> Option<Vital> {
        self.rail()?.vital()
    }

    pub(super) fn shut(&self) {
        if let Some(rail) = self.rail() {
            rail.shut();
        }
    }

    /// Whether it is memory that holds something.
    pub(super) fn holds_own(&self) -> bool {
        match self {
            Wire::Rail(_) => false,
            Wire::Own(bytes) => !bytes.lock().is_empty(),
        }
    }

    /// As [`Rail::write`].
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(super) unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let bytes = match self {
            // SAFETY: the caller's promise.
            Wire::Rail(rail) => return unsafe { rail.write(pieces) },
            Wire::Own(bytes) => bytes,
        };
        let mut bytes = bytes.lock();
        let mut room = OWN_BYTES - bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut written = 0;
        for piece in pieces.as_slice() {
            let len = piece.len.min(room);
            let mut copy = vec![0; len];
            // SAFETY: the caller promises the piece.
            unsafe { argonet_segment::bulk::copy(copy.as_mut_ptr(), piece.at, len) };
            bytes.extend(copy);
            written += len;
            room -= len;
        }
        Ok(written)
    }

    /// As [`Rail::read`].
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(super) unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let bytes = match self {
            // SAFETY: the caller's promise.
            Wire::Rail(rail) => return unsafe { rail.read(pieces) },
            Wire::Own(bytes) => bytes,
        };
        let mut bytes = bytes.lock();
        if bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut read = 0;
        for piece in pieces.as_slice() {
            let len = piece.len.min(bytes.len());
            let copy: Vec<u8> = bytes.drain(..len).collect();
            // SAFETY: the caller promises the piece.
            unsafe { argonet_segment::bulk::copy(piece.at, copy.as_ptr(), len) };
            read += len;
        }
        Ok(read)
    }
}
