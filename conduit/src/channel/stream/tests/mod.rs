//! Two ends and the bytes between them, of which any number passes at a time, and which are lost
//! when the connection is; every message must be taken once, in order, as it was sent.

use super::{Body, Extent, Next, PAYLOAD_ALIGN, Pieces, ReceiveStream, SendStream};
use crate::channel::frame::{Fields, Frame, HeadBytes, Kind, WholePut, WholeShort};
use crate::channel::frames_in;
use crate::wire::UserBytes;
use argonet_am::record::RecordError;
use argonet_segment::SharedBytes;
use core::ptr::NonNull;
use proptest::prelude::*;
use std::collections::VecDeque;

mod beside;
mod control;
mod parts;
mod receive;

const LONG_BYTES: usize = 1 << 20;

/// A frame that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// A short with so many arguments.
    Short(usize),
    /// A medium.
    Medium(usize),
    /// A put whose bytes are copied.
    Copied(usize),
    /// A put whose bytes stay where they are.
    Stays(usize),
}

/// Byte `i` of message `n`.
fn byte(n: u32, i: usize) -> u8 {
    (n as usize * 31 + i * 7 + (i >> 8)) as u8
}

fn pattern(n: u32, len: usize) -> Vec<u8> {
    (0..len).map(|i| byte(n, i)).collect()
}

/// Those of odd lengths have heads behind which payloads are not aligned by themselves.
fn args_of_medium(n: u32, len: usize) -> Vec<u32> {
    (n..).take(1 + len % 2).collect()
}

/// Writes all that is due, in bursts of at most so many bytes each; its bytes.
fn written(stream: &mut SendStream, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut pieces = Pieces::new();
        stream.next_burst(&mut pieces);
        let mut left = most;
        for piece in pieces.as_slice() {
            let len = piece.len.min(left);
            // SAFETY: the stream keeps its bytes, and the callers those of extents.
            bytes.extend(unsafe { core::slice::from_raw_parts(piece.at, len) });
            left -= len;
        }
        stream.wrote(most - left);
        if left == most {
            return bytes;
        }
    }
}

/// The frames in these bytes, which end with one; payloads are passed over.
fn frames_of(bytes: &[u8]) -> Vec<Frame> {
    let mut receive_stream = ReceiveStream::new(LONG_BYTES);
    let (mut rest, mut frames) = (bytes, Vec::new());
    while !rest.is_empty() {
        rest = &rest[receive_stream.feed(rest)..];
        loop {
            match receive_stream.next().expect("valid frames are accepted") {
                Next::More => break,
                Next::Whole(frame) => {
                    receive_stream.pass(&frame);
                    frames.push(frame);
                }
                Next::Begun(frame) => receive_stream.skip(frame),
                Next::Placed(frame) | Next::Skipped(frame) => {
                    receive_stream.pass_behind();
                    frames.push(frame);
                }
            }
        }
    }
    assert!(receive_stream.is_empty(), "the last frame is cut off");
    frames
}

/// One end.
struct End {
    send_stream: SendStream,
    receive_stream: ReceiveStream,
    /// Sources of puts, which must stay while they are not taken.
    sources: VecDeque<(u64, Vec<u8>)>,
    /// Sources that were given back, and must not be read any more.
    gone: Vec<Vec<u8>>,
    sent: Vec<What>,
    /// Where puts go: by number.
    places: Vec<Vec<u8>>,
    taken: Vec<(u32, What)>,
    /// Reads that brought something, and mediums whose payload was not aligned.
    reads: usize,
    unaligned: usize,
}

impl End {
    fn new() -> Self {
        Self {
            send_stream: SendStream::new(),
            receive_stream: ReceiveStream::new(LONG_BYTES),
            sources: VecDeque::new(),
            gone: Vec::new(),
            sent: Vec::new(),
            places: Vec::new(),
            taken: Vec::new(),
            reads: 0,
            unaligned: 0,
        }
    }

