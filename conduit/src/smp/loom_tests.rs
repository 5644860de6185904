//! Ring and wake-up under loom's model checker: every interleaving with at most three preemptions.
//!
//! `cargo xtask loom` runs them; a failure prints the interleaving.

use super::ring::{Reader, Ring, Writer, publish};
use super::wake::{self, Barrier, Kernel};
use super::words::Words;
use argonet_am::Category;
use argonet_am::record::{Head, Kind};
use argonet_base::HandlerIndex;
use argonet_base::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const UNITS: u32 = 8;

/// Records of more units go beyond a lap that is shorter than the ring.
const LARGE: u32 = 2;

pub(super) fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// A ring of eight units, owned by both sides.
#[derive(Clone)]
struct Shared {
    words: Words,
    lap: u32,
    read_position: Arc<AtomicU32>,
}

impl Shared {
    fn new(lap: u32) -> Self {
        Self {
            words: Words::zeroed(UNITS as usize * 2),
            lap,
            read_position: Arc::new(AtomicU32::new(0)),
        }
    }

    fn ring(&self) -> Ring<'_> {
        Ring {
            words: self.words.clone(),
            units: UNITS,
            lap: self.lap,
            large: LARGE,
            read_position: &self.read_position,
        }
    }
}

/// Writes a record of `units` units that carries `value` in all its words but the first.
fn try_write(shared: &Shared, writer: &Writer, value: u32, units: u32) -> bool {
    let ring = shared.ring();
    let Some(at) = writer.reserve(&ring, units) else {
        return false;
    };
    for i in 1..units as usize * 2 {
        ring.words.store(at + i, value.into(), Ordering::Relaxed);
    }
    let head = Head::message(Category::Short, HandlerIndex(1), 0, value, units);
    publish(&ring, at, head);
    true
}

/// Reads one record, checks all its words, and returns its value.
fn try_read(shared: &Shared, reader: &Reader) -> Option<u32> {
    let ring = shared.ring();
    let mut cursor = reader.cursor(&ring);
    let (head, at) = cursor.peek()?;
    let units = head.units();
    assert!(units <= cursor.units_to_end());
    match head.kind().expect("only whole records are seen") {
        Kind::Skip => {
            cursor.advance(units);
            drop(cursor);
            try_read(shared, reader)
        }
        Kind::Message(_) => {
            let value = head.arg0();
            for i in 1..units as usize * 2 {
                assert_eq!(ring.words.load(at + i, Ordering::Relaxed), u64::from(value));
            }
            cursor.advance(units);
            Some(value)
        }
    }
}

/// Records of these sizes arrive whole, once, in order.
fn transfer(sizes: &'static [u32]) {
    transfer_in_laps(UNITS, sizes);
}

/// The same, where those that are not large keep to the first units.
fn transfer_in_laps(lap: u32, sizes: &'static [u32]) {
    model(move || {
        let shared = Shared::new(lap);
        let theirs = shared.clone();
        let sender = thread::spawn(move || {
            let writer = Writer::default();
            for (value, &units) in (1..).zip(sizes) {
                while !try_write(&theirs, &writer, value, units) {
                    thread::yield_now();
                }
            }
        });
        let reader = Reader::default();
        for value in 1..=sizes.len() as u32 {
            let got = loop {
                match try_read(&shared, &reader) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, value);
        }
        assert_eq!(try_read(&shared, &reader), None);
        sender.join().unwrap();
    });
}

#[test]
fn two_records_share_a_line() {
    transfer(&[1, 1]);
}

#[test]
fn a_full_ring_is_not_overwritten() {
    // 3 + 3 leaves two units, one of which must stay the zero word; the third waits for room.
    transfer(&[3, 3, 1]);
}

#[test]
fn a_skip_covers_the_end() {
    // 3 + 3 units, then a record of 3 that fits only from the start again.
    transfer(&[3, 3, 3]);
}

#[test]
fn the_end_is_met_exactly() {
    transfer(&[4, 2, 2, 2]);
}

