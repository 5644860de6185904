//! The receiving half by itself: what it says of the next bytes, and how much room there is.

use super::super::receive::{LONG_PAYLOAD, READ_BEHIND};
use super::*;

/// A frame with a payload, at a position of its stream.
fn frame(kind: Kind, position: u64, args: &[u32], payload: &[u8], fields: Fields) -> Vec<u8> {
    let mut head = HeadBytes::new(kind, 0, args, payload.len(), &fields);
    head.set_position(position);
    [head.as_bytes(), payload].concat()
}

fn put(position: u64, payload: &[u8]) -> Vec<u8> {
    let fields = Fields {
        rest: payload.len() as u64,
        ..Fields::default()
    };
    frame(Kind::Put, position, &[], payload, fields)
}

fn short(position: u64) -> Vec<u8> {
    frame(
        Kind::ShortRequest,
        position,
        &[1, 2],
        &[],
        Fields::default(),
    )
}

fn stream_of(bytes: &[u8]) -> ReceiveStream {
    let mut stream = ReceiveStream::new(LONG_BYTES);
    assert_eq!(stream.feed(bytes), bytes.len());
    stream
}

/// Bytes of each piece into which the next bytes are read.
fn room(stream: &mut ReceiveStream) -> Vec<usize> {
    let mut pieces = Pieces::new();
    stream.room(&mut pieces);
    pieces.as_slice().iter().map(|piece| piece.len).collect()
}

#[test]
fn the_next_kind_is_known_where_a_frame_begins() {
    let mut stream = ReceiveStream::new(LONG_BYTES);
    let kind = |stream: &ReceiveStream| stream.next_kind();
    assert_eq!(kind(&stream), None);
    let long = put(0, &pattern(1, 100));
    // The head and a part of the payload.
    assert_eq!(stream.feed(&long[..60]), 60);
    assert_eq!(kind(&stream), Some(Kind::Put.into()));
    let Ok(Next::Begun(begun)) = stream.next() else {
        panic!("the payload has begun");
    };
    let mut place = vec![0; 100];
    // SAFETY: the place stays.
    unsafe { stream.place(begun, NonNull::from(&mut place[0])) };
    assert_eq!(stream.placed_head(), &long[..long.len() - 100]);
    assert_eq!(kind(&stream), None, "a payload comes");
    let mut pieces = Pieces::new();
    stream.room(&mut pieces);
    let rest = &long[60..];
    assert_eq!(pieces.as_slice()[0].len, rest.len());
    // SAFETY: the piece is the rest of the place.
    unsafe { core::ptr::copy_nonoverlapping(rest.as_ptr(), pieces.as_slice()[0].at, rest.len()) };
    stream.filled(rest.len());
    assert_eq!(stream.next(), Ok(Next::Placed(begun)));
    assert!(place == pattern(1, 100));
    stream.pass_behind();
    assert_eq!(stream.placed_head(), []);
    assert_eq!(stream.taken(), long.len() as u64);

    // One that goes nowhere.
    let long = put(stream.taken(), &pattern(2, 100));
    assert_eq!(stream.feed(&long[..60]), 60);
    let Ok(Next::Begun(begun)) = stream.next() else {
        panic!("the payload has begun");
    };
    stream.skip(begun);
    assert_eq!(kind(&stream), None, "it is passed over");
    assert_eq!(stream.next(), Ok(Next::More));
    assert_eq!(kind(&stream), None, "not all of it");
    stream.feed(&long[60..]);
    assert_eq!(stream.next(), Ok(Next::Skipped(begun)));
    assert_eq!(kind(&stream), None, "it was not used");
    stream.pass_behind();
    stream.feed(&short(stream.taken()));
    assert_eq!(kind(&stream), Some(Kind::ShortRequest.into()));
}

#[test]
fn whole_frames_are_passed_by_their_lengths() {
    let first = short(0);
    let second = put(first.len() as u64, &[7; 30]);
    let end = (first.len() + second.len()) as u64;
    let third = short(end);
    let mut stream = stream_of(&[first, second, third].concat());
    let request = WholeShort::read(stream.bytes(), 0).expect("a short request");
    stream.pass_short(&request);
    let position = stream.taken();
    let whole = WholePut::read(stream.bytes(), position as u32).expect("a put");
    assert_eq!((position, whole.length), (request.len() as u64, 30));
    stream.pass_put(&whole);
    assert_eq!(stream.taken(), end);
    let request = WholeShort::read(stream.bytes(), end as u32).expect("a short request");
    stream.pass_short(&request);
    assert!(stream.is_empty());
}

