//! One or two ranks of the conduit over loopback sockets: behavior that the conformance suite does
//! not see.

use crate::ThreadMode;
use crate::channel::frame::{Fields, HeadBytes, Kind};
use crate::channel::rail::{self, NewRail, RailId};
use crate::channel::{ChannelConfig, ChannelSizes};
use crate::conduit::{Completion, Conduit, Injected, OpToken, SendError, Sink};
use crate::tcp::{Connector, Tcp, TcpConfig};
use argonet_am::record::{RecordError, Short};
use argonet_am::{AmError, Delivery, HandlerTable, MAX_MEDIUM, Message, MessageClass, Payload};
use argonet_base::cpu::ticks;
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile, SharedBytes};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

mod connections;
mod credits;
mod exit;
mod hostile;
mod idle;
mod lost_rails;
mod polls;
mod progress;
mod promises;
mod rails;
mod silent;

/// How many seeds a test goes through that draws: `ARGONET_FLOW_SEEDS`, a hundredth of them, as
/// they use sockets.
fn seeds() -> u64 {
    let given = std::env::var("ARGONET_FLOW_SEEDS").ok();
    let given = given.map(|count| count.parse().expect("ARGONET_FLOW_SEEDS is a number"));
    given.unwrap_or(2000u64).div_ceil(100)
}

const NOTE: HandlerIndex = HandlerIndex(128);
const SEGMENT: u64 = 1 << 16;

type Made = rail::Made<OwnedFd>;

/// Gives out the connections that it was given.
struct Queue {
    made: Mutex<VecDeque<Made>>,
    wanted: Mutex<Vec<JobRank>>,
    /// Further connections.
    wanted_rails: Mutex<Vec<u16>>,
    /// Numbers of connections that were closed at both ends.
    unwanted: Mutex<Vec<u16>>,
    /// Can be read when something was made, after the beginning.
    wakeup: OwnedFd,
}

impl Queue {
    fn new() -> Self {
        Self {
            made: Mutex::default(),
            wanted: Mutex::default(),
            wanted_rails: Mutex::default(),
            unwanted: Mutex::default(),
            wakeup: eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
        }
    }

    fn push(&self, made: Made) {
        self.made.lock().push_back(made);
        rustix::io::write(&self.wakeup, &1u64.to_ne_bytes()).unwrap();
    }
}

impl Connector for Queue {
    fn want(&self, peer: JobRank, number: u16) {
        match number {
            0 => self.wanted.lock().push(peer),
            number => self.wanted_rails.lock().push(number),
        }
    }

    fn unwant(&self, _peer: JobRank, number: u16) {
        self.unwanted.lock().push(number);
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made> {
        let made = self.made.lock().pop_front();
        if made.is_none() {
            let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
        }
        made
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeup.as_fd())
    }
}

struct Rank {
    tcp: Tcp,
    queue: Arc<Queue>,
    segment: OwnSegment,
    seen: Seen,
}

#[derive(Default, Debug)]
struct Seen {
    messages: usize,
    /// First arguments.
    firsts: Vec<u32>,
    /// Bytes of the reply that requests get.
    answer: usize,
    completed: Vec<(u64, Completion)>,
    broken: Vec<AmError>,
}

impl Sink for Seen {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.messages += 1;
        self.firsts.extend(delivery.args().first());
        if delivery.class() == MessageClass::Request && self.answer > 0 {
            let bytes = vec![1; self.answer];
            let reply = Message {
                handler: NOTE,
                args: &[],
                payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
            };
            delivery.reply(&reply).unwrap();
        }
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.completed.push((op.handle, completion));
    }

    fn on_error(&mut self, error: AmError) {
        self.broken.push(error);
    }
}

fn pair() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    [here, listener.accept().unwrap().0]
}

fn connection(peer: u32, socket: TcpStream, incarnation: u64) -> Made {
    Made::Rail(NewRail {
        id: RailId {
            peer: JobRank(peer),
            number: 0,
        },
        rail: socket.into(),
        incarnation,
        received: 0,
    })
}

impl Rank {
    fn new(rank: u32, sizes: ChannelSizes, made: Option<Made>) -> Self {
        Self::begin(rank, sizes, made, false)
    }

    fn with_progress(rank: u32, sizes: ChannelSizes, made: Option<Made>) -> Self {
        Self::begin(rank, sizes, made, true)
    }

    fn begin(rank: u32, sizes: ChannelSizes, made: Option<Made>, progress: bool) -> Self {
        Self::try_begin(rank, sizes, made, progress).unwrap()
    }

