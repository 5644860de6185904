//! Payloads that travel beside the stream, over two further connections, each of which any number
//! of bytes passes at a time and which are lost at any byte, at one end sooner than at the other.
//!
//! Every put must be there once, whole, and nothing may be written to its place afterwards.

use super::super::bodies::MOST_BODIES;
use super::super::{Bodies, Claim, Wanted};
use super::*;

/// A byte of a place whose put is complete, and which its owner has used for something else.
const USED: u8 = 0xee;

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(usize),
    Short,
    /// All payloads that may leave the stream wait for a further rail.
    Leave,
    Stripe(bool),
    Claim(usize),
    Keep,
    WriteMain(usize),
    WriteSide(usize, usize),
    ReadMain(usize),
    ReadSide(usize, usize),
    Acknowledge,
    /// The sender has something to acknowledge of the other direction.
    News,
    BreakMain,
    /// The sender gives a further connection up.
    GiveUp(usize),
    /// The receiver gets the one after it.
    Adopt(usize),
}

struct World {
    send_stream: SendStream,
    sources: VecDeque<(u64, Vec<u8>)>,
    gone: Vec<Vec<u8>>,
    claims: [Option<Claim>; 2],
    /// Given up by the sender, not yet by the receiver.
    stale: [bool; 2],
    main: VecDeque<u8>,
    rails: [VecDeque<u8>; 2],
    receive_stream: ReceiveStream,
    rail_streams: [ReceiveStream; 2],
    bodies: Bodies,
    places: Vec<Vec<u8>>,
    complete: Vec<bool>,
    /// Shorts, in order, by number.
    shorts: Vec<u32>,
    sent_shorts: u32,
    /// The next acknowledgement, and the one that the receiver got last.
    news: u64,
    acked: u64,
}

/// Copies written bytes into a pipe; how much.
fn transmit(pieces: &Pieces, most: usize, gone: &[Vec<u8>], pipe: &mut VecDeque<u8>) -> usize {
    let mut left = most;
    for piece in pieces.as_slice() {
        let len = piece.len.min(left);
        let is_gone = |bytes: &Vec<u8>| bytes.as_ptr_range().contains(&piece.at.cast_const());
        assert!(!gone.iter().any(is_gone), "a released source is read");
        // SAFETY: the send stream keeps its pieces, and `sources` the users'.
        pipe.extend(unsafe { core::slice::from_raw_parts(piece.at, len) });
        left -= len;
    }
    most.min(pieces.bytes())
}

fn receive(receive_stream: &mut ReceiveStream, most: usize, pipe: &mut VecDeque<u8>) -> usize {
    let mut pieces = Pieces::new();
    receive_stream.room(&mut pieces);
    let mut read = 0;
    for piece in pieces.as_slice() {
        let len = piece.len.min(most - read).min(pipe.len());
        let bytes: Vec<u8> = pipe.drain(..len).collect();
        // SAFETY: the receive stream's own memory, or that of `places`, which stay.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), piece.at, len) };
        read += len;
    }
    receive_stream.filled(read);
    read
}

impl World {
    fn new() -> Self {
        Self {
            send_stream: SendStream::new(),
            sources: VecDeque::new(),
            gone: Vec::new(),
            claims: [None, None],
            stale: [false; 2],
            main: VecDeque::new(),
            rails: Default::default(),
            receive_stream: ReceiveStream::new(LONG_BYTES),
            rail_streams: [
                ReceiveStream::new(LONG_BYTES),
                ReceiveStream::new(LONG_BYTES),
            ],
            bodies: Bodies::default(),
            places: Vec::new(),
            complete: Vec::new(),
            shorts: Vec::new(),
            sent_shorts: 0,
            news: 0,
            acked: 0,
        }
    }

    fn put(&mut self, len: usize) {
        let n = self.places.len() as u32;
        let bytes = pattern(n, len);
        let fields = Fields {
            offset: n.into(),
            rest: len as u64,
            ..Fields::default()
        };
        let head = HeadBytes::new(Kind::Put, 0, &[], len, &fields);
        // SAFETY: the bytes stay in `sources` until they are released.
        let extent = Extent::User(unsafe { UserBytes::new(bytes.as_ptr(), len) });
        let body = Body::Move(extent, Kind::Put, fields);
        self.send_stream.push(head, body, true);
        self.sources.push_back((self.send_stream.head(), bytes));
        self.places.push(vec![0; len]);
        self.complete.push(false);
    }

