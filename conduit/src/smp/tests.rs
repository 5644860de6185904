//! The ring against a model, and two ranks' conduits in one process.

use super::conduit::{Smp, SmpConfig};
use super::layout::{Layout, RING_BYTES, RING_UNITS};
use super::lock::ThreadMode;
use super::peer::Rest;
use super::ring::{Reader, Ring, Writer, publish};
use super::wake::Barrier;
use super::words::Words;
use crate::conduit::{Conduit, OpToken, Part, PrepareRequest, SendError, Sink};
use argonet_am::record::{Head, Kind};
use argonet_am::{AmError, Category, Delivery, HandlerTable, Lane, MAX_MEDIUM, Message, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset, cpu};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile, SharedBytes};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use proptest::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::VecDeque;
use std::sync::Arc;

const SMALL: u32 = 64;

/// Units as shared memory would hold them: 16-byte aligned, zero.
fn units(count: u32) -> Vec<u128> {
    vec![0; count as usize]
}

fn ring<'a>(memory: &'a mut [u128], read_position: &'a AtomicU32) -> Ring<'a> {
    let words = memory.len() * 2;
    // SAFETY: the vector has that many words, is aligned to 16, and outlives the ring.
    let words = unsafe { Words::new(memory.as_mut_ptr().cast(), words) };
    Ring {
        words,
        units: SMALL,
        read_position,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Read,
}

proptest! {
    /// Records come out whole, once and in order, whatever their sizes; a writer is refused only
    /// when the ring really lacks room.
    #[test]
    fn the_ring_is_a_queue(steps in prop::collection::vec(
        prop_oneof![(1u32..14).prop_map(Step::Write), Just(Step::Read)], 1..2000)) {
        let mut memory = units(SMALL);
        let position = AtomicU32::new(0);
        let ring = ring(&mut memory, &position);
        let (writer, reader) = (Writer::default(), Reader::default());
        let mut model: VecDeque<(u32, u32)> = VecDeque::new();
        let mut next = 1u32;
        for step in steps {
            match step {
                Step::Write(len) => match writer.reserve(&ring, len) {
                    Some(at) => {
                        for i in 1..len as usize * 2 {
                            ring.words.store(at + i, next.into(), Ordering::Relaxed);
                        }
                        publish(&ring, at, Head::message(Category::Short, HandlerIndex(0), 0, next, len));
                        model.push_back((next, len));
                        next += 1;
                    }
                    None => {
                        // At most a quarter is read but not yet published, and a skip is shorter
                        // than the record that made it.
                        let held: u32 = model.iter().map(|(_, len)| len).sum();
                        prop_assert!(held + SMALL / 4 + 2 * 14 + len >= SMALL, "refused with {held} held");
                    }
                },
                Step::Read => {
                    let mut got = None;
                    let mut cursor = reader.cursor(&ring);
                    while let Some((head, at)) = cursor.peek() {
                        prop_assert!(head.units() <= cursor.units_to_end());
                        let skip = head.kind() == Ok(Kind::Skip);
                        if !skip {
                            for i in 1..head.units() as usize * 2 {
                                prop_assert_eq!(ring.words.load(at + i, Ordering::Relaxed), u64::from(head.arg0()));
                            }
                            got = Some((head.arg0(), head.units()));
                        }
                        cursor.advance(head.units());
                        if !skip { break; }
                    }
                    prop_assert_eq!(got, model.pop_front());
                }
            }
        }
        prop_assert!(writer.position().wrapping_sub(reader.position()) < SMALL);
    }
}

/// The peer's memory may say anything about how far it has read.
#[test]
fn a_forged_read_position_makes_no_room() {
    let mut memory = units(SMALL);
    let position = AtomicU32::new(0);
    let ring = ring(&mut memory, &position);
    let writer = Writer::default();
    while writer.reserve(&ring, 7).is_some() {}
    let held = writer.position();
    for forged in [
        held + 1,
        held + SMALL,
        held.wrapping_sub(SMALL),
        1 << 31,
        u32::MAX,
    ] {
        position.store(forged, Ordering::Relaxed);
        assert_eq!(writer.reserve(&ring, 7), None, "{forged}");
        assert!(!writer.has_room(&ring, 1), "{forged}");
    }
    position.store(held, Ordering::Relaxed);
    assert!(writer.reserve(&ring, 7).is_some());
}

/// Two ranks in one process.
struct Pair {
    ranks: [Smp; 2],
    _segments: Vec<OwnSegment>,
    rings: OwnedFd,
}

const SEGMENT: u64 = 1 << 16;

fn handlers() -> HandlerTable {
    let mut table = HandlerTable::default();
    for index in 128..140 {
        let handler = HandlerIndex(index);
        table
            .register_at(handler, &format!("h{index}"), Box::new(|_| {}))
            .unwrap();
    }
    table
}

fn pair(mode: ThreadMode) -> Pair {
    let segments = SegmentFile::create(2, SEGMENT, PageKind::Normal).unwrap();
    let segments = segments.into_fd();
    let rings = memfd_create("rings", MemfdFlags::CLOEXEC).unwrap();
    let mut own = Vec::new();
    let ranks = [JobRank(0), JobRank(1)].map(|rank| {
        let fd = segments.try_clone().unwrap();
        let file = SegmentFile::from_fd(fd, 2, SEGMENT, PageKind::Normal).unwrap();
        let directory = Directory::new(file, rank).unwrap();
        own.push(OwnSegment::attach(&directory, SEGMENT).unwrap());
        directory.map_all(|_| SEGMENT).unwrap();
        let config = SmpConfig {
            rank,
            ranks: 2,
            mode,
            barrier: Barrier::Sender,
            directory: Arc::clone(&directory),
            registered: handlers().registered(),
            segment_len: Arc::new(|_| SEGMENT),
        };
        Smp::new(rings.as_fd(), config).unwrap()
    });
    Pair {
        ranks,
        _segments: own,
        rings,
    }
}

/// What a sink has seen of a message: source, handler, arguments, payload.
type Seen = (u32, u8, Vec<u32>, Vec<u8>);

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    broken: Vec<AmError>,
    /// Replies to every request with its own payload.
    echo: bool,
}

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.seen.push((
            delivery.source().0,
            delivery.handler().0,
            delivery.args().to_vec(),
            delivery.payload().to_vec(),
        ));
        if self.echo && delivery.lane() == Lane::Request {
            delivery.echo(HandlerIndex(129), &[7]).unwrap();
            let again = delivery.echo(HandlerIndex(129), &[7]);
            assert!(matches!(again, Err(AmError::RepliedTwice { .. })));
        } else if delivery.lane() == Lane::Reply {
            let reply = delivery.echo(HandlerIndex(129), &[]);
            assert!(matches!(reply, Err(AmError::ReplyToReply { .. })));
        }
    }

    fn completed(&mut self, op: OpToken, part: Part) {
        panic!("{op:?} {part:?}: smp completes at injection");
    }

    fn broken(&mut self, error: AmError) {
        self.broken.push(error);
    }
}

