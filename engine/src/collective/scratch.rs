//! Memory of calls' own.
//!
//! A member keeps one piece from call to call: new pages cost more than the work in them.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use parking_lot::Mutex;

/// Aligned for every predefined type.
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Most bytes that a member keeps.
const MOST_KEPT: usize = 4 << 20;

/// A piece of scratch memory.
///
/// Schedules write every byte before they read it. It is zero at first all the same: if a peer
/// sends a piece twice, a receive with a hole counts as complete.
///
/// It holds the pointer that the box gave, never the box: receives are posted into it with pointers
/// made of this one, which are used while others are made. A box that is borrowed anew, or moved,
/// would end them.
pub(super) struct Scratch(NonNull<[MaybeUninit<Line>]>);

// SAFETY: it owns the memory, as a box of bytes does.
unsafe impl Send for Scratch {}

impl Scratch {
    fn new(bytes: usize) -> Self {
        let lines = Box::new_zeroed_slice(bytes.div_ceil(size_of::<Line>()));
        Self(NonNull::from(Box::leak(lines)))
    }

    fn bytes(&self) -> usize {
        self.0.len() * size_of::<Line>()
    }

    /// Where it lies, for as long as it lives.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.0.as_ptr().cast()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, in `new`, and no other code gives it back.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The piece that a member keeps, while no call has it.
#[derive(Default)]
pub(super) struct Spare(Mutex<Scratch>);

impl Spare {
    /// At least so many bytes.
    pub(super) fn take(&self, bytes: usize) -> Scratch {
        let mut kept = self.0.lock();
        if bytes > 0 && kept.bytes() >= bytes {
            return core::mem::take(&mut *kept);
        }
        drop(kept);
        Scratch::new(bytes)
    }

    /// A call needs it no more.
    pub(super) fn give(&self, scratch: Scratch) {
        let bytes = scratch.bytes();
        if bytes <= MOST_KEPT {
            let mut kept = self.0.lock();
            if kept.bytes() < bytes {
                *kept = scratch;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_piece_up_to_a_limit_is_kept_for_one_call() {
        let spare = Spare::default();
        assert_eq!(spare.take(0).bytes(), 0);
        let short = spare.take(100);
        assert_eq!((short.bytes(), short.as_ptr() as usize % 64), (128, 0));
        let long = spare.take(5000);
        let place = long.as_ptr();
        spare.give(short);
        spare.give(long);
        spare.give(Scratch::new(MOST_KEPT + 1));
        let again = spare.take(4000);
        assert_eq!(again.as_ptr(), place);
        assert_ne!(spare.take(4000).as_ptr(), place);
    }
}
