//! The paths of a rank: shared memory to its neighbors, a network to all others.
//!
//! Ranks that share memory have consecutive numbers, so that which path leads to a rank is one comparison. A rank
//! whose job has no other neighborhood has no network, and one without neighbors sends also to itself over the network, whose
//! polls and sleeps then know of everything.
//!
//! A poll of shared memory takes a few nanoseconds and one of the network is a system call. So the network is polled in each poll
//! while something has come from it lately or is expected, and else only now and then (`pace`). Ranks with both sleep on
//! shared memory, where neighbors wake them, while a thread sleeps on the network and wakes them when something comes (`watch`).

mod pace;
#[cfg(test)]
mod tests;
mod watch;

use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use crate::datagrams::Datagrams;
use crate::exit::{ExitCounts, HearExit, TellExit};
use crate::gauges::Gauges;
use crate::ledger::PeerLedger;
use crate::smp::{Lines, Smp};
use crate::tcp::Connections;
use argonet_am::record::Short;
use argonet_am::{Message, MessageClass};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use core::time::Duration;
use pace::Pace;
use std::sync::Arc;
use watch::Watch;

/// A network that ranks of other neighborhoods are reached through.
pub type Network = Arc<dyn Conduit>;

/// How long a rank sleeps at most while nobody watches its network.
const UNWATCHED: Duration = Duration::from_millis(1);

/// The conduits of a rank, as one.
pub struct Paths {
    /// Ranks that `near` leads to: the lowest, and how many. None where the network leads to all.
    first: u32,
    count: u32,
    near: Smp,
    far: Option<Far>,
}

struct Far {
    network: Network,
    pace: Pace,
    watch: Watch,
}

impl Paths {
    /// All ranks are neighbors.
    #[must_use]
    pub fn near(smp: Smp) -> Self {
        let neighbors = smp.neighbors();
        Self {
            first: neighbors.start,
            count: neighbors.len() as u32,
            near: smp,
            far: None,
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
            near: smp,
            far: Some(Far {
                network,
                pace: Pace::new(count > 0),
                watch: Watch::default(),
            }),
        }
    }

    /// The shared memory that leads to a rank, or the network.
    #[inline(always)]
    fn to(&self, rank: JobRank) -> Path<'_> {
        if rank.0.wrapping_sub(self.first) < self.count {
            return Path::Near(&self.near);
        }
        match &self.far {
            Some(far) => Path::Far(far),
            // It knows what to say of a rank that is none of its own.
            None => Path::Near(&self.near),
        }
    }

    /// Shared memory, where it leads to anybody.
    #[inline(always)]
    fn memory(&self) -> Option<&Smp> {
        (self.count > 0).then_some(&self.near)
    }
}

