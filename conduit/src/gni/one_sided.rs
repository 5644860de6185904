//! Puts and gets by the interface.
//!
//! Each ends during its call: the calling thread posts it and takes its event, under one lock. The
//! interface asks for aligned gets; others are made of aligned ones into a buffer.

use super::greeting::Secret;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::gni::{
    Access, EventData, EventKind, Failure, Gni, GniError, MemHandle, NicAddress, Operation, Post,
    RemotePlace,
};
use argonet_segment::{Directory, bulk};
use core::hint::spin_loop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// Longest operation by the window of the processor; longer ones go by the engine.
const FMA_BYTES: usize = 4 << 10;

/// What is moved under the lock at a time; a multiple of the next one.
const PIECE_BYTES: usize = 1 << 20;

/// Places and lengths of gets are multiples of it.
const GET_ALIGNMENT: usize = 4;

/// Place of the table at which each rank registers its segment.
const SEGMENT_INDEX: u32 = 0;

/// Operations that may be under way; each ends before the next begins.
const QUEUE_EVENTS: u32 = 16;

/// How often an operation is tried that the interface says may be tried again.
const MOST_TRIES: u32 = 64;

/// Words of the buffer for gets that are not aligned.
const BUFFER_WORDS: usize = 512;

/// Operations that the interface has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OneSidedCounts {
    /// Puts by the window of the processor.
    pub fma_puts: u64,
    /// Gets by it.
    pub fma_gets: u64,
    /// Puts by the engine.
    pub rdma_puts: u64,
    /// Gets by it.
    pub rdma_gets: u64,
    /// Tries that have failed and were made again.
    pub retries: u64,
}

/// The endpoint to a peer, and the peer's segment.
struct Target<N: Gni>(N::Endpoint, MemHandle);

struct State<N: Gni> {
    /// By peer.
    endpoints: Box<[Option<Target<N>>]>,
    buffer: Box<[u64; BUFFER_WORDS]>,
    next_id: u64,
    counts: OneSidedCounts,
}

pub(super) struct OneSidedPart<N: Gni> {
    rank: JobRank,
    first: JobRank,
    directory: Arc<Directory>,
    reached: Arc<Directory>,
    queue: N::Queue,
    /// By peer: whether it was given up.
    lost: Box<[AtomicBool]>,
    state: Mutex<State<N>>,
}

/// An operation of this thread.
struct Begun<'a, N: Gni> {
    nic: &'a N,
    queue: &'a N::Queue,
    state: &'a mut State<N>,
    /// Place of the peer in the tables.
    peer: usize,
}

impl<N: Gni> OneSidedPart<N> {
    pub(super) fn new(
        nic: &N,
        (rank, first, count): (JobRank, JobRank, u32),
        directory: Arc<Directory>,
        reached: Arc<Directory>,
    ) -> Result<Self, GniError> {
        let state = State {
            endpoints: (0..count).map(|_| None).collect(),
            buffer: Box::new([0; BUFFER_WORDS]),
            next_id: 0,
            counts: OneSidedCounts::default(),
        };
        Ok(Self {
            rank,
            first,
            directory,
            reached,
            queue: nic.create_queue(QUEUE_EVENTS)?,
            lost: (0..count).map(|_| AtomicBool::new(false)).collect(),
            state: Mutex::new(state),
        })
    }

    pub(super) fn counts(&self) -> OneSidedCounts {
        self.state.lock().counts
    }

    /// Nothing is done to the peer's memory any more once this has returned.
    pub(super) fn forget(&self, peer: JobRank) {
        if let Some(lost) = self.lost.get(self.place(peer)) {
            lost.store(true, Ordering::Relaxed);
        }
        // An operation that has begun ends first.
        drop(self.state.lock());
    }

    fn place(&self, peer: JobRank) -> usize {
        peer.0.wrapping_sub(self.first.0) as usize
    }

    /// Makes all of this rank's segment known to the interface.
    pub(super) fn register(&self, nic: &N, secret: &Secret) -> Result<(), String> {
        let len_bytes = self.directory.attached_bytes(self.rank);
        let Ok(len) = usize::try_from(len_bytes) else {
            return Err(format!("a segment of {len_bytes} bytes"));
        };
        if len == 0 {
            return Ok(());
        }
        let place = || self.reached.resolve(self.rank, SegmentOffset(0), len);
        if place().is_none() {
            let refreshed = self.reached.refresh(self.rank, len_bytes);
            refreshed.map_err(|error| error.to_string())?;
        }
        let memory = place().ok_or_else(|| format!("{len} bytes of the segment are not mapped"))?;
        let at = (SEGMENT_INDEX, secret.segment_key(self.rank));
        // SAFETY: attached memory stays mapped as long as the directory, which outlives the
        // interface's use of it as this value holds it, and is accessed as shared memory.
        let registered =
            unsafe { nic.register(Some(at), memory, len_bytes, Access::ReadWrite, None) };
        registered.map(drop).map_err(|error| error.to_string())
    }

