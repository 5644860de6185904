//! The engine itself: requests, negotiated payloads, polling, waiting.

use super::WaitMode;
use super::background::Background;
use super::bound::Bound;
use super::client::{ClientCode, Running, Unwound};
use super::endpoint_am::Tables;
use super::limits::internal;
use super::losses::LossWatch;
use super::mismatch::Mismatch;
use super::outgoing::Outgoing;
use super::quiescence::is_of_the_client;
use super::server::Server;
use super::shared_memory::Groups;
use super::team::Making;
use super::thread::{Context, ThreadCtx};
use super::traced::span;
use super::tree::{Barrier, Tree};
use super::vis::Vis;
use super::wait::WaitPolicy;
use super::waiting::Waits;
use argonet_am::record::Short;
use argonet_am::{
    AmError, Delivery, HandlerTable, MAX_ARGS, Message, MessageClass, Payload, Registered,
};
use argonet_base::{HandlerIndex, JobRank};
use argonet_boot::{Bootstrap, ExitMark, WaitFor, Waiting};
use argonet_conduit::{
    Completion, Conduit, OpToken, PrepareRequest, Prepared, SegmentLen, SendError, Sink, ThreadMode,
};
use argonet_event::HandleTable;
use argonet_segment::{Directory, Resolver};
use argonet_settings::Letter;
use argonet_trace::Kind;
use core::time::Duration;
use std::sync::Arc;

/// The parts of an engine.
pub struct EngineConfig<C> {
    /// Identity, and the way to end the job.
    pub boot: Arc<dyn Bootstrap>,
    /// The way to the peers.
    pub conduit: C,
    /// All handlers, the engine's own included.
    pub handlers: HandlerTable,
    /// The engine's own, as [`Internals::register`] put them into the table.
    pub internals: Internals,
    /// Segments that this process can load from and store to.
    pub directory: Arc<Directory>,
    /// Attached bytes of a rank's segment, as that rank publishes them.
    pub segment_len: SegmentLen,
    /// Where a rank's segment begins, or will begin, in that rank's process, as it publishes it.
    pub segment_base: SegmentBase,
    /// How to wait in [`WaitMode::Auto`].
    pub policy: WaitPolicy,
    /// How to wait.
    pub wait: WaitMode,
    /// How long a wait may last before all ranks report their waits; `None` forever.
    pub stall: Option<Duration>,
    /// Threads that will call.
    pub mode: ThreadMode,
    /// Explicit operations that may be outstanding at once, at most
    /// [`HandleTable::MAX_OPERATIONS`].
    pub operations: u32,
    /// A monotonic clock.
    pub clock: Box<dyn Fn() -> Duration + Send + Sync>,
}

/// Returns where a rank's segment begins, or will begin, in that rank's process.
pub type SegmentBase = Arc<dyn Fn(JobRank) -> u64 + Send + Sync>;

/// State of the engine's own handlers.
pub struct Internals {
    barrier: Arc<Barrier>,
    tree: Arc<Tree>,
    background: Arc<Background>,
    mismatch: Arc<Mismatch>,
}

impl Internals {
    /// Puts the engine's own handlers into the table, before the conduit learns which exist.
    ///
    /// # Errors
    /// [`AmError::Taken`] if one of the engine's own indices is taken.
    pub fn register(handlers: &mut HandlerTable) -> Result<Self, AmError> {
        let barrier = Arc::new(Barrier::default());
        let tree = Arc::new(Tree::default());
        let background = Arc::new(Background::default());
        let mismatch = Arc::new(Mismatch::default());
        barrier.register(handlers)?;
        tree.register(handlers)?;
        background.register(handlers)?;
        mismatch.register(handlers)?;
        Bound::register(handlers)?;
        super::ratomic::register(handlers)?;
        handlers.reserve_internal(internal::ENDPOINT_AM, "argonet::endpoint_am")?;
        Ok(Self {
            barrier,
            tree,
            background,
            mismatch,
        })
    }

    /// What takes answers in parts over, for handlers of the layer above.
    #[must_use]
    pub fn outgoing(&self) -> Outgoing {
        Outgoing::new(&self.background)
    }
}

