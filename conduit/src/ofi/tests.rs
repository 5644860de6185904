//! Rails of ranks of this process, over a queue in memory that does what providers do rarely.

use super::header::{HEADER_BYTES, Header, Kind};
use super::peer::WINDOW;
use super::{MessageRail, MessageRails, MessageRailsConfig};
use crate::attendant::{event, ring};
use crate::channel::Pieces;
use crate::channel::rail::{Made, Rail as _, RailId, Rails as _, Ready};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::fabric::Sleep;
use argonet_nic::rdm::{MessageQueue, Taken};
use core::num::NonZeroU64;
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// As long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(60);

const MESSAGE_BYTES: usize = 4096;
const BUFFERS: usize = 8;

fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "it never came");
        std::thread::yield_now();
    }
}

/// What is on the way, and what goes wrong.
#[derive(Default)]
struct Wire {
    /// By target.
    under_way: Vec<VecDeque<Vec<u8>>>,
    /// By rank: can be read while something is under way to it.
    arrived: Vec<Arc<OwnedFd>>,
    /// So many sends find no room.
    full: u32,
    /// Sends to this rank fail.
    cut: Option<u32>,
    /// Failures: of sends of a rank, to a rank, in words.
    failed: VecDeque<(u32, u32, String)>,
    /// Messages to this rank vanish.
    silent: Option<u32>,
    /// The next message to this rank comes behind as many later ones.
    late: Option<(u32, usize)>,
    held: Option<Vec<u8>>,
    /// Sends of this rank have not ended.
    sending: Option<u32>,
    /// The queue of this rank carries nothing any more.
    broken: Option<u32>,
}

impl Wire {
    /// Messages that no queue has sent.
    fn inject(&mut self, to: u32, messages: impl IntoIterator<Item = Vec<u8>>) {
        self.under_way[to as usize].extend(messages);
        ring(&self.arrived[to as usize]);
    }

    fn carry(&mut self, peer: u32, message: &[u8]) {
        ring(&self.arrived[peer as usize]);
        let under_way = &mut self.under_way[peer as usize];
        match &mut self.late {
            Some((to, _)) if *to == peer && self.held.is_none() => {
                self.held = Some(message.to_vec());
            }
            Some((to, behind)) if *to == peer => {
                under_way.push_back(message.to_vec());
                *behind -= 1;
                if *behind == 0 {
                    under_way.extend(self.held.take());
                    self.late = None;
                }
            }
            _ => under_way.push_back(message.to_vec()),
        }
    }
}

/// What the thread has warned of.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The queue of a rank.
struct Memory {
    rank: u32,
    wire: Arc<Mutex<Wire>>,
    /// Buffers that are not held.
    free: usize,
}

impl Memory {
    fn push(&mut self, peer: u32, message: &[u8]) -> Taken {
        let mut wire = self.wire.lock();
        if wire.full > 0 {
            wire.full -= 1;
            return Taken::NoRoom;
        }
        if wire.cut == Some(peer) {
            wire.failed
                .push_back((self.rank, peer, "the cable is out".into()));
            return Taken::Refused;
        }
        if wire.silent != Some(peer) {
            wire.carry(peer, message);
        }
        Taken::Sent
    }
}

impl MessageQueue for Memory {
    type Received = Vec<u8>;

    fn message_bytes(&self) -> usize {
        MESSAGE_BYTES
    }

    fn receives(&self) -> usize {
        BUFFERS
    }

    fn send(&mut self, peer: u32, message: &[u8], _awaited: bool) -> Taken {
        self.push(peer, message)
    }

