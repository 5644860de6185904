//! The driver over real sockets on loopback.
//!
//! The tests set the time.

mod rig;
mod service;
mod strangers;

use super::dial::MAX_CONNECTIONS;
use super::interfaces::{Interface, InterfaceKind, list};
use super::*;
use argonet_base::JobRank;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use rig::{Cluster, MS, S, loopback, pass, same_bytes};
use std::net::TcpStream;
use std::time::Instant;

/// spec T2: connections over sockets that do not block.
#[test]
fn two_ranks_meet() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    cluster.nodes[0].user.received = 17;
    cluster.nodes[1].user.received = 4;
    cluster.ask(0, 1, 0);
    cluster.until("both have it", |nodes| {
        nodes.iter().all(|n| n.user.joined.len() == 1)
    });
    let [a, b] = [0, 1].map(|n| cluster.nodes[n].user.joined.remove(0));
    assert_eq!((a.peer, b.peer), (JobRank(1), JobRank(0)));
    assert_eq!((a.received, b.received), (4, 17));
    assert_eq!((a.incarnation, b.incarnation), (1, 1));
    assert_eq!((a.connection, b.connection), (0, 0));
    // Frames begin where the handshake ends.
    same_bytes(&a.socket, &b.socket);
    // Each end was fenced before the other could learn its received position.
    assert_eq!(cluster.nodes[0].user.fences, [(1, 0)]);
    assert_eq!(cluster.nodes[1].user.fences, [(0, 0)]);
    // Asked again, nothing happens.
    cluster.ask(0, 1, 0);
    cluster.ask(1, 0, 0);
    cluster.settle();
    assert!(cluster.nodes.iter().all(|n| n.user.joined.is_empty()));
    assert_eq!(cluster.nodes[1].joiner.counts().proven, 1);
}

/// spec T1: all ranks connect to all at once, so that every pair crosses.
#[test]
fn crossing_connects_leave_one_connection_a_pair() {
    const RANKS: usize = 8;
    let mut cluster = Cluster::new(RANKS, JoinConfig::default());
    for me in 0..RANKS {
        for peer in 0..RANKS {
            if me != peer {
                cluster.ask(me, peer, 0);
            }
        }
    }
    cluster.until("all pairs are there", |nodes| {
        let all = |n: &rig::Node| {
            (0..RANKS as u32)
                .filter(|p| n.user.current(*p, 0).is_some())
                .count()
        };
        nodes.iter().all(|n| all(n) == RANKS - 1)
    });
    cluster.settle();
    for a in 0..RANKS {
        for b in 0..a {
            let mine = cluster.nodes[a].user.current(b as u32, 0).expect("joined");
            let its = cluster.nodes[b].user.current(a as u32, 0).expect("joined");
            assert_eq!(mine.incarnation, its.incarnation, "{a} and {b}");
            same_bytes(&mine.socket, &its.socket);
        }
    }
}

#[test]
fn a_connection_that_breaks_is_made_anew() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    cluster.ask(1, 0, 0);
    cluster.until("both have it", |nodes| {
        nodes.iter().all(|n| n.user.joined.len() == 1)
    });
    for round in 0..10u64 {
        // One end notices, in turn the lower and the higher rank.
        let noticer = (round % 2) as usize;
        let incarnation = cluster.nodes[noticer].user.joined[0].incarnation;
        cluster.nodes[noticer].user.received = 100 + round;
        for node in &mut cluster.nodes {
            node.user.joined.clear();
        }
        let peer = 1 - noticer as u32;
        cluster.lost(noticer, peer, 0, incarnation);
        cluster.until("both have another", |nodes| {
            nodes.iter().all(|n| n.user.joined.len() == 1)
        });
        let [a, b] = [0, 1].map(|n| &cluster.nodes[n].user.joined[0]);
        assert!(a.incarnation == b.incarnation && a.incarnation > incarnation);
        assert_eq!(
            cluster.nodes[1 - noticer].user.joined[0].received,
            100 + round
        );
        same_bytes(&a.socket, &b.socket);
        // News of the old one come too late to matter.
        cluster.lost(noticer, peer, 0, incarnation);
        cluster.settle();
        assert_eq!(cluster.nodes[0].user.joined.len(), 1);
    }
}

