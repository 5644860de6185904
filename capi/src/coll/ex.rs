//! Collective operations of GASNet-EX (0.19, "Collectives").

use core::ffi::c_void;

use argonet_engine::{Call, Kind};
use argonet_event::Event;

use super::fold::{Arguments, ReduceFn};
use super::{Asked, bytes, no_flags};
use crate::export::export;
use crate::job::Team;

/// A reduction of either kind.
///
/// # Safety
/// As [`Asked::start`].
pub(super) unsafe fn reduce(
    asked: Asked<'_>,
    kind: Kind,
    dst: *mut c_void,
    src: *const c_void,
    arguments: Arguments,
) -> Event {
    let folding = arguments.folding(asked.function);
    let call = Call {
        unit: arguments.bytes,
        count: arguments.count,
        src: src.cast(),
        dst: dst.cast(),
        folding: Some(folding),
        ..Call::of(kind)
    };
    // SAFETY: this function's contract.
    unsafe { asked.start(call) }
}

export! {
    fn gex_Coll_BarrierNB(tm: *const Team, flags: u32) -> Event {
        const FUNCTION: &str = "gex_Coll_BarrierNB";
        no_flags(FUNCTION, flags);
        // SAFETY: a team of ours, or null; a barrier has no memory.
        unsafe { Asked::new(FUNCTION, tm).start(Call::of(Kind::Barrier)) }
    }

    /// Behind `gex_Coll_BroadcastNB`.
    fn argonet_broadcast(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, nbytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "gex_Coll_BroadcastNB";
        no_flags(FUNCTION, flags);
        // SAFETY: a team of ours, or null; the caller keeps the memory until the event is complete,
        // as the specification asks.
        unsafe {
            let asked = Asked::new(FUNCTION, tm).rooted("root", root);
            let given = usize::from(asked.is_root());
            asked.blocks(given, 1).start(bytes(Kind::Broadcast, dst, src, nbytes))
        }
    }

    fn gex_Coll_ReduceToOneNB(
        tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, dt: u32, dt_sz: usize, dt_cnt: usize, op: u32,
        user_op: ReduceFn, user_cdata: *const c_void, flags: u32,
    ) -> Event {
        const FUNCTION: &str = "gex_Coll_ReduceToOneNB";
        no_flags(FUNCTION, flags);
        let arguments = Arguments { dt, bytes: dt_sz, count: dt_cnt, op, user_op, cdata: user_cdata };
        // SAFETY: as above.
        unsafe {
            let asked = Asked::new(FUNCTION, tm).rooted("root", root);
            let taken = usize::from(asked.is_root());
            reduce(asked.blocks(1, taken), Kind::Reduce, dst, src, arguments)
        }
    }

    fn gex_Coll_ReduceToAllNB(
        tm: *const Team, dst: *mut c_void, src: *const c_void, dt: u32, dt_sz: usize, dt_cnt: usize, op: u32,
        user_op: ReduceFn, user_cdata: *const c_void, flags: u32,
    ) -> Event {
        const FUNCTION: &str = "gex_Coll_ReduceToAllNB";
        no_flags(FUNCTION, flags);
        let arguments = Arguments { dt, bytes: dt_sz, count: dt_cnt, op, user_op, cdata: user_cdata };
        // SAFETY: as above.
        unsafe { reduce(Asked::new(FUNCTION, tm), Kind::ReduceAll, dst, src, arguments) }
    }
}
