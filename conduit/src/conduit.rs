//! The trait that every conduit implements, and the types of its calls.

use crate::SharedCells;
use crate::connections::Connections;
use crate::datagrams::Datagrams;
use crate::exit::{ExitCounts, ExitReport, HearExit};
use crate::failover::RailReport;
use crate::gauges::Gauges;
use crate::ledger::PeerLedger;
use argonet_am::record::Short;
use argonet_am::{AmError, Category, Delivery, Message, MessageClass, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::SharedBytesMut;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::Arc;

/// Returns the attached bytes of a rank's segment, as that rank publishes them.
pub type SegmentLen = Arc<dyn Fn(JobRank) -> u64 + Send + Sync>;

/// Names an operation in flight; the engine gives it, the conduit hands it back on completion and
/// looks at nothing in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct OpToken {
    /// The engine's handle.
    pub handle: u64,
    /// Whether the handle is that of implicit operations.
    pub implicit: bool,
}

impl OpToken {
    /// For operations that complete at injection.
    pub const NONE: Self = Self {
        handle: 0,
        implicit: false,
    };
}

/// Which half of an operation is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// The source buffer may be reused.
    Local,
    /// The data is visible at the target (put) or has arrived here (get).
    Remote,
}

/// Outcome of an injection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injected {
    /// Locally and remotely complete already; the token is not used.
    Complete,
    /// Completion is reported to [`Sink::completed`] with the token: both completions of a put, the
    /// remote completion of a get, the local completion of a request.
    Pending,
    /// Of a put: its source is not read any more.
    ///
    /// Remote completion is reported as above.
    Local,
}

/// Puts of up to so many bytes have read their source when [`Conduit::put`] returns, on every
/// conduit, so that no caller waits or counts for their local completion.
pub const SMALL_PUT: usize = 64;

/// Why an injection did not happen.
///
/// Nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No room now; poll and try again.
    #[error("no room now")]
    Full,
    /// The message can never be sent as it is.
    #[error(transparent)]
    Message(#[from] AmError),
}

/// Limits of a conduit, in bytes and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Arguments of a message.
    pub args: usize,
    /// Payload of a medium request.
    pub medium_request: usize,
    /// Payload of a medium reply.
    pub medium_reply: usize,
    /// Payload of a long request or reply.
    pub long: usize,
}

impl Limits {
    /// Whether a message from `from` to `to` is within them.
    ///
    /// # Errors
    /// [`AmError::TooManyArgs`], [`AmError::TooLong`]. A medium is measured by the limit of
    /// requests.
    pub fn check(
        &self,
        from: JobRank,
        to: JobRank,
        category: Category,
        nargs: usize,
        len: usize,
    ) -> Result<(), AmError> {
        if nargs > self.args {
            let count = nargs;
            return Err(AmError::TooManyArgs { count, from, to });
        }
        let max = match category {
            Category::Short => 0,
            Category::Medium => self.medium_request,
            Category::Long => self.long,
        };
        if len > max {
            return Err(AmError::TooLong {
                category,
                len,
                max,
                from,
                to,
            });
        }
        Ok(())
    }
}

/// Operations that a conduit does itself; the engine does the rest over active messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// One-sided put that completes without the target's help.
    pub put: bool,
    /// One-sided get that completes without the target's help.
    pub get: bool,
    /// Atomic operations on remote memory.
    pub atomics: bool,
    /// Every injection is complete when it returns.
    pub completes_at_injection: bool,
}

/// Receives the messages, completions and errors of a poll.
pub trait Sink {
    /// A message arrived: run its handler.
    fn deliver(&mut self, delivery: &mut Delivery<'_>);

    /// An operation is complete, locally or remotely.
    fn completed(&mut self, op: OpToken, completion: Completion);

    /// The same for so many operations that have one token.
    fn completed_all(&mut self, op: OpToken, completion: Completion, count: u32) {
        (0..count).for_each(|_| self.completed(op, completion));
    }

    /// A peer wrote something that cannot be used; the connection to it is lost.
    ///
    /// Or a peer has refused a message of this rank, which could not be seen before.
    fn on_error(&mut self, error: AmError);
}

/// A payload being filled in place before its message is sent (GASNet-EX 0.19, "Negotiated Payload
/// AM").
///
/// Consumed by exactly one commit or cancel.
#[derive(Debug)]
pub struct Prepared {
    want: PrepareRequest,
    buffer: *mut u8,
    capacity: usize,
    position: usize,
    extent: u32,
}

impl Prepared {
    /// For conduits: a payload to hand out.
    ///
    /// # Safety
    /// `buffer` is writable for `capacity` bytes until the value is committed or canceled.
    pub unsafe fn new(
        want: PrepareRequest,
        buffer: *mut u8,
        capacity: usize,
        position: usize,
        extent: u32,
    ) -> Self {
        Self {
            want,
            buffer,
            capacity,
            position,
            extent,
        }
    }