    fn send_filled(
        &mut self,
        peer: u32,
        bytes: usize,
        awaited: bool,
        kept: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Taken {
        assert!(kept.is_empty() && bytes <= MESSAGE_BYTES);
        let mut message = vec![0; bytes];
        fill(&mut message);
        let header = Header::read(&message).expect("a header").0;
        let is_last = matches!(header.kind, Kind::Leave | Kind::Seen);
        assert_eq!(awaited, is_last, "{header:?}");
        let taken = self.push(peer, &message);
        if taken == Taken::NoRoom {
            *kept = message;
        }
        taken
    }

    fn receive(&mut self, take: &mut dyn FnMut(Vec<u8>)) -> bool {
        if self.free == 0 {
            return false;
        }
        let next = self.wire.lock().under_way[self.rank as usize].pop_front();
        let Some(message) = next else {
            return false;
        };
        self.free -= 1;
        take(message);
        true
    }

    fn bytes<'a>(&'a self, received: &'a Vec<u8>) -> &'a [u8] {
        received
    }

    fn give_back(&mut self, _received: Vec<u8>) {
        self.free += 1;
    }

    fn is_sending(&mut self) -> bool {
        self.has_sent()
    }

    fn has_sent(&self) -> bool {
        self.wire.lock().sending == Some(self.rank)
    }

    fn may_sleep(&self) -> bool {
        let wire = self.wire.lock();
        let is_empty = wire.under_way[self.rank as usize].is_empty();
        if is_empty {
            let _ = rustix::io::read(&*wire.arrived[self.rank as usize], &mut [0; 8]);
        }
        is_empty || self.free == 0
    }

    fn failures(&mut self) -> Vec<(u32, String)> {
        let mut wire = self.wire.lock();
        let failed = core::mem::take(&mut wire.failed);
        let (own, others) = failed
            .into_iter()
            .partition(|(from, ..)| *from == self.rank);
        wire.failed = others;
        let of_peer = |(_, peer, words): (u32, u32, String)| (peer, words);
        VecDeque::into_iter(own).map(of_peer).collect()
    }

    fn broken(&self) -> Option<&str> {
        (self.wire.lock().broken == Some(self.rank)).then_some("the card is gone")
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn in_words(&self) -> String {
        "the wire in memory".into()
    }
}

type Rails = MessageRails<Memory>;

fn wire(ranks: usize) -> Arc<Mutex<Wire>> {
    let under_way = (0..ranks).map(|_| VecDeque::new()).collect();
    let arrived = (0..ranks).map(|_| Arc::new(event().unwrap())).collect();
    Arc::new(Mutex::new(Wire {
        under_way,
        arrived,
        ..Wire::default()
    }))
}

fn rails(wire: &Arc<Mutex<Wire>>, rank: u32, silence: Duration) -> Rails {
    rails_with(wire, rank, silence, Duration::from_millis(100))
}

fn rails_with(
    wire: &Arc<Mutex<Wire>>,
    rank: u32,
    silence: Duration,
    exit_grace: Duration,
) -> Rails {
    let ranks = wire.lock().under_way.len() as u64;
    let arrived = wire.lock().arrived[rank as usize].try_clone().unwrap();
    let config = MessageRailsConfig {
        rank: JobRank(rank),
        queue: Memory {
            rank,
            wire: Arc::clone(wire),
            free: BUFFERS,
        },
        sleep: Sleep::at_own(arrived),
        incarnations: (7..7 + ranks)
            .map(|n| NonZeroU64::new(n).unwrap())
            .collect(),
        secret: b"of the test".to_vec(),
        silence,
        warn: |words| WARNINGS.lock().push(words.to_owned()),
        exit_grace,
    };
    MessageRails::new(config).unwrap()
}

fn pair() -> (Arc<Mutex<Wire>>, [Rails; 2]) {
    let wire = wire(2);
    let rails = [0, 1].map(|rank| rails(&wire, rank, LIMIT));
    (wire, rails)
}

fn id(peer: u32) -> RailId {
    let peer = JobRank(peer);
    RailId { peer, number: 0 }
}

/// The rail to a peer, which the channel uses from now on.
fn opened(rails: &Rails, peer: u32) -> MessageRail<Memory> {
    rails.want(id(peer));
    let mut made = None;
    until(|| {
        made = rails.next(&|_| 0);
        made.is_some()
    });
    let Some(Made::Rail(new)) = made else {
        panic!("no rail: {made:?}");
    };
    assert_eq!(new.id, id(peer));
    rails.open(new.id, &new.rail).unwrap();
    new.rail
}

fn write(rail: &MessageRail<Memory>, bytes: &[u8]) -> io::Result<usize> {
    let mut pieces = Pieces::new();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for part in [first, second] {
        pieces.add(part.as_ptr().cast_mut(), part.len());
    }
    // SAFETY: the pieces are the bytes.
    unsafe { rail.write(&pieces) }
}

fn read(rail: &MessageRail<Memory>, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut pieces = Pieces::new();
    pieces.add(bytes.as_mut_ptr(), most);
    // SAFETY: the piece is the bytes.
    let read = unsafe { rail.read(&pieces) }?;
    bytes.truncate(read);
    Ok(bytes)
}

fn found(rails: &Rails) -> Ready {
    let mut found = Ready::new();
    rails.begin_poll(true);
    rails.ready(&mut found);
    found
}

fn would_block<T: core::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Bytes that are different at different places.
fn pattern(begin: usize, len: usize) -> Vec<u8> {
    (begin..begin + len)
        .map(|at| (at ^ at >> 8) as u8)
        .collect()
}

/// Small messages, long ones, and ends within buffers; longer than the window.
#[test]
fn bytes_arrive_in_order_while_the_provider_has_no_room_now_and_then() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    let (mut sent, mut came, mut turn) = (0, 0, 0);
    while came < 3 << 20 {
        turn += 1;
        if turn % 7 == 0 {
            wire.lock().full = turn % 5;
        }
        let len = [1, 300, 5000, 40_000][turn as usize % 4];
        match write(&to_b, &pattern(sent, len)) {
            Ok(written) => sent += written,
            error => would_block(error),
        }
        let ready = found(&b);
        if ready.rails() == [id(0)] {
            let bytes = read(&to_a, [7, 900, 30_000][turn as usize % 3]).unwrap();
            assert!(bytes == pattern(came, bytes.len()), "at {came}");
            came += bytes.len();
        }
    }
}

#[test]
fn a_peer_that_does_not_read_holds_no_more_than_a_window() {
    let (_, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    let mut sent = 0;
    // The threads send what waits, and take what comes, beyond the buffers that there are.
    until(|| match write(&to_b, &pattern(sent, 20_000)) {
        Ok(written) => {
            sent += written;
            false
        }
        Err(_) => {
            a.wait_for_room(id(1), &to_b, true);
            !a.shared.lock().has_work()
        }
    });
    assert!(
        sent <= WINDOW as usize && sent > WINDOW as usize * 9 / 10,
        "{sent}"
    );
    let mut came = 0;
    until(|| {
        if found(&b).rails() == [id(0)] {
            came += read(&to_a, sent).unwrap().len();
        }
        came == sent
    });
    // What was read makes room, and says so without that b sends anything.
    until(|| {
        found(&a);
        a.shared.lock().has_work()
    });
    assert_eq!(write(&to_b, &pattern(0, 4000)).unwrap(), 4000);
}

#[test]
fn one_message_needs_no_other_call_of_its_sender() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    wire.lock().full = 50;
    assert_eq!(write(&to_b, b"hello").unwrap(), 5);
    would_block(write(&to_b, b"more"));
    until(|| found(&b).rails() == [id(0)]);
    assert_eq!(read(&to_a, 100).unwrap(), b"hello");
    would_block(read(&to_a, 100));
}

/// Forged ones, such of an earlier process, of no rank, and of this one.
#[test]
fn messages_of_strangers_are_dropped_and_counted() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    assert_eq!(write(&to_b, b"first").unwrap(), 5);
    until(|| !found(&b).rails().is_empty());
    let token = |tokens: &[u8]| {
        let mut forged = vec![0; HEADER_BYTES + 4];
        forged[..tokens.len()].copy_from_slice(tokens);
        forged
    };
    let forged = |from: u32, number: u32| {
        let mut message = token(&[]);
        let header = Header {
            token: 0x1234_5678,
            from: JobRank(from),
            number,
            taken: 0,
            kind: Kind::Data,
        };
        header.write(message.first_chunk_mut().unwrap());
        message
    };
    let messages = [
        vec![],
        vec![0; HEADER_BYTES - 1],
        token(&[0xff; HEADER_BYTES]),
        forged(0, 1),
        forged(1, 0),
        forged(2, 0),
        forged(u32::MAX, 0),
    ];
    let count = messages.len() as u64;
    wire.lock().inject(1, messages);
    until(|| {
        found(&b);
        b.came() == count
    });
    assert_eq!(b.callers().unwrap().no_proof, count);
    // The rank goes on.
    assert_eq!(write(&to_b, b"second").unwrap(), 6);
    let mut came = Vec::new();
    until(|| {
        came.extend(read(&to_a, 100).unwrap_or_default());
        found(&b);
        came == b"firstsecond"
    });
    assert!(b.next(&|_| 0).is_none(), "nothing was lost");
}

