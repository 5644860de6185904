//! Operations, descriptors and files that are refused.

use super::{Pair, config, file, memory, open, part};
use crate::portals::software::{FaultRules, Software, SoftwareConfig};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Count, Counter, Descriptor, DescriptorHandle, NicError, PortalIndex,
    Portals, Queue, Target,
};
use argonet_base::JobRank;
use rustix::fd::AsFd;

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
    // A refused operation does not count as begun.
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
