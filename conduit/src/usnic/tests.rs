//! Rails of two ranks of this process, over sockets on the loopback interface.

mod paths;

use super::shared::Shared;
use super::{DatagramRail, DatagramRails, DatagramRailsConfig};
use crate::attendant::{self, Attended as _, POLLS_A_TIMER};
use crate::channel::Pieces;
use crate::channel::rail::{Made, Rail as _, RailId, Rails as _, Ready};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::datagram::{Batch, DatagramQueue, Faulty, HostNames, Udp, WireFaults};
use argonet_nic::reliable::{ReliableConfig, Seal};
use core::num::NonZeroU64;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

type Wire = Faulty<Udp>;

/// Of the job, by rank.
const SECRETS: [&[u8]; 2] = [b"of the test"; 2];

/// As long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(60);

fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "it never came");
        std::thread::yield_now();
    }
}

fn link() -> ReliableConfig {
    ReliableConfig {
        first_rto: Duration::from_millis(20),
        least_rto: Duration::from_millis(5),
        most_rto: Duration::from_millis(200),
        probe_after: Duration::from_millis(200),
        give_up_after: Duration::from_secs(2),
        unheard_after: Duration::from_secs(2),
        ..ReliableConfig::default()
    }
}

/// Rails of two ranks, with faults of what each sends.
fn pair(faults: [WireFaults; 2]) -> [DatagramRails<Wire>; 2] {
    sealed_pair(faults, SECRETS.map(Seal::from_secret))
}

/// The same, with the seal of each.
fn sealed_pair(faults: [WireFaults; 2], seals: [Seal; 2]) -> [DatagramRails<Wire>; 2] {
    configs(faults, seals).map(|config| DatagramRails::new(config).unwrap())
}

fn configs(faults: [WireFaults; 2], seals: [Seal; 2]) -> [DatagramRailsConfig<Wire>; 2] {
    let sockets = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let addresses: [SocketAddr; 2] = sockets.each_ref().map(|s| s.local_addr().unwrap());
    let incarnations: Vec<NonZeroU64> = [7, 8].map(|n| NonZeroU64::new(n).unwrap()).into();
    let mut ranks = (0..2).map(JobRank).zip(faults).zip(seals);
    sockets.map(|socket| {
        let ((rank, faults), seal) = ranks.next().unwrap();
        let socket = Udp::new(socket, addresses.into()).unwrap();
        DatagramRailsConfig {
            rank,
            queue: Faulty::new(socket, faults, WireFaults::NONE),
            incarnations: incarnations.clone(),
            link: link(),
            seal: Some(seal),
            hosts: HostNames::new(|rank| format!("node{rank}")),
            warn: |_| {},
            exit_grace: Duration::from_millis(500),
        }
    })
}

fn id(peer: u32) -> RailId {
    let peer = JobRank(peer);
    RailId { peer, number: 0 }
}

/// The rail beside the stream.
fn beside(peer: u32) -> RailId {
    RailId {
        number: 1,
        ..id(peer)
    }
}

/// The rail to a peer, opened.
fn rail(rails: &DatagramRails<Wire>, peer: u32) -> DatagramRail<Wire> {
    rail_of(rails, id(peer))
}

/// A rail, opened.
fn rail_of(rails: &DatagramRails<Wire>, id: RailId) -> DatagramRail<Wire> {
    rails.want(id);
    let Some(Made::Rail(made)) = rails.next(&|_| 0) else {
        panic!("a rail is there at once");
    };
    assert_eq!(made.id, id);
    rails.open(id, &made.rail).unwrap();
    made.rail
}

fn write(rail: &DatagramRail<Wire>, bytes: &[u8]) -> io::Result<usize> {
    let mut pieces = Pieces::new();
    // In two places.
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for part in [first, second] {
        pieces.add(part.as_ptr().cast_mut(), part.len());
    }
    // SAFETY: the bytes are there.
    unsafe { rail.write(&pieces) }
}

fn read(rail: &DatagramRail<Wire>) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 1000];
    let mut pieces = Pieces::new();
    let (first, second) = bytes.split_at_mut(10);
    for part in [first, second] {
        pieces.add(part.as_mut_ptr(), part.len());
    }
    // SAFETY: the bytes are there.
    let len = unsafe { rail.read(&pieces) }?;
    Ok(bytes[..len].to_vec())
}

