//! The records of one thread that are not written yet.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::sink::Sink;

/// Bytes that a lane holds.
const BYTES: usize = 64 << 10;

/// Bytes of the longest record; of one that would be longer nothing is kept.
pub(crate) const RECORD_BYTES: usize = 32 << 10;

/// A record does not wait longer than this for being written, if its thread makes another.
const AGE_NS: u64 = 250_000_000;

/// How often a thread that wants to write a lane looks whether the lane's own thread has finished a
/// record, giving the processor away in between.
const LOOKS: u32 = 1000;

const FREE: u32 = 0;
/// The thread adds a record.
const FILLING: u32 = 1;
/// A thread writes the lane out.
const WRITING: u32 = 2;

pub(crate) struct Lane {
    /// The lane that was made before; set before others know this one.
    pub(super) next: AtomicPtr<Lane>,
    /// Whether a thread has it.
    pub(super) owned: AtomicBool,
    /// The system's number of that thread.
    pub(super) thread: AtomicU32,
    /// The thread that may touch `text` behind `filled`, or change `filled`.
    state: AtomicU32,
    /// Bytes of whole records: written by the holder of `state`, with Release; read with Acquire.
    filled: AtomicUsize,
    /// When the first of them was made.
    oldest_ns: AtomicU64,
    text: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: `text` is touched by the thread that has moved `state` away from FREE, and up to `filled`
// by readers while it does not change; both are argued where it is done.
unsafe impl Sync for Lane {}

/// Outcome for a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    Whole,
    TooLong,
}

/// A buffer to format into.
pub(crate) struct Cursor<'a> {
    to: &'a mut [u8],
    len: usize,
    overflown: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(to: &'a mut [u8]) -> Self {
        Self {
            to,
            len: 0,
            overflown: false,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.to[..self.len]
    }
}

