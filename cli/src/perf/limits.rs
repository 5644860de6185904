//! The raw side: the least that the machine asks for the same work, with nothing of the library
//! but the mapping.
//!
//! Layout of a rank's memory:
//!
//! ```text
//! 0      64     4096        20480              FRONT
//! +------+------+-----------+------------------+------------------------
//! | word | read | ping      | ring to the rank | bulk data
//! +------+------+-----------+------------------+------------------------
//! ```
#![allow(unsafe_code)]

use super::metric::Load;
use super::pair::Pair;
use argonet::{Rank, Result, SegmentOffset, World};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of the mock ring; the library's rings have as many.
pub(super) const RING: usize = 256 << 10;

/// Lines that the ping-pong goes round.
///
/// The speed of a line depends on its place in the processor's caches, and the library's rings lie
/// on many: with one line alone the limit would be luck.
const PINGS: u64 = 128;

/// Bytes from one of them to the next: processors fetch lines in pairs.
const PING_STRIDE: usize = 128;

/// Rounds on a line before the next.
const ROUNDS_A_LINE: u64 = 16;

pub(super) type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;

unsafe extern "C" {
    fn memcpy(dst: *mut c_void, src: *const c_void, len: usize) -> *mut c_void;
}

/// libc's memcpy behind a pointer that the compiler does not look through, because other
/// processes use the memory too.
pub(super) fn opaque_memcpy() -> Memcpy {
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
    /// A word for single loads, stores and atomic operations.
    pub(crate) const WORD: usize = 0;
    pub(super) const READ: usize = 64;
    const PING: usize = 4096;
    pub(super) const RING: usize = Self::PING + PINGS as usize * PING_STRIDE;
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

    #[inline(always)]
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.len,
            "words lie within the memory"
        );
        // SAFETY: inside the mapping and aligned, as just checked, because arrays of the symmetric
        // heap are aligned to 64 bytes; accessed as an atomic by all processes.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn bytes(&self, offset: usize, len: usize) -> *mut c_void {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "bytes lie within the memory"
        );
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.add(offset) }.as_ptr().cast()
    }
}

/// Waits busily.
///
/// A rank whose core another thread wants lets go of it now and then; on a core of one's own that
/// happens in no wait that counts.
#[inline(always)]
pub(super) fn spin_until(ready: impl Fn() -> bool) {
    let mut looks = 0u32;
    while !ready() {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1 << 15) {
            std::thread::yield_now();
        }
    }
}

impl Shared {
    /// The word of a round of ping-pong.
    #[inline(always)]
    fn ping(&self, round: u64) -> &AtomicU64 {
        let line = round / ROUNDS_A_LINE % PINGS;
        self.word(Self::PING + line as usize * PING_STRIDE)
    }
}

/// Calls `round` on ranks 0 and 1 for each round, with the words of this rank and of the other.
#[inline(always)]
fn rounds(
    pair: &Pair<'_>,
    load: Load,
    mut round: impl FnMut(u64, &AtomicU64, &AtomicU64),
) -> Result<Duration> {
    let rank = pair.rank().0 as usize;
    let start = Instant::now();
    if rank < 2 {
        let (mine, theirs) = (pair.raw(rank), pair.raw(1 - rank));
        let first = pair.raw_rounds.get() + 1;
        for number in first..first + load.count {
            round(number, mine.ping(number), theirs.ping(number));
        }
        pair.raw_rounds.set(first + load.count - 1);
    }
    Ok(start.elapsed())
}

/// One cache line each way: a counter is stored in the other's line and answered in one's own.
pub(crate) fn ping_pong(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let begins = pair.rank().0 == 0;
    rounds(pair, load, |number, mine, theirs| {
        if begins {
            theirs.store(number, Ordering::Release);
        }
        spin_until(|| mine.load(Ordering::Acquire) == number);
        if !begins {
            theirs.store(number, Ordering::Release);
        }
    })
}

/// Both ranks store at the same time and wait for each other's store.
pub(crate) fn exchange(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    rounds(pair, load, |number, mine, theirs| {
        theirs.store(number, Ordering::Release);
        // The other may be one round ahead.
        spin_until(|| mine.load(Ordering::Acquire) >= number);
    })
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
