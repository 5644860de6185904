//! Ranks that are connected over the loopback interface, in one process; some share memory besides
//! with ranks next to them.

#[path = "sockets.rs"]
mod sockets;

use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_conduit::channel::rail::{Made, NewRail, RailId};
use argonet_conduit::channel::{ChannelConfig, ChannelSizes};
use argonet_conduit::selector::Selector;
use argonet_conduit::smp::{Barrier, Smp, SmpConfig};
use argonet_conduit::tcp::{Connector, Tcp, TcpConfig};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use argonet_sim::Random;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::sockopt::{set_socket_linger, set_socket_send_buffer_size};
use sockets::{GARBAGE, raise_descriptors, send_garbage};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Thread mode, whether a thread serves beside the ranks' own, and where chance comes from, by
/// which connections break.
pub(crate) struct TcpRig {
    mode: ThreadMode,
    progress: bool,
    breaks: Option<u64>,
    /// So many ranks share memory.
    neighbors: u32,
}

pub(crate) struct TcpJob {
    endpoints: Vec<Option<Selector>>,
    segments: Vec<OwnSegment>,
    hub: Arc<Hub>,
}

/// Of so many looks for connections, one breaks some connection.
const LOOKS_A_BREAK: u64 = 24;

/// Bytes that a socket takes at once, about, where connections break.
const LITTLE: usize = 4096;

/// Connects ranks of one process with each other when one of them wants that.
struct Hub {
    listener: TcpListener,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Connections that are made, once both ranks have reported the bytes that they have received.
    dials: Vec<Dial>,
    /// Connections for each rank that it has not taken.
    made: Vec<VecDeque<NewRail<OwnedFd>>>,
    /// The last connection of each pair, by its lower rank and its number, and the one that a rank
    /// has of them.
    last: BTreeMap<(u32, u32, u16), u64>,
    taken: BTreeMap<(u32, u32, u16), u64>,
    /// A second descriptor of each rank's socket to a peer, by its number.
    sockets: BTreeMap<(u32, u32, u16), OwnedFd>,
    ended: Vec<u32>,
    chance: Option<Random>,
}

/// Rank, socket, and the bytes that it has received of the other.
type Side = (u32, TcpStream, Option<u64>);

struct Dial {
    number: u16,
    incarnation: u64,
    sides: [Side; 2],
}

/// A rank's side of the hub.
struct Port {
    hub: Arc<Hub>,
    rank: u32,
}

impl Hub {
    fn new(ranks: u32, breaks: Option<u64>) -> Self {
        let state = State {
            made: (0..ranks).map(|_| VecDeque::new()).collect(),
            chance: breaks.map(Random::new),
            ..State::default()
        };
        Self {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread of the rig has failed")
    }

    /// Dials for a rank that has no connection to a peer, unless one is on its way.
    fn dial(&self, rank: u32, peer: u32, number: u16) {
        let mut state = self.state();
        let pair = (rank.min(peer), rank.max(peer), number);
        let last = state.last.get(&pair).copied().unwrap_or(0);
        let taken = state.taken.get(&(rank, peer, number)).copied().unwrap_or(0);
        if rank == peer || state.ended.contains(&peer) || taken != last {
            return;
        }
        state.last.insert(pair, last + 1);
        let address = self.listener.local_addr().expect("an address");
        let here = TcpStream::connect(address).expect("loopback");
        let (there, _) = self.listener.accept().expect("loopback");
        if state.chance.is_some() {
            // Frames are written in parts, between which connections break.
            for socket in [&here, &there] {
                set_socket_send_buffer_size(socket, LITTLE).expect("a socket");
            }
        }
        // Over the first nothing was received before.
        let received = (last == 0).then_some(0);
        state.dials.push(Dial {
            number,
            incarnation: last + 1,
            sides: [(rank, here, received), (peer, there, received)],
        });
        state.connect();
    }

    /// The next connection of a rank.
    fn next(&self, rank: u32, received: &dyn Fn(RailId) -> u64) -> Option<NewRail<OwnedFd>> {
        let unsaid = self.state().unsaid(rank);
        // The channel takes a lock for that, under which it may dial.
        let said: Vec<_> = unsaid.into_iter().map(|id| (id, received(id))).collect();
        let mut state = self.state();
        for (id, received) in said {
            state.say(rank, id, received);
        }
        state.connect();
        let new = state.made[rank as usize].pop_front()?;
        let key = (rank, new.id.peer.0, new.id.number);
        state.taken.insert(key, new.incarnation);
        Some(new)
    }
}

impl State {
    /// Dials to peers to which a rank has not reported the bytes that it has received.
    fn unsaid(&mut self, rank: u32) -> Vec<RailId> {
        self.break_one();
        let mut unsaid = Vec::new();
        for Dial { number, sides, .. } in &self.dials {
            for (mine, other) in [(&sides[0], &sides[1]), (&sides[1], &sides[0])] {
                if mine.0 == rank && mine.2.is_none() {
                    let (peer, number) = (JobRank(other.0), *number);
                    unsaid.push(RailId { peer, number });
                }
            }
        }
        unsaid
    }

