//! The trait of matching interfaces.

use super::{
    Ack, Answer, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle,
    Event, Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions, Position, Queue,
    Register, Target,
};
use crate::Dropped;
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::time::Duration;

/// Publishes the counts of datagrams that were dropped.
pub type ReportDropped = Box<dyn Fn(Dropped) + Send + Sync>;

/// The interface of one rank.
///
/// Any thread may call any method at any time; none blocks for a peer. Operations are begun by
/// calls that return at once, and events and counters report their completion. An operation begins
/// only if its call returns `Ok`.
///
/// Which errors a call has its text says; all may have [`NicError::Corrupt`] beside them, where
/// shared memory was damaged.
pub trait Portals {
    /// The rank whose interface it is.
    fn rank(&self) -> JobRank;

    /// How much of everything there is.
    fn limits(&self) -> Limits;

    /// Features beyond those that all interfaces have.
    fn features(&self) -> Features;

    /// A count of the interface.
    fn status(&self, register: Register) -> u64;

    /// Makes a queue of at least `events` events.
    ///
    /// # Errors
    /// [`NicError::NoSpace`] when all queues are in use; [`NicError::Invalid`] for 0 events or more
    /// than [`Limits::queue_events`].
    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError>;

    /// Frees a queue, with the events in it.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::InUse`] while a portal, an entry or a descriptor has
    /// it.
    fn queue_free(&self, queue: Queue) -> Result<(), NicError>;

    /// Takes the next event.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::EventsDropped`] once where events are missing, after
    /// which the next call goes on.
    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError>;

    /// Takes the next event of the first of these queues that has one, and says which that was.
    ///
    /// # Errors
    /// As [`queue_get`](Self::queue_get), of the first queue that has one.
    fn queue_poll(&self, queues: &[Queue]) -> Result<Option<(usize, Event)>, NicError> {
        for (place, queue) in queues.iter().enumerate() {
            if let Some(event) = self.queue_get(*queue)? {
                return Ok(Some((place, event)));
            }
        }
        Ok(None)
    }

    /// Whether a queue has nothing to take, now.
    ///
    /// An interface that cannot look without taking keeps what it took for the next
    /// [`queue_get`](Self::queue_get).
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError>;

    /// Handles arrivals, where the interface has threads that would handle them a little later;
    /// returns whether there were any.
    ///
    /// For callers that look into queues again and again and find nothing; it need not be called.
    fn attend(&self) -> bool {
        false
    }

    /// Whether [`attend`](Self::attend) does anything, which is a call of the system then.
    fn attends(&self) -> bool {
        false
    }

    /// Why no operation reaches a peer any more, if the interface has lost it.
    fn lost(&self, peer: JobRank) -> Option<NicError> {
        let _ = peer;
        None
    }

    /// Datagrams that came from other hosts and were dropped; `None` where none come.
    fn dropped(&self) -> Option<Dropped> {
        None
    }

    /// The thread that drops a datagram calls `report` with the counts, under a lock of the
    /// interface, which `report` must not use.
    ///
    /// The first `report` that is given stays.
    fn on_dropped(&self, report: ReportDropped) {
        drop(report);
    }

    /// Threads of this process that the interface needs for anything to come and that never sleep,
    /// so that each wants a processor: a waiting caller leaves it to them by sleeping for a moment.
    ///
    /// After a yield such a thread would run for its whole time slice.
    fn busy_threads(&self) -> u32 {
        0
    }

    /// Sleeps until one of these queues has an event, [`wake`](Self::wake) is called, a signal
    /// comes, or the time is over (`PtlEQPoll`).
    ///
    /// Returns at once if there is an event, or if `come` says that another event that the caller
    /// waits for is there: it is asked once more when a `wake` from then on will be noticed. May
    /// return for nothing.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError>;

    /// Has all threads of this rank return that are in [`queue_wait`](Self::queue_wait), or will be
    /// with a `come` that was false before.
    fn wake(&self);

