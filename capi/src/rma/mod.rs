//! Put and get, where a header does not do them by itself: memory that is not mapped here or not
//! checked yet, and debug builds.

mod checks;
mod complete;
mod operation;
mod remote;
mod signal;

use core::ffi::{c_int, c_void};

use argonet_event::Event;

use crate::Prototype;
use crate::export::export;
use crate::flags::{IMMEDIATE, SELF_DISPOSITION};
use crate::job::Team;
pub(crate) use checks::value_size;
pub(crate) use complete::{LocalOption, started};
pub(crate) use operation::Operation;
pub(crate) use remote::Remote;

/// All functions that `argonet/rma.h` calls, and those beyond.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [PROTOTYPES, signal::PROTOTYPES].concat()
}

/// Non-zero for an operation that was not started.
pub(crate) fn code(started: bool) -> c_int {
    c_int::from(!started)
}

/// A put of the low bytes of `value`, which outlives the operation.
pub(crate) fn put_value<'a>(
    function: &'static str,
    tm: *const Team,
    rank: u32,
    dst: *mut c_void,
    value: &'a u64,
    bytes: usize,
    flags: u32,
) -> Operation<'a> {
    value_size(function, bytes);
    let src = std::ptr::from_ref(value).cast();
    Operation::put(
        function,
        tm,
        rank,
        dst,
        src,
        bytes,
        flags & !SELF_DISPOSITION,
    )
}

export! {
    fn argonet_rma_put_blocking(tm: *const Team, rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize, flags: u32) -> c_int {
        code(Operation::put("gex_RMA_PutBlocking", tm, rank, dst, src, bytes, flags).block())
    }

    fn argonet_rma_put_nbi(tm: *const Team, rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize, lc_opt: *mut Event, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_RMA_PutNBI";
        let local = LocalOption::of_implicit(FUNCTION, lc_opt);
        code(Operation::put(FUNCTION, tm, rank, dst, src, bytes, flags).implicit(&local))
    }

    fn argonet_rma_put_nb(tm: *const Team, rank: u32, dst: *mut c_void, src: *const c_void, bytes: usize, lc_opt: *mut Event, flags: u32) -> Event {
        const FUNCTION: &str = "gex_RMA_PutNB";
        let local = LocalOption::of_explicit(FUNCTION, lc_opt);
        Operation::put(FUNCTION, tm, rank, dst, src, bytes, flags).explicit(&local)
    }

    fn argonet_rma_get_blocking(tm: *const Team, dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize, flags: u32) -> c_int {
        code(Operation::get("gex_RMA_GetBlocking", tm, dst, rank, src, bytes, flags).block())
    }

    fn argonet_rma_get_nbi(tm: *const Team, dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize, flags: u32) -> c_int {
        code(Operation::get("gex_RMA_GetNBI", tm, dst, rank, src, bytes, flags).implicit(&LocalOption::Later))
    }

    fn argonet_rma_get_nb(tm: *const Team, dst: *mut c_void, rank: u32, src: *mut c_void, bytes: usize, flags: u32) -> Event {
        Operation::get("gex_RMA_GetNB", tm, dst, rank, src, bytes, flags).explicit(&LocalOption::Later)
    }

    fn argonet_rma_get_val(tm: *const Team, rank: u32, src: *mut c_void, bytes: usize, flags: u32) -> u64 {
        const FUNCTION: &str = "gex_RMA_GetBlockingVal";
        value_size(FUNCTION, bytes);
        let mut value = 0u64;
        let dst = (&raw mut value).cast();
        // The result has no way to say that nothing was done, so it waits.
        let flags = flags & !(SELF_DISPOSITION | IMMEDIATE);
        Operation::get(FUNCTION, tm, dst, rank, src, bytes, flags).block();
        value
    }

    fn argonet_rma_put_word(tm: *const Team, rank: u32, dst: *mut c_void, word: u64, bytes: usize, flags: u32) -> c_int {
        code(put_value("gex_RMA_PutBlocking", tm, rank, dst, &word, bytes, flags).block())
    }

    fn argonet_rma_put_nbi_word(tm: *const Team, rank: u32, dst: *mut c_void, word: u64, bytes: usize, flags: u32) -> c_int {
        code(put_value("gex_RMA_PutNBI", tm, rank, dst, &word, bytes, flags).implicit(&LocalOption::Now))
    }

    fn argonet_rma_put_nb_word(tm: *const Team, rank: u32, dst: *mut c_void, word: u64, bytes: usize, flags: u32) -> Event {
        put_value("gex_RMA_PutNB", tm, rank, dst, &word, bytes, flags).explicit(&LocalOption::Now)
    }

    fn argonet_rma_put_val(tm: *const Team, rank: u32, dst: *mut c_void, value: u64, bytes: usize, flags: u32) -> c_int {
        code(put_value("gex_RMA_PutBlockingVal", tm, rank, dst, &value, bytes, flags).block())
    }

    fn argonet_rma_put_nbi_val(tm: *const Team, rank: u32, dst: *mut c_void, value: u64, bytes: usize, flags: u32) -> c_int {
        code(put_value("gex_RMA_PutNBIVal", tm, rank, dst, &value, bytes, flags).implicit(&LocalOption::Now))
    }

    fn argonet_rma_put_nb_val(tm: *const Team, rank: u32, dst: *mut c_void, value: u64, bytes: usize, flags: u32) -> Event {
        put_value("gex_RMA_PutNBVal", tm, rank, dst, &value, bytes, flags).explicit(&LocalOption::Now)
    }
}

/// Values are the first bytes of their memory.
const _: () = assert!(cfg!(target_endian = "little"));
