//! The smp conduit: what is sent into rings, what is polled out of them.

use super::lock::{LaneLock, ThreadMode};
use super::region::Region;
use super::ring::{Cursor, ROOM_FOR_ANY, Reader, Ring, Writer, publish};
use super::wake::{self, Barrier, Linux};
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SendError, Sink,
};
use argonet_am::record::{self, Head, Kind, Medium, RecordError, Scratch, Short};
use argonet_am::{
    AmError, Category, Delivery, Lane, MAX_ARGS, MAX_MEDIUM, Message, Payload, Registered,
    ReplyPort,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset, cpu};
use argonet_segment::{Directory, SharedBytesMut, bulk};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use rustix::fd::BorrowedFd;
use std::sync::Arc;

/// Peers that one poll looks at; the next poll goes on with the next ones.
const WINDOW: u32 = 8;

/// Messages that one poll takes from one lane of one peer.
const BATCH: u32 = 64;

/// What is known of one peer: positions in the four rings shared with it, and their locks.
///
/// The lock of the inbound request lane also covers the outbound reply lane: replies are sent
/// only by handlers of requests that its holder delivers.
#[derive(Default)]
struct Peer {
    out_request: Writer,
    out_reply: Writer,
    in_request: Reader,
    in_reply: Reader,
    out_request_lock: LaneLock,
    in_request_lock: LaneLock,
    in_reply_lock: LaneLock,
    /// See [`Rest`].
    rest: Rest,
}

/// After a peer's messages have been taken, its rings are left alone for a moment.
///
/// A reader that is faster than the writer would look at the writer's line again and again, and
/// take it away after every message: each then costs a transfer of the line, some 70 ns. Left
/// alone, the writer fills lines at its own speed. An answer cannot come within so short a time,
/// so ping-pong does not suffer; a message right behind another is delivered with the next batch.
///
/// Holds the tick at which the rest began, 0 for none. A hint: any thread may store any value.
#[derive(Default)]
struct Rest(AtomicU64);

impl Rest {
    #[inline(always)]
    fn begin(&self) {
        self.0.store(cpu::ticks() | 1, Ordering::Relaxed);
    }

    /// Whether it goes on. Ends it when its time is over.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        let began = self.0.load(Ordering::Relaxed);
        if began == 0 {
            return false;
        }
        if cpu::ticks().wrapping_sub(began) < cpu::SHORT_PAUSE_TICKS {
            return true;
        }
        self.0.store(0, Ordering::Relaxed);
        false
    }
}

// With the directory's 16 bytes a peer costs at most 64 bytes before it is used.
static_assertions::const_assert!(size_of::<Peer>() <= 48);

/// How an [`Smp`] is set up.
pub struct SmpConfig {
    /// This rank.
    pub rank: JobRank,
    /// Ranks of the neighbourhood.
    pub ranks: u32,
    /// Threads that will call.
    pub mode: ThreadMode,
    /// Who executes the barrier before sleeping; the same on all ranks.
    pub barrier: Barrier,
    /// Segments of the neighbourhood.
    pub directory: Arc<Directory>,
    /// Handlers that exist, the same on all ranks.
    pub registered: Registered,
    /// Attached bytes of a rank's segment, as that rank publishes them.
    pub segment_len: SegmentLen,
}

/// Tells the attached bytes of a rank's segment, as that rank publishes them.
pub type SegmentLen = Arc<dyn Fn(JobRank) -> u64 + Send + Sync>;

/// The conduit of ranks that share memory.
pub struct Smp {
    rank: JobRank,
    ranks: u32,
    mode: ThreadMode,
    barrier: Barrier,
    region: Region,
    peers: Box<[Peer]>,
    directory: Arc<Directory>,
    registered: Registered,
    segment_len: SegmentLen,
    cursor: AtomicU32,
    /// Polls of this process that took something, in PAR mode. Written by the polling thread
    /// (Release), read by threads that wait (Acquire): who sees the number sees what handlers did.
    epoch: AtomicU32,
}

impl Smp {
    /// Asks the system for barriers that reach this process; the result is what this rank can
    /// agree to. All ranks must agree on [`Barrier::Sleeper`] before any uses it.
    #[must_use]
    pub fn register_barrier() -> Barrier {
        if Linux::register() {
            Barrier::Sleeper
        } else {
            Barrier::Sender
        }
    }

