//! The mock ring: the least that shared memory asks for a message, with and without a payload.
#![allow(unsafe_code)]

use super::limits::{Memcpy, RING, Shared, opaque_memcpy, spin_until};
use super::metric::Load;
use super::pair::Pair;
use argonet::Result;
use argonet_base::cpu;
use core::ffi::c_void;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes before a payload, and the whole of a short message.
const HEADER: usize = 16;

/// The mock ring: slots of one size, each with a header of 16 bytes, four to a line where there is
/// no payload.
///
/// The first word of a slot is the number of its message and is stored last, with release; the
/// reader stores how far it has read when it has read a quarter.
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
        spin_until(|| {
            let room = message - self.seen.get() < self.slots;
            if !room {
                let read = self.memory.word(Shared::READ).load(Ordering::Acquire);
                self.seen.set(read.saturating_sub(self.before));
            }
            room
        });
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
    ///
    /// `wait` is called each time that it is not there.
    #[inline(always)]
    fn receive(&self, place: &mut usize, wait: impl Fn(), handler: impl FnOnce(u64, usize)) {
        let message = self.done.get();
        let number = self.before + message + 1;
        let at = *place;
        let first = self.memory.word(at);
        spin_until(|| {
            let there = first.load(Ordering::Acquire) == number;
            if !there {
                wait();
            }
            there
        });
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
        spin_until(|| self.memory.word(Shared::READ).load(Ordering::Acquire) == all);
    }

    /// Both ranks: so many messages have passed.
    fn finish(&self) {
        self.total.set(self.before + self.done.get());
    }
}

/// Time that a reader which has caught up in a flood leaves the ring alone.
///
/// Without it the reader sits on the writer's line, which then changes hands with every message.
/// Longer ones bring nothing more, and the library cannot take its time so: a rank that waits for a
/// single message would wait for that too.
const REST_TICKS: u64 = 10 * cpu::SHORT_PAUSE_TICKS;

fn rest() {
    let began = cpu::ticks();
    while cpu::ticks().wrapping_sub(began) < REST_TICKS {}
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
fn flood(pair: &Pair<'_>, load: Load, copied: bool) -> Result<Duration> {
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
                ring.receive(&mut place, rest, |word, at| {
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
pub(crate) fn flood_unread(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    flood(pair, load, false)
}

/// Messages with a payload that is copied out.
pub(crate) fn flood_copied(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    flood(pair, load, true)
}

fn round_trips(pair: &Pair<'_>, load: Load, echo: bool) -> Result<Duration> {
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
                back.receive(&mut at_back, || {}, |word, _| handler(word));
            }
            back.publish();
            there.wait_for_reader();
        }),
        1 => {
            for _ in 0..load.count {
                there.receive(
                    &mut at_there,
                    || {},
                    |word, at| {
                        handler(word);
                        let src = there.memory.bytes(at + HEADER, load.bytes);
                        back.send(&mut at_back, src);
                    },
                );
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
pub(crate) fn echo(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    round_trips(pair, load, true)
}

/// One copy in and a line each way.
pub(crate) fn round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    round_trips(pair, load, false)
}
