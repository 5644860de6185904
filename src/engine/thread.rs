//! What the engine knows of the thread that calls it.

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_event::{HandleTable, ThreadCache};
use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::sync::Arc;

/// What a thread may do at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Everything.
    Free,
    /// Everything, and it is traced or counted.
    Watched,
    /// Not known yet whether the thread is watched: its first call finds out.
    Undecided,
    /// Inside a handler: reply, once, and nothing else.
    Handler,
    /// Between prepare and commit of a negotiated payload: nothing but commit or cancel.
    Preparing,
}

/// One thread's state. Its owner keeps it, usually in thread-local storage, and passes it to every
/// call. It has no drop code, so that reaching it costs one instruction: whoever keeps it calls
/// [`retire`](Self::retire) when the thread ends.
pub struct ThreadCtx {
    context: Cell<Context>,
    /// What the context is when nothing is going on: free or watched.
    rest: Cell<Context>,
    handles: RefCell<Option<ManuallyDrop<ThreadHandles>>>,
    /// Called when there is something to retire.
    on_first_handle: fn(),
}

/// A thread that is watched otherwise.
pub(super) struct LookedAway<'c>(&'c ThreadCtx);

impl Drop for LookedAway<'_> {
    fn drop(&mut self) {
        self.0.rest.set(Context::Watched);
        // A payload may have been prepared.
        if self.0.context.get() == Context::Free {
            self.0.context.set(Context::Watched);
        }
    }
}

/// What a thread keeps of its engine's handle table.
struct ThreadHandles {
    table: Arc<HandleTable>,
    cache: ThreadCache,
}

impl ThreadCtx {
    /// A thread that may do everything. `on_first_handle` is called when the thread first keeps
    /// something that [`retire`](Self::retire) gives back.
    #[must_use]
    pub const fn new(on_first_handle: fn()) -> Self {
        Self {
            context: Cell::new(Context::Free),
            rest: Cell::new(Context::Free),
            handles: RefCell::new(None),
            on_first_handle,
        }
    }

    /// As [`new`](Self::new), for a thread that is watched if its process traces or counts.
    #[must_use]
    pub const fn of_process(on_first_handle: fn()) -> Self {
        Self {
            context: Cell::new(Context::Undecided),
            rest: Cell::new(Context::Undecided),
            ..Self::new(on_first_handle)
        }
    }

    /// Gives back what the thread keeps of the handle table. Implicit operations that are still
    /// outstanding are nobody's from then on.
    pub fn retire(&self) {
        if let Some(handles) = self.handles.take() {
            let ThreadHandles { table, cache } = ManuallyDrop::into_inner(handles);
            table.retire(cache);
        }
    }

    /// Whether the thread may do everything, and nobody watches.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.context.get() == Context::Free
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
        self.permit_with_care(operation, rank)
    }

    #[cold]
    #[inline(never)]
    fn permit_with_care(&self, operation: &'static str, rank: JobRank) -> Result<(), AmError> {
        match self.context.get() {
            Context::Free | Context::Watched => Ok(()),
            Context::Undecided => {
                let watched = argonet_trace::is_on();
                let decided = if watched {
                    Context::Watched
                } else {
                    Context::Free
                };
                self.context.set(decided);
                self.rest.set(decided);
                Ok(())
            }
            Context::Preparing => Err(AmError::Preparing { operation, rank }),
            Context::Handler => Err(AmError::Restricted { operation, rank }),
        }
    }

    /// If what the thread does is watched, it is not for as long as the result lives: one call of a client is one event,
    /// whatever it does inside.
    #[must_use]
    pub(super) fn look_away(&self) -> Option<LookedAway<'_>> {
        if self.context.get() != Context::Watched {
            return None;
        }
        self.context.set(Context::Free);
        self.rest.set(Context::Free);
        Some(LookedAway(self))
    }

    /// Whether the thread is watched when nothing is going on.
    pub(super) fn is_watched(&self) -> bool {
        self.rest.get() == Context::Watched
    }

    /// A payload is not prepared any more.
    #[inline(always)]
    pub fn leave_preparing(&self) {
        self.context.set(self.rest.get());
    }

    /// Calls `f` with this thread's part of the engine's handle table. `f` does not poll.
    pub(super) fn with_cache<R>(
        &self,
        table: &Arc<HandleTable>,
        f: impl FnOnce(&ThreadCache) -> R,
    ) -> R {
        let mut handles = self.handles.borrow_mut();
        let handles = handles.get_or_insert_with(|| {
            (self.on_first_handle)();
            ManuallyDrop::new(ThreadHandles {
                table: Arc::clone(table),
                cache: table.thread_cache(),
            })
        });
        f(&handles.cache)
    }

    /// Gives free handles that this thread keeps to others that were refused one.
    pub(super) fn relieve(&self) {
        if let Some(handles) = &*self.handles.borrow() {
            handles.table.relieve(&handles.cache);
        }
    }

    /// Changes what the thread may do and returns what it was.
    #[inline(always)]
    pub fn enter(&self, context: Context) -> Context {
        self.context.replace(context)
    }
}

const _: () = assert!(!core::mem::needs_drop::<ThreadCtx>());
