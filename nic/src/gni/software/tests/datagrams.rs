//! Datagrams.

use super::{Pair, address, config, file, open};
use crate::gni::software::{FaultRules, Software};
use crate::gni::{DATAGRAM_BYTES, Exchanged, Gni, GniError};
use core::sync::atomic::{AtomicU32, Ordering};

fn what(exchanged: Option<Exchanged>) -> Option<(u64, u32, Vec<u8>)> {
    exchanged.map(|it| (it.id, it.peer.rank.0, it.data().to_vec()))
}

fn take(nic: &Software) -> Option<(u64, u32, Vec<u8>)> {
    what(nic.next_datagram())
}

fn bind(nic: &Software, to: u32, id: u64, data: &[u8]) -> Result<(), GniError> {
    nic.post_datagram(Some(address(to)), id, data)
}

#[test]
fn bound_ones_are_exchanged_with_each_other() {
    let pair = Pair::new();
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    for n in 0..100_u64 {
        let text = n.to_ne_bytes();
        bind(a, 1, n, &text[..n as usize % 9]).unwrap();
        assert!(matches!(bind(a, 1, 7, b""), Err(GniError::Busy { .. })));
        assert!(take(a).is_none() && take(b).is_none());
        bind(b, 0, n + 1, &[1; DATAGRAM_BYTES]).unwrap();
        if n % 2 == 0 {
            assert_eq!(take(a), Some((n, 1, vec![1; DATAGRAM_BYTES])));
            // It has not read the last one.
            assert!(matches!(bind(a, 1, 7, b""), Err(GniError::Busy { .. })));
        }
        assert_eq!(take(b), Some((n + 1, 0, text[..n as usize % 9].to_vec())));
        if n % 2 == 1 {
            assert_eq!(take(a), Some((n, 1, vec![1; DATAGRAM_BYTES])));
        }
        assert!(take(a).is_none() && take(b).is_none());
    }
    let long = bind(a, 1, 1, &[0; DATAGRAM_BYTES + 1]);
    assert!(matches!(long, Err(GniError::TooLong { .. })));
    assert!(matches!(
        bind(a, 0, 1, b"self"),
        Err(GniError::BadPeer { .. })
    ));
}

#[test]
fn wildcards_answer_those_that_are_bound() {
    let file = file();
    let nics = [0, 1, 2].map(|rank| open(&file, config(3), rank, FaultRules::default()));
    let [a, b, c] = &nics;
    for n in 0..50_u8 {
        c.post_datagram(None, 10, &[n, 10]).unwrap();
        bind(a, 2, 1, &[n, 1]).unwrap();
        bind(b, 2, 2, &[n, 2]).unwrap();
        let (id, first, data) = take(c).unwrap();
        assert_eq!((id, data), (10, vec![n, first as u8 + 1]));
        assert!(take(c).is_none(), "there is no other wildcard");
        // What was found too early is not forgotten.
        c.post_datagram(None, 11, &[n, 11]).unwrap();
        let (id, second, data) = take(c).unwrap();
        assert_eq!((id, data), (11, vec![n, second as u8 + 1]));
        assert_eq!(first + second, 1);
        let answers = [take(a).unwrap(), take(b).unwrap()];
        for (rank, (id, peer, data)) in (0..).zip(answers) {
            assert_eq!((id, peer), (u64::from(rank) + 1, 2));
            assert_eq!(data, [n, if rank == first { 10 } else { 11 }]);
        }
    }
    assert!(nics.iter().all(|nic| take(nic).is_none()));
}

#[test]
fn one_that_is_bound_goes_before_a_wildcard() {
    let pair = Pair::new();
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    b.post_datagram(None, 9, b"wild").unwrap();
    bind(b, 0, 8, b"bound").unwrap();
    bind(a, 1, 1, b"a").unwrap();
    assert_eq!(take(b), Some((8, 0, b"a".to_vec())));
    assert_eq!(take(a), Some((1, 1, b"bound".to_vec())));
    // The wildcard is left.
    bind(a, 1, 2, b"second").unwrap();
    assert_eq!(take(b), Some((9, 0, b"second".to_vec())));
    assert_eq!(take(a), Some((2, 1, b"wild".to_vec())));
}

#[test]
fn wildcards_do_not_meet_each_other_and_are_limited() {
    let pair = Pair::new();
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    for n in 0..4 {
        a.post_datagram(None, n, b"a").unwrap();
        b.post_datagram(None, n, b"b").unwrap();
    }
    assert!(take(a).is_none() && take(b).is_none());
    let more = a.post_datagram(None, 4, b"a");
    assert!(matches!(more, Err(GniError::NoSpace { .. })));
    a.cancel_datagram(2).unwrap();
    assert!(matches!(
        a.cancel_datagram(2),
        Err(GniError::BadHandle { .. })
    ));
    a.post_datagram(None, 4, b"a").unwrap();
}

