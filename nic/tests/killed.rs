//! A rank is killed at every step that it takes inside of interfaces, and the others go on: no lock
//! stays, no entry waits forever, and queues and entries agree.
//!
//! Processes: rank 1, this one, is the target and survives; rank 0 is a child that begins
//! operations and kills itself at some step; rank 2 is a child that mends the state that rank 0
//! left, and kills itself at some step of it.

use argonet_base::JobRank;
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Descriptor, DescriptorHandle, Entry, EntryHandle, Event, EventKind,
    Events, Managed, Matching, NicError, Outcome, Part, PortalIndex, PortalOptions, Portals,
    Position, Queue, Register, Target,
};
use core::ptr::NonNull;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Seconds after which a test that hangs ends.
const TOO_LONG: u32 = 240;
/// Depth of the target's queue: the events of a run, and some.
const DEPTH: u64 = 64;
/// The most steps that mending takes after which rank 2 is killed, too.
const MENDING: u64 = 24;
const KILLED: i32 = 9;

const CONFIG: SoftwareConfig = SoftwareConfig {
    first: JobRank(0),
    ranks: 3,
    portals: 2,
    entries: 8,
    descriptors: 4,
    queues: 2,
    queue_events: DEPTH,
    counters: 1,
    arena_bytes: 256 << 10,
};

const END: Events = Events {
    start: false,
    end: true,
};

fn open(file: &OwnedFd, rank: u32, rules: FaultRules) -> Software {
    Software::new(file.as_fd(), CONFIG, JobRank(rank), None, rules).expect("interface")
}

fn memory(nic: &Software, at: usize) -> NonNull<u8> {
    let (base, len) = nic.buffers();
    assert!(at as u64 <= len);
    // SAFETY: within the buffers.
    unsafe { base.add(at) }
}

fn to(rank: u32, portal: PortalIndex, bits: u64) -> Target {
    Target {
        rank: JobRank(rank),
        portal,
        bits,
        offset_bytes: 0,
    }
}

fn matching(bits: u64) -> Matching {
    Matching {
        bits,
        ignore: 0,
        source: None,
    }
}

/// Objects that the target has made.
struct Target1 {
    nic: Software,
    queue: Queue,
    portal: PortalIndex,
    /// Two receive buffers of three messages each, an entry over plain memory, one that reports
    /// ends, one for one long message.
    entries: [EntryHandle; 5],
}

impl Target1 {
    fn new(file: &OwnedFd) -> Self {
        let nic = open(file, 1, FaultRules::default());
        let queue = nic.queue_alloc(DEPTH).expect("queue");
        let portal = nic
            .portal_alloc(PortalOptions::default(), Some(queue), None)
            .expect("portal");
        let receive = Entry {
            managed: Managed::Local {
                min_free_bytes: 100,
            },
            auto_unlink: true,
            ..noisy(queue)
        };
        let once = Entry {
            threshold: Some(1),
            auto_unlink: true,
            ..noisy(queue)
        };
        let attach = |at, len, bits, entry| {
            // SAFETY: the buffers live as long as the interface and are touched by `bulk` and
            // atomics only.
            unsafe {
                nic.attach(
                    portal,
                    Position::Tail,
                    matching(bits),
                    memory(&nic, at),
                    len,
                    entry,
                )
            }
            .expect("entry")
        };
        let entries = [
            attach(0, 300, 1, receive),
            attach(512, 300, 1, receive),
            attach(1024, 1024, 2, Entry::OPEN),
            attach(2048, 1024, 3, noisy(queue)),
            attach(4096, 100_000, 4, once),
        ];
        Self {
            nic,
            queue,
            portal,
            entries,
        }
    }
}

fn noisy(queue: Queue) -> Entry {
    Entry {
        events: END,
        queue: Some(queue),
        ..Entry::OPEN
    }
}

