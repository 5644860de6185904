//! Messages that one poll finds, and messages that leave with it.

use super::*;
use rustix::event::{PollFd, PollFlags, poll};

/// Sends each message on to rank 1, as the next step of a collective operation does.
struct Forward<'a>(&'a Tcp, usize);

impl Sink for Forward<'_> {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let short = Short::pack(NOTE, delivery.args()).unwrap();
        assert!(self.0.request_short(JobRank(1), short));
        self.1 += 1;
    }

    fn completed(&mut self, _: OpToken, _: Completion) {}

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

/// Messages of handlers leave with the poll that ran them: their rank may compute from then on.
#[test]
fn messages_of_handlers_leave_with_their_poll() {
    let patient = ChannelSizes {
        gather_time: Duration::from_secs(1000),
        // Everything belongs to one burst.
        burst_ticks: u64::MAX,
        ..ChannelSizes::default()
    };
    let [[here, there], [after, end]] = [pair(), pair()];
    let mut first = Rank::new(2, patient, Some(connection(0, here, 1)));
    let middle = Rank::new(0, patient, Some(connection(2, there, 1)));
    middle.queue.push(connection(1, after, 1));
    let mut last = Rank::new(1, patient, Some(connection(0, end, 1)));
    let mut sink = Forward(&middle.tcp, 0);
    for n in 0..20 {
        let short = Short::pack(NOTE, &[n]).unwrap();
        assert!(first.tcp.request_short(JobRank(0), short));
        first.poll();
        let mut polls = 0;
        while sink.1 <= n as usize {
            middle.tcp.poll_with(&mut sink);
            polls += 1;
            assert!(polls < IDLE, "message {n} has not come");
            std::thread::yield_now();
        }
        until(&mut last, "sent on", |seen| seen.messages > n as usize);
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
    let sizes = ChannelSizes {
        gather_time: Duration::ZERO,
        ..ChannelSizes::default()
    };
    let mut a = Rank::new(0, sizes, Some(connection(1, to_1, 1)));
    a.queue.push(connection(2, to_2, 1));
    let mut others = [(1, at_1), (2, at_2)]
        .map(|(rank, socket)| Rank::new(rank, sizes, Some(connection(0, socket, 1))));
    // Frames that pass when connections are made.
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
