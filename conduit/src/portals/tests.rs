//! Ranks whose interfaces are in one file: behavior that the conformance suite does not see.

use super::config::CHUNK_BYTES;
use super::peer::State;
use super::software_config;
use super::{Buffers, Portals, PortalsConfig, PortalsSizes};
use crate::conduit::{Completion, Conduit, Injected, OpToken, SendError, Sink};
use crate::exit::{ExitCounts, ExitReport};
use crate::gauges::CreditReport;
use crate::threads::ThreadMode;
use argonet_am::credit::Wishes;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_nic::portals::Portals as Interface;
use argonet_nic::portals::portals4::Narrow;
use argonet_nic::portals::software::{FaultRules, Software};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile, SharedBytes};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

mod items;
mod lost;
mod short;

const NOTE: HandlerIndex = HandlerIndex(128);
const SEGMENT: u64 = 1 << 16;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

struct Rank<N: Interface = Software> {
    portals: Portals<N>,
    _segment: OwnSegment,
}

#[derive(Default)]
struct Seen {
    messages: usize,
    completed: usize,
    broken: Vec<AmError>,
}

impl Sink for Seen {
    fn deliver(&mut self, _delivery: &mut Delivery<'_>) {
        self.messages += 1;
    }

    fn completed(&mut self, _op: OpToken, _part: Completion) {
        self.completed += 1;
    }

    fn on_error(&mut self, error: AmError) {
        self.broken.push(error);
    }
}

fn job(ranks: u32, sizes: PortalsSizes) -> Vec<Rank> {
    job_over(ranks, sizes, |nic, config| {
        Portals::over_software(nic, config).unwrap()
    })
}

/// The same over a wrapped software interface.
fn job_over<N: Interface>(
    ranks: u32,
    sizes: PortalsSizes,
    over: impl Fn(Software, PortalsConfig) -> Portals<N>,
) -> Vec<Rank<N>> {
    job_in(ThreadMode::Seq, ranks, sizes, over)
}

fn job_in<N: Interface>(
    mode: ThreadMode,
    ranks: u32,
    sizes: PortalsSizes,
    over: impl Fn(Software, PortalsConfig) -> Portals<N>,
) -> Vec<Rank<N>> {
    let segments = SegmentFile::create(ranks, SEGMENT, PageKind::Normal).unwrap();
    let segments = segments.into_fd();
    let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap();
    let software = software_config(&sizes, JobRank(0), ranks).unwrap();
    let mut table = HandlerTable::default();
    table.register_at(NOTE, "note", Box::new(|_| {})).unwrap();
    let start = |rank| {
        let fd = segments.try_clone().unwrap();
        let file = SegmentFile::from_fd(fd, ranks, SEGMENT, PageKind::Normal).unwrap();
        let directory = Directory::new(file, rank).unwrap();
        let segment = OwnSegment::attach(&directory, SEGMENT).unwrap();
        let resolver = Resolver::new(Arc::clone(&directory));
        let (file, faults) = (interfaces.as_fd(), FaultRules::default());
        let nic = Software::new(file, software, rank, Some(resolver), faults).unwrap();
        let config = PortalsConfig {
            rank,
            ranks,
            mode,
            sizes,
            reached: Arc::clone(&directory),
            directory,
            registered: table.registered(),
            segment_len: Arc::new(|_| SEGMENT),
        };
        Rank {
            portals: over(nic, config),
            _segment: segment,
        }
    };
    (0..ranks).map(JobRank).map(start).collect()
}

/// Over the software interface with what a library of Portals 4 can do: it is not synchronous.
fn narrow(nic: Software, refusals: u32, config: PortalsConfig) -> Portals<Narrow> {
    let (start, len_bytes) = nic.buffers();
    let nic = Narrow::new(nic, 64 << 10).reluctant(refusals);
    // SAFETY: the buffers are mapped as long as the interface, which the conduit owns, and no other
    // code uses them.
    unsafe { Portals::new(nic, Buffers { start, len_bytes }, config) }.unwrap()
}

/// Exits that a rank hears of.
fn hearing(rank: &Rank) -> Arc<Mutex<Vec<(u32, u8)>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    rank.portals
        .on_exit(Box::new(move |from, code| log.lock().push((from.0, code))));
    heard
}

fn report_exit<N: Interface + Send + Sync>(
    rank: &Rank<N>,
    limit: Duration,
    spares: u32,
) -> ExitCounts {
    rank.portals.report_exit(&ExitReport {
        code: 7,
        limit,
        spares: &|rank| rank.0 == spares,
    });
    rank.portals.exits().unwrap()
}

