//! Strangers that connect to a rank: the job goes on.

use super::super::gate::{GateCounts, GateLimits};
use super::super::*;
use super::rig::{Cluster, S, key, same_bytes};
use argonet_base::JobRank;
use core::net::SocketAddr;
use std::io::{Read, Write};
use std::net::TcpStream;

fn address(cluster: &Cluster, rank: usize) -> SocketAddr {
    cluster.nodes[rank].joiner.addresses()[0]
}

fn counts(cluster: &Cluster, rank: usize) -> GateCounts {
    cluster.nodes[rank].joiner.counts()
}

/// Ranks 0 and 1 still find each other.
fn they_meet(cluster: &mut Cluster) {
    cluster.ask(0, 1, 0);
    cluster.until("they meet", |nodes| {
        let has = |n: usize, peer| nodes[n].user.current(peer, 0).is_some();
        has(0, 1) && has(1, 0)
    });
    let [a, b] =
        [(0, 1), (1, 0)].map(|(n, peer)| &cluster.nodes[n].user.current(peer, 0).unwrap().socket);
    same_bytes(a, b);
}

/// Goes on until the stream is closed by the other side.
///
/// Yields its messages before that.
fn until_closed(cluster: &mut Cluster, stream: &mut TcpStream) -> Vec<u8> {
    stream.set_nonblocking(true).unwrap();
    let mut said = Vec::new();
    let mut closed = false;
    cluster.until("the stranger is dropped", |_| {
        let mut buffer = [0; 512];
        match stream.read(&mut buffer) {
            Ok(0) => closed = true,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => closed = true,
        }
        closed
    });
    said
}

fn open(key: &JobKey, rank: u32, to: u32) -> Handshake {
    let me = Hello {
        rank: JobRank(rank),
        connection: 0,
        incarnation: 1,
        received: 0,
    };
    Handshake::connect(key, me, JobRank(to), [3; 32])
}

#[test]
fn scanners_and_wrong_keys_are_dropped_without_a_word() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    let wrong = JobKey::from_bytes([1; 32]);
    let mut version = open(&key(), 0, 1).to_send().to_vec();
    version[8] = 9;
    // The identity of the job is known, the key is not.
    let mut forged = open(&key(), 0, 1).to_send().to_vec();
    forged[70] ^= 1;
    let cases = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        version,
        open(&wrong, 0, 1).to_send().to_vec(),
        forged,
        open(&key(), 0, 2).to_send().to_vec(),
    ];
    for case in cases {
        let mut stream = TcpStream::connect(address(&cluster, 1)).unwrap();
        stream.write_all(&case).unwrap();
        assert_eq!(until_closed(&mut cluster, &mut stream), b"");
    }
    let expected = GateCounts {
        seen: 5,
        other_protocol: 1,
        other_version: 1,
        other_job: 1,
        no_proof: 1,
        wrong_rank: 1,
        ..GateCounts::default()
    };
    assert_eq!(counts(&cluster, 1), expected);
    they_meet(&mut cluster);
}

/// A first message that was recorded gets a challenge, and its recorded proof nothing.
#[test]
fn a_replayed_handshake_changes_nothing() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    they_meet(&mut cluster);
    let incarnation = cluster.nodes[1].user.joined[0].incarnation;
    let mut recorded = Handshake::connect(
        &key(),
        Hello {
            rank: JobRank(0),
            connection: 0,
            incarnation: incarnation + 100,
            received: 0,
        },
        JobRank(1),
        [3; 32],
    );
    let mut stream = TcpStream::connect(address(&cluster, 1)).unwrap();
    let first = recorded.to_send().to_vec();
    recorded.sent(first.len());
    stream.write_all(&first).unwrap();
    // The proof of another day: one for the challenge of an acceptor with another nonce.
    let mut acceptor = Handshake::accept(&key(), JobRank(1), 2, [4; 32]);
    acceptor.take(&first).unwrap();
    recorded.take(acceptor.to_send()).unwrap();
    stream.write_all(recorded.to_send()).unwrap();
    assert_eq!(
        until_closed(&mut cluster, &mut stream).len(),
        64,
        "a challenge and no more"
    );
    assert_eq!(counts(&cluster, 1).no_proof, 1);
    assert_eq!(
        cluster.nodes[1].user.joined.len(),
        1,
        "the connection stands"
    );
    assert_eq!(cluster.nodes[1].user.joined[0].incarnation, incarnation);
    let [a, b] = &cluster.nodes[..] else { panic!() };
    same_bytes(&a.user.joined[0].socket, &b.user.joined[0].socket);
}

/// A genuine connector that goes away after each byte of its messages.
#[test]
fn half_a_handshake_of_every_length_changes_nothing() {
    const OPEN: usize = 116;
    const PROOF: usize = 32;
    let mut cluster = Cluster::new(2, JoinConfig::default());
    they_meet(&mut cluster);
    let fences = cluster.nodes[1].user.fences.len();
    for length in 0..OPEN + PROOF {
        let mut stream = TcpStream::connect(address(&cluster, 1)).unwrap();
        let mut handshake = open(&key(), 0, 1);
        let first = handshake.to_send()[..length.min(OPEN)].to_vec();
        stream.write_all(&first).unwrap();
        if length >= OPEN {
            handshake.sent(OPEN);
            stream.set_nonblocking(true).unwrap();
            cluster.until("the challenge is there", |_| {
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte) {
                    handshake.take(&byte).unwrap();
                }
                !handshake.to_send().is_empty()
            });
            let part = &handshake.to_send()[..length - OPEN];
            stream.write_all(part).unwrap();
        }
        drop(stream);
    }
    let all = (OPEN + PROOF) as u64;
    cluster.until("all have gone", |nodes| {
        nodes[1].joiner.counts().closed == all
    });
    assert_eq!(
        cluster.nodes[1].user.fences.len(),
        fences,
        "nothing was ended for them"
    );
    let [a, b] = &cluster.nodes[..] else { panic!() };
    same_bytes(&a.user.joined[0].socket, &b.user.joined[0].socket);
}

