//! Promises of the protocol texts for the path over TCP that no other test checks.

use super::rails::{LIMIT, rail, settle, sizes};
use super::*;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

/// The payload of a head comes as a body.
const BESIDE: u8 = 2;

/// Shuts a connection down if a test lasts too long, so that a call which waits for it returns.
fn guard(socket: &TcpStream) -> Sender<()> {
    let held = socket.try_clone().unwrap();
    let (alive, over) = channel();
    std::thread::spawn(move || {
        if over.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = held.shutdown(std::net::Shutdown::Both);
        }
    });
    alive
}

fn read(rank: &Rank, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let view = rank.segment.bytes(SegmentOffset(offset), len).unwrap();
    view.copy_to(0, &mut bytes).unwrap();
    bytes
}

fn poll_until(rank: &mut Rank, what: &str, done: impl Fn(&Rank) -> bool) {
    let begun = Instant::now();
    while !done(rank) {
        rank.poll();
        assert!(begun.elapsed() < LIMIT, "{what}: {:?}", rank.seen.broken);
    }
}

/// spec T2: a call does not wait for a socket that has no room.
///
/// The next write continues where the socket stopped.
#[test]
fn a_write_resumes_where_a_full_socket_stopped() {
    const LEN: usize = 5000;
    const COUNT: u64 = 12;
    let [here, there] = pair();
    rustix::net::sockopt::set_socket_send_buffer_size(&here, 4 << 10).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&there, 4 << 10).unwrap();
    let _guard = guard(&here);
    let begun = Instant::now();
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, here, 1)));
    let mut b = Rank::new(1, ChannelSizes::default(), Some(connection(0, there, 1)));
    let source = |n: u64| -> Vec<u8> { (0..LEN as u64).map(|i| (i * (n + 3)) as u8).collect() };
    for n in 0..COUNT {
        let put = a.put(n * LEN as u64, &source(n), n);
        assert_eq!(put, Ok(Injected::Local));
    }
    a.tcp.flush();
    assert!(begun.elapsed() < LIMIT, "a call has waited for the peer");
    let left = || {
        let outbound = a.tcp.core.used(1).unwrap().outbound.lock();
        outbound.send_stream.committed()
    };
    assert!(left() > 0, "the socket has taken all of it");
    let is_complete = |a: &Rank| {
        let all = (0..COUNT).map(|n| (n, Completion::Remote));
        all.into_iter().all(|part| a.seen.completed.contains(&part))
    };
    while !is_complete(&a) {
        a.poll();
        b.poll();
        assert!(begun.elapsed() < LIMIT, "{:?}", b.seen.broken);
    }
    for n in 0..COUNT {
        assert!(read(&b, n * LEN as u64, LEN) == source(n), "put {n}");
    }
}

/// spec T3: of a long put so many fragments are in flight at most; the others are sent when the
/// peer has acknowledged some.
#[test]
fn a_long_put_goes_on_when_the_peer_acknowledges() {
    use crate::channel::operations::MOST_EXTENTS;
    let mut ranks = two(sizes());
    let source = vec![7; (MOST_EXTENTS + 20) * sizes().fragment_bytes];
    assert_eq!(ranks[0].put(64, &source, 1), Ok(Injected::Pending));
    for _ in 0..1000 {
        ranks[0].poll();
        let outbound = ranks[0].tcp.core.used(1).unwrap().outbound.lock();
        assert_eq!(outbound.send_stream.user_extents(), MOST_EXTENTS);
        assert!(!outbound.operations.has_room(), "all of it is sent");
    }
    settle(&mut ranks, "the put", |ranks| {
        ranks[0].seen.completed.contains(&(1, Completion::Remote))
    });
    assert!(read(&ranks[1], 64, source.len()) == source);
}

