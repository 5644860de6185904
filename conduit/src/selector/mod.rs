//! Chooses the conduit for a rank: shared memory to its neighbors, a network to all others.
//!
//! Ranks that share memory have consecutive numbers, so that the choice is one comparison. A rank
//! whose job has no other neighborhood has no network, and one without neighbors sends also to
//! itself over the network, whose polls and sleeps then know of everything.
//!
//! A poll of shared memory takes a few nanoseconds and one of the network is a system call. So the
//! network is polled in each poll while something has come from it lately or is expected, and else
//! only now and then (`pace`). Ranks with both sleep on shared memory, where neighbors wake them,
//! while a thread sleeps on the network and wakes them when something comes (`watch`).

mod pace;
#[cfg(test)]
mod tests;
mod watch;

use crate::SharedCells;
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use crate::connections::Connections;
use crate::datagrams::Datagrams;
use crate::exit::{ExitCounts, ExitReport, HearExit};
use crate::failover::RailReport;
use crate::gauges::Gauges;
use crate::ledger::PeerLedger;
use crate::smp::Smp;
use argonet_am::record::Short;
use argonet_am::{Message, MessageClass};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use core::time::Duration;
use pace::Pace;
use std::sync::Arc;
use watch::Watch;

/// A network that ranks of other neighborhoods are reached through.
pub type Network = Arc<dyn Conduit>;

/// How long a rank sleeps at most while no thread watches its network.
const UNWATCHED: Duration = Duration::from_millis(1);

/// The conduits of a rank, as one.
pub struct Selector {
    /// Ranks that `smp` leads to: the lowest, and how many.
    ///
    /// None where the network leads to all.
    first: u32,
    count: u32,
    smp: Smp,
    remote: Option<Remote>,
}

struct Remote {
    network: Network,
    /// What the network says of itself.
    moves_now: bool,
    pace: Pace,
    watch: Watch,
}

impl Selector {
    /// All ranks are neighbors.
    #[must_use]
    pub fn neighbors_only(smp: Smp) -> Self {
        let neighbors = smp.neighbors();
        Self {
            first: neighbors.start,
            count: neighbors.len() as u32,
            smp,
            remote: None,
        }
    }

    /// `smp` leads to the neighbors, if this rank has any, and `network` to everybody else.
    #[must_use]
    pub fn over(network: Network, smp: Smp) -> Self {
        let neighbors = smp.neighbors();
        let count = match neighbors.len() as u32 {
            1 => 0,
            count => count,
        };
        Self {
            first: neighbors.start,
            count,
            smp,
            remote: Some(Remote {
                moves_now: network.moves_now(),
                network,
                pace: Pace::new(count > 0),
                watch: Watch::default(),
            }),
        }
    }

    /// The shared memory that leads to a rank, or the network.
    #[inline(always)]
    fn to(&self, rank: JobRank) -> Chosen<'_> {
        if rank.0.wrapping_sub(self.first) < self.count {
            return Chosen::Memory(&self.smp);
        }
        match &self.remote {
            Some(remote) => Chosen::Network(remote),
            // It has the error for a rank that is none of its own.
            None => Chosen::Memory(&self.smp),
        }
    }

    /// Shared memory, where it leads to any rank.
    #[inline(always)]
    fn memory(&self) -> Option<&Smp> {
        (self.count > 0).then_some(&self.smp)
    }
}

enum Chosen<'a> {
    Memory(&'a Smp),
    Network(&'a Remote),
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.watch.end(&self.network);
    }
}

impl Remote {
    /// The network, of which an answer may be expected from now on.
    #[inline]
    fn used(&self) -> &dyn Conduit {
        self.pace.used();
        &*self.network
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        let taken = self.network.poll(sink);
        self.pace.polled(taken);
        taken
    }
}

