//! Items of the protocol text that the conformance suite does not see.

use super::super::arrivals::Half;
use super::super::operations::Source;
use super::super::roles;
use super::super::send::Keeps;
use super::super::wire::{Body, Kind};
use super::*;
use crate::conduit::SMALL_PUT;
use argonet_am::lid_cache::LidCache;
use argonet_am::{Category, MessageClass};

/// The word of an exit, as the first question of a rank.
const EXIT: u64 = 2 << 56 | 1 << 48 | 7;

fn note(args: &[u32]) -> Message<'_> {
    Message {
        handler: NOTE,
        args,
        payload: Payload::None,
    }
}

/// What a poll has brought, in its order.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<&'static str>>>);

impl Sink for Order {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let is_request = delivery.class() == MessageClass::Request;
        if is_request && delivery.args() == [1] {
            delivery.reply(&note(&[])).unwrap();
        }
        let what = if is_request { "request" } else { "reply" };
        self.0.lock().push(what);
    }

    fn completed(&mut self, _op: OpToken, _part: Completion) {}

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

// spec P2: limits a poll, of each queue.
#[test]
fn a_poll_takes_no_more_of_a_queue_than_its_limit() {
    let sizes = PortalsSizes {
        safe_events: 2,
        am_events: 3,
        system_events: 1,
        ..PortalsSizes::default()
    };
    let ranks = job(2, sizes);
    let [here, there] = [&ranks[0].portals, &ranks[1].portals];
    let polls = |at: &Portals<Software>| [(); 5].map(|()| at.poll_with(&mut Seen::default()));
    for _ in 0..7 {
        there.request(JobRank(0), &note(&[])).unwrap();
    }
    assert_eq!(polls(here), [3, 3, 1, 0, 0], "requests");
    assert_eq!(polls(there), [2, 2, 2, 1, 0], "their replies");
    for _ in 0..3 {
        there.put_system(JobRank(0), EXIT).unwrap();
    }
    assert_eq!(polls(here), [1, 1, 1, 0, 0], "words of the system queue");
}

// spec P2: the system queue first, then what gives resources back, then requests.
#[test]
fn a_poll_takes_the_system_queue_then_replies_then_requests() {
    let ranks = job(2, PortalsSizes::default());
    let [here, there] = [&ranks[0].portals, &ranks[1].portals];
    let mut order = Order::default();
    let log = order.clone();
    here.on_exit(Box::new(move |_, _| log.0.lock().push("system")));
    here.request(JobRank(1), &note(&[1])).unwrap();
    there.request(JobRank(0), &note(&[])).unwrap();
    there.poll_with(&mut Order::default());
    there.put_system(JobRank(0), EXIT).unwrap();
    assert_eq!(here.poll_with(&mut order), 3);
    assert_eq!(*order.0.lock(), ["system", "reply", "request"]);
}

// spec P2: a request is taken only with all that its reply may need in hand.
#[test]
fn a_request_waits_until_its_reply_has_what_it_needs() {
    let ranks = job(2, PortalsSizes::smallest());
    let [here, there] = [&ranks[0].portals, &ranks[1].portals];
    there.request(JobRank(0), &note(&[])).unwrap();
    let held = here.hold().unwrap();
    let mut seen = Seen::default();
    assert!(!here.has_work());
    assert_eq!((here.poll_with(&mut seen), seen.messages), (0, 0));
    here.let_go(held);
    assert!(here.has_work());
    assert_eq!((here.poll_with(&mut seen), seen.messages), (1, 1));
}

/// Which case of the source an operation takes.
fn case(here: &Portals<Software>, at: *const u8, len: usize, gets: bool) -> &'static str {
    // SAFETY: the bytes can be read; they are not moved.
    let (source, _) = unsafe { here.choose(JobRank(1), at, len, gets) }.unwrap();
    let name = match &source {
        Source::Segment => "segment",
        Source::Bounce(_) => "chunk",
        Source::Temporary(_, None) => "temporary",
        Source::Temporary(_, Some(_)) => "copy",
        Source::Slot(_) => "slot",
    };
    here.leave_source(JobRank(1), source);
    name
}