    fn try_begin(
        rank: u32,
        sizes: ChannelSizes,
        made: Option<Made>,
        progress: bool,
    ) -> std::io::Result<Self> {
        let file = SegmentFile::create(1, SEGMENT, PageKind::Normal).unwrap();
        let directory = Directory::new(file, JobRank(0)).unwrap();
        let segment = OwnSegment::attach(&directory, SEGMENT).unwrap();
        let queue = Arc::new(Queue::new());
        queue.made.lock().extend(made);
        let mut table = HandlerTable::default();
        table.register_at(NOTE, "note", Box::new(|_| {})).unwrap();
        let config = TcpConfig {
            channel: ChannelConfig {
                rank: JobRank(rank),
                ranks: 3,
                mode: ThreadMode::Seq,
                sizes,
                directory,
                registered: table.registered(),
                segment_len: Arc::new(|_| 0),
            },
            connector: Arc::clone(&queue) as Arc<dyn Connector>,
            progress,
        };
        Ok(Self {
            tcp: Tcp::over_connections(config)?,
            queue,
            segment,
            seen: Seen::default(),
        })
    }

    fn poll(&mut self) -> usize {
        self.tcp.poll_with(&mut self.seen)
    }

    fn note(&self, n: u32) -> bool {
        let short = Short::pack(NOTE, &[n]).unwrap();
        self.tcp.request_short(JobRank(1), short)
    }

    fn put(&self, offset: u64, bytes: &[u8], handle: u64) -> Result<Injected, SendError> {
        let implicit = false;
        self.put_of(OpToken { handle, implicit }, offset, bytes)
    }

    fn put_of(&self, op: OpToken, offset: u64, bytes: &[u8]) -> Result<Injected, SendError> {
        let offset = SegmentOffset(offset);
        // SAFETY: the tests' bytes live as long as the ranks.
        unsafe {
            self.tcp
                .put(JobRank(1), offset, bytes.as_ptr(), bytes.len(), op)
        }
    }
}

fn two(sizes: ChannelSizes) -> [Rank; 2] {
    let [here, there] = pair();
    [
        Rank::new(0, sizes, Some(connection(1, here, 1))),
        Rank::new(1, sizes, Some(connection(0, there, 1))),
    ]
}

/// Polls that find nothing, after which nothing comes; each lets others run.
const IDLE: u32 = 20_000;

/// Polls one rank until something is so.
fn until(rank: &mut Rank, what: &str, done: impl Fn(&Seen) -> bool) {
    for _ in 0..IDLE {
        if done(&rank.seen) {
            return;
        }
        rank.poll();
        std::thread::yield_now();
    }
    panic!("it never came to this: {what}");
}

#[test]
fn gathered_messages_leave_without_another_call() {
    let [a, mut b] = two(ChannelSizes::default());
    for round in 1..=20 {
        // The first leaves at once, those that follow at once are gathered.
        assert!((0..50).all(|n| a.note(n)));
        until(&mut b, "all of a burst", |seen| seen.messages == round * 50);
    }
}

#[test]
fn a_burst_is_gathered_until_the_next_poll() {
    let patient = ChannelSizes {
        gather_time: Duration::from_secs(1000),
        // However slow a sanitizer is, all of this is one burst.
        burst_ticks: 1 << 20,
        ..ChannelSizes::default()
    };
    let [mut a, mut b] = two(patient);
    // The burst of the time when the connection was made is over.
    let since = ticks();
    while ticks().wrapping_sub(since) <= patient.burst_ticks {
        b.poll();
    }
    assert!((0..500).all(|n| a.note(n)));
    for _ in 0..1000 {
        b.poll();
    }
    assert!((1..500).contains(&b.seen.messages), "{}", b.seen.messages);
    a.poll();
    until(&mut b, "the rest", |seen| seen.messages == 500);
    // More gathered bytes than this leave without a poll, too.
    assert!((0..2000).all(|n| a.note(n)));
    until(&mut b, "16 KiB", |seen| seen.messages > 1000);
    // With no time nothing is gathered.
    let hasty = ChannelSizes {
        gather_time: Duration::ZERO,
        ..patient
    };
    let [a, mut b] = two(hasty);
    assert!((0..500).all(|n| a.note(n)));
    until(&mut b, "each at once", |seen| seen.messages == 500);
}