impl fmt::Write for Cursor<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Some(room) = self.to.get_mut(self.len..self.len + text.len()) else {
            self.overflown = true;
            return Err(fmt::Error);
        };
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicPtr::new(null_mut()),
            owned: AtomicBool::new(true),
            thread: AtomicU32::new(0),
            state: AtomicU32::new(FREE),
            filled: AtomicUsize::new(0),
            oldest_ns: AtomicU64::new(0),
            text: UnsafeCell::new([0; BYTES]),
        }
    }

    /// Adds a record.
    ///
    /// By the thread that has the lane, which is not inside this function.
    pub(crate) fn append(
        &self,
        sink: &Sink,
        at_ns: u64,
        at_once: bool,
        write: impl FnOnce(&mut Cursor<'_>) -> fmt::Result,
    ) -> Kept {
        // The others that take a lane give it back when they have written it.
        while !self.take(FILLING) {
            std::thread::yield_now();
        }
        if BYTES - self.filled.load(Ordering::Relaxed) < RECORD_BYTES {
            self.write_out(sink);
        }
        let filled = self.filled.load(Ordering::Relaxed);
        if filled == 0 {
            self.oldest_ns.store(at_ns, Ordering::Relaxed);
        }
        // SAFETY: `state` is FILLING by this thread, so no other thread touches the bytes behind
        // `filled`; there are at least RECORD_BYTES, as was just made sure.
        let room = unsafe {
            let start = self.text.get().cast::<u8>().add(filled);
            core::slice::from_raw_parts_mut(start, RECORD_BYTES)
        };
        let mut cursor = Cursor::new(room);
        let written = write(&mut cursor);
        let (len, whole) = (cursor.len, written.is_ok() && !cursor.overflown);
        if whole {
            self.filled.store(filled + len, Ordering::Release);
        }
        let age = at_ns.saturating_sub(self.oldest_ns.load(Ordering::Relaxed));
        if at_once || age > AGE_NS {
            self.write_out(sink);
        }
        self.state.store(FREE, Ordering::Release);
        if whole { Kept::Whole } else { Kept::TooLong }
    }

    /// Writes the records of the lane, if no other thread uses it.
    ///
    /// By any thread.
    pub(crate) fn flush(&self, sink: &Sink) {
        if self.filled.load(Ordering::Relaxed) > 0 && self.take(WRITING) {
            self.write_out(sink);
            self.state.store(FREE, Ordering::Release);
        }
    }

    /// Writes the records of the lane because the process ends; `own` is whether the calling thread
    /// was interrupted while it used this lane.
    ///
    /// Async-signal-safe.
    pub(crate) fn flush_finally(&self, sink: &Sink, own: bool) {
        for _ in 0..if own { 0 } else { LOOKS } {
            if self.take(WRITING) {
                self.write_out(sink);
                return self.state.store(FREE, Ordering::Release);
            }
            std::thread::yield_now();
        }
        // A thread that writes has handed the bytes to the system, or is about to; a thread that
        // adds a record and does not go on has left whole records before it.
        if self.state.load(Ordering::Acquire) == FILLING {
            sink.write(self.whole());
        }
    }

    fn take(&self, state: u32) -> bool {
        self.state
            .compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Hands the whole records to the system.
    ///
    /// By the holder of the lane.
    fn write_out(&self, sink: &Sink) {
        let before = self.state.swap(WRITING, Ordering::Relaxed);
        sink.write(self.whole());
        self.filled.store(0, Ordering::Relaxed);
        self.state.store(before, Ordering::Relaxed);
    }

    /// The whole records, for the holder of the lane, or when its thread does not go on.
    fn whole(&self) -> &[u8] {
        let filled = self.filled.load(Ordering::Acquire);
        // SAFETY: the bytes up to `filled` were written before it was stored with Release, and do
        // not change before it is 0 again, which only the holder of the lane makes it.
        unsafe { core::slice::from_raw_parts(self.text.get().cast::<u8>(), filled) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Target};
    use argonet_settings::Settings;
    use core::fmt::Write;

    fn sink(path: &std::path::Path) -> Sink {
        let options = Options::of(&Settings::default(), 0, 1);
        Sink::open(&options, "a file", &Target::Own(path.to_owned()), b"").unwrap()
    }

    #[test]
    fn records_come_in_order_and_once() {
        let place = tempfile::tempdir().unwrap();
        let (path, lane) = (place.path().join("t"), Lane::new());
        let sink = sink(&path);
        for n in 0..5000 {
            let kept = lane.append(&sink, n, false, |to| writeln!(to, "record {n}"));
            assert_eq!(kept, Kept::Whole);
        }
        let written = std::fs::read_to_string(&path).unwrap();
        // Some records are held back, and those that are written are whole.
        assert!(
            written.ends_with('\n') && written.len() < 5000 * 10,
            "{}",
            written.len()
        );
        lane.flush_finally(&sink, false);
        let all: String = (0..5000).map(|n| format!("record {n}\n")).collect();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
    }

    #[test]
    fn age_and_wish_write_at_once() {
        let place = tempfile::tempdir().unwrap();
        let (path, lane) = (place.path().join("t"), Lane::new());
        let sink = sink(&path);
        let read = || std::fs::read_to_string(&path).unwrap();
        lane.append(&sink, 1, false, |to| to.write_str("a\n"));
        assert_eq!(read(), "");
        lane.append(&sink, 2 + AGE_NS, false, |to| to.write_str("b\n"));
        assert_eq!(read(), "a\nb\n");
        lane.append(&sink, 3 + AGE_NS, true, |to| to.write_str("c\n"));
        assert_eq!(read(), "a\nb\nc\n");
        lane.append(&sink, 4 + AGE_NS, false, |to| to.write_str("d\n"));
        lane.flush(&sink);
        assert_eq!(read(), "a\nb\nc\nd\n");
    }

    #[test]
    fn a_record_that_is_too_long_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (path, lane) = (place.path().join("t"), Lane::new());
        let sink = sink(&path);
        let long = "x".repeat(RECORD_BYTES + 1);
        lane.append(&sink, 1, false, |to| to.write_str("a\n"));
        let kept = lane.append(&sink, 1, false, |to| to.write_str(&long));
        assert_eq!(kept, Kept::TooLong);
        lane.append(&sink, 1, true, |to| to.write_str("b\n"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
    }

    #[test]
    fn a_thread_that_is_interrupted_leaves_whole_records() {
        let place = tempfile::tempdir().unwrap();
        let (path, lane) = (place.path().join("t"), Lane::new());
        let sink = sink(&path);
        lane.append(&sink, 1, false, |to| to.write_str("a\n"));
        lane.append(&sink, 1, false, |to| {
            to.write_str("half of a rec")?;
            // As a signal handler would that ends the process.
            lane.flush_finally(&sink, true);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
            Err(fmt::Error)
        });
    }

    #[test]
    fn others_may_flush_while_a_thread_writes() {
        let place = tempfile::tempdir().unwrap();
        let (path, lane) = (place.path().join("t"), Lane::new());
        let sink = sink(&path);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    lane.flush(&sink);
                }
            });
            for n in 0..20_000 {
                lane.append(&sink, n, false, |to| writeln!(to, "{n}"));
            }
            done.store(true, Ordering::Release);
        });
        lane.flush_finally(&sink, false);
        let all: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        assert!(
            std::fs::read_to_string(&path).unwrap() == all,
            "records are missing or twice"
        );
    }
}