    fn say(&mut self, rank: u32, id: RailId, received: u64) {
        let of = |dial: &&mut Dial| {
            let ranks = dial.sides.each_ref().map(|side| side.0);
            dial.number == id.number && ranks.contains(&rank) && ranks.contains(&id.peer.0)
        };
        for dial in self.dials.iter_mut().filter(of) {
            for side in dial.sides.iter_mut().filter(|side| side.0 == rank) {
                side.2 = side.2.or(Some(received));
            }
        }
    }

    /// Hands out connections of which both ranks have reported the bytes that they have received.
    fn connect(&mut self) {
        let complete = |dial: &mut Dial| dial.sides.iter().all(|side| side.2.is_some());
        let complete: Vec<Dial> = self.dials.extract_if(.., complete).collect();
        for Dial {
            number,
            incarnation,
            sides,
        } in complete
        {
            let [a, b] = sides;
            let said = |side: &Side| (side.0, side.2.unwrap_or(0));
            let (of_a, of_b) = (said(&a), said(&b));
            for ((rank, socket, _), (peer, received)) in [(a, of_b), (b, of_a)] {
                let second = socket.try_clone().expect("a descriptor");
                self.sockets.insert((rank, peer, number), second.into());
                self.made[rank as usize].push_back(NewRail {
                    id: RailId {
                        peer: JobRank(peer),
                        number,
                    },
                    rail: socket.into(),
                    incarnation,
                    received,
                });
            }
        }
    }