    fn send(&mut self, what: What) {
        let n = self.sent.len() as u32;
        self.sent.push(what);
        let args: Vec<u32> = match what {
            What::Short(count) => (0..count.max(1) as u32).map(|i| n + i).collect(),
            What::Medium(len) => args_of_medium(n, len),
            What::Copied(_) | What::Stays(_) => Vec::new(),
        };
        let (kind, len) = match what {
            What::Short(_) => (Kind::ShortRequest, 0),
            What::Medium(len) => (Kind::MediumRequest, len),
            What::Copied(len) | What::Stays(len) => (Kind::Put, len),
        };
        let fields = Fields {
            offset: n.into(),
            rest: len as u64,
            ..Fields::default()
        };
        let fields = if kind == Kind::Put {
            fields
        } else {
            Fields::default()
        };
        let head = HeadBytes::new(kind, 0, &args, len, &fields);
        let bytes = pattern(n, len);
        let body = match what {
            What::Stays(_) => {
                // SAFETY: the bytes stay in `sources` until they are taken.
                Body::Stay(Extent::User(unsafe { UserBytes::new(bytes.as_ptr(), len) }))
            }
            _ if len == 0 => Body::Empty,
            _ => Body::Copy(SharedBytes::from_slice(&bytes)),
        };
        self.send_stream.push(head, body, false);
        if matches!(what, What::Stays(_)) {
            self.sources.push_back((self.send_stream.head(), bytes));
        }
    }

    /// Writes at most so many bytes into a pipe; how many.
    fn write(&mut self, most: usize, pipe: &mut VecDeque<u8>) -> usize {
        let mut pieces = Pieces::new();
        self.send_stream.next_burst(&mut pieces);
        let mut left = most;
        for piece in pieces.as_slice() {
            let len = piece.len.min(left);
            let gone = self
                .gone
                .iter()
                .any(|bytes| bytes.as_ptr_range().contains(&piece.at.cast_const()));
            assert!(!gone, "a released source is read");
            // SAFETY: the send stream keeps its pieces, and `sources` the users'.
            let bytes = unsafe { core::slice::from_raw_parts(piece.at, len) };
            pipe.extend(bytes);
            left -= len;
        }
        self.send_stream.wrote(most - left);
        self.reap();
        most - left
    }

    /// Gives sources back that are not read any more.
    fn reap(&mut self) {
        let released = self.send_stream.released();
        while self
            .sources
            .front()
            .is_some_and(|(end, _)| *end <= released)
        {
            self.gone
                .extend(self.sources.pop_front().map(|(_, bytes)| bytes));
        }
    }

    /// Reads at most so many bytes from a pipe, and takes their frames.
    fn read(&mut self, most: usize, pipe: &mut VecDeque<u8>) -> Result<usize, RecordError> {
        let mut pieces = Pieces::new();
        self.receive_stream.room(&mut pieces);
        let mut read = 0;
        for piece in pieces.as_slice() {
            let len = piece.len.min(most - read).min(pipe.len());
            let bytes: Vec<u8> = pipe.drain(..len).collect();
            // SAFETY: the receive stream's own memory, or that of `places`, which stay.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), piece.at, len) };
            read += len;
        }
        self.receive_stream.filled(read);
        self.reads += usize::from(read > 0);
        loop {
            // Every other message by the way of short requests and of puts that are whole.
            if self.taken.len().is_multiple_of(2) && self.take_quickly() {
                continue;
            }
            match self.receive_stream.next()? {
                Next::More => return Ok(read),
                Next::Whole(frame) => {
                    self.whole(&frame)?;
                    self.receive_stream.pass(&frame);
                }
                Next::Begun(frame) => {
                    // One in three goes nowhere.
                    if frame.fields.offset % 3 == 2 {
                        self.receive_stream.skip(frame);
                        continue;
                    }
                    let place = self.place(&frame);
                    // SAFETY: places are made once and stay.
                    unsafe { self.receive_stream.place(frame, place) };
                }
                Next::Placed(frame) => {
                    self.arrived(&frame);
                    self.receive_stream.pass_behind();
                }
                Next::Skipped(frame) => {
                    let n = frame.fields.offset as u32;
                    self.taken.push((n, What::Copied(frame.length)));
                    self.receive_stream.pass_behind();
                }
            }
        }
    }