/// Writes all bytes, whatever the window; a rank that only writes.
fn write_all(rail: &DatagramRail<Wire>, mut bytes: &[u8]) {
    until(|| {
        match write(rail, bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        bytes.is_empty()
    });
}

/// Reads until the end of the rail, or so many bytes.
fn read_all(rail: &DatagramRail<Wire>, most: usize) -> Vec<u8> {
    let mut all = Vec::new();
    until(|| match read(rail) {
        Ok(bytes) => {
            all.extend_from_slice(&bytes);
            bytes.is_empty() || all.len() == most
        }
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            false
        }
    });
    all
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ i >> 8) as u8).collect()
}

const BAD: WireFaults = WireFaults {
    seed: 11,
    drop: 50_000,
    duplicate: 50_000,
    reorder: 50_000,
    corrupt: 20_000,
};

#[test]
fn bytes_arrive_in_order_and_once_over_a_bad_wire() {
    for of in [Seal::from_secret, Seal::encrypting] {
        let seals = [0, 1].map(|_| of(b"of the test"));
        let [a, b] = sealed_pair([BAD, WireFaults { seed: 12, ..BAD }], seals);
        let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
        let sent = pattern(600_000);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_all(&to_b, &sent));
            assert!(read_all(&to_a, sent.len()) == sent);
            writer.join().unwrap();
        });
    }
}

/// spec U1: the bytes of each rail arrive in order, whatever the other one waits for.
#[test]
fn long_payloads_and_the_stream_arrive_in_their_order_over_a_bad_wire() {
    let [a, b] = pair([BAD, WireFaults { seed: 13, ..BAD }]);
    let from_a = [rail(&a, 1), rail_of(&a, beside(1))];
    let from_b = [rail(&b, 0), rail_of(&b, beside(0))];
    let sent = [pattern(50_000), pattern(600_000)];
    std::thread::scope(|scope| {
        let writers = from_a.iter().zip(&sent).map(|(rail, sent)| {
            // In pieces, as the stream has them.
            scope.spawn(move || sent.chunks(1000).for_each(|part| write_all(rail, part)))
        });
        let readers = from_b
            .iter()
            .zip(&sent)
            .map(|(rail, sent)| scope.spawn(move || assert!(read_all(rail, sent.len()) == *sent)));
        let threads: Vec<_> = writers.chain(readers).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

/// A window full of a long payload that the peer does not read holds up no message.
#[test]
fn the_stream_passes_a_long_payload_that_waits() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, long) = (rail(&a, 1), rail_of(&a, beside(1)));
    let sent = pattern(2 << 20);
    let mut written = 0;
    // Until the window is full and the peer keeps what it can.
    let mut full = 0;
    until(|| {
        match write(&long, &sent[written..]) {
            Ok(len) => (written, full) = (written + len, 0),
            Err(_) => full += 1,
        }
        full > 1000 && a.shared.lock().waits_for_acknowledgements(beside(1))
    });
    let to_a = rail(&b, 0);
    for number in 0..100_u32 {
        write_all(&to_b, &number.to_le_bytes());
        assert_eq!(read_all(&to_a, 4), number.to_le_bytes());
    }
    // What the peer has acknowledged meanwhile makes no room for all of it.
    while let Ok(len) = write(&long, &sent[written..]) {
        written += len;
    }
    assert!(written < sent.len(), "it has been read");
    // The other rail is there as something came over it.
    let Some(Made::Rail(made)) = b.next(&|_| 0) else {
        panic!("a rail is there");
    };
    assert_eq!(made.id, beside(0));
    b.open(made.id, &made.rail).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_all(&long, &sent[written..]));
        assert!(read_all(&made.rail, sent.len()) == sent);
        writer.join().unwrap();
    });
}

/// The first rail ends when all has been read that came beside the stream.
#[test]
fn the_stream_ends_behind_what_is_beside_it() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, long) = (rail(&a, 1), rail_of(&a, beside(1)));
    let (to_a, from_long) = (rail(&b, 0), rail_of(&b, beside(0)));
    write_all(&to_b, b"head");
    write_all(&long, b"payload");
    drop((to_b, long, a));
    assert_eq!(read_all(&to_a, 4), b"head");
    until(|| b.shared.lock().peer_has_ended(JobRank(0)));
    assert_eq!(read(&to_a).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(read_all(&from_long, usize::MAX), b"payload");
    assert_eq!(read_all(&to_a, usize::MAX), []);
    // There will be none, and nothing says so.
    b.want(beside(0));
    assert!(b.next(&|_| 0).is_none());
}

/// From its next look on, the attendant takes nothing that comes: as if a thread of the rank slept
/// at the queue.
fn leave_queue_to_polls(rails: &DatagramRails<Wire>) {
    rails.shared.sleepers.fetch_add(1, Ordering::SeqCst);
}