/// Does something while other ranks poll.
fn while_polled<N: Interface + Send + Sync, R>(others: &[Rank<N>], act: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| {
            let mut seen = Seen::default();
            while !done.load(Ordering::Relaxed) {
                for rank in others {
                    rank.portals.poll_with(&mut seen);
                }
                std::thread::yield_now();
            }
            assert_eq!(seen.broken, []);
        });
        let result = act();
        done.store(true, Ordering::Relaxed);
        polling.join().expect("others poll");
        result
    })
}

// spec P13
#[test]
fn an_exit_is_reported_to_all_but_neighbors_and_confirmed() {
    let without = PortalsSizes {
        flow_control: false,
        ..PortalsSizes::default()
    };
    for sizes in [PortalsSizes::default(), without] {
        let ranks = job(5, sizes);
        let heard: Vec<_> = ranks.iter().map(hearing).collect();
        let (first, others) = ranks.split_first().unwrap();
        let due = ExitCounts {
            reported: 3,
            confirmed: 3,
            heard: 0,
        };
        assert_eq!(while_polled(others, || report_exit(first, LONG, 1)), due);
        let heard: Vec<_> = heard.iter().map(|heard| heard.lock().clone()).collect();
        let once = vec![(0, 7)];
        assert_eq!(heard, [vec![], vec![], once.clone(), once.clone(), once]);
    }
}

// spec P13: the wait is bounded.
#[test]
fn a_rank_without_calls_is_waited_for_no_longer_than_the_limit_and_hears_it_later() {
    let ranks = job(2, PortalsSizes::default());
    let heard = hearing(&ranks[1]);
    let counts = report_exit(&ranks[0], Duration::from_millis(20), u32::MAX);
    assert_eq!((counts.reported, counts.confirmed), (1, 0));
    ranks[1].portals.poll_with(&mut Seen::default());
    assert_eq!(*heard.lock(), [(0, 7)]);
}

/// In SEQ nothing locks: another thread that ends the process leaves the report to the thread that
/// calls.
#[test]
fn an_exit_by_another_thread_enters_only_where_the_conduit_locks() {
    for mode in [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par] {
        let ranks = job_in(mode, 2, PortalsSizes::default(), |nic, config| {
            Portals::over_software(nic, config).unwrap()
        });
        let here = &ranks[0].portals;
        let exit = || {
            here.report_exit(&ExitReport {
                code: 7,
                limit: Duration::from_millis(20),
                spares: &|_| false,
            })
        };
        let epoch = here.epoch();
        let entered = std::thread::scope(|scope| scope.spawn(exit).join().unwrap());
        let reported = here.exits().unwrap().reported;
        if mode == ThreadMode::Seq {
            assert_eq!((entered, reported), (false, 0), "{mode:?}");
            assert_ne!(here.epoch(), epoch, "the calling thread is woken");
            assert!(exit(), "the calling thread reports");
            assert_eq!(here.exits().unwrap().reported, 1);
        } else {
            assert_eq!((entered, reported), (true, 1), "{mode:?}");
        }
    }
}

#[test]
fn an_exit_waits_for_the_answer_to_the_question_before() {
    let wishes = Wishes {
        share: Some(40),
        bank: Some(0),
        space_bytes: None,
    };
    let ranks = job(
        3,
        PortalsSizes {
            wishes,
            ..PortalsSizes::default()
        },
    );
    let heard = hearing(&ranks[1]);
    // Rank 2 lacks credits, so the others are asked for some, rank 0 itself first.
    let here = &ranks[0].portals;
    let bank = here.bank.as_ref().unwrap();
    let is_busy = || here.peer(JobRank(1)).state.lock().slot.is_busy();
    assert!(!is_busy());
    let asks = |state: &mut State| state.credit.as_mut().unwrap().asks(100, 2, bank);
    for _ in 0..2 {
        while asks(&mut here.peer(JobRank(2)).state.lock()) > 0 {}
        here.balance();
    }
    assert!(is_busy());
    let before = bank.banked();
    let due = ExitCounts {
        reported: 1,
        confirmed: 1,
        heard: 0,
    };
    assert_eq!(
        while_polled(&ranks[1..], || report_exit(&ranks[0], LONG, 2)),
        due
    );
    assert_eq!(*heard.lock(), [(0, 7)]);
    assert!(
        bank.banked() > before,
        "the first question was answered, too"
    );
}