/// Polls until a poll after a rest finds nothing more.
fn drain(smp: &Smp, log: &mut Log) {
    let mut last = 1;
    while smp.poll(log) + last > 0 {
        last = smp.poll(log);
        let began = cpu::ticks();
        while cpu::ticks().wrapping_sub(began) <= Rest::LONGEST * cpu::SHORT_PAUSE_TICKS {
            cpu::relax();
        }
    }
}

fn message<'a>(args: &'a [u32], payload: Payload<'a>) -> Message<'a> {
    Message {
        handler: HandlerIndex(128),
        args,
        payload,
    }
}

fn medium(bytes: &[u8]) -> Payload<'_> {
    Payload::Medium(SharedBytes::from_slice(bytes))
}

// seed P5
#[test]
fn all_categories_arrive_with_all_argument_counts() {
    let pair = pair(ThreadMode::Seq);
    let [a, b] = &pair.ranks;
    let all: Vec<u32> = (0..16).map(|i| 0x9000_0000 + i).collect();
    let bytes: Vec<u8> = (0..MAX_MEDIUM).map(|i| (i * 7) as u8).collect();
    for nargs in 0..=16 {
        for len in [0, 1, 15, 16, 17, 4095, MAX_MEDIUM] {
            let args = &all[..nargs];
            let payload = &bytes[..len];
            let to = SegmentOffset(64);
            let long_len = len.min(SEGMENT as usize - 64);
            let long = Payload::Long(SharedBytes::from_slice(&payload[..long_len]), to);
            let mut log = Log::default();
            a.request(JobRank(1), &message(args, Payload::None))
                .unwrap();
            a.request(JobRank(1), &message(args, medium(payload)))
                .unwrap();
            a.request(JobRank(1), &message(args, long)).unwrap();
            while log.seen.len() < 3 {
                drain(b, &mut log);
            }
            assert_eq!(log.seen[0], (0, 128, args.to_vec(), vec![]));
            assert_eq!(log.seen[1], (0, 128, args.to_vec(), payload.to_vec()));
            assert_eq!(
                log.seen[2],
                (0, 128, args.to_vec(), payload[..long_len].to_vec())
            );
        }
    }
}