    /// Maps the shared region in `file`, which all ranks of the neighbourhood share.
    ///
    /// # Errors
    /// What the system says of the mapping.
    pub fn new(file: BorrowedFd<'_>, config: SmpConfig) -> std::io::Result<Self> {
        let region = Region::map(file, config.ranks)?;
        Ok(Self {
            rank: config.rank,
            ranks: config.ranks,
            mode: config.mode,
            barrier: config.barrier,
            region,
            peers: (0..config.ranks).map(|_| Peer::default()).collect(),
            directory: config.directory,
            registered: config.registered,
            segment_len: config.segment_len,
            cursor: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
        })
    }

    /// Ranks of the neighbourhood.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    #[inline(always)]
    fn peer(&self, rank: JobRank) -> &Peer {
        &self.peers[rank.index()]
    }

    #[inline(always)]
    fn ring_doorbell(&self, to: JobRank) {
        wake::ring(self.region.sleep_word(to), self.barrier, &Linux);
    }

    /// Packs a message into a ring. Whoever owns the lane calls.
    #[inline(always)]
    fn write(
        &self,
        to: JobRank,
        lane: Lane,
        writer: &Writer,
        message: &Message<'_>,
    ) -> Result<(), SendError> {
        let ring = self.region.ring(to, self.rank, lane);
        if matches!(message.payload, Payload::None)
            && let Some(short) = Short::pack(message.handler, message.args)
        {
            let at = writer.reserve(&ring, 1).ok_or(SendError::Full)?;
            ring.words.store(at + 1, short.rest, Ordering::Relaxed);
            publish(&ring, at, short.head);
        } else if let Payload::Medium(bytes) = message.payload
            && let Some(medium) = Medium::pack(message.handler, message.args, bytes.len())
        {
            let at = writer
                .reserve(&ring, medium.head.units())
                .ok_or(SendError::Full)?;
            // SAFETY: as in `write_large`.
            unsafe { ring.words.copy_in(at + 2, bytes.as_ptr(), bytes.len()) };
            ring.words.store(at + 1, medium.rest, Ordering::Relaxed);
            publish(&ring, at, medium.head);
        } else {
            self.write_large(to, &ring, writer, message)?;
        }
        self.ring_doorbell(to);
        Ok(())
    }

