//! The raw side: the least that the machine asks for the same work, with nothing of the library
//! but the mapping.
//!
//! What a rank's memory holds for it:
//!
//! ```text
//! 0      256    512         4096              FRONT
//! +------+------+------+----+-----------------+------------------------
//! | ping | read | word | 0  | ring to the rank | bulk data
//! +------+------+------+----+-----------------+------------------------
//! ```
#![allow(unsafe_code)]

use super::metric::Load;
use super::pair::Pair;
use argonet::{Rank, Result, SegmentOffset, World};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of the mock ring; the library's rings have as many.
const RING: usize = 256 << 10;

/// Bytes before a payload in the mock ring, and the whole of a short message.
const HEADER: usize = 16;

type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;

unsafe extern "C" {
    fn memcpy(dst: *mut c_void, src: *const c_void, len: usize) -> *mut c_void;
}

/// libc's memcpy behind a pointer that the compiler does not look through, because other
/// processes use the memory too.
fn opaque_memcpy() -> Memcpy {
    black_box(memcpy as Memcpy)
}

/// One rank's memory at this process's address of it.
///
/// Invariant (from [`Shared::at`]): `len` bytes at `base` stay mapped as long as the world of the
/// [`Pair`] that holds the value; words are only accessed as atomics, payloads only by memcpy.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    base: NonNull<u8>,
    len: usize,
}

impl Shared {
    const PING: usize = 0;
    const READ: usize = 256;
    /// A word for single loads, stores and atomic operations.
    pub(crate) const WORD: usize = 512;
    const RING: usize = 4096;
    /// Bytes before the bulk data.
    pub(crate) const FRONT: usize = Self::RING + RING;

    /// `len` bytes at `offset` of a rank's segment, which the caller has accessed before.
    ///
    /// # Panics
    /// If they are not mapped here.
    pub(crate) fn at(world: &World, offset: SegmentOffset, rank: Rank, len: usize) -> Self {
        let base = world.raw().local_address(rank, offset, len);
        let base = base.expect("memory that was just accessed is mapped");
        Self { base, len }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.len,
            "words lie within the memory"
        );
        // SAFETY: inside the mapping and aligned, as just checked, because arrays of the symmetric
        // heap are aligned to 64 bytes; accessed as an atomic by all processes.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    fn bytes(&self, offset: usize, len: usize) -> *mut c_void {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "bytes lie within the memory"
        );
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.add(offset) }.as_ptr().cast()
    }
}

/// One cache line each way: a counter is stored in the other's line and answered in one's own.
pub(crate) fn ping_pong(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let rank = pair.rank().0 as usize;
    let start = Instant::now();
    if rank < 2 {
        let (mine, theirs) = (pair.raw(rank), pair.raw(1 - rank));
        let (mine, theirs) = (mine.word(Shared::PING), theirs.word(Shared::PING));
        let first = pair.raw_rounds.get() + 1;
        for round in first..first + load.count {
            if rank == 0 {
                theirs.store(round, Ordering::Release);
            }
            while mine.load(Ordering::Acquire) != round {}
            if rank == 1 {
                theirs.store(round, Ordering::Release);
            }
        }
        pair.raw_rounds.set(first + load.count - 1);
    }
    Ok(start.elapsed())
}

/// Both ranks store at the same time and wait for each other's store.
pub(crate) fn exchange(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let rank = pair.rank().0 as usize;
    let start = Instant::now();
    if rank < 2 {
        let (mine, theirs) = (pair.raw(rank), pair.raw(1 - rank));
        let (mine, theirs) = (mine.word(Shared::PING), theirs.word(Shared::PING));
        let first = pair.raw_rounds.get() + 1;
        for round in first..first + load.count {
            theirs.store(round, Ordering::Release);
            // The other may be one round ahead.
            while mine.load(Ordering::Acquire) < round {}
        }
        pair.raw_rounds.set(first + load.count - 1);
    }
    Ok(start.elapsed())
}

/// The mock ring: slots of one size, each with a header of 16 bytes, four to a line where there is
/// no payload. The first word of a slot is the number of its message and is stored last, with
/// release; the reader stores how far it has read when it has read a quarter.
struct MockRing<'p> {
    memory: Shared,
    slot: usize,
    slots: u64,
    payload: usize,
    /// Messages before those of this ring, in slots of other sizes perhaps: numbers never return.
    before: u64,
    done: Cell<u64>,
    seen: Cell<u64>,
    total: &'p Cell<u64>,
    memcpy: Memcpy,
}

