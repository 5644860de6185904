//! The sleeper's barrier between two real processes, for messages and for cells.
//!
//! A wake-up that is lost shows as a sleep that only its time-out ends.
//!
//! loom models the form in which the sender executes the fence; this covers the other one.

use argonet_am::{Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::smp::{Smp, SmpConfig};
use argonet_conduit::{Completion, Conduit, Entry, OpToken, Sink, ThreadMode};
use argonet_segment::{Directory, PageKind, SegmentFile};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 200_000;
const TOO_LONG: Duration = Duration::from_secs(1);

/// Every so many rounds rank 1 takes its time, longer than until the sleeper's second look: that
/// look does not make up for a wakeup that was not sent.
const LATE: u32 = 10_000;
const SECOND_LOOK: Duration = Duration::from_millis(1);

fn take_time(round: u32) {
    let begun = Instant::now();
    while round.is_multiple_of(LATE) && begun.elapsed() < 3 * SECOND_LOOK {
        core::hint::spin_loop();
    }
}

#[derive(Default)]
struct Last(u32);

impl Sink for Last {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        assert_eq!(
            delivery.arg(0),
            self.0 + 1,
            "messages come once and in order"
        );
        self.0 += 1;
    }
    fn completed(&mut self, _: OpToken, _: Completion) {}
    fn on_error(&mut self, error: argonet_am::AmError) {
        panic!("{error}");
    }
}

/// One side: rank 1 answers at once and never sleeps; rank 0 looks for the answer a varying number
/// of times and then sleeps, so that answers arrive before, in and after its last look.
///
/// Returns the longest sleep.
fn play(smp: &Smp, me: u32) -> Duration {
    let peer = JobRank(1 - me);
    let mut last = Last::default();
    let mut longest = Duration::ZERO;
    let send = |n: u32| {
        let message = Message {
            handler: HandlerIndex(200),
            args: &[n],
            payload: Payload::None,
        };
        smp.request(peer, &message)
            .expect("one message at a time fits");
    };
    for round in 1..=ROUNDS {
        if me == 0 {
            send(round);
            // Up to 255 looks, scattered.
            for _ in 0..round.wrapping_mul(2_654_435_761) >> 24 {
                if last.0 < round {
                    smp.poll(&mut last);
                }
            }
        }
        while last.0 < round {
            if smp.poll(&mut last) == 0 && me == 0 {
                let start = Instant::now();
                smp.sleep(Some(2 * TOO_LONG), smp.epoch());
                longest = longest.max(start.elapsed());
            }
        }
        if me == 1 {
            take_time(round);
            send(round);
        }
    }
    longest
}

/// The same with cells: both enter a call after the other, and rank 0 sleeps for the answer.
///
/// The data of each call says its number, in a length that changes.
fn exchange(smp: &Smp, me: u32) -> Duration {
    const SLOT: u32 = 5;
    let cells = smp.shared_cells().expect("ranks share memory");
    let peer = JobRank(1 - me);
    let mut longest = Duration::ZERO;
    let enter = |call: u64| {
        let len = (call % 23) as usize * 8;
        let what = call.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let data = [call.to_ne_bytes(); 22];
        let entry = Entry {
            unfinished: 0,
            what,
        };
        cells.enter(SLOT, call, entry, &data.as_flattened()[..len]);
        cells.wake([peer].into_iter());
    };
    let take = |call: u64, entry: Entry| {
        let mut data = [[0; 8]; 22];
        let len = (call % 23) as usize * 8;
        assert_eq!(entry.what, call.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        cells.read(SLOT, peer, call, &mut data.as_flattened_mut()[..len]);
        assert!(
            data[..len / 8]
                .iter()
                .all(|word| *word == call.to_ne_bytes())
        );
    };
    for call in 0..u64::from(ROUNDS) {
        let look = || cells.look(SLOT, peer, call);
        if me == 0 {
            enter(call);
            let looks = (call as u32).wrapping_mul(2_654_435_761) >> 24;
            (0..looks).find(|_| look().is_some());
        }
        let entry = loop {
            match look() {
                Some(entry) => break entry,
                None if me == 0 => {
                    let start = Instant::now();
                    smp.sleep_unless(Some(2 * TOO_LONG), smp.epoch(), &|| look().is_some());
                    longest = longest.max(start.elapsed());
                }
                None => core::hint::spin_loop(),
            }
        };
        take(call, entry);
        if me == 1 {
            take_time(call as u32);
            enter(call);
        }
    }
    longest
}

fn main() -> ExitCode {
    let rings = memfd_create("rings", MemfdFlags::CLOEXEC).expect("memfd");
    let segments = SegmentFile::create(2, 4096, PageKind::Normal).expect("segments");
    let segments = segments.into_fd();
    // SAFETY: this process has one thread, so the child may do everything.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    let me = u32::from(child == 0);
    if me == 1 {
        // SAFETY: asks for a signal; touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    let barrier = Smp::register_barrier();
    let fd = segments.try_clone().expect("dup");
    let file = SegmentFile::from_fd(fd, 2, 4096, PageKind::Normal).expect("segments");
    let mut handlers = HandlerTable::default();
    let nothing = Box::new(|_: &mut Delivery<'_>| {});
    handlers
        .register_at(HandlerIndex(200), "n", nothing)
        .expect("register");
    let config = SmpConfig {
        rank: JobRank(me),
        first: JobRank(0),
        ranks: 2,
        mode: ThreadMode::Seq,
        barrier,
        directory: Directory::new(file, JobRank(me)).expect("directory"),
        registered: handlers.registered(),
        segment_len: std::sync::Arc::new(|_| 0),
    };
    let smp = Smp::new(rings.as_fd(), config).expect("rings");
    let longest = [play(&smp, me), exchange(&smp, me)];
    if me == 1 {
        // It never sleeps; its end is judged by the parent.
        return ExitCode::SUCCESS;
    }
    let mut status = 0;
    // SAFETY: waits for the child made above and writes its status into the integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    let child_ok = waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    let names = [
        "no_wake_up_is_lost_between_processes",
        "no_wake_up_by_a_cell_is_lost_between_processes",
    ];
    println!("\nrunning 2 tests");
    let mut passed = 0;
    for (name, longest) in names.into_iter().zip(longest) {
        let ok = child_ok && longest < TOO_LONG;
        passed += usize::from(ok);
        let word = if ok { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({barrier:?}, longest sleep {longest:?})");
    }
    let (failed, word) = (2 - passed, if passed == 2 { "ok" } else { "FAILED" });
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
