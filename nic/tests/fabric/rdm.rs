//! Messages through a provider's reliable endpoints.

use argonet_nic::fabric::{FabricAddress, Library, Sleep};
use argonet_nic::rdm::{MessageQueue, Rdm, RdmPort, Taken};
use libtest_mimic::Trial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// A provider that every libfabric of Debian has.
const PROVIDER: &str = "tcp;ofi_rxm";

/// As long a case waits for what must come.
const LIMIT: Duration = Duration::from_secs(30);

type End = (Rdm, Sleep);
type Case = (&'static str, fn([End; 2]));

const CASES: [Case; 3] = [
    ("messages_of_every_length_arrive_in_order", lengths),
    ("a_flood_into_a_rank_that_does_not_look_arrives", flood),
    ("a_thread_that_sleeps_wakes_for_a_message", sleeps),
];

pub(crate) fn trials_of(library: &Library) -> Vec<Trial> {
    let trial = |(name, case): Case| {
        let library = library.clone();
        let run = move || {
            case(pair(&library));
            Ok(())
        };
        Trial::test(format!("rdm::{name}"), run)
    };
    CASES.map(trial).into()
}

fn pair(library: &Library) -> [End; 2] {
    let open = || RdmPort::open(library, Some(PROVIDER), Some(super::HERE)).expect("endpoint");
    let ports = [open(), open()];
    // As they are published.
    let published = ports.each_ref().map(|port| port.address().to_string());
    let peers = published.map(|text| text.parse::<FabricAddress>().expect("address"));
    ports.map(|port| port.connect(&peers).expect("peers"))
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ at >> 8 ^ seed) as u8).collect()
}

fn take(rdm: &mut Rdm, came: &mut Vec<Vec<u8>>) {
    let mut all = Vec::new();
    rdm.receive(&mut |received| all.push(received));
    for one in all {
        came.push(rdm.bytes(&one).to_vec());
        rdm.give_back(one);
    }
}

/// Sends a message, again and again while there is no room; the other end makes progress.
fn send(from: &mut Rdm, message: &[u8], other: &mut Rdm, came: &mut Vec<Vec<u8>>) {
    let begun = Instant::now();
    while from.send(1, message, false) == Taken::NoRoom {
        assert!(begun.elapsed() < LIMIT, "there is never room");
        take(other, came);
        take(from, &mut Vec::new());
    }
}

fn lengths([(mut a, _), (mut b, _)]: [End; 2]) {
    let most = a.message_bytes();
    let mut sent = Vec::new();
    let mut came = Vec::new();
    for turn in 0..600 {
        let len = [0, 1, 39, 40, 41, 64, 65, 4096, most - 1, most][turn % 10];
        let message = bytes(len, turn);
        send(&mut a, &message, &mut b, &mut came);
        sent.push(message);
    }
    let begun = Instant::now();
    while came.len() < sent.len() {
        assert!(begun.elapsed() < LIMIT, "{} came", came.len());
        take(&mut b, &mut came);
        take(&mut a, &mut Vec::new());
    }
    assert!(came == sent);
    assert_eq!((a.trouble(), b.trouble()), (None, None));
    assert_eq!(a.send(1, &bytes(most + 1, 0), false), Taken::Refused);
}

/// More than there are buffers for: the provider keeps it, or has no room.
fn flood([(mut a, _), (mut b, _)]: [End; 2]) {
    let mut came = Vec::new();
    send(&mut a, b"connected", &mut b, &mut came);
    let message = bytes(8000, 3);
    let mut sent = 0;
    while sent < 2 * b.receives() && a.send(1, &message, false) == Taken::Sent {
        sent += 1;
    }
    let begun = Instant::now();
    while came.len() < sent + 1 {
        assert!(begun.elapsed() < LIMIT, "{} of {sent} came", came.len());
        take(&mut b, &mut came);
        take(&mut a, &mut Vec::new());
    }
    assert!(came[1..].iter().all(|one| *one == message));
    assert_eq!(b.trouble(), None);
}

fn sleeps([(mut a, _), (mut b, sleep)]: [End; 2]) {
    let mut came = Vec::new();
    send(&mut a, b"connected", &mut b, &mut came);
    while came.is_empty() {
        take(&mut b, &mut came);
    }
    for turn in 0..100 {
        came.clear();
        let message = bytes(turn * 10, turn);
        assert_eq!(a.send(1, &message, false), Taken::Sent);
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        while came.is_empty() {
            if sleep.arm(|| b.may_sleep()) {
                let mut readable = [PollFd::new(&sleep, PollFlags::IN)];
                assert_eq!(poll(&mut readable, Some(&limit)), Ok(1), "nothing comes");
            }
            take(&mut b, &mut came);
            sleep.note();
        }
        assert!(came == [message]);
    }
}