/// So that the payload behind it goes to its place, too.
#[test]
fn little_is_read_after_a_payload_that_could_have_gone_to_its_place() {
    let mut empty = ReceiveStream::new(LONG_BYTES);
    let all = room(&mut empty);
    for (len, expected) in [
        (LONG_PAYLOAD - 1, all.clone()),
        (LONG_PAYLOAD, vec![READ_BEHIND]),
    ] {
        let bytes = put(0, &pattern(0, len));
        let mut stream = stream_of(&bytes);
        let whole = WholePut::read(stream.bytes(), 0).expect("a put");
        stream.pass_put(&whole);
        assert_eq!(room(&mut stream), expected, "{len}");
        let mut stream = stream_of(&bytes);
        let Ok(Next::Whole(whole)) = stream.next() else {
            panic!("the frame is whole");
        };
        stream.pass(&whole);
        assert_eq!(room(&mut stream), expected, "{len}");
        // Until something else comes.
        stream.feed(&short(stream.taken())[..1]);
        assert!(room(&mut stream)[0] > READ_BEHIND);
    }
    // A long medium is kept here, with room for another.
    let bytes = frame(
        Kind::MediumRequest,
        0,
        &[],
        &pattern(0, LONG_PAYLOAD),
        Fields::default(),
    );
    let mut stream = stream_of(&bytes);
    let Ok(Next::Whole(whole)) = stream.next() else {
        panic!("the frame is whole");
    };
    stream.pass(&whole);
    assert_eq!(room(&mut stream), [bytes.len() + READ_BEHIND]);
    // Nothing is no other frame.
    stream.filled(0);
    assert_eq!(room(&mut stream), [bytes.len() + READ_BEHIND]);
}

/// A payload behind which the rest of the staging area is, and one on its way to its place.
#[test]
fn after_a_payload_at_its_place_little_is_read() {
    let long = put(0, &pattern(1, 100));
    let mut stream = stream_of(&long[..60]);
    let Ok(Next::Begun(begun)) = stream.next() else {
        panic!("the payload has begun");
    };
    let mut place = [0; 100];
    // SAFETY: the place stays.
    unsafe { stream.place(begun, NonNull::from(&mut place[0])) };
    assert_eq!(room(&mut stream), [long.len() - 60, READ_BEHIND]);
    // All that is missing, without the bytes of it: they are not looked at.
    stream.filled(long.len() - 60);
    assert!(matches!(stream.next(), Ok(Next::Placed(_))));
    stream.pass_behind();
    assert_eq!(room(&mut stream), [READ_BEHIND]);
}

#[test]
fn data_of_a_get_is_known_on_its_way() {
    let fields = Fields {
        op: 7,
        rest: 100,
        ..Fields::default()
    };
    for kind in [Kind::Got, Kind::Put] {
        let bytes = frame(kind, 0, &[], &pattern(1, 100), fields);
        let mut stream = stream_of(&bytes[..bytes.len() - 20]);
        assert!(!stream.is_placing_data(7));
        let Ok(Next::Begun(begun)) = stream.next() else {
            panic!("the payload has begun");
        };
        let mut place = [0; 100];
        // SAFETY: the place stays.
        unsafe { stream.place(begun, NonNull::from(&mut place[0])) };
        assert_eq!(stream.is_placing_data(7), kind == Kind::Got);
        assert!(!stream.is_placing_data(8));
        stream.filled(20);
        assert!(!stream.is_placing_data(7), "all of it is there");
    }
}

#[test]
fn frames_that_come_again_are_passed_over_and_counted() {
    let len = short(0).len() as u64;
    let frames: Vec<Vec<u8>> = (0..3).map(|n| short(len * n)).collect();
    let mut stream = stream_of(&frames.concat());
    for n in 1..=3 {
        let Ok(Next::Whole(whole)) = stream.next() else {
            panic!("the frame is whole");
        };
        stream.pass(&whole);
        assert_eq!(stream.taken(), n * len);
    }
    // All of them once more, and a new one.
    stream.reset();
    stream.feed(&[frames.concat(), short(3 * len)].concat());
    assert!(matches!(stream.next(), Ok(Next::Whole(_))));
    assert_eq!((stream.taken(), stream.repeated), (3 * len, 3));

    // One that was never sent, and those that only overlap with what was taken.
    for position in [4 * len, 3 * len + 1, 2 * len + 1, u64::MAX - 5] {
        let mut stream = stream_of(&frames.concat());
        for _ in 0..3 {
            let Ok(Next::Whole(whole)) = stream.next() else {
                panic!("the frame is whole");
            };
            stream.pass(&whole);
        }
        stream.feed(&short(position));
        assert!(stream.next().is_err(), "{position}");
    }
}
