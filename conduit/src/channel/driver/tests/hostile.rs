//! A peer that holds the key and sends data of a get as no rank of ours would: nothing is written
//! after the get is complete.

use super::rails::{LIMIT, rail, sizes};
use super::*;
use std::time::Instant;

const LEN: usize = 400;

/// The name of the first get: the first turn, the first place.
const OP: u32 = 1 << 16;

/// The payload of a head comes as a body.
const BESIDE: u8 = 2;

/// The head of data for the get, which is at this position of the stream.
fn head(flags: u8, offset: u64, len: usize, position: u64) -> Vec<u8> {
    let fields = Fields {
        offset: 64 + offset,
        op: OP,
        ..Fields::default()
    };
    let mut head = HeadBytes::new(Kind::Got, 0, &[], len, &fields);
    head.set_position(position);
    let mut bytes = head.as_bytes().to_vec();
    bytes[3] = flags;
    bytes
}

/// The body of such a head, with a head of its own.
fn body(offset: u64, len: usize, position: u64) -> Vec<u8> {
    let fields = Fields {
        offset: 64 + offset,
        op: OP,
        position,
        wanted: u8::from(Kind::Got).into(),
        ..Fields::default()
    };
    let head = HeadBytes::new(Kind::Body, 0, &[], len, &fields);
    [head.as_bytes(), &vec![7; len]].concat()
}

/// A rank with a get under way, and its peer's ends of three connections.
struct Case {
    rank: Rank,
    sockets: Vec<TcpStream>,
    place: Vec<u8>,
}

impl Case {
    fn new() -> Self {
        let [here, main] = pair();
        let rank = Rank::new(0, sizes(), Some(connection(1, here, 1)));
        let mut sockets = vec![main];
        for number in 1..=2 {
            let [here, there] = pair();
            rank.queue.push(rail(1, number, here, 1));
            sockets.push(there);
        }
        let mut place = vec![0; LEN];
        rank.get(64, &mut place, 1);
        Self {
            rank,
            sockets,
            place,
        }
    }

    fn send(&mut self, connection: usize, bytes: &[u8]) {
        // It may be closed already.
        let _ = self.sockets[connection].write_all(bytes);
    }

    fn poll_until(&mut self, what: &str, done: impl Fn(&Rank) -> bool) {
        let begun = Instant::now();
        while !done(&self.rank) {
            self.rank.poll();
            assert!(begun.elapsed() < LIMIT, "it never came to this: {what}");
        }
    }

    /// The rank has begun to write the data of a connection to its place.
    fn begins(&mut self, connection: usize) {
        self.poll_until("a payload has begun", |rank| {
            let Some(peer) = rank.tcp.core.used(1) else {
                return false;
            };
            let inbound = peer.inbound.lock();
            match connection {
                0 => inbound.receive_stream.is_placing(),
                number => {
                    let mut rails = inbound.rails.iter();
                    rails.any(|rail| {
                        usize::from(rail.number) == number && rail.receive_stream.is_placing()
                    })
                }
            }
        });
    }

    /// The get is complete, or the peer is found out.
    ///
    /// The place is the user's again: later data must not be written.
    fn ends(mut self, what: &str, connection: usize, rest: usize, is_found_out: bool) {
        self.poll_until(what, |rank| {
            !(rank.seen.completed.is_empty() && rank.seen.broken.is_empty())
        });
        self.place.fill(0xaa);
        self.send(connection, &vec![0x66; rest]);
        for _ in 0..2000 {
            self.rank.poll();
        }
        assert!(
            self.place.iter().all(|byte| *byte == 0xaa),
            "{what}: written after the end"
        );
        let seen = &self.rank.seen;
        assert_eq!(!seen.broken.is_empty(), is_found_out, "{what}: {seen:?}");
        assert_eq!(seen.completed.is_empty(), is_found_out, "{what}: {seen:?}");
    }
}

#[test]
fn a_second_head_in_the_stream_does_not_write_after_the_get() {
    let mut case = Case::new();
    let first = head(BESIDE, 0, LEN, 0);
    let second = head(0, 0, LEN / 2, (first.len() + LEN) as u64);
    case.send(0, &[first, second, vec![0x66; 10]].concat());
    case.begins(0);
    case.send(1, &body(0, LEN, 0));
    case.ends("two heads", 0, LEN / 2 - 10, true);
}

#[test]
fn ranges_that_overlap_do_not_write_after_the_get() {
    // The first half twice, which is as much as was asked for, and then the second half, which has
    // begun before.
    let mut case = Case::new();
    let half = LEN / 2;
    let heads = [
        head(BESIDE, 0, half, 0),
        head(BESIDE, 0, half, (28 + half) as u64),
    ];
    let third = head(0, half as u64, half, (2 * (28 + half)) as u64);
    case.send(0, &[heads.concat(), third, vec![0x66; 10]].concat());
    case.begins(0);
    case.send(1, &body(0, half, 0));
    case.send(2, &body(0, half, (28 + half) as u64));
    case.ends("the first half twice", 0, half - 10, true);
}

#[test]
fn a_second_body_on_another_connection_does_not_write_after_the_get() {
    let mut case = Case::new();
    // One that is behind the only head that comes.
    let early = body(0, LEN, 5000);
    case.send(2, &early[..early.len() / 2]);
    case.begins(2);
    case.send(0, &head(BESIDE, 0, LEN, 0));
    case.send(1, &body(0, LEN, 0));
    case.ends("two bodies", 2, early.len() - early.len() / 2, false);
}