    fn short(&mut self) {
        let head = HeadBytes::new(
            Kind::ShortRequest,
            0,
            &[self.sent_shorts],
            0,
            &Fields::default(),
        );
        self.send_stream.push(head, Body::Empty, false);
        self.sent_shorts += 1;
    }

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

    fn write_main(&mut self, most: usize) {
        let mut pieces = Pieces::new();
        let wanted = self.send_stream.wants_to_write();
        self.send_stream.next_burst(&mut pieces);
        assert!(wanted || pieces.bytes() == 0, "it is not written");
        let wrote = transmit(&pieces, most, &self.gone, &mut self.main);
        self.send_stream.wrote(wrote);
        self.reap();
    }

    fn write_rail(&mut self, at: usize, most: usize) {
        let Some(claim) = &mut self.claims[at] else {
            return;
        };
        let mut pieces = Pieces::new();
        claim.pieces(&mut pieces);
        let wrote = transmit(&pieces, most, &self.gone, &mut self.rails[at]);
        if claim.wrote(wrote) {
            let position = claim.position;
            self.claims[at] = None;
            self.send_stream.wrote_body(position);
        }
        self.reap();
    }

    fn place(&mut self, frame: &Frame) -> NonNull<u8> {
        NonNull::from(&mut self.places[frame.fields.offset as usize][0])
    }

    fn done(&mut self, frame: &Frame) {
        let n = frame.fields.offset as usize;
        assert!(!self.complete[n], "put {n} comes twice");
        assert!(self.places[n] == pattern(n as u32, frame.length), "put {n}");
        self.complete[n] = true;
        self.places[n].fill(USED);
    }

    fn begins(&mut self, at: Option<usize>, body: &Frame) -> Option<NonNull<u8>> {
        let (head, position) = (body.of_body().unwrap(), body.fields.position);
        let taken = self.receive_stream.taken();
        if self.bodies.wants(position, taken, &head).unwrap() == Wanted::No {
            return None;
        }
        for other in 0..2 {
            let placing = self.rail_streams[other].placing();
            if at != Some(other) && placing.is_some_and(|p| p.fields.position == position) {
                self.adopt(other);
            }
        }
        if at.is_some()
            && self
                .receive_stream
                .placing()
                .is_some_and(|p| p.fields.position == position)
        {
            self.break_main();
        }
        Some(self.place(&head))
    }

    fn here(&mut self, body: &Frame) {
        let (head, position) = (body.of_body().unwrap(), body.fields.position);
        if self
            .bodies
            .wants(position, self.receive_stream.taken(), &head)
            .unwrap()
            == Wanted::Yes
            && let Some(head) = self.bodies.body(position, &head, true).unwrap()
        {
            self.done(&head);
        }
    }

