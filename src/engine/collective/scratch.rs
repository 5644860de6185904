//! Memory of calls' own. A member keeps one piece from call to call: new pages cost more than what is done in them.

use core::mem::MaybeUninit;
use parking_lot::Mutex;

/// Aligned for every predefined type.
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What a member keeps at most.
const MOST_KEPT: usize = 4 << 20;

/// Some of it. What is read has been written before: schedules see to that.
#[derive(Default)]
pub(super) struct Scratch(Box<[MaybeUninit<Line>]>);

impl Scratch {
    fn new(bytes: usize) -> Self {
        Self(Box::new_uninit_slice(bytes.div_ceil(size_of::<Line>())))
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
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
        let mut short = spare.take(100);
        assert_eq!((short.bytes(), short.as_mut_ptr() as usize % 64), (128, 0));
        let mut long = spare.take(5000);
        let place = long.as_mut_ptr();
        spare.give(short);
        spare.give(long);
        spare.give(Scratch::new(MOST_KEPT + 1));
        let mut again = spare.take(4000);
        assert_eq!(again.as_mut_ptr(), place);
        assert_ne!(spare.take(4000).as_mut_ptr(), place);
    }
}
