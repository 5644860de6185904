//! How long operations of the software interface take, between two ranks of which the second never
//! calls.
//!
//! `cargo bench -p argonet-nic`

use argonet_base::JobRank;
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{
    Ack, Descriptor, Entry, EventKind, Events, Managed, Matching, Part, PortalOptions, Portals,
    Position, Target,
};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::time::Instant;

const BUFFER: u64 = 1 << 20;

/// The least time of several rounds, in nanoseconds for one call.
fn time(count: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..15 {
        let begun = Instant::now();
        (0..count).for_each(|_| call());
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(count));
    }
    best
}

fn main() {
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd");
    let config = SoftwareConfig::default();
    let open = |rank| {
        let rules = FaultRules::default();
        Software::new(file.as_fd(), config, JobRank(rank), None, rules).expect("interface")
    };
    let (a, b) = (open(0), open(1));
    let (b_memory, _) = b.buffers();
    let portal = b
        .portal_alloc(PortalOptions::default(), None, None)
        .expect("portal");
    let target_queue = b.queue_alloc(1 << 10).expect("queue");
    let matching = |bits| Matching {
        bits,
        ignore: !0xf,
        source: None,
    };
    let counted = Entry {
        managed: Managed::Local { min_free_bytes: 0 },
        truncate: true,
        events: Events {
            start: false,
            end: true,
        },
        queue: Some(target_queue),
        ..Entry::OPEN
    };
    // SAFETY: the buffers live as long as the interface and the benchmark does not read them.
    unsafe {
        b.attach(
            portal,
            Position::Tail,
            matching(1),
            b_memory,
            BUFFER,
            Entry::OPEN,
        )
        .expect("entry");
        b.attach(
            portal,
            Position::Tail,
            matching(2),
            b_memory,
            BUFFER,
            counted,
        )
        .expect("entry");
    }
    let queue = a.queue_alloc(1 << 10).expect("queue");
    let mut source = vec![1_u8; BUFFER as usize];
    let descriptor = Descriptor {
        queue: Some(queue),
        ..Descriptor::SILENT
    };
    let memory = std::ptr::NonNull::from(source.as_mut_slice()).cast();
    // SAFETY: the vector lives to the end and is not touched.
    let from = unsafe { a.bind(memory, BUFFER, descriptor) }.expect("descriptor");
    let part = |len_bytes| Part {
        offset_bytes: 0,
        len_bytes,
    };
    let target = |bits| Target {
        rank: JobRank(1),
        portal,
        bits,
        offset_bytes: 0,
    };
    let put = |len, bits, ack| {
        a.put_region(from, part(len), ack, target(bits), 0)
            .expect("put")
    };
    let acknowledged = |len, bits| {
        put(len, bits, Ack::Event);
        let event = a.queue_get(queue).expect("queue").expect("event");
        assert_eq!(event.kind, EventKind::Ack);
    };
    println!(
        "put 8 B, no answer        {:8.1} ns",
        time(20_000, || put(8, 1, Ack::None))
    );
    println!(
        "put 8 B, acknowledged     {:8.1} ns",
        time(20_000, || acknowledged(8, 1))
    );
    println!(
        "put 8 B, event at target  {:8.1} ns",
        time(20_000, || {
            put(8, 2, Ack::None);
            b.queue_get(target_queue).expect("queue").expect("event");
        })
    );
    let mut elsewhere = vec![0_u8; BUFFER as usize];
    for len in [4 << 10, 64 << 10, 1 << 20] {
        let nic = time(500, || acknowledged(len, 1));
        let copy = time(500, || {
            // SAFETY: both have that many bytes, and are apart.
            unsafe {
                argonet_segment::bulk::copy(elsewhere.as_mut_ptr(), memory.as_ptr(), len as usize);
            }
        });
        println!(
            "put {:4} KiB, acknowledged {nic:8.1} ns, memcpy {copy:8.1} ns, {:.2} of its rate",
            len >> 10,
            copy / nic
        );
    }
}
