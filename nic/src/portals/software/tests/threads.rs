//! Several threads and ranks at once.

use super::{
    ARENA, END, Pair, bind, config, drain, exactly, file, memory, open, part, read, write,
};
use crate::portals::software::{FaultRules, SoftwareConfig};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Descriptor, Entry, EventKind, Managed, NicError, PortalOptions,
    Portals, Position, Register, Target,
};
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

#[test]
fn a_target_that_only_computes_is_written_read_and_counted_up() {
    let file = file();
    let (a, b) = (
        open(&file, config(2), 0, FaultRules::default()),
        open(&file, config(2), 1, FaultRules::default()),
    );
    let portal = b
        .portal_alloc(PortalOptions::default(), None, None)
        .unwrap();
    let target_queue = b.queue_alloc(256).unwrap();
    let noisy = Entry {
        events: END,
        queue: Some(target_queue),
        ..Entry::OPEN
    };
    for (bits, entry) in [(1, Entry::OPEN), (2, noisy)] {
        // SAFETY: the buffers live as long as the interface and are touched by `bulk` and atomics
        // only.
        unsafe {
            b.attach(
                portal,
                Position::Tail,
                exactly(bits),
                memory(&b, 0),
                64,
                entry,
            )
        }
        .unwrap();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The target's only thread computes and calls nothing.
        let target = scope.spawn(|| {
            let mut sum = 0_u64;
            while !over.load(Ordering::Relaxed) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            sum
        });
        let queue = a.queue_alloc(256).unwrap();
        let descriptor = Descriptor {
            queue: Some(queue),
            ..Descriptor::SILENT
        };
        let from = bind(&a, 0, 64, descriptor);
        for n in 0..200_u64 {
            let bits = 1 + n % 2;
            let target = Target {
                rank: JobRank(1),
                portal,
                bits,
                offset_bytes: 8,
            };
            write(&a, 0, &n.to_ne_bytes());
            a.put_region(from, part(0, 8), Ack::Event, target, 0)
                .unwrap();
            let (op, kind) = (AtomicOp::Sum, AtomicKind::U64);
            a.atomic(from, part(0, 8), Ack::Event, target, 0, op, kind)
                .unwrap();
            a.get_region(from, part(8, 8), target).unwrap();
            assert_eq!(drain(&a, queue).len(), 2);
            assert_eq!(read(&a, 8, 8), (2 * n).to_ne_bytes());
        }
        over.store(true, Ordering::Relaxed);
        target.join().unwrap();
    });
    let ways = (a.status(Register::Direct), a.status(Register::Matched));
    assert_eq!(ways, (300, 300));
    // The target's events waited in its queue; events that did not fit were counted.
    let mut there = 0;
    let missing = loop {
        match b.queue_get(target_queue) {
            Ok(event) => there += u64::from(event.is_some()),
            Err(NicError::EventsDropped { count, .. }) => break count,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((there, missing), (256, 44));
}

/// Seconds after which the senders' test ends if it hangs.
const TOO_LONG: u64 = 200;

/// Makes threads stop, also when a check has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Four senders fill receive buffers of one rank, which takes them in order and gives them back;
/// another thread attaches and unlinks an entry that others put to.
///
/// Each message comes once, whole, and in its sender's order.
#[test]
fn many_senders_and_buffers_that_come_back() {
    const EACH: u64 = 3_000;
    const SENDERS: u32 = 4;
    let sizes = SoftwareConfig {
        queue_events: 1 << 15,
        ..config(SENDERS + 1)
    };
    let file = file();
    let b = open(&file, sizes, 0, FaultRules::default());
    let options = PortalOptions { flow_control: true };
    let target_queue = b.queue_alloc(256).unwrap();
    let portal = b.portal_alloc(options, Some(target_queue), None).unwrap();
    let other = b
        .portal_alloc(PortalOptions::default(), None, None)
        .unwrap();
    let buffer = Entry {
        gets: false,
        managed: Managed::Local {
            min_free_bytes: 8192,
        },
        auto_unlink: true,
        events: END,
        queue: Some(target_queue),
        ..Entry::OPEN
    };
    const SIZE: u64 = 64 << 10;
    let attach = |n: u64| {
        let entry = Entry { user: n, ..buffer };
        let at = memory(&b, n * SIZE);
        // SAFETY: the buffers live as long as the interface and are touched by `bulk` only.
        unsafe { b.attach(portal, Position::Tail, exactly(1), at, SIZE, entry) }.unwrap()
    };
    for n in 0..4 {
        attach(n);
    }
    let stop = AtomicBool::new(false);
    let mut last = [0_u64; SENDERS as usize + 1];
    std::thread::scope(|scope| {
        for rank in 1..=SENDERS {
            let (file, stop) = (&file, &stop);
            scope.spawn(move || {
                let a = open(file, sizes, rank, FaultRules::default());
                let queue = a.queue_alloc(256).unwrap();
                let descriptor = Descriptor {
                    queue: Some(queue),
                    ..Descriptor::SILENT
                };
                let from = bind(&a, 0, ARENA, descriptor);
                for n in 1..=EACH {
                    // Lengths below and above the limit of moves under the lock.
                    let len = if n % 3 == 0 { 8000 } else { 8 + n % 100 };
                    write(&a, 0, &vec![(n % 251) as u8; len as usize]);
                    let target = Target {
                        rank: JobRank(0),
                        portal,
                        bits: 1,
                        offset_bytes: 0,
                    };
                    loop {
                        a.put_region(from, part(0, len), Ack::Event, target, n)
                            .unwrap();
                        let ack = a.queue_get(queue).unwrap().unwrap();
                        if ack.moved_bytes == len {
                            break;
                        }
                        // Given back, as buffers or events were used up.
                        assert!(!stop.load(Ordering::Relaxed));
                        std::thread::yield_now();
                    }
                    let beside = Target {
                        portal: other,
                        ..target
                    };
                    a.put_region(from, part(0, 8), Ack::None, beside, 0)
                        .unwrap();
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let at = memory(&b, 4 * SIZE);
                // SAFETY: as above.
                let entry =
                    unsafe { b.attach(other, Position::Tail, exactly(1), at, 8, Entry::OPEN) };
                let entry = entry.unwrap();
                while let Err(error) = b.unlink(entry) {
                    assert!(matches!(error, NicError::InUse { .. }), "{error}");
                }
            }
        });
        let begun = Instant::now();
        let stopped = Stop(&stop);
        while last[1..].iter().any(|n| *n < EACH) {
            assert!(
                begun.elapsed().as_secs() < TOO_LONG,
                "stuck: {last:?} have come"
            );
            let Some(event) = b.queue_get(target_queue).unwrap() else {
                b.portal_enable(portal, true).unwrap();
                continue;
            };
            match event.kind {
                EventKind::PutEnd => {
                    let from = &mut last[event.peer.index()];
                    assert_eq!(event.header, *from + 1, "of {}", event.peer);
                    *from += 1;
                    let at = event.user * SIZE + event.offset_bytes;
                    let holds = read(&b, at, event.moved_bytes as usize);
                    assert!(
                        holds
                            .iter()
                            .all(|byte| u64::from(*byte) == event.header % 251)
                    );
                }
                // Nothing of it is under way: it may be written again.
                EventKind::Unlink => {
                    attach(event.user);
                }
                EventKind::Disabled => {}
                other => panic!("{other:?}"),
            }
        }
        drop(stopped);
    });
    assert_eq!(b.status(Register::EventsDropped), 0);
}

/// Threads that take from one queue get each event once, though it goes around many times.
#[test]
fn threads_take_each_event_once() {
    const EVENTS: u64 = 40_000;
    const READERS: usize = 3;
    let pair = Pair::with(FaultRules::default(), PortalOptions::default(), 8);
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, 64, entry);
    // Immediate data of the events that were taken.
    let [count, sum] = [(); 2].map(|()| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while count.load(Ordering::Relaxed) < EVENTS {
                    if let Some(event) = pair.b.queue_get(pair.target_queue).unwrap() {
                        count.fetch_add(1, Ordering::Relaxed);
                        sum.fetch_add(event.header, Ordering::Relaxed);
                    }
                }
            });
        }
        for header in 1..=EVENTS {
            // Room for another is there when no more than the queue holds were sent and not taken.
            while header > count.load(Ordering::Relaxed) + 8 {
                std::thread::yield_now();
            }
            pair.a
                .put_region(pair.from, part(0, 0), Ack::None, pair.target(1, 0), header)
                .unwrap();
        }
    });
    assert_eq!(count.into_inner(), EVENTS);
    assert_eq!(sum.into_inner(), EVENTS * (EVENTS + 1) / 2);
}