    #[inline(never)]
    fn write_large(
        &self,
        to: JobRank,
        ring: &Ring<'_>,
        writer: &Writer,
        message: &Message<'_>,
    ) -> Result<(), SendError> {
        let category = message.payload.category();
        let len = message.payload.len();
        let nargs = message.args.len();
        let units = record::record_units(category, nargs, len);
        let at = writer.reserve(ring, units).ok_or(SendError::Full)?;
        let mut offset = 0;
        match message.payload {
            Payload::None => {}
            Payload::Medium(bytes) => {
                let payload_at = at + record::header_units(category, nargs) * 2;
                // SAFETY: the units are reserved; the source is readable (SharedBytes) and cannot
                // overlap units that no reader has: a reply may carry its request's payload, but
                // that lies in another ring.
                unsafe { ring.words.copy_in(payload_at, bytes.as_ptr(), len) };
            }
            Payload::Long(bytes, to_offset) => {
                offset = to_offset.0;
                if let Err(error) = self.place(to, to_offset, bytes.as_ptr(), len) {
                    publish(ring, at, Head::skip(units));
                    return Err(error.into());
                }
            }
        }
        self.publish_packed(
            ring,
            at,
            units,
            message.handler,
            category,
            message.args,
            len,
            offset,
        );
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one record")]
    #[inline(always)]
    fn publish_packed(
        &self,
        ring: &Ring<'_>,
        at: usize,
        units: u32,
        handler: HandlerIndex,
        category: Category,
        args: &[u32],
        len: usize,
        offset: u64,
    ) {
        let packed = record::pack(category, handler, args, len as u64, offset, units);
        for i in 1..packed.count {
            ring.words.store(at + i, packed.words[i], Ordering::Relaxed);
        }
        publish(ring, at, Head(packed.words[0]));
    }

    /// Copies a long's payload to its place in the segment of `to`.
    fn place(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> Result<(), AmError> {
        if len == 0 {
            return Ok(());
        }
        let dst = match self.directory.resolve(to, offset, len) {
            Some(dst) => dst,
            None => self.grown(to, offset, len)?,
        };
        // SAFETY: the directory has checked that `len` bytes at `dst` are mapped; the source is
        // readable by the callers' promise. If both are the same segment they may overlap; then the
        // bytes are unspecified, as with memcpy, but none outside is touched.
        unsafe { bulk::copy(dst.as_ptr(), src, len) };
        Ok(())
    }

    /// Address in a segment that may have grown since it was last looked at.
    #[cold]
    fn grown(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, AmError> {
        // A mapping that the system refuses is told to whoever asks next, by the engine; here the
        // place cannot be reached either way.
        let extended = self.directory.refresh(to, (self.segment_len)(to));
        let place = self.directory.resolve(to, offset, len);
        place
            .filter(|_| extended.is_ok())
            .ok_or_else(|| self.outside(to, offset, len))
    }

    #[cold]
    fn outside(&self, to: JobRank, offset: SegmentOffset, len: usize) -> AmError {
        AmError::OutsideSegment {
            offset: offset.0,
            len,
            segment: self.directory.attached_bytes(to),
            from: self.rank,
            to,
        }
    }

    #[inline]
    fn take<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let window = self.ranks.min(WINDOW);
        let first = if self.ranks <= WINDOW {
            0
        } else {
            let first = self.cursor.load(Ordering::Relaxed);
            let next = first + window;
            self.cursor.store(
                if next >= self.ranks {
                    next - self.ranks
                } else {
                    next
                },
                Ordering::Relaxed,
            );
            first
        };
        let mut taken = 0;
        for i in 0..window {
            let rank = first + i;
            let rank = JobRank(if rank >= self.ranks {
                rank - self.ranks
            } else {
                rank
            });
            let peer = self.peer(rank);
            if peer.rest.goes_on() {
                continue;
            }
            let some =
                self.poll_lane(rank, Lane::Reply, sink) + self.poll_lane(rank, Lane::Request, sink);
            if some > 0 {
                peer.rest.begin();
                taken += some;
            }
        }
        if taken > 0 && self.mode == ThreadMode::Par {
            // What ran here may be what another thread of this process sleeps for, or is about to.
            self.epoch.fetch_add(1, Ordering::Release);
            self.ring_doorbell(self.rank);
        }
        taken as usize
    }

    #[inline(always)]
    fn poll_lane<S: Sink + ?Sized>(&self, from: JobRank, lane: Lane, sink: &mut S) -> u32 {
        let ring = self.region.ring(self.rank, from, lane);
        let peer = self.peer(from);
        let reader = match lane {
            Lane::Request => &peer.in_request,
            Lane::Reply => &peer.in_reply,
        };
        if reader.peek(&ring).is_none() {
            return 0;
        }
        self.drain(from, lane, &ring, reader, sink)
    }

    #[inline(never)]
    fn drain<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        lane: Lane,
        ring: &Ring<'_>,
        reader: &Reader,
        sink: &mut S,
    ) -> u32 {
        let peer = self.peer(from);
        let lock = match lane {
            Lane::Request => &peer.in_request_lock,
            Lane::Reply => &peer.in_reply_lock,
        };
        let Some(_guard) = lock.try_lock(self.mode) else {
            return 0;
        };
        let reply_ring = self.region.ring(from, self.rank, Lane::Reply);
        // A request is not accepted until its reply has room; see the module's introduction.
        let accepts = || lane == Lane::Reply || peer.out_reply.has_room(&reply_ring, ROOM_FOR_ANY);
        let mut accepted = accepts();
        let mut cursor = reader.cursor(ring);
        let mut taken = 0;
        while accepted && taken < BATCH {
            let Some((head, at)) = cursor.peek() else {
                break;
            };
            let replied = if head.is_one_unit_short() {
                let replied = self.deliver_short(from, lane, ring, head, at, sink);
                cursor.advance(1);
                replied
            } else if let Some(medium) = Medium::check(
                head,
                ring.words.load(at + 1, Ordering::Relaxed),
                cursor.units_to_end(),
            ) {
                let replied = self.deliver_medium(from, lane, ring, medium, at, sink);
                cursor.advance(head.units());
                replied
            } else {
                match self.deliver(from, lane, ring, &mut cursor, head, at, sink) {
                    Ok(replied) => replied,
                    Err(cause) => {
                        sink.broken(AmError::Broken {
                            at: self.rank,
                            from,
                            cause,
                        });
                        break;
                    }
                }
            };
            taken += 1;
            if replied {
                accepted = accepts();
            }
        }
        taken
    }

    /// The commonest message, in few instructions. Returns whether its handler has replied.
    #[inline(always)]
    fn deliver_short<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        lane: Lane,
        ring: &Ring<'_>,
        head: Head,
        at: usize,
        sink: &mut S,
    ) -> bool {
        let rest = ring.words.load(at + 1, Ordering::Relaxed);
        let args = Short { head, rest }.args();
        let mut delivery = Delivery::new(
            from,
            lane,
            Category::Short,
            head.handler(),
            &args[..head.nargs() & 3],
            None,
            SegmentOffset(0),
            self,
        );
        sink.deliver(&mut delivery);
        delivery.has_replied()
    }

