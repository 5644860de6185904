//! Large transfers over several connections.

use super::*;
use std::time::Instant;

pub(super) const LIMIT: Duration = Duration::from_secs(20);

pub(super) fn rail(peer: u32, number: u16, socket: TcpStream, incarnation: u64) -> Made {
    let Made::Rail(new) = connection(peer, socket, incarnation) else {
        unreachable!()
    };
    let id = RailId { number, ..new.id };
    Made::Rail(NewRail { id, ..new })
}

/// Completions are short, so that a transfer has many and windows are soon over.
pub(super) fn sizes() -> ChannelSizes {
    ChannelSizes {
        eager_bytes: 64,
        fragment_bytes: 700,
        rails: 3,
        ..ChannelSizes::default()
    }
}

/// Gives both ranks another connection of a number; second descriptors of its sockets.
pub(super) fn connect(ranks: &[Rank; 2], number: u16, incarnation: u64) -> [OwnedFd; 2] {
    let [here, there] = pair();
    let held = [&here, &there].map(|socket| socket.as_fd().try_clone_to_owned().unwrap());
    ranks[0].queue.push(rail(1, number, here, incarnation));
    ranks[1].queue.push(rail(0, number, there, incarnation));
    held
}

pub(super) fn settle(ranks: &mut [Rank; 2], what: &str, done: impl Fn(&[Rank; 2]) -> bool) {
    let begun = Instant::now();
    while !done(ranks) {
        ranks.iter_mut().for_each(|rank| {
            rank.poll();
        });
        assert!(begun.elapsed() < LIMIT, "it never came to this: {what}");
    }
}

/// The same, where the first connection may be cut, because another one brings its payload: it is
/// made again.
fn settle_and_mend(
    ranks: &mut [Rank; 2],
    first: &mut u64,
    what: &str,
    done: impl Fn(&[Rank; 2]) -> bool,
) {
    let begun = Instant::now();
    while !done(ranks) {
        let is_wanted = |rank: &Rank| !rank.queue.wanted.lock().is_empty();
        if ranks.iter().any(is_wanted) {
            *first += 1;
            for ((me, peer), socket) in [(0, 1), (1, 0)].into_iter().zip(pair()) {
                let Made::Rail(mut made) = connection(peer, socket, *first) else {
                    unreachable!()
                };
                let there = ranks[peer as usize].tcp.core.used(me).unwrap();
                made.received = there.inbound.lock().complete();
                let queue = &ranks[me as usize].queue;
                queue.wanted.lock().clear();
                queue.push(Made::Rail(made));
            }
        }
        ranks.iter_mut().for_each(|rank| {
            rank.poll();
        });
        assert!(begun.elapsed() < LIMIT, "it never came to this: {what}");
    }
}

fn bytes(seed: u64) -> Vec<u8> {
    (0..40_000u64)
        .map(|i| (i * (seed + 3) + (i >> 8)) as u8)
        .collect()
}

/// Puts and gets of 40,000 bytes each, one after the other, checked.
pub(super) fn transfers(ranks: &mut [Rank; 2], count: u64) {
    for n in 0..count {
        let source = bytes(n);
        ranks[0].put(64, &source, 2 * n).unwrap();
        let done = |handle| {
            move |ranks: &[Rank; 2]| {
                ranks[0]
                    .seen
                    .completed
                    .contains(&(handle, Completion::Remote))
            }
        };
        settle(ranks, "a put", done(2 * n));
        let mut there = vec![0; source.len()];
        let view = ranks[1].segment.bytes(SegmentOffset(64), there.len());
        view.unwrap().copy_to(0, &mut there).unwrap();
        assert!(there == source, "put {n}");
        let mut back = vec![0; source.len()];
        ranks[0].get(64, &mut back, 2 * n + 1);
        settle(ranks, "a get", done(2 * n + 1));
        assert!(back == source, "get {n}");
        ranks[0].seen.completed.clear();
    }
}

/// Bytes that a rank has read from a further connection, as the system counts them.
fn received(socket: &OwnedFd) -> u64 {
    use rustix::fd::AsRawFd;
    let mut info = core::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes there.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    assert_eq!(result, 0);
    // SAFETY: zeros, of which the system has overwritten some.
    unsafe { info.assume_init() }.tcpi_bytes_received
}

