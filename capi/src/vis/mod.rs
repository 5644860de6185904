//! Non-contiguous puts and gets, `gasnet_vis.h`.

mod call;
mod checks;

use core::ffi::{c_int, c_void};

use argonet_am::{CLIENT_BASE, Endpoints};
use argonet_base::HandlerIndex;
use argonet_engine::Direction::{Get, Put};
use argonet_engine::{Notice, Piece};
use argonet_event::Event;

use crate::Prototype;
use crate::context::communicating;
use crate::export::{export, names};
use crate::job::{Team, fatal};
pub(crate) use call::{Call, Indexed, Strided, Vector};

/// All functions of `argonet/vis_calls.h`.
pub(crate) fn prototypes() -> Vec<Prototype> {
    PROTOTYPES.to_vec()
}

names! {
    u8 = "gex_AM_Index_t",
    *const Piece = "const gex_Memvec_t *",
}

type AddressList = *const *mut c_void;

export! {
    fn gex_VIS_VectorPutBlocking(tm: *const Team, rank: u32, dst_count: usize, dst: *const Piece, src_count: usize, src: *const Piece, flags: u32) -> c_int {
        Call::new("gex_VIS_VectorPutBlocking", tm, rank, Put, flags).block(&Vector { dst_count, dst, src_count, src })
    }
    fn gex_VIS_VectorPutNBI(tm: *const Team, rank: u32, dst_count: usize, dst: *const Piece, src_count: usize, src: *const Piece, flags: u32) -> c_int {
        Call::new("gex_VIS_VectorPutNBI", tm, rank, Put, flags).implicit(&Vector { dst_count, dst, src_count, src })
    }
    fn gex_VIS_VectorPutNB(tm: *const Team, rank: u32, dst_count: usize, dst: *const Piece, src_count: usize, src: *const Piece, flags: u32) -> Event {
        Call::new("gex_VIS_VectorPutNB", tm, rank, Put, flags).explicit(&Vector { dst_count, dst, src_count, src })
    }
    fn gex_VIS_VectorGetBlocking(tm: *const Team, dst_count: usize, dst: *const Piece, rank: u32, src_count: usize, src: *const Piece, flags: u32) -> c_int {
        Call::new("gex_VIS_VectorGetBlocking", tm, rank, Get, flags).block(&Vector { dst_count, dst, src_count, src })
    }
    fn gex_VIS_VectorGetNBI(tm: *const Team, dst_count: usize, dst: *const Piece, rank: u32, src_count: usize, src: *const Piece, flags: u32) -> c_int {
        Call::new("gex_VIS_VectorGetNBI", tm, rank, Get, flags).implicit(&Vector { dst_count, dst, src_count, src })
    }
    fn gex_VIS_VectorGetNB(tm: *const Team, dst_count: usize, dst: *const Piece, rank: u32, src_count: usize, src: *const Piece, flags: u32) -> Event {
        Call::new("gex_VIS_VectorGetNB", tm, rank, Get, flags).explicit(&Vector { dst_count, dst, src_count, src })
    }

    fn gex_VIS_IndexedPutBlocking(tm: *const Team, rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_IndexedPutBlocking", tm, rank, Put, flags).block(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gex_VIS_IndexedPutNBI(tm: *const Team, rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_IndexedPutNBI", tm, rank, Put, flags).implicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gex_VIS_IndexedPutNB(tm: *const Team, rank: u32, dst_count: usize, dst: AddressList, dst_len: usize, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> Event {
        Call::new("gex_VIS_IndexedPutNB", tm, rank, Put, flags).explicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gex_VIS_IndexedGetBlocking(tm: *const Team, dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_IndexedGetBlocking", tm, rank, Get, flags).block(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gex_VIS_IndexedGetNBI(tm: *const Team, dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_IndexedGetNBI", tm, rank, Get, flags).implicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }
    fn gex_VIS_IndexedGetNB(tm: *const Team, dst_count: usize, dst: AddressList, dst_len: usize, rank: u32, src_count: usize, src: AddressList, src_len: usize, flags: u32) -> Event {
        Call::new("gex_VIS_IndexedGetNB", tm, rank, Get, flags).explicit(&Indexed { dst_count, dst, dst_len, src_count, src, src_len })
    }

    fn gex_VIS_StridedPutBlocking(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_StridedPutBlocking", tm, rank, Put, flags).block(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }
    fn gex_VIS_StridedPutNBI(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_StridedPutNBI", tm, rank, Put, flags).implicit(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }
    fn gex_VIS_StridedPutNB(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> Event {
        Call::new("gex_VIS_StridedPutNB", tm, rank, Put, flags).explicit(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }
    fn gex_VIS_StridedGetBlocking(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_StridedGetBlocking", tm, rank, Get, flags).block(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }
    fn gex_VIS_StridedGetNBI(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> c_int {
        Call::new("gex_VIS_StridedGetNBI", tm, rank, Get, flags).implicit(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }
    fn gex_VIS_StridedGetNB(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: u32) -> Event {
        Call::new("gex_VIS_StridedGetNB", tm, rank, Get, flags).explicit(&Strided { dst, dst_strides, src, src_strides, element, counts, levels })
    }

    fn gex_VIS_SetPeerCompletionHandler(handler: u8, source: *const c_void, bytes: usize, flags: u32) {
        set_peer_completion(handler, source, bytes, flags);
    }
}

fn set_peer_completion(handler: u8, source: *const c_void, bytes: usize, flags: u32) {
    const FUNCTION: &str = "gex_VIS_SetPeerCompletionHandler";
    if flags != 0 {
        fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
    }
    let index = HandlerIndex(handler);
    if handler != 0 && index < CLIENT_BASE {
        fatal(
            FUNCTION,
            &format!(
                "handler is {handler}; clients have the indices from {} on, and 0 stands for none",
                CLIENT_BASE.0
            ),
        );
    }
    if handler != 0 && bytes > Notice::MOST {
        fatal(
            FUNCTION,
            &format!(
                "nbytes is {bytes}; GEX_VIS_MAX_PEERCOMPLETION is {}",
                Notice::MOST
            ),
        );
    }
    if handler != 0 && bytes > 0 && source.is_null() {
        fatal(
            FUNCTION,
            &format!("source_addr is null, and nbytes {bytes}"),
        );
    }
    let notice = Notice {
        handler: index,
        // Those of the put, when it comes.
        ends: Endpoints::PRIMORDIAL,
        payload: source.cast(),
        len: bytes,
    };
    communicating(FUNCTION, |_, ctx| {
        ctx.arm(Some(notice).filter(|_| handler != 0));
    });
}

// C's lists are read as they are.
const _: () = assert!(size_of::<*mut c_void>() == size_of::<usize>());
