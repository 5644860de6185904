//! Ranks of one process over failover between two members of Unix sockets, which fail or not.

#[path = "../rails/unix.rs"]
mod rail;
#[path = "sockets.rs"]
mod sockets;

use argonet_am::{AmError, Delivery};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::channel::Erased;
use argonet_conduit::channel::rail::{Look, Made, NewRail, Rail, RailId, Rails, Ready, Vital};
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes, Pieces};
use argonet_conduit::failover::{FailoverConfig, FailoverRails, Member, MemberConfig};
use argonet_conduit::{
    Capabilities, Completion, Conduit, Injected, OpToken, SendError, Sink, ThreadMode,
};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use argonet_sim::Random;
use rail::{Hub, Pipe, Pipes};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::set_socket_send_buffer_size;
use sockets::{GARBAGE, raise_descriptors, send_garbage};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Members between each two ranks.
const MEMBERS: usize = 2;

/// Some socket breaks about so often.
const BREAKS_EVERY: Duration = Duration::from_millis(20);

/// Bytes that a socket of a member that lasts takes at once, about.
const LITTLE: usize = 4096;

/// The thread mode, and where chance comes from, by which members fail.
pub(crate) struct FailoverRig(ThreadMode, Option<u64>);

impl FailoverRig {
    /// Members that do not fail; then members that do, as chance has it by several seeds.
    pub(crate) fn all(seeds: u64) -> Vec<Self> {
        let mut all = vec![Self(ThreadMode::Par, None)];
        all.extend((1..=seeds).map(|seed| Self(ThreadMode::Par, Some(seed))));
        all
    }
}

/// Lets any member fail now and then: sockets break, but those of the member that lasts refuse to
/// take a run.
struct Breaker {
    hubs: [Arc<Hub>; MEMBERS],
    lasting: Option<usize>,
    refuses: AtomicBool,
    chance: Mutex<(Random, Instant)>,
}

impl Breaker {
    /// With the first seed no member lasts, with the second one the worse one does, with the third
    /// one the better one, and so on.
    fn new(hubs: &[Arc<Hub>; MEMBERS], seed: u64) -> Self {
        Self {
            hubs: hubs.clone(),
            lasting: [None, Some(1), Some(0)][(seed + 2) as usize % 3],
            refuses: AtomicBool::new(false),
            chance: Mutex::new((Random::new(seed), Instant::now())),
        }
    }
}

/// A socket of a member.
#[derive(Clone)]
struct Socket {
    pipe: Pipe,
    /// Where it refuses runs.
    refusing: Option<Arc<Breaker>>,
}

// SAFETY: the pipe keeps the promises.
unsafe impl Rail for Socket {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        // A head and its bytes.
        if let Some(breaker) = &self.refusing
            && pieces.as_slice().len() > 1
            && breaker.refuses.swap(false, Ordering::Relaxed)
        {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // SAFETY: the caller's promise.
        unsafe { self.pipe.write(pieces) }
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.pipe.read(pieces) }
    }

    fn shut(&self) {
        self.pipe.shut();
    }
}

/// Whether a socket was shut by either rank.
fn has_ended(pipe: &Pipe) -> bool {
    let mut look = [PollFd::new(pipe, PollFlags::empty())];
    let found = poll(&mut look, Some(&Timespec::default()));
    found.is_ok() && look[0].revents().intersects(PollFlags::HUP)
}

impl Breaker {
    fn look(&self) {
        let (hub, which, drains) = {
            let Ok(mut chance) = self.chance.try_lock() else {
                return;
            };
            let (random, next) = &mut *chance;
            if Instant::now() < *next {
                return;
            }
            *next = Instant::now() + BREAKS_EVERY.mul_f64(random.index(2000) as f64 / 1000.0);
            let hub = random.index(MEMBERS);
            (&self.hubs[hub], random.bits(), random.index(2) == 0)
        };
        if self
            .lasting
            .is_some_and(|member| Arc::ptr_eq(&self.hubs[member], hub))
        {
            return self.refuses.store(true, Ordering::Relaxed);
        }
        let ends = hub.ends();
        if ends.is_empty() {
            return;
        }
        let pipe = &ends[which as usize % ends.len()];
        pipe.shut();
        if drains {
            // All at once, so that no reader finds what comes behind a gap.
            let mut lost = vec![0; 1 << 20];
            let _ = rustix::io::read(pipe, &mut lost);
        }
    }
}