    /// Waits, at most for so long, until all begun operations are over at their peers, which need
    /// nothing more of this process; it is about to end.
    ///
    /// Returns whether they are. Takes no lock for long.
    ///
    /// The default is right where no begun operation depends on the process.
    fn exit_grace(&self, limit: Duration) -> bool {
        let _ = limit;
        true
    }

    /// Makes a counter, which is 0.
    ///
    /// # Errors
    /// [`NicError::NoSpace`] when all are in use.
    fn counter_alloc(&self) -> Result<Counter, NicError>;

    /// Frees a counter.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::InUse`] while an entry or a descriptor has it.
    fn counter_free(&self, counter: Counter) -> Result<(), NicError>;

    /// The counts of a counter: successes (operations or bytes) and failures (operations).
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError>;

    /// Sets both numbers of a counter.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError>;

    /// Allocates a portal, the wished one or any, enabled and with an empty list.
    ///
    /// `queue` gets an event when flow control disables it.
    ///
    /// # Errors
    /// [`NicError::NoSpace`] when all are in use; [`NicError::InUse`] when the wished one is;
    /// [`NicError::BadPortal`] when the table has no such place; [`NicError::BadHandle`] of the
    /// queue; [`NicError::Invalid`] for flow control without a queue.
    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError>;

    /// Gives a portal back.
    ///
    /// # Errors
    /// [`NicError::BadPortal`]; [`NicError::InUse`] while its list has entries.
    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError>;

    /// Refuses messages that arrive at a portal from now on, or takes them again.
    ///
    /// # Errors
    /// [`NicError::BadPortal`].
    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError>;

    /// Refuses all later messages, at all portals: the interface is about to be dropped.
    ///
    /// Does not wait for any peer.
    fn retire(&self) {
        for portal in 0..self.limits().portals {
            // One that is not in use has nothing to refuse.
            let _ = self.portal_enable(PortalIndex(portal), false);
        }
    }

    /// Makes `len_bytes` of memory reachable by an entry in the list of a portal.
    ///
    /// # Errors
    /// [`NicError::BadPortal`]; [`NicError::BadHandle`] of the queue, the counter or the entry of
    /// the position; [`NicError::NoSpace`] when all entries are in use; [`NicError::NotShared`];
    /// [`NicError::BadRank`] of the source; [`NicError::Invalid`] for an entry of another portal as
    /// position, a threshold of 0, or an entry that accepts nothing; [`NicError::Unsupported`].
    ///
    /// # Safety
    /// Until the entry is unlinked (by [`unlink`](Self::unlink) or by itself, which
    /// [`EventKind::Unlink`](super::EventKind::Unlink) reports), the memory stays mapped, and this
    /// process accesses it only by atomics and [`argonet_segment::bulk`].
    unsafe fn attach(
        &self,
        portal: PortalIndex,
        position: Position,
        matching: Matching,
        memory: NonNull<u8>,
        len_bytes: u64,
        entry: Entry,
    ) -> Result<EntryHandle, NicError>;

    /// Takes an entry out of its list.
    ///
    /// No event reports it; operations that were under way are over.
    ///
    /// # Errors
    /// [`NicError::BadHandle`], also for an entry that has gone by itself; [`NicError::InUse`]
    /// while an operation of a peer is under way: nothing has changed then.
    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError>;

    /// Makes memory of this process the source of puts and the destination of gets.
    ///
    /// # Errors
    /// [`NicError::NoSpace`] when all descriptors are in use; [`NicError::BadHandle`] of the queue
    /// or counter; [`NicError::Invalid`] for a threshold of 0; [`NicError::Unsupported`].
    ///
    /// # Safety
    /// Until the descriptor is released (by [`release`](Self::release) or by itself, which an event
    /// reports), the memory stays mapped, is writable if it is used for gets, and while operations
    /// are under way this process accesses it only as they permit: sources are not written,
    /// destinations are not touched, except by atomics and [`argonet_segment::bulk`].
    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError>;

    /// Releases a descriptor.
    ///
    /// No event reports it.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::InUse`] while an operation is under way.
    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError>;