#[test]
fn one_is_taken_back_unless_it_was_matched() {
    let pair = Pair::new();
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    for n in 0..20 {
        bind(a, 1, n, b"first").unwrap();
        if n % 2 == 0 {
            assert!(take(b).is_none(), "it notes it");
        }
        a.cancel_datagram(n).unwrap();
        assert!(matches!(
            a.cancel_datagram(n),
            Err(GniError::BadHandle { .. })
        ));
        b.post_datagram(None, 7, b"wild").unwrap();
        assert!(take(b).is_none());
        bind(a, 1, n, b"second").unwrap();
        assert_eq!(take(b), Some((7, 0, b"second".to_vec())));
        assert!(matches!(a.cancel_datagram(n), Err(GniError::Busy { .. })));
        assert_eq!(take(a), Some((n, 1, b"wild".to_vec())));
    }
}

#[test]
fn a_wildcard_goes_to_one_that_waits_when_the_bound_one_is_taken_back() {
    let rules = FaultRules {
        lose_datagram: 1_000_000,
        ..FaultRules::default()
    };
    let pair = Pair::with(super::SHAPE, 64, true, rules);
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    a.post_datagram(None, 1, b"wild").unwrap();
    bind(a, 1, 2, b"lost").unwrap();
    bind(b, 0, 3, b"b").unwrap();
    assert!(take(a).is_none() && take(b).is_none());
    a.cancel_datagram(2).unwrap();
    assert_eq!(take(a), Some((1, 1, b"b".to_vec())));
    assert_eq!(take(b), Some((3, 0, b"wild".to_vec())));
}

#[test]
fn crossing_ones_are_exchanged_in_pairs() {
    const ROUNDS: u64 = 20_000;
    let pair = Pair::new();
    let nics = [&pair.a.nic, &pair.b.nic];
    std::thread::scope(|scope| {
        for (rank, nic) in (0_u64..).zip(nics) {
            scope.spawn(move || {
                for n in 0..ROUNDS {
                    while bind(nic, 1 - rank as u32, n, &n.to_ne_bytes()).is_err() {
                        std::thread::yield_now();
                        assert!(take(nic).is_none());
                    }
                    let (id, _, data) = loop {
                        match take(nic) {
                            Some(exchanged) => break exchanged,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!((id, data), (n, n.to_ne_bytes().to_vec()));
                }
            });
        }
    });
}

#[test]
fn wildcards_bound_ones_and_those_taken_back_cross_without_loss() {
    const ROUNDS: u64 = 5_000;
    let pair = Pair::new();
    let nics = [&pair.a.nic, &pair.b.nic];
    let exchanges = [const { AtomicU32::new(0) }; 2];
    let ready = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (rank, nic) in (0_usize..).zip(nics) {
            let (exchanges, ready) = (&exchanges, &ready);
            scope.spawn(move || {
                let take = || {
                    let Some(exchanged) = nic.next_datagram() else {
                        return false;
                    };
                    exchanges[rank].fetch_add(1, Ordering::SeqCst);
                    if exchanged.id == 1 << 40 {
                        nic.post_datagram(None, 1 << 40, b"wild").unwrap();
                    }
                    true
                };
                nic.post_datagram(None, 1 << 40, b"wild").unwrap();
                for n in 0..ROUNDS {
                    while bind(nic, 1 - rank as u32, n, b"bound").is_err() {
                        take();
                        std::thread::yield_now();
                    }
                    if n % 3 == 0 {
                        take();
                        match nic.cancel_datagram(n) {
                            Ok(()) | Err(GniError::BadHandle { .. }) => continue,
                            Err(GniError::Busy { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    // Until it was exchanged.
                    loop {
                        take();
                        if !nic.shared.is_bound(n) {
                            break;
                        }
                        std::thread::yield_now();
                    }
                }
                ready.fetch_add(1, Ordering::SeqCst);
                while ready.load(Ordering::SeqCst) < 2 || take() {
                    take();
                    std::thread::yield_now();
                }
            });
        }
    });
    let [one, two] = exchanges.map(|count| count.load(Ordering::SeqCst));
    // What one has exchanged the other has, too.
    let mut rest = [0, 0];
    for (rest, nic) in rest.iter_mut().zip(nics) {
        *rest = std::iter::from_fn(|| take(nic)).count() as u32;
    }
    assert_eq!(one + rest[0], two + rest[1]);
    assert!(u64::from(one) >= ROUNDS / 3, "{one}");
}
