//! One wait of one thread: polls, patience, and a notice on the board when it lasts.

use super::WaitMode;
use super::background::{STUCK_SLEEP, kind};
use super::core::Engine;
use super::thread::ThreadCtx;
use super::wait::{Patience, Step, WaitPolicy};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, ThreadMode};
use argonet_settings::Letter;
use core::fmt::Write;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use core::time::Duration;

/// How an engine waits, and the state that its waiting threads share.
pub(super) struct Waits {
    automatic: WaitPolicy,
    /// The [`WaitMode`]; any thread may set it, waits that begin later follow.
    mode: AtomicU8,
    /// Threads of this rank whose wait has lasted, in PAR mode.
    ///
    /// A hint.
    threads: AtomicU32,
    /// The report that was made last; see `Board::reports_asked`.
    reported: AtomicU32,
    /// How long a wait may last before all ranks report; `None` forever.
    stall: Option<Duration>,
}

/// The longest sleep while the job is ending.
const ENDING_SLEEP: Duration = Duration::from_millis(10);

const MODES: [WaitMode; 4] = [
    WaitMode::Auto,
    WaitMode::Spin,
    WaitMode::Yield,
    WaitMode::Sleep,
];

impl Waits {
    pub(super) fn new(automatic: WaitPolicy, mode: WaitMode, stall: Option<Duration>) -> Self {
        Self {
            automatic,
            mode: AtomicU8::new(mode as u8),
            threads: AtomicU32::new(0),
            reported: AtomicU32::new(0),
            stall,
        }
    }

    fn mode(&self) -> WaitMode {
        MODES[usize::from(self.mode.load(Ordering::Relaxed)) % MODES.len()]
    }

    /// Whether ranks that wait keep others from running, unless they are set to spin.
    #[inline]
    pub(super) fn are_crowded(&self) -> bool {
        self.automatic.room == 0 && self.mode() != WaitMode::Spin
    }

    #[inline]
    fn policy(&self) -> WaitPolicy {
        WaitPolicy::for_mode(self.mode(), self.automatic)
    }
}

/// Whether a wait is inside of a call that sends, for what comes without any client code.
pub(super) const fn is_for_room(what: Waiting) -> bool {
    matches!(what.what, WaitFor::Room | WaitFor::Handle)
}

/// A wait that is under way.
///
/// The waiting thread calls [`idle`](Self::idle) until its condition holds, and drops it.
pub struct Wait<'e, C: Conduit> {
    engine: &'e Engine<C>,
    what: Waiting,
    patience: Patience,
    /// The epoch of operations in the background, before the waiting thread looked last.
    seen: u32,
    lasting: Option<Lasting>,
    /// Whether the program waits, and not the thread that serves others meanwhile.
    is_of_program: bool,
}

/// A wait that did not end within microseconds.
struct Lasting {
    since: Duration,
    /// When all ranks are asked to report.
    stalls_at: Option<Duration>,
    /// Whether this rank's notice on the board is of this wait.
    noted: bool,
}

impl<'e, C: Conduit> Wait<'e, C> {
    fn new(engine: &'e Engine<C>, what: Waiting, patience: fn(WaitPolicy) -> Patience) -> Self {
        Self {
            engine,
            what,
            patience: patience(engine.waits.policy()),
            seen: 0,
            lasting: None,
            is_of_program: true,
        }
    }

    /// The wait of the thread that serves other ranks, which holds no processor for long.
    pub(super) fn of_server(engine: &'e Engine<C>) -> Self {
        let what = Waiting::new(WaitFor::Arrival);
        let mut wait = Self::new(engine, what, |_| {
            Patience::for_message(WaitPolicy::OF_SERVER)
        });
        wait.is_of_program = false;
        wait
    }

    /// One poll, and the step after an empty one.
    ///
    /// The waiting thread tests its condition afterwards.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    #[inline]
    pub fn idle(&mut self, ctx: &ThreadCtx) -> Result<(), AmError> {
        ctx.permit("waiting", self.engine.rank())?;
        self.pause(ctx);
        Ok(())
    }

    /// [`idle`](Self::idle) where the context has been checked.
    #[inline]
    pub(super) fn pause(&mut self, ctx: &ThreadCtx) -> usize {
        self.pause_at_most(ctx, None)
    }