// spec P3: the segment, a chunk that the bytes pass through, or a temporary descriptor.
#[test]
fn memory_here_is_the_segment_a_chunk_or_a_temporary_descriptor() {
    let ranks = job(2, PortalsSizes::smallest());
    let here = &ranks[0].portals;
    let segment = here.own(0, SEGMENT as usize).unwrap().as_ptr();
    let other = [0; 2 * CHUNK_BYTES];
    let (small, large) = (SMALL_PUT, CHUNK_BYTES + 1);
    for gets in [false, true] {
        assert_eq!(case(here, segment, large, gets), "segment");
        assert_eq!(case(here, segment, small + 1, gets), "segment");
        // A small put has read its source when it returns.
        let due = if gets { "segment" } else { "chunk" };
        assert_eq!(case(here, segment, small, gets), due);
        for len in [1, small, CHUNK_BYTES] {
            assert_eq!(case(here, other.as_ptr(), len, gets), "chunk");
        }
        assert_eq!(case(here, other.as_ptr(), large, gets), "temporary");
    }
    let mut chunks = Vec::new();
    while let Some(chunk) = here.send_chunks.free.take() {
        chunks.push(chunk);
    }
    assert_eq!(case(here, other.as_ptr(), small, false), "temporary");
    for chunk in chunks {
        here.send_chunks.free.give(chunk);
    }
    assert!(here.in_use().is_nothing(), "{:?}", here.in_use());
}

// spec P5: a long that fits a chunk travels with its header, another as header and data.
#[test]
fn a_long_that_fits_a_chunk_is_one_message() {
    let fits = CHUNK_BYTES - Body::of(Kind::PackedLong, 0, 0).len();
    let puts = |packed_longs, len| {
        let ranks = job(
            2,
            PortalsSizes {
                packed_longs,
                ..PortalsSizes::default()
            },
        );
        let bytes = vec![7; len];
        let long = Message {
            handler: NOTE,
            args: &[],
            payload: Payload::Long(SharedBytes::from_slice(&bytes), SegmentOffset(96)),
        };
        ranks[0].portals.request(JobRank(1), &long).unwrap();
        let there = &ranks[1].portals;
        let mut seen = Seen::default();
        let taken = there.poll_with(&mut seen);
        assert_eq!((seen.messages, seen.broken), (1, vec![]));
        let place = there.own(96, len).unwrap();
        // SAFETY: the bytes lie in the segment, which nothing writes now.
        let came = unsafe { std::slice::from_raw_parts(place.as_ptr(), len) };
        assert!(came == bytes, "{len} bytes");
        taken
    };
    let (packs, splits) = ([true, true, true, false], [1, 100, fits, 1]);
    let taken: Vec<_> = packs
        .into_iter()
        .zip(splits)
        .map(|(p, l)| puts(p, l))
        .collect();
    assert_eq!(taken, [1, 1, 1, 2]);
    assert_eq!(puts(true, fits + 1), 2);
}

