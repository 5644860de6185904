//! The ring against a model, and promises of smp beyond the suite of all conduits
//! (`argonet-conformance`).

use super::cells::Entry;
use super::conduit::{Smp, SmpConfig, SmpConfigError};
use super::layout::{LAP_UNITS, MOST_RANKS, RING_UNITS};
use super::peer::Rest;
use super::ring::{Reader, Ring, Writer, publish};
use super::wake::Barrier;
use super::words::Words;
use crate::conduit::{Completion, Conduit, OpToken, PrepareRequest, Prepared, SendError, Sink};
use crate::threads::ThreadMode;
use argonet_am::record::{Head, Kind, MAX_UNITS};
use argonet_am::{
    AmError, Category, Delivery, HandlerTable, MAX_MEDIUM, Message, MessageClass, Payload,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset, cpu};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile, SharedBytes};
use core::sync::atomic::{AtomicU32, Ordering};
use proptest::prelude::*;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

mod threads;

const SMALL: u32 = 64;

/// Records of more units are large in these rings.
const LARGE: u32 = 6;

/// Of the longest record here.
const LONGEST: u32 = 13;

/// Units as shared memory would hold them: 16-byte aligned, zero.
fn units(count: u32) -> Vec<u128> {
    vec![0; count as usize]
}

/// A ring with no part for records that are not large.
fn ring<'a>(memory: &'a mut [u128], read_position: &'a AtomicU32) -> Ring<'a> {
    ring_of(memory, read_position, SMALL)
}

