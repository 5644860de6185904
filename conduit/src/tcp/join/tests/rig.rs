//! Ranks of a job in one thread, each with its joiner.

use super::super::dial::Unreachable;
use super::super::interfaces::{Interface, InterfaceKind};
use super::super::*;
use argonet_base::JobRank;
use core::net::SocketAddr;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use std::time::{Duration, Instant};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000 * MS;

/// A time that no test comes near unless it hangs.
const WATCHDOG: Duration = Duration::from_secs(60);

pub(super) fn key() -> JobKey {
    JobKey::from_bytes([0x5a; KEY_BYTES])
}

pub(super) fn loopback() -> Interface {
    Interface {
        name: "lo".into(),
        address: [127, 0, 0, 1].into(),
        prefix: 8,
        up: true,
        kind: InterfaceKind::Loopback,
    }
}

/// An address where no process listens.
pub(super) fn dead_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

#[derive(Default)]
pub(super) struct User {
    pub(super) places: Vec<Whereabouts>,
    pub(super) received: u64,
    pub(super) joined: Vec<Joined>,
    pub(super) fences: Vec<(u32, u16)>,
    pub(super) unreachable: Vec<Unreachable>,
}

impl User {
    /// The last connection of this number with this peer.
    pub(super) fn current(&self, peer: u32, connection: u16) -> Option<&Joined> {
        let it = |joined: &&Joined| joined.peer.0 == peer && joined.connection == connection;
        self.joined.iter().rfind(it)
    }
}

impl JoinUser for User {
    fn whereabouts(&mut self, peer: JobRank) -> Whereabouts {
        self.places[peer.index()].clone()
    }

    fn fence(&mut self, peer: JobRank, connection: u16) -> u64 {
        self.joined
            .retain(|j| (j.peer, j.connection) != (peer, connection));
        self.fences.push((peer.0, connection));
        self.received
    }

    fn joined(&mut self, joined: Joined) {
        let before = self.current(joined.peer.0, joined.connection);
        assert!(before.is_none(), "two connections of one number");
        self.joined.push(joined);
    }

    fn unreachable(&mut self, error: Unreachable) {
        self.unreachable.push(error);
    }
}

pub(super) struct Node {
    pub(super) joiner: Joiner,
    pub(super) user: User,
}

pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    /// The joiners' time; goes on as real time does, and by the time that tests add.
    pub(super) now_ns: u64,
    last: Instant,
}

impl Cluster {
    pub(super) fn new(ranks: usize, config: JoinConfig) -> Self {
        Self::on(&[loopback()], ranks, config)
    }

    /// Ranks that listen on these interfaces.
    pub(super) fn on(interfaces: &[Interface], ranks: usize, config: JoinConfig) -> Self {
        let joiner = |rank: usize| {
            let me = JobRank(rank as u32);
            let interfaces = interfaces.to_vec();
            Joiner::new(config.clone(), key(), me, ranks as u32, interfaces).unwrap()
        };
        let joiners: Vec<_> = (0..ranks).map(joiner).collect();
        let places: Vec<_> = joiners
            .iter()
            .enumerate()
            .map(|(rank, joiner)| Whereabouts {
                host: format!("host{rank}"),
                addresses: joiner.addresses().to_vec(),
            })
            .collect();
        let nodes = joiners
            .into_iter()
            .map(|joiner| Node {
                joiner,
                user: User {
                    places: places.clone(),
                    ..User::default()
                },
            })
            .collect();
        Self {
            nodes,
            now_ns: 0,
            last: Instant::now(),
        }
    }

    pub(super) fn ask(&mut self, me: usize, peer: usize, connection: u16) {
        let Node { joiner, user } = &mut self.nodes[me];
        joiner.ask(self.now_ns, JobRank(peer as u32), connection, user);
    }

    pub(super) fn lost(&mut self, me: usize, peer: u32, connection: u16, incarnation: u64) {
        let Node { joiner, user } = &mut self.nodes[me];
        joiner.lost(self.now_ns, JobRank(peer), connection, incarnation, user);
    }

    pub(super) fn close(&mut self, me: usize, peer: u32, connection: u16) {
        let Node { joiner, user } = &mut self.nodes[me];
        joiner.close(self.now_ns, JobRank(peer), connection, user);
    }

    /// The last rank dies.
    ///
    /// Yields where it listened.
    pub(super) fn kill(&mut self, rank: usize) -> SocketAddr {
        assert_eq!(rank + 1, self.nodes.len());
        let node = self.nodes.pop().unwrap();
        node.joiner.addresses()[0]
    }

    pub(super) fn poll(&mut self) {
        self.now_ns += self.last.elapsed().as_nanos() as u64;
        self.last = Instant::now();
        for Node { joiner, user } in &mut self.nodes {
            joiner.poll(self.now_ns, user).unwrap();
        }
    }

    /// Goes on until `done`; waits for sockets and timers, not for time.
    pub(super) fn until(&mut self, what: &str, mut done: impl FnMut(&[Node]) -> bool) {
        let begun = Instant::now();
        while !done(&self.nodes) {
            let counts: Vec<_> = self.nodes.iter().map(|n| n.joiner.counts()).collect();
            assert!(begun.elapsed() < WATCHDOG, "{what}: never; {counts:?}");
            self.poll();
            if !done(&self.nodes) {
                self.wait();
            }
        }
    }

    /// Goes on until no joiner has anything to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            self.poll();
            if self.nodes.iter().all(|n| n.joiner.poll_timeout().is_none()) && !self.ready(0) {
                return;
            }
            self.wait();
        }
        panic!("they never come to rest");
    }

    fn wait(&self) {
        let timers = self
            .nodes
            .iter()
            .filter_map(|n| n.joiner.poll_timeout())
            .min();
        let wait_ns = timers.map_or(50 * MS, |at| at.saturating_sub(self.now_ns).min(50 * MS));
        self.ready(wait_ns);
    }

    fn ready(&self, wait_ns: u64) -> bool {
        let mut fds: Vec<_> = self
            .nodes
            .iter()
            .map(|n| PollFd::new(&n.joiner, PollFlags::IN))
            .collect();
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns as i64,
        };
        rustix::event::poll(&mut fds, Some(&wait)).unwrap() > 0
    }
}

/// No joiner's descriptor stays readable.
pub(super) fn pass(cluster: &Cluster) {
    assert!(
        !cluster.ready(0),
        "a joiner has something to do that it does not do"
    );
}

/// The other end takes the bytes that one end sends, from the first byte, both ways.
pub(super) fn same_bytes(a: &OwnedFd, b: &OwnedFd) {
    for (from, to, text) in [(a, b, b"frames"), (b, a, b"answer")] {
        assert_eq!(rustix::net::send(from, text, SendFlags::NOSIGNAL), Ok(6));
        let mut fds = [PollFd::new(to, PollFlags::IN)];
        let wait = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        assert_eq!(rustix::event::poll(&mut fds, Some(&wait)), Ok(1));
        let mut buffer = [0; 64];
        let (count, _) = rustix::net::recv(to, &mut buffer, RecvFlags::empty()).unwrap();
        assert_eq!(&buffer[..count], text);
    }
}