#[test]
fn an_exit_that_is_repeated_is_acted_upon_once_and_no_exit_is_refused() {
    let ranks = job(2, PortalsSizes::default());
    let heard = hearing(&ranks[0]);
    let hear = |from, word| ranks[0].portals.hear(JobRank(from), word);
    let exit = 2 << 56 | 1 << 48 | 7;
    assert_eq!(hear(1, exit), Ok(()));
    assert_eq!(hear(1, exit), Ok(()));
    assert_eq!(*heard.lock(), [(1, 7)]);
    // Both are answered, and the answers mean nothing to a rank that has asked nothing.
    let mut seen = Seen::default();
    assert_eq!(ranks[1].portals.poll_with(&mut seen), 2);
    assert_eq!(seen.broken, []);
    // A code above 255, a flag that an exit has not, a rank that is none.
    let (above, flag) = (2 << 56 | 2 << 48 | 256, 2 << 56 | 2 << 48 | 1 << 40);
    for (from, word) in [(1, above), (1, flag), (2, exit), (u32::MAX, exit)] {
        let refused = hear(from, word);
        let broken =
            matches!(&refused, Err(AmError::Broken { from: named, .. }) if named.0 == from);
        assert!(broken, "{from} {word:#x}: {refused:?}");
    }
    assert_eq!(heard.lock().len(), 1);
}

/// All credits are somewhere, and both sides say the same of each loan.
// spec P9, spec P10: over portals, from the receive space to the peers that stall.
#[test]
fn gauges_of_credits_are_exact() {
    let sizes = PortalsSizes::smallest();
    let ranks = job(3, sizes);
    let mut seen = Seen::default();
    let bytes = vec![7; 900];
    let message = Message {
        handler: NOTE,
        args: &[],
        payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
    };
    let mut tries = 0;
    for sent in 0..600 {
        let from = &ranks[1 + sent % 2].portals;
        while from.request(JobRank(0), &message) == Err(SendError::Full) {
            ranks[0].portals.poll_with(&mut seen);
            from.poll_with(&mut seen);
            tries += 1;
            assert!(tries < 1_000_000, "no room comes");
        }
    }
    while !ranks.iter().all(|rank| rank.portals.is_quiescent()) {
        for rank in &ranks {
            rank.portals.poll_with(&mut seen);
        }
        tries += 1;
        assert!(tries < 1_000_000, "it never settles");
    }
    assert_eq!((seen.messages, seen.broken), (600, vec![]));
    let report = |rank: &Rank| rank.portals.gauges().unwrap().report();
    let reports: Vec<CreditReport> = ranks.iter().map(report).collect();
    let lender = &reports[0];
    for (peer, borrower) in (1..).zip(&reports[1..]) {
        let held = borrower.peers.iter().find(|row| row.peer == 0).unwrap();
        let lent = lender.peers.iter().find(|row| row.peer == peer).unwrap();
        assert_eq!((held.held, held.in_use, lent.owed), (lent.lent, 0, 0));
        assert!(held.stalls > 0, "{held:?}");
    }
    let lent: u64 = lender.peers.iter().map(|row| u64::from(row.lent)).sum();
    let all = u64::from(lender.banked) + lender.untouched + lent;
    assert_eq!(all, u64::from(lender.total));
    let bank = ranks[0].portals.bank.as_ref().unwrap();
    assert_eq!(
        (lender.epochs, lender.lent),
        (bank.epoch(), bank.moved().lent)
    );
    assert!(lender.epochs > 0 && lender.lent > 0, "{lender:?}");
}

/// Of an operation that is reported by the call alone.
const TOKEN: OpToken = OpToken {
    handle: 1,
    implicit: false,
};

