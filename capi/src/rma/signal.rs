//! Puts that signal their target, and waits for them.

use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use argonet_am::AmError;
use argonet_base::gasnet::number32;
use argonet_engine::{Atomic, OpError, Side, Transfer};

use crate::context::{communicating, refused};
use crate::export::{export, names};
use crate::job::{OK, PEER_LOST, Team, fatal};
use crate::rma::{Operation, Remote};

names! {
    *const u64 = "const uint64_t *",
}

/// `GEX_OP_SET`, `GEX_OP_ADD`.
const SET: u32 = number32("GEX_OP_SET");
const ADD: u32 = number32("GEX_OP_ADD");

/// `ARGONET_CMP_*`, in the order of their numbers from 1.
const COMPARISONS: [fn(&u64, &u64) -> bool; 6] =
    [u64::eq, u64::ne, u64::gt, u64::ge, u64::lt, u64::le];

/// The word as memory that is changed atomically; ends the job if it cannot be one.
fn word(function: &str, signal: *const u64) -> &'static AtomicU64 {
    if signal.is_null() || !signal.is_aligned() {
        fatal(
            function,
            &format!("signal is {signal:p}; it must be a word, at a multiple of 8"),
        );
    }
    // SAFETY: it is aligned, and the header asks for a word of this process that is not freed as
    // long as the call lasts, and that is changed by signals and atomic operations alone.
    unsafe { AtomicU64::from_ptr(signal.cast_mut()) }
}

export! {
    fn argonet_RMA_PutSignal(tm: *const Team, rank: u32, dest: *mut c_void, src: *const c_void, nbytes: usize, signal: *mut u64, op: u32, value: u64, flags: u32) -> c_int {
        const FUNCTION: &str = "argonet_RMA_PutSignal";
        if op != SET && op != ADD {
            fatal(FUNCTION, &format!("op is {op:#x}; give GEX_OP_SET or GEX_OP_ADD"));
        }
        if flags != 0 {
            fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
        }
        let operation = argonet_engine::Operation::try_from(op).expect("both are operations");
        let what = Atomic { operation, operand1: value, operand2: 0 };
        let put = Operation::put(FUNCTION, tm, rank, dest, src, nbytes, flags);
        put.checked(|job, ctx, transfer| {
            let remote = Remote {
                function: FUNCTION,
                team: put.team,
                rank,
                at: signal.cast(),
                is_offset: false,
                bytes: size_of::<u64>(),
                argument: "signal",
            };
            let word = remote.find(job, ctx);
            // One of no bytes has no addresses of its own.
            let nothing = Transfer { target: word, side: Side::Put(src.cast()), len: 0 };
            // SAFETY: the source is C's to give, as for any put.
            match unsafe { job.joined.engine.put_signal(ctx, transfer.unwrap_or(nothing), word, what) } {
                Ok(()) => OK,
                Err(OpError::Am(AmError::PeerLost { .. })) => PEER_LOST,
                Err(error) => refused(FUNCTION, &error),
            }
        })
    }

    fn argonet_SignalWait(signal: *const u64, compare: c_int, value: u64) -> u64 {
        const FUNCTION: &str = "argonet_SignalWait";
        let chosen = usize::try_from(compare).ok().and_then(|number| COMPARISONS.get(number.checked_sub(1)?));
        let Some(holds) = chosen else {
            fatal(FUNCTION, &format!("compare is {compare}; give one of ARGONET_CMP_*"));
        };
        let word = word(FUNCTION, signal);
        communicating(FUNCTION, |job, ctx| {
            let look = || word.load(Ordering::SeqCst);
            let seen = job.joined.engine.wait_word(ctx, look, |seen| holds(&seen, &value));
            seen.unwrap_or_else(|error| refused(FUNCTION, &error.into()))
        })
    }
}