/// One rank's engine over one conduit.
pub struct Engine<C> {
    pub(super) boot: Arc<dyn Bootstrap>,
    /// Its mark, which polls read.
    pub(super) exit_mark: ExitMark,
    pub(super) rank: JobRank,
    pub(super) size: u32,
    pub(super) conduit: C,
    pub(super) directory: Resolver,
    pub(super) segment_len: SegmentLen,
    pub(super) segment_base: SegmentBase,
    pub(super) waits: Waits,
    pub(super) server: Server,
    pub(super) barrier: Arc<Barrier>,
    pub(super) tree: Arc<Tree>,
    pub(super) background: Arc<Background>,
    pub(super) mismatch: Arc<Mismatch>,
    pub(super) events: Arc<HandleTable>,
    pub(super) mode: ThreadMode,
    pub(super) clock: Box<dyn Fn() -> Duration + Send + Sync>,
    pub(super) handlers: HandlerTable,
    /// The indices in `handlers`, in four words.
    pub(super) registered: Registered,
    /// Handlers of further endpoints.
    pub(super) tables: Tables,
    max_medium: usize,
    pub(super) bound: Bound,
    /// Small collective operations of all ranks without messages, where they share memory.
    pub(super) groups: Option<Groups>,
    pub(super) making: Arc<Making>,
    pub(super) vis: Vis,
    pub(super) unwound: Unwound,
    pub(super) losses: LossWatch,
}

/// Whether an injection may wait for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injection {
    /// Polls until there is room.
    Blocking,
    /// Returns [`AmError::Full`] at once (GASNet's `GEX_FLAG_IMMEDIATE`).
    Immediate,
}

struct Runner<'a, C> {
    engine: &'a Engine<C>,
}