    fn read(&mut self, at: Option<usize>, most: usize) {
        let of = |this: &mut Self| -> *mut ReceiveStream {
            match at {
                None => &raw mut this.receive_stream,
                Some(at) => &raw mut this.rail_streams[at],
            }
        };
        match at {
            None => receive(&mut self.receive_stream, most, &mut self.main),
            Some(at) => receive(&mut self.rail_streams[at], most, &mut self.rails[at]),
        };
        loop {
            // SAFETY: no other reference to the receive stream is alive here or where it is used
            // below.
            let receive_stream = unsafe { &mut *of(self) };
            match receive_stream.next().expect("valid frames are accepted") {
                Next::More => return,
                Next::Whole(frame) => {
                    let payload: Vec<u8> = if frame.beside {
                        Vec::new()
                    } else {
                        receive_stream.bytes()[frame.head_len()..frame.len()].to_vec()
                    };
                    let mut room = [0; argonet_am::MAX_CARRIED];
                    let args = frame
                        .args(&receive_stream.bytes()[..frame.here()], &mut room)
                        .to_vec();
                    let place = match frame.kind {
                        Kind::Body => self.begins(at, &frame),
                        Kind::Put if !frame.beside => Some(self.place(&frame)),
                        _ => None,
                    };
                    if let Some(place) = place {
                        // SAFETY: the place has as many bytes.
                        unsafe {
                            core::ptr::copy_nonoverlapping(
                                payload.as_ptr(),
                                place.as_ptr(),
                                payload.len(),
                            );
                        }
                    }
                    let position = self.receive_stream.taken();
                    // SAFETY: as above.
                    unsafe { &mut *of(self) }.pass(&frame);
                    match frame.kind {
                        Kind::Body => self.here(&frame),
                        Kind::Put if frame.beside => {
                            let early = self.bodies.head(position, &frame).unwrap();
                            early.into_iter().for_each(|_| self.done(&frame));
                        }
                        Kind::Put => self.done(&frame),
                        Kind::ShortRequest => self.shorts.extend(args),
                        Kind::Control => self.acked = frame.fields.offset,
                        _ => {}
                    }
                }
                Next::Begun(frame) => {
                    let place = if frame.kind == Kind::Body {
                        self.begins(at, &frame)
                    } else {
                        Some(self.place(&frame))
                    };
                    // SAFETY: as above.
                    let receive_stream = unsafe { &mut *of(self) };
                    match place {
                        // SAFETY: places are made once and stay.
                        Some(place) => unsafe { receive_stream.place(frame, place) },
                        None => receive_stream.skip(frame),
                    }
                }
                Next::Placed(frame) | Next::Skipped(frame) => {
                    receive_stream.pass_behind();
                    if frame.kind == Kind::Body {
                        self.here(&frame);
                    } else {
                        self.done(&frame);
                    }
                }
            }
        }
    }

    fn acknowledge(&mut self) {
        let complete = self.bodies.complete(self.receive_stream.taken());
        self.send_stream
            .acknowledge(complete)
            .expect("it was written");
        self.reap();
    }

    fn news(&mut self) {
        self.news += 1;
        self.send_stream.set_ack(self.news, 0);
        self.send_stream.ack_now();
    }

    fn break_main(&mut self) {
        self.main.clear();
        self.receive_stream.reset();
        let complete = self.bodies.complete(self.receive_stream.taken());
        self.send_stream.resume(complete).expect("it was written");
        self.reap();
    }

    fn give_up(&mut self, at: usize) {
        self.claims[at] = None;
        self.stale[at] = true;
        self.send_stream.lose_rail(at as u16 + 1);
        self.send_stream.set_rails(self.rails(), true);
        self.reap();
    }

    fn adopt(&mut self, at: usize) {
        self.give_up(at);
        self.rails[at].clear();
        self.rail_streams[at].reset();
        self.stale[at] = false;
        self.send_stream.set_rails(self.rails(), true);
    }

    fn rails(&self) -> usize {
        self.stale.iter().filter(|stale| !**stale).count()
    }

    fn claim(&mut self, at: usize) {
        if !self.stale[at] && self.claims[at].is_none() {
            self.claims[at] = self.send_stream.claim(at as u16 + 1);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(len) => self.put(len),
            Step::Short => self.short(),
            Step::Stripe(stripes) => self.send_stream.set_rails(self.rails(), stripes),
            Step::Leave => self.send_stream.leave_stream(),
            Step::Claim(at) => self.claim(at),
            Step::Keep => {
                self.send_stream.keep_next();
            }
            Step::WriteMain(most) => self.write_main(most),
            Step::WriteSide(at, most) => self.write_rail(at, most),
            Step::ReadMain(most) => self.read(None, most),
            Step::ReadSide(at, most) => self.read(Some(at), most),
            Step::Acknowledge => self.acknowledge(),
            Step::News => self.news(),
            Step::BreakMain => self.break_main(),
            Step::GiveUp(at) => self.give_up(at),
            Step::Adopt(at) => self.adopt(at),
        }
    }

