//! What the engine knows of the thread that calls it.

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_event::{HandleTable, ThreadCache};
use core::cell::{Cell, OnceCell};
use std::sync::Arc;

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
pub struct ThreadCtx {
    context: Cell<Context>,
    handles: OnceCell<ThreadHandles>,
}

/// What a thread keeps of its engine's handle table; given back when the thread ends.
struct ThreadHandles {
    table: Arc<HandleTable>,
    /// Taken only by `drop`.
    cache: Option<ThreadCache>,
}

impl Drop for ThreadHandles {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            self.table.retire(cache);
        }
    }
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
            handles: OnceCell::new(),
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

    /// This thread's part of the engine's handle table.
    pub(super) fn cache(&self, table: &Arc<HandleTable>) -> &ThreadCache {
        let handles = self.handles.get_or_init(|| ThreadHandles {
            table: Arc::clone(table),
            cache: Some(table.thread_cache()),
        });
        let Some(cache) = &handles.cache else {
            unreachable!("the cache is taken only when the thread's state is dropped")
        };
        cache
    }

    /// Gives free handles that this thread keeps to others that were refused one.
    pub(super) fn relieve(&self, table: &Arc<HandleTable>) {
        if self.handles.get().is_some() {
            table.relieve(self.cache(table));
        }
    }

    /// Changes what the thread may do and returns what it was.
    #[inline(always)]
    pub fn enter(&self, context: Context) -> Context {
        self.context.replace(context)
    }
}
