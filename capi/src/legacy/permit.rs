//! When calls of GASNet-1 are allowed.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::job::{Job, fatal, job};

/// Whether a job uses GASNet-1.
///
/// Written by `gasnet_attach`, with Release; read with Acquire, by any thread.
#[derive(Debug)]
pub(crate) struct Permit(AtomicU8);

/// Its client has not asked for it.
const NEVER: u8 = 0;
/// `gasnet_init` has been called, `gasnet_attach` not yet.
const AFTER_ATTACH: u8 = 1;
const NOW: u8 = 2;

impl Permit {
    /// For `gex_Client_Init`.
    pub(crate) fn never() -> Self {
        Self(AtomicU8::new(NEVER))
    }

    /// For `gex_Client_Init` with `GEX_FLAG_USES_GASNET1`.
    pub(crate) fn now() -> Self {
        Self(AtomicU8::new(NOW))
    }

    /// For `gasnet_init`.
    pub(super) fn after_attach() -> Self {
        Self(AtomicU8::new(AFTER_ATTACH))
    }

    #[inline(always)]
    pub(super) fn is_given(&self) -> bool {
        self.0.load(Ordering::Acquire) == NOW
    }

    pub(super) fn waits_for_attach(&self) -> bool {
        self.0.load(Ordering::Acquire) == AFTER_ATTACH
    }

    pub(super) fn give(&self) {
        self.0.store(NOW, Ordering::Release);
    }
}

/// The job, which uses GASNet-1; ends the process or the job if there is none, or it does not.
#[inline(always)]
pub(super) fn user(function: &str) -> &'static Job {
    let job = job(function);
    if !job.gasnet1.is_given() {
        refused(job, function);
    }
    job
}

#[cold]
#[inline(never)]
fn refused(job: &Job, function: &str) -> ! {
    fatal(
        function,
        if job.gasnet1.waits_for_attach() {
            "called before gasnet_attach; call that first"
        } else {
            "called in a job that uses no GASNet-1; give gex_Client_Init the flag GEX_FLAG_USES_GASNET1"
        },
    )
}