/// spec U7: what comes beside the stream goes to its place, too, and messages pass meanwhile.
#[test]
fn a_long_payload_goes_to_its_place_while_its_rail_is_read() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, long) = (rail(&a, 1), rail_of(&a, beside(1)));
    let (to_a, from_long) = (rail(&b, 0), rail_of(&b, beside(0)));
    leave_queue_to_polls(&b);
    let placed = || b.shared.placed.load(Ordering::Relaxed);
    let polls_until = |expected: (usize, usize)| {
        let (mut payload, mut message) = (0, 0);
        until(|| {
            // As a poll of the channel does.
            let look = b.begin_poll(false);
            let mut found = Ready::new();
            if look.first.is_none() {
                b.ready(&mut found);
            }
            message += read(&to_a).map_or(0, |bytes| bytes.len());
            if found.rails().contains(&beside(0)) {
                payload += read(&from_long).map_or(0, |bytes| bytes.len());
            }
            (payload, message) == expected
        });
    };
    until(|| {
        // Polls read that rail from now on, until one finds nothing there.
        write_all(&long, &[7; 900]);
        polls_until((900, 0));
        let before = placed();
        write_all(&long, &[7; 900]);
        write_all(&to_b, b"message");
        polls_until((900, 7));
        placed() >= before + 900
    });
}

/// Reads of the stream leave what arrives to those of the rail beside it only while there is one.
#[test]
fn a_closed_rail_holds_up_no_other() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, long) = (rail(&a, 1), rail_of(&a, beside(1)));
    let (to_a, from_long) = (rail(&b, 0), rail_of(&b, beside(0)));
    write_all(&long, &[7; 900]);
    until(|| {
        let _ = read(&to_a);
        b.shared.long_from().is_some()
    });
    b.shared.lock().set_open(beside(0), false);
    assert_eq!(b.shared.long_from(), None);
    write_all(&to_b, b"message");
    assert_eq!(read_all(&to_a, 7), b"message");
    drop(from_long);
}

/// The thread that holds the lock of a peer runs a handler, and reads none of its rails.
#[test]
fn polls_look_for_messages_while_the_rail_of_a_long_payload_is_not_read() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, long) = (rail(&a, 1), rail_of(&a, beside(1)));
    let (to_a, _from_long) = (rail(&b, 0), rail_of(&b, beside(0)));
    write_all(&long, &[7; 900]);
    until(|| {
        let _ = read(&to_a);
        b.shared.long_from().is_some()
    });
    let poll = || {
        b.begin_poll(true);
        let mut found = Ready::new();
        b.ready(&mut found);
        found.rails().contains(&id(0))
    };
    for _ in 0..2 * POLLS_A_TIMER {
        poll();
    }
    assert_eq!(b.shared.long_from(), None);
    write_all(&to_b, b"message");
    until(poll);
}

/// Of another job, or with another setting.
#[test]
fn a_peer_with_another_seal_is_not_reached() {
    let of_this = || Seal::encrypting(b"of the test");
    for other in [
        Seal::encrypting(b"Of the test"),
        Seal::from_secret(b"of the test"),
    ] {
        let [a, b] = sealed_pair([WireFaults::NONE; 2], [of_this(), other]);
        let to_b = rail(&a, 1);
        write_all(&to_b, b"is there anyone");
        let mut made = None;
        until(|| {
            made = a.next(&|_| 0);
            made.is_some()
        });
        assert!(matches!(made, Some(Made::Unreachable(..))), "{made:?}");
        assert!(b.next(&|_| 0).is_none(), "a stranger has got a rail");
    }
}

/// The target's thread acknowledges, the sender's repeats, while both ranks compute.
#[test]
fn losses_are_repaired_while_no_rank_calls() {
    let [a, b] = pair([BAD, WireFaults { seed: 12, ..BAD }]);
    let to_b = rail(&a, 1);
    let sent = pattern(100_000);
    let mut left = &sent[..];
    until(|| {
        if let Ok(len) = write(&to_b, left) {
            left = &left[len..];
        }
        left.is_empty()
    });
    until(|| a.shared.lock().is_drained());
    let to_a = rail(&b, 0);
    assert!(read_all(&to_a, sent.len()) == sent);
}