    /// Peers reach the segment no more.
    pub(super) fn leave(&self, nic: &N, secret: &Secret) {
        let (rank, index) = (self.rank, SEGMENT_INDEX);
        let (of, key) = (NicAddress { rank, nic: 0 }, secret.segment_key(rank));
        // There may be none.
        let _ = nic.deregister(MemHandle { of, index, key });
    }

    /// Does an operation under the lock; false if there is no way to the peer.
    fn operate(
        &self,
        nic: &N,
        secret: &Secret,
        peer: JobRank,
        act: impl FnOnce(&mut Begun<'_, N>) -> bool,
    ) -> bool {
        let place = self.place(peer);
        let mut state = self.state.lock();
        // Under the lock, so that `forget` ends after it.
        let is_there = self
            .lost
            .get(place)
            .map(|lost| !lost.load(Ordering::Relaxed));
        if is_there != Some(true) {
            return false;
        }
        if state.endpoints[place].is_none() {
            let of = NicAddress { rank: peer, nic: 0 };
            let (index, key) = (SEGMENT_INDEX, secret.segment_key(peer));
            let none = EventData {
                local: 0,
                remote: 0,
            };
            let Ok(endpoint) = nic.create_endpoint(&self.queue, of, none) else {
                return false;
            };
            state.endpoints[place] = Some(Target(endpoint, MemHandle { of, index, key }));
        }
        act(&mut Begun {
            nic,
            queue: &self.queue,
            state: &mut state,
            peer: place,
        })
    }

    /// As [`OneSided::put_now`](crate::channel::rail::OneSided::put_now).
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn put(
        &self,
        nic: &N,
        secret: &Secret,
        (to, offset): (JobRank, SegmentOffset),
        src: *const u8,
        len: usize,
    ) -> bool {
        each_piece(offset.0, len, |at, done, bytes| {
            // SAFETY: the caller promises the source, of which this is a piece.
            self.operate(nic, secret, to, |begun| unsafe {
                begun.carry(Operation::Put, at, src.add(done).cast_mut(), bytes)
            })
        })
    }

    /// As [`OneSided::get_now`](crate::channel::rail::OneSided::get_now).
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn get(
        &self,
        nic: &N,
        secret: &Secret,
        (from, offset): (JobRank, SegmentOffset),
        dst: *mut u8,
        len: usize,
    ) -> bool {
        each_piece(offset.0, len, |at, done, bytes| {
            // SAFETY: the caller promises the destination, of which this is a piece.
            self.operate(nic, secret, from, |begun| unsafe {
                begun.get(at, dst.add(done), bytes)
            })
        })
    }
}

/// Moves a range in pieces, with the lock free between two; false at the first that is not moved.
///
/// Also if there is no such range.
fn each_piece(offset: u64, len: usize, piece: impl Fn(u64, usize, usize) -> bool) -> bool {
    if offset.checked_add(len as u64).is_none() {
        return false;
    }
    let mut done = 0;
    while done < len {
        let bytes = PIECE_BYTES.min(len - done);
        if !piece(offset + done as u64, done, bytes) {
            return false;
        }
        done += bytes;
    }
    true
}

impl<N: Gni> Begun<'_, N> {
    // spec G5: FMA for short ones, BTE for long ones, gets of any alignment.
    /// Gets from any place to any place.
    ///
    /// # Safety
    /// `dst` is writable for `len` bytes.
    unsafe fn get(&mut self, offset: u64, dst: *mut u8, len: usize) -> bool {
        let phase = |at: usize| at % GET_ALIGNMENT;
        let at = offset as usize;
        let head = match phase(at) == phase(dst.addr()) {
            true => phase(GET_ALIGNMENT - phase(at)).min(len),
            // None of it is aligned on both sides.
            false => len,
        };
        let middle = (len - head) / GET_ALIGNMENT * GET_ALIGNMENT;
        let tail = len - head - middle;
        let (from_middle, from_tail) = (offset + head as u64, offset + (head + middle) as u64);
        // SAFETY: the caller promises the destination, of which these are parts.
        unsafe {
            (head == 0 || self.get_by_buffer(offset, dst, head))
                && (middle == 0 || self.carry(Operation::Get, from_middle, dst.add(head), middle))
                && (tail == 0 || self.get_by_buffer(from_tail, dst.add(head + middle), tail))
        }
    }