    /// Takes a short request or a put that comes next and is whole.
    fn take_quickly(&mut self) -> bool {
        let kind = self.receive_stream.next_kind();
        let position = self.receive_stream.taken() as u32;
        let bytes = self.receive_stream.bytes();
        if kind == Some(Kind::Put.into())
            && let Some(put) = WholePut::read(bytes, position)
        {
            let n = put.offset as u32;
            let payload = &bytes[WholePut::HEAD..][..put.length];
            assert!(payload == pattern(n, put.length), "put {n}");
            self.taken.push((n, What::Copied(put.length)));
            self.receive_stream.pass_put(&put);
            return true;
        }
        if kind == Some(Kind::ShortRequest.into())
            && let Some(short) = WholeShort::read(bytes, position)
        {
            let mut room = [0; argonet_am::MAX_CARRIED];
            let args = short.args(bytes, &mut room);
            let n = args[0];
            assert!(args.iter().zip(n..).all(|(arg, due)| *arg == due));
            let what = What::Short(args.len());
            self.taken.push((n, what));
            self.receive_stream.pass_short(&short);
            return true;
        }
        false
    }

    fn place(&mut self, frame: &Frame) -> NonNull<u8> {
        let n = frame.fields.offset as usize;
        if self.places.len() <= n {
            self.places.resize(n + 1, Vec::new());
        }
        if self.places[n].is_empty() {
            self.places[n] = vec![0; frame.length];
        }
        NonNull::from(&mut self.places[n][0])
    }

    fn whole(&mut self, frame: &Frame) -> Result<(), RecordError> {
        if frame.kind == Kind::Control {
            self.send_stream.acknowledge(frame.fields.offset)?;
            self.reap();
            return Ok(());
        }
        if frame.kind == Kind::Put {
            let place = self.place(frame);
            let bytes = self.receive_stream.bytes()[frame.head_len()..frame.len()].as_ptr();
            // SAFETY: the place has as many bytes.
            unsafe { core::ptr::copy_nonoverlapping(bytes, place.as_ptr(), frame.length) };
            self.arrived(frame);
            return Ok(());
        }
        let bytes = &self.receive_stream.bytes()[..frame.len()];
        let mut room = [0; argonet_am::MAX_CARRIED];
        let args = frame.args(bytes, &mut room);
        let n = args[0];
        assert!(args.iter().zip(n..).all(|(arg, due)| *arg == due));
        let payload = &bytes[frame.head_len()..];
        assert!(payload == pattern(n, payload.len()), "message {n}");
        let what = match frame.kind {
            Kind::ShortRequest => What::Short(args.len()),
            _ => What::Medium(payload.len()),
        };
        let is_aligned = payload.as_ptr().addr().is_multiple_of(PAYLOAD_ALIGN);
        self.unaligned += usize::from(!payload.is_empty() && !is_aligned);
        self.taken.push((n, what));
        Ok(())
    }

    fn arrived(&mut self, frame: &Frame) {
        let n = frame.fields.offset as u32;
        assert!(
            self.places[n as usize] == pattern(n, frame.length),
            "put {n}"
        );
        self.taken.push((n, What::Copied(frame.length)));
    }

    /// Begins to lend a medium of so many bytes, which the caller gives back.
    fn lend(&mut self, len: usize) -> Vec<u8> {
        let n = self.sent.len() as u32;
        self.sent.push(What::Medium(len));
        let args = args_of_medium(n, len);
        let head = HeadBytes::new(Kind::MediumRequest, 0, &args, len, &Fields::default());
        let bytes = pattern(n, len);
        let body = Body::Lend(SharedBytes::from_slice(&bytes));
        self.send_stream.push(head, body, false);
        bytes
    }

    /// The bytes that are lent stay here, and must not be read any more.
    fn give_back(&mut self, bytes: Vec<u8>) {
        // SAFETY: they are the bytes that were lent.
        unsafe { self.send_stream.keep_lent() };
        self.gone.push(bytes);
    }

    fn free_buffers(&mut self) {
        self.send_stream.free_buffers();
        self.receive_stream.free_buffer();
    }

    /// Acknowledges taken bytes to the other end.
    fn acknowledge(&mut self) {
        self.send_stream.set_ack(self.receive_stream.taken(), 0);
        self.send_stream.ack_now();
    }
}

/// Two ends, and the bytes that were written and not read.
struct Pair {
    ends: [End; 2],
    pipes: [VecDeque<u8>; 2],
}

impl Pair {
    fn new() -> Self {
        Self {
            ends: [End::new(), End::new()],
            pipes: Default::default(),
        }
    }

    fn write(&mut self, from: usize, most: usize) -> usize {
        self.ends[from].write(most, &mut self.pipes[from])
    }