#[test]
fn a_lap_ends_with_a_skip() {
    // 2 + 2 units are the lap; the third begins the next one, or, as long as there is no room for
    // that, goes on behind it.
    transfer_in_laps(4, &[2, 2, 2]);
}

#[test]
fn a_large_record_leaves_the_lap() {
    // 3 units begin in the lap and end behind it; the third record goes on there.
    transfer_in_laps(4, &[2, 3, 2]);
}

/// A futex made of a mutex and a condition variable.
#[derive(Default)]
pub(super) struct ModelKernel {
    lock: Mutex<()>,
    queue: Condvar,
}

impl Kernel for ModelKernel {
    fn barrier_everywhere(&self) {
        unreachable!("the model is of the sender's fence");
    }

    fn wait(&self, word: &AtomicU32, value: u32, _timeout: Option<core::time::Duration>) -> bool {
        let guard = self.lock.lock().unwrap();
        if word.load(Ordering::SeqCst) == value {
            drop(self.queue.wait(guard).unwrap());
        }
        false
    }

    fn wake_all(&self, _word: &AtomicU32) {
        drop(self.lock.lock().unwrap());
        self.queue.notify_all();
    }
}

/// One sleeper and one sender: a lost wake-up is a deadlock, which loom reports.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let shared = Shared::new(UNITS);
        let word = Arc::new(AtomicU32::new(0));
        let kernel = Arc::new(ModelKernel::default());
        let (their_shared, their_word, their_kernel) =
            (shared.clone(), Arc::clone(&word), Arc::clone(&kernel));
        let sender = thread::spawn(move || {
            let writer = Writer::default();
            assert!(try_write(&their_shared, &writer, 7, 1));
            wake::wake_rank(&their_word, Barrier::Sender, &*their_kernel);
        });
        let reader = Reader::default();
        loop {
            if let Some(value) = try_read(&shared, &reader) {
                assert_eq!(value, 7);
                break;
            }
            wake::sleep((&word, true), Barrier::Sender, &*kernel, None, || {
                reader.peek(&shared.ring()).is_some()
            });
        }
        sender.join().unwrap();
    });
}

/// Two threads of one rank sleep on its word; one message each must wake both in the end.
#[test]
fn two_sleepers_are_both_woken() {
    model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let kernel = Arc::new(ModelKernel::default());
        let work = Arc::new(AtomicU32::new(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let (word, kernel, work) =
                    (Arc::clone(&word), Arc::clone(&kernel), Arc::clone(&work));
                thread::spawn(move || {
                    let has_work = || work.load(Ordering::Relaxed) != 0;
                    while !has_work() {
                        wake::sleep((&word, false), Barrier::Sender, &*kernel, None, has_work);
                    }
                })
            })
            .collect();
        work.store(1, Ordering::Relaxed);
        wake::wake_rank(&word, Barrier::Sender, &*kernel);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

/// A thread that finds what it waited for leaves another asleep, which a sender wakes.
#[test]
fn a_sleeper_that_leaves_takes_no_wake_up_along() {
    model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let kernel = Arc::new(ModelKernel::default());
        let work = Arc::new(AtomicU32::new(0));
        let leaver = {
            let (word, kernel) = (word.clone(), kernel.clone());
            thread::spawn(move || {
                wake::sleep((&word, false), Barrier::Sender, &*kernel, None, || true);
            })
        };
        let sender = {
            let (word, kernel, work) = (word.clone(), kernel.clone(), work.clone());
            thread::spawn(move || {
                work.store(1, Ordering::Relaxed);
                wake::wake_rank(&word, Barrier::Sender, &*kernel);
            })
        };
        let has_work = || work.load(Ordering::Relaxed) != 0;
        while !has_work() {
            wake::sleep((&word, false), Barrier::Sender, &*kernel, None, has_work);
        }
        leaver.join().unwrap();
        sender.join().unwrap();
    });
}