    /// Puts all of a descriptor's memory.
    ///
    /// # Errors
    /// As [`put_region`](Self::put_region).
    fn put(
        &self,
        source: DescriptorHandle,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError>;

    /// Puts a part of a descriptor's memory, with 64 bits of immediate data.
    ///
    /// Complete locally with `SendEnd`: the source may be reused. Complete remotely with `Ack` or
    /// its count: the data is visible at the target.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::OutOfRange`]; [`NicError::BadRank`];
    /// [`NicError::BadPortal`] beyond the table; [`NicError::Exhausted`]; [`NicError::Invalid`]
    /// when an ack by event or count has no queue or counter to go to; [`NicError::NoSpace`] where
    /// operations under way are limited, and all are; [`NicError::Unreachable`].
    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError>;

    /// As [`put_region`](Self::put_region) without an acknowledgement, and returns the outcome: for
    /// interfaces that have done their part when a call returns ([`Features::synchronous`]).
    ///
    /// The target sees the data then.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::OutOfRange`]; [`NicError::BadRank`];
    /// [`NicError::BadPortal`] beyond the table; [`NicError::Exhausted`]; [`NicError::Unsupported`]
    /// by interfaces that are not synchronous.
    fn put_answered(
        &self,
        _source: DescriptorHandle,
        _part: Part,
        _target: Target,
        _header: u64,
    ) -> Result<Answer, NicError> {
        Err(not_synchronous(self.rank()))
    }

    /// As [`get_region`](Self::get_region), and returns the outcome of its end, as
    /// [`put_answered`](Self::put_answered).
    ///
    /// Events and counts of the descriptor report it as always.
    ///
    /// # Errors
    /// As [`put_answered`](Self::put_answered).
    fn get_answered(
        &self,
        _destination: DescriptorHandle,
        _part: Part,
        _target: Target,
    ) -> Result<Answer, NicError> {
        Err(not_synchronous(self.rank()))
    }

    /// Gets into a part of a descriptor's memory.
    ///
    /// Complete with `ReplyEnd` or its count.
    ///
    /// # Errors
    /// [`NicError::BadHandle`]; [`NicError::OutOfRange`]; [`NicError::BadRank`];
    /// [`NicError::BadPortal`] beyond the table; [`NicError::Exhausted`]; [`NicError::NoSpace`] and
    /// [`NicError::Unreachable`] as of puts.
    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError>;

    /// Gets into all of a descriptor's memory.
    ///
    /// # Errors
    /// As [`get_region`](Self::get_region).
    fn get(&self, destination: DescriptorHandle, target: Target) -> Result<(), NicError>;

    /// Combines elements of a descriptor's memory into the target's, each of them atomically with
    /// regard to all other accesses of that size.
    ///
    /// Complete as a put.
    ///
    /// # Errors
    /// As [`put_region`](Self::put_region), and [`NicError::Invalid`] for an operation that
    /// elements of this kind do not have, for compare-and-swap, for a length that is no number of
    /// elements or more than [`Limits::atomic_bytes`], and for an offset at the target that is not
    /// a multiple of the element's size.
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    fn atomic(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
    ) -> Result<(), NicError>;

    /// As [`atomic`](Self::atomic), and the target's previous elements arrive in `fetched`, from
    /// `fetched_offset_bytes` on.
    ///
    /// `compare` is the element that compare-and-swap compares with, its first bytes.
    ///
    /// Complete with `ReplyEnd` of `fetched`; `SendEnd` is reported for `source`.
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic) of both descriptors, except that compare-and-swap of one element
    /// is possible.
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    fn fetch_atomic(
        &self,
        fetched: DescriptorHandle,
        fetched_offset_bytes: u64,
        source: DescriptorHandle,
        part: Part,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    ) -> Result<(), NicError>;
}

/// The error of calls that only synchronous interfaces can answer.
#[cold]
pub(super) fn not_synchronous(rank: JobRank) -> NicError {
    NicError::Unsupported {
        rank,
        feature: "an answer when the call returns",
    }
}