impl Conduit for Selector {
    fn name(&self) -> &'static str {
        match &self.remote {
            Some(remote) => remote.network.name(),
            None => Smp::NAME,
        }
    }

    /// The limits that hold on every path.
    fn limits(&self) -> Limits {
        let Some(remote) = &self.remote else {
            return Smp::LIMITS;
        };
        let (memory, remote) = (Smp::LIMITS, remote.network.limits());
        Limits {
            args: memory.args.min(remote.args),
            medium_request: memory.medium_request.min(remote.medium_request),
            medium_reply: memory.medium_reply.min(remote.medium_reply),
            long: memory.long.min(remote.long),
        }
    }

    fn capabilities(&self) -> Capabilities {
        match &self.remote {
            Some(remote) => remote.network.capabilities(),
            None => Smp::CAPABILITIES,
        }
    }

    #[inline(always)]
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        match self.to(to) {
            Chosen::Memory(smp) => smp.request(to, message),
            Chosen::Network(remote) => remote.used().request(to, message),
        }
    }

    #[inline(always)]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        match self.to(to) {
            Chosen::Memory(smp) => smp.request_short(to, short),
            Chosen::Network(remote) => remote.used().request_short(to, short),
        }
    }

    #[inline]
    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise is the conduit's.
        unsafe {
            match self.to(to) {
                Chosen::Memory(smp) => smp.request_in_place(to, message, op),
                Chosen::Network(remote) => remote.used().request_in_place(to, message, op),
            }
        }
    }

    #[inline]
    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        match self.to(want.to) {
            Chosen::Memory(smp) => smp.prepare(want),
            Chosen::Network(remote) => remote.network.prepare(want),
        }
    }

    #[inline]
    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        match self.to(prepared.to()) {
            Chosen::Memory(smp) => smp.commit(prepared, handler, args, len),
            Chosen::Network(remote) if prepared.class() == MessageClass::Request => {
                remote.used().commit(prepared, handler, args, len);
            }
            Chosen::Network(remote) => remote.network.commit(prepared, handler, args, len),
        }
    }

    fn cancel(&self, prepared: Prepared) {
        match self.to(prepared.to()) {
            Chosen::Memory(smp) => smp.cancel(prepared),
            Chosen::Network(remote) => remote.network.cancel(prepared),
        }
    }

    #[inline]
    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise is the conduit's.
        unsafe {
            match self.to(to) {
                Chosen::Memory(smp) => smp.put(to, offset, src, len, op),
                Chosen::Network(remote) => remote.used().put(to, offset, src, len, op),
            }
        }
    }

    #[inline]
    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise is the conduit's.
        unsafe {
            match self.to(from) {
                Chosen::Memory(smp) => smp.get(from, offset, dst, len, op),
                Chosen::Network(remote) => remote.used().get(from, offset, dst, len, op),
            }
        }
    }

    fn moves_now(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.moves_now)
    }

    #[inline]
    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool {
        match self.to(to) {
            // SAFETY: the caller's promise is the conduit's.
            Chosen::Network(remote) if remote.moves_now => unsafe {
                remote.network.put_now(to, offset, src, len)
            },
            _ => false,
        }
    }

    #[inline]
    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool {
        match self.to(from) {
            // SAFETY: the caller's promise is the conduit's.
            Chosen::Network(remote) if remote.moves_now => unsafe {
                remote.network.get_now(from, offset, dst, len)
            },
            _ => false,
        }
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        let taken = self.memory().map_or(0, |smp| smp.poll(sink));
        match &self.remote {
            Some(remote) if remote.pace.is_due() => taken + remote.poll(sink),
            _ => taken,
        }
    }

    #[inline(always)]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        let Some(remote) = &self.remote else {
            return self.smp.poll_with(sink);
        };
        let taken = self.memory().map_or(0, |smp| smp.poll_with(sink));
        match remote.pace.is_due() {
            true => taken + remote.poll(sink),
            false => taken,
        }
    }

    fn poll_own<S: Sink>(&self, sink: &mut S) -> usize {
        match (self.memory(), &self.remote) {
            (Some(smp), _) => smp.poll_own(sink),
            (None, Some(remote)) => remote.poll(sink),
            (None, None) => 0,
        }
    }

    fn owes_itself(&self) -> bool {
        let remote = self.remote.as_ref().filter(|_| self.memory().is_none());
        remote.is_some_and(|remote| remote.network.owes_itself())
    }

    fn has_work(&self) -> bool {
        let memory = self.memory().is_some_and(Conduit::has_work);
        memory
            || self
                .remote
                .as_ref()
                .is_some_and(|remote| remote.network.has_work())
    }

    fn is_quiescent(&self) -> bool {
        let memory = self.memory().is_none_or(Conduit::is_quiescent);
        memory
            && self
                .remote
                .as_ref()
                .is_none_or(|remote| remote.network.is_quiescent())
    }

    fn acknowledge(&self) {
        if let Some(remote) = &self.remote {
            remote.network.acknowledge();
        }
    }

    /// Each conduit's number only grows, so their sum is another one when any is.
    #[inline]
    fn epoch(&self) -> u32 {
        let memory = self.memory().map_or(0, Conduit::epoch);
        let remote = self
            .remote
            .as_ref()
            .map_or(0, |remote| remote.network.epoch());
        memory.wrapping_add(remote)
    }

    fn kept_from_sinks(&self) -> u64 {
        let remote = self.remote.as_ref();
        remote.map_or(0, |remote| remote.network.kept_from_sinks())
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.sleep_unless(timeout, seen, &|| false);
    }

    fn yield_now(&self) {
        match &self.remote {
            Some(remote) => remote.network.yield_now(),
            None => std::thread::yield_now(),
        }
    }

    fn sleep_unless(&self, timeout: Option<Duration>, seen: u32, come: &dyn Fn() -> bool) {
        match (self.memory(), &self.remote) {
            (Some(smp), None) => smp.sleep_unless(timeout, seen, come),
            (None, Some(remote)) => remote.network.sleep_unless(timeout, seen, come),
            (Some(smp), Some(remote)) => {
                let known = remote.network.epoch();
                let watched = remote.watch.over(&remote.network, known, || smp.waker());
                let timeout = match watched {
                    true => timeout,
                    false => Some(timeout.map_or(UNWATCHED, |time| time.min(UNWATCHED))),
                };
                let other = || self.epoch() != seen || come() || remote.network.has_work();
                smp.sleep_unless(timeout, smp.epoch(), &other);
                // The message that woke it may have come over the network.
                remote.pace.used();
            }
            (None, None) => {}
        }
    }

    #[inline(always)]
    fn shared_cells(&self) -> Option<SharedCells<'_>> {
        self.memory().and_then(Conduit::shared_cells)
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        match self.to(peer) {
            Chosen::Memory(smp) => smp.ledger(peer),
            Chosen::Network(remote) => remote.network.ledger(peer),
        }
    }

    fn connections(&self) -> Option<Connections> {
        self.remote.as_ref()?.network.connections()
    }

    fn rail_report(&self) -> Option<RailReport> {
        self.remote.as_ref()?.network.rail_report()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        self.remote.as_ref()?.network.datagrams()
    }

    fn exit_grace(&self, limit: Duration) -> bool {
        let remote = self.remote.as_ref();
        remote.is_none_or(|remote| remote.network.exit_grace(limit))
    }

    fn lose(&self, peer: JobRank, sink: &mut dyn Sink) -> bool {
        match self.to(peer) {
            Chosen::Memory(smp) => smp.lose(peer, sink),
            Chosen::Network(remote) => remote.network.lose(peer, sink),
        }
    }

    fn wake(&self) {
        // Where both are there a thread sleeps on memory.
        match (self.memory(), &self.remote) {
            (Some(smp), _) => smp.wake(),
            (None, Some(remote)) => remote.network.wake(),
            (None, None) => {}
        }
    }

    fn wake_rank(&self, rank: JobRank) {
        match self.to(rank) {
            Chosen::Memory(smp) => smp.wake_rank(rank),
            Chosen::Network(remote) => remote.network.wake_rank(rank),
        }
    }

    fn outlives_peers(&self) -> bool {
        let remote = self.remote.as_ref();
        remote.is_none_or(|remote| remote.network.outlives_peers())
    }

    fn gauges(&self) -> Option<Arc<Gauges>> {
        self.remote.as_ref()?.network.gauges()
    }

    fn on_exit(&self, act: HearExit) {
        if let Some(remote) = &self.remote {
            remote.network.on_exit(act);
        }
    }

    fn report_exit(&self, exit: &ExitReport<'_>) -> bool {
        let remote = self.remote.as_ref();
        remote.is_none_or(|remote| remote.network.report_exit(exit))
    }

    fn exits(&self) -> Option<ExitCounts> {
        self.remote.as_ref()?.network.exits()
    }
}
