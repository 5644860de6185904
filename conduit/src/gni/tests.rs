//! Rails of ranks of this process, over interfaces in software.

use super::{MailboxRail, MailboxRails, MailboxRailsConfig, software_config};
use crate::channel::Pieces;
use crate::channel::rail::{Made, Rail as _, RailId, Rails as _, Ready};
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::gni::software::{FaultRules, Software};
use argonet_nic::gni::{Credentials, GniError, NicAddress, Shape};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile, bulk};
use core::time::Duration;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// As long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(60);

const SEGMENT_BYTES: u64 = 1 << 16;

const SMALL: Shape = Shape {
    messages: 4,
    message_bytes: 256,
};

type Rails = MailboxRails<Software>;
type Rail = MailboxRail<Software>;

fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "it never came");
        std::thread::yield_now();
    }
}

/// What the ranks of a host share.
struct Host {
    ranks: u32,
    interfaces: OwnedFd,
    segments: OwnedFd,
}

impl Host {
    fn new(ranks: u32) -> Self {
        let segments = SegmentFile::create(ranks, SEGMENT_BYTES, PageKind::Normal).unwrap();
        Self {
            ranks,
            interfaces: memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap(),
            segments: segments.into_fd(),
        }
    }

    fn rank(&self, rank: u32) -> (Rails, OwnSegment) {
        self.rank_with(rank, "of the test", FaultRules::default(), LIMIT)
    }

    /// The rails of a rank, whose segment is attached and not registered yet.
    fn rank_with(
        &self,
        rank: u32,
        secret: &str,
        faults: FaultRules,
        silence: Duration,
    ) -> (Rails, OwnSegment) {
        let peers = (JobRank(0), self.ranks);
        let (rails, segment) = self.made(rank, peers, secret, faults, silence);
        (rails.unwrap(), segment)
    }

    /// Those of a rank that is to have these peers.
    fn rails(&self, rank: u32, peers: (JobRank, u32)) -> Result<Rails, GniError> {
        self.made(rank, peers, "of the test", FaultRules::default(), LIMIT)
            .0
    }

    fn made(
        &self,
        rank: u32,
        peers: (JobRank, u32),
        secret: &str,
        faults: FaultRules,
        silence: Duration,
    ) -> (Result<Rails, GniError>, OwnSegment) {
        let rank = JobRank(rank);
        let segments = self.segments.try_clone().unwrap();
        let normal = PageKind::Normal;
        let file = SegmentFile::from_fd(segments, self.ranks, SEGMENT_BYTES, normal).unwrap();
        let directory = Directory::new(file, rank).unwrap();
        let segment = OwnSegment::attach(&directory, SEGMENT_BYTES).unwrap();
        let nic = Software::new(
            self.interfaces.as_fd(),
            software_config((JobRank(0), self.ranks), SMALL).unwrap(),
            NicAddress { rank, nic: 0 },
            Credentials { ptag: 1, cookie: 0 },
            Some(Resolver::new(Arc::clone(&directory))),
            faults,
        );
        let rails = MailboxRails::new(MailboxRailsConfig {
            rank,
            peers,
            nic: nic.unwrap(),
            shape: SMALL,
            secret: secret.as_bytes().to_vec(),
            reached: Arc::clone(&directory),
            directory,
            silence,
        });
        (rails, segment)
    }
}

fn id(peer: u32) -> RailId {
    let peer = JobRank(peer);
    RailId { peer, number: 0 }
}

fn found(rails: &Rails) -> Ready {
    let mut found = Ready::new();
    rails.begin_poll(true);
    rails.ready(&mut found);
    found
}

/// Polls both until each has a rail to the other, of which only the first one asks.
fn connected(a: (&Rails, u32), b: (&Rails, u32)) -> [Rail; 2] {
    a.0.want(id(b.1));
    let mut made = [None, None];
    until(|| {
        for (at, (rails, peer)) in [(a.0, b.1), (b.0, a.1)].into_iter().enumerate() {
            found(rails);
            match rails.next(&|_| 0) {
                Some(Made::Rail(new)) => {
                    assert_eq!((new.id, new.incarnation, new.received), (id(peer), 1, 0));
                    rails.open(new.id, &new.rail).unwrap();
                    assert!(made[at].replace(new.rail).is_none(), "two rails");
                }
                other => assert!(other.is_none(), "{other:?}"),
            }
        }
        made.iter().all(Option::is_some)
    });
    made.map(|rail| rail.unwrap())
}

fn write(rail: &Rail, bytes: &[u8]) -> io::Result<usize> {
    let mut pieces = Pieces::new();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for part in [first, second] {
        pieces.add(part.as_ptr().cast_mut(), part.len());
    }
    // SAFETY: the pieces are the bytes.
    unsafe { rail.write(&pieces) }
}