    /// A medium with a header of one unit. Returns whether its handler has replied.
    #[inline(always)]
    fn deliver_medium<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        lane: Lane,
        ring: &Ring<'_>,
        medium: Medium,
        at: usize,
        sink: &mut S,
    ) -> bool {
        let args = medium.args();
        let bytes = ring.words.bytes(at + 2, medium.len());
        // SAFETY: `Medium::check` has made sure that the payload ends within the record, which is
        // this reader's until the cursor advances; the handler gets it for its run only.
        let payload = unsafe { SharedBytesMut::from_raw(bytes, medium.len()) };
        let mut delivery = Delivery::new(
            from,
            lane,
            Category::Medium,
            medium.head.handler(),
            &args[..medium.head.nargs().min(args.len())],
            Some(payload),
            SegmentOffset(0),
            self,
        );
        sink.deliver(&mut delivery);
        delivery.has_replied()
    }

    /// Any record. Returns whether its handler has replied.
    #[allow(clippy::too_many_arguments, reason = "one call site")]
    #[inline(never)]
    fn deliver<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        lane: Lane,
        ring: &Ring<'_>,
        cursor: &mut Cursor<'_>,
        head: Head,
        at: usize,
        sink: &mut S,
    ) -> Result<bool, RecordError> {
        let available = cursor.units_to_end();
        let category = match head.kind()? {
            Kind::Message(category) => category,
            Kind::Skip => {
                let units = head.units();
                if units == 0 || units > available {
                    return Err(RecordError::Units {
                        units,
                        needed: 1,
                        available,
                    });
                }
                cursor.advance(units);
                return Ok(false);
            }
        };
        let mut scratch = Scratch::default();
        let got = record::unpack(head, category, available, &mut scratch, |i| {
            ring.words.load(at + i, Ordering::Relaxed)
        })?;
        let len = got.payload as usize;
        let payload = match category {
            Category::Short => None,
            Category::Medium => {
                let bytes = ring.words.bytes(at + got.header_units as usize * 2, len);
                // SAFETY: `unpack` has checked that the payload ends within the record, which is
                // this reader's until `advance` below; the handler gets it for its run only.
                Some(unsafe { SharedBytesMut::from_raw(bytes, len) })
            }
            Category::Long if len == 0 => None,
            Category::Long => {
                let offset = SegmentOffset(got.offset);
                let place = self.directory.resolve(self.rank, offset, len);
                let place = place.ok_or(RecordError::Payload {
                    len: got.offset.saturating_add(got.payload),
                    max: self.directory.attached_bytes(self.rank),
                })?;
                // SAFETY: the directory has checked that the bytes lie in this rank's attached
                // segment, which stays mapped as long as the directory.
                Some(unsafe { SharedBytesMut::from_raw(place, len) })
            }
        };
        let mut delivery = Delivery::new(
            from,
            lane,
            category,
            head.handler(),
            got.args(&scratch),
            payload,
            SegmentOffset(got.offset),
            self,
        );
        sink.deliver(&mut delivery);
        cursor.advance(head.units());
        Ok(delivery.has_replied())
    }

    fn lane_writer(&self, to: JobRank, lane: Lane) -> &Writer {
        match lane {
            Lane::Request => &self.peer(to).out_request,
            Lane::Reply => &self.peer(to).out_reply,
        }
    }
}

impl ReplyPort for Smp {
    #[inline]
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        match self.write(to, Lane::Reply, &self.peer(to).out_reply, message) {
            Ok(()) => Ok(()),
            Err(SendError::Message(error)) => Err(error),
            // Cannot happen: room was reserved when the request was accepted.
            Err(SendError::Full) => Err(AmError::Full {
                from: self.rank,
                to,
            }),
        }
    }

    fn rank(&self) -> JobRank {
        self.rank
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}