/// An address that the host has no more does not keep ranks apart.
#[test]
fn a_connection_is_made_although_its_address_has_gone() {
    let interfaces = [Interface {
        address: [127, 0, 0, 1].into(),
        ..loopback()
    }];
    let mut cluster = Cluster::on(&interfaces, 2, JoinConfig::default());
    let gone = Interface {
        address: [192, 0, 2, 77].into(),
        prefix: 0,
        ..loopback()
    };
    for node in &mut cluster.nodes {
        node.joiner.ours = vec![gone.clone()];
    }
    cluster.ask(0, 1, 0);
    cluster.until("it is there", |nodes| {
        nodes[0].user.current(1, 0).is_some() && nodes[1].user.current(0, 0).is_some()
    });
}

/// Each rank in turn gets another address, at which no other finds it before it has connected.
#[test]
fn a_rank_at_another_address_is_found_there_once_it_has_connected() {
    let at = |last| Interface {
        address: [127, 0, 0, last].into(),
        ..loopback()
    };
    let config = JoinConfig {
        follows: true,
        ..JoinConfig::default()
    };
    let mut cluster = Cluster::on(&[at(2)], 2, config);
    let both = |nodes: &[rig::Node]| nodes.iter().all(|n| n.user.joined.len() == 1);
    let again = |cluster: &mut Cluster, noticer: usize| {
        let incarnation = cluster.nodes[noticer].user.joined[0].incarnation;
        for node in &mut cluster.nodes {
            node.user.joined.clear();
        }
        cluster.lost(noticer, 1 - noticer as u32, 0, incarnation);
        cluster.until("both have another", both);
    };
    cluster.ask(0, 1, 0);
    cluster.until("both have it", both);
    // More than are kept, and some again.
    let far = (30..42).chain([36, 30]).map(|last| (1, last));
    for (mover, last) in [(0, 4), (1, 5), (0, 6), (0, 4)].into_iter().chain(far) {
        let joiner = &mut cluster.nodes[mover].joiner;
        let port = joiner.addresses()[0].port();
        joiner.readdress(Vec::new()).unwrap();
        for _ in 0..2 {
            joiner.readdress(vec![at(last)]).unwrap();
        }
        let there = core::net::SocketAddr::new(at(last).address, port);
        assert_eq!(joiner.addresses(), [there]);
        again(&mut cluster, mover);
        again(&mut cluster, 1 - mover);
        let joined = &cluster.nodes[1 - mover].user.joined[0];
        let peer = TcpStream::from(joined.socket.try_clone().unwrap()).peer_addr();
        assert_eq!(peer.unwrap(), there);
    }
}

/// A new address takes the place of one that its own interface has no more, at a port that peers
/// know.
#[test]
fn each_interface_keeps_its_doors_and_ports() {
    let at = |name: &str, last| Interface {
        name: name.into(),
        address: [127, 0, 0, last].into(),
        ..loopback()
    };
    let begin = [at("a", 2), at("b", 3)];
    let mut cluster = Cluster::on(&begin, 1, JoinConfig::default());
    let joiner = &mut cluster.nodes[0].joiner;
    let ports = [0, 1].map(|i| joiner.addresses()[i].port());
    let mut check = |now: &[Interface], wanted: &[(u8, u16)]| {
        let outcome = joiner.readdress(now.to_vec());
        let each = wanted.iter();
        let each: Vec<_> = each
            .map(|(last, port)| ([127, 0, 0, *last], *port).into())
            .collect();
        assert_eq!(joiner.addresses(), each, "{now:?}");
        outcome
    };
    let [of_a, of_b] = ports;
    // The other one is down for a while.
    let both = [(2, of_a), (3, of_b), (12, of_a)];
    check(&[at("a", 2), at("a", 12)], &both).unwrap();
    check(&begin, &both).unwrap();
    check(
        &[at("a", 22), at("b", 13)],
        &[(22, of_a), (13, of_b), (12, of_a)],
    )
    .unwrap();
    check(&begin, &both).unwrap();
    // An address that the host does not have.
    let nowhere = Interface {
        address: [192, 0, 2, 77].into(),
        ..at("b", 3)
    };
    let moved = [(4, of_a), (3, of_b), (12, of_a)];
    assert!(check(&[nowhere, at("a", 4)], &moved).is_err());
    check(&[at("a", 4)], &moved).unwrap();
}