fn read(rail: &Rail, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut pieces = Pieces::new();
    pieces.add(bytes.as_mut_ptr(), most);
    // SAFETY: the piece is the bytes.
    let read = unsafe { rail.read(&pieces) }?;
    bytes.truncate(read);
    Ok(bytes)
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

/// spec G3: whichever rank asks first, and if both do.
#[test]
fn ranks_that_greet_each_other_have_one_connection() {
    for both in [false, true] {
        let host = Host::new(3);
        let [(a, _), (b, _), (c, _)] = [0, 1, 2].map(|rank| host.rank(rank));
        if both {
            b.want(id(0));
        }
        let [to_b, to_a] = connected((&a, 0), (&b, 1));
        // To ask again changes nothing.
        a.want(id(1));
        b.want(id(0));
        for rails in [&a, &b, &c] {
            found(rails);
            assert!(rails.next(&|_| 0).is_none());
            assert_eq!(rails.came(), 0);
        }
        assert_eq!(write(&to_b, b"to b").unwrap(), 4);
        assert_eq!(write(&to_a, b"to a").unwrap(), 4);
        assert_eq!(read(&to_a, 9).unwrap(), b"to b");
        assert_eq!(read(&to_b, 9).unwrap(), b"to a");
    }
}

/// spec G4: longer than the mailboxes, in pieces of all lengths, both ways.
#[test]
fn bytes_arrive_in_order_and_a_full_mailbox_takes_none() {
    let host = Host::new(2);
    let [(a, _), (b, _)] = [0, 1].map(|rank| host.rank(rank));
    let rails = connected((&a, 0), (&b, 1));
    let (mut sent, mut came) = ([0; 2], [0; 2]);
    let mut turn = 0_usize;
    while came.iter().any(|came| *came < 1 << 20) {
        turn += 1;
        for at in [0, 1] {
            let bytes = pattern(sent[at], turn * 7 % 1500 + 1);
            match write(&rails[at], &bytes) {
                Ok(written) => sent[at] += written,
                error => would_block(error),
            }
            match read(&rails[1 - at], turn * 11 % 700 + 1) {
                Ok(bytes) => {
                    assert_eq!(bytes, pattern(came[at], bytes.len()), "turn {turn}");
                    came[at] += bytes.len();
                }
                error => would_block(error),
            }
        }
    }
    while let Ok(rest) = read(&rails[1], 4096) {
        came[0] += rest.len();
    }
    assert_eq!(came[0], sent[0]);
    let whole = vec![7; 1 << 12];
    let most = (SMALL.messages * SMALL.message_bytes) as usize;
    assert_eq!(write(&rails[0], &whole).unwrap(), most);
    would_block(write(&rails[0], &whole));
}

/// More of them have something than a look finds.
#[test]
fn all_rails_with_something_are_ready_in_turn() {
    let host = Host::new(20);
    let all: Vec<(Rails, OwnSegment)> = (0..20).map(|rank| host.rank(rank)).collect();
    let (first, _) = &all[0];
    let mut to_first = Vec::new();
    let mut from = Vec::new();
    for (rank, (rails, _)) in (0..).zip(&all).skip(1) {
        let [mine, theirs] = connected((first, 0), (rails, rank));
        to_first.push(theirs);
        from.push(mine);
    }
    assert!(!first.has_ready());
    for rail in &to_first {
        write(rail, b"something").unwrap();
    }
    assert!(first.has_ready());
    let mut seen = [0; 20];
    for _ in 0..4 {
        let found = found(first);
        assert_eq!(found.rails().len(), Ready::ROOM);
        for id in found.rails() {
            seen[id.peer.index()] += 1;
        }
    }
    assert!(seen[1..].iter().all(|count| *count > 1), "{seen:?}");
    for rail in &from {
        assert_eq!(read(rail, 9).unwrap(), b"something");
    }
    assert_eq!(found(first).rails(), []);
    assert!(!first.has_ready());
}

/// spec G6: a thread sleeps in the queue, for messages and for room.
#[test]
fn a_sleep_ends_with_a_message_with_room_and_when_it_is_woken() {
    let host = Host::new(2);
    let [(a, _), (b, _)] = [0, 1].map(|rank| host.rank(rank));
    let [to_b, to_a] = connected((&a, 0), (&b, 1));
    for _ in 0..200 {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| until(|| write(&to_b, b"x").is_ok()));
            let begun = Instant::now();
            b.forget_wakeups();
            until(|| {
                b.sleep(Some(LIMIT));
                found(&b).rails() == [id(0)]
            });
            assert!(begun.elapsed() < LIMIT / 2);
            writer.join().unwrap();
        });
        assert_eq!(read(&to_a, 9).unwrap(), b"x");
        while write(&to_b, &[1; 256]).is_ok() {}
        a.wait_for_room(id(1), &to_b, true);
        a.forget_wakeups();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| while read(&to_a, 4096).is_ok() {});
            let begun = Instant::now();
            until(|| {
                a.sleep(Some(LIMIT));
                write(&to_b, b"y").is_ok()
            });
            assert!(begun.elapsed() < LIMIT / 2);
            reader.join().unwrap();
        });
        a.wait_for_room(id(1), &to_b, false);
        while read(&to_a, 4096).is_ok() {}
        a.forget_wakeups();
        a.wake();
        a.sleep(None);
    }
}

