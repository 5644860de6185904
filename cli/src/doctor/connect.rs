//! Connections between the hosts, as ranks would make them.

use core::net::SocketAddr;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use argonet_base::{JobRank, random};
use argonet_conduit::tcp::join::handshake::NONCE_BYTES;
use argonet_conduit::tcp::join::{Handshake, Hello, JobKey, JoinService, Made, Progress};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::datagrams::Known;
use super::facts::{Door, Mailbox};

/// Connections that a host tries at a time.
const AT_A_TIME: usize = 64;

/// Bytes that go there and back in one piece: many packets of any network.
const LONG_BYTES: usize = 64 << 10;

/// Round trips of which the fastest counts.
const ROUND_TRIPS: u32 = 5;

/// Another host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Other {
    pub(super) host: String,
    pub(super) doors: Vec<Door>,
}

/// The attempts of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attempts {
    pub(super) others: Vec<Other>,
    /// Those that get datagrams, and which of them this host is.
    pub(super) mailboxes: Vec<Mailbox>,
    pub(super) own_mailbox: Option<u32>,
    /// Time limit of a step of a connection.
    pub(super) wait: Duration,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// All passes; the fastest round trip.
    Well { round_trip_ns: u64 },
    /// The connection was refused or reset.
    Refused,
    /// No answer came.
    Silent,
    /// The system knows no way.
    NoWay(String),
    /// A connection, and the other end is not the agent.
    Stranger(String),
    /// Short messages pass, long ones do not.
    LongLost,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Probe {
    pub(super) host: String,
    pub(super) rank: u32,
    pub(super) address: SocketAddr,
    pub(super) outcome: Outcome,
}

/// What a host has found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) probes: Vec<Probe>,
    /// Paths of datagrams that are not good, by the place of the other host's mailbox.
    pub(super) paths: Vec<Known>,
}

/// Time limit of the attempts of so many hosts, each with so many doors.
pub(super) fn limit(hosts: usize, doors: usize, wait: Duration) -> Duration {
    // Of an attempt: to connect, three steps of the handshake, two exchanges; and a host may have
    // several addresses.
    let rounds = (hosts * doors).div_ceil(AT_A_TIME).max(1) as u32;
    // And datagrams before.
    wait * (6 * 8 * rounds + 1) + Duration::from_secs(10)
}

/// Connects to every address of all others.
///
/// The attempts at one rank come one after the other, as each of them ends the one before.
pub(super) fn connect(key: &JobKey, me: JobRank, attempts: &Attempts) -> Vec<Probe> {
    let doors = attempts.others.iter();
    let doors: Vec<(&str, &Door)> = doors
        .flat_map(|other| other.doors.iter().map(|door| (other.host.as_str(), door)))
        .collect();
    let left = Mutex::new(doors.iter());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let probes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let one = || {
            scope.spawn(|| {
                while let Some((host, door)) = next() {
                    for &address in &door.addresses {
                        let probe = Probe {
                            host: (*host).to_owned(),
                            rank: door.rank,
                            address,
                            outcome: attempt(key, me, JobRank(door.rank), address, attempts.wait),
                        };
                        if let Ok(mut probes) = probes.lock() {
                            probes.push(probe);
                        }
                    }
                }
            })
        };
        let threads: Vec<_> = (0..doors.len().min(AT_A_TIME)).map(|_| one()).collect();
        // A thread that failed has probed less, as the report shows. ThreadSanitizer sees a join,
        // but not the end of a scope.
        threads.into_iter().for_each(|thread| _ = thread.join());
    });
    let mut probes = probes.into_inner().unwrap_or_default();
    probes.sort_by_key(|probe| (probe.rank, probe.address));
    probes
}

