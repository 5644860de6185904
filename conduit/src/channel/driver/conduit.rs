//! The channel as a conduit: the trait over its parts.

use super::config::ChannelConfig;
use super::core::Core;
use super::idle::Closing;
use super::peer::{Lending, Peer, Reserved};
use crate::channel::frame::{Kind, charge};
use crate::channel::rail::Rails;
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use crate::connections::Connections;
use crate::datagrams::Datagrams;
use crate::exit::{ExitCounts, ExitReport, HearExit};
use crate::failover::RailReport;
use crate::gauges::Gauges;
use crate::ledger::{ClassLedger, PeerLedger};
use crate::prepared_buffers::committed;
use crate::shown_bank::ShownBank;
use crate::wire::{UserBytes, UserPlace};
use argonet_am::record::Short;
use argonet_am::{Category, MAX_MEDIUM, Message, MessageClass, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{SharedBytes, bulk};
use core::ptr::NonNull;
use core::time::Duration;
use std::io;
use std::sync::Arc;

/// Active messages, puts and gets between ranks that share no memory, over rails.
pub struct Channel<R: Rails> {
    pub(crate) core: Arc<Core<R>>,
}

/// The longest that a process which ends waits for peers that take nothing.
const GRACE: Duration = Duration::from_millis(200);

/// Between two looks at whether all has left.
const GRACE_LOOKS: Duration = Duration::from_micros(100);

impl<R: Rails> Channel<R> {
    /// Whether all that this rank has begun to write is written: no peer waits for the rest of a
    /// frame if the rank ends now.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.core.all_used().all(|peer| {
            let outbound = peer.outbound.try_lock();
            outbound.is_some_and(|outbound| outbound.failed.is_some() || !outbound.is_unsent())
        })
    }

    /// Capabilities over rails that move nothing themselves: none, all operations are served by the
    /// target's polls.
    pub const CAPABILITIES: Capabilities = Capabilities {
        put: false,
        get: false,
        atomics: false,
        completes_at_injection: false,
    };

    /// A rank without open rails; they are asked for as they are needed.
    ///
    /// # Errors
    /// A size that cannot be, or a rank that is none of the ranks, as
    /// [`io::ErrorKind::InvalidInput`]; or the system's error for the memory and the thread that it
    /// needs.
    pub fn over(rails: R, config: ChannelConfig) -> io::Result<Self> {
        let checked = config.sizes.check();
        checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if config.sizes.rails > rails.most() {
            let (given, most) = (config.sizes.rails, rails.most());
            let what = format!("{given} rails to a peer, of {most} that can be");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let (rank, ranks) = (config.rank, config.ranks);
        if rank.0 >= ranks {
            let what = format!("rank {rank} is none of the {ranks} ranks of the job");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let core = Arc::new(Core::new(config, rails)?);
        core.helper.attach(&core);
        // Those that are there already can be sent to without a poll.
        core.take_made();
        // Its threads end also where one more cannot be had.
        let channel = Self { core };
        channel.core.begin_serving()?;
        Ok(channel)
    }

    /// Sends gathered messages now, to all peers; bytes that their rails do not take stay queued.
    pub fn flush(&self) {
        self.core.flush_gathered();
    }
}

impl<R: Rails> Drop for Channel<R> {
    fn drop(&mut self) {
        self.core.end_serving();
        self.core.helper.end();
        self.core.flush_all();
    }
}

impl<R: Rails> Conduit for Channel<R> {
    fn name(&self) -> &'static str {
        self.core.rails.name()
    }

    fn limits(&self) -> Limits {
        self.core.limits()
    }

    fn capabilities(&self) -> Capabilities {
        let moves = self.core.rails.one_sided().is_some();
        Capabilities {
            put: moves,
            get: moves,
            ..Self::CAPABILITIES
        }
    }

    #[inline]
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        self.core.request(to, message, None)
    }

    #[inline]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        let (args, nargs) = (short.args(), short.head.nargs().min(Short::MAX_ARGS));
        let message = Message {
            handler: short.head.handler(),
            args: &args[..nargs],
            payload: Payload::None,
        };
        self.core.request(to, &message, None).is_ok()
    }

    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        let bytes = match message.payload {
            Payload::Medium(bytes) | Payload::Long(bytes, _)
                if bytes.len() > self.core.sizes.eager_bytes && to != self.core.rank =>
            {
                bytes
            }
            _ => return self.request(to, message).map(|()| Injected::Complete),
        };
        // SAFETY: the caller keeps the payload readable until local completion.
        let source = unsafe { UserBytes::new(bytes.as_ptr(), bytes.len()) };
        self.core.request(to, message, Some((op, source)))?;
        Ok(Injected::Pending)
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let core = &*self.core;
        // A long is prepared for all of `most`, a medium for as much as there is room for.
        let capacities = match want.category() {
            Category::Long => [want.most, want.most],
            _ => [want.most.min(MAX_MEDIUM), want.least],
        };
        core.check(want.to, want.category(), want.nargs, capacities[1])?;
        if let Some(offset) = want.offset {
            core.check_place(want.to, offset, want.most)?;
        }
        let peer = core.peer(want.to);
        let mut outbound = peer.outbound.lock();
        let mut capacity = capacities[0];
        let mut kept = Reserved::of(want, capacity);
        if want.class == MessageClass::Reply {
            // The request was taken only because there is room.
        } else if core.admit(peer, &mut outbound, kept).is_err() {
            capacity = capacities[1];
            kept = Reserved::of(want, capacity);
            core.admit(peer, &mut outbound, kept)?;
        }
        outbound.reserved.add(kept);
        drop(outbound);
        Ok(core.prepared.add(want, capacity, kept))
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        prepared.check(args, len);
        let core = &*self.core;
        let (to, class) = (prepared.to(), prepared.class());
        let peer = core.peer(to);
        let mut locked = peer.outbound.lock();
        let (buffer, kept) = core.prepared.take(&prepared);
        locked.reserved.remove(kept);
        if locked.failed.is_some() {
            // The peer has been lost since it was prepared.
            return;
        }
        // SAFETY: the buffer was taken before, so it is dropped after this.
        let mut outbound = unsafe { Lending::new(locked) };
        let bytes = SharedBytes::from_slice(&buffer[..len]);
        let message = committed(&prepared, handler, args, bytes);
        let unsent = outbound.send_stream.unsent();
        core.add(&mut outbound, class, &message, None);
        if class == MessageClass::Request {
            let kind = Kind::of(class, message.payload.category());
            outbound.grant.use_up(charge(kind, args.len(), len));
            core.depart(peer, &mut outbound, unsent);
        }
    }

    fn cancel(&self, prepared: Prepared) {
        let (_, kept) = self.core.prepared.take(&prepared);
        let mut outbound = self.core.peer(prepared.to()).outbound.lock();
        outbound.reserved.remove(kept);
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        let core = &*self.core;
        core.check_rank(to)?;
        if len == 0 {
            return Ok(Injected::Complete);
        }
        if to == core.rank {
            let place = core.own_place(offset, len)?;
            // SAFETY: the directory has checked the place, the caller promises the source.
            unsafe { bulk::copy(place.as_ptr(), src, len) };
            return Ok(Injected::Complete);
        }
        // SAFETY: the caller promises the source during the call.
        if unsafe { self.put_now(to, offset, src, len) } {
            return Ok(Injected::Complete);
        }
        let copied = if len <= core.sizes.eager_bytes {
            len
        } else {
            0
        };
        let peer = core.peer(to);
        let mut outbound = peer.outbound.lock();
        core.admit_operation(peer, &mut outbound, copied, copied > 0)?;
        let unsent = outbound.send_stream.unsent();
        if copied > 0 {
            let start = NonNull::new(src.cast_mut()).unwrap_or(NonNull::dangling());
            // SAFETY: the caller promises the source during the call.
            let bytes = unsafe { SharedBytes::from_raw(start, len) };
            let begin = outbound.send_stream.push_put(offset.0, bytes);
            let end = outbound.send_stream.head();
            outbound.operations.note(begin, end, op, false, true);
            core.depart(peer, &mut outbound, unsent);
            return Ok(Injected::Local);
        }
        // SAFETY: the caller keeps the source readable until local completion.
        let source = unsafe { UserBytes::new(src, len) };
        let begin = outbound.send_stream.head();
        outbound.operations.begin_put(source, offset.0, op, begin);
        outbound.go_on(&core.sizes);
        core.depart(peer, &mut outbound, unsent);
        core.ask_for_rails(peer, outbound, len);
        Ok(Injected::Pending)
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        let core = &*self.core;
        core.check_rank(from)?;
        if len == 0 {
            return Ok(Injected::Complete);
        }
        if from == core.rank {
            let place = core.own_place(offset, len)?;
            // SAFETY: the directory has checked the place, the caller promises the target.
            unsafe { bulk::copy(dst, place.as_ptr(), len) };
            return Ok(Injected::Complete);
        }
        // SAFETY: the caller promises the target during the call.
        if unsafe { self.get_now(from, offset, dst, len) } {
            return Ok(Injected::Complete);
        }
        let peer = core.peer(from);
        let mut outbound = peer.outbound.lock();
        let is_whole = len <= outbound.striping.fragment_bytes(&core.sizes);
        core.admit_operation(peer, &mut outbound, 0, is_whole)?;
        if !outbound.operations.has_room_for_get(core.sizes.gets) {
            return Err(SendError::Full);
        }
        let unsent = outbound.send_stream.unsent();
        // SAFETY: the caller keeps the target writable until completion.
        let place = unsafe { UserPlace::new(dst, len) };
        if outbound.operations.has_room() {
            let begin = outbound.send_stream.head();
            outbound.operations.begin_get(place, offset.0, op, begin);
            outbound.go_on(&core.sizes);
        } else if !outbound.get_at_once(place, offset.0, op) {
            return Err(SendError::Full);
        }
        core.depart(peer, &mut outbound, unsent);
        core.ask_for_rails(peer, outbound, len);
        Ok(Injected::Pending)
    }

    fn moves_now(&self) -> bool {
        self.core.rails.one_sided().is_some()
    }

    #[inline]
    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool {
        let moves = self.core.rails.one_sided();
        // SAFETY: the caller's promise.
        moves.is_some_and(|moves| unsafe { moves.put_now(to, offset, src, len) })
    }

    #[inline]
    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool {
        let moves = self.core.rails.one_sided();
        // SAFETY: the caller's promise.
        moves.is_some_and(|moves| unsafe { moves.get_now(from, offset, dst, len) })
    }

    fn segment_grown(&self) -> Result<(), String> {
        let moves = self.core.rails.one_sided();
        moves.map_or(Ok(()), |moves| moves.segment_grown())
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.core.poll(sink)
    }

    #[inline]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        self.core.poll(sink)
    }

    fn has_work(&self) -> bool {
        self.core.has_work()
    }

    fn is_quiescent(&self) -> bool {
        !self.core.has_work() && self.core.is_quiescent()
    }

    fn acknowledge(&self) {
        // A sleep that begins looks itself what must end it.
        let _ = self.core.flush_all();
    }

    fn epoch(&self) -> u32 {
        self.core.sleepers.epoch()
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.core.sleep(timeout, seen);
    }

    fn wake(&self) {
        let core = &*self.core;
        core.sleepers.moved_and_wake(false, || core.rails.wake());
    }

    /// Requests are counted by their bytes of the grant; replies stand for the whole stream, which
    /// carries requests, too.
    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        let rails = self.core.rails.in_words(peer);
        let peer = self.core.used(peer.0)?;
        let inbound = peer.inbound.try_lock()?;
        let (taken, handled, waiting) = (
            inbound.complete(),
            inbound.parked.handled(),
            inbound.waits(),
        );
        let outbound = peer.outbound.lock();
        let held = Core::held(&inbound, &outbound);
        let (sent, handled_there) = outbound.grant.totals();
        Some(PeerLedger {
            unit: "bytes",
            requests: ClassLedger {
                sent,
                taken: handled_there,
                handled,
                waiting,
            },
            replies: ClassLedger {
                sent: outbound.send_stream.head(),
                taken: outbound.send_stream.released(),
                handled: taken,
                waiting: false,
            },
            held,
            rails,
        })
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.core.connections())
    }

    fn rail_report(&self) -> Option<RailReport> {
        self.core.rails.rail_report()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        self.core.rails.datagrams()
    }

    fn exit_grace(&self, limit: Duration) -> bool {
        let begun = std::time::Instant::now();
        let limit = limit.min(GRACE);
        let has_left = |peer: &Peer<R>| {
            let outbound = peer.outbound.try_lock();
            outbound.is_some_and(|mut outbound| {
                let is_lost = outbound.closing == Closing::Reopening || outbound.may_be_lost();
                outbound.failed.is_some() || !(outbound.is_unsent() || is_lost)
            })
        };
        while !self.core.all_used().all(has_left) {
            if begun.elapsed() >= limit {
                return false;
            }
            // The helper sends it.
            self.core.helper.gather();
            std::thread::sleep(GRACE_LOOKS);
        }
        true
    }

    fn lose(&self, peer: JobRank, sink: &mut dyn Sink) -> bool {
        self.core.lose(peer, sink);
        true
    }

    fn outlives_peers(&self) -> bool {
        true
    }

    fn gauges(&self) -> Option<Arc<Gauges>> {
        self.core.bank.as_ref().map(ShownBank::gauges)
    }

    fn on_exit(&self, act: HearExit) {
        self.core.exits.on_exit(act);
    }

    fn report_exit(&self, exit: &ExitReport<'_>) -> bool {
        // Threads of the library's own serve rails in every mode, so everything here locks.
        self.core.exits.report(exit, &*self.core);
        true
    }

    fn exits(&self) -> Option<ExitCounts> {
        Some(self.core.exits.counts())
    }
}
