//! The parts of a stream by themselves, each against a model of few lines.

use super::super::bodies::MOST_BODIES;
use super::super::ring::Ring;
use super::super::send::{BURST_BYTES, BURST_EXTENTS};
use super::super::{Aside, Bodies, Cursor, Grant, Parked, Piece, Wanted};
use super::*;
use crate::channel::frame::LARGEST_CHARGE;

/// Bytes of a ring, as its pieces give them.
fn in_ring(ring: &mut Ring, from: u64, len: usize) -> Vec<u8> {
    let mut pieces = Pieces::new();
    ring.pieces(from, len, &mut pieces);
    assert_eq!(pieces.bytes(), len);
    let mut bytes = Vec::new();
    for piece in pieces.as_slice() {
        assert!(piece.len > 0);
        // SAFETY: the ring keeps its bytes, and nothing else has it.
        bytes.extend(unsafe { core::slice::from_raw_parts(piece.at, piece.len) });
    }
    bytes
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(usize),
    PushWith(usize),
    PushBoth(usize, usize),
    /// A head, and bytes that are written later, in two parts.
    PushHead(usize, usize),
    Release(usize),
    Change(usize),
    Free,
}

fn step() -> impl Strategy<Value = Step> {
    let (len, head) = (0usize..3000, 1usize..60);
    prop_oneof![
        (1usize..3000).prop_map(Step::Push),
        len.clone().prop_map(Step::PushWith),
        (head.clone(), len.clone()).prop_map(|(head, len)| Step::PushBoth(head, len)),
        (head, len.clone()).prop_map(|(head, len)| Step::PushHead(head, len)),
        (0usize..9000).prop_map(Step::Release),
        len.prop_map(Step::Change),
        Just(Step::Free),
    ]
}

proptest! {
    #[test]
    fn a_ring_keeps_what_is_in_use(steps in prop::collection::vec(step(), 1..60)) {
        let mut ring = Ring::new();
        // The bytes in use, and the position of the first.
        let (mut model, mut tail) = (Vec::new(), 0u64);
        for (n, step) in (0u32..).zip(steps) {
            match step {
                Step::Push(len) => {
                    let bytes = pattern(n, len);
                    ring.push(&bytes);
                    model.extend(bytes);
                }
                Step::PushWith(len) => {
                    let bytes = pattern(n, len);
                    let mut filled = 0;
                    ring.push_with(len, |at, place| {
                        assert_eq!(at, filled);
                        filled += place.len();
                        place.copy_from_slice(&bytes[at..at + place.len()]);
                    });
                    prop_assert_eq!(filled, len);
                    model.extend(bytes);
                }
                Step::PushBoth(head, len) => {
                    let bytes = pattern(n, head + len);
                    let (head, body) = bytes.split_at(head);
                    let mut filled = 0;
                    ring.push_both(head, len, |at, place| {
                        assert_eq!(at, filled);
                        filled += place.len();
                        place.copy_from_slice(&body[at..at + place.len()]);
                    });
                    prop_assert_eq!(filled, len);
                    model.extend(bytes);
                }
                Step::PushHead(head, len) => {
                    let bytes = pattern(n, head + len);
                    let position = ring.push_head(&bytes[..head], len);
                    model.extend(&bytes[..head]);
                    prop_assert_eq!(position, tail + model.len() as u64);
                    let body = &bytes[head..];
                    let (first, second) = body.split_at(len / 3);
                    ring.fill(position + first.len() as u64, SharedBytes::from_slice(second));
                    ring.fill(position, SharedBytes::from_slice(first));
                    model.extend(body);
                }
                Step::Release(len) => {
                    let len = len.min(model.len());
                    model.drain(..len);
                    tail += len as u64;
                    ring.release(tail);
                }
                Step::Change(at) => {
                    if let Some(byte) = model.get_mut(at) {
                        *byte ^= 0x5a;
                        *ring.byte_mut(tail + at as u64) ^= 0x5a;
                    }
                }
                Step::Free => {
                    let capacity = ring.capacity();
                    ring.free();
                    let expected = if model.is_empty() { 0 } else { capacity };
                    prop_assert_eq!(ring.capacity(), expected);
                }
            }
            prop_assert_eq!(ring.used(), model.len());
            prop_assert!(ring.capacity() >= model.len());
            let enough = model.len().next_power_of_two().max(4096);
            prop_assert!(ring.capacity() == 0 || ring.capacity().is_power_of_two());
            prop_assert!(model.is_empty() || ring.capacity() >= enough);
            prop_assert!(in_ring(&mut ring, tail, model.len()) == model);
            // The end of it, too.
            let some = model.len() / 2;
            prop_assert!(in_ring(&mut ring, tail + some as u64, model.len() - some) == model[some..]);
        }
    }
}