    /// Until nothing is left.
    fn settle(&mut self) {
        for round in 0..100_000 {
            for at in 0..2 {
                // Of those that are stale one comes back, the other does not.
                if self.stale[at] && at == 0 && round == 3 {
                    self.adopt(at);
                }
                self.claim(at);
                self.write_rail(at, usize::MAX);
                self.read(Some(at), usize::MAX);
            }
            self.send_stream.keep_next();
            self.write_main(usize::MAX);
            self.read(None, usize::MAX);
            self.acknowledge();
            if self.send_stream.is_quiescent() && self.acked == self.news {
                break;
            }
        }
        assert!(self.send_stream.is_quiescent(), "{:?}", self.send_stream);
        assert!(self.complete.iter().all(|complete| *complete));
        assert!(self.bodies.is_empty(), "{:?}", self.bodies);
        assert_eq!(self.shorts, (0..self.sent_shorts).collect::<Vec<_>>());
        assert_eq!(self.acked, self.news);
        assert!(self.sources.is_empty());
        assert_eq!(
            (self.send_stream.used(), self.send_stream.extents()),
            (0, 0)
        );
        // Stale bytes may still be read.
        (0..2).for_each(|at| self.read(Some(at), usize::MAX));
        let is_used = |place: &Vec<u8>| place.iter().all(|byte| *byte == USED);
        assert!(
            self.places.iter().all(is_used),
            "something old was written after the put"
        );
    }
}

fn some() -> impl Strategy<Value = usize> {
    prop_oneof![2 => 1usize..40, 2 => 40usize..400, 1 => Just(usize::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![1usize..30, 1usize..300, 1usize..5000].prop_map(Step::Put),
        3 => Just(Step::Short),
        2 => (0u8..4).prop_map(|n| Step::Stripe(n > 0)),
        2 => Just(Step::Leave),
        6 => (0usize..2).prop_map(Step::Claim),
        3 => Just(Step::Keep),
        5 => some().prop_map(Step::WriteMain),
        8 => (0usize..2, some()).prop_map(|(at, n)| Step::WriteSide(at, n)),
        5 => some().prop_map(Step::ReadMain),
        8 => (0usize..2, some()).prop_map(|(at, n)| Step::ReadSide(at, n)),
        3 => Just(Step::Acknowledge),
        3 => Just(Step::News),
        1 => Just(Step::BreakMain),
        2 => (0usize..2).prop_map(Step::GiveUp),
        2 => (0usize..2).prop_map(Step::Adopt),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // spec B3: nothing comes twice. spec B9: nothing is written late, and no source is given back
    // while it is read. spec T7: fragments come in any order.
    #[test]
    fn puts_are_there_once_after_any_breaks(steps in proptest::collection::vec(step(), 1..150)) {
        let mut world = World::new();
        world.send_stream.set_rails(2, true);
        steps.into_iter().for_each(|step| world.step(step));
        world.settle();
    }
}

/// spec U11: a message need not wait for long payloads before it, which no rail has taken yet.
#[test]
fn messages_pass_payloads_that_wait_for_a_rail() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    for _ in 0..3 {
        world.put(2000);
        world.send_stream.leave_stream();
    }
    world.short();
    world.write_main(usize::MAX);
    world.read(None, usize::MAX);
    assert_eq!(
        (&world.shorts[..], world.send_stream.unsent()),
        (&[0][..], 0)
    );
    assert!(world.complete.iter().all(|is_complete| !is_complete));
    world.settle();
}

/// More than a receiver keeps heads do not leave at once.
#[test]
fn payloads_that_wait_for_a_rail_are_bounded() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    (0..2000).for_each(|_| world.put(1));
    world.send_stream.leave_stream();
    (0..2000).for_each(|_| world.write_main(usize::MAX));
    assert!(world.send_stream.unsent() > 0);
    world.settle();
}

/// A rail beside the stream takes all, the stream's takes nothing for a while: no more bodies come
/// than a receiver keeps, and the rest when it has taken their heads.
#[test]
fn bodies_that_come_before_their_heads_are_bounded() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    (0..MOST_BODIES + 8).for_each(|_| world.put(1));
    let next = |world: &mut World| {
        world.send_stream.leave_stream();
        world.claim(0);
        let is_claimed = world.claims[0].is_some();
        world.write_rail(0, usize::MAX);
        world.read(Some(0), usize::MAX);
        is_claimed
    };
    while next(&mut world) {}
    world.write_main(usize::MAX);
    assert!(!next(&mut world), "the peer has taken nothing");
    world.read(None, usize::MAX);
    world.acknowledge();
    assert!(next(&mut world), "the peer has taken some");
    world.settle();
}