impl<'p> MockRing<'p> {
    /// The ring to rank `to`, for messages with `payload` bytes.
    fn new(pair: &'p Pair<'_>, to: usize, payload: usize) -> Self {
        let slot = HEADER + payload.next_multiple_of(HEADER);
        let total = &pair.raw_messages[to];
        Self {
            memory: pair.raw(to),
            slot,
            slots: (RING / slot) as u64,
            payload,
            before: total.get(),
            done: Cell::new(0),
            seen: Cell::new(0),
            total,
            memcpy: opaque_memcpy(),
        }
    }

    fn place(&self, message: u64) -> usize {
        Shared::RING + (message % self.slots) as usize * self.slot
    }

    fn copy_in(&self, at: usize, src: *const c_void) {
        // SAFETY: `bytes` has checked the target; callers give `payload` readable bytes that lie
        // outside this ring.
        unsafe {
            (self.memcpy)(
                self.memory.bytes(at + HEADER, self.payload),
                src,
                self.payload,
            )
        };
    }

    /// Sends the next message; `src` has `payload` bytes.
    #[inline(always)]
    fn send(&self, place: &mut usize, src: *const c_void) {
        let message = self.done.get();
        while message - self.seen.get() >= self.slots {
            let read = self.memory.word(Shared::READ).load(Ordering::Acquire);
            self.seen.set(read.saturating_sub(self.before));
        }
        let at = *place;
        if self.payload > 0 {
            self.copy_in(at, src);
        }
        self.memory.word(at + 8).store(message, Ordering::Relaxed);
        let number = self.before + message + 1;
        self.memory.word(at).store(number, Ordering::Release);
        self.done.set(message + 1);
        self.step(place);
    }

    #[inline(always)]
    fn step(&self, place: &mut usize) {
        *place += self.slot;
        if *place + self.slot > Shared::RING + RING {
            *place = Shared::RING;
        }
    }

    /// Waits for the next message and gives `handler` its word and its place.
    #[inline(always)]
    fn receive(&self, place: &mut usize, handler: impl FnOnce(u64, usize)) {
        let message = self.done.get();
        let number = self.before + message + 1;
        let at = *place;
        let first = self.memory.word(at);
        while first.load(Ordering::Acquire) != number {}
        handler(self.memory.word(at + 8).load(Ordering::Relaxed), at);
        self.done.set(message + 1);
        self.step(place);
        if message + 1 - self.seen.get() >= self.slots.div_ceil(4) {
            self.seen.set(message + 1);
            self.publish();
        }
    }

    fn publish(&self) {
        let read = self.memory.word(Shared::READ);
        read.store(self.before + self.done.get(), Ordering::Release);
    }

    /// Waits until the reader has read all.
    fn wait_for_reader(&self) {
        let all = self.before + self.done.get();
        while self.memory.word(Shared::READ).load(Ordering::Acquire) != all {}
    }

    /// Both ranks: so many messages have passed.
    fn finish(&self) {
        self.total.set(self.before + self.done.get());
    }
}

type Handler = fn(u64);

thread_local! {
    static HANDLED: Cell<u64> = const { Cell::new(0) };
}

fn handle(word: u64) {
    HANDLED.set(word);
}

/// A flood through the mock ring, with a function called for each message that gets the payload's
/// place if `copied` says so.
fn ring_flood(pair: &Pair<'_>, load: Load, copied: bool) -> Result<Duration> {
    let ring = MockRing::new(pair, 1, load.bytes);
    let mut place = ring.place(0);
    let start = Instant::now();
    match pair.rank().0 {
        0 => pair.with_private(|bytes| {
            let src = bytes[..load.bytes].as_ptr().cast();
            for _ in 0..load.count {
                ring.send(&mut place, src);
            }
            ring.wait_for_reader();
        }),
        1 => pair.with_private(|bytes| {
            let handler: Handler = black_box(handle);
            let dst: *mut c_void = bytes[..load.bytes].as_mut_ptr().cast();
            for _ in 0..load.count {
                ring.receive(&mut place, |word, at| {
                    handler(word);
                    if copied {
                        let src = ring.memory.bytes(at + HEADER, load.bytes);
                        // SAFETY: `bytes` has checked the source, the target is a slice of that
                        // length in private memory.
                        unsafe { (ring.memcpy)(dst, src, load.bytes) };
                    }
                });
            }
            ring.publish();
        }),
        _ => {}
    }
    let time = start.elapsed();
    ring.finish_on(pair, load);
    Ok(time)
}