#[test]
fn a_ring_grows_to_what_it_needs_and_no_further() {
    let mut ring = Ring::new();
    assert_eq!(ring.capacity(), 0);
    ring.push(&[1]);
    assert_eq!(ring.capacity(), 4096);
    ring.push(&[2; 4095]);
    assert_eq!((ring.capacity(), ring.used()), (4096, 4096));
    // Exactly as much as there is goes round.
    ring.release(100);
    ring.push(&[3; 100]);
    assert_eq!(ring.capacity(), 4096);
    ring.push_head(&[4], 0);
    assert_eq!(ring.capacity(), 8192);
}

fn pieces_of(parts: &mut [Vec<u8>]) -> Pieces {
    let mut pieces = Pieces::new();
    for part in parts {
        pieces.add(part.as_mut_ptr(), part.len());
    }
    pieces
}

fn gathered(pieces: &Pieces, room: usize) -> Option<Vec<u8>> {
    let mut place = vec![0u8; room];
    let uninit: &mut [core::mem::MaybeUninit<u8>] =
        // SAFETY: the same bytes, into which initialized ones alone are written.
        unsafe { core::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), room) };
    // SAFETY: the pieces are parts of vectors that live.
    let len = unsafe { pieces.gather(uninit) }?;
    place.truncate(len);
    Some(place)
}

proptest! {
    #[test]
    fn pieces_are_the_bytes_one_behind_the_other(
        lens in prop::collection::vec(0usize..40, 0..20),
        cut in any::<prop::sample::Index>(),
        room in 0usize..50,
    ) {
        let mut parts: Vec<Vec<u8>> = (0..).zip(&lens).map(|(n, len)| pattern(n, *len)).collect();
        let all = parts.concat();
        let pieces = pieces_of(&mut parts);
        prop_assert_eq!(pieces.bytes(), all.len());
        prop_assert_eq!(pieces.as_slice().len(), lens.iter().filter(|len| **len > 0).count());
        let cut = cut.index(all.len() + 1);
        prop_assert_eq!(gathered(&pieces, all.len()), Some(all.clone()));
        prop_assert_eq!(gathered(&pieces, all.len() + 3), Some(all.clone()));
        if let Some(less) = all.len().checked_sub(1) {
            prop_assert_eq!(gathered(&pieces, less), None);
        }
        let first = pieces.first_bytes(cut);
        prop_assert_eq!(gathered(&first, cut), Some(all[..cut].to_vec()));
        let rest = pieces.behind(cut);
        prop_assert_eq!(gathered(&rest, all.len()), Some(all[cut..].to_vec()));

        let mut cursor = Cursor::new(&pieces);
        let mut taken = vec![0; room];
        // SAFETY: the pieces are parts of vectors that live.
        unsafe { cursor.take(&mut taken) };
        let both = room.min(all.len());
        prop_assert_eq!(&taken[..both], &all[..both]);
        // Where it ended, the next copy begins.
        let bytes = vec![0xee; all.len()];
        // SAFETY: as above, and nothing else looks at them.
        let filled = unsafe { cursor.fill(&bytes) };
        prop_assert_eq!(filled, all.len() - both);
        let now = parts.concat();
        prop_assert_eq!(&now[..both], &all[..both]);
        prop_assert!(now[both..].iter().all(|byte| *byte == 0xee));
    }
}

#[test]
fn the_first_bytes_leave_room_for_one_more_place() {
    let mut parts = vec![vec![7]; 32];
    let pieces = pieces_of(&mut parts);
    let mut first = pieces.first_bytes(100);
    assert_eq!((first.bytes(), first.as_slice().len()), (31, 31));
    let mut last = [9];
    first.add(last.as_mut_ptr(), 1);
    let expected = Piece {
        at: last.as_mut_ptr(),
        len: 1,
    };
    assert_eq!(first.as_slice().last(), Some(&expected));
}

