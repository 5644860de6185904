//! A conduit whose calls take virtual time.
#![allow(unsafe_code)]

use crate::clock::Place;
use argonet_am::Message;
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::{
    Capabilities, Conduit, Connections, ExitCounts, ExitReport, HearExit, Injected, Limits,
    OpToken, PeerLedger, PrepareRequest, Prepared, SendError, Sink,
};
use core::ops::Deref;
use core::time::Duration;

/// The conduit of a rank of a cluster.
///
/// Its work between calls takes no time.
pub struct Timed<C> {
    conduit: C,
    place: Place,
    poll_ns: u64,
    inject_ns: u64,
    /// The longest sleep, where the conduit does not sleep by the cluster.
    nap: Option<Duration>,
}

impl<C> Timed<C> {
    /// `nap`: the conduit is not woken, so it looks again after this time.
    pub(crate) fn new(
        conduit: C,
        place: Place,
        [poll_ns, inject_ns]: [u64; 2],
        nap: Option<Duration>,
    ) -> Self {
        Self {
            conduit,
            place,
            poll_ns,
            inject_ns,
            nap,
        }
    }

    pub(crate) fn spend(&self, time: Duration) {
        self.place.spend(time.as_nanos() as u64);
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    fn inject(&self) -> &C {
        self.place.spend(self.inject_ns);
        &self.conduit
    }
}

impl<C> Deref for Timed<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.conduit
    }
}

impl<C: Conduit> Conduit for Timed<C> {
    fn name(&self) -> &'static str {
        self.conduit.name()
    }

    fn limits(&self) -> Limits {
        self.conduit.limits()
    }

    fn capabilities(&self) -> Capabilities {
        self.conduit.capabilities()
    }

    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        self.inject().request(to, message)
    }

    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise.
        unsafe { self.inject().request_in_place(to, message, op) }
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        self.conduit.prepare(want)
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        self.inject().commit(prepared, handler, args, len);
    }

    fn cancel(&self, prepared: Prepared) {
        self.conduit.cancel(prepared);
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
        unsafe { self.inject().put(to, offset, src, len, op) }
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
        unsafe { self.inject().get(from, offset, dst, len, op) }
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.place.spend(self.poll_ns);
        self.conduit.poll(sink)
    }

    fn has_work(&self) -> bool {
        self.conduit.has_work()
    }

    fn is_quiescent(&self) -> bool {
        self.conduit.is_quiescent()
    }

    fn yield_now(&self) {
        self.place.spend(self.poll_ns);
    }

    fn epoch(&self) -> u32 {
        self.conduit.epoch()
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        let Some(nap) = self.nap else {
            return self.conduit.sleep(timeout, seen);
        };
        if self.epoch() != seen || self.has_work() {
            return;
        }
        let time = timeout.map_or(nap, |timeout| timeout.min(nap));
        let now_ns = self.place.clock.now_ns();
        self.place.park(Some(now_ns + time.as_nanos() as u64));
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        self.conduit.ledger(peer)
    }

    fn wake(&self) {
        self.conduit.wake();
    }

    fn connections(&self) -> Option<Connections> {
        self.conduit.connections()
    }

    fn on_exit(&self, act: HearExit) {
        self.conduit.on_exit(act);
    }

    fn report_exit(&self, exit: &ExitReport<'_>) -> bool {
        self.conduit.report_exit(exit)
    }

    fn exits(&self) -> Option<ExitCounts> {
        self.conduit.exits()
    }
}