    /// Gets aligned pieces around what is wanted, and copies that.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    unsafe fn get_by_buffer(&mut self, offset: u64, dst: *mut u8, len: usize) -> bool {
        let room = size_of_val(&*self.state.buffer);
        let buffer: *mut u8 = self.state.buffer.as_mut_ptr().cast();
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let before = (at % GET_ALIGNMENT as u64) as usize;
            let bytes = (len - done).min(room - GET_ALIGNMENT);
            let whole = (before + bytes).next_multiple_of(GET_ALIGNMENT);
            // SAFETY: `whole` is at most the room of the buffer, which the lock protects.
            if !unsafe { self.carry(Operation::Get, at - before as u64, buffer, whole) } {
                return false;
            }
            // SAFETY: the bytes are within the piece that was got, the caller promises `dst`.
            unsafe { bulk::copy(dst.add(done), buffer.add(before), bytes) };
            done += bytes;
        }
        true
    }

    /// Carries a put, or an aligned get, in as many operations as the interface needs.
    ///
    /// # Safety
    /// `local` is readable for a put and writable for a get, for `len` bytes.
    unsafe fn carry(
        &mut self,
        operation: Operation,
        offset: u64,
        local: *mut u8,
        len: usize,
    ) -> bool {
        let limits = self.nic.limits();
        let by_fma = len <= FMA_BYTES.min(limits.fma_bytes as usize);
        let most = match by_fma {
            true => len,
            false => (limits.rdma_bytes as usize / GET_ALIGNMENT * GET_ALIGNMENT).max(1),
        };
        let mut done = 0;
        while done < len {
            let bytes = most.min(len - done);
            // SAFETY: a part of what the caller promises.
            let part = unsafe { local.add(done) };
            // SAFETY: as above.
            if !unsafe { self.carry_part(operation, offset + done as u64, part, bytes, by_fma) } {
                return false;
            }
            done += bytes;
        }
        true
    }

    // spec G9: what may pass is tried again.
    /// Carries one operation to its end, again where the interface says that it may succeed.
    ///
    /// # Safety
    /// As [`carry`](Self::carry).
    unsafe fn carry_part(
        &mut self,
        operation: Operation,
        offset: u64,
        local: *mut u8,
        len: usize,
        by_fma: bool,
    ) -> bool {
        for _ in 0..MOST_TRIES {
            self.state.next_id = self.state.next_id.wrapping_add(1);
            let Some(Some(Target(endpoint, handle))) = self.state.endpoints.get(self.peer) else {
                return false;
            };
            let post = Post {
                operation,
                local: NonNull::new(local).unwrap_or(NonNull::dangling()),
                remote: RemotePlace {
                    handle: *handle,
                    offset,
                },
                len_bytes: len as u64,
                id: self.state.next_id,
                remote_event: false,
                fence: false,
            };
            // SAFETY: the caller promises the memory during the call, which returns after the
            // operation's end.
            let posted = unsafe {
                match by_fma {
                    true => self.nic.post_fma(endpoint, &post),
                    false => self.nic.post_rdma(endpoint, &post, &[]),
                }
            };
            if posted.is_err() {
                return false;
            }
            match self.end_of(post.id) {
                Ok(()) => {
                    self.count(operation, by_fma);
                    return true;
                }
                Err(Failure::Transient) => self.state.counts.retries += 1,
                Err(_) => return false,
            }
        }
        false
    }

    /// Waits until the operation has ended, without which its memory is not the caller's again.
    fn end_of(&self, id: u64) -> Result<(), Failure> {
        loop {
            // No memory names the queue, so what else is in it was written by a mad peer; every
            // other event is this rank's even then.
            let event = self.nic.next_event(self.queue).ok().flatten();
            match event.map(|event| event.kind) {
                Some(EventKind::Ended { id: of, result, .. }) if of == id => return result,
                _ => spin_loop(),
            }
        }
    }

    fn count(&mut self, operation: Operation, by_fma: bool) {
        let counts = &mut self.state.counts;
        let count = match (operation, by_fma) {
            (Operation::Put, true) => &mut counts.fma_puts,
            (Operation::Put, false) => &mut counts.rdma_puts,
            (_, true) => &mut counts.fma_gets,
            (_, false) => &mut counts.rdma_gets,
        };
        *count += 1;
    }
}