/// spec T4: the received bytes of a payload are at their place, and are kept nowhere else.
///
/// The rest comes later.
#[test]
fn a_payload_is_received_at_its_place() {
    const LEN: usize = 40_000;
    let [here, mut there] = pair();
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, here, 1)));
    let nothing_is_kept = |a: &Rank| {
        let inbound = a.tcp.core.used(1).unwrap().inbound.lock();
        inbound.receive_stream.is_empty()
    };
    let fields = Fields {
        offset: 64,
        rest: LEN as u64,
        ..Fields::default()
    };
    let put = HeadBytes::new(Kind::Put, 0, &[], LEN, &fields);
    there.write_all(put.as_bytes()).unwrap();
    there.write_all(&[7; LEN / 2]).unwrap();
    poll_until(&mut a, "half of a put", |a| {
        read(a, 64, LEN / 2) == [7; LEN / 2]
    });
    assert!(nothing_is_kept(&a));
    there.write_all(&[7; LEN / 2]).unwrap();
    poll_until(&mut a, "a put", |a| read(a, 64, LEN) == [7; LEN]);
    let position = (put.as_bytes().len() + LEN) as u64;
    // The same for a get: the first turn, the first place.
    let mut place = vec![0; LEN];
    a.get(64, &mut place, 1);
    let start = core::ptr::NonNull::from(&mut place[0]);
    let fields = Fields {
        offset: 64,
        op: 1 << 16,
        ..Fields::default()
    };
    let mut data = HeadBytes::new(Kind::Got, 0, &[], LEN, &fields);
    data.set_position(position);
    there.write_all(data.as_bytes()).unwrap();
    there.write_all(&[8; LEN / 2]).unwrap();
    // SAFETY: the place is there to the end, and no slice of it exists before the get is over.
    let half = unsafe { SharedBytes::from_raw(start, LEN / 2) };
    let has_half = || {
        let mut bytes = vec![0; LEN / 2];
        half.copy_to(0, &mut bytes).unwrap();
        bytes == [8; LEN / 2]
    };
    poll_until(&mut a, "half of a get", |_| has_half());
    assert!(nothing_is_kept(&a));
    there.write_all(&[8; LEN / 2]).unwrap();
    until(&mut a, "a get", |seen| {
        seen.completed.contains(&(1, Completion::Remote))
    });
    assert!(place == [8; LEN]);
}

/// spec T6: a thread that reads from one peer holds up neither messages to that peer nor messages
/// between this rank and others; a thread that sends holds up nothing of others.
#[test]
fn a_peer_that_is_held_holds_up_no_other() {
    let short = |n| Short::pack(NOTE, &[n]).unwrap();
    let ends = [pair(), pair()];
    let [[to_one, mut one], [to_two, two]] = ends;
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, to_one, 1)));
    a.queue.push(connection(2, to_two, 1));
    let mut two = Rank::new(2, ChannelSizes::default(), Some(connection(0, two, 1)));
    // Both are used.
    assert!(a.tcp.request_short(JobRank(1), short(0)) && a.tcp.request_short(JobRank(2), short(0)));
    a.poll();
    until(&mut two, "a message", |seen| seen.messages == 1);
    let held = a.tcp.core.used(1).unwrap();
    let inbound = held.inbound.lock();
    // Frames read from the held peer wait.
    let head = HeadBytes::new(Kind::ShortRequest, 128, &[], 0, &Fields::default());
    one.write_all(head.as_bytes()).unwrap();
    let (report, reports) = channel();
    let next = |what: &str| {
        let step = reports.recv_timeout(LIMIT);
        assert_eq!(step.as_deref(), Ok(what), "a thread is held up");
    };
    std::thread::scope(|scope| {
        let tcp = &a.tcp;
        let thread = scope.spawn(move || {
            let mut seen = Seen::default();
            let to_two = |n| assert!(tcp.request_short(JobRank(2), short(n)));
            assert!(tcp.request_short(JobRank(1), short(1)));
            to_two(1);
            // It answers, and its frames are taken.
            let begun = Instant::now();
            let back = Short::pack(NOTE, &[2]).unwrap();
            assert!(two.tcp.request_short(JobRank(0), back));
            while (seen.messages, two.seen.messages) != (1, 2) && begun.elapsed() < LIMIT {
                two.poll();
                tcp.poll_with(&mut seen);
            }
            report.send(format!("{} taken", seen.messages)).unwrap();
        });
        next("1 taken");
        drop(inbound);
        thread.join().unwrap();
    });
    let outbound = held.outbound.lock();
    let (report, reports) = channel();
    std::thread::scope(|scope| {
        let tcp = &a.tcp;
        let thread = scope.spawn(move || {
            assert!(tcp.request_short(JobRank(2), short(3)));
            report.send(()).unwrap();
        });
        assert_eq!(reports.recv_timeout(LIMIT), Ok(()), "a thread is held up");
        drop(outbound);
        thread.join().unwrap();
    });
}