fn bind(nic: &Software) -> (Queue, DescriptorHandle) {
    let queue = nic.queue_alloc(DEPTH).expect("queue");
    let descriptor = Descriptor {
        events: END,
        queue: Some(queue),
        ..Descriptor::SILENT
    };
    // SAFETY: as for entries.
    let from = unsafe { nic.bind(memory(nic, 0), 100_000, descriptor) };
    (queue, from.expect("descriptor"))
}

/// The work of rank 0: every way to a target, and its own tables.
fn operate(nic: &Software) {
    let (queue, from) = bind(nic);
    let portal = PortalIndex(0);
    let to = |bits| to(1, portal, bits);
    let part = |len_bytes| Part {
        offset_bytes: 0,
        len_bytes,
    };
    // The third leaves the first buffer less than it must have, so that it leaves.
    for _ in 0..3 {
        nic.put_region(from, part(80), Ack::Event, to(1), 0)
            .expect("put");
    }
    nic.put_region(from, part(8), Ack::Event, to(2), 0)
        .expect("put");
    nic.get_region(from, part(8), to(3)).expect("get");
    nic.atomic(
        from,
        part(8),
        Ack::None,
        to(3),
        0,
        AtomicOp::Sum,
        AtomicKind::U64,
    )
    .expect("atomic");
    nic.put_region(from, part(50_000), Ack::Event, to(4), 0)
        .expect("put");
    while nic.queue_get(queue).expect("event").is_some() {}
    // Its own list.
    let own = nic
        .portal_alloc(PortalOptions::default(), None, None)
        .expect("portal");
    // SAFETY: as for entries.
    let entry = unsafe {
        nic.attach(
            own,
            Position::Tail,
            matching(1),
            memory(nic, 0),
            8,
            Entry::OPEN,
        )
    };
    nic.unlink(entry.expect("entry")).expect("unlink");
}