    /// Target.
    #[must_use]
    pub fn to(&self) -> JobRank {
        self.want.to
    }

    /// MessageClass that it was prepared for.
    #[must_use]
    pub fn class(&self) -> MessageClass {
        self.want.class
    }

    /// Arguments that the commit gives.
    #[must_use]
    pub fn nargs(&self) -> usize {
        self.want.nargs
    }

    /// Destination of a long; `None` for a medium.
    #[must_use]
    pub fn offset(&self) -> Option<SegmentOffset> {
        self.want.offset
    }

    /// For conduits: checks what a commit gives.
    ///
    /// # Panics
    /// If those are not the arguments prepared for, or more bytes than were.
    #[inline]
    pub fn check(&self, args: &[u32], len: usize) {
        let (given, due) = (args.len(), self.want.nargs);
        assert_eq!(given, due, "a commit gives the arguments prepared for");
        let fits = len <= self.capacity;
        assert!(fits, "a commit sends at most the prepared bytes");
    }

    /// Bytes of the buffer.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where the payload is written.
    ///
    /// # Safety
    /// The conduit that prepared it is still there.
    #[must_use]
    pub unsafe fn buffer(&mut self) -> SharedBytesMut<'_> {
        let start = NonNull::new(self.buffer).unwrap_or(NonNull::dangling());
        // SAFETY: `new` promises that the buffer is writable until commit or cancel, which consume
        // the value; the caller, that its memory is still mapped.
        unsafe { SharedBytesMut::from_raw(start, self.capacity) }
    }

    /// The conduit's own position and length.
    #[must_use]
    pub fn place(&self) -> (usize, u32) {
        (self.position, self.extent)
    }
}

// SAFETY: the buffer belongs to the value, whichever thread holds it.
unsafe impl Send for Prepared {}

/// The engine's request for a payload to fill.
#[derive(Clone, Copy, Debug)]
pub struct PrepareRequest {
    /// Target.
    pub to: JobRank,
    /// MessageClass.
    pub class: MessageClass,
    /// Arguments that the commit will give.
    pub nargs: usize,
    /// Smallest payload capacity that is acceptable.
    pub least: usize,
    /// Largest payload that will be sent.
    pub most: usize,
    /// Destination of a long; `None` makes a medium.
    pub offset: Option<SegmentOffset>,
}

impl PrepareRequest {
    /// Medium or long.
    #[must_use]
    pub fn category(&self) -> Category {
        match self.offset {
            Some(_) => Category::Long,
            None => Category::Medium,
        }
    }
}

/// A way to reach peers.
///
/// The engine checks ranks, handler indices, argument counts, payload limits and contexts before it
/// calls; a conduit refuses messages that exceed its limits and checks all that arrive.
/// `docs/conduits.md` has the rules that hold between calls; the conformance suite checks them.
/// Progress is made only in [`poll`](Self::poll), which runs handlers through the sink. Every call
/// may come from any thread in PAR mode.
pub trait Conduit: Send + Sync {
    /// Name as in `--conduit`.
    fn name(&self) -> &'static str;

    /// Limits.
    fn limits(&self) -> Limits;

    /// Operations that it does itself.
    fn capabilities(&self) -> Capabilities;

    /// Sends a request.
    ///
    /// Its payload has been copied or sent when this returns.
    ///
    /// # Errors
    /// [`SendError::Full`] when there is no room, or the fault of the message.
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError>;

