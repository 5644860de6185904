//! State of a calling thread.

use super::vis::Notice;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_event::{HandleTable, ThreadCache};
use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::sync::Arc;

/// Code that handlers have left to a later time.
const DEFERRED: u8 = 1;
/// Tasks that ranks share.
const TASKS: u8 = 2;

/// The calls that a thread may make at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// It has not called yet, or it was retired.
    ///
    /// Its next call that could communicate makes it [`Free`](Self::Free).
    Absent,
    /// Everything.
    Free,
    /// Everything, and it is traced or counted.
    Traced,
    /// Inside a handler: reply, once, and nothing else.
    Handler,
    /// Between prepare and commit of a negotiated payload: nothing but commit or cancel.
    Preparing,
    /// In a condition or a future of the client, while ranks look for a job that cannot end:
    /// everything.
    ///
    /// The first call that does more than to look is noted, and restores the context before.
    Deciding,
}

/// Operations that a thread in [`Context::Deciding`] may do without being noted.
const LOOKS: [&str; 3] = ["a poll", "a test", "waiting"];

/// Why a thread may not call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowded {
    /// Threads that may, at once.
    pub limit: u64,
}

/// One thread's state.
///
/// Its owner keeps it, usually in thread-local storage, and passes it to every call. It has no drop
/// code, so that reaching it costs one instruction: its owner calls [`retire`](Self::retire) when
/// the thread ends.
pub struct ThreadCtx {
    context: Cell<Context>,
    /// The context when nothing is going on: free or traced.
    rest: Cell<Context>,
    /// Whether it is traced where the process traces or counts.
    may_be_traced: bool,
    handles: RefCell<Option<ManuallyDrop<ThreadHandles>>>,
    /// The notice for the peer of the thread's next non-contiguous put.
    armed: Cell<Option<Notice>>,
    /// Whether it has communicated while it was deciding.
    acted: Cell<bool>,
    /// Client code that it runs and that makes no collective calls: [`DEFERRED`], [`TASKS`].
    inside: Cell<u8>,
    /// Called by the first call of the thread, and by the first one after each
    /// [`retire`](Self::retire).
    arrive: fn() -> Result<(), Crowded>,
}

/// A thread that is traced otherwise.
pub(super) struct LookedAway<'c>(&'c ThreadCtx);

impl Drop for LookedAway<'_> {
    fn drop(&mut self) {
        self.0.rest.set(Context::Traced);
        // A payload may have been prepared.
        if self.0.context.get() == Context::Free {
            self.0.context.set(Context::Traced);
        }
    }
}

/// A thread that runs a condition or a future of the client.
///
/// One may be inside of another.
pub(super) struct Deciding<'c> {
    ctx: &'c ThreadCtx,
    /// Whether the one around it has communicated so far.
    outer_acted: bool,
    is_inner: bool,
}

impl Deciding<'_> {
    /// Whether it has communicated.
    pub(super) fn has_acted(&self) -> bool {
        self.ctx.acted.get()
    }
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        let ctx = self.ctx;
        ctx.acted.set(ctx.acted.get() | self.outer_acted);
        if !self.is_inner && ctx.context.get() == Context::Deciding {
            ctx.context.set(ctx.rest.get());
        }
    }
}

/// A thread that reads while it decides: that is no more than to look.
pub(super) struct Reading<'c>(Option<&'c ThreadCtx>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(ctx) = self.0
            && ctx.context.get() == ctx.rest.get()
        {
            ctx.context.set(Context::Deciding);
        }
    }
}

/// A thread's part of its engine's handle table.
struct ThreadHandles {
    table: Arc<HandleTable>,
    cache: ThreadCache,
}

impl ThreadCtx {
    /// A thread that has not called yet.
    ///
    /// Its first call that could communicate calls `arrive`, which sees to it that
    /// [`retire`](Self::retire) is called when the thread ends, or refuses the thread.
    #[must_use]
    pub const fn new(arrive: fn() -> Result<(), Crowded>) -> Self {
        Self {
            context: Cell::new(Context::Absent),
            rest: Cell::new(Context::Free),
            may_be_traced: false,
            handles: RefCell::new(None),
            armed: Cell::new(None),
            acted: Cell::new(false),
            inside: Cell::new(0),
            arrive,
        }
    }