/// The rails of a member: those of the sketch, which may break, with a descriptor that can be read
/// while any of them has something.
struct Breaking {
    pipes: Pipes,
    hub: Arc<Hub>,
    breaker: Option<Arc<Breaker>>,
    lasts: bool,
    epoll: OwnedFd,
}

impl Breaking {
    fn new(rank: JobRank, hub: &Arc<Hub>, breaker: Option<Arc<Breaker>>) -> Self {
        let is_its = |member: usize, breaker: &Breaker| Arc::ptr_eq(&breaker.hubs[member], hub);
        let lasting = |breaker: &Arc<Breaker>| breaker.lasting.map(|at| is_its(at, breaker));
        let lasts = breaker.as_ref().and_then(lasting).unwrap_or(false);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        let wakeup = hub.wakeup(rank);
        epoll::add(&epoll, wakeup, EventData::new_u64(u64::MAX), EventFlags::IN)
            .expect("a descriptor can be waited at");
        Self {
            pipes: Pipes::new(rank, Arc::clone(hub)),
            hub: Arc::clone(hub),
            breaker,
            lasts,
            epoll,
        }
    }
}

impl Rails for Breaking {
    type Rail = Socket;

    fn name(&self) -> &'static str {
        self.pipes.name()
    }

    fn want(&self, id: RailId) {
        self.hub.forget_ended(has_ended);
        self.pipes.want(id);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<Socket>> {
        Some(match self.pipes.next(received)? {
            Made::Rail(new) => Made::Rail(NewRail {
                id: new.id,
                rail: Socket {
                    pipe: new.rail,
                    refusing: self.breaker.clone().filter(|_| self.lasts),
                },
                incarnation: new.incarnation,
                received: new.received,
            }),
            Made::Unreachable(id, error) => Made::Unreachable(id, error),
        })
    }

    fn open(&self, id: RailId, rail: &Socket) -> io::Result<()> {
        if self.lasts {
            // Runs are taken in part.
            set_socket_send_buffer_size(&rail.pipe, LITTLE)?;
        }
        epoll::add(
            &self.epoll,
            &rail.pipe,
            EventData::new_u64(id.to_word()),
            EventFlags::IN,
        )?;
        self.pipes.open(id, &rail.pipe)
    }

    fn close(&self, id: RailId, rail: &Socket) {
        // It was added.
        let _ = epoll::delete(&self.epoll, &rail.pipe);
        self.pipes.close(id, &rail.pipe);
    }

    fn begin_poll(&self, alone: bool) -> Look {
        if let Some(breaker) = &self.breaker {
            breaker.look();
        }
        self.pipes.begin_poll(alone)
    }

    fn polls(&self) -> u32 {
        self.pipes.polls()
    }

    fn ready(&self, found: &mut Ready) {
        self.pipes.ready(found);
    }

    fn has_ready(&self) -> bool {
        self.pipes.has_ready()
    }

    fn wait_for_room(&self, id: RailId, rail: &Socket, waits: bool) {
        let room = if waits {
            EventFlags::OUT
        } else {
            EventFlags::empty()
        };
        let word = EventData::new_u64(id.to_word());
        // One that was closed is not there any more.
        let _ = epoll::modify(&self.epoll, &rail.pipe, word, EventFlags::IN | room);
        self.pipes.wait_for_room(id, &rail.pipe, waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        self.pipes.sleep(timeout);
    }

    fn wake(&self) {
        self.pipes.wake();
    }

    fn forget_wakeups(&self) {
        self.pipes.forget_wakeups();
    }
}

impl Member for Breaking {
    fn lasts(&self) -> bool {
        self.lasts
    }

    fn begin_sleep<'a>(&'a self, wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        wakes.push(self.epoll.as_fd());
        !self.pipes.has_made()
    }

    fn end_sleep(&self) {}

    fn address(&self, _rail: &Socket) -> Option<IpAddr> {
        None
    }

    fn silence(&self, _peer: JobRank, _rail: &Socket) -> Option<Vital> {
        None
    }
}

pub(crate) struct FailoverJob {
    endpoints: Vec<Option<Channel<FailoverRails>>>,
    segments: Vec<OwnSegment>,
    hubs: [Arc<Hub>; MEMBERS],
}

/// Puts that connect all ranks.
#[derive(Default)]
struct Connecting {
    remote: usize,
}

impl Sink for Connecting {
    fn deliver(&mut self, _delivery: &mut Delivery<'_>) {
        unreachable!("no rank sends messages yet");
    }