// spec P3: each case of the source, and more operations than there are tickets, chunks or temporary
// descriptors.
#[test]
fn puts_and_gets_in_software_are_over_when_their_calls_return() {
    let ranks = job(2, PortalsSizes::smallest());
    let (here, there) = (&ranks[0].portals, &ranks[1].portals);
    let own = here.own(0, SEGMENT as usize).unwrap().as_ptr();
    let at = SegmentOffset(5000);
    for round in 0..500_u32 {
        for len in [1, 8, CHUNK_BYTES, CHUNK_BYTES + 1, 20_000] {
            let data: Vec<u8> = (0..len).map(|n| (n as u32 + round) as u8 | 1).collect();
            let mut back = vec![0; len];
            let target = there.own(at.0, len).unwrap();
            // SAFETY: all ranges lie in the vectors and segments that they belong to; no other code
            // uses those meanwhile.
            unsafe {
                assert!(here.put_now(JobRank(1), at, data.as_ptr(), len));
                let seen = std::slice::from_raw_parts(target.as_ptr(), len);
                assert!(seen == data, "a put of {len} bytes");
                assert!(here.get_now(JobRank(1), at, back.as_mut_ptr(), len));
                assert!(back == data, "a get of {len} bytes");
                assert!(here.get_now(JobRank(1), at, own.add(7), len));
                assert!(here.put_now(JobRank(1), SegmentOffset(30_000), own.add(7), len));
            }
            let target = there.own(30_000, len).unwrap();
            // SAFETY: as above.
            let seen = unsafe { std::slice::from_raw_parts(target.as_ptr(), len) };
            assert!(seen == data, "{len} bytes by the segment");
        }
    }
    assert!(here.is_quiescent() && !here.has_anything());
}

/// Else each of the puts that go through a segment from its beginning on would map another part.
#[test]
fn the_first_put_maps_all_that_its_target_has_attached() {
    let ranks = job(2, PortalsSizes::default());
    let here = &ranks[0].portals;
    assert_eq!(here.directory.attached_bytes(JobRank(1)), 0);
    let bytes = [7; 8];
    // SAFETY: the bytes are there for the call.
    let is_put = unsafe { here.put_now(JobRank(1), SegmentOffset(16), bytes.as_ptr(), 8) };
    assert!(is_put);
    assert_eq!(here.directory.attached_bytes(JobRank(1)), SEGMENT);
}

#[test]
fn refused_puts_and_gets_are_reported() {
    let mut ranks = job(2, PortalsSizes::default());
    // It takes nothing any more.
    drop(ranks.pop());
    let here = &ranks[0].portals;
    let mut bytes = [7; 8];
    // SAFETY: the bytes outlive the operations, which a poll ends.
    unsafe {
        let put = here.put(JobRank(1), SegmentOffset(0), bytes.as_ptr(), 8, TOKEN);
        assert_eq!(put, Ok(Injected::Local));
        let get = here.get(JobRank(1), SegmentOffset(0), bytes.as_mut_ptr(), 8, TOKEN);
        assert_eq!(get, Ok(Injected::Pending));
    }
    let mut seen = Seen::default();
    here.poll_with(&mut seen);
    assert_eq!((seen.completed, bytes), (0, [7; 8]));
    let reported: Vec<_> = seen.broken.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    for (reported, what) in reported
        .iter()
        .zip(["a put of 8 bytes", "a get of 8 bytes"])
    {
        let named = reported.starts_with("rank 0 over portals with rank 1: ");
        assert!(named && reported.contains(what), "{reported}");
    }
}

/// Where nothing can be put before the catch-basin there is another behind each buffer that comes
/// back, and the interface lets the old one go when it likes.
///
/// Requests that fall into it meanwhile are sent again, not forever.
// spec P8
#[test]
fn a_catch_basin_before_buffers_is_taken_away() {
    const REFUSALS: u32 = 8;
    let sizes = PortalsSizes {
        send_chunks: 512,
        flow_control: false,
        ..PortalsSizes::smallest()
    };
    let ranks = job_over(2, sizes, |nic, config| narrow(nic, REFUSALS, config));
    let [from, to] = [&ranks[0].portals, &ranks[1].portals];
    let bytes = vec![7; 900];
    let message = Message {
        handler: NOTE,
        args: &[],
        payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
    };
    let mut seen = Seen::default();
    let (mut sent, mut tries) = (0, 0);
    for _ in 0..8 {
        // As many as there is room for, more than the target has buffers for.
        for _ in 0..4 * sizes.send_chunks {
            match from.request(JobRank(1), &message) {
                Ok(()) => sent += 1,
                refused => {
                    assert_eq!(refused, Err(SendError::Full));
                    from.poll_with(&mut Seen::default());
                }
            }
        }
        while seen.messages < sent {
            to.poll_with(&mut seen);
            from.poll_with(&mut Seen::default());
            tries += 1;
            assert!(tries < 1_000_000, "{} of {sent} came", seen.messages);
        }
    }
    assert_eq!((seen.messages, seen.broken), (sent, vec![]));
    assert!(sent > 1000, "{sent} were sent");
}