/// The reason of the loss that a rank learns of.
fn loss(rails: &Rails) -> String {
    let mut why = None;
    until(|| {
        found(rails);
        if let Some(Made::Unreachable(_, AmError::Unreachable { why: words, .. })) =
            rails.next(&|_| 0)
        {
            why = Some(words);
        }
        why.is_some()
    });
    why.unwrap()
}

#[test]
fn a_failed_send_loses_the_peer_in_the_providers_words() {
    let (wire, [a, _b]) = pair();
    let to_b = opened(&a, 1);
    wire.lock().cut = Some(1);
    write(&to_b, b"hello").unwrap();
    let words = "rank 0 cannot reach rank 1: the cable is out (the wire in memory)";
    assert_eq!(loss(&a), words);
    assert_eq!(read(&to_b, 1).unwrap(), b"");
    let error = write(&to_b, b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_peer_that_answers_nothing_is_lost_and_one_that_computes_is_not() {
    let silence = Duration::from_secs(2);
    let wire = wire(3);
    let [a, b, c] = [0, 1, 2].map(|rank| rails(&wire, rank, silence));
    // Only b's thread answers; what goes to c vanishes.
    wire.lock().silent = Some(2);
    let (_to_b, _to_c) = (opened(&a, 1), opened(&a, 2));
    let words = "rank 0 cannot reach rank 2: it has answered nothing for 2s (the wire in memory)";
    assert_eq!(loss(&a), words);
    assert!(a.next(&|_| 0).is_none());
    let warnings = WARNINGS.lock();
    let is_of_c = |words: &&String| words.contains("no answer from rank 2 for 533");
    // The thread may have been late, and asked anew.
    assert!(warnings.iter().any(|words| is_of_c(&words)), "{warnings:?}");
    drop((b, c));
}

/// The queue is one of messages, not of their order.
#[test]
fn messages_that_come_out_of_turn_wait_for_their_turn() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    let (mut sent, mut came, mut turn) = (0, 0, 0);
    while came < 2 << 20 {
        turn += 1;
        if turn % 5 == 0 && wire.lock().late.is_none() {
            wire.lock().late = Some((1, 1 + turn % 7));
        }
        let len = [1, 300, 5000, 40_000][turn % 4];
        match write(&to_b, &pattern(sent, len)) {
            Ok(written) => sent += written,
            error => would_block(error),
        }
        if !found(&b).rails().is_empty() {
            let bytes = read(&to_a, 30_000).unwrap();
            assert!(bytes == pattern(came, bytes.len()), "at {came}");
            came += bytes.len();
        } else if sent > came {
            // The window may be full of what is behind the late one.
            let mut wire = wire.lock();
            let held = wire.held.take();
            wire.late = None;
            wire.inject(1, held);
        }
        found(&a);
    }
}

/// What comes of it is not looked at before the send.
#[test]
fn a_peer_that_has_left_is_not_lost_by_a_send_to_it() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    write(&to_a, b"last").unwrap();
    {
        // The thread of a finds nothing before the send has failed.
        let mut locked = a.shared.lock();
        b.shared.lock().leave();
        wire.lock().cut = Some(1);
        assert_eq!(locked.write(JobRank(1), 5, |_| ()).unwrap(), 5);
    }
    assert_eq!(read(&to_b, 100).unwrap(), b"last");
    assert_eq!(read(&to_b, 100).unwrap(), b"");
    assert!(a.next(&|_| 0).is_none());
}