    /// Sends a medium of which so many bytes, with the bytes before it, are written before it is
    /// copied.
    fn lend(&mut self, from: usize, len: usize, most: usize) {
        let bytes = self.ends[from].lend(len);
        self.write(from, most);
        self.ends[from].give_back(bytes);
    }

    fn read(&mut self, to: usize, most: usize) -> usize {
        let read = self.ends[to].read(most, &mut self.pipes[1 - to]);
        read.expect("valid frames are accepted")
    }

    /// The connection breaks, and each end says what it had taken before the last so many frames.
    fn reset(&mut self, received: [u64; 2]) {
        self.pipes = Default::default();
        for (end, received) in self.ends.iter_mut().zip(received) {
            end.receive_stream.reset();
            end.send_stream
                .resume(received)
                .expect("no more than was written");
        }
    }

    /// Bytes that each end's peer has taken.
    fn received(&self) -> [u64; 2] {
        [
            self.ends[1].receive_stream.taken(),
            self.ends[0].receive_stream.taken(),
        ]
    }

    /// Until nothing is left; all of it has been taken.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut moved = 0;
            for end in 0..2 {
                self.ends[end].acknowledge();
                moved += self.write(end, usize::MAX) + self.read(end, usize::MAX);
            }
            if moved == 0 {
                break;
            }
        }
        for (to, from) in [(0, 1), (1, 0)] {
            let sent = self.ends[from].sent.iter().map(|what| match *what {
                What::Short(count) => What::Short(count.max(1)),
                What::Stays(len) => What::Copied(len),
                other => other,
            });
            let due: Vec<(u32, What)> = (0..).zip(sent).collect();
            assert_eq!(self.ends[to].taken, due);
            assert!(self.ends[from].send_stream.is_quiescent());
            assert_eq!(self.ends[from].send_stream.used(), 0);
            assert_eq!(self.ends[from].send_stream.extents(), 0);
            assert!(self.ends[from].sources.is_empty());
        }
    }
}

/// Some of everything, in few bytes.
const SOME: [What; 8] = [
    What::Short(1),
    What::Medium(9),
    What::Stays(40),
    What::Short(16),
    What::Copied(30),
    What::Stays(3),
    What::Stays(17),
    What::Short(2),
];

fn loaded() -> (Pair, usize) {
    let mut pair = Pair::new();
    SOME.into_iter().for_each(|what| pair.ends[0].send(what));
    let bytes = pair.ends[0].send_stream.head() as usize;
    (pair, bytes)
}

/// spec T2: writes resume where they stopped. spec T4: long payloads go straight to their
/// destination.
#[test]
fn every_size_of_writes_and_reads_will_do() {
    for (writes, reads) in [(1, 1), (1, 7), (5, 1), (3, 1000), (1000, 2)] {
        let (mut pair, bytes) = loaded();
        for _ in 0..bytes {
            pair.write(0, writes);
            pair.read(1, reads);
        }
        pair.settle();
    }
}

// spec B2: frames of every kind are sent again. spec B3: also those that had arrived.
/// The connection breaks at each byte, after the peer has read each number of bytes before it; the
/// peer reports its received bytes as of then, or as of the beginning.
#[test]
fn a_connection_that_breaks_anywhere_is_replayed() {
    let (_, bytes) = loaded();
    for written in 0..=bytes {
        for unread in [0, 1, 13, 60] {
            for stale in [false, true] {
                let (mut pair, _) = loaded();
                pair.write(0, written);
                while pair.pipes[0].len() > unread {
                    let more = pair.pipes[0].len() - unread;
                    pair.read(1, more.min(11));
                }
                let received = if stale { [0, 0] } else { pair.received() };
                pair.reset(received);
                pair.settle();
                let repeated = pair.ends[1].receive_stream.repeated;
                assert!(stale || repeated == 0, "{repeated} frames came twice");
            }
        }
    }
}

/// The end that sends has heard that more was taken than the peer's new handshake says, and is in
/// the middle of a burst when it hears more.
#[test]
fn old_news_and_new_news_cross() {
    let (_, bytes) = loaded();
    for again in 0..bytes {
        let (mut pair, _) = loaded();
        pair.write(0, usize::MAX);
        pair.read(1, usize::MAX);
        pair.ends[1].acknowledge();
        pair.reset([0, 0]);
        // All of it was taken; the peer says so while it is written again.
        pair.write(0, again);
        pair.ends[1].acknowledge();
        pair.write(1, usize::MAX);
        pair.read(0, usize::MAX);
        pair.settle();
    }
}