fn ring_of<'a>(memory: &'a mut [u128], read_position: &'a AtomicU32, lap: u32) -> Ring<'a> {
    let words = memory.len() * 2;
    // SAFETY: the vector has that many words, is aligned to 16, and outlives the ring.
    let words = unsafe { Words::new(memory.as_mut_ptr().cast(), words) };
    Ring {
        words,
        units: SMALL,
        lap,
        large: LARGE,
        read_position,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Read,
}

proptest! {
    /// Records of all sizes come out whole, once and in order; a writer is refused only when the
    /// ring really lacks room.
    #[test]
    fn the_ring_is_a_queue(steps in prop::collection::vec(
        prop_oneof![(1..=LONGEST).prop_map(Step::Write), Just(Step::Read)], 1..2000),
        lap in prop_oneof![Just(SMALL), Just(SMALL / 2)]) {
        let mut memory = units(SMALL);
        let position = AtomicU32::new(0);
        let ring = ring_of(&mut memory, &position, lap);
        let (writer, reader) = (Writer::default(), Reader::default());
        let mut model: VecDeque<(u32, u32)> = VecDeque::new();
        let mut next = 1u32;
        for step in steps {
            match step {
                Step::Write(len) => match (writer.has_room(&ring, 2 * LONGEST + 1), writer.reserve(&ring, len)) {
                    (_, Some(at)) => {
                        for i in 1..len as usize * 2 {
                            ring.words.store(at + i, next.into(), Ordering::Relaxed);
                        }
                        publish(&ring, at, Head::message(Category::Short, HandlerIndex(0), 0, next, len));
                        model.push_back((next, len));
                        next += 1;
                    }
                    (room_for_any, None) => {
                        // At most a quarter is read but not yet published, and a skip is shorter
                        // than the record that made it, but for that of a lap.
                        let held: u32 = model.iter().map(|(_, len)| len).sum();
                        prop_assert!(held > 0, "refused by an empty ring");
                        let skipped = if lap < SMALL { SMALL - lap + LARGE } else { 0 };
                        prop_assert!(held + skipped + SMALL / 4 + 2 * LONGEST + len >= SMALL, "refused with {held} held");
                        prop_assert!(!room_for_any, "a reply is refused");
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

fn pair() -> Pair {
    pair_for(ThreadMode::Seq)
}

fn pair_for(mode: ThreadMode) -> Pair {
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
            first: JobRank(0),
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
    }
}

/// A sink's record of a message: source, handler, arguments, payload.
type Seen = (u32, u8, Vec<u32>, Vec<u8>);

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
}

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.seen.push((
            delivery.source().0,
            delivery.handler().0,
            delivery.args().to_vec(),
            delivery.payload().to_vec(),
        ));
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        panic!("{op:?} {completion:?}: smp completes at injection");
    }

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
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

/// The reader does not rest while it knows of more.
#[test]
fn a_full_batch_is_followed_by_the_next() {
    let pair = pair();
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
    let pair = pair();
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

/// Messages that are not large use the beginning of the ring again and again, and only its memory;
/// large ones use all of it.
#[test]
fn only_large_messages_leave_the_lap() {
    let pair = pair();
    let [a, b] = &pair.ranks;
    let bytes = vec![5; MAX_MEDIUM];
    let furthest = |len: usize| {
        let mut log = Log::default();
        let mut most = 0;
        for _ in 0..64 {
            let payload = Payload::Medium(SharedBytes::from_slice(&bytes[..len]));
            a.request(JobRank(1), &message(&[], payload)).unwrap();
            most = most.max(a.peer(JobRank(1)).out_request.position() & (RING_UNITS - 1));
            drain(b, &mut log);
        }
        assert_eq!(log.seen.len(), 64);
        assert!(log.seen.iter().all(|seen| seen.3 == bytes[..len]));
        most
    };
    assert!(furthest(8000) <= LAP_UNITS);
    assert!(furthest(MAX_MEDIUM) > RING_UNITS - 2 * MAX_UNITS);
}

#[test]
fn prepared_payloads_keep_their_place() {
    let pair = pair();
    let [a, b] = &pair.ranks;
    let want = |most, offset| PrepareRequest {
        to: JobRank(1),
        class: MessageClass::Request,
        nargs: 2,
        least: 0,
        most,
        offset,
    };
    let mut first = a.prepare(&want(1000, None)).unwrap();
    let canceled = a.prepare(&want(500, None)).unwrap();
    let mut long = a.prepare(&want(100, Some(SegmentOffset(8)))).unwrap();
    a.request(JobRank(1), &message(&[9], Payload::None))
        .unwrap();
    let mut log = Log::default();
    assert_eq!(
        b.poll(&mut log),
        0,
        "nothing overtakes a payload in preparation"
    );
    a.cancel(canceled);
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

/// Offsets into shared memory are made of these numbers.
#[test]
fn a_rank_that_shares_no_memory_is_refused() {
    let made = |rank, first, ranks| {
        let file = memfd_create("rings", MemfdFlags::CLOEXEC).unwrap();
        let segments = SegmentFile::create(1, 4096, PageKind::Normal).unwrap();
        let config = SmpConfig {
            rank: JobRank(rank),
            first: JobRank(first),
            ranks,
            mode: ThreadMode::Seq,
            barrier: Barrier::Sender,
            directory: Directory::new(segments, JobRank(0)).unwrap(),
            registered: HandlerTable::default().registered(),
            segment_len: Arc::new(|_| 0),
        };
        Smp::new(file.as_fd(), config)
    };
    let refused = |rank, first, ranks| {
        let error = made(rank, first, ranks).err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        let error = error.into_inner().unwrap();
        error.downcast_ref::<SmpConfigError>().unwrap().clone()
    };
    for (rank, first, ranks) in [(1 << 30, 0, 1), (1, 0, 1), (4, 5, 2), (7, 5, 2), (0, 0, 0)] {
        let (rank, first) = (JobRank(rank), JobRank(first));
        let error = SmpConfigError::Rank { rank, first, ranks };
        assert_eq!(refused(rank.0, first.0, ranks), error);
    }
    for (first, ranks) in [(0, MOST_RANKS + 1), (u32::MAX - 1, 2), (0, u32::MAX)] {
        let error = SmpConfigError::Ranks {
            first: JobRank(first),
            ranks,
        };
        assert_eq!(refused(first, first, ranks), error);
    }
    assert!(made(6, 5, 2).is_ok());
}

#[test]
#[should_panic(expected = "a rank of the neighborhood")]
fn waking_a_rank_without_shared_memory_panics() {
    let pair = pair();
    let [a, _] = &pair.ranks;
    a.shared_cells()
        .unwrap()
        .wake([JobRank(1 << 30)].into_iter());
}

/// A rank that waits for ranks that run elsewhere, or have come, keeps its processor.
#[test]
fn a_processor_is_needed_by_ranks_that_waited_there_and_have_not_come() {
    let pair = pair();
    let [a, b] = pair
        .ranks
        .each_ref()
        .map(|rank| rank.shared_cells().unwrap());
    let [of_a, of_b] = [JobRank(0), JobRank(1)];
    let (slot, call) = (1, 0);
    // The place of `b` is not known.
    assert!(a.needs(4, slot, &[of_b], call));
    // It waits elsewhere, and finds that this one does, too.
    assert!(!b.needs(5, slot, &[of_a], call));
    assert!(!a.needs(4, slot, &[of_b], call));
    // Both in one place, until one has come.
    assert!(b.needs(4, slot, &[of_b, of_a], call));
    assert!(a.needs(4, slot, &[of_b], call));
    b.enter(slot, call, Entry::default(), &[]);
    assert!(!a.needs(4, slot, &[of_b], call));
    assert!(a.needs(4, slot, &[of_b], call + 1));
    // The processor on which this thread runs.
    let _ = a.needs_processor(slot, &[of_b], call);
    assert!(!a.needs_processor(slot, &[], call));
}

/// A payload as a conduit of more ranks, or of another kind, may have prepared it.
fn prepared_elsewhere(to: u32, nargs: usize, position: usize, extent: u32) -> Prepared {
    let want = PrepareRequest {
        to: JobRank(to),
        class: MessageClass::Request,
        nargs,
        least: 0,
        most: 0,
        offset: None,
    };
    // SAFETY: the buffer has no bytes.
    unsafe { Prepared::new(want, core::ptr::null_mut(), 0, position, extent) }
}

#[test]
fn a_payload_of_another_conduit_is_refused() {
    let pair = pair();
    let [a, _] = &pair.ranks;
    let refused = |act: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(act)).unwrap_err();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or(payload.downcast_ref::<String>().map(|text| &**text));
        let expected = "is committed or canceled where it was prepared";
        assert!(text.unwrap().contains(expected), "{text:?}");
    };
    let end = RING_UNITS as usize * 2;
    for (to, position, extent) in [
        (2, 0, 1),
        (1, end, 1),
        (1, end - 2, 2),
        (1, 1, 1),
        (1, usize::MAX - 1, 1),
        (1, 0, 0),
        (1, 0, u32::MAX),
    ] {
        refused(&|| a.cancel(prepared_elsewhere(to, 0, position, extent)));
        let commit = || {
            let prepared = prepared_elsewhere(to, 0, position, extent);
            a.commit(prepared, HandlerIndex(130), &[], 0);
        };
        refused(&commit);
    }
    // The header of so many arguments is longer than the reserved room.
    refused(&|| {
        a.commit(
            prepared_elsewhere(1, 8, 0, 1),
            HandlerIndex(130),
            &[0; 8],
            0,
        )
    });
}

#[test]
#[should_panic(expected = "a rank of the neighborhood")]
fn nothing_is_prepared_for_a_rank_that_shares_no_memory() {
    let pair = pair();
    let [a, _] = &pair.ranks;
    let want = PrepareRequest {
        to: JobRank(1 << 30),
        class: MessageClass::Request,
        nargs: 0,
        least: 0,
        most: 8,
        offset: None,
    };
    _ = a.prepare(&want);
}