/// Without its interface's address the system would take the first one of the host.
#[test]
fn connections_leave_from_the_chosen_interfaces() {
    let interfaces = [2, 3].map(|last| Interface {
        name: format!("lo{last}"),
        address: [127, 0, 0, last].into(),
        ..loopback()
    });
    let mut cluster = Cluster::on(&interfaces, 2, JoinConfig::default());
    for (connection, last) in [(0, 2), (1, 3)] {
        cluster.ask(0, 1, connection);
        cluster.until("it is there", |nodes| {
            nodes
                .iter()
                .zip([1, 0])
                .all(|(n, peer)| n.user.current(peer, connection).is_some())
        });
        let joined = cluster.nodes[1].user.current(0, connection).unwrap();
        let from = TcpStream::from(joined.socket.try_clone().unwrap()).peer_addr();
        assert_eq!(from.unwrap().ip(), IpAddr::from([127, 0, 0, last]));
    }
}

/// spec T7: further connections are made when they are asked for.
#[test]
fn further_connections_are_made_when_asked_for() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    for connection in [0, 3, 1, MAX_CONNECTIONS - 1] {
        cluster.ask(0, 1, connection);
        cluster.until("it is there", |nodes| {
            nodes
                .iter()
                .zip([1, 0])
                .all(|(n, peer)| n.user.current(peer, connection).is_some())
        });
    }
    assert!(cluster.nodes.iter().all(|n| n.user.joined.len() == 4));
    let [a, b] = &cluster.nodes[..] else { panic!() };
    for connection in [0, 3, 1, MAX_CONNECTIONS - 1] {
        let mine = a.user.current(1, connection).unwrap();
        same_bytes(&mine.socket, &b.user.current(0, connection).unwrap().socket);
    }
    // One that is closed is not made again by itself, and can be by either.
    cluster.close(0, 1, 3);
    cluster.nodes[0].user.joined.clear();
    cluster.settle();
    assert!(cluster.nodes[0].user.joined.is_empty());
    cluster.ask(0, 1, 3);
    cluster.until("it is there again", |nodes| nodes[0].user.joined.len() == 1);
}

#[test]
fn attempts_wait_for_room() {
    let config = JoinConfig {
        attempts: 2,
        ..JoinConfig::default()
    };
    let mut cluster = Cluster::new(6, config);
    for peer in 1..6 {
        cluster.ask(0, peer, 0);
    }
    assert_eq!(cluster.nodes[0].joiner.attempts(), 2);
    cluster.until("all are there", |nodes| {
        assert!(nodes[0].joiner.attempts() <= 2);
        nodes[0].user.joined.len() == 5
    });
}

#[test]
fn an_unreachable_rank_is_reported_with_its_host_and_addresses() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    let gone = cluster.kill(1);
    cluster.ask(0, 1, 0);
    while cluster.nodes[0].user.unreachable.is_empty() {
        assert!(cluster.now_ns < 40 * S, "never given up");
        cluster.now_ns += 100 * MS;
        cluster.poll();
    }
    assert!(
        (30 * S..31 * S).contains(&cluster.now_ns),
        "{}",
        cluster.now_ns
    );
    let text = cluster.nodes[0].user.unreachable[0].to_string();
    assert!(
        text.contains("rank 0 cannot reach rank 1 on host1, connection 0, for 30."),
        "{text}"
    );
    assert!(
        text.contains(&format!("{gone} tried ")) && text.contains("Connection refused"),
        "{text}"
    );
}

#[test]
fn the_higher_of_two_addresses_is_found_when_the_first_is_dead() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    let good = cluster.nodes[1].joiner.addresses()[0];
    let dead = rig::dead_address();
    cluster.nodes[0].user.places[1].addresses = vec![dead, good];
    cluster.ask(0, 1, 0);
    cluster.until("it is there", |nodes| nodes[0].user.joined.len() == 1);
    assert_eq!(
        cluster.nodes[0].user.joined[0].incarnation, 2,
        "the second attempt"
    );
}

#[test]
fn ports_are_those_of_the_range_and_a_full_range_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = |ports| JoinConfig {
        ports,
        ..JoinConfig::default()
    };
    let key = JobKey::from_bytes([1; 32]);
    let join =
        |ports, interfaces| Joiner::new(config(ports), key.clone(), JobRank(3), 4, interfaces);
    let text = join(port..=port, vec![loopback()]).unwrap_err().to_string();
    let reason = format!(
        "rank 3 cannot listen on 127.0.0.1 of lo: all ports from {port} to {port} are in use"
    );
    assert!(
        text.contains(&reason) && text.contains("ARGONET_TCP_PORTS"),
        "{text}"
    );
    let wide = join(port..=u16::MAX, vec![loopback()]).unwrap();
    assert!(wide.addresses()[0].port() > port);
    // An address that is not this host's.
    let mut elsewhere = loopback();
    elsewhere.address = "198.51.100.77".parse().unwrap();
    let text = join(0..=0, vec![elsewhere]).unwrap_err().to_string();
    assert!(
        text.contains("cannot listen on 198.51.100.77 of lo: "),
        "{text}"
    );
}