/// Where no further rail is left, payloads that wait for one go with the stream, and nothing lies
/// in the middle of one.
#[test]
fn payloads_go_with_the_stream_where_no_other_rail_is_left() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    for _ in 0..3 {
        world.put(2000);
        world.send_stream.leave_stream();
    }
    world.write_main(usize::MAX);
    (0..2).for_each(|at| world.give_up(at));
    // A part of the first one, and something to report.
    world.write_main(100);
    world.news();
    world.write_main(100);
    world.read(None, usize::MAX);
    assert_eq!(world.acked, 0);
    for _ in 0..4 {
        world.write_main(usize::MAX);
        world.read(None, usize::MAX);
    }
    assert!(world.complete.iter().all(|is_complete| *is_complete));
    assert!(!world.send_stream.wants_to_write());
    assert_eq!(world.acked, 1);
    world.settle();
}

#[test]
fn a_stream_says_which_payload_leaves_next() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    assert_eq!(world.send_stream.next_to_stripe(), None);
    assert!(!world.send_stream.keep_next());
    for len in [100, 50, 30] {
        world.put(len);
    }
    let next = |world: &World| world.send_stream.next_to_stripe();
    assert_eq!(next(&world), Some((100, 180)));
    assert!(world.send_stream.keep_next());
    assert_eq!(next(&world), Some((50, 80)));
    world.claim(0);
    assert_eq!(next(&world), Some((30, 30)));
    assert!(!world.send_stream.waits_for_rail());
    // One that waits has left the stream.
    world.send_stream.leave_stream();
    assert!(world.send_stream.waits_for_rail());
    assert_eq!(next(&world), Some((30, 30)));
    assert!(!world.send_stream.keep_next());
    world.send_stream.set_rails(2, false);
    assert_eq!(next(&world), Some((30, 30)));
    world.claim(1);
    assert!(!world.send_stream.waits_for_rail());

    // Without striping, or without rails, none leaves.
    world.put(20);
    assert_eq!(next(&world), None);
    world.send_stream.set_rails(0, true);
    assert_eq!(next(&world), None);
    world.send_stream.set_rails(2, true);
    assert_eq!(next(&world), Some((20, 20)));
    assert_eq!(world.send_stream.moved(), 0);
    world.settle();
    assert_eq!(world.send_stream.moved(), 200);
}

#[test]
fn a_claim_says_whether_it_has_begun() {
    let mut world = World::new();
    world.send_stream.set_rails(1, true);
    world.put(100);
    world.claim(0);
    let begun = |world: &World| world.claims[0].as_ref().map(Claim::has_begun);
    assert_eq!(begun(&world), Some(false));
    world.write_rail(0, 1);
    assert_eq!(begun(&world), Some(true));
    world.write_rail(0, usize::MAX);
    assert_eq!(begun(&world), None);
    world.settle();
}

/// A payload that has left the stream waits until it is written, also by the stream's own rail.
#[test]
fn a_stream_says_what_waits_and_what_must_be_written_next() {
    let mut world = World::new();
    world.send_stream.set_rails(2, true);
    world.put(100);
    world.send_stream.leave_stream();
    (0..2).for_each(|at| world.give_up(at));
    assert_eq!(world.send_stream.committed(), 0);
    let mut pieces = Pieces::new();
    world.send_stream.next_burst(&mut pieces);
    let head = world.send_stream.head() - 100;
    assert_eq!(world.send_stream.committed(), head + 100);
    // All but a byte of the payload's own frame, which goes first.
    let body = pieces.bytes() - head as usize;
    world.write_main(body - 1);
    assert!(world.send_stream.waits_for_rail());
    world.write_main(1);
    assert!(!world.send_stream.waits_for_rail());
    world.write_main(5);
    assert_eq!(world.send_stream.committed(), head + 100 - 5);
    world.settle();
}

/// The peer may have all of a payload by another rail while one is still writing it.
#[test]
fn nothing_is_released_while_a_rail_writes_it() {
    for loses in [false, true] {
        let mut world = World::new();
        world.send_stream.set_rails(1, true);
        world.put(100);
        world.claim(0);
        world.write_main(usize::MAX);
        world.write_rail(0, 20);
        let head = world.send_stream.head();
        world.send_stream.acknowledge(head).unwrap();
        assert!(!world.send_stream.is_quiescent());
        if loses {
            world.send_stream.lose_rail(1);
        } else {
            world.write_rail(0, usize::MAX);
        }
        assert!(world.send_stream.is_quiescent(), "{loses}");
    }
}
