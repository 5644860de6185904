//! Slots for payloads of large mediums on their way out.

use super::config::LARGE_BYTES;
use argonet_nic::portals::DescriptorHandle;
use argonet_segment::bulk;
use core::ptr::NonNull;

/// Slots of requests, then those of replies.
pub(super) struct Slots {
    start: NonNull<u8>,
    /// Of requests, and of replies.
    count: u32,
    pub(super) descriptor: DescriptorHandle,
}

// SAFETY: the pointer is to the rank's buffers, which belong to the process and are accessed by
// atomics and `bulk` only.
unsafe impl Send for Slots {}
// SAFETY: as above; only the taker of a slot writes it.
unsafe impl Sync for Slots {}

impl Slots {
    /// # Safety
    /// Twice `count` slots from `start` on are this rank's buffers, used for nothing else, and
    /// covered by the descriptor.
    pub(super) unsafe fn new(start: NonNull<u8>, count: u32, descriptor: DescriptorHandle) -> Self {
        Self {
            start,
            count,
            descriptor,
        }
    }

    /// Slot `number` of replies, among all.
    pub(super) fn of_reply(&self, number: u32) -> u32 {
        self.count + number
    }

    /// The number of a slot among those of replies, if it is one.
    pub(super) fn as_reply(&self, slot: u32) -> Option<u32> {
        slot.checked_sub(self.count)
    }

    /// Where it begins in the descriptor.
    pub(super) fn offset(slot: u32) -> u64 {
        u64::from(slot) * LARGE_BYTES as u64
    }

    /// Writes into a slot.
    ///
    /// # Safety
    /// The caller has taken the slot; `from` is readable for `len` bytes.
    ///
    /// # Panics
    /// If there is no such slot, or it does not fit.
    pub(super) unsafe fn write(&self, slot: u32, from: *const u8, len: usize) {
        assert!(slot < 2 * self.count && len <= LARGE_BYTES, "it fits");
        // SAFETY: the slot is one of those that `new` was promised, and holds `len` bytes; the
        // caller promises the source.
        unsafe {
            let to = self.start.as_ptr().add(slot as usize * LARGE_BYTES);
            bulk::copy(to, from, len);
        }
    }
}