impl Conduit for Smp {
    fn name(&self) -> &'static str {
        "smp"
    }

    fn limits(&self) -> Limits {
        Limits {
            args: MAX_ARGS,
            medium_request: MAX_MEDIUM,
            medium_reply: MAX_MEDIUM,
            long: usize::MAX / 2,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            put: true,
            get: true,
            atomics: true,
            completes_at_injection: true,
        }
    }

    #[inline(always)]
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        let peer = self.peer(to);
        let _guard = peer.out_request_lock.lock(self.mode);
        self.write(to, Lane::Request, &peer.out_request, message)
    }

    #[inline(always)]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        let peer = self.peer(to);
        let _guard = peer.out_request_lock.lock(self.mode);
        let ring = self.region.ring(to, self.rank, Lane::Request);
        let Some(at) = peer.out_request.reserve_one(&ring) else {
            return false;
        };
        ring.words.store(at + 1, short.rest, Ordering::Relaxed);
        publish(&ring, at, short.head);
        self.ring_doorbell(to);
        true
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let PrepareRequest {
            to,
            lane,
            nargs,
            least,
            most,
            offset,
        } = *want;
        let ring = self.region.ring(to, self.rank, lane);
        let _guard =
            (lane == Lane::Request).then(|| self.peer(to).out_request_lock.lock(self.mode));
        let writer = self.lane_writer(to, lane);
        if let Some(offset) = offset {
            let place = if most == 0 {
                core::ptr::null_mut()
            } else {
                let place = self.directory.resolve(to, offset, most);
                place
                    .ok_or_else(|| self.outside(to, offset, most))?
                    .as_ptr()
            };
            let units = record::record_units(Category::Long, nargs, 0);
            let at = writer.reserve(&ring, units).ok_or(SendError::Full)?;
            // SAFETY: the directory has checked the bytes, and they stay mapped as long as it.
            return Ok(unsafe { Prepared::new(*want, place, most, at, units) });
        }
        for capacity in [most.min(MAX_MEDIUM), least.min(MAX_MEDIUM)] {
            let units = record::record_units(Category::Medium, nargs, capacity);
            if let Some(at) = writer.reserve(&ring, units) {
                let payload_at = at + record::header_units(Category::Medium, nargs) * 2;
                let buffer = ring.words.bytes(payload_at, capacity).as_ptr();
                // SAFETY: the units are this writer's until they are published.
                return Ok(unsafe { Prepared::new(*want, buffer, capacity, at, units) });
            }
        }
        Err(SendError::Full)
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        assert_eq!(
            args.len(),
            prepared.nargs(),
            "a commit gives the arguments prepared for"
        );
        assert!(
            len <= prepared.capacity(),
            "a commit sends at most what was prepared"
        );
        let (category, offset) = match prepared.offset() {
            Some(offset) => (Category::Long, offset.0),
            None => (Category::Medium, 0),
        };
        let (at, units) = prepared.place();
        let ring = self.region.ring(prepared.to(), self.rank, prepared.lane());
        self.publish_packed(&ring, at, units, handler, category, args, len, offset);
        self.ring_doorbell(prepared.to());
    }

    fn cancel(&self, prepared: Prepared) {
        let (at, units) = prepared.place();
        let ring = self.region.ring(prepared.to(), self.rank, prepared.lane());
        publish(&ring, at, Head::skip(units));
        self.ring_doorbell(prepared.to());
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        _op: OpToken,
    ) -> Result<Injected, SendError> {
        self.place(to, offset, src, len)?;
        Ok(Injected::Complete)
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        _op: OpToken,
    ) -> Result<Injected, SendError> {
        if len > 0 {
            let src = self.directory.resolve(from, offset, len);
            let src = src.ok_or_else(|| self.outside(from, offset, len))?;
            // SAFETY: the directory has checked the source, the caller promises the target.
            unsafe { bulk::copy(dst, src.as_ptr(), len) };
        }
        Ok(Injected::Complete)
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.take(sink)
    }

    #[inline]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        self.take(sink)
    }

    fn has_work(&self) -> bool {
        (0..self.ranks).map(JobRank).any(|from| {
            let peer = self.peer(from);
            let has = |lane, reader: &Reader| {
                reader
                    .peek(&self.region.ring(self.rank, from, lane))
                    .is_some()
            };
            has(Lane::Reply, &peer.in_reply) || has(Lane::Request, &peer.in_request)
        })
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        let word = self.region.sleep_word(self.rank);
        // A poll counts before it rings, as a sender publishes before it rings.
        wake::sleep(word, self.barrier, &Linux, timeout, || {
            self.has_work() || self.epoch() != seen
        });
    }
}