#[test]
fn impossible_positions_are_refused() {
    let (mut pair, bytes) = loaded();
    let wrote = pair.write(0, 20) as u64;
    let send_stream = &mut pair.ends[0].send_stream;
    assert!(matches!(
        send_stream.acknowledge(wrote + 1),
        Err(RecordError::Account { .. })
    ));
    assert!(send_stream.resume(bytes as u64).is_err());
    // A gap in the stream, and a frame that begins inside of bytes taken before.
    for from in [1, 150, 1 << 31] {
        let (mut pair, _) = loaded();
        pair.write(0, usize::MAX);
        pair.read(1, if from == 150 { 190 } else { 0 });
        let mut head = HeadBytes::new(Kind::ShortRequest, 0, &[0; 16], 0, &Fields::default());
        head.set_position(from);
        pair.ends[1].receive_stream.reset();
        let mut bytes = head.as_bytes().iter().copied().collect();
        let read = pair.ends[1].read(usize::MAX, &mut bytes);
        assert!(
            matches!(read, Err(RecordError::Position { .. })),
            "{from}: {read:?}"
        );
    }
}

/// Buffers are freed after each number of bytes, and only those of which nothing is in use.
#[test]
fn streams_go_on_without_buffers_that_were_freed() {
    let (_, bytes) = loaded();
    for written in 0..=bytes {
        let (mut pair, _) = loaded();
        pair.write(0, written);
        pair.read(1, written);
        pair.ends.iter_mut().for_each(End::free_buffers);
        assert!(
            pair.ends[0].send_stream.buffer_bytes() > 0,
            "not all is taken"
        );
        pair.settle();
        pair.ends.iter_mut().for_each(End::free_buffers);
        for end in &pair.ends {
            assert_eq!(end.send_stream.buffer_bytes(), 0);
            assert_eq!(end.receive_stream.buffer_bytes(), 0);
        }
        SOME.into_iter().for_each(|what| pair.ends[0].send(what));
        pair.settle();
    }
}

/// The connection breaks after any number of bytes that were written from where they lay; the rest,
/// or all, comes from the copy.
///
/// Before it is as much as moves it around the ring's end.
#[test]
fn a_payload_is_written_before_it_is_copied() {
    const LEN: usize = 700;
    for before in [0, 3000, 3500] {
        for most in (0..LEN + 100).step_by(7) {
            for breaks in [false, true] {
                let mut pair = Pair::new();
                pair.ends[0].send(What::Medium(before));
                pair.ends[1].acknowledge();
                pair.write(0, usize::MAX);
                pair.read(1, usize::MAX);
                pair.ends[1].acknowledge();
                pair.write(1, usize::MAX);
                pair.read(0, usize::MAX);
                pair.ends[0].send(What::Short(3));
                pair.lend(0, LEN, most);
                pair.ends[0].send(What::Short(1));
                if breaks {
                    pair.read(1, most / 2);
                    pair.reset(pair.received());
                }
                pair.settle();
            }
        }
    }
    // From there, and in one call with its head.
    let mut end = End::new();
    let bytes = end.lend(LEN);
    let mut pieces = Pieces::new();
    end.send_stream.next_burst(&mut pieces);
    let last = pieces.as_slice().last().copied();
    assert_eq!(
        last.map(|piece| (piece.at.cast_const(), piece.len)),
        Some((bytes.as_ptr(), LEN))
    );
    assert_eq!(pieces.bytes() as u64, end.send_stream.head());
    end.give_back(bytes);
    let mut pieces = Pieces::new();
    end.send_stream.next_burst(&mut pieces);
    assert_eq!(pieces.as_slice().len(), 1);
}