/// The target takes both puts with one look; the one that is refused is never reported as there.
#[test]
fn a_refused_put_is_not_complete() {
    for len in [9, 500] {
        // The longer one goes from where it is, in fragments.
        let [mut a, mut b] = two(ChannelSizes {
            eager_bytes: 64,
            fragment_bytes: 200,
            ..ChannelSizes::default()
        });
        let bytes = vec![7; len];
        let (due, local) = match len {
            9 => (Injected::Local, None),
            _ => (Injected::Pending, Some(Completion::Local)),
        };
        assert_eq!(a.put(SEGMENT - 3, &bytes, 1), Ok(due));
        assert_eq!(a.put(8, &bytes, 2), Ok(due));
        a.tcp.flush();
        let mut tries = 0;
        while !a.seen.completed.contains(&(2, Completion::Remote)) {
            b.poll();
            a.poll();
            tries += 1;
            assert!(tries < IDLE, "{:?}", a.seen.completed);
        }
        let said = a.seen.broken.first().unwrap().to_string();
        let due = "do not lie in the segment of rank 1, which has 65536 bytes (seen by rank 0)";
        assert!(said.contains(due), "{said}");
        a.seen
            .completed
            .sort_by_key(|(op, completion)| (*op, *completion == Completion::Remote));
        let local = local
            .into_iter()
            .flat_map(|completion| [(1, completion), (2, completion)]);
        let due: Vec<_> = local.chain([(2, Completion::Remote)]).collect();
        assert_eq!(a.seen.completed, due);
        let mut there = vec![0; len];
        let view = b.segment.bytes(SegmentOffset(8), len).unwrap();
        view.copy_to(0, &mut there).unwrap();
        assert_eq!(there, bytes);
    }
}

/// A put, or messages, that are waited for are acknowledged by the poll that takes them.
#[test]
fn puts_that_are_waited_for_are_acknowledged_at_once() {
    let [mut a, mut b] = two(ChannelSizes::default());
    for round in 1..100 {
        assert_eq!(a.put(8, &[5; 8], round), Ok(Injected::Local));
        a.tcp.flush();
        // It has come when a look takes it, and the answer goes with that one.
        let mut looks = 0;
        while b.tcp.poll_with(&mut b.seen) == 0 {
            std::thread::yield_now();
            looks += 1;
            assert!(looks < IDLE, "put {round}");
        }
        until(&mut a, "the answer", |seen| {
            seen.completed.contains(&(round, Completion::Remote))
        });
    }
}

/// Puts of one implicit token are reported together, but for refused ones, and no others with them.
#[test]
fn puts_of_one_token_are_counted() {
    const EACH: u64 = 700;
    let [mut a, mut b] = two(ChannelSizes {
        eager_bytes: 64,
        ..ChannelSizes::default()
    });
    let bytes = [3; 100];
    // Some are read later, which is reported for each.
    let is_long = |n: u64| n % 7 == 3;
    let tokens = [1, 2].map(|handle| OpToken {
        handle,
        implicit: true,
    });
    let mut refused = [0, 0];
    for n in 0..2 * EACH {
        // In turn, and in rows.
        let whose = usize::from(n % 100 < 20 && n % 2 == 0);
        let outside = n % 90 == 50;
        refused[whose] += u64::from(outside);
        let offset = if outside { SEGMENT } else { 8 * n };
        let bytes = &bytes[..if is_long(n) { 100 } else { 8 }];
        while a.put_of(tokens[whose], offset, bytes) == Err(SendError::Full) {
            a.poll();
            b.poll();
        }
    }
    let mine = (0..2 * EACH).filter(|n| n % 100 < 20 && n % 2 == 0).count() as u64;
    let due = [2 * EACH - mine - refused[0], mine - refused[1]];
    let reported = |a: &Rank, handle| {
        let remote = |report: &&(u64, Completion)| **report == (handle, Completion::Remote);
        a.seen.completed.iter().filter(remote).count() as u64
    };
    let mut tries = 0;
    while [1, 2].map(|handle| reported(&a, handle)) != due || !a.tcp.is_quiescent() {
        a.poll();
        b.poll();
        tries += 1;
        assert!(
            tries < IDLE,
            "{:?} of {due:?}",
            [reported(&a, 1), reported(&a, 2)]
        );
    }
    let local = (0..2 * EACH).filter(|n| is_long(*n)).count() as u64;
    assert_eq!(a.seen.completed.len() as u64, due[0] + due[1] + local);
    assert_eq!(a.seen.broken.len() as u64, refused[0] + refused[1]);
}

