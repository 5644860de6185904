//! Ranks that are connected over the loopback interface, in one process.

use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::smp::ThreadMode;
use argonet_conduit::tcp::{Connection, Connector, Made, Tcp, TcpConfig, TcpSizes};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Thread mode.
pub(crate) struct TcpRig {
    mode: ThreadMode,
}

pub(crate) struct TcpJob {
    endpoints: Vec<Option<Tcp>>,
    segments: Vec<OwnSegment>,
    hub: Arc<Hub>,
}

/// Connects ranks of one process with each other when one of them wants that.
struct Hub {
    listener: TcpListener,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Connections for each rank that it has not taken.
    made: Vec<VecDeque<Connection>>,
    /// A second descriptor of each rank's socket to a peer.
    sockets: BTreeMap<(u32, u32), OwnedFd>,
}

/// A rank's side of the hub.
struct Port {
    hub: Arc<Hub>,
    rank: u32,
}

impl Hub {
    fn new(ranks: u32) -> Self {
        let state = State {
            made: (0..ranks).map(|_| VecDeque::new()).collect(),
            ..State::default()
        };
        Self {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"),
            state: Mutex::new(state),
        }
    }

    /// Connects two ranks, once.
    fn connect(&self, a: u32, b: u32) {
        let mut state = self.state.lock().expect("no thread of the rig has failed");
        if a == b || state.sockets.contains_key(&(a, b)) {
            return;
        }
        let address = self.listener.local_addr().expect("an address");
        let here = TcpStream::connect(address).expect("loopback");
        let (there, _) = self.listener.accept().expect("loopback");
        for (rank, peer, socket) in [(a, b, here), (b, a, there)] {
            let second = socket.try_clone().expect("a descriptor");
            state.sockets.insert((rank, peer), second.into());
            state.made[rank as usize].push_back(Connection {
                peer: JobRank(peer),
                socket: socket.into(),
                incarnation: 1,
                received: 0,
            });
        }
    }
}

impl Connector for Port {
    fn want(&self, peer: JobRank) {
        self.hub.connect(self.rank, peer.0);
    }

    fn next(&self, _received: &dyn Fn(JobRank) -> u64) -> Option<Made> {
        // There is one connection for each pair: nothing was received over another.
        let mut state = self.hub.state.lock().expect("no thread of the rig has failed");
        state.made[self.rank as usize].pop_front().map(Made::Connected)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl TcpRig {
    /// Each thread mode.
    pub(crate) fn all() -> Vec<Self> {
        let modes = [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par];
        modes.map(|mode| Self { mode }).into()
    }
}

/// So few ranks are connected from the beginning, the others at first use.
const CONNECTED_RANKS: u32 = 8;

impl Rig for TcpRig {
    type Job = TcpJob;

    fn name(&self) -> String {
        format!("tcp {:?}", self.mode).to_lowercase()
    }

    fn promises(&self) -> Promises {
        let sizes = TcpSizes::default();
        Promises {
            capabilities: Tcp::CAPABILITIES,
            remote: true,
            knows_segments: false,
            // The system takes as much from a sender that has nothing else under way.
            alone_bytes: 64 << 10,
            ordered: true,
            settled_is_handled: true,
            threads: self.mode,
            sleeps: true,
            outlives_sender: false,
            garbage: GARBAGE.len(),
            most_ranks: 64,
            // Messages, parts of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![
                64,
                4096,
                16 << 10,
                sizes.copy_bytes,
                sizes.gather_bytes,
                128 << 10,
            ],
            // What is gathered leaves after 50 us at the latest, and the system may be busy.
            idle_rounds: 5000,
        }
    }

    fn start(&self, setup: &Setup) -> TcpJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        raise_descriptors();
        let hub = Arc::new(Hub::new(ranks));
        if ranks <= CONNECTED_RANKS {
            for a in 0..ranks {
                (0..a).for_each(|b| hub.connect(a, b));
            }
        }
        let mut job = TcpJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            hub,
        };
        for rank in 0..ranks {
            // Each has a file of its own, as on another host.
            let file = SegmentFile::create(1, bytes, PageKind::Normal).expect("segment");
            let directory = Directory::new(file, JobRank(0)).expect("directory");
            job.segments
                .push(OwnSegment::attach(&directory, bytes).expect("segment"));
            let config = TcpConfig {
                rank: JobRank(rank),
                ranks,
                mode: self.mode,
                sizes: match setup.buffers {
                    Buffers::Default => TcpSizes::default(),
                    Buffers::Minimum => TcpSizes::smallest(),
                },
                directory,
                registered: setup.registered,
                connector: Arc::new(Port {
                    hub: Arc::clone(&job.hub),
                    rank,
                }),
            };
            job.endpoints.push(Some(Tcp::new(config).expect("endpoint")));
        }
        job
    }
}

/// Cases run side by side, each with two descriptors for each socket.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, most).expect("as many descriptors as may be");
}

/// Heads of frames that are not what they say: kind, handler, arguments, flags, length, position.
const GARBAGE: [[u8; 12]; 8] = [
    [0xff; 12],
    [0; 12],
    // 17 arguments.
    [2, 128, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    // A short with a payload.
    [2, 128, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    // A medium that is too long.
    [3, 128, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
    // A flag that does not exist.
    [2, 128, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    // Not the beginning of the stream.
    [2, 128, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    // A put of a handler.
    [8, 128, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
];

impl TcpJob {
    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.segments[rank.index()]
    }
}

impl Job for TcpJob {
    type Conduit = Tcp;

    fn endpoint(&self, rank: JobRank) -> &Tcp {
        self.endpoints[rank.index()]
            .as_ref()
            .expect("the rank has not ended")
    }

    fn end(&mut self, rank: JobRank) {
        self.endpoints[rank.index()] = None;
        let mut state = self.hub.state.lock().expect("no thread of the rig has failed");
        state.made[rank.index()].clear();
        // Its sockets close with the last descriptor.
        let all = std::mem::take(&mut state.sockets);
        let others = all.into_iter().filter(|((from, _), _)| *from != rank.0);
        state.sockets = others.collect();
    }

    fn read(&self, rank: JobRank, offset: SegmentOffset, bytes: &mut [u8]) {
        let view = self.segment(rank).bytes(offset, bytes.len());
        view.expect("inside").copy_to(0, bytes).expect("inside");
    }

    fn write(&self, rank: JobRank, offset: SegmentOffset, bytes: &[u8]) {
        let view = self.segment(rank).bytes_mut(offset, bytes.len());
        view.expect("inside").copy_from(0, bytes).expect("inside");
    }

    fn advance(&self) {
        std::thread::yield_now();
    }

    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        let state = self.hub.state.lock().expect("no thread of the rig has failed");
        let socket = &state.sockets[&(writer.0, reader.0)];
        let mut bytes = GARBAGE[kind].to_vec();
        bytes.resize(200, 0xff);
        let written = rustix::io::write(socket, &bytes).expect("the socket takes it");
        assert_eq!(written, bytes.len());
    }
}