/// spec U7: nothing is copied in between where the rank reads while data comes.
#[test]
fn what_comes_for_a_read_goes_to_its_place() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
    leave_queue_to_polls(&b);
    until(|| {
        write_all(&to_b, &[7; 900]);
        let mut came = 0;
        until(|| {
            b.begin_poll(true);
            if let Ok(bytes) = read(&to_a) {
                assert!(bytes.iter().all(|byte| *byte == 7));
                came += bytes.len();
            }
            came == 900
        });
        b.shared.placed.load(Ordering::Relaxed) > 0
    });
}

#[test]
fn bytes_written_before_the_end_arrive_and_then_the_end() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
    let sent = pattern(5_000);
    write_all(&to_b, &sent);
    drop((to_b, a));
    assert!(read_all(&to_a, usize::MAX) == sent);
    assert_eq!(read(&to_a).unwrap(), []);
    let error = write(&to_a, b"late").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// The peer's acknowledgement comes with a record, which this rank acknowledges a little later.
#[test]
fn an_end_waits_for_nothing_once_the_last_acknowledgement_is_sent() {
    const GRACE: Duration = Duration::from_secs(3);
    let seals = [0, 1].map(|_| Seal::from_secret(b"of the test"));
    // Without threads.
    let [a, b] = configs([WireFaults::NONE; 2], seals).map(|c| Arc::new(Shared::new(c).unwrap()));
    let send = |from: &Arc<Shared<Wire>>, to: u32| {
        from.lock().want(id(to));
        write_all(&DatagramRail::new(Arc::clone(from), id(to)), b"last");
    };
    send(&a, 1);
    until(|| b.attend(None));
    send(&b, 0);
    let begun = Instant::now();
    a.leave(GRACE);
    assert!(begun.elapsed() < GRACE, "the end has waited for all of it");
    assert!(a.lock().is_drained());
}

/// spec U6: a poll delivers, and what the rank answers acknowledges; without an answer the next
/// poll does that finds nothing.
#[test]
fn acknowledgements_ride_on_answers_or_leave_with_the_next_poll() {
    let seals = [0, 1].map(|_| Seal::from_secret(b"of the test"));
    // Without threads.
    let [a, b] = configs([WireFaults::NONE; 2], seals).map(|c| Arc::new(Shared::new(c).unwrap()));
    a.lock().want(id(1));
    let (to_b, to_a) = [(&a, 1), (&b, 0)]
        .map(|(rank, peer)| DatagramRail::new(Arc::clone(rank), id(peer)))
        .into();
    let two_come = || {
        for _ in 0..2 {
            write_all(&to_b, b"question");
            until(|| b.attend(None));
        }
        assert_eq!(b.lock().acknowledgements(), 0);
    };
    two_come();
    b.lock().want(id(0));
    write_all(&to_a, b"answer");
    assert!(!b.attend(None));
    assert_eq!(b.lock().acknowledgements(), 0, "it rode on the answer");
    until(|| a.attend(None));
    two_come();
    assert!(!b.attend(None));
    assert_eq!(b.lock().acknowledgements(), 1);
}

/// spec U13: a rank that polls once and never again acknowledges by its thread.
#[test]
fn acknowledgements_that_wait_are_due() {
    let always = WireFaults {
        duplicate: 1_000_000,
        ..WireFaults::NONE
    };
    let seals = [0, 1].map(|_| Seal::from_secret(b"of the test"));
    // A seal would drop the copy.
    let [a, b] = configs([always, WireFaults::NONE], seals).map(|config| {
        let config = DatagramRailsConfig {
            seal: None,
            ..config
        };
        Arc::new(Shared::new(config).unwrap())
    });
    a.lock().want(id(1));
    write_all(&DatagramRail::new(Arc::clone(&a), id(1)), b"question");
    until(|| b.attend(None));
    until(|| {
        b.lock().end();
        b.lock().due().is_none()
    });
    assert_eq!(b.lock().acknowledgements(), 1);
    // The other copy is acknowledged at once, if nothing is to be sent.
    until(|| b.attend(None));
    assert_eq!(b.lock().acknowledgements(), 1);
    let due = b.lock().due().expect("it is owed");
    assert!(due <= b.now() + link().ack_delay);
    b.lock().sleep_until(due, false);
    assert_eq!(b.lock().acknowledgements(), 2);
    assert_eq!(b.lock().due(), None);
}

#[test]
fn a_rail_that_is_shut_ends_at_the_peer_behind_what_was_written() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
    write_all(&to_b, b"last words");
    a.close(id(1), &to_b);
    assert_eq!(read_all(&to_a, usize::MAX), b"last words");
    assert_eq!(read(&to_b).unwrap(), []);
}

