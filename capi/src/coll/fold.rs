//! A reduction as C describes it: type, operation, lengths, and a function of its own.

use core::ffi::c_void;

use argonet_engine::{DataType, Folding, Operation};

use crate::export::names;
use crate::job::fatal;

/// `gex_Coll_ReduceFn_t`: each of the `count` values at `inout` becomes the one at `other` combined
/// with it, `other` on the left.
///
/// An exception of C++ ends the process where the engine calls it.
pub(super) type ReduceFn =
    Option<unsafe extern "C-unwind" fn(*const c_void, *mut c_void, usize, *const c_void)>;

names! {
    ReduceFn = "gex_Coll_ReduceFn_t",
}

/// The arguments that all reductions have.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub(super) dt: u32,
    pub(super) bytes: usize,
    pub(super) count: usize,
    pub(super) op: u32,
    pub(super) user_op: ReduceFn,
    pub(super) cdata: *const c_void,
}

/// [`FoldFn`](argonet_engine::FoldFn) of a client's function.
///
/// # Safety
/// The first word is a function of the type above, the second what it is given; as many elements
/// lie at both places.
unsafe fn call_client(context: [*const (); 2], left: *const u8, right: *mut u8, count: usize) {
    // SAFETY: `folding` puts a function there that is not null.
    let function: ReduceFn = unsafe { core::mem::transmute(context[0]) };
    if let Some(function) = function {
        // SAFETY: this function's contract.
        unsafe { function(left.cast(), right.cast(), count, context[1].cast()) };
    }
}

impl Arguments {
    /// How values are combined, or the end of the job.
    pub(super) fn folding(&self, function: &str) -> Folding {
        fn wrong(function: &str, text: &str) -> ! {
            fatal(function, text)
        }
        let Ok(dt) = DataType::try_from(self.dt) else {
            wrong(
                function,
                &format!("dt is {:#x}; give one of GEX_DT_*, not several", self.dt),
            );
        };
        let Ok(op) = Operation::try_from(self.op) else {
            wrong(
                function,
                &format!("op is {:#x}; give one of GEX_OP_*, not several", self.op),
            );
        };
        if !op.reduces(dt) {
            wrong(
                function,
                &format!(
                    "op is {}, which reductions do not have on {}",
                    op.name(),
                    dt.name()
                ),
            );
        }
        match dt.bytes() {
            Some(bytes) if bytes != self.bytes => wrong(
                function,
                &format!("dt_sz is {}; {} has {bytes} bytes", self.bytes, dt.name()),
            ),
            None if self.bytes == 0 => wrong(function, "dt_sz is 0; give the size of the type"),
            _ => {}
        }
        if self.count == 0 {
            wrong(function, "dt_cnt is 0; there must be an element");
        }
        if self
            .bytes
            .checked_mul(self.count)
            .is_none_or(|bytes| bytes > isize::MAX as usize)
        {
            wrong(
                function,
                &format!(
                    "dt_sz is {} and dt_cnt {}: more than there is memory",
                    self.bytes, self.count
                ),
            );
        }
        let ordered = op == Operation::UserNonCommutative;
        if !ordered && op != Operation::User {
            return Folding::built_in(op, dt);
        }
        let Some(user_op) = self.user_op else {
            wrong(
                function,
                &format!("user_op is null, and op is {}", op.name()),
            );
        };
        Folding {
            function: call_client,
            context: [user_op as *const (), self.cdata.cast()],
            ordered,
            is_client_code: true,
            signature: Folding::signature_of(op, dt),
        }
    }
}