/// The head of a put with so many bytes elsewhere.
fn put(position: u32, offset: u64, length: usize) -> Frame {
    let fields = Fields {
        offset,
        rest: length as u64,
        ..Fields::default()
    };
    Frame {
        kind: Kind::Put,
        handler: 0,
        nargs: 0,
        wants_ack: false,
        epoch: false,
        beside: true,
        length,
        position,
        fields,
    }
}

#[test]
fn a_body_and_its_head_find_each_other_in_either_order() {
    let mut bodies = Bodies::default();
    assert!(bodies.is_empty());
    assert_eq!(bodies.complete(100), 100);
    // The head first.
    let (one, two) = (put(10, 1, 5), put(50, 2, 6));
    assert_eq!(bodies.head(10, &one), Ok(None));
    assert_eq!(bodies.head(50, &two), Ok(None));
    assert!(!bodies.is_empty());
    assert_eq!(
        [100, 10, 5].map(|taken| bodies.complete(taken)),
        [10, 10, 5]
    );
    assert_eq!(bodies.wants(10, 60, &one), Ok(Wanted::Yes));
    assert!(bodies.wants(10, 60, &two).is_err(), "another head's");
    assert_eq!(bodies.body(10, &one, true), Ok(Some(one)));
    assert_eq!(bodies.complete(100), 50);
    // It has come before.
    assert_eq!(bodies.wants(10, 60, &one), Ok(Wanted::No));
    assert!(bodies.is_past(10, 60) && !bodies.is_past(50, 60) && !bodies.is_past(60, 60));
    assert_eq!(bodies.body(50, &two, false), Ok(Some(two)));
    assert!(bodies.is_empty());
    // The body first.
    let three = put(70, 3, 7);
    assert_eq!(bodies.wants(70, 70, &three), Ok(Wanted::Yes));
    assert_eq!(bodies.body(70, &three, false), Ok(None));
    assert!(!bodies.is_empty());
    assert_eq!(bodies.wants(70, 70, &three), Ok(Wanted::No));
    assert_eq!(bodies.complete(100), 100, "its head is not taken");
    assert_eq!(bodies.head(70, &three), Ok(Some(false)));
    assert!(bodies.is_empty());
    assert_eq!(bodies.body(90, &three, true), Ok(None));
    let other = bodies.head(90, &put(90, 4, 7)).unwrap_err();
    assert!(matches!(other, RecordError::Position { .. }), "{other}");
}

#[test]
fn heads_and_bodies_belong_together_in_all_they_say() {
    let head = put(10, 1, 5);
    let kind = Frame {
        kind: Kind::MediumRequest,
        ..head
    };
    for body in [kind, put(10, 1, 6), put(10, 2, 5)] {
        let mut bodies = Bodies::default();
        bodies.head(10, &head).unwrap();
        assert!(bodies.wants(10, 20, &body).is_err(), "{body:?}");
    }
}

#[test]
fn bodies_without_a_head_go_when_the_stream_has_passed_them() {
    let mut bodies = Bodies::default();
    for position in [10, 20, 30] {
        let body = put(position, 1, 5);
        assert_eq!(bodies.body(position.into(), &body, true), Ok(None));
    }
    bodies.pass(20);
    let is_there = |bodies: &Bodies, position: u32| {
        bodies.wants(position.into(), 0, &put(position, 1, 5)) == Ok(Wanted::No)
    };
    assert_eq!(
        [10, 20, 30].map(|at| is_there(&bodies, at)),
        [false, true, true]
    );
    bodies.pass(31);
    assert!(bodies.is_empty());
}