    /// As [`new`](Self::new), for a thread that is traced if its process traces or counts.
    #[must_use]
    pub const fn of_process(arrive: fn() -> Result<(), Crowded>) -> Self {
        Self {
            may_be_traced: true,
            ..Self::new(arrive)
        }
    }

    /// A thread that is not counted, whose owner knows when it ends.
    #[must_use]
    pub const fn uncounted() -> Self {
        Self::new(|| Ok(()))
    }

    /// The thread ends, or at least calls no more for now: gives back its part of the handle table.
    ///
    /// Its implicit operations that are still outstanding go on and belong to no thread from then
    /// on, those of an access region that is open too; their handle is free when the last one is
    /// complete.
    pub fn retire(&self) {
        self.context.set(Context::Absent);
        self.armed.set(None);
        if let Some(handles) = self.handles.take() {
            let ThreadHandles { table, cache } = ManuallyDrop::into_inner(handles);
            table.retire(cache);
        }
    }

    /// Keeps the notice for the peer of a later non-contiguous put, or that there is none.
    ///
    /// The caller passes it on with [`VisTransfer::notice`](super::VisTransfer::notice), and keeps
    /// its payload readable until then.
    pub fn arm(&self, notice: Option<Notice>) {
        self.armed.set(notice);
    }

    /// The notice that was kept last, if it was not taken yet.
    #[must_use]
    pub fn take_armed(&self) -> Option<Notice> {
        self.armed.take()
    }

