//! Heads as they are written, read and refused.

use super::*;
use proptest::prelude::*;

const KINDS: [Kind; 15] = [
    Kind::Control,
    Kind::ShortRequest,
    Kind::MediumRequest,
    Kind::LongRequest,
    Kind::ShortReply,
    Kind::MediumReply,
    Kind::LongReply,
    Kind::Put,
    Kind::Get,
    Kind::Got,
    Kind::Refused,
    Kind::Body,
    Kind::System,
    Kind::Close,
    Kind::Closed,
];

/// All fields that a kind has, with values of their own.
fn fields_of(kind: Kind) -> Fields {
    let has = |kinds: &[Kind]| u64::from(kinds.contains(&kind));
    use Kind::{Body, Control, Get, Got, LongReply, LongRequest, Put, Refused, System};
    Fields {
        offset: 0x1122_3344_5566_7788
            * has(&[
                Control,
                LongRequest,
                LongReply,
                Put,
                Get,
                Got,
                Refused,
                Body,
                System,
            ]),
        rest: 77 * has(&[Control, Put, Get, Refused, Body]),
        segment: 78 * has(&[Refused]),
        position: 79 * has(&[Refused, Body]),
        op: 80 * has(&[Control, Get, Got, Refused, Body]) as u32,
        wanted: 81 * has(&[Control, Get, Body]) as u32,
    }
}

#[test]
fn a_head_is_read_as_it_was_written_once_it_is_all_there() {
    for kind in KINDS {
        let args: &[u32] = if kind.message().is_some() {
            &[1, u32::MAX]
        } else {
            &[]
        };
        let length = if kind.most(9) > 0 { 5 } else { 0 };
        let handler = if args.is_empty() { 0 } else { 200 };
        let fields = fields_of(kind);
        let mut head = HeadBytes::new(kind, handler, args, length, &fields);
        head.set_position(0xff_0000_0003);
        head.request_ack();
        let bytes = head.as_bytes();
        for short in 0..bytes.len() {
            assert_eq!(
                Frame::read(&bytes[..short], 9),
                Ok(None),
                "{kind:?} {short}"
            );
        }
        let read = Frame::read(bytes, 9).unwrap().unwrap();
        assert_eq!(
            (read.kind, read.handler, read.length),
            (kind, handler, length)
        );
        assert_eq!(
            (read.position, read.wants_ack, read.fields),
            (3, true, fields)
        );
        assert_eq!(
            (read.head_len(), read.len()),
            (bytes.len(), bytes.len() + length)
        );
        assert_eq!(read.args(bytes, &mut [0; MAX_CARRIED]), args);
    }
}

#[test]
fn invalid_heads_are_refused() {
    let refused = |at: usize, byte: u8, kind: Kind| {
        let mut bytes = HeadBytes::new(kind, 0, &[], 0, &Fields::default()).bytes;
        bytes[at] = byte;
        Frame::read(&bytes, 9).unwrap_err()
    };
    assert_eq!(refused(0, 0, Kind::Put), RecordError::Kind(0));
    assert_eq!(refused(0, 16, Kind::Put), RecordError::Kind(16));
    // A body of nothing, and a payload beside the stream where there is none, or none that may be.
    assert_eq!(refused(0, 12, Kind::Put), RecordError::Kind(12));
    assert_eq!(refused(3, 2, Kind::Put), RecordError::Kind(8));
    assert_eq!(refused(3, 2, Kind::LongRequest), RecordError::Kind(4));
    // An epoch that ends elsewhere than in a control frame.
    assert_eq!(refused(3, 4, Kind::Put), RecordError::Kind(8));
    assert_eq!(refused(3, 4, Kind::System), RecordError::Kind(13));
    assert_eq!(refused(3, 8, Kind::Control), RecordError::Kind(1));
    assert_eq!(refused(3, 4, Kind::Closed), RecordError::Kind(15));
    assert_eq!(refused(1, 1, Kind::Close), RecordError::Kind(14));
    assert_eq!(refused(2, 18, Kind::ShortRequest), RecordError::Args(18));
    assert_eq!(refused(2, 1, Kind::Put), RecordError::Kind(8));
    assert_eq!(refused(1, 1, Kind::Get), RecordError::Kind(9));
    assert_eq!(refused(3, 2, Kind::ShortRequest), RecordError::Kind(2));
    assert_eq!(refused(24, 1, Kind::Got), RecordError::Kind(10));
    assert_eq!(refused(48, 1, Kind::Refused), RecordError::Kind(11));
    let mut control = HeadBytes::new(Kind::Control, 0, &[], 0, &Fields::default());
    control.end_epoch();
    assert!(Frame::read(control.as_bytes(), 9).unwrap().unwrap().epoch);
    for (kind, max) in [
        (Kind::ShortReply, 0),
        (Kind::LongRequest, 9),
        (Kind::Get, 0),
    ] {
        let len = 10;
        assert_eq!(refused(4, 10, kind), RecordError::Payload { len, max });
    }
}

