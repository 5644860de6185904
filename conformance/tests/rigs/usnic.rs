//! Ranks of one process over rails of datagrams, which go through sockets on the loopback
//! interface, or through a provider of libfabric.

use argonet_base::JobRank;
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::usnic::{DatagramRails, DatagramRailsConfig};
use argonet_conduit::{Capabilities, ThreadMode};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_nic::datagram::{Fabric, FabricPort, Faulty, HostNames, Nic, Udp, WireFaults};
use argonet_nic::fabric::{FabricAddress, Library};
use argonet_nic::reliable::{ReliableConfig, Seal};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// The thread mode, what seed the wire has its faults from, and the library whose provider carries
/// datagrams instead of sockets.
pub(crate) struct UsnicRig(ThreadMode, Option<u64>, Option<Library>);

type Wire = Faulty<Nic>;

/// A provider that needs no hardware.
const PROVIDER: &str = "udp";
/// Its longest datagram.
const PROVIDER_BYTES: usize = 1472;

impl UsnicRig {
    /// SEQ and PAR over a good wire, SEQ encrypted over a bad one; where `CONFORMANCE_SEEDS` says
    /// how many seeds of bad wires, each thread mode and so many of these.
    pub(crate) fn all() -> Vec<Self> {
        let seeds = argonet_conformance::seeds_asked();
        let mut modes = vec![ThreadMode::Seq, ThreadMode::Par];
        modes.extend(seeds.map(|_| ThreadMode::Parsync));
        let mut all: Vec<Self> = modes
            .into_iter()
            .map(|mode| Self(mode, None, None))
            .collect();
        all.extend((1..=seeds.unwrap_or(1)).map(|seed| Self(ThreadMode::Seq, Some(seed), None)));
        all
    }

    /// SEQ over a provider of libfabric.
    pub(crate) fn over_fabric(library: Library) -> Self {
        Self(ThreadMode::Seq, None, Some(library))
    }

    /// What the wire does to what a rank sends.
    fn faults(&self, setup: &Setup, rank: JobRank) -> WireFaults {
        match self.1 {
            Some(seed) if !setup.calm => WireFaults {
                seed: seed << 32 | u64::from(rank.0),
                drop: 20_000,
                duplicate: 20_000,
                reorder: 30_000,
                corrupt: 10_000,
            },
            _ => WireFaults::NONE,
        }
    }

    /// Without one a changed datagram would be taken; every other bad wire has encrypted ones.
    fn seal(&self) -> Seal {
        let of = match self.1 {
            Some(seed) if seed % 2 == 1 => Seal::encrypting,
            _ => Seal::from_secret,
        };
        of(b"of the suite")
    }

    fn sizes(buffers: Buffers) -> ChannelSizes {
        match buffers {
            Buffers::Default => ChannelSizes::default(),
            Buffers::Minimum => ChannelSizes::smallest(),
        }
    }

    fn link(&self) -> ReliableConfig {
        ReliableConfig {
            datagram_bytes: match self.2 {
                None => 8192,
                Some(_) => PROVIDER_BYTES,
            },
            first_rto: Duration::from_millis(20),
            least_rto: Duration::from_millis(5),
            ..ReliableConfig::default()
        }
    }
}

/// Interfaces of so many ranks.
fn nics(ranks: u32, library: Option<&Library>) -> Vec<Nic> {
    let Some(library) = library else {
        let bind = |_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let sockets: Vec<UdpSocket> = (0..ranks).map(bind).collect();
        let address = |socket: &UdpSocket| socket.local_addr().expect("an address");
        let addresses: Box<[SocketAddr]> = sockets.iter().map(address).collect();
        let nic = |socket| Nic::Udp(Udp::new(socket, addresses.clone()).expect("a queue"));
        return sockets.into_iter().map(nic).collect();
    };
    let at = Some(Ipv4Addr::LOCALHOST.into());
    let open = |_| FabricPort::open(library, Some(PROVIDER), at).expect("an endpoint");
    let ports: Vec<FabricPort> = (0..ranks).map(open).collect();
    let addresses: Vec<FabricAddress> = ports.iter().map(|port| port.address().clone()).collect();
    let nic = |port| Nic::Fabric(Box::new(Fabric::new(port, &addresses).expect("a queue")));
    ports.into_iter().map(nic).collect()
}

pub(crate) struct UsnicJob {
    endpoints: Vec<Option<Channel<DatagramRails<Wire>>>>,
    segments: Vec<OwnSegment>,
}

impl Rig for UsnicRig {
    type Job = UsnicJob;

    fn name(&self) -> String {
        let Self(mode, seed, library) = self;
        let over = if library.is_some() { " fabric" } else { "" };
        let name = format!("usnic{over} {mode:?}").to_lowercase();
        match seed {
            None => name,
            Some(seed) => format!("{name} seed {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = Self::sizes(Buffers::Default);
        Promises {
            capabilities: Capabilities::default(),
            remote: true,
            knows_segments: true,
            // A datagram; more waits for acknowledgements, and the sender for a poll.
            alone_bytes: 4096,
            ordered: true,
            quiescent_is_handled: true,
            threads: self.0,
            sleeps: true,
            outlives_sender: false,
            // Frames are those of tcp. Datagrams that are none are dropped by the reliable layer,
            // whose tests say so.
            garbage: 0,
            most_ranks: 16,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![64, 4096, 8192, sizes.eager_bytes, 128 << 10],
            // What was lost is sent again after some milliseconds.
            idle_rounds: 5000,
            patience: Duration::from_secs(10),
        }
    }

    fn start(&self, setup: &Setup) -> UsnicJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        let nics = nics(ranks, self.2.as_ref());
        let number = |rank: u32| NonZeroU64::new(0x5eed_0000 + u64::from(rank)).expect("not 0");
        let incarnations: Vec<NonZeroU64> = (0..ranks).map(number).collect();
        let mut job = UsnicJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
        };
        for (rank, nic) in (0..ranks).map(JobRank).zip(nics) {
            // A file of its own, as on another host.
            let file = SegmentFile::create(1, bytes, PageKind::Normal).expect("segment");
            let directory = Directory::of_job(file.starting_at(rank), rank, ranks);
            let directory = directory.expect("directory");
            let segment = OwnSegment::attach(&directory, bytes);
            job.segments.push(segment.expect("segment"));
            let rails = DatagramRails::new(DatagramRailsConfig {
                rank,
                queue: Faulty::new(nic, self.faults(setup, rank), WireFaults::NONE),
                incarnations: incarnations.clone(),
                link: self.link(),
                seal: Some(self.seal()),
                hosts: HostNames::default(),
                warn: |_| {},
                exit_grace: Duration::from_millis(500),
            });
            let config = ChannelConfig {
                rank,
                ranks,
                mode: self.0,
                sizes: Self::sizes(setup.buffers),
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            let channel = Channel::over(rails.expect("rails"), config).expect("endpoint");
            job.endpoints.push(Some(channel));
        }
        job
    }
}

impl Job for UsnicJob {
    type Conduit = Channel<DatagramRails<Wire>>;

    fn endpoint(&self, rank: JobRank) -> &Self::Conduit {
        let endpoint = self.endpoints[rank.index()].as_ref();
        endpoint.expect("the rank has not ended")
    }

    fn end(&mut self, rank: JobRank) {
        self.endpoints[rank.index()] = None;
    }

    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.segments[rank.index()]
    }

    fn advance(&self) {
        std::thread::yield_now();
    }
}