#[test]
fn a_silent_peer_is_unreachable_and_named() {
    let deaf = WireFaults {
        drop: 1_000_000,
        ..WireFaults::NONE
    };
    let [a, _b] = pair([deaf, WireFaults::NONE]);
    let to_b = rail(&a, 1);
    write_all(&to_b, b"is there anyone");
    let mut error = None;
    until(|| {
        error = match a.next(&|_| 0) {
            Some(Made::Unreachable(lost, error)) => {
                assert_eq!(lost, id(1));
                Some(error)
            }
            _ => None,
        };
        error.is_some()
    });
    let Some(AmError::Unreachable { at, peer, why }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((at, peer), (JobRank(0), JobRank(1)));
    assert!(why.starts_with("rank 0 on node0 (UDP 127.0.0.1:"), "{why}");
    assert!(why.contains(" cannot reach rank 1 on node1 (UDP"), "{why}");
    assert_eq!(read(&to_b).unwrap(), []);
}

#[test]
fn a_rail_to_a_peer_that_has_left_is_refused_in_time() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
    write_all(&to_a, b"bye");
    drop((to_a, b));
    assert_eq!(read_all(&to_b, usize::MAX), b"bye");
    a.close(id(1), &to_b);
    // Asked twice, answered once.
    a.want(id(1));
    a.want(id(1));
    assert!(
        a.next(&|_| 0).is_none(),
        "a job that ends has ended by then"
    );
    let mut made = None;
    until(|| {
        made = a.next(&|_| 0);
        made.is_some()
    });
    let Some(Made::Unreachable(_, AmError::Unreachable { why, .. })) = made else {
        panic!("{made:?}");
    };
    assert!(why.contains("rank 1: it has left the job"), "{why}");
    assert!(a.next(&|_| 0).is_none());
}

#[test]
fn arrivals_and_wakeups_end_a_sleep() {
    let [a, b] = pair([WireFaults::NONE; 2]);
    let (to_b, to_a) = (rail(&a, 1), rail(&b, 0));
    let slept = |wake: &(dyn Fn() + Sync)| {
        b.forget_wakeups();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let waker = scope.spawn(|| {
                until(|| b.shared.sleepers.load(core::sync::atomic::Ordering::SeqCst) > 0);
                wake();
            });
            while !b.has_ready() && begun.elapsed() < LIMIT {
                b.sleep(Some(LIMIT));
                if wake_seen(&b) {
                    break;
                }
            }
            waker.join().unwrap();
        });
        assert!(begun.elapsed() < LIMIT, "nothing has ended the sleep");
    };
    slept(&|| b.wake());
    slept(&|| write_all(&to_b, b"good morning"));
    assert_eq!(read_all(&to_a, 12), b"good morning");
    let mut found = Ready::new();
    b.ready(&mut found);
    assert!(found.rails().is_empty() && !found.has_made());
}

/// Whether a wakeup has come.
fn wake_seen(rails: &DatagramRails<Wire>) -> bool {
    rustix::io::read(rails.shared.wakeup(), &mut [0; 8]).is_ok()
}

/// A queue where something may have come each time that a thread wants to sleep.
struct Unarmed(Udp);

impl AsFd for Unarmed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DatagramQueue for Unarmed {
    type ReceiveBuffers = <Udp as DatagramQueue>::ReceiveBuffers;

    fn receive_buffers(&self) -> Self::ReceiveBuffers {
        self.0.receive_buffers()
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.0.address(peer)
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        self.0.send(peer, datagram);
    }

    fn receive(
        &self,
        buffers: &mut Self::ReceiveBuffers,
        take: &mut dyn FnMut(&mut [u8]),
    ) -> Batch {
        self.0.receive(buffers, take)
    }

    fn arm(&self) -> bool {
        false
    }

    fn refused(&self) -> u64 {
        self.0.refused()
    }
}

#[test]
fn no_thread_sleeps_at_a_queue_that_does_not_wake_it() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peers = [socket.local_addr().unwrap(); 2];
    let rails = DatagramRails::new(DatagramRailsConfig {
        rank: JobRank(0),
        queue: Unarmed(Udp::new(socket, peers.into()).unwrap()),
        incarnations: [7, 8].map(|n| NonZeroU64::new(n).unwrap()).into(),
        link: link(),
        seal: None,
        hosts: HostNames::default(),
        warn: |_| {},
        exit_grace: Duration::ZERO,
    });
    let (rails, begun) = (rails.unwrap(), Instant::now());
    rails.sleep(Some(LIMIT));
    attendant::sleep(&*rails.shared, true, LIMIT);
    assert!(begun.elapsed() < LIMIT / 2, "they slept");
}
