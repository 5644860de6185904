//! Collective operations that GASNet-EX does not have, in its manner.

use core::ffi::c_void;

use argonet_engine::Kind;
use argonet_event::Event;

use super::ex::reduce;
use super::fold::{Arguments, ReduceFn};
use super::{Asked, bytes, no_flags};
use crate::export::export;
use crate::job::Team;

export! {
    fn argonet_Coll_GatherNB(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "argonet_Coll_GatherNB";
        no_flags(FUNCTION, flags);
        // SAFETY: a team of ours, or null; the caller keeps the memory until the event is complete,
        // as the header asks.
        unsafe {
            let asked = Asked::new(FUNCTION, tm).rooted("root", root);
            let taken = if asked.is_root() { asked.size() } else { 0 };
            asked.blocks(1, taken).start(bytes(Kind::Gather, dst, src, nbytes))
        }
    }

    fn argonet_Coll_GatherAllNB(tm: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "argonet_Coll_GatherAllNB";
        no_flags(FUNCTION, flags);
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm);
            let taken = asked.size();
            asked.blocks(1, taken).start(bytes(Kind::GatherAll, dst, src, nbytes))
        }
    }

    fn argonet_Coll_ScatterNB(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "argonet_Coll_ScatterNB";
        no_flags(FUNCTION, flags);
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm).rooted("root", root);
            let given = if asked.is_root() { asked.size() } else { 0 };
            asked.blocks(given, 1).start(bytes(Kind::Scatter, dst, src, nbytes))
        }
    }

    fn argonet_Coll_ExchangeNB(tm: *const Team, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "argonet_Coll_ExchangeNB";
        no_flags(FUNCTION, flags);
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm);
            let each = asked.size();
            asked.blocks(each, each).start(bytes(Kind::Exchange, dst, src, nbytes))
        }
    }

    fn argonet_Coll_ReduceScatterNB(
        tm: *const Team, dst: *mut c_void, src: *const c_void, dt: u32, dt_sz: usize, dt_cnt: usize, op: u32,
        user_op: ReduceFn, user_cdata: *const c_void, flags: u32,
    ) -> Event {
        const FUNCTION: &str = "argonet_Coll_ReduceScatterNB";
        no_flags(FUNCTION, flags);
        let arguments = Arguments { dt, bytes: dt_sz, count: dt_cnt, op, user_op, cdata: user_cdata };
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm);
            let given = asked.size();
            reduce(asked.blocks(given, 1), Kind::ReduceScatter, dst, src, arguments)
        }
    }

    fn argonet_Coll_ScanNB(
        tm: *const Team, dst: *mut c_void, src: *const c_void, dt: u32, dt_sz: usize, dt_cnt: usize, op: u32,
        user_op: ReduceFn, user_cdata: *const c_void, flags: u32,
    ) -> Event {
        const FUNCTION: &str = "argonet_Coll_ScanNB";
        no_flags(FUNCTION, flags);
        let arguments = Arguments { dt, bytes: dt_sz, count: dt_cnt, op, user_op, cdata: user_cdata };
        // SAFETY: as above.
        unsafe { reduce(Asked::new(FUNCTION, tm), Kind::Scan, dst, src, arguments) }
    }

    fn argonet_Coll_ExclusiveScanNB(
        tm: *const Team, dst: *mut c_void, src: *const c_void, dt: u32, dt_sz: usize, dt_cnt: usize, op: u32,
        user_op: ReduceFn, user_cdata: *const c_void, flags: u32,
    ) -> Event {
        const FUNCTION: &str = "argonet_Coll_ExclusiveScanNB";
        no_flags(FUNCTION, flags);
        let arguments = Arguments { dt, bytes: dt_sz, count: dt_cnt, op, user_op, cdata: user_cdata };
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm);
            let taken = usize::from(asked.rank() > 0);
            reduce(asked.blocks(1, taken), Kind::ExclusiveScan, dst, src, arguments)
        }
    }
}