// spec P7: a header without room is pushed back, and comes again when there is some.
#[test]
fn a_header_that_cannot_be_kept_is_pushed_back() {
    let ranks = job(3, PortalsSizes::default());
    let [here, there] = [&ranks[0].portals, &ranks[1].portals];
    // A half of another rank fills the cache.
    let half = Half {
        place: None,
        offset: 0,
        len: 1,
    };
    let mut halves = LidCache::new(1, 1);
    assert!(matches!(halves.data(2, 5, half), Ok(None)));
    there.arrivals.lock().halves = halves;
    // The header of a long leaves before its data, as a network may have it.
    let bytes = vec![9; 3000];
    let payload = SharedBytes::from_slice(&bytes);
    let long = Message {
        handler: NOTE,
        args: &[],
        payload: Payload::Long(payload, SegmentOffset(64)),
    };
    let shape = here.shape(Category::Long, 0, bytes.len(), 64);
    assert_eq!(shape.kind, Kind::SplitLong);
    let temporary = here.needs_temporary(&payload, Keeps::Call);
    let peer = here.peer(JobRank(1));
    let reserved = here.reserve(&mut peer.state.lock(), &shape, temporary);
    let reserved = reserved.unwrap();
    let chunk = reserved.chunk;
    here.fill(&here.send_chunks, chunk, &shape, &long);
    let to = (JobRank(1), roles::REQUESTS, 0);
    let sent = shape.sent(&long, to, (chunk, reserved.lid, reserved.credits));
    here.send_chunks.note(chunk, sent);
    here.put_request(chunk, &sent).unwrap();
    let (mut mine, mut its) = (Seen::default(), Seen::default());
    let mut poll_both = |mine: &mut Seen| {
        let taken = [there.poll_with(&mut its), here.poll_with(mine)];
        assert_eq!((&mine.broken, &its.broken), (&vec![], &vec![]));
        (its.messages, taken)
    };
    assert_eq!(poll_both(&mut mine), (0, [1, 1]), "it comes, and goes back");
    assert_eq!(there.arrivals.lock().halves.forget(2), 1);
    let half = here.half(JobRank(1), shape.kind, &reserved, &payload, 64, None, false);
    here.start(half.unwrap().unwrap()).unwrap();
    let mut tries = 0;
    while poll_both(&mut mine).0 == 0 || !here.is_quiescent() {
        tries += 1;
        assert!(tries < 10_000_000, "it never comes");
    }
    assert_eq!(poll_both(&mut mine), (1, [0, 0]), "once");
    for rank in [here, there] {
        assert!(rank.in_use().is_nothing(), "{:?}", rank.in_use());
    }
}

// spec P10, spec P11: a peer that stalls gets credits that another got before and needs no more.
#[test]
fn credits_are_lent_called_back_and_lent_again() {
    let sizes = PortalsSizes {
        send_chunks: 256,
        ..PortalsSizes::smallest()
    };
    let ranks = job(3, sizes);
    let bytes = vec![7; 900];
    let message = Message {
        handler: NOTE,
        args: &[],
        payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
    };
    let mut seen = Seen::default();
    let lender = &ranks[0].portals;
    let bank = lender.bank.as_ref().unwrap();
    let loan = |peer| lender.credit(JobRank(peer)).unwrap().loan;
    let mut flood = |from: u32, until: &dyn Fn() -> bool| {
        let from = &ranks[from as usize].portals;
        let mut tries = 0;
        while !until() {
            // What it may send at once, then an answer to each.
            while from.request(JobRank(0), &message).is_ok() {}
            while !from.is_quiescent() {
                for rank in &ranks {
                    rank.portals.poll_with(&mut seen);
                }
            }
            tries += 1;
            assert!(tries < 100_000, "{:?}", lender.lent());
        }
        assert_eq!(seen.broken, []);
    };
    let share = bank.plan().share();
    flood(1, &|| bank.banked() == 0);
    let lent = loan(1);
    assert!(lent > share);
    flood(2, &|| bank.moved().returned > 0 && loan(2) > share);
    assert!(loan(1) < lent, "it has given some back");
    let all = lender.lent().unwrap();
    assert_eq!(all.banked + all.untouched + all.lent, all.total);
}

/// An exit waits for no rank that has come to its end.
fn exit_passes_over_the_gone<N: Interface + Send + Sync>(mut ranks: Vec<Rank<N>>) {
    // It takes nothing any more.
    drop(ranks.pop());
    let (first, others) = ranks.split_first().unwrap();
    let due = ExitCounts {
        reported: 2,
        confirmed: 2,
        heard: 0,
    };
    let counts = while_polled(others, || report_exit(first, LONG, u32::MAX));
    assert_eq!(counts, due);
}

// spec P13
#[test]
fn an_exit_waits_for_no_rank_that_is_gone() {
    exit_passes_over_the_gone(job(3, PortalsSizes::default()));
    let late = job_over(3, PortalsSizes::default(), |nic, config| {
        narrow(nic, 0, config)
    });
    exit_passes_over_the_gone(late);
}