/// Nothing but the thread looks at it, whose sleep is that of the queue and ends by what comes.
#[test]
fn a_send_that_fails_later_loses_the_peer_while_the_rank_sleeps() {
    let (wire, [a, b]) = pair();
    let to_b = opened(&a, 1);
    // The thread has nothing to do, and sleeps.
    until(|| a.shared.lock().thread_sleeps());
    wire.lock().sending = Some(0);
    write(&to_b, b"hello").unwrap();
    let (sleeps, done) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        sleeps.send(()).unwrap();
        while !a.has_ready() {
            a.sleep(Some(LIMIT));
        }
        loss(&a)
    });
    done.recv_timeout(LIMIT).unwrap();
    let words = "its memory is gone".to_owned();
    wire.lock().failed.push_back((0, 1, words));
    assert!(sleeper.join().unwrap().contains("its memory is gone"));
    drop(b);
}

#[test]
fn a_queue_that_is_broken_loses_all_peers_and_those_that_are_wanted_later() {
    let wire = wire(3);
    let a = rails(&wire, 0, LIMIT);
    let _to_b = opened(&a, 1);
    wire.lock().broken = Some(0);
    let words = "cannot reach rank 1: the card is gone (the wire in memory)";
    assert!(loss(&a).contains(words));
    a.want(id(2));
    let Some(Made::Rail(_)) = a.next(&|_| 0) else {
        panic!("no rail");
    };
    assert!(loss(&a).contains("cannot reach rank 2: the card is gone"));
    assert!(a.shared.is_broken());
}