enum Path<'a> {
    Near(&'a Smp),
    Far(&'a Far),
}

impl Drop for Far {
    fn drop(&mut self) {
        self.watch.end(&self.network);
    }
}

impl Far {
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

impl Conduit for Paths {
    fn name(&self) -> &'static str {
        match &self.far {
            Some(far) => far.network.name(),
            None => Smp::NAME,
        }
    }

    /// What holds on every path.
    fn limits(&self) -> Limits {
        let Some(far) = &self.far else {
            return Smp::LIMITS;
        };
        let (near, far) = (Smp::LIMITS, far.network.limits());
        Limits {
            args: near.args.min(far.args),
            medium_request: near.medium_request.min(far.medium_request),
            medium_reply: near.medium_reply.min(far.medium_reply),
            long: near.long.min(far.long),
        }
    }

    fn capabilities(&self) -> Capabilities {
        match &self.far {
            Some(far) => far.network.capabilities(),
            None => Smp::CAPABILITIES,
        }
    }

    #[inline(always)]
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        match self.to(to) {
            Path::Near(smp) => smp.request(to, message),
            Path::Far(far) => far.used().request(to, message),
        }
    }

    #[inline(always)]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        match self.to(to) {
            Path::Near(smp) => smp.request_short(to, short),
            Path::Far(far) => far.used().request_short(to, short),
        }
    }

    #[inline]
    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        // SAFETY: the caller's promise is the path's.
        unsafe {
            match self.to(to) {
                Path::Near(smp) => smp.request_in_place(to, message, op),
                Path::Far(far) => far.used().request_in_place(to, message, op),
            }
        }
    }

    #[inline]
    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        match self.to(want.to) {
            Path::Near(smp) => smp.prepare(want),
            Path::Far(far) => far.network.prepare(want),
        }
    }

    #[inline]
    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        match self.to(prepared.to()) {
            Path::Near(smp) => smp.commit(prepared, handler, args, len),
            Path::Far(far) if prepared.class() == MessageClass::Request => {
                far.used().commit(prepared, handler, args, len);
            }
            Path::Far(far) => far.network.commit(prepared, handler, args, len),
        }
    }

    fn cancel(&self, prepared: Prepared) {
        match self.to(prepared.to()) {
            Path::Near(smp) => smp.cancel(prepared),
            Path::Far(far) => far.network.cancel(prepared),
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
        // SAFETY: the caller's promise is the path's.
        unsafe {
            match self.to(to) {
                Path::Near(smp) => smp.put(to, offset, src, len, op),
                Path::Far(far) => far.used().put(to, offset, src, len, op),
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
        // SAFETY: the caller's promise is the path's.
        unsafe {
            match self.to(from) {
                Path::Near(smp) => smp.get(from, offset, dst, len, op),
                Path::Far(far) => far.used().get(from, offset, dst, len, op),
            }
        }
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        let taken = self.memory().map_or(0, |smp| smp.poll(sink));
        match &self.far {
            Some(far) if far.pace.is_due() => taken + far.poll(sink),
            _ => taken,
        }
    }

    #[inline(always)]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        let Some(far) = &self.far else {
            return self.near.poll_with(sink);
        };
        let taken = self.memory().map_or(0, |smp| smp.poll_with(sink));
        match far.pace.is_due() {
            true => taken + far.poll(sink),
            false => taken,
        }
    }

    fn poll_own<S: Sink>(&self, sink: &mut S) -> usize {
        match (self.memory(), &self.far) {
            (Some(smp), _) => smp.poll_own(sink),
            (None, Some(far)) => far.poll(sink),
            (None, None) => 0,
        }
    }

    fn owes_itself(&self) -> bool {
        let far = self.far.as_ref().filter(|_| self.memory().is_none());
        far.is_some_and(|far| far.network.owes_itself())
    }

    fn has_work(&self) -> bool {
        let near = self.memory().is_some_and(Conduit::has_work);
        near || self.far.as_ref().is_some_and(|far| far.network.has_work())
    }

    fn is_quiescent(&self) -> bool {
        let near = self.memory().is_none_or(Conduit::is_quiescent);
        near && self
            .far
            .as_ref()
            .is_none_or(|far| far.network.is_quiescent())
    }

    /// Each path's number only grows, so their sum is another one when any is.
    #[inline]
    fn epoch(&self) -> u32 {
        let near = self.memory().map_or(0, Conduit::epoch);
        let far = self.far.as_ref().map_or(0, |far| far.network.epoch());
        near.wrapping_add(far)
    }

    fn kept_from_sinks(&self) -> u64 {
        let far = self.far.as_ref();
        far.map_or(0, |far| far.network.kept_from_sinks())
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.sleep_unless(timeout, seen, &|| false);
    }

    fn yield_now(&self) {
        match &self.far {
            Some(far) => far.network.yield_now(),
            None => std::thread::yield_now(),
        }
    }

    fn sleep_unless(&self, timeout: Option<Duration>, seen: u32, come: &dyn Fn() -> bool) {
        match (self.memory(), &self.far) {
            (Some(smp), None) => smp.sleep_unless(timeout, seen, come),
            (None, Some(far)) => far.network.sleep_unless(timeout, seen, come),
            (Some(smp), Some(far)) => {
                let known = far.network.epoch();
                let watched = far.watch.over(&far.network, known, || smp.waker());
                let timeout = match watched {
                    true => timeout,
                    false => Some(timeout.map_or(UNWATCHED, |time| time.min(UNWATCHED))),
                };
                let other = || self.epoch() != seen || come() || far.network.has_work();
                smp.sleep_unless(timeout, smp.epoch(), &other);
                // What woke it may have come over the network.
                far.pace.used();
            }
            (None, None) => {}
        }
    }

    #[inline(always)]
    fn lines(&self) -> Option<Lines<'_>> {
        self.memory().and_then(Conduit::lines)
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        match self.to(peer) {
            Path::Near(smp) => smp.ledger(peer),
            Path::Far(far) => far.network.ledger(peer),
        }
    }

    fn connections(&self) -> Option<Connections> {
        self.far.as_ref()?.network.connections()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        self.far.as_ref()?.network.datagrams()
    }

    fn linger(&self, limit: Duration) -> bool {
        let far = self.far.as_ref();
        far.is_none_or(|far| far.network.linger(limit))
    }

    fn gauges(&self) -> Option<Arc<Gauges>> {
        self.far.as_ref()?.network.gauges()
    }

    fn on_exit(&self, act: HearExit) {
        if let Some(far) = &self.far {
            far.network.on_exit(act);
        }
    }

    fn tell_exit(&self, exit: &TellExit<'_>) -> bool {
        let far = self.far.as_ref();
        far.is_none_or(|far| far.network.tell_exit(exit))
    }

    fn exits(&self) -> Option<ExitCounts> {
        self.far.as_ref()?.network.exits()
    }
}