    /// [`pause`](Self::pause) that does not sleep longer than up to `deadline`, by the engine's
    /// clock.
    #[inline]
    pub(super) fn pause_at_most(&mut self, ctx: &ThreadCtx, deadline: Option<Duration>) -> usize {
        self.pause_with(ctx, deadline, &|| false)
    }

    /// [`pause`](Self::pause) of a wait for something outside of messages, which `come` looks for:
    /// a sleep does not begin when it is there, and the rank that brings it wakes this one.
    #[inline]
    pub(super) fn pause_unless(&mut self, ctx: &ThreadCtx, come: &dyn Fn() -> bool) -> usize {
        self.pause_with(ctx, None, come)
    }

    #[inline]
    fn pause_with(
        &mut self,
        ctx: &ThreadCtx,
        deadline: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> usize {
        let runs_deferred = !is_for_room(self.what);
        let taken = self.engine.progress_and_run(ctx, runs_deferred);
        if taken > 0 {
            self.patience.reset();
        } else {
            match self.patience.next() {
                Step::Spin => argonet_base::cpu::relax(),
                step => self.rest(ctx, step, deadline, come),
            }
        }
        // The caller tests its condition after this.
        self.patience.saw(self.engine.conduit.epoch());
        self.seen = self.engine.background.epoch();
        taken
    }

    #[cold]
    #[inline(never)]
    fn rest(
        &mut self,
        ctx: &ThreadCtx,
        step: Step,
        deadline: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) {
        // Another thread may have been refused a handle that this one keeps.
        ctx.relieve();
        let ending = self.engine.boot.attend();
        match step {
            Step::Spin => {}
            Step::Look if !self.is_of_program => {}
            Step::Look => {
                self.look();
                self.look_for_quiescence(deadline);
            }
            Step::Yield => self.engine.give_way(),
            Step::Sleep(time) => {
                argonet_trace::rest();
                let looks_again = if self.is_of_program {
                    self.look();
                    self.look_for_quiescence(deadline)
                } else {
                    None
                };
                if self.engine.background.stepped_since(self.seen) {
                    return;
                }
                let left = deadline.map_or(time, |end| end.saturating_sub((self.engine.clock)()));
                // No wakeup comes when it is time for this process to end.
                let most = if ending {
                    ENDING_SLEEP
                } else if self.engine.background.is_stuck() {
                    STUCK_SLEEP
                } else {
                    time
                };
                let time = time.min(left).min(most);
                let time = looks_again.map_or(time, |soon| time.min(soon));
                let seen = self.patience.seen();
                let seen_of_others = self.seen;
                // The second after the first: a thread that has gone on with a call publishes that
                // before it lets go of it.
                let come = || {
                    come()
                        || self.engine.cells_can_advance()
                        || self.engine.background.stepped_since(seen_of_others)
                };
                let server = &self.engine.server;
                let rests = (!self.is_of_program).then(|| server.begin_rest());
                self.engine.conduit.sleep_unless(Some(time), seen, &come);
                if let Some(begun) = rests {
                    server.end_rest(begun);
                }
            }
        }
    }

    /// Whether it begins with yields.
    #[inline]
    pub(super) fn gives_way(&self) -> bool {
        self.patience.gives_way()
    }

    /// Whether it did not end within microseconds.
    pub(super) fn lasts(&self) -> bool {
        self.lasting.is_some()
    }

    /// Takes part where ranks look for a job that cannot end; the longest sleep before it looks
    /// again.
    fn look_for_quiescence(&self, deadline: Option<Duration>) -> Option<Duration> {
        let Self { engine, what, .. } = self;
        match engine.seeks_quiescence() {
            true => engine.look_for_quiescence(*what, deadline.is_some()),
            false => None,
        }
    }

    /// Publishes the wait of this thread, and reports more if other ranks have asked for it.
    fn look(&mut self) {
        let Self { engine, what, .. } = self;
        let now = (engine.clock)();
        match &mut self.lasting {
            Some(lasting) => {
                if lasting.noted
                    && let Some(board) = engine.boot.board()
                {
                    board.go_on(engine.rank);
                }
                if let (Some(at), Some(limit)) = (lasting.stalls_at, engine.waits.stall)
                    && now >= at
                {
                    let waited = now.saturating_sub(lasting.since);
                    // Less and less often.
                    lasting.stalls_at = Some(now + waited.max(limit));
                    engine.stalled(*what, waited);
                }
            }
            None => {
                let board = engine.boot.board();
                self.lasting = Some(Lasting {
                    since: now,
                    stalls_at: engine.waits.stall.map(|limit| now + limit),
                    noted: board.is_some_and(|board| board.begin(engine.rank, *what)),
                });
                if engine.mode == ThreadMode::Par {
                    let others = engine.waits.threads.fetch_add(1, Ordering::Relaxed);
                    if others >= engine.waits.policy().room {
                        self.patience.crowd();
                    }
                }
            }
        }
        engine.report_if_asked();
    }
}

impl<C: Conduit> Drop for Wait<'_, C> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lasting) = &self.lasting {
            self.engine.wait_is_over(lasting);
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// A wait for something that a message or another thread brings.
    #[inline]
    pub fn waiting(&self, what: Waiting) -> Wait<'_, C> {
        match self.background.pending() & kind::CELLS {
            0 => Wait::new(self, what, Patience::for_message),
            _ => self.waiting_for_cell(what),
        }
    }

    /// A wait for the cell of another rank, which wakes this one if it sleeps.
    #[inline]
    pub(super) fn waiting_for_cell(&self, what: Waiting) -> Wait<'_, C> {
        let mut wait = Wait::new(self, what, Patience::for_message);
        if self.waits.are_crowded() {
            wait.patience.give_way();
        }
        wait
    }

    /// A wait for something that no rank announces, such as room at a peer, or a word of memory
    /// that a peer's put changes: it sleeps for short times only.
    #[inline]
    pub fn waiting_unannounced(&self, what: Waiting) -> Wait<'_, C> {
        Wait::new(self, what, Patience::for_room)
    }

    /// How threads wait.
    pub fn wait_mode(&self) -> WaitMode {
        self.waits.mode()
    }

    /// Makes waits that begin from now on wait otherwise.
    pub fn set_wait_mode(&self, mode: WaitMode) {
        self.waits.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Polls until something has been handled or the engine's clock shows `deadline`; how much was
    /// handled.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn poll_until(
        &self,
        ctx: &ThreadCtx,
        what: Waiting,
        deadline: Duration,
    ) -> Result<usize, AmError> {
        ctx.permit("a poll", self.rank())?;
        let mut wait = self.waiting(what);
        loop {
            let taken = wait.pause_at_most(ctx, Some(deadline));
            if taken > 0 || (self.clock)() >= deadline {
                return Ok(taken);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_is_over(&self, lasting: &Lasting) {
        if lasting.noted
            && let Some(board) = self.boot.board()
        {
            board.end(self.rank());
        }
        self.background.quiescence.did(1);
        if self.mode == ThreadMode::Par {
            self.waits.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A wait lasts too long: the rank that notices first asks all to report.
    fn stalled(&self, what: Waiting, waited: Duration) {
        let Some(board) = self.boot.board() else {
            return;
        };
        if board.ask_for_reports(self.waits.reported.load(Ordering::Relaxed)) {
            let (rank, waited) = (self.rank(), waited.as_secs_f64());
            argonet_trace::note_with(Letter::Info, || format!("waits {what} since {waited:.1} s"));
            self.boot.say(&format!(
                "argonet: rank {rank} waits {what} since {waited:.1} s. Ranks of this host:\n{board}",
            ));
        }
    }

    fn report_if_asked(&self) {
        let Some(board) = self.boot.board() else {
            return;
        };
        let asked = board.reports_asked();
        if self.waits.reported.swap(asked, Ordering::Relaxed) != asked {
            self.boot.say(&self.ledger());
        }
    }

    /// The ledger of this rank with each peer that it has used, a line each.
    pub fn ledger(&self) -> String {
        let mut text = format!("argonet: rank {} and its peers:", self.rank());
        let mut used = false;
        for peer in (0..self.size()).map(JobRank) {
            if let Some(ledger) = self.conduit.ledger(peer) {
                used = true;
                // Writing to a string cannot fail.
                let _ = write!(text, "\n  with rank {peer}: {ledger}");
            }
        }
        if !used {
            text.push_str(" nothing has been sent or received");
        }
        if let Some(connections) = self.conduit.connections() {
            let _ = write!(text, "\n  connections of {connections}");
        }
        if let Some(datagrams) = self.conduit.datagrams() {
            let _ = write!(text, "\n  datagrams of {datagrams}");
        }
        text
    }
}