/// Runs `f` in a child, which exits with 0 if `f` has returned.
fn child(f: impl FnOnce()) -> Pid {
    // SAFETY: this process has one thread, so the child may do everything.
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

fn drain(nic: &Software, queue: Queue) -> Vec<Event> {
    std::iter::from_fn(|| {
        nic.queue_get(queue)
            .expect("no event is missing or damaged")
    })
    .collect()
}

/// The events of the target's queue agree with the state of its entries.
fn check(target: &Target1, context: &str) {
    let nic = &target.nic;
    // SAFETY: as for entries.
    let from = unsafe { nic.bind(memory(nic, 1024), 64, Descriptor::SILENT) }.expect("descriptor");
    // Before any list changes.
    let plain = put_plain(nic, target.portal, from);
    assert_eq!(plain, 1, "{context}: the short way stays closed");
    let events = drain(nic, target.queue);
    let mut ends = BTreeMap::<u64, u64>::new();
    let mut left = BTreeMap::<u64, u64>::new();
    for event in &events {
        let counts = if event.kind == EventKind::Unlink {
            &mut left
        } else {
            &mut ends
        };
        *counts.entry(event.object).or_default() += 1;
        assert!(
            matches!(event.outcome, Outcome::Done | Outcome::PeerDied),
            "{context}: {event:?}"
        );
    }
    for (n, entry) in target.entries.iter().enumerate() {
        let object = entry.to_bits();
        let ended = ends.get(&object).copied().unwrap_or(0);
        let context = format!("{context}, entry {n}: {events:#?}");
        match nic.carried(*entry) {
            Ok(carried) => {
                let counted = carried.puts + carried.gets + carried.atomics;
                // The plain entry reports and counts nothing.
                assert_eq!(ended, counted, "{context}");
                assert_eq!(left.get(&object), None, "{context}");
                nic.unlink(*entry)
                    .unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            Err(NicError::BadHandle { .. }) => {
                assert_eq!(left.get(&object), Some(&1), "{context}");
                let wanted = if n == 4 { 1 } else { 3 };
                assert_eq!(ended, wanted, "{context}");
            }
            Err(error) => panic!("{context}: {error}"),
        }
    }
    // Lists and queue are as good as new: all of the queue can be used, and nothing else is in the
    // list.
    nic.portal_free(target.portal)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let portal = nic
        .portal_alloc(PortalOptions::default(), None, None)
        .expect("portal");
    // SAFETY: as for entries.
    unsafe {
        nic.attach(
            portal,
            Position::Tail,
            matching(1),
            memory(nic, 0),
            64,
            noisy(target.queue),
        )
    }
    .expect("entry");
    for _ in 0..DEPTH {
        let to = to(1, portal, 1);
        nic.put(from, Ack::None, to, 0).expect("put");
    }
    assert_eq!(drain(nic, target.queue).len() as u64, DEPTH, "{context}");
    assert_eq!(nic.status(Register::EventsDropped), 0, "{context}");
}

/// How many of one operation on an entry that reports nothing went the short way.
fn put_plain(nic: &Software, portal: PortalIndex, from: DescriptorHandle) -> u64 {
    let to = to(1, portal, 2);
    let before = nic.status(Register::Direct);
    nic.put(from, Ack::None, to, 0).expect("put");
    nic.status(Register::Direct) - before
}

/// One death of rank 0 at `step`, with `second` one of rank 2 at that step of its life; whether
/// rank 0 has come to that step.
fn die(step: u64, second: Option<u64>) -> bool {
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd");
    let target = Target1::new(&file);
    let rules = |kill_at| FaultRules {
        kill_at,
        ..FaultRules::default()
    };
    let first = child(|| operate(&open(&file, 0, rules(step))));
    if second.is_none() && step.is_multiple_of(2) {
        // `contend` meets the child while it lives and after its death, before the test has waited
        // for it.
        contend(&target.nic, first);
    }
    let killed = was_killed(first);
    if let Some(second) = second {
        let mending = child(|| {
            let nic = open(&file, 2, rules(second));
            let (_, from) = bind(&nic);
            for rank in [0, 1] {
                let to = to(rank, PortalIndex(0), 9);
                nic.put(from, Ack::None, to, 0).expect("put");
            }
        });
        was_killed(mending);
        mend(&target, 2);
    }
    mend(&target, 0);
    // Others can use the interface of the dead rank, too: its lock was held perhaps.
    let nic = &target.nic;
    // SAFETY: as for entries.
    let from = unsafe { nic.bind(memory(nic, 0), 64, Descriptor::SILENT) }.expect("descriptor");
    let to = to(0, PortalIndex(0), 9);
    nic.put(from, Ack::None, to, 0).expect("put");
    nic.release(from).expect("release");
    check(
        &target,
        &format!("rank 0 killed at step {step}, rank 2 at {second:?}"),
    );
    killed
}

/// Takes the target's lock again and again until the child has ended, and then once more before the
/// test waits for the child.
fn contend(nic: &Software, child: Pid) {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).expect("pidfd");
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        let mut end = [PollFd::new(&pidfd, PollFlags::IN)];
        let ended = poll(&mut end, Some(&at_once)).expect("poll") > 0;
        let counter = nic.counter_alloc().expect("counter");
        nic.counter_free(counter).expect("counter");
        if ended {
            return;
        }
    }
}

fn mend(target: &Target1, rank: u32) {
    match target.nic.peer_died(JobRank(rank)) {
        Ok(()) => {}
        // It had not joined when it ended.
        Err(NicError::Invalid { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn main() -> ExitCode {
    // SAFETY: asks for a signal; touches no memory.
    unsafe { libc::alarm(TOO_LONG) };
    let mut steps = 1;
    while die(steps, None) {
        steps += 1;
    }
    assert!(steps > 100, "only {steps} steps: they are not counted");
    println!("killed at each of {} steps, the others went on", steps - 1);
    let mut both = 0;
    for step in 1..steps {
        for second in (1..MENDING).step_by(3) {
            die(step, Some(second));
            both += 1;
        }
    }
    println!("killed while mending in {both} ways, the others went on");
    ExitCode::SUCCESS
}