/// Silent, half-open and slow connections from elsewhere: the gate is full of them, and ranks come
/// first.
#[test]
fn silent_connections_from_elsewhere_do_not_keep_ranks_out() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    // Strangers come from 127.0.0.9, the job's ranks from 127.0.0.1.
    let strangers: Vec<_> = (0..100)
        .map(|_| from_elsewhere(address(&cluster, 1)))
        .collect();
    for (i, mut stranger) in strangers.iter().enumerate() {
        if i % 3 == 1 {
            stranger
                .write_all(&open(&key(), 0, 1).to_send()[..i])
                .unwrap();
        } else if i % 3 == 2 {
            stranger.shutdown(std::net::Shutdown::Read).unwrap();
        }
    }
    cluster.until("all have come", |nodes| {
        nodes[1].joiner.counts().seen == 100
    });
    assert_eq!(counts(&cluster, 1).full, 36);
    they_meet(&mut cluster);
    let after = counts(&cluster, 1);
    assert_eq!((after.proven, after.evicted), (1, 1));
    // Two seconds after they came none is left, however slowly they spoke.
    cluster.now_ns += 2 * S;
    cluster.poll();
    let end = counts(&cluster, 1);
    assert_eq!((end.expired, end.proven + end.dropped()), (63, 101));
    assert_eq!(cluster.nodes[1].joiner.poll_timeout(), None);
}

fn from_elsewhere(to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 9], 0))).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// The gate is full of connections from the job's own address: the next ones wait in the kernel,
/// and are served.
#[test]
fn when_all_places_are_the_jobs_the_rest_waits() {
    let config = JoinConfig {
        gate: GateLimits {
            most: 4,
            ..GateLimits::default()
        },
        ..JoinConfig::default()
    };
    let mut cluster = Cluster::new(2, config);
    let strangers: Vec<_> = (0..10)
        .map(|_| TcpStream::connect(address(&cluster, 1)).unwrap())
        .collect();
    cluster.ask(0, 1, 0);
    cluster.until("four are inside", |nodes| {
        nodes[1].joiner.counts().seen == 4
    });
    cluster.poll();
    super::pass(&cluster);
    assert_eq!(
        counts(&cluster, 1).seen,
        4,
        "the rest waits, and no thread spins"
    );
    drop(strangers);
    cluster.until("the rank is served", |nodes| {
        nodes[1].user.current(0, 0).is_some()
    });
    let end = counts(&cluster, 1);
    assert_eq!((end.proven, end.closed, end.full), (1, 10, 0));
}

/// 10 MB of random bytes, while ranks connect.
#[test]
fn noise_does_not_disturb() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    let to = address(&cluster, 1);
    let noisy = std::thread::spawn(move || {
        let mut state = 1u64;
        let mut sent = 0;
        while sent < 10 << 20 {
            let mut bytes = vec![0u8; 1 + (state >> 44) as usize];
            for byte in &mut bytes {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            let mut stream = TcpStream::connect(to).unwrap();
            // The other side may close in the middle.
            let _ = stream.write_all(&bytes);
            sent += bytes.len();
        }
    });
    let mut rounds = 0;
    while !noisy.is_finished() || rounds < 10 {
        rounds += 1;
        they_meet(&mut cluster);
        let incarnation = cluster.nodes[0].user.joined[0].incarnation;
        cluster.lost(0, 1, 0, incarnation);
        cluster.until("it is made anew", |nodes| {
            let newer = |n: usize| {
                nodes[n]
                    .user
                    .joined
                    .first()
                    .is_some_and(|j| j.incarnation > incarnation)
            };
            newer(0) && newer(1)
        });
    }
    noisy.join().unwrap();
    assert!(cluster.nodes.iter().all(|n| n.user.unreachable.is_empty()));
}

/// A peer that proves to be of the job and then talks nonsense has a connection: the nonsense is
/// for the frames' parser.
#[test]
fn bytes_after_a_valid_handshake_are_left_for_the_frames() {
    let mut cluster = Cluster::new(2, JoinConfig::default());
    let mut stream = TcpStream::connect(address(&cluster, 1)).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut handshake = open(&key(), 0, 1);
    let mut done = false;
    cluster.until("the handshake is done", |_| {
        while !handshake.to_send().is_empty() {
            // One byte at a time.
            let count = stream.write(&handshake.to_send()[..1]).unwrap();
            handshake.sent(count);
        }
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte) {
            done = matches!(handshake.take(&byte), Ok((1, Progress::Done(_))));
            if done {
                break;
            }
        }
        done
    });
    stream.write_all(b"nonsense").unwrap();
    let joined = &cluster.nodes[1].user.joined[0];
    let mut taken = Vec::new();
    while taken.len() < 8 {
        let mut buffer = [0; 64];
        match rustix::net::recv(&joined.socket, &mut buffer, rustix::net::RecvFlags::empty()) {
            Ok((count, _)) => taken.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error, rustix::io::Errno::AGAIN),
        }
    }
    assert_eq!(taken, b"nonsense");
}