    /// Sends a short request of one unit, if that is possible at once and without ado.
    ///
    /// A caller that gets `false` calls [`request`](Self::request), which says why.
    #[inline]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        let message = Message {
            handler: short.head.handler(),
            args: &short.args()[..short.head.nargs().min(Short::MAX_ARGS)],
            payload: Payload::None,
        };
        self.request(to, &message).is_ok()
    }

    /// Sends a request whose payload may still be read after this returns.
    ///
    /// # Safety
    /// Where the result is [`Injected::Pending`], the payload's memory stays readable until
    /// [`Completion::Local`] of `op` has been reported.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        let _ = op;
        self.request(to, message).map(|()| Injected::Complete)
    }

    /// Reserves room for a negotiated payload.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError>;

    /// Sends a negotiated payload of `len` bytes, which lie in its buffer.
    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize);

    /// Gives the room of a negotiated payload back; nothing is sent.
    fn cancel(&self, prepared: Prepared);

    /// Writes `len` bytes into the segment of `to`.
    ///
    /// Never [`Injected::Pending`] for up to [`SMALL_PUT`] bytes.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes, until [`Completion::Local`] where the result is pending.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError>;

    /// Reads `len` bytes of the segment of `from`.
    ///
    /// # Safety
    /// `dst` is writable for `len` bytes, until [`Completion::Remote`] where the result is pending.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError>;

    /// Whether [`put_now`](Self::put_now) and [`get_now`](Self::get_now) move anything.
    ///
    /// The answer never changes.
    fn moves_now(&self) -> bool {
        false
    }

    /// Writes `len` bytes into the segment of `to` during the call, complete on both sides then.
    ///
    /// It takes no token. False says that [`put`](Self::put) has to do all of it, or has the error.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes.
    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool {
        let _ = (to, offset, src, len);
        false
    }

    /// Reads `len` bytes of the segment of `from` during the call.
    ///
    /// As [`put_now`](Self::put_now); after false the destination may have been written in part.
    ///
    /// # Safety
    /// `dst` is writable for `len` bytes.
    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool {
        let _ = (from, offset, dst, len);
        false
    }

    /// More of this rank's segment is attached: called before that is published to peers, and once
    /// a segment is attached.
    ///
    /// A conduit whose interface must know the memory that peers may reach forwards the length.
    ///
    /// # Errors
    /// Why it cannot be reached.
    fn segment_grown(&self) -> Result<(), String> {
        Ok(())
    }

    /// Takes messages that have arrived and gives them to the sink; returns how many messages and
    /// completions.
    ///
    /// Bounded work a call.
    fn poll(&self, sink: &mut dyn Sink) -> usize;

    /// [`poll`](Self::poll) compiled for one sink, where a conduit offers that.
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// Takes messages that this rank has sent to itself and gives them to the sink; returns how
    /// many.
    ///
    /// On return, messages that were there before the call have been given to this sink or to that
    /// of another thread, or are being given. Bounded work a call.
    fn poll_own<S: Sink>(&self, sink: &mut S) -> usize
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// Whether something that this rank has sent to itself is still under way, so that
    /// [`poll_own`](Self::poll_own) did not give it to any sink.
    fn owes_itself(&self) -> bool {
        false
    }

    /// Whether anything has arrived that a poll would take.
    ///
    /// Looks at every peer.
    fn has_work(&self) -> bool;

    /// Whether nothing has arrived that a poll would take, and everything that this rank sent has
    /// been handled by its targets.
    ///
    /// May look at every peer.
    ///
    /// The default is right where the target's [`has_work`](Self::has_work) sees every sent message
    /// at once, as in shared memory.
    fn is_quiescent(&self) -> bool {
        !self.has_work()
    }

    /// Reports to peers now what has been handled of their messages, where that would otherwise
    /// wait for a message to go with: they may be waiting until they are quiescent.
    fn acknowledge(&self) {}

    /// Whether a poll that finds nothing has asked the system, and so takes as long as many polls
    /// of memory: a waiting thread spins less then.
    fn polls_ask_system(&self) -> bool {
        false
    }

    /// Threads of this rank that the conduit needs for anything to come and that never sleep: each
    /// wants a processor as much as a rank does.
    fn busy_threads(&self) -> u32 {
        0
    }

    /// Lets others run between two polls that find nothing.
    fn yield_now(&self) {
        std::thread::yield_now();
    }

    /// In PAR mode another number after each poll that took something: another thread's poll may
    /// have taken the message that a thread waits for, after the thread looked.
    ///
    /// A conduit whose polls can make room, or settle it, without reporting anything to the sink
    /// counts those in every mode.
    fn epoch(&self) -> u32 {
        0
    }

    /// How many events that polls have counted were neither a message nor a completion for the
    /// sink, such as news of credits.
    ///
    /// It grows, and may wrap around.
    fn kept_from_sinks(&self) -> u64 {
        0
    }

    /// Sleeps until something arrives, a signal comes, or the time is over; returns at once if
    /// something is there or the [`epoch`](Self::epoch) is not `seen` any more.
    ///
    /// Spurious returns are allowed.
    fn sleep(&self, timeout: Option<Duration>, seen: u32);

    /// As [`sleep`](Self::sleep), also returns at once if `come` says that an event outside of
    /// messages, which this thread waits for, is there: it is asked once more when the threads that
    /// make the event know that this rank sleeps.
    ///
    /// A conduit with [`shared_cells`](Self::shared_cells) implements it.
    fn sleep_unless(&self, timeout: Option<Duration>, seen: u32, come: &dyn Fn() -> bool) {
        if !come() {
            self.sleep(timeout, seen);
        }
    }

    /// Has calls of [`sleep`](Self::sleep) return that other threads are in, or will begin with an
    /// epoch from before.
    ///
    /// Every conduit that [`selector`](crate::selector) can have a thread sleep on does so; for
    /// others there is nothing to do.
    fn wake(&self) {}

    /// Wakes the sleeping threads of a rank, after a change of its memory that they may wait for.
    ///
    /// The default does nothing: ranks that share no memory hear of such a change by a message.
    fn wake_rank(&self, rank: JobRank) {
        let _ = rank;
    }

    /// Cells in memory that all ranks share, for small collective operations; `None` where there is
    /// no such memory.
    #[inline(always)]
    fn shared_cells(&self) -> Option<SharedCells<'_>> {
        None
    }

    /// Counts of messages between this rank and `peer`; `None` if there were none, or the conduit
    /// does not know.
    ///
    /// For reports; may be called at any time by any thread.
    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        let _ = peer;
        None
    }

    /// Memory kept for connections, and counts of requests for them; `None` where there are none.
    ///
    /// For reports; may be called at any time by any thread.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Counts of what has happened to rails; `None` where none is chosen among several.
    ///
    /// For reports; may be called at any time by any thread.
    fn rail_report(&self) -> Option<RailReport> {
        None
    }

    /// Counts of datagrams that the rank's socket has dropped; `None` where no datagrams come.
    ///
    /// For reports; may be called at any time by any thread.
    fn datagrams(&self) -> Option<Datagrams> {
        None
    }

    /// The exit grace period of a process that is about to end: waits until nothing that it has
    /// sent needs it any more.
    ///
    /// Over connections that has left by then, over interfaces it has arrived. Announces the end to
    /// peers, which could wait for something. Waits no longer than `limit`, the time that the end
    /// of the job leaves, nor than the conduit finds worth it, and for no lock that a handler's
    /// thread may hold. Whether nothing needs the process any more.
    ///
    /// The default is right where a message has left when the call that sends it returns.
    fn exit_grace(&self, limit: Duration) -> bool {
        let _ = limit;
        true
    }

    /// Gives up a peer whose process has ended: takes nothing of it any more, and writes nothing.
    ///
    /// The engine calls it once for each peer, by one thread at a time, while other threads may
    /// send, poll and wait; not inside a handler. All that is under way with the peer is reported
    /// to the sink as complete, during the call, and no memory of the peer is read or written
    /// after. Later calls that name it fail with [`AmError::PeerLost`]. False if the conduit cannot
    /// do that: then the job has to end.
    fn lose(&self, peer: JobRank, sink: &mut dyn Sink) -> bool {
        let _ = (peer, sink);
        false
    }

    /// Whether [`lose`](Self::lose) gives peers up.
    ///
    /// The answer never changes.
    fn outlives_peers(&self) -> bool {
        false
    }

    /// Where this rank's credits can be read, also when the conduit is gone; `None` without flow
    /// control.
    fn gauges(&self) -> Option<Arc<Gauges>> {
        None
    }

    /// `act` is called when another rank says over the system queue that it ends the job.
    ///
    /// The first that is given counts. Where all ranks share memory there is no such queue: they
    /// see the job's exit word.
    fn on_exit(&self, act: HearExit) {
        drop(act);
    }

    /// Reports to other ranks over the system queue that this one ends the job, and waits until
    /// they have confirmed, for a bounded time.
    ///
    /// Runs no handler and waits for no lock that a handler's thread may hold, so it may be called
    /// inside one; not in a signal handler. Any thread may call it in every
    /// [mode](crate::threads::ThreadMode).
    ///
    /// False if only another thread can do that, the one that calls a conduit which does not lock:
    /// that thread is woken, and calls this when it next rests. Nothing else has been done then.
    fn report_exit(&self, exit: &ExitReport<'_>) -> bool {
        let _ = exit;
        true
    }

    /// Exits that were reported and heard of so; `None` without a system queue.
    ///
    /// For statistics.
    fn exits(&self) -> Option<ExitCounts> {
        None
    }
}