/// Short requests with the longest replies, which their sender does not take: kept bytes stay
/// within their limit, and all requests are answered.
#[test]
fn replies_wait_in_bounded_room() {
    const COUNT: usize = 300;
    let sizes = ChannelSizes::smallest();
    let [mut a, mut b] = two(sizes);
    b.seen.answer = MAX_MEDIUM;
    let mut sent = 0;
    while sent < COUNT && a.note(sent as u32) {
        sent += 1;
    }
    a.tcp.flush();
    for _ in 0..1000 {
        b.poll();
        let peer = b.tcp.core.used(0).unwrap();
        assert!(peer.outbound.lock().send_stream.used() <= sizes.replay_bytes);
    }
    assert!(
        (1..sent).contains(&b.seen.messages),
        "{} of {sent}",
        b.seen.messages
    );
    for _ in 0..IDLE {
        a.poll();
        b.poll();
    }
    assert_eq!((b.seen.messages, a.seen.messages), (sent, sent));
}

/// Frames that have a right form and impossible contents.
#[test]
fn invalid_frames_end_the_connection() {
    let control = |taken, granted| {
        let fields = Fields {
            offset: taken,
            rest: granted,
            ..Fields::default()
        };
        HeadBytes::new(Kind::Control, 0, &[], 0, &fields)
    };
    let credits = |lent, wanted| {
        let fields = Fields {
            op: lent,
            wanted,
            ..Fields::default()
        };
        HeadBytes::new(Kind::Control, 0, &[], 0, &fields)
    };
    let system = |word| {
        let fields = Fields {
            offset: word,
            ..Fields::default()
        };
        HeadBytes::new(Kind::System, 0, &[], 0, &fields)
    };
    let with = |kind, length, fields: Fields| HeadBytes::new(kind, 0, &[], length, &fields);
    let op = Fields {
        op: 5 << 16,
        rest: 1,
        wanted: 8,
        ..Fields::default()
    };
    let outside = Fields {
        offset: SEGMENT,
        ..Fields::default()
    };
    for (what, heads) in [
        ("taken more than was sent", vec![control(1, 0)]),
        ("handled more than was sent", vec![control(0, 1)]),
        ("lent more than may be", vec![credits(17, 0)]),
        ("a system message that is none", vec![system(1 << 40)]),
        (
            "an exit with a code above 255",
            vec![system(2 << 56 | 1 << 48 | 256)],
        ),
        ("data that was not asked for", vec![with(Kind::Got, 1, op)]),
        ("a refusal of no get", vec![with(Kind::Refused, 0, op)]),
        (
            "a fragment that is longer than its put",
            vec![with(Kind::Put, 2, op)],
        ),
        ("a put of nothing", vec![with(Kind::Put, 0, op)]),
        (
            "a get of more than there is of it",
            vec![with(Kind::Get, 0, op)],
        ),
        (
            "a reply for another place",
            vec![with(Kind::LongReply, 1, outside)],
        ),
        (
            "a gap",
            vec![control(0, 0), {
                let mut head = HeadBytes::new(Kind::ShortRequest, 128, &[], 0, &Fields::default());
                head.set_position(1);
                head
            }],
        ),
    ] {
        let [here, mut there] = pair();
        let window = ChannelSizes::smallest();
        let mut a = Rank::new(0, window, Some(connection(1, here, 1)));
        let mut bytes: Vec<u8> = heads
            .iter()
            .flat_map(|head| head.as_bytes())
            .copied()
            .collect();
        // A payload, and less than another head.
        bytes.extend_from_slice(&[0; 4]);
        there.write_all(&bytes).unwrap();
        until(&mut a, what, |seen| !seen.broken.is_empty());
        let AmError::Broken { at, from, .. } = a.seen.broken[0] else {
            panic!("{what}: {:?}", a.seen.broken);
        };
        assert_eq!((at, from), (JobRank(0), JobRank(1)), "{what}");
        let refused = a.put(0, &[1], 1);
        assert!(
            matches!(refused, Err(SendError::Message(AmError::Broken { .. }))),
            "{what}"
        );
        assert_eq!(a.queue.wanted.lock().len(), 0, "{what}: asked for again");
    }
}

