//! A rank is killed at every step that it takes inside of interfaces while it sends, posts by the
//! window, posts datagrams and deregisters memory, and the others go on: they exchange messages,
//! events and datagrams as before.
//!
//! Processes: ranks 1 and 2 are this one and survive; rank 0 is a child that uses both and kills
//! itself at some step.

use argonet_base::JobRank;
use argonet_nic::gni::software::{Endpoint, FaultRules, Queue, Software, SoftwareConfig};
use argonet_nic::gni::{
    Access, Amo, AmoBits, Credentials, EventData, EventKind, Gni, GniError, Mailbox, MemHandle,
    NicAddress, Operation, Post, RemotePlace, Shape,
};
use argonet_segment::SharedBytes;
use core::ptr::NonNull;
use libtest_mimic::{Arguments, Trial};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::process::ExitCode;

/// Seconds after which a test that hangs ends.
const TOO_LONG: u32 = 60;
const KILLED: i32 = 9;
/// Events of a queue: few, so that the child meets one that is full.
const EVENTS: u32 = 8;

const CONFIG: SoftwareConfig = SoftwareConfig {
    first: JobRank(0),
    ranks: 3,
    nics: 1,
    registrations: 4,
    queues: 2,
    queue_events: EVENTS,
    wildcards: 4,
    buffer_bytes: 64 << 10,
};
const OURS: Credentials = Credentials { ptag: 1, cookie: 2 };
const SHAPE: Shape = Shape {
    messages: 4,
    message_bytes: 64,
};
/// All register their buffers under this key.
const KEY: u64 = 99;
/// Bytes between the mailboxes of two peers.
const STRIDE: u64 = 4096;

fn address(rank: u32) -> NicAddress {
    NicAddress {
        rank: JobRank(rank),
        nic: 0,
    }
}

fn memory_of(rank: u32) -> MemHandle {
    MemHandle {
        of: address(rank),
        index: 0,
        key: KEY,
    }
}

/// An interface with what it needs to talk to all.
struct Rank {
    nic: Software,
    queue: Queue,
    number: u32,
}

impl Rank {
    fn new(file: &OwnedFd, number: u32, rules: FaultRules) -> Self {
        let nic = Software::new(file.as_fd(), CONFIG, address(number), OURS, None, rules);
        let nic = nic.expect("interface");
        let queue = nic.create_queue(EVENTS).expect("queue");
        let (base, len) = nic.buffers();
        // SAFETY: the buffers live as long as the interface and are touched by `bulk` and atomics
        // only.
        unsafe { nic.register(Some((0, KEY)), base, len, Access::ReadWrite, Some(&queue)) }
            .expect("memory");
        Self { nic, queue, number }
    }

    fn endpoint(&self, to: u32) -> Endpoint {
        let data = EventData {
            local: 0,
            remote: self.number,
        };
        let endpoint = self.nic.create_endpoint(&self.queue, address(to), data);
        let endpoint = endpoint.expect("endpoint");
        // Messages of a peer lie at the place of its number.
        let mailbox = |of: u32, from: u32| Mailbox {
            handle: memory_of(of),
            offset: u64::from(from) * STRIDE,
            shape: SHAPE,
        };
        let (local, remote) = (mailbox(self.number, to), mailbox(to, self.number));
        self.nic
            .open_mailbox(&endpoint, &local, &remote)
            .expect("mailbox");
        endpoint
    }

    fn post(&self, to: u32, operation: Operation, len_bytes: u64) -> Post {
        Post {
            operation,
            local: self.memory(),
            remote: RemotePlace {
                handle: memory_of(to),
                offset: 5 * STRIDE,
            },
            len_bytes,
            id: 1,
            remote_event: true,
            fence: false,
        }
    }

    fn memory(&self) -> NonNull<u8> {
        let (base, _) = self.nic.buffers();
        // SAFETY: within the buffers.
        unsafe { base.add(4 * STRIDE as usize) }
    }

