//! Polls, and waits for conditions of C's.

use core::ffi::c_int;
use core::mem::{MaybeUninit, align_of};

use argonet_base::gasnet::number32;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::selector::Selector;
use argonet_engine::{Wait, WaitMode};

use crate::Prototype;
use crate::context::{communicating, done};
use crate::export::{export, names};
use crate::job::{BAD_ARG, OK, job, refuse};

/// `struct argonet_wait`: storage for a wait of the engine's between two calls.
#[repr(C)]
struct WaitStorage([u64; 24]);

type Step = Wait<'static, Selector>;

const _: () = assert!(size_of::<Step>() <= size_of::<WaitStorage>());
const _: () = assert!(align_of::<Step>() <= align_of::<WaitStorage>());

names! {
    *mut WaitStorage = "struct argonet_wait *",
}

/// All functions that `argonet/waiting.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    PROTOTYPES.to_vec()
}

/// Sizes in structs that C declares too.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    vec![("sizeof(struct argonet_wait)", size_of::<WaitStorage>())]
}

const BLOCKUNTIL: &str = "GASNET_BLOCKUNTIL";

export! {
    fn gasnet_AMPoll() -> c_int {
        const FUNCTION: &str = "gasnet_AMPoll";
        communicating(FUNCTION, |job, ctx| {
            done(FUNCTION, job.joined.engine.poll(ctx).map_err(Into::into));
            OK
        })
    }

    fn gasnet_set_waitmode(mode: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_set_waitmode";
        const SPIN: c_int = number32("GASNET_WAIT_SPIN") as c_int;
        const BLOCK: c_int = number32("GASNET_WAIT_BLOCK") as c_int;
        const SPINBLOCK: c_int = number32("GASNET_WAIT_SPINBLOCK") as c_int;
        let mode = match mode {
            SPIN => WaitMode::Spin,
            BLOCK => WaitMode::Sleep,
            // It spins as long as there are processors for that, then sleeps.
            SPINBLOCK => WaitMode::Auto,
            _ => return refuse(FUNCTION, BAD_ARG, &format!("the mode is {mode}; give one of GASNET_WAIT_*")),
        };
        job(FUNCTION).joined.engine.set_wait_mode(mode);
        OK
    }

    fn argonet_wait_begin(storage: *mut WaitStorage) {
        // The condition may be of memory that a put changes, and a put wakes no thread.
        let wait = job(BLOCKUNTIL).joined.engine.waiting_unannounced(Waiting::new(WaitFor::Condition));
        // SAFETY: the header's macro gives its own storage, which is large enough and aligned as
        // asserted above.
        unsafe { (*storage.cast::<MaybeUninit<Step>>()).write(wait) };
    }

    fn argonet_wait_step(storage: *mut WaitStorage) {
        // SAFETY: the macro has had it begun, and no other thread knows it.
        let wait = unsafe { &mut *storage.cast::<Step>() };
        communicating(BLOCKUNTIL, |_, ctx| done(BLOCKUNTIL, wait.idle(ctx).map_err(Into::into)));
    }

    fn argonet_wait_end(storage: *mut WaitStorage) {
        // SAFETY: as in the step; the macro does not use it any more.
        unsafe { storage.cast::<Step>().drop_in_place() };
    }
}