    /// Whether the thread may do everything, and is not traced.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.context.get() == Context::Free
    }

    /// Whether the thread is between prepare and commit.
    #[must_use]
    pub fn is_preparing(&self) -> bool {
        self.context.get() == Context::Preparing
    }

    /// Refuses `operation` inside a handler and while a payload is being prepared; the first one of
    /// a thread, if there are too many threads.
    ///
    /// # Errors
    /// [`AmError::Restricted`], [`AmError::Preparing`], [`AmError::TooManyThreads`].
    #[inline(always)]
    pub fn permit(&self, operation: &'static str, rank: JobRank) -> Result<(), AmError> {
        if self.context.get() == Context::Free {
            return Ok(());
        }
        self.look_closer(operation, rank)
    }

    #[cold]
    #[inline(never)]
    fn look_closer(&self, operation: &'static str, rank: JobRank) -> Result<(), AmError> {
        match self.context.get() {
            Context::Free | Context::Traced => Ok(()),
            Context::Absent => {
                (self.arrive)().map_err(|Crowded { limit }| AmError::TooManyThreads {
                    operation,
                    limit,
                    rank,
                })?;
                let rest = match self.may_be_traced && argonet_trace::is_on() {
                    true => Context::Traced,
                    false => Context::Free,
                };
                self.rest.set(rest);
                self.context.set(rest);
                Ok(())
            }
            Context::Deciding => {
                if !LOOKS.contains(&operation) {
                    self.acted.set(true);
                    self.context.set(self.rest.get());
                }
                Ok(())
            }
            Context::Handler => Err(AmError::Restricted { operation, rank }),
            Context::Preparing => Err(AmError::Preparing { operation, rank }),
        }
    }

    /// If the thread is traced, it is not for as long as the result lives: one call of a client is
    /// one event, with all calls inside it.
    #[must_use]
    pub(super) fn look_away(&self) -> Option<LookedAway<'_>> {
        if self.context.get() != Context::Traced {
            return None;
        }
        self.context.set(Context::Free);
        self.rest.set(Context::Free);
        Some(LookedAway(self))
    }

    /// Notes whether the thread communicates, for as long as the result lives.
    pub(super) fn deciding(&self) -> Deciding<'_> {
        let outer_acted = self.acted.replace(false);
        let is_inner = self.context.get() == Context::Deciding;
        if matches!(self.context.get(), Context::Free | Context::Traced) {
            self.context.set(Context::Deciding);
        }
        Deciding {
            ctx: self,
            outer_acted,
            is_inner,
        }
    }

    /// The thread's operations are not noted for as long as the result lives, if `reads` says that
    /// they are a get or an atomic load.
    pub(super) fn reading(&self, reads: bool) -> Reading<'_> {
        let decides = reads && self.context.get() == Context::Deciding;
        if decides {
            self.context.set(self.rest.get());
        }
        Reading(decides.then_some(self))
    }

    /// [`permit`](Self::permit) of a collective call, which is refused in client code that handlers
    /// have left to a later time, and in tasks, too: this rank, or others, may be inside another
    /// one.
    ///
    /// # Errors
    /// As [`permit`](Self::permit), [`AmError::Deferred`] and [`AmError::InTask`].
    #[inline(always)]
    pub fn permit_collective(&self, operation: &'static str, rank: JobRank) -> Result<(), AmError> {
        if self.context.get() == Context::Free && self.inside.get() == 0 {
            return Ok(());
        }
        self.look_closer_collective(operation, rank)
    }

    #[cold]
    #[inline(never)]
    fn look_closer_collective(
        &self,
        operation: &'static str,
        rank: JobRank,
    ) -> Result<(), AmError> {
        self.look_closer(operation, rank)?;
        match self.inside.get() {
            0 => Ok(()),
            TASKS => Err(AmError::InTask { operation, rank }),
            _ => Err(AmError::Deferred { operation, rank }),
        }
    }

    /// The thread runs tasks that it shares with other ranks, or no more.
    ///
    /// Then it makes no collective calls, as others wait in one for the end of all tasks.
    pub fn set_runs_tasks(&self, runs_tasks: bool) {
        self.mark(TASKS, runs_tasks);
    }

    /// Whether the thread runs client code that handlers have left to a later time.
    #[must_use]
    pub fn runs_deferred(&self) -> bool {
        self.inside.get() & DEFERRED != 0
    }

    fn mark(&self, what: u8, is_inside: bool) {
        let others = self.inside.get() & !what;
        self.inside
            .set(if is_inside { others | what } else { others });
    }

    /// The thread begins to run such code, unless it does already; whether it begins.
    pub(super) fn begin_deferred(&self) -> bool {
        let begins = !self.runs_deferred();
        self.mark(DEFERRED, true);
        if begins {
            // It may communicate, so a condition in which it runs does more than to look.
            self.note_write();
        }
        begins
    }

    /// The thread runs such code no more.
    pub(super) fn end_deferred(&self) {
        self.mark(DEFERRED, false);
    }

    /// Notes that the thread has written memory that others read, where it decides.
    #[inline(always)]
    pub fn note_write(&self) {
        if self.context.get() == Context::Deciding {
            self.acted.set(true);
        }
    }

    /// Whether the thread is traced when nothing is going on.
    pub(super) fn is_traced(&self) -> bool {
        self.rest.get() == Context::Traced
    }

    /// A payload is not prepared any more.
    ///
    /// In a handler nothing changes.
    #[inline(always)]
    pub fn leave_preparing(&self) {
        if self.context.get() == Context::Preparing {
            self.context.set(self.rest.get());
        }
    }

    /// Calls `f` with this thread's part of the engine's handle table, after
    /// [`permit`](Self::permit).
    ///
    /// `f` does not poll.
    pub(super) fn with_cache<R>(
        &self,
        table: &Arc<HandleTable>,
        f: impl FnOnce(&ThreadCache) -> R,
    ) -> R {
        let mut handles = self.handles.borrow_mut();
        let handles = handles.get_or_insert_with(|| {
            // Else no call would retire it.
            debug_assert_ne!(self.context.get(), Context::Absent);
            ManuallyDrop::new(ThreadHandles {
                table: Arc::clone(table),
                cache: table.thread_cache(),
            })
        });
        f(&handles.cache)
    }

    /// Calls `f` with this thread's part of the engine's handle table, wherever the thread is, if
    /// it has one.
    ///
    /// `f` changes nothing.
    pub(super) fn look_at_cache<R>(&self, f: impl FnOnce(&ThreadCache) -> R) -> Option<R> {
        let handles = self.handles.borrow();
        handles.as_ref().map(|handles| f(&handles.cache))
    }

    /// Gives free handles that this thread keeps to others that were refused one.
    pub(super) fn relieve(&self) {
        if let Some(handles) = &*self.handles.borrow() {
            handles.table.relieve(&handles.cache);
        }
    }

    /// Changes the context of the thread and returns the one before.
    #[inline(always)]
    pub fn enter(&self, context: Context) -> Context {
        self.context.replace(context)
    }
}

