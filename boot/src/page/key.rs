//! Values that ranks publish.

use core::mem::size_of;
use core::sync::atomic::{AtomicU64, Ordering};

use static_assertions::const_assert_eq;

use crate::bootstrap::MAX_VALUE_BYTES;

const VALUE_WORDS: usize = MAX_VALUE_BYTES / 8;

/// One published value.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KeySlot {
    /// 0 until published, then length + 1.
    ///
    /// Written by the owner with Release after `value`, read by others with Acquire.
    pub(crate) filled: AtomicU64,
    /// The value in little-endian words.
    ///
    /// Written by the owner once, before `filled`.
    pub(crate) value: [AtomicU64; VALUE_WORDS],
}
const_assert_eq!(size_of::<KeySlot>(), 8 + MAX_VALUE_BYTES);

impl KeySlot {
    /// Publishes a value of at most [`MAX_VALUE_BYTES`]; false if there is one.
    ///
    /// One thread of one process at a time.
    pub(crate) fn fill(&self, value: &[u8]) -> bool {
        if self.filled.load(Ordering::Relaxed) != 0 {
            return false;
        }
        for (word, bytes) in self.value.iter().zip(value.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.filled.store(value.len() as u64 + 1, Ordering::Release);
        true
    }

    /// The value, if there is one.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let bytes = self.filled.load(Ordering::Acquire).checked_sub(1)?;
        let words = self.value.iter();
        let mut value: Vec<u8> = words
            .flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        // A length beyond the slot can only come from a peer that writes where it must not; the
        // value is cut then.
        value.truncate(usize::try_from(bytes).unwrap_or(MAX_VALUE_BYTES));
        Some(value)
    }
}
