//! How a caller learns that its payload has been read.

use argonet_am::MessageClass;

use crate::flags::{DEFER, GROUP, NOW};
use crate::job::fatal;

/// `gex_Event_t *`: one of three numbers, or a place for an event.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local(*mut usize);

/// `const gex_Event_t *`, in questions for limits, which do not depend on it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct AnyLocal(*const usize);

impl AnyLocal {
    /// Nothing depends on it.
    pub(crate) fn ignore(self) {
        let _ = self.0;
    }
}

/// `GEX_EVENT_INVALID`: it is complete.
const DONE: usize = 0;

impl Local {
    /// `GEX_EVENT_NOW`.
    pub(crate) const NOW: Self = Self(core::ptr::without_provenance_mut(NOW));

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Ends the job if a message of this class cannot have it.
    #[inline]
    pub(crate) fn check(self, class: MessageClass, function: &str) {
        match self.0.addr() {
            0 => fatal(
                function,
                "lc_opt is null; it must be GEX_EVENT_NOW, GEX_EVENT_GROUP (requests only), or the address of an event",
            ),
            DEFER => fatal(
                function,
                "lc_opt is GEX_EVENT_DEFER, which active messages do not have",
            ),
            GROUP if class == MessageClass::Reply => fatal(
                function,
                "lc_opt is GEX_EVENT_GROUP, which replies do not have",
            ),
            _ => {}
        }
    }

    /// Says that the payload has been read.
    ///
    /// It has been when an injection returns, so that there is nothing to add to the thread's
    /// group, and an event is complete.
    ///
    /// # Safety
    /// What was checked is a place that the caller may write.
    #[inline]
    pub(crate) unsafe fn complete(self) {
        if self.0.addr() > GROUP {
            // SAFETY: this function's contract.
            unsafe { self.0.write(DONE) };
        }
    }
}