proptest! {
    /// The fast path for puts yields the same frame as the general one.
    #[test]
    fn puts_are_seen_at_once(
        len in 0usize..40, rest in 0u64..50, cut in 0usize..80, position: u64, wants_ack: bool,
        change in proptest::option::weighted(0.3, (0usize..28, any::<u8>())),
    ) {
        let fields = Fields { offset: 5, rest, ..Fields::default() };
        let mut head = HeadBytes::new(Kind::Put, 0, &[], len, &fields);
        head.set_position(position);
        if wants_ack {
            head.request_ack();
        }
        let mut bytes = head.as_bytes().to_vec();
        bytes.resize(bytes.len() + len, 7);
        if let Some((at, byte)) = change {
            bytes[at] = byte;
        }
        bytes.truncate(cut.max(1));
        let frame = Frame::read(&bytes, 0).ok().flatten();
        let frame = frame.filter(|f| f.kind == Kind::Put && !f.beside && f.here() <= bytes.len());
        let frame = frame.filter(|f| f.position == position as u32 && f.length > 0);
        let frame = frame.filter(|f| f.length as u64 <= f.fields.rest);
        let expected = frame.map(|f| WholePut {
            wants_ack: f.wants_ack,
            length: f.length,
            offset: f.fields.offset,
            rest: f.fields.rest,
        });
        prop_assert_eq!(WholePut::read(&bytes, position as u32), expected);
    }

    /// Likewise short requests.
    #[test]
    fn shorts_are_seen_at_once(
        args in proptest::collection::vec(any::<u32>(), 0..=MAX_CARRIED), handler: u8, cut in 0usize..90, position: u64, wants_ack: bool,
        change in proptest::option::weighted(0.3, (0usize..12, any::<u8>())),
    ) {
        let mut head = HeadBytes::new(Kind::ShortRequest, handler, &args, 0, &Fields::default());
        head.set_position(position);
        if wants_ack {
            head.request_ack();
        }
        let mut bytes = head.as_bytes().to_vec();
        if let Some((at, byte)) = change {
            bytes[at] = byte;
        }
        bytes.truncate(cut.max(1));
        let frame = Frame::read(&bytes, 0).ok().flatten();
        let frame = frame.filter(|f| f.kind == Kind::ShortRequest && f.position == position as u32);
        let expected = frame.map(|f| WholeShort {
            wants_ack: f.wants_ack,
            handler: f.handler,
            nargs: f.nargs,
        });
        let read = WholeShort::read(&bytes, position as u32);
        prop_assert_eq!(read, expected);
        if let (Some(short), Some(frame)) = (read, frame) {
            prop_assert_eq!(short.len(), frame.len());
            let args = short.args(&bytes, &mut [0; MAX_CARRIED]).to_vec();
            prop_assert_eq!(args, frame.args(&bytes, &mut [0; MAX_CARRIED]).to_vec());
        }
    }

    #[test]
    fn bytes_from_anywhere_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..14) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Ok(Some(frame)) = Frame::read(&bytes, 4096) {
            prop_assert!(frame.head_len() <= bytes.len());
            prop_assert!(frame.length <= MAX_FRAGMENT);
        }
    }
}
