//! Non-contiguous puts and gets of GASNet-1.
//!
//! Strides are unsigned, and the first count is the length of an element.

use core::ffi::c_void;

use argonet_engine::Direction::{self, Get, Put};
use argonet_engine::Piece;
use argonet_event::Event;

use crate::export::export;
use crate::legacy::permit::user;
use crate::vis::{Call, Indexed, Strided, Vector};

/// `gasnet_memvec_t`, which is `gex_Memvec_t` with other names.
#[repr(transparent)]
pub(super) struct LegacyPiece(Piece);

type AddressList = *const *mut c_void;

fn call(function: &'static str, rank: u32, direction: Direction) -> Call {
    Call::new(function, user(function).world.handle(), rank, direction, 0)
}

fn vector(
    dst_count: usize,
    dst: *const LegacyPiece,
    src_count: usize,
    src: *const LegacyPiece,
) -> Vector {
    Vector {
        dst_count,
        dst: dst.cast(),
        src_count,
        src: src.cast(),
    }
}

/// # Safety
/// `counts` has one entry more than there are levels.
unsafe fn strided(
    dst: *mut c_void,
    dst_strides: *const usize,
    src: *mut c_void,
    src_strides: *const usize,
    counts: *const usize,
    levels: usize,
) -> Strided {
    // No counts are no elements.
    let element = match counts.is_null() {
        true => 0,
        // SAFETY: the caller's promise.
        false => unsafe { counts.read() },
    };
    Strided {
        dst,
        dst_strides: dst_strides.cast(),
        src,
        src_strides: src_strides.cast(),
        element,
        counts: counts.wrapping_add(1),
        levels,
    }
}

export! {
    fn gasnet_putv_bulk(rank: u32, dst_count: usize, dst: *const LegacyPiece, src_count: usize, src: *const LegacyPiece) {
        call("gasnet_putv_bulk", rank, Put).block(&vector(dst_count, dst, src_count, src));
    }
    fn gasnet_puti_bulk(rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize) {
        call("gasnet_puti_bulk", rank, Put).block(&Indexed { dst_count, dst, dst_len, src_count, src, src_len });
    }
    fn gasnet_puts_bulk(rank: u32, dst: *mut c_void, dst_strides: *const usize, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_puts_bulk", rank, Put).block(&strided(dst, dst_strides, src, src_strides, counts, levels)) };
    }
    fn gasnet_putv_nb_bulk(rank: u32, dst_count: usize, dst: *const LegacyPiece, src_count: usize, src: *const LegacyPiece) -> Event {
        call("gasnet_putv_nb_bulk", rank, Put).explicit(&vector(dst_count, dst, src_count, src))
    }
    fn gasnet_puti_nb_bulk(rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize) -> Event {
        call("gasnet_puti_nb_bulk", rank, Put).explicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gasnet_puts_nb_bulk(rank: u32, dst: *mut c_void, dst_strides: *const usize, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) -> Event {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_puts_nb_bulk", rank, Put).explicit(&strided(dst, dst_strides, src, src_strides, counts, levels)) }
    }
    fn gasnet_putv_nbi_bulk(rank: u32, dst_count: usize, dst: *const LegacyPiece, src_count: usize, src: *const LegacyPiece) {
        call("gasnet_putv_nbi_bulk", rank, Put).implicit(&vector(dst_count, dst, src_count, src));
    }
    fn gasnet_puti_nbi_bulk(rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize) {
        call("gasnet_puti_nbi_bulk", rank, Put).implicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len });
    }
    fn gasnet_puts_nbi_bulk(rank: u32, dst: *mut c_void, dst_strides: *const usize, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_puts_nbi_bulk", rank, Put).implicit(&strided(dst, dst_strides, src, src_strides, counts, levels)) };
    }
    fn gasnet_getv_bulk(dst_count: usize, dst: *const LegacyPiece, rank: u32, src_count: usize, src: *const LegacyPiece) {
        call("gasnet_getv_bulk", rank, Get).block(&vector(dst_count, dst, src_count, src));
    }
    fn gasnet_geti_bulk(dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize) {
        call("gasnet_geti_bulk", rank, Get).block(&Indexed { dst_count, dst, dst_len, src_count, src, src_len });
    }
    fn gasnet_gets_bulk(dst: *mut c_void, dst_strides: *const usize, rank: u32, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_gets_bulk", rank, Get).block(&strided(dst, dst_strides, src, src_strides, counts, levels)) };
    }
    fn gasnet_getv_nb_bulk(dst_count: usize, dst: *const LegacyPiece, rank: u32, src_count: usize, src: *const LegacyPiece) -> Event {
        call("gasnet_getv_nb_bulk", rank, Get).explicit(&vector(dst_count, dst, src_count, src))
    }
    fn gasnet_geti_nb_bulk(dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize) -> Event {
        call("gasnet_geti_nb_bulk", rank, Get).explicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gasnet_gets_nb_bulk(dst: *mut c_void, dst_strides: *const usize, rank: u32, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) -> Event {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_gets_nb_bulk", rank, Get).explicit(&strided(dst, dst_strides, src, src_strides, counts, levels)) }
    }
    fn gasnet_getv_nbi_bulk(dst_count: usize, dst: *const LegacyPiece, rank: u32, src_count: usize, src: *const LegacyPiece) {
        call("gasnet_getv_nbi_bulk", rank, Get).implicit(&vector(dst_count, dst, src_count, src));
    }
    fn gasnet_geti_nbi_bulk(dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize) {
        call("gasnet_geti_nbi_bulk", rank, Get).implicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len });
    }
    fn gasnet_gets_nbi_bulk(dst: *mut c_void, dst_strides: *const usize, rank: u32, src: *mut c_void, src_strides: *const usize, counts: *const usize, levels: usize) {
        // SAFETY: as the header asks.
        unsafe { call("gasnet_gets_nbi_bulk", rank, Get).implicit(&strided(dst, dst_strides, src, src_strides, counts, levels)) };
    }
}