    /// Breaks some connection now and then.
    ///
    /// Bytes on their way are lost, or not, as it happens.
    fn break_one(&mut self) {
        let Some(chance) = &mut self.chance else {
            return;
        };
        if self.sockets.is_empty() || chance.range(0, LOOKS_A_BREAK) > 0 {
            return;
        }
        let which = chance.index(self.sockets.len());
        if let Some(socket) = self.sockets.values().nth(which) {
            // One end finds the end of the stream, the other perhaps a reset.
            let linger = set_socket_linger(socket, Some(Duration::ZERO));
            linger.expect("a socket");
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}

impl Connector for Port {
    fn want(&self, peer: JobRank, number: u16) {
        self.hub.dial(self.rank, peer.0, number);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>> {
        self.hub.next(self.rank, received).map(Made::Rail)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl TcpRig {
    /// Each thread mode; then connections that break, as chance has it by several seeds.
    pub(crate) fn all(seeds: u64) -> Vec<Self> {
        let modes = [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par];
        let whole = |mode, progress| Self {
            mode,
            progress,
            breaks: None,
            neighbors: 1,
        };
        let plain = modes.map(|mode| whole(mode, false));
        let served = [ThreadMode::Seq, ThreadMode::Par].map(|mode| whole(mode, true));
        // With every other seed there is the thread, too.
        let broken = (1..=seeds).map(|seed| Self {
            mode: ThreadMode::Par,
            progress: seed.is_multiple_of(2),
            breaks: Some(seed),
            neighbors: 1,
        });
        let together = [(ThreadMode::Seq, 2), (ThreadMode::Par, 3)].map(|(mode, neighbors)| Self {
            neighbors,
            ..whole(mode, false)
        });
        let plain = plain.into_iter().chain(served);
        plain.chain(broken).chain(together).collect()
    }
}

/// So few ranks are connected from the beginning, the others at first use.
const CONNECTED_RANKS: u32 = 8;

impl Rig for TcpRig {
    type Job = TcpJob;

    fn name(&self) -> String {
        let mut mode = format!("tcp {:?}", self.mode).to_lowercase();
        if self.progress {
            mode.push_str(" served");
        }
        if self.neighbors > 1 {
            mode.push_str(&format!(" neighbors {}", self.neighbors));
        }
        match self.breaks {
            None => mode,
            Some(seed) => format!("{mode} breaks {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = ChannelSizes::default();
        Promises {
            capabilities: Tcp::CAPABILITIES,
            remote: true,
            knows_segments: true,
            // The system takes as much from a sender that has nothing else under way.
            alone_bytes: 64 << 10,
            ordered: true,
            quiescent_is_handled: self.neighbors == 1,
            threads: self.mode,
            // The hub has no descriptor that would wake a sleeper for another connection.
            sleeps: self.breaks.is_none(),
            outlives_sender: false,
            // It needs a connection that stays.
            garbage: if self.breaks.is_none() && self.neighbors == 1 {
                GARBAGE.len()
            } else {
                0
            },
            most_ranks: if self.breaks.is_none() { 64 } else { 16 },
            // Messages, parts of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![
                64,
                4096,
                16 << 10,
                sizes.eager_bytes,
                sizes.gather_bytes,
                128 << 10,
            ],
            // Gathered bytes leave after 50 us at the latest, and the system may be busy.
            idle_rounds: 5000,
            patience: Duration::from_secs(10),
        }
    }

    fn start(&self, setup: &Setup) -> TcpJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        raise_descriptors();
        let hub = Arc::new(Hub::new(ranks, self.breaks.filter(|_| !setup.calm)));
        if ranks <= CONNECTED_RANKS {
            for a in 0..ranks {
                (0..a).for_each(|b| hub.dial(a, b, 0));
            }
        }
        let mut job = TcpJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            hub,
        };
        let mut hood = Hood::new(0, self.neighbors.min(ranks), bytes);
        for rank in 0..ranks {
            if rank == hood.end() {
                // A file of its own, as on another host.
                hood = Hood::new(rank, self.neighbors.min(ranks - rank), bytes);
            }
            let directory = hood.directory(rank, ranks);
            job.segments
                .push(OwnSegment::attach(&directory, bytes).expect("segment"));
            let smp = hood.smp(rank, self.mode, &directory, setup);
            let config = TcpConfig {
                channel: ChannelConfig {
                    rank: JobRank(rank),
                    ranks,
                    mode: self.mode,
                    sizes: match setup.buffers {
                        Buffers::Default => ChannelSizes::default(),
                        Buffers::Minimum => ChannelSizes::smallest(),
                    },
                    directory,
                    registered: setup.registered,
                    segment_len: Arc::new(move |_| bytes),
                },
                progress: self.progress,
                connector: Arc::new(Port {
                    hub: Arc::clone(&job.hub),
                    rank,
                }),
            };
            let tcp = Arc::new(Tcp::over_connections(config).expect("endpoint"));
            job.endpoints.push(Some(Selector::over(tcp, smp)));
        }
        job
    }
}

/// Ranks that share memory.
struct Hood {
    first: u32,
    ranks: u32,
    bytes: u64,
    segments: OwnedFd,
    rings: OwnedFd,
}

impl Hood {
    fn new(first: u32, ranks: u32, bytes: u64) -> Self {
        let segments = SegmentFile::create(ranks, bytes, PageKind::Normal).expect("segments");
        Self {
            first,
            ranks,
            bytes,
            segments: segments.into_fd(),
            rings: memfd_create("rings", MemfdFlags::CLOEXEC).expect("rings"),
        }
    }

    fn end(&self) -> u32 {
        self.first + self.ranks
    }

    fn directory(&self, rank: u32, ranks: u32) -> Arc<Directory> {
        let fd = self.segments.try_clone().expect("descriptor");
        let file = SegmentFile::from_fd(fd, self.ranks, self.bytes, PageKind::Normal);
        let file = file.expect("segments").starting_at(JobRank(self.first));
        Directory::of_job(file, JobRank(rank), ranks).expect("directory")
    }

    /// The way to the neighbors.
    fn smp(&self, rank: u32, mode: ThreadMode, directory: &Arc<Directory>, setup: &Setup) -> Smp {
        let bytes = self.bytes;
        let config = SmpConfig {
            rank: JobRank(rank),
            first: JobRank(self.first),
            ranks: self.ranks,
            mode,
            barrier: Barrier::Sender,
            directory: Arc::clone(directory),
            registered: setup.registered,
            segment_len: Arc::new(move |_| bytes),
        };
        Smp::new(self.rings.as_fd(), config).expect("endpoint")
    }
}

impl Job for TcpJob {
    type Conduit = Selector;

    fn endpoint(&self, rank: JobRank) -> &Selector {
        self.endpoints[rank.index()]
            .as_ref()
            .expect("the rank has not ended")
    }

    fn end(&mut self, rank: JobRank) {
        self.endpoints[rank.index()] = None;
        let mut state = self.hub.state();
        state.ended.push(rank.0);
        state.made[rank.index()].clear();
        state
            .dials
            .retain(|dial| dial.sides.iter().all(|side| side.0 != rank.0));
        // Its sockets close with the last descriptor.
        state.sockets.retain(|(from, ..), _| *from != rank.0);
    }

    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.segments[rank.index()]
    }

    fn advance(&self) {
        std::thread::yield_now();
    }

    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        let state = self.hub.state();
        let socket = &state.sockets[&(writer.0, reader.0, 0)];
        send_garbage(socket, kind);
    }
}
