//! Every call refuses what its text says, once each, and changes nothing.

use super::{ARENA, Pair, bind, config, exactly, file, memory, open, part};
use crate::portals::software::{FaultRules, Software, SoftwareConfig};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Count, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle,
    Matching, NicError, PortalIndex, PortalOptions, Portals, Position, Queue, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use rustix::fd::AsFd;

macro_rules! refuses {
    ($call:expr, $error:pat) => {{
        let result = $call;
        assert!(matches!(result, Err($error)), "{result:?}");
        // Every error says whose it is.
        let text = result.unwrap_err().to_string();
        assert!(text.contains("rank"), "{text}");
    }};
}

#[test]
fn queues_and_counters() {
    let pair = Pair::new();
    let nic = &pair.b;
    refuses!(nic.queue_alloc(0), NicError::Invalid { .. });
    refuses!(nic.queue_alloc(257), NicError::Invalid { .. });
    let more: Vec<Queue> = (0..3).map(|_| nic.queue_alloc(5).unwrap()).collect();
    refuses!(nic.queue_alloc(5), NicError::NoSpace { limit: 4, .. });
    nic.queue_free(more[0]).unwrap();
    refuses!(nic.queue_free(more[0]), NicError::BadHandle { .. });
    refuses!(nic.queue_get(more[0]), NicError::BadHandle { .. });
    refuses!(
        nic.queue_poll(&[more[1], more[0]]),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.queue_get(Queue::from_bits(u64::MAX)),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.queue_free(Queue::from_bits(u64::MAX)),
        NicError::BadHandle { .. }
    );
    // The portal has it; then an entry, then a descriptor.
    refuses!(nic.queue_free(pair.told), NicError::InUse { .. });
    let queue = Some(more[1]);
    let entry = pair.attach(
        Position::Tail,
        exactly(1),
        0,
        8,
        Entry {
            queue,
            ..Entry::OPEN
        },
    );
    refuses!(nic.queue_free(more[1]), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    let bound = bind(
        nic,
        0,
        8,
        Descriptor {
            queue,
            ..Descriptor::SILENT
        },
    );
    refuses!(nic.queue_free(more[1]), NicError::InUse { .. });
    nic.release(bound).unwrap();
    nic.queue_free(more[1]).unwrap();

    let counters: Vec<Counter> = (0..4).map(|_| nic.counter_alloc().unwrap()).collect();
    refuses!(nic.counter_alloc(), NicError::NoSpace { limit: 4, .. });
    let count = Some(Count {
        counter: counters[0],
        bytes: false,
    });
    let entry = pair.attach(
        Position::Tail,
        exactly(1),
        0,
        8,
        Entry {
            count,
            ..Entry::OPEN
        },
    );
    refuses!(nic.counter_free(counters[0]), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    let bound = bind(
        nic,
        0,
        8,
        Descriptor {
            count,
            ..Descriptor::SILENT
        },
    );
    refuses!(nic.counter_free(counters[0]), NicError::InUse { .. });
    nic.release(bound).unwrap();
    nic.counter_free(counters[0]).unwrap();
    refuses!(nic.counter_free(counters[0]), NicError::BadHandle { .. });
    refuses!(nic.counter_get(counters[0]), NicError::BadHandle { .. });
    refuses!(
        nic.counter_set(counters[0], 1, 1),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.counter_get(Counter::from_bits(9)),
        NicError::BadHandle { .. }
    );
}

#[test]
fn portals() {
    let pair = Pair::new();
    let nic = &pair.b;
    let plain = PortalOptions::default();
    let flow = PortalOptions { flow_control: true };
    refuses!(nic.portal_alloc(flow, None, None), NicError::Invalid { .. });
    let gone = Some(Queue::from_bits(1 << 32));
    refuses!(
        nic.portal_alloc(plain, gone, None),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.portal_alloc(plain, None, Some(PortalIndex(4))),
        NicError::BadPortal { .. }
    );
    refuses!(
        nic.portal_alloc(plain, None, Some(pair.portal)),
        NicError::InUse { .. }
    );
    let wished = nic.portal_alloc(plain, None, Some(PortalIndex(3))).unwrap();
    assert_eq!(wished, PortalIndex(3));
    for _ in 0..2 {
        nic.portal_alloc(plain, None, None).unwrap();
    }
    refuses!(
        nic.portal_alloc(plain, None, None),
        NicError::NoSpace { limit: 4, .. }
    );
    let entry = pair.attach(Position::Tail, exactly(1), 0, 8, Entry::OPEN);
    refuses!(nic.portal_free(pair.portal), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    nic.portal_free(pair.portal).unwrap();
    refuses!(nic.portal_free(pair.portal), NicError::BadPortal { .. });
    refuses!(
        nic.portal_enable(pair.portal, true),
        NicError::BadPortal { .. }
    );
    refuses!(nic.portal_free(PortalIndex(4)), NicError::BadPortal { .. });
}

#[test]
fn entries() {
    let pair = Pair::new();
    let nic = &pair.b;
    let attach = |portal, position, matching: Matching, at: NonNull<u8>, len, entry| {
        // SAFETY: what is not refused is in the buffers, which live as long as the interface.
        unsafe { nic.attach(portal, position, matching, at, len, entry) }
    };
    let (at, any) = (memory(nic, 0), exactly(1));
    let tail = |entry| attach(pair.portal, Position::Tail, any, at, 8, entry);
    let open_entry = Entry::OPEN;
    refuses!(
        attach(PortalIndex(1), Position::Tail, any, at, 8, open_entry),
        NicError::BadPortal { .. }
    );
    refuses!(
        attach(PortalIndex(9), Position::Tail, any, at, 8, open_entry),
        NicError::BadPortal { .. }
    );
    let gone = Some(Queue::from_bits(3));
    refuses!(
        tail(Entry {
            queue: gone,
            ..open_entry
        }),
        NicError::BadHandle { .. }
    );
    let count = Some(Count {
        counter: Counter::from_bits(0),
        bytes: true,
    });
    refuses!(
        tail(Entry {
            count,
            ..open_entry
        }),
        NicError::BadHandle { .. }
    );
    let threshold = Some(0);
    refuses!(
        tail(Entry {
            threshold,
            ..open_entry
        }),
        NicError::Invalid { .. }
    );
    let (puts, gets) = (false, false);
    refuses!(
        tail(Entry {
            puts,
            gets,
            ..open_entry
        }),
        NicError::Invalid { .. }
    );
    let source = Some(JobRank(2));
    let of_nobody = Matching { source, ..any };
    refuses!(
        attach(pair.portal, Position::Tail, of_nobody, at, 8, open_entry),
        NicError::BadRank { .. }
    );
    refuses!(
        attach(pair.portal, Position::Tail, any, at, ARENA + 1, open_entry),
        NicError::NotShared { .. }
    );
    let own = Box::new(5_u64);
    let private = NonNull::from(&*own).cast();
    refuses!(
        attach(pair.portal, Position::Tail, any, private, 8, open_entry),
        NicError::NotShared { .. }
    );
    let entry = tail(open_entry).unwrap();
    let beside = Position::After(EntryHandle::from_bits(u64::MAX));
    refuses!(
        attach(pair.portal, beside, any, at, 8, open_entry),
        NicError::BadHandle { .. }
    );
    let other = nic
        .portal_alloc(PortalOptions::default(), None, None)
        .unwrap();
    refuses!(
        attach(other, Position::Before(entry), any, at, 8, open_entry),
        NicError::Invalid { .. }
    );
    for _ in 1..64 {
        tail(open_entry).unwrap();
    }
    refuses!(tail(open_entry), NicError::NoSpace { limit: 64, .. });
    nic.unlink(entry).unwrap();
    refuses!(nic.unlink(entry), NicError::BadHandle { .. });
    refuses!(nic.carried(entry), NicError::BadHandle { .. });
    tail(open_entry).unwrap();
}

#[test]
fn descriptors_and_operations() {
    let pair = Pair::new();
    let nic = &pair.a;
    let at = memory(nic, 0);
    // SAFETY: the buffers live as long as the interface.
    let bound = |descriptor| unsafe { nic.bind(at, 64, descriptor) };
    let silent = Descriptor::SILENT;
    let threshold = Some(0);
    refuses!(
        bound(Descriptor {
            threshold,
            ..silent
        }),
        NicError::Invalid { .. }
    );
    let queue = Some(Queue::from_bits(2));
    refuses!(
        bound(Descriptor { queue, ..silent }),
        NicError::BadHandle { .. }
    );
    let count = Some(Count {
        counter: Counter::from_bits(0),
        bytes: true,
    });
    refuses!(
        bound(Descriptor { count, ..silent }),
        NicError::BadHandle { .. }
    );
    let threshold = Some(1);
    let once = bound(Descriptor {
        threshold,
        ..silent
    })
    .unwrap();
    let plain = bound(silent).unwrap();
    for _ in 3..8 {
        bound(silent).unwrap();
    }
    refuses!(bound(silent), NicError::NoSpace { limit: 8, .. });

    let target = pair.target(1, 0);
    let put = |from, part, ack, target| nic.put_region(from, part, ack, target, 0);
    let nowhere = DescriptorHandle::from_bits(77);
    refuses!(
        put(nowhere, part(0, 8), Ack::None, target),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.put(nowhere, Ack::None, target, 0),
        NicError::BadHandle { .. }
    );
    refuses!(nic.get(nowhere, target), NicError::BadHandle { .. });
    refuses!(nic.release(nowhere), NicError::BadHandle { .. });
    refuses!(nic.begun(nowhere), NicError::BadHandle { .. });
    refuses!(
        put(plain, part(60, 8), Ack::None, target),
        NicError::OutOfRange { .. }
    );
    refuses!(
        put(plain, part(u64::MAX, 8), Ack::None, target),
        NicError::OutOfRange { .. }
    );
    refuses!(
        nic.get_region(plain, part(60, 8), target),
        NicError::OutOfRange { .. }
    );
    let rank = JobRank(2);
    let stranger = Target { rank, ..target };
    refuses!(
        put(plain, part(0, 8), Ack::None, stranger),
        NicError::BadRank { .. }
    );
    refuses!(
        nic.get_region(plain, part(0, 8), stranger),
        NicError::BadRank { .. }
    );
    let portal = PortalIndex(4);
    let beyond = Target { portal, ..target };
    refuses!(
        put(plain, part(0, 8), Ack::None, beyond),
        NicError::BadPortal { .. }
    );
    refuses!(
        put(plain, part(0, 8), Ack::Event, target),
        NicError::Invalid { .. }
    );
    refuses!(
        put(plain, part(0, 8), Ack::Count, target),
        NicError::Invalid { .. }
    );
    // What is refused does not count as begun.
    refuses!(
        put(once, part(0, 8), Ack::Event, target),
        NicError::Invalid { .. }
    );
    put(once, part(0, 8), Ack::None, target).unwrap();
    refuses!(
        put(once, part(0, 8), Ack::None, target),
        NicError::Exhausted { threshold: 1, .. }
    );
    refuses!(
        nic.get_region(once, part(0, 8), target),
        NicError::Exhausted { .. }
    );
    nic.release(once).unwrap();

    let atomic = |part, target, op, kind| nic.atomic(plain, part, Ack::None, target, 0, op, kind);
    let (sum, words) = (AtomicOp::Sum, AtomicKind::U64);
    refuses!(
        atomic(part(0, 8), target, AtomicOp::Xor, AtomicKind::F64),
        NicError::Invalid { .. }
    );
    refuses!(
        atomic(part(0, 12), target, sum, words),
        NicError::Invalid { .. }
    );
    refuses!(
        atomic(part(0, 8), pair.target(1, 4), sum, words),
        NicError::Invalid { .. }
    );
    refuses!(
        atomic(part(0, 1 << 20), target, sum, words),
        NicError::Invalid { .. }
    );
    refuses!(
        atomic(part(0, 8), target, AtomicOp::CompareSwap, words),
        NicError::Invalid { .. }
    );
    refuses!(
        atomic(part(64, 8), target, sum, words),
        NicError::OutOfRange { .. }
    );
    refuses!(
        nic.fetch_atomic(plain, 60, plain, part(0, 8), target, 0, sum, words, 0),
        NicError::OutOfRange { .. }
    );
    // Neither descriptor is left as if an operation were under way.
    nic.release(plain).unwrap();
    refuses!(nic.peer_died(JobRank(1)), NicError::Invalid { .. });
    refuses!(nic.peer_died(JobRank(2)), NicError::BadRank { .. });
}

#[test]
fn files_of_other_sizes_or_ranks() {
    let file = file();
    let _first = open(&file, config(2), 0, FaultRules::default());
    let again = |config, rank| {
        let rules = FaultRules::default();
        Software::new(file.as_fd(), config, JobRank(rank), None, rules).map(drop)
    };
    refuses!(
        again(
            SoftwareConfig {
                entries: 65,
                ..config(2)
            },
            1
        ),
        NicError::WrongFile { .. }
    );
    refuses!(
        again(
            SoftwareConfig {
                ranks: 3,
                ..config(2)
            },
            1
        ),
        NicError::WrongFile { .. }
    );
    let too_large = SoftwareConfig {
        arena_bytes: u64::MAX,
        ..config(2)
    };
    refuses!(again(too_large, 1), NicError::WrongFile { .. });
    refuses!(again(config(2), 2), NicError::BadRank { .. });
    refuses!(
        again(
            SoftwareConfig {
                portals: 0,
                ..config(2)
            },
            1
        ),
        NicError::Invalid { .. }
    );
    again(config(2), 1).unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let rules = FaultRules::default();
    let no_file = Software::new(null.as_fd(), config(2), JobRank(0), None, rules).map(drop);
    assert!(matches!(no_file, Err(NicError::Os { .. })), "{no_file:?}");
}
