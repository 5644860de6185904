//! The trait of conduits, as this one has it.

use super::core::Portals;
use super::send::{Keeps, LIMITS};
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use crate::datagrams::Datagrams;
use crate::exit::{ExitCounts, ExitReport, HearExit};
use crate::gauges::Gauges;
use crate::ledger::{ClassLedger, Held, PeerLedger};
use crate::shown_bank::ShownBank;
use argonet_am::Message;
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_nic::portals::Portals as Interface;
use argonet_settings::PORTALS_ROW;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

/// Name as in `--conduit`.
pub const NAME: &str = PORTALS_ROW.name;

/// Operations that the conduit does itself, over any interface.
pub const CAPABILITIES: Capabilities = Capabilities {
    put: true,
    get: true,
    atomics: false,
    completes_at_injection: false,
};

/// The longest wait of an ending process for peers that do not confirm its messages: a confirmation
/// may take a datagram that is sent again.
const GRACE: Duration = Duration::from_secs(2);

/// The same where this rank has reported its exit to others that have not confirmed it: they may
/// have gone without a word.
const LINGER_FOR_THE_GONE: Duration = Duration::from_millis(200);

/// How long threads of an interface that never sleep have the processor where a yield is asked for.
const LEFT_TO_THREADS: Duration = Duration::from_micros(20);

impl<N: Interface + Send + Sync> Conduit for Portals<N> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        self.send_request(to, message, Keeps::Call).map(drop)
    }

    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.send_request(to, message, Keeps::Until(op))
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        self.prepare_payload(want)
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        self.commit_payload(&prepared, handler, args, len);
    }

    fn cancel(&self, prepared: Prepared) {
        self.cancel_payload(&prepared);
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise.
        unsafe { self.transfer::<false>(to, offset, src.cast_mut(), len, op) }
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise.
        unsafe { self.transfer::<true>(from, offset, dst, len, op) }
    }

    fn moves_now(&self) -> bool {
        self.synchronous
    }

    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.move_now::<false>(to, offset, src.cast_mut(), len) }
    }

    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.move_now::<true>(from, offset, dst, len) }
    }

    fn owes_itself(&self) -> bool {
        !self.synchronous && self.peer(self.rank).state.lock().chunks > 0
    }

    fn polls_ask_system(&self) -> bool {
        self.nic.attends()
    }

    fn busy_threads(&self) -> u32 {
        self.nic.busy_threads()
    }

    fn yield_now(&self) {
        match self.nic.busy_threads() {
            0 => std::thread::yield_now(),
            _ => std::thread::sleep(LEFT_TO_THREADS),
        }
    }

    fn exit_grace(&self, limit: Duration) -> bool {
        let exits = self.exits.counts();
        let most = match exits.reported > exits.confirmed {
            true => LINGER_FOR_THE_GONE,
            false => GRACE,
        };
        self.nic.exit_grace(limit.min(most))
    }

    fn segment_grown(&self) -> Result<(), String> {
        let followed = self.segment.follow(&self.nic);
        followed.map_err(|error| error.to_string())
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.poll_queues(sink)
    }

    #[inline]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        self.poll_queues(sink)
    }

    fn has_work(&self) -> bool {
        self.has_anything()
    }

    fn is_quiescent(&self) -> bool {
        self.is_quiescent()
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.sleepers.epoch()
    }

    fn kept_from_sinks(&self) -> u64 {
        self.kept_from_sinks.load(Ordering::Relaxed)
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.wait(timeout, seen);
    }

    fn wake(&self) {
        self.sleepers.moved_and_wake(false, || self.nic.wake());
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        let used = self.peers.used(peer.0).filter(|_| self.may_enter());
        let state = used?.state.try_lock()?;
        Some(PeerLedger {
            unit: "messages",
            requests: ClassLedger {
                sent: state.sent,
                taken: state.answered,
                handled: state.handled,
                waiting: false,
            },
            // A reply for each request.
            replies: ClassLedger {
                sent: state.handled,
                taken: 0,
                handled: state.answered,
                waiting: false,
            },
            held: Held::default(),
            rails: None,
        })
    }

    fn datagrams(&self) -> Option<Datagrams> {
        Some(Datagrams {
            rank: self.rank.0,
            ranks: self.ranks,
            dropped: self.nic.dropped()?,
        })
    }

    fn gauges(&self) -> Option<Arc<Gauges>> {
        self.bank.as_ref().map(ShownBank::gauges)
    }

    fn on_exit(&self, act: HearExit) {
        self.exits.on_exit(act);
    }

    fn report_exit(&self, exit: &ExitReport<'_>) -> bool {
        if !self.may_enter() {
            // The thread that calls the conduit may sleep, and no other thread wakes it for this.
            self.wake();
            return false;
        }
        self.exits.report(exit, self);
        true
    }

    fn exits(&self) -> Option<ExitCounts> {
        Some(self.exits.counts())
    }
}
