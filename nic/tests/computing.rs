//! Puts, gets, atomic operations and their acknowledgements are complete while the target computes
//! and calls nothing: two processes, of which one spins for five seconds without the library.

use argonet_base::JobRank;
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Descriptor, DescriptorHandle, Entry, EventKind, Events, Matching,
    Outcome, Part, PortalIndex, PortalOptions, Portals, Position, Queue, Register, Target,
};
use argonet_segment::bulk;
use core::ptr::NonNull;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long the target calls nothing.
const SPIN: Duration = Duration::from_secs(5);
/// Seconds after which a test that hangs ends.
const TOO_LONG: u32 = 120;
/// The argument that makes the child the target.
const FLAG: &str = "--target";

const CONFIG: SoftwareConfig = SoftwareConfig {
    first: JobRank(0),
    ranks: 2,
    portals: 1,
    entries: 4,
    descriptors: 4,
    queues: 1,
    queue_events: 64,
    counters: 1,
    arena_bytes: 1 << 20,
};
const END: Events = Events {
    start: false,
    end: true,
};
const PORTAL: PortalIndex = PortalIndex(0);
/// Match bits: an entry that reports nothing, one that reports to its owner, and the number of
/// messages for the latter.
const PLAIN: u64 = 1;
const REPORTING: u64 = 2;
const MESSAGES: u64 = 8;
/// In the plain entry: a sum, then the word that was put last.
const SUM: u64 = 0;
const PUT: u64 = 64;
/// One that moves under the lock and one that does not.
const LENGTHS: [u64; 2] = [64, 100_000];

fn memory(nic: &Software) -> NonNull<u8> {
    nic.buffers().0
}

fn open(file: impl AsFd, rank: u32) -> Software {
    let rules = FaultRules::default();
    Software::new(file.as_fd(), CONFIG, JobRank(rank), None, rules).expect("interface")
}

/// A word of the rank's own buffers.
fn word(nic: &Software, at: u64) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: within the buffers, which live as long as the interface and are touched by `bulk` and
    // atomics only.
    unsafe { bulk::copy(bytes.as_mut_ptr(), memory(nic).as_ptr().add(at as usize), 8) };
    u64::from_ne_bytes(bytes)
}

fn set_word(nic: &Software, at: u64, value: u64) {
    let bytes = value.to_ne_bytes();
    // SAFETY: as in `word`.
    unsafe { bulk::copy(memory(nic).as_ptr().add(at as usize), bytes.as_ptr(), 8) };
}

/// The target: makes its entries, computes, and prints the words and events that it finds then.
fn target(path: &str) -> ExitCode {
    let file = File::options().read(true).write(true).open(path);
    let nic = open(file.expect("the file of the interfaces"), 1);
    let queue = nic.queue_alloc(64).expect("queue");
    let options = PortalOptions::default();
    let portal = nic.portal_alloc(options, Some(queue), Some(PORTAL));
    assert_eq!(portal.expect("portal"), PORTAL);
    let reporting = Entry {
        events: END,
        queue: Some(queue),
        ..Entry::OPEN
    };
    for (bits, entry) in [(PLAIN, Entry::OPEN), (REPORTING, reporting)] {
        let matching = Matching {
            bits,
            ignore: 0,
            source: None,
        };
        // SAFETY: as in `word`.
        let attached = unsafe {
            nic.attach(
                PORTAL,
                Position::Tail,
                matching,
                memory(&nic),
                1 << 19,
                entry,
            )
        };
        attached.expect("entry");
    }
    println!("ready");
    let begun = Instant::now();
    while begun.elapsed() < SPIN {
        core::hint::spin_loop();
    }
    let mut events = 0;
    while let Some(event) = nic.queue_get(queue).expect("queue") {
        assert_eq!(
            (event.kind, event.outcome),
            (EventKind::PutEnd, Outcome::Done)
        );
        events += 1;
    }
    println!("{} {} {events}", word(&nic, SUM), word(&nic, PUT));
    ExitCode::SUCCESS
}

/// The rank that begins operations.
struct Initiator {
    nic: Software,
    queue: Queue,
    from: DescriptorHandle,
}

