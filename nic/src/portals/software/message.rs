//! An operation on its way: the initiator's part of it.

use super::bulk_atomic;
use crate::portals::{AtomicKind, AtomicOp, EventKind, PortalIndex};
use argonet_segment::bulk;
use core::ptr::NonNull;

/// The operation at the target, and its memory in this process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Put {
        from: NonNull<u8>,
    },
    Get {
        to: NonNull<u8>,
    },
    Atomic {
        from: NonNull<u8>,
        /// Where the old elements go.
        to: Option<NonNull<u8>>,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    },
}

// SAFETY: the pointers are into bound descriptors, whose memory stays while operations are under
// way, also if another thread carries them on.
unsafe impl Send for Action {}

/// A message as the target sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) action: Action,
    /// Its sender.
    pub(super) initiator: u32,
    pub(super) portal: PortalIndex,
    pub(super) bits: u64,
    pub(super) header: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) link: u64,
}

impl Message {
    /// The operations that the entry must accept.
    #[inline]
    pub(super) fn needs(&self) -> u64 {
        use super::records::{GETS, PUTS};
        match self.action {
            Action::Put { .. } | Action::Atomic { to: None, .. } => PUTS,
            Action::Get { .. } => GETS,
            Action::Atomic { to: Some(_), .. } => PUTS | GETS,
        }
    }

    /// The kinds of events at its start and end.
    pub(super) fn kinds(&self) -> (EventKind, EventKind) {
        match self.action {
            Action::Put { .. } => (EventKind::PutStart, EventKind::PutEnd),
            Action::Get { .. } => (EventKind::GetStart, EventKind::GetEnd),
            Action::Atomic { .. } => (EventKind::AtomicStart, EventKind::AtomicEnd),
        }
    }

    /// Moves the data.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `len` bytes, and so is the action's memory, for
    /// writes only where it is a destination; none of it is accessed by plain loads and stores
    /// meanwhile. For atomics `memory` is aligned to the element.
    #[inline]
    pub(super) unsafe fn carry(&self, memory: NonNull<u8>, len: u64) {
        let bytes = len as usize;
        // SAFETY: the caller's promise covers every access; `copy` itself sees to ranges that
        // overlap.
        unsafe {
            match self.action {
                Action::Put { from } => copy(memory, from, bytes),
                Action::Get { to } => copy(to, memory, bytes),
                Action::Atomic {
                    from,
                    to,
                    op,
                    kind,
                    compare,
                } => bulk_atomic::apply(memory, from, to, bytes, op, kind, compare),
            }
        }
    }
}

/// Bytes that are kept when a rank moves data within its own memory.
const KEPT: usize = 4096;

/// Copies; overlapping bytes arrive as some mix of old and new.
///
/// # Safety
/// As [`bulk::copy`], but that the ranges may overlap.
#[inline]
unsafe fn copy(to: NonNull<u8>, from: NonNull<u8>, len: usize) {
    let apart = to.addr().get().abs_diff(from.addr().get()) >= len;
    if apart {
        // SAFETY: the caller's promise; the ranges do not overlap.
        unsafe { bulk::copy(to.as_ptr(), from.as_ptr(), len) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_overlapping(to, from, len) };
    }
}

/// # Safety
/// As [`copy`].
#[cold]
unsafe fn copy_overlapping(to: NonNull<u8>, from: NonNull<u8>, len: usize) {
    let mut kept = [0_u8; KEPT];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(KEPT);
        // SAFETY: `done + part <= len`, and the array overlaps with nothing.
        unsafe {
            bulk::copy(kept.as_mut_ptr(), from.as_ptr().add(done), part);
            bulk::copy(to.as_ptr().add(done), kept.as_ptr(), part);
        }
        done += part;
    }
}
