//! `gasnet_memset` where the header does not do it by itself: as puts of pieces, which are complete
//! when the call returns.

use core::ffi::{c_int, c_void};

use argonet_event::Event;

use crate::export::export;
use crate::legacy::permit::user;
use crate::rma::Operation;

/// Bytes that are put at a time.
const PIECE: usize = 64 << 10;

/// Fills memory of a rank, with the low byte of a value as C's memset does.
fn fill(function: &'static str, rank: u32, dst: *mut c_void, value: c_int, bytes: usize) {
    let piece = vec![value as u8; bytes.min(PIECE)];
    let put = |at: usize, bytes: usize| {
        let (to, from) = (dst.wrapping_byte_add(at), piece.as_ptr().cast());
        let world = user(function).world.handle();
        Operation::put(function, world, rank, to, from, bytes, 0)
    };
    // All of it, so that a fill that cannot be done whole is not begun.
    put(0, bytes).check();
    for at in (0..bytes).step_by(PIECE) {
        put(at, PIECE.min(bytes - at)).block();
    }
}

export! {
    fn argonet_legacy_memset(rank: u32, dst: *mut c_void, value: c_int, bytes: usize) {
        fill("gasnet_memset", rank, dst, value, bytes);
    }

    fn argonet_legacy_memset_nb(rank: u32, dst: *mut c_void, value: c_int, bytes: usize) -> Event {
        fill("gasnet_memset_nb", rank, dst, value, bytes);
        Event::DONE
    }

    fn argonet_legacy_memset_nbi(rank: u32, dst: *mut c_void, value: c_int, bytes: usize) {
        fill("gasnet_memset_nbi", rank, dst, value, bytes);
    }
}