#[test]
fn heads_and_bodies_that_wait_are_bounded_together() {
    let mut bodies = Bodies::default();
    for position in 0..MOST_BODIES as u32 - 1 {
        bodies.head(position.into(), &put(position, 1, 5)).unwrap();
    }
    let next = MOST_BODIES as u32;
    assert_eq!(bodies.body(next.into(), &put(next, 1, 5), true), Ok(None));
    let refused = bodies.head((next + 1).into(), &put(next + 1, 1, 5));
    let expected = RecordError::Account {
        what: "payloads beside the stream",
        got: MOST_BODIES as u64 + 1,
        most: MOST_BODIES as u64,
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn a_grant_allows_what_its_window_holds() {
    let window = LARGEST_CHARGE + 100;
    let mut grant = Grant::new(window);
    assert!(grant.allows(window, 0) && !grant.allows(window + 1, 0));
    assert!(grant.allows(window - 30, 30) && !grant.allows(window - 30, 31));
    assert!(!grant.is_short());
    grant.use_up(window / 2);
    assert!(!grant.is_short(), "half of it is left");
    grant.use_up(1);
    assert!(grant.is_short());
    let used = (window / 2 + 1) as u64;
    assert_eq!((grant.in_use(), grant.totals()), (used, (used, 0)));
    assert!(grant.allows(window - window / 2 - 1, 0));
    assert!(!grant.allows(window - window / 2, 0));
    let refused = grant.handle(used + 1).unwrap_err();
    let expected = RecordError::Account {
        what: "requests are handled",
        got: used + 1,
        most: used,
    };
    assert_eq!(refused, expected);
    grant.handle(used).unwrap();
    // An old count says nothing.
    grant.handle(used - 1).unwrap();
    assert_eq!((grant.in_use(), grant.totals()), (0, (used, used)));
    assert_eq!((grant.take_peak(), grant.take_peak()), (used, 0));
    grant.use_up(7);
    assert_eq!(grant.take_peak(), 7, "of what is under way now");
    grant.set_window(10);
    assert!(grant.allows(3, 0) && !grant.allows(4, 0));
}

#[test]
fn what_arrives_is_within_the_window() {
    let mut parked = Parked::new(100);
    parked.arrive(60).unwrap();
    parked.arrive(40).unwrap();
    assert_eq!((parked.owed(), parked.handled()), (100, 0));
    let refused = parked.arrive(1).unwrap_err();
    let expected = RecordError::Account {
        what: "requests are sent",
        got: 101,
        most: 100,
    };
    assert_eq!(refused, expected);
    assert_eq!((parked.take_count(), parked.take_count()), (2, 0));
    parked.handle(60);
    assert_eq!((parked.owed(), parked.handled()), (40, 60));
    parked.arrive(60).unwrap();
    assert!(parked.arrive(1).is_err());
    parked.set_window(101);
    parked.arrive(1).unwrap();
    assert_eq!(parked.take_count(), 2);
    // The peer is lost.
    parked.park(b"request");
    parked.forget();
    assert!(parked.is_empty());
    assert_eq!((parked.owed(), parked.handled()), (0, 161));
}

#[test]
fn requests_that_are_set_aside_come_out_in_order() {
    let mut parked = Parked::new(100);
    assert!(parked.is_empty());
    parked.park(b"first");
    parked.park(b"second");
    assert!(!parked.is_empty() && parked.buffer_bytes() >= 11);
    assert_eq!(parked.first(), b"firstsecond");
    parked.pass(5);
    assert_eq!(parked.first(), b"second");
    parked.free_buffer();
    assert_eq!(parked.first(), b"second", "it is in use");
    parked.pass(6);
    assert!(parked.is_empty() && parked.buffer_bytes() > 0);
    parked.free_buffer();
    assert_eq!(parked.buffer_bytes(), 0);
}

#[test]
fn what_was_handled_makes_room_for_what_is_set_aside() {
    let (mut aside, mut expected) = (Aside::default(), Vec::new());
    for n in 0..1000 {
        let bytes = pattern(n, 64);
        aside.push(&bytes);
        expected.extend(bytes);
        // Two remain.
        while expected.len() > 128 {
            aside.pass(64);
            expected.drain(..64);
        }
        assert_eq!(
            (aside.len(), &*aside.first()),
            (expected.len(), &expected[..])
        );
    }
    assert!(aside.buffer_bytes() < 1024, "{}", aside.buffer_bytes());
}

/// What a send stream says of itself: bytes in use, not written, extents, those of users, copies.
fn said(stream: &SendStream) -> [usize; 5] {
    [
        stream.used(),
        stream.unsent() as usize,
        stream.extents(),
        stream.user_extents(),
        stream.owned_bytes(),
    ]
}

#[test]
fn a_stream_says_what_is_under_way() {
    let mut pair = Pair::new();
    let stream = |pair: &Pair, end: usize| {
        let stream = &pair.ends[end].send_stream;
        let marks = [
            stream.wants_to_write(),
            stream.is_writing_control(),
            stream.is_quiescent(),
            stream.rests(),
        ];
        (said(stream), marks)
    };
    let idle = ([0; 5], [false, false, true, true]);
    assert_eq!(stream(&pair, 0), idle);
    assert_eq!(pair.ends[0].send_stream.buffer_bytes(), 0);

    pair.ends[0].send(What::Medium(100));
    let medium = pair.ends[0].send_stream.head() as usize;
    assert!(medium > 100);
    let sent = ([medium, medium, 0, 0, 0], [true, false, false, false]);
    assert_eq!(stream(&pair, 0), sent);
    let buffers = pair.ends[0].send_stream.buffer_bytes();
    assert_eq!(buffers, 4096);

    pair.ends[0].send(What::Stays(5000));
    let all = pair.ends[0].send_stream.head() as usize;
    let ring = all - 5000;
    let copy = Extent::Owned(pattern(2, 64).into(), 50);
    let head = HeadBytes::new(
        Kind::Put,
        0,
        &[],
        50,
        &Fields {
            offset: 2,
            rest: 50,
            ..Fields::default()
        },
    );
    let ring = ring + head.as_bytes().len();
    pair.ends[0].send_stream.push(head, Body::Stay(copy), false);
    let all = all + (pair.ends[0].send_stream.head() as usize - all);
    let three = ([ring, all, 2, 1, 50], [true, false, false, false]);
    assert_eq!(stream(&pair, 0), three);
    assert!(pair.ends[0].send_stream.buffer_bytes() > 4096 + 50);

    // A part, then the rest: it is the peer's to take.
    assert_eq!(pair.write(0, 10), 10);
    let part = ([ring, all - 10, 2, 1, 50], [true, false, false, false]);
    assert_eq!(stream(&pair, 0), part);
    while pair.write(0, usize::MAX) > 0 {}
    let written = ([ring, 0, 2, 1, 50], [false, false, false, false]);
    assert_eq!(stream(&pair, 0), written);

    while pair.read(1, usize::MAX) > 0 {}
    assert_eq!(pair.ends[1].receive_stream.taken() as usize, all);
    // What was taken is to be acknowledged, now.
    pair.ends[1].send_stream.set_ack(all as u64, 0);
    assert_eq!(stream(&pair, 1), ([0; 5], [false, false, true, false]));
    pair.ends[1].send_stream.ack_now();
    assert_eq!(stream(&pair, 1), ([0; 5], [true, false, true, false]));
    assert_eq!(pair.write(1, 3), 3);
    assert_eq!(stream(&pair, 1), ([0; 5], [true, true, true, false]));
    while pair.write(1, usize::MAX) > 0 {}
    assert_eq!(stream(&pair, 1), idle);

    while pair.read(0, usize::MAX) > 0 {}
    assert_eq!(stream(&pair, 0), idle);
    pair.ends[0].free_buffers();
    assert_eq!(pair.ends[0].send_stream.buffer_bytes(), 0);
}

#[test]
fn an_acknowledgement_is_requested_where_room_is_short() {
    let mut end = End::new();
    let medium = |end: &mut End, len: usize, is_short: bool| {
        let head = HeadBytes::new(Kind::MediumRequest, 0, &[], len, &Fields::default());
        let bytes = pattern(0, len);
        let body = Body::Copy(SharedBytes::from_slice(&bytes));
        end.send_stream.push(head, body, is_short)
    };
    // Sixteen frames fill the ring.
    medium(&mut end, 100, false);
    let capacity = end.send_stream.buffer_bytes() as u64;
    let head = end.send_stream.head() - 100;
    let (len, first) = (capacity / 16 - head, capacity / 16 - head - 100);
    medium(&mut end, (first - head) as usize, false);
    assert_eq!(end.send_stream.head(), capacity / 16);
    for n in 1..=15 {
        let begin = medium(&mut end, len as usize, false);
        assert_eq!(begin, n * capacity / 16);
    }
    // More than half is in use, and a quarter came since the last request.
    let mut expected = vec![false; 17];
    (expected[10], expected[14]) = (true, true);

    // The next one has a larger ring.
    for (is_short, requests) in [(false, false), (true, true), (false, false)] {
        medium(&mut end, 10, is_short);
        expected.push(requests);
    }
    let begin = end.send_stream.head();
    let put = pattern(0, 30);
    let put = end.send_stream.push_put(0, SharedBytes::from_slice(&put));
    assert_eq!(put, begin);
    expected.push(true);
    end.send(What::Stays(5000));
    expected.push(true);
    // Bytes that stay with the user came since, more than a quarter of the ring.
    medium(&mut end, 10, false);
    expected.push(true);
    medium(&mut end, 10, false);
    expected.push(false);

    let mut pipe = VecDeque::new();
    while end.write(usize::MAX, &mut pipe) > 0 {}
    let frames = frames_of(pipe.make_contiguous());
    let requests: Vec<bool> = frames.iter().map(|frame| frame.wants_ack).collect();
    assert_eq!(requests, expected);
}

/// How many bytes a burst has.
fn burst(end: &mut End) -> usize {
    let mut pieces = Pieces::new();
    end.send_stream.next_burst(&mut pieces);
    let bytes = pieces.bytes();
    end.send_stream.wrote(bytes);
    bytes
}

/// So that acknowledgements are not delayed by what a user sends.
#[test]
fn a_burst_ends_after_some_extents_or_some_bytes() {
    let mut end = End::new();
    (0..BURST_EXTENTS + 3).for_each(|_| end.send(What::Stays(20)));
    end.send(What::Short(1));
    let all = end.send_stream.head() as usize;
    let short = burst_of_short();
    let put = (all - short) / (BURST_EXTENTS + 3);
    assert_eq!(burst(&mut end), BURST_EXTENTS * put);
    assert_eq!(burst(&mut end), 3 * put + short);
    assert_eq!(burst(&mut end), 0);

    // The third has the last byte that there is room for.
    let mut end = End::new();
    let bytes = BURST_BYTES as usize;
    let lens = [bytes / 2, bytes / 2 - 1, 1, 20];
    lens.iter().for_each(|len| end.send(What::Stays(*len)));
    let head = put - 20;
    assert_eq!(burst(&mut end), bytes + 3 * head);
    assert_eq!(burst(&mut end), put);
    end.gone.clear();
}

fn burst_of_short() -> usize {
    let mut end = End::new();
    end.send(What::Short(1));
    burst(&mut end)
}

/// What the peer took from an earlier rail need not be written again, but the other rail has no
/// part of a burst.
#[test]
fn a_burst_that_has_begun_is_written_to_its_end() {
    let mut end = End::new();
    (0..3).for_each(|_| end.send(What::Short(1)));
    let all = burst(&mut end);
    let frame = all / 3;
    let taken = 2 * frame as u64;

    end.send_stream.resume(0).unwrap();
    end.send_stream.acknowledge(taken).unwrap();
    assert_eq!(end.send_stream.released(), taken);
    assert_eq!(end.send_stream.unsent() as usize, frame);
    burst(&mut end);
    end.send_stream.acknowledge(all as u64).unwrap();
    assert!(end.send_stream.is_quiescent());

    let mut end = End::new();
    (0..3).for_each(|_| end.send(What::Short(1)));
    assert_eq!(burst(&mut end), all);
    end.send_stream.resume(0).unwrap();
    let mut pieces = Pieces::new();
    end.send_stream.next_burst(&mut pieces);
    let begun = pieces.bytes() - all + 3;
    end.send_stream.wrote(begun);
    end.send_stream.acknowledge(taken).unwrap();
    assert_eq!(end.send_stream.released(), 0);
    assert_eq!(end.send_stream.unsent() as usize, all - 3);
    assert_eq!(burst(&mut end), all - 3);
    assert_eq!(end.send_stream.released(), taken);
    end.send_stream.acknowledge(all as u64).unwrap();
    assert!(end.send_stream.is_quiescent());
}

#[test]
fn a_payload_is_lent_until_it_is_kept() {
    let mut end = End::new();
    assert!(!end.send_stream.is_lent());
    let bytes = end.lend(10);
    assert!(end.send_stream.is_lent());
    end.give_back(bytes);
    assert!(!end.send_stream.is_lent());
}