/// Long payloads of mediums are read to where they are aligned, and nothing is moved afterwards but
/// heads; each takes one read.
#[test]
fn long_mediums_are_read_to_where_they_are_aligned() {
    const COUNT: usize = 40;
    // In a burst, and each by itself.
    for alone in [false, true] {
        let mut pair = Pair::new();
        for n in 0..COUNT {
            pair.ends[0].send(What::Medium(65_001 + n % 3 * 2));
            pair.write(0, usize::MAX);
            if alone {
                pair.read(1, usize::MAX);
            }
        }
        while pair.read(1, usize::MAX) > 0 {}
        let End {
            reads, unaligned, ..
        } = pair.ends[1];
        // Those of the first read come unexpected.
        assert!(
            unaligned <= 2,
            "{unaligned} of {COUNT} payloads had to be moved"
        );
        assert!(reads <= COUNT + 2, "{reads} reads for {COUNT} messages");
        pair.settle();
    }
}

#[test]
fn frames_of_a_stream_are_counted() {
    let (mut pair, _) = loaded();
    pair.write(0, usize::MAX);
    let bytes: Vec<u8> = pair.pipes[0].iter().copied().collect();
    for read_bytes in [1, 7, 1000, usize::MAX] {
        let count = |bytes| frames_in(bytes, read_bytes);
        assert_eq!(count(&bytes), Ok(SOME.len()));
        assert_eq!(count(&bytes[..bytes.len() - 1]), Ok(SOME.len() - 1));
    }
    // More than is looked at at once.
    let mut long = End::new();
    (0..40).for_each(|_| long.send(What::Medium(9000)));
    let mut pipe = VecDeque::new();
    long.write(usize::MAX, &mut pipe);
    assert_eq!(frames_in(pipe.make_contiguous(), usize::MAX), Ok(40));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, What),
    /// So many bytes, of which at most so many are written before they are copied.
    Lend(usize, usize, usize),
    Write(usize, usize),
    Read(usize, usize),
    Acknowledge(usize),
    /// Buffers of which nothing is in use are freed.
    Free(usize),
    /// Whether each end says what it had taken last, or at the last break.
    Break(bool, bool),
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => (1usize..=16).prop_map(What::Short),
        2 => (0usize..300).prop_map(What::Medium),
        1 => (0usize..=65_536).prop_map(What::Medium),
        2 => (1usize..200).prop_map(What::Copied),
        1 => (1usize..60_000).prop_map(What::Copied),
        2 => (1usize..200).prop_map(What::Stays),
        1 => (1usize..300_000).prop_map(What::Stays),
    ]
}

fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0usize..64, 2 => 0usize..5000, 1 => Just(usize::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..2, what()).prop_map(|(end, what)| Step::Send(end, what)),
        1 => (0usize..2, 1usize..=65_536, bytes()).prop_map(|(end, len, n)| Step::Lend(end, len, n)),
        5 => (0usize..2, bytes()).prop_map(|(end, n)| Step::Write(end, n)),
        5 => (0usize..2, bytes()).prop_map(|(end, n)| Step::Read(end, n)),
        1 => (0usize..2).prop_map(Step::Acknowledge),
        1 => (0usize..2).prop_map(Step::Free),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(a, b)| Step::Break(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn streams_from_anywhere_do_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        kinds in proptest::collection::vec(0u8..16, 8),
    ) {
        let mut bytes = bytes;
        for (at, kind) in kinds.iter().enumerate() {
            if let Some(byte) = bytes.get_mut(at * 12) {
                *byte = *kind;
            }
        }
        let whole = frames_in(&bytes, usize::MAX);
        prop_assert!(whole.as_ref().map_or(0, |count| *count) <= bytes.len());
        // However it is read.
        prop_assert_eq!(frames_in(&bytes, 1 + bytes.len() % 13), whole);
    }

    #[test]
    fn everything_is_taken_once_and_in_order(steps in proptest::collection::vec(step(), 1..120)) {
        let mut pair = Pair::new();
        let mut before = [0, 0];
        for step in steps {
            match step {
                Step::Send(end, what) => pair.ends[end].send(what),
                Step::Lend(end, len, most) => pair.lend(end, len, most),
                Step::Write(end, most) => { pair.write(end, most); }
                Step::Read(end, most) => { pair.read(end, most); }
                Step::Acknowledge(end) => pair.ends[end].acknowledge(),
                Step::Free(end) => pair.ends[end].free_buffers(),
                Step::Break(a, b) => {
                    let now = pair.received();
                    let said = [if a { before[0] } else { now[0] }, if b { before[1] } else { now[1] }];
                    pair.reset(said);
                    before = now;
                }
            }
        }
        pair.settle();
    }
}
