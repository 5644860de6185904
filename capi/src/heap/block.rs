//! A block between its guards.

use core::ffi::{CStr, c_char};

use crate::heap::fill::Fill;

/// Bytes of a guard; as many before the client's memory keep that aligned as `malloc` aligns.
pub(super) const GUARD_BYTES: usize = 16;

/// A place in the client's code, `FILE:LINE`: a literal, which the headers pass.
#[derive(Clone, Copy)]
pub(super) struct Place(*const c_char);

// SAFETY: a literal of the program's, which lives and stays as it is until the process ends.
unsafe impl Send for Place {}

impl Place {
    pub(super) fn new(literal: *const c_char) -> Self {
        Self(literal)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_null() {
            return f.write_str("an unknown place");
        }
        // SAFETY: not null, so a literal that ends with 0 (the headers' contract).
        f.write_str(&unsafe { CStr::from_ptr(self.0) }.to_string_lossy())
    }
}

/// A block, known by the address that the client has.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) bytes: usize,
    pub(super) allocated: Place,
    /// Where it was freed, if it is kept after that.
    pub(super) freed: Option<Place>,
}

/// Damage to a block.
pub(super) enum Damage {
    /// A byte so far before the block was written.
    Before(usize),
    /// A byte so far behind its last one.
    Behind(usize),
    /// The byte at this offset was written after the block was freed.
    Freed(usize),
}

fn guard_byte(address: usize, at: usize) -> u8 {
    let mixed = (address ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never 0, which is what is written most.
    (mixed >> 56) as u8 | 1
}

/// Memory for a block with its guards; null if there is none.
pub(super) fn new(bytes: usize) -> *mut u8 {
    let Some(all) = bytes.checked_add(2 * GUARD_BYTES) else {
        return std::ptr::null_mut();
    };
    // SAFETY: any size may be asked for.
    let start = unsafe { libc::malloc(all) }.cast::<u8>();
    if start.is_null() {
        return start;
    }
    // SAFETY: `all` bytes are there: a guard, the block, a guard.
    unsafe {
        let address = start.add(GUARD_BYTES);
        for at in 0..GUARD_BYTES {
            start.add(at).write(guard_byte(address as usize, at));
            let behind = GUARD_BYTES + at;
            address
                .add(bytes + at)
                .write(guard_byte(address as usize, behind));
        }
        address
    }
}

/// Gives the memory of a block back.
///
/// # Safety
/// `address` came from `new` and is not used any more.
pub(super) unsafe fn release(address: *mut u8) {
    // SAFETY: this function's contract: the allocation begins with the guard.
    unsafe { libc::free(address.sub(GUARD_BYTES).cast()) };
}

impl Block {
    /// The first thing that is wrong.
    ///
    /// With `fill`, the block is freed and holds that.
    ///
    /// # Safety
    /// `address` came from `new` with this block's bytes, and was not released.
    pub(super) unsafe fn damage(&self, address: *const u8, fill: Option<Fill>) -> Option<Damage> {
        // SAFETY: this function's contract. The client may write to its memory at any time: bytes
        // are read one by one and volatile, and each is compared with one number.
        let read = |offset: isize| unsafe { address.offset(offset).read_volatile() };
        for at in 0..GUARD_BYTES {
            if read(at as isize - GUARD_BYTES as isize) != guard_byte(address as usize, at) {
                return Some(Damage::Before(GUARD_BYTES - at));
            }
        }
        for at in 0..GUARD_BYTES {
            let should = guard_byte(address as usize, GUARD_BYTES + at);
            if read((self.bytes + at) as isize) != should {
                return Some(Damage::Behind(at + 1));
            }
        }
        let fill = fill?;
        let wrong = (0..self.bytes).find(|&at| read(at as isize) != fill.byte(at));
        wrong.map(Damage::Freed)
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Before(bytes) => write!(f, "was written {bytes} bytes before its begin"),
            Self::Behind(bytes) => write!(f, "was written {bytes} bytes behind its end"),
            Self::Freed(at) => write!(f, "was written at offset {at} after it was freed"),
        }
    }
}