/// spec T3: a long payload goes over several connections. spec T7: and only a long one asks for
/// them.
#[test]
fn a_large_transfer_asks_for_further_connections_and_uses_them() {
    let mut ranks = two(sizes());
    ranks[0].put(0, &[1; 300], 1000).unwrap();
    assert_eq!(*ranks[0].queue.wanted_rails.lock(), []);
    settle(&mut ranks, "a short put", |ranks| {
        ranks[0].tcp.is_quiescent()
    });
    transfers(&mut ranks, 2);
    assert_eq!(*ranks[0].queue.wanted_rails.lock(), [1, 2]);
    let held = [connect(&ranks, 1, 1), connect(&ranks, 2, 1)];
    transfers(&mut ranks, 40);
    for [here, there] in &held {
        // Puts went one way, the data of gets the other.
        assert!(received(there) > 5_000, "{}", received(there));
        assert!(received(here) > 5_000, "{}", received(here));
    }
    assert_eq!(ranks[0].queue.wanted_rails.lock().len(), 2);
}

// spec B1, with rails that fail at any time. spec B7: nothing is lost with them.
/// Each connection ends now and then, in the middle of transfers, and is made again later or not at
/// all.
#[test]
fn connections_that_break_lose_nothing() {
    let mut ranks = two(sizes());
    let mut held = [connect(&ranks, 1, 1), connect(&ranks, 2, 1)];
    let mut chance = 1u64;
    let mut incarnations = [1, 1];
    let mut first = 1;
    for round in 0..60 {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (which, polls) = ((chance >> 60 & 1) as usize, chance >> 33 & 31);
        let source = bytes(round);
        ranks[0].put(64, &source, round).unwrap();
        for _ in 0..polls {
            ranks[0].poll();
            ranks[1].poll();
        }
        let socket = &held[which][(chance >> 61 & 1) as usize];
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        if !round.is_multiple_of(3) {
            incarnations[which] += 1;
            held[which] = connect(&ranks, which as u16 + 1, incarnations[which]);
        }
        settle_and_mend(&mut ranks, &mut first, "a put", |ranks| {
            ranks[0]
                .seen
                .completed
                .contains(&(round, Completion::Remote))
        });
        let mut there = vec![0; source.len()];
        let view = ranks[1].segment.bytes(SegmentOffset(64), there.len());
        view.unwrap().copy_to(0, &mut there).unwrap();
        assert!(there == source, "put {round}");
    }
    settle_and_mend(&mut ranks, &mut first, "connected", |ranks| {
        let is_there = |rank: &Rank, peer| {
            let inbound = rank.tcp.core.used(peer).unwrap().inbound.lock();
            inbound.wire.is_some()
        };
        is_there(&ranks[0], 1) && is_there(&ranks[1], 0)
    });
    assert!(ranks.iter().all(|rank| rank.seen.broken.is_empty()));
    ranks[0].seen.completed.clear();
    transfers(&mut ranks, 3);
}

// spec B10: a put with a fragment that the peer has not taken is not complete.
/// Messages do not wait for payloads that are under way elsewhere, and only whole payloads are
/// acknowledged.
#[test]
fn a_put_is_complete_when_all_of_it_is_there() {
    let mut ranks = two(sizes());
    let held = [connect(&ranks, 1, 1)];
    transfers(&mut ranks, 12);
    // Nothing comes over the further connection any more.
    silent::deafen(&held[0][1]);
    let mut deaf = 0;
    let sources: Vec<Vec<u8>> = (0..40).map(bytes).collect();
    for (n, source) in sources.iter().enumerate() {
        let handle = 5000 + n as u64;
        while ranks[0].put(64, source, handle) == Err(SendError::Full) {
            ranks.iter_mut().for_each(|rank| {
                rank.poll();
            });
            deaf += 1;
            if deaf > 20_000 {
                break;
            }
        }
    }
    let before = ranks[1].seen.messages;
    assert!(ranks[0].note(7), "no room for a message");
    settle(&mut ranks, "a message", |ranks| {
        ranks[1].seen.messages > before
    });
    let complete = ranks[0].seen.completed.iter();
    let complete = complete
        .filter(|(op, completion)| *op >= 5000 && *completion == Completion::Remote)
        .count();
    assert!(complete < 40, "a put is complete before its bytes came");
    // It ends, and its payloads come over another rail.
    let _ = rustix::net::shutdown(&held[0][0], rustix::net::Shutdown::Both);
    settle(&mut ranks, "all", |ranks| ranks[0].tcp.is_quiescent());
}