impl Initiator {
    fn new(file: impl AsFd) -> Self {
        let nic = open(file, 0);
        let queue = nic.queue_alloc(64).expect("queue");
        let descriptor = Descriptor {
            events: END,
            queue: Some(queue),
            ..Descriptor::SILENT
        };
        // SAFETY: as in `word`.
        let from = unsafe { nic.bind(memory(&nic), 1 << 20, descriptor) }.expect("descriptor");
        Self { nic, queue, from }
    }

    /// Waits for the event that completes an operation.
    fn complete(&self, last: EventKind) {
        loop {
            let Some(event) = self.nic.queue_get(self.queue).expect("queue") else {
                continue;
            };
            assert_eq!(event.outcome, Outcome::Done, "{event:?}");
            if event.kind == last {
                return;
            }
        }
    }

    /// One of each, each complete before the next begins.
    fn round(&self, number: u64) {
        let nic = &self.nic;
        let target = |bits, offset_bytes| Target {
            rank: JobRank(1),
            portal: PORTAL,
            bits,
            offset_bytes,
        };
        let part = |offset_bytes, len_bytes| Part {
            offset_bytes,
            len_bytes,
        };
        for len in LENGTHS {
            set_word(nic, PUT, number);
            let put = nic.put_region(self.from, part(PUT, len), Ack::Event, target(PLAIN, PUT), 0);
            put.expect("put");
            self.complete(EventKind::Ack);
            let back = 1 << 19;
            set_word(nic, back, 0);
            let get = nic.get_region(self.from, part(back, len), target(PLAIN, PUT));
            get.expect("get");
            self.complete(EventKind::ReplyEnd);
            assert_eq!(word(nic, back), number, "the bytes put come back");
        }
        set_word(nic, 0, 1);
        let (sum, words) = (AtomicOp::Sum, AtomicKind::U64);
        let to = target(PLAIN, SUM);
        let (one, fetched) = (part(0, 8), 8);
        let add = nic.fetch_atomic(self.from, fetched, self.from, one, to, 0, sum, words, 0);
        add.expect("atomic");
        self.complete(EventKind::ReplyEnd);
        assert_eq!(word(nic, fetched), number - 1, "the sum before");
        if number <= MESSAGES {
            let to = target(REPORTING, 1024);
            let put = nic.put_region(self.from, part(0, 8), Ack::Event, to, number);
            put.expect("put");
            self.complete(EventKind::Ack);
        }
    }
}

fn main() -> ExitCode {
    // SAFETY: asks for a signal; touches no memory.
    unsafe { libc::alarm(TOO_LONG) };
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, path] = words.as_slice()
        && flag == FLAG
    {
        return target(path);
    }
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd");
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let own = std::env::current_exe().expect("this program");
    let mut child = Command::new(own)
        .args([FLAG, &path])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the target");
    let mut said = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    said.read_line(&mut line).expect("its output");
    assert_eq!(line, "ready\n");
    let initiator = Initiator::new(&file);
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let spins = || {
        let mut output = [PollFd::new(said.get_ref(), PollFlags::IN)];
        poll(&mut output, Some(&at_once)).expect("poll") == 0
    };
    let mut rounds = 0;
    // The last round may end when the target has.
    while rounds <= MESSAGES || spins() {
        initiator.round(rounds + 1);
        assert!(
            rounds > 0 || spins(),
            "nothing was complete while the target computed"
        );
        rounds += 1;
    }
    let mut line = String::new();
    said.read_line(&mut line).expect("its output");
    let found: Vec<u64> = line
        .split_whitespace()
        .map(|number| number.parse().expect("numbers"))
        .collect();
    let &[sum, put, events] = found.as_slice() else {
        panic!("the target says {line:?}");
    };
    assert!(child.wait().expect("the target").success());
    // It looks when it has computed, and says so a while later.
    let seen = rounds / 2..=rounds;
    assert!(seen.contains(&sum), "{rounds} rounds, sum {sum}");
    assert!(seen.contains(&put), "{rounds} rounds, last {put}");
    assert_eq!(
        events, MESSAGES,
        "messages that were reported to the target"
    );
    assert!(
        initiator.nic.status(Register::Direct) >= rounds,
        "the short way"
    );
    println!("{rounds} rounds of puts, gets and sums while the target computed for {SPIN:?}");
    ExitCode::SUCCESS
}