/// The channel shuts a rail on which nonsense came.
#[test]
fn a_rail_that_is_shut_ends_for_the_peer_too() {
    let (_, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    write(&to_b, b"all").unwrap();
    to_b.shut();
    until(|| found(&b).rails() == [id(0)]);
    assert_eq!(read(&to_a, 100).unwrap(), b"all");
    until(|| {
        found(&b);
        read(&to_a, 100).is_ok_and(|bytes| bytes.is_empty())
    });
}

/// What a rank has sent last may still be in its provider.
#[test]
fn a_rank_that_ends_waits_a_little_for_its_last_messages() {
    let wire = wire(2);
    let [a, b] = [0, 1].map(|rank| rails_with(&wire, rank, LIMIT, LIMIT));
    let (to_b, _to_a) = (opened(&a, 1), opened(&b, 0));
    write(&to_b, b"last").unwrap();
    wire.lock().sending = Some(0);
    let begun = Instant::now();
    drop(a);
    let waited = begun.elapsed();
    assert!(
        waited >= super::attended::LINGER && waited < LIMIT,
        "{waited:?}"
    );
    drop(b);
}

#[test]
fn what_a_peer_sent_before_its_end_is_read_and_then_the_end() {
    let wire = wire(2);
    let [a, b] = [0, 1].map(|rank| rails_with(&wire, rank, LIMIT, 2 * LIMIT));
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    write(&to_b, &pattern(0, 10_000)).unwrap();
    let begun = Instant::now();
    drop((to_b, a));
    // The peer's thread has said that it has seen the end.
    assert!(begun.elapsed() < LIMIT);
    until(|| found(&b).rails() == [id(0)]);
    would_block(write(&to_a, b"x"));
    let mut came = Vec::new();
    loop {
        let bytes = read(&to_a, 3000).unwrap();
        if bytes.is_empty() {
            break;
        }
        came.extend(bytes);
    }
    assert!(came == pattern(0, 10_000));
    let error = write(&to_a, b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// A rank of the job is trusted to be one, not to be right.
#[test]
fn a_message_out_of_turn_loses_its_peer() {
    for bad in 0..4 {
        let (wire, [_a, b]) = pair();
        let _to_a = opened(&b, 0);
        let mut message = vec![0; HEADER_BYTES + 1];
        let header = Header {
            token: b.shared.lock().token_of(JobRank(0)),
            from: JobRank(0),
            number: if bad == 0 { u32::MAX } else { 0 },
            // Nothing was sent to it.
            taken: u32::from(bad == 1),
            kind: Kind::Data,
        };
        header.write(message.first_chunk_mut().unwrap());
        if bad == 2 {
            message.resize(WINDOW as usize + 1, 0);
        }
        if bad == 3 {
            // The same once more.
            wire.lock().inject(1, [message.clone()]);
        }
        wire.lock().inject(1, [message]);
        let why = loss(&b);
        assert!(why.contains("is none that can come now"), "{bad}: {why}");
    }
}

/// One that reads long after its peer has ended owes it nothing.
#[test]
fn nothing_more_is_sent_to_a_peer_that_has_left() {
    let (wire, [a, b]) = pair();
    let (to_b, to_a) = (opened(&a, 1), opened(&b, 0));
    let mut sent = 0;
    while let Ok(written) = write(&to_b, &pattern(sent, 40_000)) {
        sent += written;
        found(&b);
    }
    assert!(sent > WINDOW as usize / 2, "{sent}");
    drop((to_b, a));
    until(|| {
        found(&b);
        wire.lock().under_way[0].is_empty() || wire.lock().under_way[0].len() == 1
    });
    wire.lock().under_way[0].clear();
    let mut came = 0;
    until(|| {
        found(&b);
        match read(&to_a, 100_000) {
            Ok(bytes) if bytes.is_empty() => true,
            Ok(bytes) => {
                came += bytes.len();
                false
            }
            Err(_) => false,
        }
    });
    assert_eq!(came, sent);
    assert_eq!(wire.lock().under_way[0].len(), 0, "nothing is said to it");
}

/// The process was stopped, not its peer.
#[test]
fn a_thread_that_comes_late_asks_anew() {
    let wire = wire(2);
    let a = rails(&wire, 0, LIMIT);
    let _to_b = opened(&a, 1);
    let (mut locked, mut now) = (a.shared.lock(), a.shared.now());
    for _ in 0..20 {
        // Later than when it was to ask the next time.
        now += LIMIT / 5;
        locked.ask_in_time(now);
    }
    drop(locked);
    found(&a);
    assert!(a.next(&|_| 0).is_none(), "nothing was lost");
    let mut locked = a.shared.lock();
    for _ in 0..20 {
        now += LIMIT / 15;
        locked.ask_in_time(now);
    }
    drop(locked);
    assert!(loss(&a).contains("has answered nothing"));
}