/// Bodies that no peer sends.
#[test]
fn invalid_frames_on_a_further_rail_are_reported() {
    let head = |kind, length, fields: Fields| HeadBytes::new(kind, 0, &[], length, &fields);
    let of = |kind: Kind, position| Fields {
        position,
        wanted: u8::from(kind).into(),
        rest: 8,
        ..Fields::default()
    };
    for (what, head) in [
        (
            "a message",
            HeadBytes::new(Kind::ShortRequest, 128, &[], 0, &Fields::default()),
        ),
        (
            "a body of a message",
            head(Kind::Body, 8, of(Kind::ShortRequest, 0)),
        ),
        (
            "data that was not asked for",
            head(Kind::Body, 8, of(Kind::Got, 0)),
        ),
        (
            "more than the put has",
            head(Kind::Body, 9, of(Kind::Put, 0)),
        ),
    ] {
        let [here, _there] = pair();
        let mut a = Rank::new(0, sizes(), Some(connection(1, here, 1)));
        let [here, mut there] = pair();
        a.queue.push(rail(1, 1, here, 1));
        let mut bytes = head.as_bytes().to_vec();
        bytes.extend_from_slice(&[0; 9]);
        there.write_all(&bytes).unwrap();
        until(&mut a, what, |seen| !seen.broken.is_empty());
    }
}

// spec B1: the error of a rail leaves the peer as it was.
#[test]
fn without_further_connections_all_goes_over_the_first() {
    let mut ranks = two(sizes());
    let error = AmError::PeerDead {
        at: JobRank(0),
        peer: JobRank(1),
        silent_ms: 1,
    };
    transfers(&mut ranks, 1);
    ranks[0].queue.push(Made::Unreachable(
        RailId {
            peer: JobRank(1),
            number: 1,
        },
        error,
    ));
    transfers(&mut ranks, 3);
    assert!(ranks[0].seen.broken.is_empty());
}

// spec B9: the late rail is fenced. spec B3: its bytes have come before.
/// A connection has a body in the middle that comes whole over another one: the rest of it comes
/// late, when the put is complete and its place has been used again.
#[test]
fn nothing_old_is_written_after_the_put_is_complete() {
    const LEN: usize = 400;
    let fields = Fields {
        offset: 64,
        rest: LEN as u64,
        ..Fields::default()
    };
    let mut head = HeadBytes::new(Kind::Put, 0, &[], LEN, &fields)
        .as_bytes()
        .to_vec();
    head[3] = 2;
    let body = Fields {
        wanted: u8::from(Kind::Put).into(),
        ..fields
    };
    let body = HeadBytes::new(Kind::Body, 0, &[], LEN, &body);
    let whole = [body.as_bytes(), &[7; LEN]].concat();
    // The one in the middle is a further connection, or the first.
    for stale in [1, 0] {
        let [here, main] = pair();
        let mut a = Rank::new(0, sizes(), Some(connection(1, here, 1)));
        let mut sockets = vec![main];
        for number in 1..=2 {
            let [here, there] = pair();
            a.queue.push(rail(1, number, here, 1));
            sockets.push(there);
        }
        let half = whole.len() / 2;
        let placing = |a: &Rank| {
            let inbound = a.tcp.core.used(1).unwrap().inbound.lock();
            let mut rails = inbound.rails.iter();
            inbound.receive_stream.placing().is_some()
                || rails.any(|s| s.receive_stream.placing().is_some())
        };
        if stale == 0 {
            sockets[0].write_all(&head).unwrap();
        }
        sockets[stale].write_all(&whole[..half]).unwrap();
        let begun = Instant::now();
        while a.tcp.core.used(1).is_none() || !placing(&a) {
            a.poll();
            assert!(begun.elapsed() < LIMIT);
        }
        sockets[2].write_all(&whole).unwrap();
        if stale == 1 {
            sockets[0].write_all(&head).unwrap();
        }
        let there = |a: &Rank| {
            let mut there = vec![0; LEN];
            let view = a.segment.bytes(SegmentOffset(64), LEN).unwrap();
            view.copy_to(0, &mut there).unwrap();
            there
        };
        let complete = |a: &Rank| {
            let inbound = a.tcp.core.used(1).unwrap().inbound.lock();
            inbound.complete() == (head.len() + LEN) as u64
        };
        while !complete(&a) {
            a.poll();
            assert!(begun.elapsed() < LIMIT);
        }
        assert!(there(&a) == [7; LEN]);
        let used = vec![9; LEN];
        let mut view = a.segment.bytes_mut(SegmentOffset(64), LEN).unwrap();
        view.copy_from(0, &used).unwrap();
        // It may be closed already.
        let _ = sockets[stale].write_all(&whole[half..]);
        for _ in 0..2000 {
            a.poll();
        }
        assert!(there(&a) == used, "written by connection {stale}");
        assert!(a.seen.broken.is_empty(), "{:?}", a.seen.broken);
    }
}