/// More requests than were granted.
#[test]
fn a_flood_without_grants_ends_the_connection() {
    let [here, mut there] = pair();
    let mut a = Rank::new(0, ChannelSizes::smallest(), Some(connection(1, here, 1)));
    let mut position = 0;
    // Their replies have no room, as none of those before is taken.
    let get = |position| {
        let fields = Fields {
            rest: 16 << 10,
            op: 1 << 16,
            wanted: 16 << 10,
            ..Fields::default()
        };
        let mut head = HeadBytes::new(Kind::Get, 0, &[], 0, &fields);
        head.set_position(position);
        head
    };
    there.set_nonblocking(true).unwrap();
    for _ in 0..10_000 {
        let head = get(position);
        if there.write_all(head.as_bytes()).is_err() {
            break;
        }
        position += head.as_bytes().len() as u64;
        a.poll();
        if !a.seen.broken.is_empty() {
            break;
        }
    }
    until(&mut a, "too many requests", |seen| !seen.broken.is_empty());
    let sent = "requests are sent";
    assert!(
        matches!(
            a.seen.broken[0],
            AmError::Broken { cause: RecordError::Account { what, .. }, .. } if what == sent
        ),
        "{:?}",
        a.seen.broken
    );
}

#[test]
fn messages_wait_for_a_connection() {
    let [here, there] = pair();
    let mut a = Rank::new(0, ChannelSizes::default(), None);
    let mut b = Rank::new(1, ChannelSizes::default(), Some(connection(0, there, 1)));
    assert!(a.note(1) && a.note(2));
    assert_eq!(*a.queue.wanted.lock(), [JobRank(1)]);
    a.queue.push(connection(1, here, 1));
    for _ in 0..100 {
        a.poll();
    }
    until(&mut b, "both", |seen| seen.messages == 2);
}

#[test]
fn messages_queued_for_a_connection_leave_without_another_call() {
    let [here, there] = pair();
    let a = Rank::new(0, ChannelSizes::default(), None);
    let mut b = Rank::new(1, ChannelSizes::default(), Some(connection(0, there, 1)));
    assert!(a.note(1));
    a.queue.push(connection(1, here, 1));
    until(&mut b, "the message", |seen| seen.messages == 1);
}

#[test]
fn an_unreachable_peer_is_reported() {
    let mut a = Rank::new(0, ChannelSizes::default(), None);
    assert!(a.note(1));
    let error = AmError::PeerDead {
        at: JobRank(0),
        peer: JobRank(1),
        silent_ms: 30_000,
    };
    let gone = Made::Unreachable(
        RailId {
            peer: JobRank(1),
            number: 0,
        },
        error.clone(),
    );
    a.queue.push(gone);
    until(&mut a, "the peer is dead", |seen| {
        seen.broken == [error.clone()]
    });
    assert_eq!(a.put(0, &[1], 1), Err(SendError::Message(error)));
    assert!(!a.note(2));
}

/// An old connection that comes late is not used.
#[test]
fn connections_of_the_past_are_dropped() {
    let [[a1, _b1], [a2, b2]] = [pair(), pair()];
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, a2, 2)));
    let mut b = Rank::new(1, ChannelSizes::default(), Some(connection(0, b2, 2)));
    a.queue.push(connection(1, a1, 1));
    for _ in 0..100 {
        a.poll();
    }
    assert!(a.note(1));
    until(&mut b, "over the later one", |seen| seen.messages == 1);
}

/// Two threads may use a peer for the first time at once.
///
/// The second finds the state that the first has made, and its message to its own rank arrives.
#[test]
fn a_message_to_its_own_rank_arrives_after_another_threads_first_use() {
    let mut a = Rank::new(1, ChannelSizes::default(), None);
    // The first thread has come as far as this.
    a.tcp.core.peer_or_init(JobRank(1));
    assert!(a.note(7));
    for _ in 0..100 {
        a.poll();
    }
    assert_eq!(a.seen.firsts, [7]);
}

/// A connector is code of others.
#[test]
fn rails_of_no_rank_and_of_no_number_are_passed_over() {
    let mut a = Rank::new(0, ChannelSizes::default(), None);
    let [here, there] = pair();
    a.queue.push(connection(3, here, 1));
    let [further, beyond] = pair();
    a.queue.push(rails::rail(1, 32, further, 1));
    let id = RailId {
        peer: JobRank(u32::MAX),
        number: 0,
    };
    let (at, peer, why) = (JobRank(0), id.peer, String::new());
    let error = AmError::Unreachable { at, peer, why };
    a.queue.push(Made::Unreachable(id, error));
    for _ in 0..10 {
        a.poll();
    }
    assert!(a.seen.broken.is_empty());
    // They were closed.
    for mut socket in [there, beyond] {
        let read = std::io::Read::read(&mut socket, &mut [0]);
        assert_eq!(read.unwrap(), 0);
    }
}