    fn completed(&mut self, _op: OpToken, completion: Completion) {
        self.remote += usize::from(completion == Completion::Remote);
    }

    fn on_error(&mut self, error: AmError) {
        panic!("ranks connect: {error}");
    }
}

impl FailoverJob {
    /// Lets each two ranks agree on a member.
    fn connect(&self) {
        let ranks = self.endpoints.len() as u32;
        let mut sink = Connecting::default();
        let mut wanted = 0;
        let op = OpToken {
            handle: 0,
            implicit: false,
        };
        for (a, b) in (0..ranks).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let zero = 0u8;
            loop {
                let endpoint = self.endpoint(JobRank(a));
                // SAFETY: so small a source is read before the call returns.
                let put =
                    unsafe { endpoint.put(JobRank(b), SegmentOffset(0), &raw const zero, 1, op) };
                match put {
                    Ok(Injected::Complete) => break,
                    Ok(_) => {
                        wanted += 1;
                        break;
                    }
                    Err(SendError::Full) => _ = endpoint.poll(&mut sink),
                    Err(error) => panic!("ranks connect: {error:?}"),
                }
            }
        }
        while sink.remote < wanted {
            for endpoint in self.endpoints.iter().flatten() {
                endpoint.poll(&mut sink);
            }
        }
    }
}

impl Rig for FailoverRig {
    type Job = FailoverJob;

    fn name(&self) -> String {
        let Self(mode, breaks) = self;
        let name = format!("failover {mode:?}").to_lowercase();
        match breaks {
            None => name,
            Some(seed) => format!("{name} breaks {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = ChannelSizes::default();
        Promises {
            capabilities: Capabilities::default(),
            remote: true,
            knows_segments: true,
            // A socket takes as much from a sender that has nothing else under way.
            alone_bytes: 64 << 10,
            ordered: true,
            quiescent_is_handled: true,
            threads: self.0,
            sleeps: true,
            outlives_sender: false,
            // It needs a socket that stays.
            garbage: if self.1.is_none() { GARBAGE.len() } else { 0 },
            most_ranks: 16,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![64, 4096, 16 << 10, sizes.eager_bytes, 128 << 10],
            // Gathered bytes leave after 50 us at the latest, and the system may be busy.
            idle_rounds: 5000,
            patience: Duration::from_secs(20),
        }
    }

    fn start(&self, setup: &Setup) -> FailoverJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        raise_descriptors();
        let hubs = [(); MEMBERS].map(|()| Hub::new(ranks));
        let seed = self.1.filter(|_| !setup.calm);
        let breaker = seed.map(|seed| Arc::new(Breaker::new(&hubs, seed)));
        let mut job = FailoverJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            hubs: hubs.clone(),
        };
        for rank in (0..ranks).map(JobRank) {
            // A file of its own, as on another host.
            let file = SegmentFile::create(1, bytes, PageKind::Normal).expect("segment");
            let directory = Directory::of_job(file.starting_at(rank), rank, ranks);
            let directory = directory.expect("directory");
            let segment = OwnSegment::attach(&directory, bytes);
            job.segments.push(segment.expect("segment"));
            let members = hubs.iter().enumerate().map(|(number, hub)| MemberConfig {
                name: format!("unix:{number}"),
                rails: Box::new(Erased::new(Breaking::new(rank, hub, breaker.clone()))),
                further: 0,
            });
            let rails = FailoverRails::new(FailoverConfig {
                rank,
                ranks,
                name: "failover",
                members: members.collect(),
                limit: Duration::from_secs(75),
                addresses: || Ok(BTreeSet::new()),
                warn: |_| {},
                note: |_| {},
            });
            let sizes = match setup.buffers {
                Buffers::Default => ChannelSizes::default(),
                Buffers::Minimum => ChannelSizes::smallest(),
            };
            let config = ChannelConfig {
                rank,
                ranks,
                mode: self.0,
                sizes: ChannelSizes { rails: 1, ..sizes },
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            let channel = Channel::over(rails.expect("rails"), config).expect("endpoint");
            job.endpoints.push(Some(channel));
        }
        job.connect();
        job
    }
}

impl Job for FailoverJob {
    type Conduit = Channel<FailoverRails>;

    fn endpoint(&self, rank: JobRank) -> &Channel<FailoverRails> {
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

    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        // All streams go over the first member.
        send_garbage(self.hubs[0].socket(writer, reader), kind);
    }
}