impl MockRing<'_> {
    /// Counts the chunk on ranks that took no part too, so that all agree.
    fn finish_on(&self, pair: &Pair<'_>, load: Load) {
        if pair.rank().0 >= 2 {
            self.done.set(load.count);
        }
        self.finish();
    }
}

/// Messages of 16 bytes, or with a payload that stays unread.
pub(crate) fn ring_flood_unread(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    ring_flood(pair, load, false)
}

/// Messages with a payload that is copied out.
pub(crate) fn ring_flood_copied(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    ring_flood(pair, load, true)
}

fn ring_round_trips(pair: &Pair<'_>, load: Load, echo: bool) -> Result<Duration> {
    let there = MockRing::new(pair, 1, load.bytes);
    let back = MockRing::new(pair, 0, if echo { load.bytes } else { 0 });
    let (mut at_there, mut at_back) = (there.place(0), back.place(0));
    let handler: Handler = black_box(handle);
    let start = Instant::now();
    match pair.rank().0 {
        0 => pair.with_private(|bytes| {
            let src = bytes[..load.bytes].as_ptr().cast();
            for _ in 0..load.count {
                there.send(&mut at_there, src);
                back.receive(&mut at_back, |word, _| handler(word));
            }
            back.publish();
            there.wait_for_reader();
        }),
        1 => {
            for _ in 0..load.count {
                there.receive(&mut at_there, |word, at| {
                    handler(word);
                    let src = there.memory.bytes(at + HEADER, load.bytes);
                    back.send(&mut at_back, src);
                });
            }
            there.publish();
            back.wait_for_reader();
        }
        _ => {}
    }
    let time = start.elapsed();
    there.finish_on(pair, load);
    back.finish_on(pair, load);
    Ok(time)
}

/// One copy in, one across, a line each way: a message is answered with its own payload.
pub(crate) fn ring_echo(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    ring_round_trips(pair, load, true)
}

/// One copy in and a line each way.
pub(crate) fn ring_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    ring_round_trips(pair, load, false)
}

fn by_rank_0(pair: &Pair<'_>, load: Load, mut operation: impl FnMut(u64)) -> Result<Duration> {
    let start = Instant::now();
    if pair.rank().0 == 0 {
        (0..load.count).for_each(&mut operation);
    }
    Ok(start.elapsed())
}

/// memcpy from private memory to the memory that puts go to.
pub(crate) fn copy_there(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let dst = pair.raw(1).bytes(Shared::FRONT, load.bytes);
    let memcpy = opaque_memcpy();
    pair.with_private(|bytes| {
        let src = bytes[..load.bytes].as_ptr().cast();
        // SAFETY: `bytes` has checked the target, the source is a slice of that length.
        by_rank_0(pair, load, |_| unsafe {
            memcpy(black_box(dst), src, load.bytes);
        })
    })
}

/// memcpy from the memory that gets read to private memory.
pub(crate) fn copy_here(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let src = pair.raw(1).bytes(Shared::FRONT, load.bytes);
    let memcpy = opaque_memcpy();
    pair.with_private(|bytes| {
        let dst: *mut c_void = bytes[..load.bytes].as_mut_ptr().cast();
        // SAFETY: `bytes` has checked the source, the target is a slice of that length.
        by_rank_0(pair, load, |_| unsafe {
            memcpy(dst, black_box(src), load.bytes);
        })
    })
}

/// A store.
pub(crate) fn store(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let memory = pair.raw(1);
    let word = memory.word(Shared::WORD);
    by_rank_0(pair, load, |i| {
        word.store(i, Ordering::Relaxed);
    })
}

/// A load.
pub(crate) fn load(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let memory = pair.raw(1);
    let word = memory.word(Shared::WORD);
    by_rank_0(pair, load, |_| {
        black_box(word.load(Ordering::Relaxed));
    })
}

/// The processor's fetch-and-add.
pub(crate) fn fetch_add(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let memory = pair.raw(1);
    let word = memory.word(Shared::WORD);
    by_rank_0(pair, load, |i| {
        black_box(word.fetch_add(i, Ordering::SeqCst));
    })
}