impl<C: Conduit> Sink for Runner<'_, C> {
    #[inline(always)]
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let running = Running {
            delivery,
            unwound: &self.engine.unwound,
        };
        if !self.engine.handlers.dispatch(running.delivery) {
            self.engine.serve(running.delivery);
        }
        core::mem::forget(running);
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.engine.complete(op, completion, 1);
    }

    fn completed_all(&mut self, op: OpToken, completion: Completion, count: u32) {
        self.engine.complete(op, completion, count);
    }

    fn on_error(&mut self, error: AmError) {
        if self.engine.lost_by(&error).is_none() {
            self.engine.fatal_am(error);
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Puts the parts together.
    ///
    /// # Safety
    /// The caller keeps the [contract of the engine](crate#contract), and so does all code to which
    /// it gives the engine. The handlers are those that the conduit knows, and nothing else uses
    /// the conduit.
    #[allow(unsafe_code)]
    pub unsafe fn new(config: EngineConfig<C>) -> Self {
        let EngineConfig {
            boot,
            conduit,
            handlers,
            internals,
            directory,
            segment_len,
            segment_base,
            policy,
            wait,
            stall,
            mode,
            operations,
            clock,
        } = config;
        let max_medium = conduit.limits().medium_request;
        let (rank, size) = (boot.rank(), boot.size());
        let all_near = directory.are_all_mapped(size);
        let cells = conduit.shared_cells().filter(|_| all_near);
        let groups = cells.and_then(|_| Groups::new(rank, size));
        Self {
            rank,
            size,
            exit_mark: boot.exit_mark(),
            losses: LossWatch::new(&*boot),
            boot,
            conduit,
            directory: Resolver::new(directory),
            segment_len,
            segment_base,
            waits: Waits::new(policy, wait, stall),
            server: Server::default(),
            barrier: internals.barrier,
            tree: internals.tree,
            background: internals.background,
            mismatch: internals.mismatch,
            events: Arc::new(HandleTable::new(operations)),
            mode,
            clock,
            registered: handlers.registered(),
            handlers,
            tables: Tables::default(),
            max_medium,
            bound: Bound::default(),
            groups,
            making: Arc::default(),
            vis: Vis::default(),
            unwound: Unwound::default(),
        }
    }

    /// Index of the client's handler with a name.
    ///
    /// The library's own have none for clients.
    pub fn handler_named(&self, name: &str) -> Option<HandlerIndex> {
        self.handlers.find(name)
    }

    /// This rank.
    #[inline]
    pub fn rank(&self) -> JobRank {
        self.rank
    }

    /// Ranks of the job.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The time by the engine's clock.
    pub fn now(&self) -> Duration {
        (self.clock)()
    }

    /// The conduit.
    pub fn conduit(&self) -> &C {
        &self.conduit
    }

    /// The bootstrap that started the job.
    pub fn boot(&self) -> &dyn Bootstrap {
        &*self.boot
    }

    /// The segments that can be reached directly.
    pub fn directory(&self) -> &Arc<Directory> {
        self.directory.directory()
    }

    /// Ends the job with a message that names this rank, followed by the board of all ranks' waits
    /// and this rank's ledger of its peers.
    #[cold]
    pub fn fatal(&self, message: &str) -> ! {
        self.fatal_with(1, message)
    }

    /// As [`fatal`](Self::fatal), with an exit code.
    #[cold]
    pub(super) fn fatal_with(&self, code: u8, message: &str) -> ! {
        argonet_trace::note(Letter::Info, message);
        match self.boot.board().filter(|_| self.size > 1) {
            Some(board) => {
                let ledger = self.ledger();
                self.boot.abort(
                    code,
                    &format!("{message}\nRanks of this host:\n{board}{ledger}"),
                )
            }
            None => self.boot.abort(code, message),
        }
    }

    #[cold]
    pub(super) fn fatal_am(&self, error: AmError) -> ! {
        self.fatal(&error.to_string())
    }

    /// Checks a message, as far as the sender can.
    #[inline(always)]
    pub(super) fn check(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        let len = message.payload.len();
        if to.0 >= self.size
            || message.args.len() > MAX_ARGS
            || !self.registered.contains(message.handler)
            || (len > self.max_medium && matches!(message.payload, Payload::Medium(_)))
        {
            return Err(self.invalid_message(to, message));
        }
        if let Payload::Long(_, offset) = message.payload {
            self.ensure_mapped(to, offset, len)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn invalid_message(&self, to: JobRank, message: &Message<'_>) -> AmError {
        let from = self.rank;
        if let Err(error) = self.check_rank(to) {
            error
        } else if message.args.len() > MAX_ARGS {
            AmError::TooManyArgs {
                count: message.args.len(),
                from,
                to,
            }
        } else if !self.registered.contains(message.handler) {
            AmError::Unregistered {
                index: message.handler,
                from,
                to,
            }
        } else {
            AmError::TooLong {
                category: message.payload.category(),
                len: message.payload.len(),
                max: self.max_medium,
                from,
                to,
            }
        }
    }

    /// Sends a request.
    ///
    /// Its payload may be reused when this returns.
    ///
    /// # Errors
    /// The error of the message or the calling context; [`AmError::Full`] with
    /// [`Injection::Immediate`] if the peer has no room.
    #[inline]
    pub fn request(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        message: &Message<'_>,
        injection: Injection,
    ) -> Result<(), AmError> {
        if !ctx.is_free() {
            return self.request_traced(ctx, to, message, injection);
        }
        self.check(to, message)?;
        match self.inject(to, message) {
            Ok(()) => Ok(()),
            Err(SendError::Message(error)) => Err(self.refusal(ctx, error, injection)),
            Err(_) => self.request_slow(ctx, to, message, injection),
        }
    }

    /// Sends a short request of at most three arguments.
    ///
    /// # Errors
    /// As [`request`](Self::request), which it waits like.
    #[inline(always)]
    pub fn request_short(&self, ctx: &ThreadCtx, to: JobRank, short: Short) -> Result<(), AmError> {
        let sent = ctx.is_free()
            && to.0 < self.size
            && self.registered.contains(short.head.handler())
            && self.conduit.request_short(to, short);
        if sent {
            return Ok(());
        }
        self.request_short_slow(ctx, to, short)
    }

    #[cold]
    #[inline(never)]
    fn request_short_slow(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        short: Short,
    ) -> Result<(), AmError> {
        let message = Message {
            handler: short.head.handler(),
            args: &short.args()[..short.head.nargs().min(Short::MAX_ARGS)],
            payload: Payload::None,
        };
        self.request(ctx, to, &message, Injection::Blocking)
    }

    #[inline(always)]
    pub(super) fn inject(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        self.conduit.request(to, message)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn request_slow(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        message: &Message<'_>,
        injection: Injection,
    ) -> Result<(), AmError> {
        let mut wait = self.waiting_unannounced(Waiting::on(WaitFor::Room, to));
        let error = loop {
            match self.inject(to, message) {
                Ok(()) => return Ok(()),
                Err(SendError::Message(error)) => break error,
                Err(_) if injection == Injection::Immediate => {
                    return Err(AmError::Full {
                        from: self.rank,
                        to,
                    });
                }
                Err(_) => _ = wait.pause(ctx),
            }
        };
        drop(wait);
        Err(self.refusal(ctx, error, injection))
    }

    /// Reserves room for a payload that is written in place (GASNet-EX 0.19, negotiated payload).
    ///
    /// Until [`commit`](Self::commit) or [`cancel`](Self::cancel) the thread may do nothing else.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn prepare(
        &self,
        ctx: &ThreadCtx,
        want: &PrepareRequest,
        injection: Injection,
    ) -> Result<Prepared, AmError> {
        self.prepare_carried(ctx, want, MAX_ARGS, injection)
    }

    /// [`prepare`](Self::prepare) of a message with at most so many arguments.
    pub(super) fn prepare_carried(
        &self,
        ctx: &ThreadCtx,
        want: &PrepareRequest,
        most_args: usize,
        injection: Injection,
    ) -> Result<Prepared, AmError> {
        ctx.permit("a prepare", self.rank)?;
        let want = &PrepareRequest {
            most: want.most.max(want.least),
            ..*want
        };
        let PrepareRequest {
            to,
            nargs,
            least,
            most,
            offset,
            ..
        } = *want;
        let from = self.rank;
        self.check_rank(to)?;
        if nargs > most_args {
            return Err(AmError::TooManyArgs {
                count: nargs - (most_args - MAX_ARGS),
                from,
                to,
            });
        }
        match offset {
            Some(offset) => {
                self.ensure_mapped(to, offset, most)?;
            }
            None if least > self.max_medium => {
                let category = argonet_am::Category::Medium;
                return Err(AmError::TooLong {
                    category,
                    len: least,
                    max: self.max_medium,
                    from,
                    to,
                });
            }
            None => {}
        }
        let mut wait = self.waiting_unannounced(Waiting::on(WaitFor::Room, to));
        let error = loop {
            match self.conduit.prepare(want) {
                Ok(prepared) => {
                    if want.class == MessageClass::Request {
                        ctx.enter(Context::Preparing);
                    }
                    return Ok(prepared);
                }
                Err(SendError::Message(error)) => break error,
                Err(_) if injection == Injection::Immediate => {
                    return Err(AmError::Full { from, to });
                }
                Err(_) => _ = wait.pause(ctx),
            }
        };
        drop(wait);
        Err(self.refusal(ctx, error, injection))
    }

    /// Sends a prepared payload of `len` bytes.
    ///
    /// # Errors
    /// [`AmError::Unregistered`]; the payload is canceled then.
    ///
    /// # Panics
    /// If the number of arguments is not the prepared one, or the length is above the prepared
    /// capacity; the payload is canceled then.
    pub fn commit(
        &self,
        ctx: &ThreadCtx,
        prepared: Prepared,
        handler: HandlerIndex,
        args: &[u32],
        len: usize,
    ) -> Result<(), AmError> {
        if args.len() != prepared.nargs() || len > prepared.capacity() {
            self.broken_commit(ctx, prepared, args.len(), len);
        }
        if !self.registered.contains(handler) {
            let to = prepared.to();
            self.cancel(ctx, prepared);
            return Err(AmError::Unregistered {
                index: handler,
                from: self.rank,
                to,
            });
        }
        ctx.leave_preparing();
        if ctx.is_traced() {
            self.commit_traced(prepared, handler, args, len);
            return Ok(());
        }
        self.conduit.commit(prepared, handler, args, len);
        Ok(())
    }

    /// Gives the payload back before it panics: its room would stay reserved forever, and nothing
    /// behind it would be read.
    #[cold]
    #[inline(never)]
    pub(super) fn broken_commit(
        &self,
        ctx: &ThreadCtx,
        prepared: Prepared,
        nargs: usize,
        len: usize,
    ) -> ! {
        let (prepared_nargs, capacity) = (prepared.nargs(), prepared.capacity());
        self.cancel(ctx, prepared);
        panic!(
            "rank {}: a commit of {nargs} arguments and {len} bytes, where {prepared_nargs} arguments and at most {capacity} bytes were prepared",
            self.rank
        );
    }

    /// Gives a prepared payload back; nothing is sent.
    pub fn cancel(&self, ctx: &ThreadCtx, prepared: Prepared) {
        ctx.leave_preparing();
        self.conduit.cancel(prepared);
    }

    /// Runs the handlers of messages that have arrived and goes on with collective operations that
    /// were started; returns how much there was to do.
    ///
    /// Bounded work a call.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    #[inline]
    pub fn poll(&self, ctx: &ThreadCtx) -> Result<usize, AmError> {
        if !ctx.is_free() {
            return self.poll_traced(ctx);
        }
        Ok(self.progress_and_run(ctx, true))
    }

    /// Runs the handlers of messages that this rank has sent to itself: on return those of the
    /// caller's messages have run, or run in another thread.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    #[inline]
    pub fn poll_own(&self, ctx: &ThreadCtx) -> Result<usize, AmError> {
        ctx.permit("a poll", self.rank)?;
        let taken = self.run_handlers(ctx, |runner| self.conduit.poll_own(runner));
        if self.conduit.owes_itself() {
            let what = Waiting::on(WaitFor::Arrival, self.rank);
            self.wait_until(ctx, what, || !self.conduit.owes_itself())?;
        }
        Ok(taken)
    }

    /// Runs handlers of the messages that `poll` takes.
    #[inline(always)]
    fn run_handlers(
        &self,
        ctx: &ThreadCtx,
        poll: impl FnOnce(&mut Runner<'_, C>) -> usize,
    ) -> usize {
        self.call_client(ctx, ClientCode::Handlers, || {
            poll(&mut Runner { engine: self })
        })
    }

    /// A poll whose context has been checked.
    #[inline]
    pub(super) fn progress(&self, ctx: &ThreadCtx) -> usize {
        self.progress_and_run(ctx, false)
    }

    /// The same, which also runs [deferred](Self::on_deferred) code if `runs_deferred` says so.
    #[inline]
    pub(super) fn progress_and_run(&self, ctx: &ThreadCtx, runs_deferred: bool) -> usize {
        let taken = self.run_handlers(ctx, |runner| self.conduit.poll_with(runner));
        // A poll that takes something has no eye for the job's end.
        if self.background.pending() != 0
            || (taken == 0 && self.exit_mark.is_set())
            || self.losses.has_new()
        {
            return taken + self.advance(ctx, taken, runs_deferred);
        }
        taken
    }

    /// Polls until `done`, politely.
    ///
    /// `what` is published when the wait lasts.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    #[inline]
    pub fn wait_until(
        &self,
        ctx: &ThreadCtx,
        what: Waiting,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), AmError> {
        ctx.permit("waiting", self.rank)?;
        let _span = span(ctx, Kind::WaitUntil);
        let mut wait = self.waiting(what);
        if done() {
            return Ok(());
        }
        loop {
            // The condition is the client's: it may have prepared a payload. Handlers that ran
            // between prepare and commit could cancel it and then communicate.
            ctx.permit("waiting", self.rank)?;
            wait.pause(ctx);
            let is_over = match is_of_the_client(what.what) {
                true => self.decide(ctx, &mut done),
                false => done(),
            };
            if is_over {
                return Ok(());
            }
        }
    }

    /// [`wait_until`](Self::wait_until) with an end: whether `done` came true before the engine's
    /// clock showed `deadline`.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn wait_until_deadline(
        &self,
        ctx: &ThreadCtx,
        what: Waiting,
        deadline: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<bool, AmError> {
        ctx.permit("waiting", self.rank)?;
        let _span = span(ctx, Kind::WaitUntil);
        let mut wait = self.waiting(what);
        while !done() {
            if (self.clock)() >= deadline {
                return Ok(false);
            }
            ctx.permit("waiting", self.rank)?;
            wait.pause_at_most(ctx, Some(deadline));
        }
        Ok(true)
    }
}