/// A payload comes beside the stream, and in it.
///
/// The first connection was lost, and its last bytes come when the sender has given the payload to
/// another. What is left of the one is forgotten.
#[test]
fn a_payload_that_the_stream_brings_is_not_waited_for_beside_it() {
    const LEN: usize = 400;
    let fields = Fields {
        offset: 64,
        rest: LEN as u64,
        ..Fields::default()
    };
    let head = HeadBytes::new(Kind::Put, 0, &[], LEN, &fields);
    let inline = [head.as_bytes(), &[7; LEN]].concat();
    let body = Fields {
        wanted: u8::from(Kind::Put).into(),
        ..fields
    };
    let body = HeadBytes::new(Kind::Body, 0, &[], LEN, &body);
    let beside = [body.as_bytes(), &[7; LEN]].concat();
    for first in [beside.len(), beside.len() / 2] {
        let [here, mut main] = pair();
        let mut a = Rank::new(0, sizes(), Some(connection(1, here, 1)));
        let [here, mut further] = pair();
        a.queue.push(rail(1, 1, here, 1));
        further.write_all(&beside[..first]).unwrap();
        let waits = |a: &Rank| {
            let peer = a.tcp.core.used(1)?;
            let inbound = peer.inbound.lock();
            let mut rails = inbound.rails.iter();
            Some(inbound.waits() || rails.any(|rail| rail.receive_stream.placing().is_some()))
        };
        let begun = Instant::now();
        while waits(&a) != Some(true) {
            a.poll();
            assert!(begun.elapsed() < LIMIT);
        }
        main.write_all(&inline).unwrap();
        let complete = |a: &Rank| {
            let inbound = a.tcp.core.used(1).unwrap().inbound.lock();
            inbound.complete() == inline.len() as u64
        };
        while !complete(&a) {
            a.poll();
            assert!(begun.elapsed() < LIMIT);
        }
        assert_eq!(waits(&a), Some(false), "after {first} bytes");
        let used = vec![9; LEN];
        let mut view = a.segment.bytes_mut(SegmentOffset(64), LEN).unwrap();
        view.copy_from(0, &used).unwrap();
        // It may be closed already.
        let _ = further.write_all(&beside[first..]);
        for _ in 0..2000 {
            a.poll();
        }
        let mut there = vec![0; LEN];
        let view = a.segment.bytes(SegmentOffset(64), LEN).unwrap();
        view.copy_to(0, &mut there).unwrap();
        assert!(there == used, "written after the put was complete");
        assert!(a.seen.broken.is_empty(), "{:?}", a.seen.broken);
    }
}

/// A put that is longer than the window leaves room for operations of a single frame, and a refusal
/// between its frames, or of one of them, is not taken for the other.
#[test]
fn short_operations_do_not_wait_for_a_transfer() {
    let long = bytes(1);
    // Its last frames are refused.
    let outside = SEGMENT - 30_000;
    let beyond = SEGMENT - 4;
    for (long_at, short_at, from) in [
        (64, 50_000, 48_000),
        (outside, 20_000, 8000),
        (64, beyond, 48_000),
    ] {
        let mut ranks = two(sizes());
        let (mut few, mut many) = ([9; 8], vec![0; 5000]);
        assert_eq!(ranks[0].put(long_at, &long, 1), Ok(Injected::Pending));
        assert_eq!(ranks[0].put(short_at, &[5; 8], 2), Ok(Injected::Local));
        assert_eq!(ranks[0].try_get(from, &mut few, 3), Ok(Injected::Pending));
        // Those of several frames, and those that are not copied, wait.
        assert_eq!(ranks[0].try_get(0, &mut many, 4), Err(SendError::Full));
        assert_eq!(ranks[0].put(0, &[5; 80], 5), Err(SendError::Full));
        settle(&mut ranks, "all", |ranks| ranks[0].tcp.is_quiescent());
        let is_there = |handle| {
            ranks[0]
                .seen
                .completed
                .contains(&(handle, Completion::Remote))
        };
        let due = [long_at != outside, short_at != beyond, true];
        assert_eq!([1, 2, 3].map(is_there), due, "{long_at} {short_at}");
        assert_eq!(few, [0; 8]);
        let refusals = due.iter().filter(|is_due| !**is_due).count();
        assert_eq!(
            ranks[0].seen.broken.len().min(1),
            refusals,
            "{long_at} {short_at}"
        );
        if due[0] {
            let mut there = vec![0; long.len()];
            let view = ranks[1].segment.bytes(SegmentOffset(64), there.len());
            view.unwrap().copy_to(0, &mut there).unwrap();
            assert!(there == long);
        }
    }
}