/// The rail's place of the segment of a rank.
fn place(segment: &OwnSegment, at: usize) -> *mut u8 {
    segment.base().as_ptr().wrapping_add(at)
}

/// spec G5: the interface takes aligned gets alone.
#[test]
fn gets_of_any_place_and_length() {
    let host = Host::new(2);
    let [(a, _own), (b, segment)] = [0, 1].map(|rank| host.rank(rank));
    let moves = a.one_sided().unwrap();
    let at = |offset: usize| (JobRank(1), SegmentOffset(offset as u64));
    let get = |offset: usize, to: &mut [u8]| {
        let (rank, place) = at(offset);
        // SAFETY: the bytes are writable.
        unsafe { moves.get_now(rank, place, to.as_mut_ptr(), to.len()) }
    };
    assert!(!get(0, &mut [0; 4]), "it is not registered yet");
    b.one_sided().unwrap().segment_grown().unwrap();
    let whole = pattern(0, SEGMENT_BYTES as usize);
    // SAFETY: all of the segment is writable.
    unsafe { bulk::copy(place(&segment, 0), whole.as_ptr(), whole.len()) };
    let mut room = vec![0; 3 * 4096 + 64];
    let mut tried = 0;
    for from in 0..5 {
        for to in 0..5 {
            for len in (0..20).chain([4090, 4096, 4097, 5000, 3 * 4096 + 1]) {
                room.fill(0xee);
                assert!(get(from, &mut room[to..to + len]), "{from} {to} {len}");
                assert_eq!(room[to..to + len], whole[from..from + len], "{from} {to}");
                assert!(room[..to].iter().all(|byte| *byte == 0xee));
                assert!(room[to + len..].iter().all(|byte| *byte == 0xee));
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 5 * 5 * 25);
    let counts = a.counts();
    assert!(counts.fma_gets > 100 && counts.rdma_gets > 0, "{counts:?}");
    let end = SEGMENT_BYTES as usize;
    assert!(get(end - 3, &mut room[1..4]));
    assert!(!get(end - 3, &mut room[1..5]), "beyond the end");
    assert!(!get(end, &mut room[..4]));
    // Puts of any place need no buffer.
    for (from, len) in [(1, 3), (3, 5000), (end - 7, 7)] {
        let (rank, offset) = at(from);
        let bytes = pattern(99, len);
        // SAFETY: the bytes are readable.
        assert!(unsafe { moves.put_now(rank, offset, bytes.as_ptr(), len) });
        assert!(get(from, &mut room[..len]));
        assert_eq!(room[..len], bytes);
    }
    assert_eq!((a.counts().fma_puts, a.counts().rdma_puts), (2, 1));
}

/// spec G9: what does not pass is left to the stream of the channel.
#[test]
fn transient_failures_are_tried_again_and_others_refused() {
    let host = Host::new(2);
    let faults = |transient, fatal| FaultRules {
        seed: 7,
        transient,
        fatal,
        late: 300_000,
        late_calls: 5,
        ..FaultRules::default()
    };
    let (a, _own) = host.rank_with(0, "of the test", faults(300_000, 0), LIMIT);
    let (b, segment) = host.rank(1);
    b.one_sided().unwrap().segment_grown().unwrap();
    let put = |rails: &Rails, offset: u64, value: u64| {
        let bytes = value.to_ne_bytes();
        let moves = rails.one_sided().unwrap();
        // SAFETY: the bytes are readable.
        unsafe { moves.put_now(JobRank(1), SegmentOffset(offset), bytes.as_ptr(), 8) }
    };
    for value in 0..500 {
        assert!(put(&a, 8 * value, value));
        // SAFETY: the place is in the segment.
        let there = unsafe {
            place(&segment, 8 * value as usize)
                .cast::<u64>()
                .read_volatile()
        };
        assert_eq!(there, value);
    }
    assert!(a.counts().retries > 50, "{:?}", a.counts());
    let host = Host::new(3);
    let (a, _own) = host.rank_with(0, "of the test", faults(0, 1_000_000), LIMIT);
    let [(b, _segment), (c, _other)] = [1, 2].map(|rank| host.rank(rank));
    b.one_sided().unwrap().segment_grown().unwrap();
    assert!(!put(&a, 0, 1), "it fails for ever");
    assert!(put(&c, 0, 1));
    c.forget(JobRank(1));
    assert!(!put(&c, 0, 2), "the peer is lost");
}

#[test]
fn puts_to_a_rank_that_has_ended_fail() {
    let host = Host::new(2);
    let [(a, _own), (b, _segment)] = [0, 1].map(|rank| host.rank(rank));
    b.one_sided().unwrap().segment_grown().unwrap();
    let moves = a.one_sided().unwrap();
    // SAFETY: the bytes are readable.
    let put = || unsafe { moves.put_now(JobRank(1), SegmentOffset(0), [1].as_ptr(), 1) };
    assert!(put());
    drop(b);
    assert!(!put());
}

#[test]
fn a_rail_that_is_shut_ends_for_both() {
    let host = Host::new(2);
    let short = Duration::from_millis(20);
    let (a, _) = host.rank_with(0, "of the test", FaultRules::default(), short);
    let (b, _) = host.rank(1);
    let [to_b, to_a] = connected((&a, 0), (&b, 1));
    // The end comes behind what was written, also where there was no room for it.
    while write(&to_a, &[3; 256]).is_ok() {}
    b.close(id(0), &to_a);
    assert_eq!(
        write(&to_a, b"x").unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
    let mut came = 0;
    until(|| {
        found(&b);
        match read(&to_b, 100) {
            Ok(bytes) => {
                came += bytes.len();
                bytes.is_empty()
            }
            error => {
                would_block(error);
                false
            }
        }
    });
    assert_eq!(came, (SMALL.messages * SMALL.message_bytes) as usize);
    assert_eq!(found(&a).rails(), [id(1)], "its end is found");
    a.close(id(1), &to_b);
    a.want(id(1));
    let mut made = None;
    until(|| {
        found(&a);
        made = a.next(&|_| 0);
        made.is_some()
    });
    let Some(Made::Unreachable(of, AmError::Unreachable { why, .. })) = made else {
        panic!("{made:?}");
    };
    assert_eq!(of, id(1));
    assert!(why.contains("has left the job"), "{why}");
}

#[test]
fn sends_to_a_rank_that_has_ended_fail() {
    let host = Host::new(2);
    let [(a, _), (b, _)] = [0, 1].map(|rank| host.rank(rank));
    let [to_b, to_a] = connected((&a, 0), (&b, 1));
    write(&to_a, b"the last words").unwrap();
    drop((to_a, b));
    assert_eq!(read(&to_b, 99).unwrap(), b"the last words");
    assert_eq!(
        write(&to_b, b"x").unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
}

#[test]
fn a_rank_of_another_job_is_not_connected() {
    let host = Host::new(2);
    let (a, _own) = host.rank(0);
    let (b, segment) = host.rank_with(1, "of another", FaultRules::default(), LIMIT);
    b.one_sided().unwrap().segment_grown().unwrap();
    a.want(id(1));
    until(|| {
        found(&a);
        found(&b);
        b.came() > 0
    });
    assert!(b.next(&|_| 0).is_none() && a.next(&|_| 0).is_none());
    let moves = a.one_sided().unwrap();
    // SAFETY: the bytes are readable.
    let put = unsafe { moves.put_now(JobRank(1), SegmentOffset(0), [1].as_ptr(), 1) };
    assert!(!put, "it has another key");
    // SAFETY: the place is in the segment.
    assert_eq!(unsafe { place(&segment, 0).read_volatile() }, 0);
    a.want(id(9));
    let made = a.next(&|_| 0);
    let Some(Made::Unreachable(_, error)) = made else {
        panic!("{made:?}");
    };
    assert!(error.to_string().contains("another host"), "{error}");
}

/// spec G2: a greeting that the peer does not see is posted again.
#[test]
fn lost_datagrams_are_posted_again() {
    let host = Host::new(2);
    let lossy = |seed| FaultRules {
        seed,
        lose_datagram: 700_000,
        ..FaultRules::default()
    };
    let (a, _) = host.rank_with(0, "of the test", lossy(1), LIMIT);
    let (b, _) = host.rank_with(1, "of the test", lossy(2), LIMIT);
    let [to_b, to_a] = connected((&a, 0), (&b, 1));
    write(&to_b, b"here").unwrap();
    assert_eq!(read(&to_a, 9).unwrap(), b"here");
}

#[test]
fn a_rank_that_is_none_of_the_peers_has_no_rails() {
    let host = Host::new(2);
    let (rails, _segment) = host.rank(0);
    assert_eq!((rails.name(), rails.most()), (super::NAME, 1));
    let refused = host.rails(1, (JobRank(0), 1)).map(drop);
    assert!(
        matches!(refused, Err(GniError::BadPeer { .. })),
        "{refused:?}"
    );
}