/// spec T7: fragments come over any connection in any order, before and after their heads.
///
/// Each is at its place when it has come, and the put is complete when all are.
#[test]
fn fragments_in_any_order_are_put_together_in_place() {
    const LEN: usize = 300;
    const COUNT: u64 = 3;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (order, heads_first) in orders
        .iter()
        .flat_map(|order| [(order, true), (order, false)])
    {
        let [here, mut main] = pair();
        let mut a = Rank::new(0, sizes(), Some(connection(1, here, 1)));
        let mut beside = Vec::new();
        for number in 1..=2 {
            let [here, there] = pair();
            a.queue.push(rail(1, number, here, 1));
            beside.push(there);
        }
        let fields = |n: u64| Fields {
            offset: 64 + n * LEN as u64,
            rest: (COUNT - n) * LEN as u64,
            ..Fields::default()
        };
        let head_len = HeadBytes::new(Kind::Put, 0, &[], LEN, &fields(0))
            .as_bytes()
            .len();
        let position = |n: u64| n * (head_len + LEN) as u64;
        let heads: Vec<u8> = (0..COUNT)
            .flat_map(|n| {
                let mut head = HeadBytes::new(Kind::Put, 0, &[], LEN, &fields(n));
                head.set_position(position(n));
                let mut bytes = head.as_bytes().to_vec();
                bytes[3] = BESIDE;
                bytes
            })
            .collect();
        let complete = |a: &Rank| {
            let peer = a.tcp.core.used(1);
            peer.map_or(0, |peer| peer.inbound.lock().complete())
        };
        if heads_first {
            main.write_all(&heads).unwrap();
        }
        for (turn, n) in order.iter().enumerate() {
            let what = format!("{order:?}, {heads_first}: fragment {n}");
            assert!(complete(&a) < position(COUNT), "before {what}");
            let body = Fields {
                position: position(*n),
                wanted: u8::from(Kind::Put).into(),
                ..fields(*n)
            };
            let body = HeadBytes::new(Kind::Body, 0, &[], LEN, &body);
            let whole = [body.as_bytes(), &[*n as u8 + 1; LEN]].concat();
            beside[turn % 2].write_all(&whole).unwrap();
            poll_until(&mut a, &what, |a| {
                read(a, fields(*n).offset, LEN) == [*n as u8 + 1; LEN]
            });
        }
        if !heads_first {
            assert_eq!(complete(&a), 0, "{order:?}");
            main.write_all(&heads).unwrap();
        }
        poll_until(&mut a, "all of the put", |a| complete(a) == position(COUNT));
        for n in 0..COUNT {
            let there = read(&a, fields(n).offset, LEN);
            assert!(there == [n as u8 + 1; LEN], "{order:?}: fragment {n}");
        }
        assert!(a.seen.broken.is_empty(), "{:?}", a.seen.broken);
    }
}

/// spec T8: further requests wait until the peer has receive space for them, and nothing is lost.
#[test]
fn a_medium_waits_for_receive_space() {
    let mut ranks = two(ChannelSizes {
        credits: None,
        // The sender has enough room of its own.
        replay_bytes: 1 << 20,
        ..ChannelSizes::smallest()
    });
    let bytes = vec![5; MAX_MEDIUM];
    let send = |rank: &Rank, n| {
        let message = Message {
            handler: NOTE,
            args: &[n],
            payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
        };
        rank.tcp.request(JobRank(1), &message)
    };
    for n in 0..5 {
        assert_eq!(send(&ranks[0], n), Ok(()), "medium {n}");
        for _ in 0..1000 {
            ranks[0].poll();
            assert_eq!(
                send(&ranks[0], 99),
                Err(SendError::Full),
                "behind medium {n}"
            );
        }
        settle(&mut ranks, "the medium", |ranks| {
            ranks[1].seen.messages == n as usize + 1 && ranks[0].tcp.is_quiescent()
        });
    }
    assert_eq!(ranks[1].seen.firsts, [0, 1, 2, 3, 4]);
}

/// spec B10: bytes that the peer's host has acknowledged are not delivered before the peer itself
/// acknowledges them.
#[test]
fn bytes_acknowledged_only_by_the_host_are_not_delivered() {
    // One is copied, the other is sent from where it lies.
    for len in [100, 5000] {
        let mut ranks = two(ChannelSizes {
            eager_bytes: 1000,
            ..ChannelSizes::default()
        });
        let source = vec![7; len];
        ranks[0].put(64, &source, 1).unwrap();
        ranks[0].tcp.flush();
        let is_written = |rank: &Rank| {
            let outbound = rank.tcp.core.used(1).unwrap().outbound.lock();
            let queued = outbound.wire.as_ref().unwrap().queued();
            outbound.send_stream.unsent() == 0 && queued == 0
        };
        poll_until(&mut ranks[0], "all is with the peer's host", is_written);
        for _ in 0..1000 {
            ranks[0].poll();
        }
        assert_eq!(ranks[0].seen.completed, [], "{len} bytes");
        assert!(!ranks[0].tcp.is_quiescent(), "{len} bytes");
        settle(&mut ranks, "the put", |ranks| {
            ranks[0].seen.completed.contains(&(1, Completion::Remote))
        });
    }
}