    fn events(&self) -> Vec<EventKind> {
        let mut kinds = Vec::new();
        loop {
            match self.nic.next_event(&self.queue) {
                Ok(Some(event)) => kinds.push(event.kind),
                Ok(None) => return kinds,
                Err(GniError::Overrun { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The work of rank 0: every way to its peers, and its own tables.
fn operate(rank: &Rank) {
    let nic = &rank.nic;
    for to in [1, 2] {
        let endpoint = rank.endpoint(to);
        // More than there is credit for.
        for n in 0..SHAPE.messages + 1 {
            let text = [n as u8; 40];
            let parts = [SharedBytes::from_slice(&text)];
            let _ = nic.send(&endpoint, 1, &parts).expect("send");
        }
        let add = Operation::Amo {
            amo: Amo::Add,
            bits: AmoBits::Eight,
            operands: [1, 0],
            fetch: true,
        };
        for operation in [Operation::Put, Operation::Get, add] {
            for len in [8, 5000] {
                let post = rank.post(to, operation, len);
                // SAFETY: local memory is in buffers.
                unsafe { nic.post_fma(&endpoint, &post) }.expect("post");
            }
        }
        // The queue of the peer is full by now.
        rank.events();
        while nic.receive(&endpoint).expect("receive").is_some() {
            nic.release(&endpoint).expect("release");
        }
    }
    // One that waits for a wildcard, one that is exchanged with a bound one, one taken back.
    nic.post_datagram(None, 5, b"wild").expect("wildcard");
    nic.post_datagram(Some(address(1)), 1, b"to 1")
        .expect("datagram");
    nic.post_datagram(Some(address(2)), 2, b"to 2")
        .expect("datagram");
    while nic.next_datagram().is_some() {}
    let _ = nic.cancel_datagram(1);
    let _ = nic.cancel_datagram(2);
    nic.wake();
    let memory = memory_of(0);
    nic.deregister(memory).expect("deregister");
}

/// Runs `f` in a child, which exits with 0 if `f` has returned.
fn child(f: impl FnOnce()) -> Pid {
    // SAFETY: the child has one thread, which uses no lock that another thread of the parent could
    // have held: the test has one thread.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    let Some(pid) = Pid::from_raw(pid) else {
        // SAFETY: asks for a signal; touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        f();
        // SAFETY: ends the child without the functions that the parent has registered.
        unsafe { libc::_exit(0) };
    };
    pid
}

/// Whether a child was killed; any other end than that and a good one is a failure of the test.
fn was_killed(pid: Pid) -> bool {
    let (_, status) = waitpid(Some(pid), WaitOptions::empty())
        .expect("wait")
        .expect("child");
    let killed = status.terminating_signal() == Some(KILLED);
    assert!(killed || status.exit_status() == Some(0), "{status:?}");
    killed
}

/// The survivors exchange messages, events and datagrams.
fn check(ranks: [&Rank; 2], context: &str) {
    for rank in ranks {
        rank.events();
        // What the dead one has posted is matched at most once, and its datagrams hold up none.
        while rank.nic.next_datagram().is_some() {}
        assert!(rank.events().is_empty(), "{context}");
    }
    let [one, two] = ranks;
    let ends = [one.endpoint(2), two.endpoint(1)];
    for round in 0..3 * EVENTS as u8 {
        for (rank, end, other, there) in [
            (one, &ends[0], two, &ends[1]),
            (two, &ends[1], one, &ends[0]),
        ] {
            let text = [round; 40];
            let parts = [SharedBytes::from_slice(&text)];
            assert!(
                rank.nic.send(end, round, &parts).expect("send"),
                "{context}"
            );
            let post = rank.post(other.number, Operation::Put, 8);
            // SAFETY: local memory is in buffers.
            unsafe { rank.nic.post_fma(end, &post) }.expect("post");
            for _ in 0..2 {
                let event = other.nic.next_event(&other.queue).expect("event");
                let event = event.unwrap_or_else(|| panic!("{context}: no event"));
                assert!(matches!(event.kind, EventKind::Came), "{context}");
                assert_eq!(event.data, rank.number, "{context}");
            }
            assert_eq!(rank.events().len(), 1, "{context}");
            let arrived = other.nic.receive(there).expect("receive");
            let arrived = arrived.unwrap_or_else(|| panic!("{context}: no message"));
            assert_eq!((arrived.tag, arrived.bytes.len()), (round, 40), "{context}");
            other.nic.release(there).expect("release");
        }
        let datagram = |rank: &Rank, to| rank.nic.post_datagram(to, 9, &[round]).expect("post");
        let take = |rank: &Rank| {
            let exchanged = rank.nic.next_datagram();
            exchanged.unwrap_or_else(|| panic!("{context}: no datagram"))
        };
        datagram(one, (round % 2 == 0).then_some(address(2)));
        datagram(two, Some(address(1)));
        // The wildcard first, as its owner answers.
        for (rank, other) in [(one, 2), (two, 1)] {
            let exchanged = take(rank);
            assert_eq!(exchanged.peer, address(other), "{context}");
            assert_eq!(exchanged.data(), [round], "{context}");
        }
    }
}

/// One death of rank 0 at `step`; whether it has come to that step.
fn die(step: u64) -> bool {
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd");
    let ranks = [1, 2].map(|n| Rank::new(&file, n, FaultRules::default()));
    let [one, two] = &ranks;
    one.nic.post_datagram(None, 3, b"wild").expect("wildcard");
    let rules = FaultRules {
        kill_at: step,
        ..FaultRules::default()
    };
    let killed = was_killed(child(|| operate(&Rank::new(&file, 0, rules))));
    let joined = two.nic.post_datagram(Some(address(0)), 4, b"late");
    if joined.is_ok() {
        let _ = two.nic.cancel_datagram(4);
    }
    while one.nic.next_datagram().is_some() {}
    let _ = one.nic.cancel_datagram(3);
    check([one, two], &format!("rank 0 killed at step {step}"));
    killed
}

fn killed_at_every_step() {
    let mut step = 1;
    while die(step) {
        step += 1;
    }
    assert!(step > 100, "only {step} steps: they are not counted");
    println!("killed at each of {} steps, the others went on", step - 1);
}

fn main() -> ExitCode {
    // SAFETY: asks for a signal; touches no memory.
    unsafe { libc::alarm(TOO_LONG) };
    let mut arguments = Arguments::from_args();
    // Children are forked by the only thread.
    arguments.test_threads = Some(1);
    let test = Trial::test("a_rank_killed_at_any_step_blocks_no_other", || {
        killed_at_every_step();
        Ok(())
    });
    libtest_mimic::run(&arguments, vec![test]).exit_code()
}
