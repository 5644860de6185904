//! What one poll finds, and what leaves with it.

use super::*;
use rustix::event::{PollFd, PollFlags, poll};

/// What handlers send leaves with the poll that ran them: their rank may compute from then on.
#[test]
fn what_handlers_gather_leaves_with_their_poll() {
    let [mut a, mut b] = two(TcpSizes {
        gather_time: Duration::from_secs(1000),
        // Everything belongs to one burst.
        burst_ticks: u64::MAX,
        ..TcpSizes::default()
    });
    b.seen.answer = 8;
    for round in 1..=20 {
        assert!(a.note(1) && a.note(2));
        a.poll();
        until(&mut b, "both requests", |seen| seen.messages == 2 * round);
        until(&mut a, "both replies", |seen| seen.messages == 2 * round);
    }
}

/// Where the next thing comes from another peer each time, the first poll finds it.
#[test]
fn peers_in_turn_are_found_by_the_first_poll() {
    let sockets = [pair(), pair()];
    let held = sockets
        .each_ref()
        .map(|[here, _]| here.try_clone().unwrap());
    let [[to_1, at_1], [to_2, at_2]] = sockets;
    let sizes = TcpSizes {
        gather_time: Duration::ZERO,
        ..TcpSizes::default()
    };
    let mut a = Rank::new(0, sizes, Some(connection(1, to_1, 1)));
    a.queue.push(connection(2, to_2, 1));
    let mut others = [(1, at_1), (2, at_2)]
        .map(|(rank, socket)| Rank::new(rank, sizes, Some(connection(0, socket, 1))));
    // What passes when connections are made.
    for _ in 0..100 {
        a.poll();
        others.iter_mut().for_each(|rank| _ = rank.poll());
    }
    for n in 0..40 {
        let whose = n % 2;
        let short = Short::pack(NOTE, &[n as u32]).unwrap();
        assert!(others[whose].tcp.request_short(JobRank(0), short));
        others[whose].poll();
        poll(&mut [PollFd::new(&held[whose], PollFlags::IN)], None).unwrap();
        assert_eq!(a.poll(), 1, "message {n}");
    }
    assert_eq!(a.seen.firsts, (0..40).collect::<Vec<_>>());
}