/// The reader does not rest while it knows of more.
#[test]
fn a_full_batch_is_followed_by_the_next() {
    let pair = pair(ThreadMode::Seq);
    let [a, b] = &pair.ranks;
    for i in 0..1000 {
        a.request(JobRank(1), &message(&[i], Payload::None))
            .unwrap();
    }
    let mut log = Log::default();
    let mut polls = 0;
    while log.seen.len() < 1000 {
        assert!(b.poll(&mut log) > 0, "a rest after {polls} polls");
        polls += 1;
    }
}

#[test]
fn a_full_ring_refuses_and_recovers() {
    let pair = pair(ThreadMode::Seq);
    let [a, b] = &pair.ranks;
    let mut sent = 0u32;
    while a.request(JobRank(1), &message(&[sent], Payload::None)) == Ok(()) {
        sent += 1;
    }
    assert_eq!(sent, RING_UNITS - 1, "all but the zero word can be filled");
    let refused = a.request(JobRank(1), &message(&[sent], Payload::None));
    assert_eq!(refused, Err(SendError::Full));
    let mut log = Log::default();
    drain(b, &mut log);
    assert_eq!(log.seen.len(), sent as usize);
    assert!((0..sent).zip(&log.seen).all(|(i, seen)| seen.2 == [i]));
    a.request(JobRank(1), &message(&[sent], Payload::None))
        .unwrap();
}

// seed P6
#[test]
fn requests_wait_while_their_replies_have_no_room_and_nothing_is_lost() {
    let pair = pair(ThreadMode::Seq);
    let [a, b] = &pair.ranks;
    let bytes = vec![5u8; MAX_MEDIUM];
    let mut at_b = Log {
        echo: true,
        ..Log::default()
    };
    let mut at_a = Log::default();
    let mut sent = 0;
    for _ in 0..40 {
        while a.request(JobRank(1), &message(&[sent], medium(&bytes))) == Ok(()) {
            sent += 1;
        }
        // The replies fill their ring; then no further request is accepted.
        drain(b, &mut at_b);
        assert!(
            at_b.seen.len() - at_a.seen.len() <= 3,
            "replies beyond the ring's room"
        );
        assert_eq!(b.poll(&mut at_b), 0);
        drain(a, &mut at_a);
    }
    while at_a.seen.len() < sent as usize {
        b.poll(&mut at_b);
        a.poll(&mut at_a);
    }
    assert_eq!(at_b.seen.len(), sent as usize);
    assert!((0..sent).zip(&at_b.seen).all(|(i, seen)| seen.2 == [i]));
    assert!(
        at_a.seen
            .iter()
            .all(|seen| seen.1 == 129 && seen.2 == [7] && seen.3 == bytes)
    );
}

#[test]
fn prepared_payloads_keep_their_place() {
    let pair = pair(ThreadMode::Seq);
    let [a, b] = &pair.ranks;
    let want = |most, offset| PrepareRequest {
        to: JobRank(1),
        lane: Lane::Request,
        nargs: 2,
        least: 0,
        most,
        offset,
    };
    let mut first = a.prepare(&want(1000, None)).unwrap();
    let cancelled = a.prepare(&want(500, None)).unwrap();
    let mut long = a.prepare(&want(100, Some(SegmentOffset(8)))).unwrap();
    a.request(JobRank(1), &message(&[9], Payload::None))
        .unwrap();
    let mut log = Log::default();
    assert_eq!(
        b.poll(&mut log),
        0,
        "nothing overtakes what is being prepared"
    );
    a.cancel(cancelled);
    // SAFETY: the pair outlives the buffers.
    unsafe { long.buffer() }.copy_from(0, &[3; 100]).unwrap();
    a.commit(long, HandlerIndex(130), &[1, 2], 100);
    assert_eq!(b.poll(&mut log), 0);
    // SAFETY: as above.
    unsafe { first.buffer() }.copy_from(0, &[4; 10]).unwrap();
    // It shrinks to 10 bytes.
    a.commit(first, HandlerIndex(131), &[5, 6], 10);
    drain(b, &mut log);
    assert_eq!(
        log.seen,
        [
            (0, 131, vec![5, 6], vec![4; 10]),
            (0, 130, vec![1, 2], vec![3; 100]),
            (0, 128, vec![9], vec![]),
        ]
    );
}

#[test]
fn outside_the_segment_is_refused() {
    let pair = pair(ThreadMode::Seq);
    let [a, _b] = &pair.ranks;
    for (offset, len) in [
        (SEGMENT, 1),
        (SEGMENT - 1, 2),
        (u64::MAX, 1),
        (u64::MAX - 1, 4),
    ] {
        let bytes = vec![0; len];
        let offset = SegmentOffset(offset);
        let long = Payload::Long(SharedBytes::from_slice(&bytes), offset);
        let refused = a.request(JobRank(1), &message(&[], long));
        assert!(matches!(
            refused,
            Err(SendError::Message(AmError::OutsideSegment {
                to: JobRank(1),
                ..
            }))
        ));
        // SAFETY: the source is readable for its length.
        let refused = unsafe { a.put(JobRank(1), offset, bytes.as_ptr(), len, OpToken::NONE) };
        assert!(refused.is_err());
    }
}

