//! Tests of the software interface, with several of them in one process.
//!
//! `tests/killed.rs` has the tests with processes that die.

macro_rules! refuses {
    ($call:expr, $error:pat) => {{
        let result = $call;
        assert!(matches!(result, Err($error)), "{result:?}");
        // Every error names its rank.
        let text = result.unwrap_err().to_string();
        assert!(text.contains("rank"), "{text}");
    }};
}

mod descriptors;
#[path = "../../../../tests/shared/documented.rs"]
mod documented;
mod errors;
mod events;
mod every_error;
mod faulty;
mod hostile;
mod model;
mod operations;
mod refused_operations;
mod threads;

use super::{FaultRules, Software, SoftwareConfig};
use crate::portals::{
    Descriptor, DescriptorHandle, Entry, EntryHandle, Event, EventKind, Events, Matching, Part,
    PortalIndex, PortalOptions, Portals, Position, Queue, Target,
};
use argonet_base::JobRank;
use argonet_segment::bulk;
use core::ptr::NonNull;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes of a rank's buffers.
const ARENA: u64 = 1 << 20;

fn config(ranks: u32) -> SoftwareConfig {
    SoftwareConfig {
        ranks,
        portals: 4,
        entries: 64,
        descriptors: 8,
        queues: 4,
        queue_events: 256,
        counters: 4,
        arena_bytes: ARENA,
        ..SoftwareConfig::default()
    }
}

fn file() -> OwnedFd {
    memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap()
}

fn open(file: &OwnedFd, config: SoftwareConfig, rank: u32, rules: FaultRules) -> Software {
    Software::new(file.as_fd(), config, JobRank(rank), None, rules).unwrap()
}

const BOTH: Events = Events {
    start: true,
    end: true,
};
const END: Events = Events {
    start: false,
    end: true,
};

/// Matches exactly these bits from any rank.
fn exactly(bits: u64) -> Matching {
    Matching {
        bits,
        ignore: 0,
        source: None,
    }
}

/// Two ranks: 0 begins operations with one descriptor over its first half of the buffers, 1 is
/// their target.
struct Pair {
    a: Software,
    b: Software,
    /// Of rank 0, where its descriptor reports.
    queue: Queue,
    from: DescriptorHandle,
    /// Of rank 1.
    target_queue: Queue,
    portal: PortalIndex,
}

impl Pair {
    fn new() -> Self {
        Self::with(FaultRules::default(), PortalOptions::default(), 256)
    }

    fn with(rules: FaultRules, options: PortalOptions, events: u64) -> Self {
        let file = file();
        let a = open(&file, config(2), 0, rules);
        let b = open(&file, config(2), 1, FaultRules::default());
        let queue = a.queue_alloc(256).unwrap();
        let target_queue = b.queue_alloc(events).unwrap();
        let portal = b.portal_alloc(options, Some(target_queue), None).unwrap();
        let descriptor = Descriptor {
            events: BOTH,
            queue: Some(queue),
            ..Descriptor::SILENT
        };
        let from = bind(&a, 0, ARENA / 2, descriptor);
        Self {
            a,
            b,
            queue,
            from,
            target_queue,
            portal,
        }
    }

    fn attach(
        &self,
        position: Position,
        matching: Matching,
        at: u64,
        len: u64,
        entry: Entry,
    ) -> EntryHandle {
        let memory = memory(&self.b, at);
        // SAFETY: tests touch buffers by `bulk` only, and those live as long as the interface.
        unsafe {
            self.b
                .attach(self.portal, position, matching, memory, len, entry)
        }
        .unwrap()
    }

    fn target(&self, bits: u64, offset_bytes: u64) -> Target {
        Target {
            rank: JobRank(1),
            portal: self.portal,
            bits,
            offset_bytes,
        }
    }
}

/// A place in the buffers of a rank.
fn memory(nic: &Software, at: u64) -> NonNull<u8> {
    let (base, len) = nic.buffers();
    assert!(at <= len);
    // SAFETY: within the buffers.
    unsafe { base.add(at as usize) }
}

fn bind(nic: &Software, at: u64, len: u64, descriptor: Descriptor) -> DescriptorHandle {
    // SAFETY: tests touch buffers by `bulk` only, and those live as long as the interface.
    unsafe { nic.bind(memory(nic, at), len, descriptor) }.unwrap()
}

fn write(nic: &Software, at: u64, bytes: &[u8]) {
    // SAFETY: callers stay within the buffers, which are shared and touched by `bulk` only.
    unsafe { bulk::copy(memory(nic, at).as_ptr(), bytes.as_ptr(), bytes.len()) };
}

fn read(nic: &Software, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: as in `write`.
    unsafe { bulk::copy(bytes.as_mut_ptr(), memory(nic, at).as_ptr(), len) };
    bytes
}

fn part(offset_bytes: u64, len_bytes: u64) -> Part {
    Part {
        offset_bytes,
        len_bytes,
    }
}

/// All events of a queue.
fn drain(nic: &Software, queue: Queue) -> Vec<Event> {
    std::iter::from_fn(|| nic.queue_get(queue).unwrap()).collect()
}

fn kinds(nic: &Software, queue: Queue) -> Vec<EventKind> {
    drain(nic, queue).iter().map(|event| event.kind).collect()
}