/// Each address of this host that other hosts can use, of IPv4 and IPv6, leads from rank to rank;
/// and all together do.
#[test]
fn ranks_meet_over_every_interface() {
    let mut all = list("here").unwrap();
    all.retain(|interface| interface.up);
    assert!(!all.is_empty());
    let alone = all.iter().map(core::slice::from_ref);
    for interfaces in alone.chain([all.as_slice()]) {
        let mut cluster = Cluster::on(interfaces, 2, JoinConfig::default());
        let addresses = cluster.nodes[1].joiner.addresses();
        assert_eq!(addresses.len(), interfaces.len());
        for connection in 0..interfaces.len().min(4) as u16 {
            cluster.ask(0, 1, connection);
            cluster.until("it is there", |nodes| {
                let has = |n: usize, peer| nodes[n].user.current(peer, connection).is_some();
                has(0, 1) && has(1, 0)
            });
            // Further connections lead over further addresses.
            let joined = cluster.nodes[0].user.current(1, connection).unwrap();
            let peer = rustix::net::getpeername(&joined.socket).unwrap().unwrap();
            let peer = core::net::SocketAddr::try_from(peer).unwrap();
            assert_eq!(peer.ip(), interfaces[usize::from(connection)].address);
        }
    }
}

/// It listens on the chosen interfaces and nowhere else.
#[test]
fn it_listens_on_the_chosen_interfaces_only() {
    let cluster = Cluster::new(1, JoinConfig::default());
    let address = cluster.nodes[0].joiner.addresses()[0];
    assert!(std::net::TcpStream::connect(address).is_ok());
    let others = list("here").unwrap();
    for other in others
        .iter()
        .filter(|i| i.kind != InterfaceKind::Loopback && i.up)
    {
        let there = core::net::SocketAddr::new(other.address, address.port());
        let error = std::net::TcpStream::connect(there).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused,
            "{there}"
        );
    }
    let other = core::net::SocketAddr::from(([127, 0, 0, 2], address.port()));
    assert!(std::net::TcpStream::connect(other).is_err());
}

#[test]
fn an_idle_joiner_has_nothing_to_wait_for() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    cluster.ask(0, 1, 0);
    cluster.until("both have it", |nodes| {
        nodes.iter().all(|n| n.user.joined.len() == 1)
    });
    assert!(
        cluster
            .nodes
            .iter()
            .all(|n| n.joiner.poll_timeout().is_none())
    );
    pass(&cluster);
}

/// A rank that computes for three seconds after each look, toward one that drops strangers much
/// sooner.
#[test]
fn a_rank_that_polls_seldom_gets_through() {
    let config = JoinConfig {
        gate: gate::GateLimits {
            deadline_ns: 30 * MS,
            ..gate::GateLimits::default()
        },
        ..JoinConfig::default()
    };
    let mut cluster = Cluster::new(2, config);
    let mut other = cluster.nodes.pop().unwrap();
    let (dropped, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let stop = Stop(&done);
        let quick = scope.spawn(|| {
            let begun = Instant::now();
            while !done.load(SeqCst) {
                let now_ns = begun.elapsed().as_nanos() as u64;
                other.joiner.poll(now_ns, &mut other.user).unwrap();
                dropped.store(other.joiner.counts().dropped(), SeqCst);
                std::thread::yield_now();
            }
        });
        cluster.ask(0, 1, 0);
        let mut looks = 0;
        while cluster.nodes[0].user.joined.is_empty() {
            // The next look comes when the peer has lost its patience with this one.
            let before = dropped.load(SeqCst);
            cluster.now_ns += 3 * S;
            cluster.poll();
            looks += 1;
            let begun = Instant::now();
            while cluster.nodes[0].user.joined.is_empty() && dropped.load(SeqCst) == before {
                assert!(
                    begun.elapsed().as_secs() < 20,
                    "the peer neither takes nor drops it"
                );
                std::thread::yield_now();
            }
            assert!(looks < 200, "it never gets through");
            assert!(cluster.nodes[0].user.unreachable.is_empty());
        }
        drop(stop);
        quick.join().unwrap();
    });
}

/// Ends the other thread, also when this one fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