const _: () = assert!(!core::mem::needs_drop::<ThreadCtx>());

#[cfg(test)]
mod tests {
    use super::*;

    const RANK: JobRank = JobRank(3);

    thread_local! {
        static ARRIVALS: Cell<u64> = const { Cell::new(0) };
    }

    /// Lets a thread in twice.
    fn arrive() -> Result<(), Crowded> {
        let before = ARRIVALS.replace(ARRIVALS.get() + 1);
        if before < 2 {
            Ok(())
        } else {
            Err(Crowded { limit: 2 })
        }
    }

    #[test]
    fn a_thread_arrives_with_its_first_call_and_anew_when_it_was_retired() {
        let ctx = ThreadCtx::new(arrive);
        assert!(!ctx.is_free());
        for _ in 0..5 {
            ctx.permit("a poll", RANK).unwrap();
            assert!(ctx.is_free());
        }
        assert_eq!(ARRIVALS.get(), 1);
        ctx.retire();
        ctx.permit("a poll", RANK).unwrap();
        assert_eq!(ARRIVALS.get(), 2);
    }

    #[test]
    fn a_deciding_thread_may_do_everything_and_its_acts_are_recorded() {
        let ctx = ThreadCtx::uncounted();
        ctx.permit("a poll", RANK).unwrap();
        for (operations, acts) in [
            (&["a poll", "a test", "waiting"][..], false),
            (&["a test", "a put", "a poll"], true),
            (&[], false),
        ] {
            let deciding = ctx.deciding();
            for operation in operations {
                ctx.permit(operation, RANK).unwrap();
            }
            assert_eq!(deciding.has_acted(), acts, "{operations:?}");
            drop(deciding);
            assert!(ctx.is_free());
        }
        // Acts of an inner one count for the outer one, too, and acts of the outer one before it
        // still count.
        for (before, inside, after) in [
            (true, false, false),
            (false, true, false),
            (false, false, true),
        ] {
            let put = |acts| acts && ctx.permit("a put", RANK).is_ok();
            let outer = ctx.deciding();
            put(before);
            let inner = ctx.deciding();
            put(inside);
            assert_eq!(inner.has_acted(), inside);
            drop(inner);
            put(after);
            assert!(outer.has_acted());
            drop(outer);
            assert!(ctx.is_free());
        }
        // Reads are looks; later operations count.
        let deciding = ctx.deciding();
        let reading = ctx.reading(true);
        ctx.permit("a get", RANK).unwrap();
        drop(reading);
        assert!(!deciding.has_acted());
        ctx.note_write();
        assert!(deciding.has_acted());
        drop(deciding);
        assert!(ctx.is_free());
        // A payload may be prepared when it ends.
        let deciding = ctx.deciding();
        ctx.enter(Context::Preparing);
        drop(deciding);
        assert!(ctx.is_preparing());
    }

    #[test]
    fn a_refused_thread_gets_the_reason_at_each_call() {
        let ctx = ThreadCtx::new(arrive);
        ARRIVALS.set(2);
        for _ in 0..2 {
            let error = ctx.permit("a poll", RANK).unwrap_err();
            assert_eq!(
                error,
                AmError::TooManyThreads {
                    operation: "a poll",
                    limit: 2,
                    rank: RANK
                }
            );
            let text = error.to_string();
            for part in ["a poll", "thread 3 of rank 3", "GASNET_MAX_THREADS"] {
                assert!(text.contains(part), "{part} is missing in {text}");
            }
            assert!(!ctx.is_free());
        }
    }
}
