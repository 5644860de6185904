//! Tests of the software interface, with several of them in one process.
//!
//! `tests/gni_killed.rs` has the test with processes that die.

mod datagrams;
mod faulty;
mod hostile;
mod messages;
mod objects;
mod posts;
mod queues;
mod sleeping;

use super::{Endpoint, FaultRules, Queue, Software, SoftwareConfig};
use crate::gni::{
    Access, Credentials, Event, EventData, EventKind, Gni, GniError, Mailbox, MemHandle,
    NicAddress, Operation, Post, RemotePlace, Shape,
};
use argonet_base::JobRank;
use argonet_segment::{SharedBytes, bulk};
use core::ptr::NonNull;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes of an interface's buffers.
const BUFFERS: u64 = 1 << 20;
/// Where mailboxes begin in them.
const MAILBOX: u64 = BUFFERS / 2;

const OURS: Credentials = Credentials {
    ptag: 3,
    cookie: 77,
};

fn config(ranks: u32) -> SoftwareConfig {
    SoftwareConfig {
        ranks,
        registrations: 8,
        queues: 4,
        queue_events: 1 << 12,
        wildcards: 4,
        buffer_bytes: BUFFERS,
        ..SoftwareConfig::default()
    }
}

fn file() -> OwnedFd {
    memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap()
}

fn address(rank: u32) -> NicAddress {
    NicAddress {
        rank: JobRank(rank),
        nic: 0,
    }
}

fn open(file: &OwnedFd, config: SoftwareConfig, rank: u32, rules: FaultRules) -> Software {
    Software::new(file.as_fd(), config, address(rank), OURS, None, rules).unwrap()
}

/// One end: an interface with a queue, all of its buffers registered, and an endpoint to the other.
struct End {
    nic: Software,
    queue: Queue,
    memory: MemHandle,
    endpoint: Endpoint,
}

/// Two interfaces, each with an endpoint to the other, and mailboxes of a shape.
struct Pair {
    a: End,
    b: End,
}

const SHAPE: Shape = Shape {
    messages: 4,
    message_bytes: 100,
};

impl Pair {
    fn new() -> Self {
        Self::with(SHAPE, 64, true, FaultRules::default())
    }

    /// With events for messages if `reports`, and faults of the first.
    fn with(shape: Shape, events: u32, reports: bool, rules: FaultRules) -> Self {
        let pair = Self::closed(events, reports, rules);
        pair.open(shape);
        pair
    }

    fn closed(events: u32, reports: bool, rules: FaultRules) -> Self {
        let file = file();
        let a = open(&file, config(2), 0, rules);
        let b = open(&file, config(2), 1, FaultRules::default());
        let end = |nic: Software, to| {
            let queue = nic.create_queue(events).unwrap();
            let memory = register(&nic, 0, BUFFERS, reports.then_some(&queue));
            let endpoint = nic.create_endpoint(&queue, address(to), data(to)).unwrap();
            End {
                nic,
                queue,
                memory,
                endpoint,
            }
        };
        Self {
            a: end(a, 1),
            b: end(b, 0),
        }
    }

    fn open(&self, shape: Shape) {
        self.a.open(&self.b, shape);
        self.b.open(&self.a, shape);
    }
}

/// What events of the endpoint to a rank carry.
fn data(to: u32) -> EventData {
    EventData {
        local: 100 ^ to,
        remote: 200 ^ to,
    }
}

impl End {
    fn mailbox(&self, shape: Shape) -> Mailbox {
        Mailbox {
            handle: self.memory,
            offset: MAILBOX,
            shape,
        }
    }

    fn open(&self, other: &End, shape: Shape) {
        let (local, remote) = (self.mailbox(shape), other.mailbox(shape));
        self.nic
            .open_mailbox(&self.endpoint, &local, &remote)
            .unwrap();
    }

    fn send(&self, tag: u8, bytes: &[u8]) -> bool {
        let parts = [SharedBytes::from_slice(bytes)];
        self.nic.send(&self.endpoint, tag, &parts).unwrap()
    }

    /// Takes the next message.
    fn take(&self) -> Option<(u8, Vec<u8>)> {
        let arrived = self.nic.receive(&self.endpoint).unwrap()?;
        let mut bytes = vec![0; arrived.bytes.len()];
        arrived.bytes.copy_to(0, &mut bytes).unwrap();
        let tag = arrived.tag;
        self.nic.release(&self.endpoint).unwrap();
        Some((tag, bytes))
    }

    fn next(&self) -> Option<Event> {
        self.nic.next_event(&self.queue).unwrap()
    }

    fn post(&self, to: &End, operation: Operation, at: u64, offset: u64, len: u64) -> Post {
        Post {
            operation,
            local: memory(&self.nic, at),
            remote: RemotePlace {
                handle: to.memory,
                offset,
            },
            len_bytes: len,
            id: 5,
            remote_event: false,
            fence: false,
        }
    }

    fn fma(&self, post: &Post) -> Result<(), GniError> {
        // SAFETY: tests name local memory in buffers, which live as long as the interface.
        unsafe { self.nic.post_fma(&self.endpoint, post) }
    }

    fn rdma(&self, post: &Post, chain: &[Post]) -> Result<(), GniError> {
        // SAFETY: as in `fma`.
        unsafe { self.nic.post_rdma(&self.endpoint, post, chain) }
    }
}

fn register(nic: &Software, at: u64, len: u64, queue: Option<&Queue>) -> MemHandle {
    // SAFETY: tests touch buffers by `bulk` and atomics only, and those live as long as the
    // interface.
    unsafe { nic.register(None, memory(nic, at), len, Access::ReadWrite, queue) }.unwrap()
}

/// A place in the buffers of an interface.
fn memory(nic: &Software, at: u64) -> NonNull<u8> {
    let (base, len) = nic.buffers();
    assert!(at <= len);
    // SAFETY: within the buffers.
    unsafe { base.add(at as usize) }
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

fn is_came(event: Option<Event>, wanted: u32) -> bool {
    event.is_some_and(|event| matches!(event.kind, EventKind::Came) && event.data == wanted)
}

/// The result of an operation that has ended, and what it has found.
fn ended(event: Option<Event>) -> (u64, u64, Result<(), crate::gni::Failure>) {
    match event.map(|event| event.kind) {
        Some(EventKind::Ended {
            id,
            fetched,
            result,
        }) => (id, fetched, result),
        other => panic!("{other:?}"),
    }
}
