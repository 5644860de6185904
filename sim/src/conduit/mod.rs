//! The simulated conduit: the [`Conduit`] trait over reliable links.
//!
//! Two links connect each pair of ranks, one a class. A request is sent only with a credit, of which
//! there are a fixed number a peer; for each the landing room of the largest reply is kept. It comes
//! back with the reply, or by itself when the request was handled without one. A request is taken
//! from its link only while the reply's link has room; until then the link's window closes and the
//! requests wait at their sender. Replies are always taken. So no buffer of any size, not even one, can be
//! the end of progress.
//!
//! Puts and gets go as chunks in the class of requests and are served by the target's poll, which
//! checks them against its own segment. Nothing happens outside calls of the rank itself: who does
//! not poll neither acknowledges nor serves.

mod book;
mod buffers;
mod message;
mod operations;
mod serve;

pub(crate) use message::HEADER_BYTES;

use crate::clock::Place;
use crate::config::Sizes;
use crate::job::Simulated;
use argonet_am::{
    AmError, Category, MAX_CARRIED, Message, MessageClass, Payload, Registered, ReplyPort,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::wire::{UserBytes, UserPlace};
use argonet_conduit::{
    Capabilities, Conduit, Held, Injected, Limits, OpToken, PeerLedger, PrepareRequest, Prepared,
    SendError, Sink,
};
use argonet_segment::{Directory, SharedBytes};
use book::Book;
use buffers::{Buffer, Source};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use message::{Head, Kind};
use operations::Transfer;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One rank's way to the others. Made by [`Cluster`](crate::Cluster).
pub struct SimConduit {
    place: Place,
    ranks: u32,
    sizes: Sizes,
    directory: Arc<Directory>,
    registered: Registered,
    book: Mutex<Book>,
    prepared: Mutex<BTreeMap<usize, Box<[u8]>>>,
    /// Polls that took frames, if only acknowledgements that made room. Written by the polling
    /// thread (Release), read by threads that are about to sleep (Acquire).
    epoch: AtomicU32,
}

impl SimConduit {
    pub(crate) fn new(
        place: Place,
        ranks: u32,
        epoch: u64,
        sizes: Sizes,
        directory: Arc<Directory>,
        registered: Registered,
    ) -> Self {
        let book = Book::new(place.rank, ranks, epoch, sizes);
        Self {
            place,
            ranks,
            sizes,
            directory,
            registered,
            book: Mutex::new(book),
            prepared: Mutex::default(),
            epoch: AtomicU32::new(0),
        }
    }

    fn rank(&self) -> JobRank {
        JobRank(self.place.rank)
    }

    /// Calls `f` with the book and the time, then sends what may leave.
    fn act<R>(&self, f: impl FnOnce(&mut Book, u64) -> R) -> R {
        let mut book = self.book.lock();
        self.place.clock.with(|state| {
            let result = f(&mut book, state.now_ns);
            book.flush(state);
            result
        })
    }

    /// The same place, for what else waits on this rank's behalf.
    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Whether anything has passed between this rank and a peer. If not, this rank does not notice
    /// the peer's death.
    #[must_use]
    pub fn knows(&self, peer: JobRank) -> bool {
        self.book.lock().knows(peer.0)
    }

    /// Payloads sent again, payloads that arrived twice, frames that could not be used.
    #[must_use]
    pub fn totals(&self) -> (u64, u64, u64) {
        self.book.lock().totals()
    }

    /// Whether the message keeps to the limits.
    fn check(
        &self,
        to: JobRank,
        category: Category,
        nargs: usize,
        len: usize,
    ) -> Result<(), AmError> {
        let from = self.rank();
        if to.0 >= self.ranks {
            let size = self.ranks;
            return Err(AmError::NoSuchRank { to, size, from });
        }
        self.limits().check(from, to, category, nargs, len)
    }

    fn head(message: &Message<'_>) -> Head {
        let offset = match message.payload {
            Payload::Long(_, offset) => offset.0,
            Payload::None | Payload::Medium(_) => 0,
        };
        Head {
            handler: message.handler.0,
            offset,
            length: message.payload.len() as u64,
            ..Head::new(Kind::of(message.payload.category()))
        }
    }

    /// Whether a request with `copied` bytes that must be copied can be sent now.
    fn admit(&self, book: &Book, to: JobRank, copied: usize) -> Result<(), SendError> {
        if let Some(error) = book.death_of(to.0) {
            return Err(SendError::Message(error));
        }
        let replay_bytes = book.buffers.replay_bytes + book.operations.copied_bytes;
        if !book.may_request(to.0) || replay_bytes + copied > self.sizes.replay_bytes {
            return Err(SendError::Full);
        }
        Ok(())
    }

    fn send_request(
        &self,
        to: JobRank,
        head: Head,
        args: &[u32],
        copied: usize,
        tail: impl FnOnce() -> Option<(Buffer, usize)>,
    ) -> Result<(), SendError> {
        // Who is refused has looked at a few words only.
        self.admit(&self.book.lock(), to, copied)?;
        self.place.spend(self.sizes.inject_ns);
        self.act(|book, now_ns| {
            self.admit(book, to, copied)?;
            book.send(to.0, MessageClass::Request, head, args, tail(), now_ns);
            Ok(())
        })
    }
}

/// A copy of a message's payload.
fn copied(payload: &Payload<'_>) -> Vec<u8> {
    match payload {
        Payload::None => Vec::new(),
        Payload::Medium(bytes) | Payload::Long(bytes, _) => bytes.to_vec(),
    }
}

fn tail_of(bytes: Vec<u8>, replay: bool) -> Option<(Buffer, usize)> {
    let len = bytes.len();
    let bytes = bytes.into_boxed_slice();
    (len > 0).then_some((Buffer::Payload { bytes, replay }, len))
}

impl Simulated for SimConduit {
    const IS_ORDERED: bool = true;

    fn compute(&self, time: Duration) {
        self.place.spend(time.as_nanos() as u64);
    }

    /// A rank that is done polls until then, and goes on acknowledging until its peers are done.
    fn is_delivered(&self) -> bool {
        self.book.lock().is_delivered()
    }

    /// One line for each peer.
    fn under_way(&self) -> Vec<String> {
        self.book.lock().under_way()
    }
}

impl ReplyPort for SimConduit {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        let category = message.payload.category();
        self.check(to, category, message.args.len(), message.payload.len())?;
        // The request was taken only because there is room.
        let tail = tail_of(copied(&message.payload), false);
        self.act(|book, now_ns| {
            book.send(
                to.0,
                MessageClass::Reply,
                Self::head(message),
                message.args,
                tail,
                now_ns,
            );
        });
        Ok(())
    }

    fn rank(&self) -> JobRank {
        self.rank()
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}

#[allow(unsafe_code)]
impl Conduit for SimConduit {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn limits(&self) -> Limits {
        Limits {
            args: MAX_CARRIED,
            medium_request: self.sizes.medium_bytes,
            medium_reply: self.sizes.medium_bytes,
            long: self.sizes.long_bytes,
        }
    }

    fn capabilities(&self) -> Capabilities {
        // The target must poll, as for messages.
        Capabilities::default()
    }

    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        let len = message.payload.len();
        self.check(to, message.payload.category(), message.args.len(), len)?;
        let tail = || tail_of(copied(&message.payload), true);
        self.send_request(to, Self::head(message), message.args, len, tail)
    }

    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        let len = message.payload.len();
        let start = match message.payload {
            Payload::Medium(bytes) | Payload::Long(bytes, _) if len > self.sizes.copy_bytes => {
                bytes.as_ptr()
            }
            _ => return self.request(to, message).map(|()| Injected::Complete),
        };
        self.check(to, message.payload.category(), message.args.len(), len)?;
        // SAFETY: the caller keeps the payload readable until local completion.
        let source = unsafe { UserBytes::new(start, len) };
        let tail = || Some((Buffer::InPlace { source, op }, len));
        self.send_request(to, Self::head(message), message.args, 0, tail)?;
        Ok(Injected::Pending)
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let category = want.offset.map_or(Category::Medium, |_| Category::Long);
        // A long is prepared for all of `most`, a medium for what there is room for.
        let capacities = match category {
            Category::Long => [want.most, want.most],
            _ => [want.most.min(self.sizes.medium_bytes), want.least],
        };
        self.check(want.to, category, want.nargs, capacities[1])?;
        let capacity = self.act(|book, _| {
            let room = |capacity: &usize| match want.class {
                MessageClass::Request => self.admit(book, want.to, *capacity),
                MessageClass::Reply if book.has_room(want.to.0, MessageClass::Reply) => Ok(()),
                MessageClass::Reply => Err(SendError::Full),
            };
            let refusal = room(&capacities[1]);
            let fits = capacities
                .into_iter()
                .find(|capacity| room(capacity).is_ok());
            let Some(capacity) = fits else {
                return Err(refusal.err().unwrap_or(SendError::Full));
            };
            if want.class == MessageClass::Request {
                book.reserve(want.to.0, capacity);
            }
            Ok(capacity)
        })?;
        let mut buffer = vec![0; capacity].into_boxed_slice();
        let start = buffer.as_mut_ptr();
        let position = start.addr();
        self.prepared.lock().insert(position, buffer);
        // SAFETY: the buffer is kept, and touched by nobody else, until commit or cancel.
        Ok(unsafe { Prepared::new(*want, start, capacity, position, 0) })
    }

    fn commit(&self, mut prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        assert_eq!(
            args.len(),
            prepared.nargs(),
            "a commit gives the arguments prepared for"
        );
        assert!(
            len <= prepared.capacity(),
            "a commit sends at most what was prepared"
        );
        // SAFETY: this conduit prepared it.
        let bytes = unsafe { prepared.buffer() }.as_shared().to_vec();
        let bytes = SharedBytes::from_slice(&bytes[..len]);
        let message = Message {
            handler,
            args,
            payload: match prepared.offset() {
                Some(offset) => Payload::Long(bytes, offset),
                None => Payload::Medium(bytes),
            },
        };
        let (to, class) = (prepared.to(), prepared.class());
        let tail = tail_of(copied(&message.payload), class == MessageClass::Request);
        self.forget(&prepared);
        self.act(|book, now_ns| {
            if class == MessageClass::Request {
                book.unreserve(to.0, prepared.capacity());
            }
            book.send(to.0, class, Self::head(&message), args, tail, now_ns);
        });
        if class == MessageClass::Request {
            self.place.spend(self.sizes.inject_ns);
        }
    }

    fn cancel(&self, prepared: Prepared) {
        self.forget(&prepared);
        if prepared.class() == MessageClass::Request {
            let mut book = self.book.lock();
            book.unreserve(prepared.to().0, prepared.capacity());
        }
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.check(to, Category::Short, 0, 0)?;
        if len == 0 {
            return Ok(Injected::Complete);
        }
        let copies = len <= self.sizes.copy_bytes;
        let copied = if copies { len } else { 0 };
        self.admit_operation(&self.book.lock(), to, copied)?;
        self.place.spend(self.sizes.inject_ns);
        self.act(|book, now_ns| {
            self.admit_operation(book, to, copied)?;
            // SAFETY: the caller keeps the source readable until local completion.
            let user = unsafe { UserBytes::new(src, len) };
            let source = if copies {
                Source::Copied(user.to_vec().into())
            } else {
                Source::User(user)
            };
            book.begin(op, to.0, Transfer::Put(source), offset.0, len, now_ns);
            Ok(if copies {
                Injected::Local
            } else {
                Injected::Pending
            })
        })
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.check(from, Category::Short, 0, 0)?;
        if len == 0 {
            return Ok(Injected::Complete);
        }
        self.admit_operation(&self.book.lock(), from, 0)?;
        self.place.spend(self.sizes.inject_ns);
        self.act(|book, now_ns| {
            self.admit_operation(book, from, 0)?;
            // SAFETY: the caller keeps the target writable until completion.
            let place = unsafe { UserPlace::new(dst, len) };
            book.begin(op, from.0, Transfer::Get(place), offset.0, len, now_ns);
            Ok(Injected::Pending)
        })
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.place.spend(self.sizes.poll_ns);
        self.serve(sink)
    }

    fn has_work(&self) -> bool {
        let frames = self
            .place
            .clock
            .with(|state| state.has_frames(self.place.rank));
        frames || self.book.lock().has_arrived()
    }

    fn is_quiescent(&self) -> bool {
        !self.has_work() && self.book.lock().is_quiescent()
    }

    fn yield_now(&self) {
        self.place.spend(self.sizes.poll_ns);
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        let book = self.book.lock();
        let requests = book.class_ledger(peer.0, MessageClass::Request);
        let replies = book.class_ledger(peer.0, MessageClass::Reply);
        (requests.is_some() || replies.is_some()).then(|| PeerLedger {
            unit: "messages",
            requests: requests.unwrap_or_default(),
            replies: replies.unwrap_or_default(),
            held: Held::default(),
        })
    }

    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        // What made room, or settled the rank, was no message: the last poll has not told of it.
        if self.epoch() != seen {
            return;
        }
        let timer_ns = {
            let book = self.book.lock();
            if book.has_deliverable() {
                return;
            }
            book.next_timer()
        };
        let now_ns = self.place.clock.now_ns();
        let timeout_ns = timeout.map(|time| now_ns.saturating_add(time.as_nanos() as u64));
        let until_ns = [timer_ns, timeout_ns].into_iter().flatten().min();
        self.place.park(until_ns);
    }
}

impl SimConduit {
    fn admit_operation(&self, book: &Book, to: JobRank, copied: usize) -> Result<(), SendError> {
        if let Some(error) = book.death_of(to.0) {
            return Err(SendError::Message(error));
        }
        let replay_bytes = book.buffers.replay_bytes + book.operations.copied_bytes;
        if book.operations.is_full() || replay_bytes + copied > self.sizes.replay_bytes {
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// Drops the buffer of a prepared payload.
    fn forget(&self, prepared: &Prepared) {
        let (position, _) = prepared.place();
        let buffer = self.prepared.lock().remove(&position);
        assert!(
            buffer.is_some(),
            "a payload that this conduit did not prepare"
        );
    }
}