fn attempt(
    key: &JobKey,
    me: JobRank,
    peer: JobRank,
    address: SocketAddr,
    wait: Duration,
) -> Outcome {
    let mut socket = match TcpStream::connect_timeout(&address, wait) {
        Ok(socket) => socket,
        Err(error) => return of_connect(&error),
    };
    let prepared = socket
        .set_nodelay(true)
        .and_then(|()| socket.set_read_timeout(Some(wait)))
        .and_then(|()| socket.set_write_timeout(Some(wait)));
    if let Err(error) = prepared {
        return Outcome::NoWay(error.to_string());
    }
    if let Err(why) = shake_hands(&mut socket, key, me, peer) {
        return Outcome::Stranger(why);
    }
    let mut fastest = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        match echoed(&mut socket, 8) {
            Ok(time) => fastest = fastest.min(time),
            Err(error) => return Outcome::Stranger(format!("after the handshake: {error}")),
        }
    }
    match echoed(&mut socket, LONG_BYTES) {
        Ok(_) => Outcome::Well {
            round_trip_ns: fastest.as_nanos() as u64,
        },
        Err(_) => Outcome::LongLost,
    }
}

fn of_connect(error: &std::io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Outcome::Refused,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Outcome::Silent,
        _ => Outcome::NoWay(error.to_string()),
    }
}

/// Proves that both ends belong to this examination.
fn shake_hands(
    socket: &mut TcpStream,
    key: &JobKey,
    me: JobRank,
    peer: JobRank,
) -> Result<(), String> {
    // Each attempt is newer than those before.
    static INCARNATION: AtomicU64 = AtomicU64::new(1);
    let hello = Hello {
        rank: me,
        connection: 0,
        incarnation: INCARNATION.fetch_add(1, Ordering::Relaxed),
        received: 0,
    };
    let mut nonce = [0; NONCE_BYTES];
    random::fill(&mut nonce).map_err(|error| format!("no random numbers: {error}"))?;
    let mut handshake = Handshake::connect(key, hello, peer, nonce);
    loop {
        let bytes = handshake.to_send().len();
        let sent = socket.write_all(handshake.to_send());
        sent.map_err(|error| format!("the handshake could not be sent: {error}"))?;
        handshake.sent(bytes);
        let mut answer = vec![0; handshake.wanted()];
        let n = match socket.read(&mut answer) {
            Ok(0) => return Err("it closed the connection within the handshake".into()),
            Ok(n) => n,
            Err(error) if is_late(&error) => return Err("it did not answer the handshake".into()),
            Err(error) => return Err(format!("within the handshake: {error}")),
        };
        match handshake.take(&answer[..n]) {
            Ok((_, Progress::Done(_))) => return Ok(()),
            Ok(_) => {}
            Err(refused) => return Err(refused.to_string()),
        }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Sends so many bytes and waits until they come back; how long that took.
fn echoed(socket: &mut TcpStream, bytes: usize) -> std::io::Result<Duration> {
    let sent: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    let mut back = vec![0; bytes];
    let begun = Instant::now();
    socket.write_all(&sent)?;
    socket.read_exact(&mut back)?;
    match sent == back {
        true => Ok(begun.elapsed()),
        false => Err(std::io::Error::other("other bytes came back")),
    }
}

/// Takes connections forever, and sends back the bytes that come on them.
pub(super) fn serve(service: &JoinService) {
    loop {
        let mut fds = [PollFd::from_borrowed_fd(
            service.descriptor(),
            PollFlags::IN,
        )];
        let _ = poll(&mut fds, None);
        loop {
            match service.next(&|_, _| 0) {
                Ok(Some(Made::Joined(joined))) => {
                    let socket = TcpStream::from(joined.socket);
                    std::thread::spawn(move || send_back(socket));
                }
                Ok(Some(Made::Unreachable(_))) => {}
                Ok(None) => break,
                // The hosts that connect here find that out.
                Err(_) => return,
            }
        }
    }
}

fn send_back(mut socket: TcpStream) {
    let mut bytes = vec![0; LONG_BYTES];
    if socket.set_nonblocking(false).is_err() {
        return;
    }
    while let Ok(n) = socket.read(&mut bytes) {
        if n == 0 || socket.write_all(&bytes[..n]).is_err() {
            return;
        }
    }
}
