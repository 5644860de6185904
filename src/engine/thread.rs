//! What the engine knows of the thread that calls it.

use argonet_am::AmError;
use argonet_base::JobRank;
use core::cell::Cell;

/// What a thread may do at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Everything.
    Free,
    /// Inside a handler: reply, once, and nothing else.
    Handler,
    /// Between prepare and commit of a negotiated payload: nothing but commit or cancel.
    Preparing,
}

/// One thread's state. Its owner keeps it in thread-local storage and passes it to every call.
#[derive(Debug)]
pub struct ThreadCtx {
    context: Cell<Context>,
}

impl Default for ThreadCtx {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadCtx {
    /// A thread that may do everything.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            context: Cell::new(Context::Free),
        }
    }

    /// Refuses `operation` inside a handler and while a payload is being prepared.
    ///
    /// # Errors
    /// [`AmError::Restricted`], [`AmError::Preparing`].
    #[inline(always)]
    pub fn permit(&self, operation: &'static str, rank: JobRank) -> Result<(), AmError> {
        if self.context.get() == Context::Free {
            return Ok(());
        }
        Err(self.refuse(operation, rank))
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, operation: &'static str, rank: JobRank) -> AmError {
        match self.context.get() {
            Context::Preparing => AmError::Preparing { operation, rank },
            Context::Free | Context::Handler => AmError::Restricted { operation, rank },
        }
    }

    /// Changes what the thread may do and returns what it was.
    #[inline(always)]
    pub fn enter(&self, context: Context) -> Context {
        self.context.replace(context)
    }
}
