//! What every interface of datagrams does.

use argonet_nic::datagram::{DatagramQueue, Nic};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::channel;
use std::thread;

/// A case: its name, and its function over two ranks.
pub(crate) type Case = (&'static str, fn([Nic; 2]));

pub(crate) const CASES: [Case; 6] = [
    // spec U8: over a provider, too.
    ("datagrams_of_every_length_arrive_whole", lengths),
    ("datagrams_that_are_sent_together_arrive_apart", together),
    ("what_no_datagram_holds_is_counted", refused),
    ("what_is_taken_may_send", answers),
    ("a_thread_that_sleeps_wakes", sleeps),
    ("a_flood_into_a_rank_that_does_not_look_ends", flood),
];

/// Longest datagram of all interfaces here.
const LONGEST: usize = 1472;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ at >> 8 ^ seed) as u8).collect()
}

/// Sleeps until something has come; not forever.
fn wait(nic: &Nic) {
    if !nic.arm() {
        return;
    }
    let limit = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    let mut readable = [PollFd::new(nic, PollFlags::IN)];
    assert_eq!(poll(&mut readable, Some(&limit)), Ok(1), "nothing comes");
}

/// The next so many datagrams.
fn receive(
    nic: &Nic,
    buffers: &mut <Nic as DatagramQueue>::ReceiveBuffers,
    count: usize,
) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    while came.len() < count {
        let batch = nic.receive(buffers, &mut |datagram| came.push(datagram.to_vec()));
        if !batch.any && !batch.full {
            wait(nic);
        }
    }
    came
}

fn lengths([a, b]: [Nic; 2]) {
    let mut buffers = b.receive_buffers();
    for len in [0, 1, 63, 64, 767, 768, 769, 1000, LONGEST - 1, LONGEST] {
        let sent = bytes(len, len);
        a.send(1, &sent);
        assert_eq!(receive(&b, &mut buffers, 1), [sent], "{len} bytes");
    }
    // More than there are buffers, so each is used again.
    for turn in 0..3000 {
        let sent = bytes(turn % LONGEST, turn);
        a.send(1, &sent);
        assert!(receive(&b, &mut buffers, 1) == [sent], "turn {turn}");
    }
    let nothing = b.receive(&mut buffers, &mut |_| panic!("nothing was sent"));
    assert!(!nothing.any && !nothing.full);
    assert_eq!((a.refused(), a.trouble(), b.trouble()), (0, None, None));
}

fn together([a, b]: [Nic; 2]) {
    let mut buffers = b.receive_buffers();
    for (len, each) in [(1, 7), (15, 7), (30_000, 1232), (5, 0), (5000, LONGEST)] {
        let sent = bytes(len, 3);
        a.send_cut(1, &sent, each);
        let wanted: Vec<&[u8]> = sent.chunks(each.max(1)).collect();
        let came = receive(&b, &mut buffers, wanted.len());
        assert!(came == wanted, "{len} bytes in datagrams of {each}");
    }
}

fn refused([a, b]: [Nic; 2]) {
    let mut buffers = b.receive_buffers();
    // A rank that is not there takes nothing, and is no error.
    a.send(2, b"x");
    assert_eq!((a.refused(), a.address(2)), (0, None));
    assert_eq!(a.address(1).map(|to| to.ip()), Some(super::HERE));
    a.send(1, &[0; 65_508]);
    assert_eq!(a.refused(), 1);
    a.send(1, b"and goes on");
    assert_eq!(receive(&b, &mut buffers, 1), [b"and goes on"]);
}

fn answers([a, b]: [Nic; 2]) {
    let (mut of_a, mut of_b) = (a.receive_buffers(), b.receive_buffers());
    let question = bytes(900, 1);
    a.send(1, &question);
    let mut answered = false;
    while !answered {
        b.receive(&mut of_b, &mut |datagram| {
            // In its place, as ciphers do.
            datagram.reverse();
            b.send(0, datagram);
            answered = true;
        });
    }
    let wanted: Vec<u8> = question.iter().rev().copied().collect();
    assert_eq!(receive(&a, &mut of_a, 1), [wanted]);
}

fn sleeps([a, b]: [Nic; 2]) {
    let (asleep, is_asleep) = channel();
    let sleeper = thread::spawn(move || {
        let mut buffers = b.receive_buffers();
        for turn in 0..200 {
            let nothing = b.receive(&mut buffers, &mut |_| panic!("nothing was sent"));
            assert!(!nothing.any);
            let arms = b.arm();
            asleep.send(()).expect("the other waits");
            if arms {
                wait(&b);
            }
            assert_eq!(receive(&b, &mut buffers, 1), [[turn; 100]]);
        }
    });
    for turn in 0..200 {
        is_asleep.recv().expect("it sleeps");
        a.send(1, &[turn; 100]);
    }
    sleeper.join().expect("it woke each time");
}

fn flood([a, b]: [Nic; 2]) {
    let sent = bytes(1000, 5);
    for _ in 0..5000 {
        a.send(1, &sent);
    }
    let (mut buffers, mut count) = (b.receive_buffers(), 0);
    while b
        .receive(&mut buffers, &mut |datagram| {
            assert!(datagram == sent, "another datagram");
            count += 1;
        })
        .full
    {}
    // The wire has lost the others.
    assert!((10..=5000).contains(&count), "{count} have come");
    a.send(1, b"the last");
    let last = receive(&b, &mut buffers, 1);
    assert_eq!((last, a.trouble()), (vec![b"the last".to_vec()], None));
}
