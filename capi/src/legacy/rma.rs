//! Put and get of GASNet-1, where the header does not do them by itself.
//!
//! Those that are not called bulk have read their source when they return.

use core::ffi::c_void;

use argonet_event::Event;

use crate::export::export;
use crate::legacy::permit::user;
use crate::rma::{LocalOption, Operation, put_value, value_size};

/// A put to a rank of the job.
fn put<'a>(
    function: &'static str,
    rank: u32,
    dst: *mut c_void,
    src: *const c_void,
    bytes: usize,
) -> Operation<'a> {
    Operation::put(
        function,
        user(function).world.handle(),
        rank,
        dst,
        src,
        bytes,
        0,
    )
}

/// A get from a rank of the job.
pub(super) fn get<'a>(
    function: &'static str,
    dst: *mut c_void,
    rank: u32,
    src: *mut c_void,
    bytes: usize,
) -> Operation<'a> {
    Operation::get(
        function,
        user(function).world.handle(),
        dst,
        rank,
        src,
        bytes,
        0,
    )
}

fn value<'a>(
    function: &'static str,
    rank: u32,
    dst: *mut c_void,
    value: &'a u64,
    bytes: usize,
) -> Operation<'a> {
    put_value(
        function,
        user(function).world.handle(),
        rank,
        dst,
        value,
        bytes,
        0,
    )
}

export! {
    fn argonet_legacy_put(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) {
        put("gasnet_put", rank, dst, src, bytes).block();
    }

    fn argonet_legacy_put_bulk(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) {
        put("gasnet_put_bulk", rank, dst, src, bytes).block();
    }

    fn argonet_legacy_put_nb(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) -> Event {
        put("gasnet_put_nb", rank, dst, src, bytes).explicit(&LocalOption::Now)
    }

    fn argonet_legacy_put_nb_bulk(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) -> Event {
        put("gasnet_put_nb_bulk", rank, dst, src, bytes).explicit(&LocalOption::Later)
    }

    fn argonet_legacy_put_nbi(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) {
        put("gasnet_put_nbi", rank, dst, src, bytes).implicit(&LocalOption::Now);
    }

    fn argonet_legacy_put_nbi_bulk(rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize) {
        put("gasnet_put_nbi_bulk", rank, dst, src, bytes).implicit(&LocalOption::Later);
    }

    fn argonet_legacy_get(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) {
        get("gasnet_get", dst, rank, src, bytes).block();
    }

    fn argonet_legacy_get_bulk(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) {
        get("gasnet_get_bulk", dst, rank, src, bytes).block();
    }

    fn argonet_legacy_get_nb(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) -> Event {
        get("gasnet_get_nb", dst, rank, src, bytes).explicit(&LocalOption::Later)
    }

    fn argonet_legacy_get_nb_bulk(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) -> Event {
        get("gasnet_get_nb_bulk", dst, rank, src, bytes).explicit(&LocalOption::Later)
    }

    fn argonet_legacy_get_nbi(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) {
        get("gasnet_get_nbi", dst, rank, src, bytes).implicit(&LocalOption::Later);
    }

    fn argonet_legacy_get_nbi_bulk(dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize) {
        get("gasnet_get_nbi_bulk", dst, rank, src, bytes).implicit(&LocalOption::Later);
    }

    /// Puts of a machine word, whose source need not be in memory.
    fn argonet_legacy_put_word(rank: u32, dst: *mut c_void, word: u64, bytes: usize) {
        value("gasnet_put", rank, dst, &word, bytes).block();
    }

    fn argonet_legacy_put_bulk_word(rank: u32, dst: *mut c_void, word: u64, bytes: usize) {
        value("gasnet_put_bulk", rank, dst, &word, bytes).block();
    }

    fn argonet_legacy_put_nb_word(rank: u32, dst: *mut c_void, word: u64, bytes: usize) -> Event {
        value("gasnet_put_nb", rank, dst, &word, bytes).explicit(&LocalOption::Now)
    }

    fn argonet_legacy_put_nbi_word(rank: u32, dst: *mut c_void, word: u64, bytes: usize) {
        value("gasnet_put_nbi", rank, dst, &word, bytes).implicit(&LocalOption::Now);
    }

    fn argonet_legacy_put_val(rank: u32, dst: *mut c_void, word: u64, bytes: usize) {
        value("gasnet_put_val", rank, dst, &word, bytes).block();
    }

    fn argonet_legacy_put_nb_val(rank: u32, dst: *mut c_void, word: u64, bytes: usize) -> Event {
        value("gasnet_put_nb_val", rank, dst, &word, bytes).explicit(&LocalOption::Now)
    }

    fn argonet_legacy_put_nbi_val(rank: u32, dst: *mut c_void, word: u64, bytes: usize) {
        value("gasnet_put_nbi_val", rank, dst, &word, bytes).implicit(&LocalOption::Now);
    }

    fn argonet_legacy_get_val(rank: u32, src: *mut c_void, bytes: usize) -> u64 {
        const FUNCTION: &str = "gasnet_get_val";
        value_size(FUNCTION, bytes);
        let mut word = 0u64;
        get(FUNCTION, (&raw mut word).cast(), rank, src, bytes).block();
        word
    }
}
