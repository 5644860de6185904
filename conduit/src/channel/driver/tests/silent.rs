//! Peers whose hosts say nothing any more, and peers that make no call.

use super::*;
use rustix::fd::AsRawFd;
use std::time::Instant;

/// From now on the system throws away all bytes for this socket, before it acknowledges them.
pub(super) fn deafen(socket: &OwnedFd) {
    // Return 0: nothing of the packet is kept.
    let mut code = [libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: the program has one instruction, which lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

const LIMIT: Duration = Duration::from_millis(200);

fn sizes() -> ChannelSizes {
    ChannelSizes {
        silent_time: LIMIT,
        ..ChannelSizes::default()
    }
}

/// Two ranks, and second descriptors of their sockets.
fn pair_of(sizes: ChannelSizes) -> ([Rank; 2], [OwnedFd; 2]) {
    let [here, there] = pair();
    let held = [&here, &there].map(|socket| socket.as_fd().try_clone_to_owned().unwrap());
    let ranks = [
        Rank::new(0, sizes, Some(connection(1, here, 1))),
        Rank::new(1, sizes, Some(connection(0, there, 1))),
    ];
    (ranks, held)
}

/// Polls for so long, or until something is so.
///
/// Whether it was.
pub(super) fn poll_for(
    ranks: &mut [&mut Rank],
    time: Duration,
    done: impl Fn(&[&mut Rank]) -> bool,
) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if done(ranks) {
            return true;
        }
        for rank in ranks.iter_mut() {
            rank.poll();
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn a_black_hole_is_noticed_and_another_connection_is_used() {
    let ([mut a, mut b], held) = pair_of(sizes());
    assert!(a.note(1));
    until(&mut b, "the first", |seen| seen.messages == 1);
    held.iter().for_each(deafen);
    let begun = Instant::now();
    assert!(a.note(2));
    let asked = |ranks: &[&mut Rank]| ranks[0].queue.wanted.lock().as_slice() == [JobRank(1)];
    assert!(poll_for(&mut [&mut a], 50 * LIMIT, asked), "not noticed");
    let after = begun.elapsed();
    assert!(after >= LIMIT, "given up after {after:?}");
    let [here, there] = pair();
    // The other end has taken the first message, and says so.
    let taken = b
        .tcp
        .core
        .used(0)
        .unwrap()
        .inbound
        .lock()
        .receive_stream
        .taken();
    let Made::Rail(mut new) = connection(1, here, 2) else {
        unreachable!()
    };
    new.received = taken;
    a.queue.push(Made::Rail(new));
    b.queue.push(connection(0, there, 2));
    until(&mut a, "connected", |_| true);
    assert!(poll_for(&mut [&mut a, &mut b], 50 * LIMIT, |ranks| {
        ranks[1].seen.messages == 2 && ranks[0].tcp.is_quiescent()
    }));
    assert_eq!(b.seen.messages, 2);
}

/// The peer's host has acknowledged all bytes before it falls silent: nothing is on its way that
/// could fail.
#[test]
fn a_black_hole_is_noticed_while_an_answer_is_waited_for() {
    let ([mut a, b], held) = pair_of(sizes());
    let mut place = [0; 8];
    let op = OpToken::NONE;
    // SAFETY: the place lives longer than the rank.
    let asked = unsafe {
        a.tcp
            .get(JobRank(1), SegmentOffset(0), place.as_mut_ptr(), 8, op)
    };
    assert_eq!(asked, Ok(Injected::Pending));
    a.tcp.flush();
    let acknowledged = |rank: &Rank| {
        let peer = rank.tcp.core.used(1).unwrap();
        let vital = peer.inbound.lock().wire.as_ref().unwrap().vital().unwrap();
        !vital.owed
    };
    while !acknowledged(&a) {
        std::thread::yield_now();
    }
    held.iter().for_each(deafen);
    let asked = |ranks: &[&mut Rank]| ranks[0].queue.wanted.lock().as_slice() == [JobRank(1)];
    assert!(poll_for(&mut [&mut a], 50 * LIMIT, asked), "not noticed");
    drop(b);
}

/// It sleeps without an end, and nothing arrives.
#[test]
fn a_sleeping_rank_notices_too() {
    let ([a, _b], held) = pair_of(sizes());
    held.iter().for_each(deafen);
    assert!(a.note(1));
    let begun = Instant::now();
    while a.queue.wanted.lock().is_empty() {
        a.tcp.sleep(None, a.tcp.epoch());
        assert!(begun.elapsed() < 50 * LIMIT, "not noticed");
    }
}

#[test]
fn a_peer_that_makes_no_call_is_kept() {
    for flood in [false, true] {
        let ([mut a, mut b], _held) = pair_of(sizes());
        let mut sent = 1;
        assert!(a.note(0));
        let bytes = vec![3; 60_000];
        let mut puts = 0;
        // Until its host has no room either.
        while flood && puts < 4 {
            match a.put(0, &bytes, puts) {
                Ok(_) => puts += 1,
                Err(SendError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let none = |ranks: &[&mut Rank]| !ranks[0].queue.wanted.lock().is_empty();
        assert!(!poll_for(&mut [&mut a], 5 * LIMIT, none), "given up");
        assert!(a.note(1));
        sent += 1;
        assert!(poll_for(&mut [&mut a, &mut b], 50 * LIMIT, |ranks| {
            ranks[1].seen.messages == sent && ranks[0].tcp.is_quiescent()
        }));
    }
}

#[test]
fn without_a_limit_no_peer_is_given_up() {
    let ([mut a, _b], held) = pair_of(ChannelSizes {
        silent_time: Duration::ZERO,
        ..sizes()
    });
    held.iter().for_each(deafen);
    assert!(a.note(1));
    let asked = |ranks: &[&mut Rank]| !ranks[0].queue.wanted.lock().is_empty();
    assert!(!poll_for(&mut [&mut a], 4 * LIMIT, asked));
}