/// What a peer with damaged memory may write: every such record is refused, none crashes.
#[test]
fn broken_records_are_reported_and_not_used() {
    let kinds = [
        Head(0x0007),
        Head::message(Category::Short, HandlerIndex(128), 17, 0, 6),
        Head::message(Category::Short, HandlerIndex(128), 9, 0, 1),
        Head::message(Category::Medium, HandlerIndex(128), 0, 0, 2),
        Head::message(Category::Long, HandlerIndex(128), 0, 0, 2),
        Head::message(Category::Short, HandlerIndex(128), 0, 0, u16::MAX.into()),
        Head::skip(0),
        Head::skip(u16::MAX.into()),
    ];
    for head in kinds {
        let pair = pair(ThreadMode::Seq);
        let (b, rings) = (&pair.ranks[1], &pair.rings);
        let layout = Layout::new(2);
        let (_, at) = layout.ring(JobRank(1), JobRank(0), Lane::Request);
        let mut bytes = vec![0xff; 64];
        bytes[..8].copy_from_slice(&head.0.to_ne_bytes());
        assert!(at + RING_BYTES <= layout.bytes());
        rustix::io::pwrite(rings, &bytes, at as u64).unwrap();
        let mut log = Log::default();
        b.poll(&mut log);
        assert_eq!(log.seen, [], "{head:?}");
        assert_eq!(log.broken.len(), 1, "{head:?}");
        let text = log.broken[0].to_string();
        assert!(text.contains("rank 1") && text.contains("rank 0"), "{text}");
    }
}

#[test]
fn threads_share_lanes() {
    let pair = pair(ThreadMode::Par);
    let [a, b] = &pair.ranks;
    threads_share_the_lane(a, b, JobRank(1));
}

/// Both sides have the same mapping here, so that ThreadSanitizer sees what they share.
#[test]
fn threads_share_lanes_to_themselves() {
    let pair = pair(ThreadMode::Par);
    let [a, _] = &pair.ranks;
    threads_share_the_lane(a, a, JobRank(0));
}

/// Threads send from `a` to the rank that others poll at `b`.
fn threads_share_the_lane(a: &Smp, b: &Smp, to: JobRank) {
    const EACH: u64 = 20_000;
    let sum = AtomicU64::new(0);
    struct Adder<'a>(&'a AtomicU64);
    impl Sink for Adder<'_> {
        fn deliver(&mut self, delivery: &mut Delivery<'_>) {
            let bytes = delivery.payload().to_vec();
            assert!(bytes.iter().all(|byte| *byte == delivery.arg(0) as u8));
            self.0.fetch_add(delivery.arg(0).into(), Ordering::Relaxed);
        }
        fn completed(&mut self, _: OpToken, _: Part) {}
        fn broken(&mut self, error: AmError) {
            panic!("{error}");
        }
    }
    let want = 3 * EACH * (EACH + 1) / 2;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..3 {
            threads.push(scope.spawn(|| {
                for i in 1..=EACH {
                    let args = [i as u32, 1, 2, 3, 4];
                    let bytes = [i as u8; 200];
                    // Copies this long are made by memcpy, where ThreadSanitizer sees them.
                    let payload = if i % 8 == 0 {
                        medium(&bytes)
                    } else {
                        Payload::None
                    };
                    let message = message(&args, payload);
                    while a.request(to, &message).is_err() {
                        std::thread::yield_now();
                    }
                }
            }));
        }
        for _ in 0..2 {
            threads.push(scope.spawn(|| {
                while sum.load(Ordering::Relaxed) < want {
                    if b.poll(&mut Adder(&sum)) == 0 {
                        std::thread::yield_now();
                    }
                }
            }));
        }
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(sum.load(Ordering::Relaxed), want);
}

/// A thread that looked before another thread's poll took the message would sleep for ever.
#[test]
fn nobody_sleeps_over_what_another_threads_poll_took() {
    let pair = pair(ThreadMode::Par);
    let [smp, peer] = &pair.ranks;
    let seen = smp.epoch();
    peer.request(JobRank(0), &message(&[1], Payload::None))
        .unwrap();
    let mut log = Log::default();
    std::thread::scope(|s| {
        let poll = s.spawn(|| {
            while log.seen.is_empty() {
                smp.poll(&mut log);
            }
        });
        poll.join().unwrap();
    });
    assert!(!smp.has_work());
    smp.sleep(None, seen);
    assert_eq!(smp.epoch(), seen + 1);
}
