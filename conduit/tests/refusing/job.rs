//! Two ranks in one thread, and their work.

use crate::interface::{Orders, Refusing};
use crate::log::{ANSWER, ASK, Log, bytes, place_of};
use argonet_am::{Category, HandlerTable, Message, MessageClass, Payload, Registered};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::portals::{
    Buffers, InUse, Portals, PortalsConfig, PortalsError, PortalsSizes, software_config,
};
use argonet_conduit::{Conduit, Injected, OpToken, PrepareRequest, SendError, ThreadMode};
use argonet_nic::portals::software::{FaultRules, Software};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile, SharedBytes};
use core::time::Duration;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const RANKS: u32 = 2;
const SEGMENT: u64 = 2 << 20;
/// More than a chunk, and a number of pages.
const LARGE: usize = 5000;
/// Of which buffers hold few.
const LARGEST: usize = 60_000;
/// Rounds of polls after which all operations are over.
const ROUNDS: usize = 20_000;
/// Rounds of polls in which nothing changes that would.
const STILL_ROUNDS: usize = 200;

/// How the ranks are set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The interface has done its part when a call returns.
    AtOnce,
    /// It does it later, and something may not match at first.
    Late,
    /// Nothing is paid for, and receive buffers overflow.
    Unpaid,
    /// As without payment, and the interface does it later, where each try is dear.
    Far,
}

pub(crate) struct Job {
    ranks: Vec<Portals<Refusing>>,
    segments: Vec<OwnSegment>,
    logs: Vec<Log>,
    numbers: u32,
    /// Requests and replies that must come, by the rank that they come to.
    due: Vec<(usize, MessageClass, u32)>,
    /// Operations that must be complete: rank and number.
    begun: Vec<(usize, u64)>,
    /// Errors that calls have returned.
    refused: Vec<String>,
    /// Buffers of operations, kept until the end.
    kept: Vec<Box<[u8]>>,
}

fn registered() -> Registered {
    let mut table = HandlerTable::default();
    for (index, name) in [(ASK, "ask"), (ANSWER, "answer")] {
        table.register_at(index, name, Box::new(|_| {})).unwrap();
    }
    table.registered()
}

impl Way {
    fn sizes(self) -> PortalsSizes {
        let sizes = PortalsSizes {
            messages: 16,
            send_chunks: 16,
            ..PortalsSizes::smallest()
        };
        match self {
            Self::Unpaid | Self::Far => PortalsSizes {
                send_chunks: 512,
                flow_control: false,
                packed_longs: false,
                ..sizes
            },
            _ => sizes,
        }
    }

    fn faults(self, rank: u32) -> FaultRules {
        match self {
            Self::Late => FaultRules {
                seed: u64::from(rank) + 1,
                delay: 50_000,
                slow_target: 50_000,
                late_calls: 4,
                no_match: 50_000,
                ..FaultRules::default()
            },
            _ => FaultRules::default(),
        }
    }
}

impl Job {
    /// Starts both ranks; orders are followed from the beginning.
    pub(crate) fn start(way: Way, orders: Arc<Mutex<Orders>>) -> Result<Self, PortalsError> {
        let sizes = way.sizes();
        let software = software_config(&sizes, JobRank(0), RANKS).unwrap();
        let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap();
        let segments = SegmentFile::create(RANKS, SEGMENT, PageKind::Normal).unwrap();
        let segments = segments.into_fd();
        let mut job = Self {
            ranks: Vec::new(),
            segments: Vec::new(),
            logs: (0..RANKS).map(|_| Log::default()).collect(),
            numbers: 0,
            due: Vec::new(),
            begun: Vec::new(),
            refused: Vec::new(),
            kept: Vec::new(),
        };
        for rank in (0..RANKS).map(JobRank) {
            let fd = segments.try_clone().unwrap();
            let file = SegmentFile::from_fd(fd, RANKS, SEGMENT, PageKind::Normal).unwrap();
            let directory = Directory::new(file, rank).unwrap();
            let segment = OwnSegment::attach(&directory, SEGMENT / 2).unwrap();
            let resolver = Resolver::new(Arc::clone(&directory));
            let faults = way.faults(rank.0);
            let nic = Software::new(interfaces.as_fd(), software, rank, Some(resolver), faults);
            let nic = nic.unwrap();
            let (start, len_bytes) = nic.buffers();
            let config = PortalsConfig {
                rank,
                ranks: RANKS,
                mode: ThreadMode::Seq,
                sizes,
                reached: Arc::clone(&directory),
                directory,
                registered: registered(),
                segment_len: Arc::new(|_| SEGMENT / 2),
            };
            let nic = Refusing {
                nic,
                far: way == Way::Far,
                orders: Arc::clone(&orders),
            };
            // SAFETY: the buffers are mapped as long as the interface, which the conduit owns; no
            // other code has them.
            let conduit = unsafe { Portals::new(nic, Buffers { start, len_bytes }, config) }?;
            job.ranks.push(conduit);
            job.segments.push(segment);
        }
        Ok(job)
    }

    fn poll(&mut self) {
        for (conduit, log) in self.ranks.iter().zip(&mut self.logs) {
            conduit.poll(log);
        }
    }

    /// Tries until there is room.
    ///
    /// `None`: it was refused, and that was reported.
    fn inject<T>(&mut self, mut call: impl FnMut(&mut Self) -> Result<T, SendError>) -> Option<T> {
        for _ in 0..ROUNDS {
            match call(self) {
                Ok(done) => return Some(done),
                Err(SendError::Full) => self.poll(),
                Err(SendError::Message(error)) => {
                    self.refused.push(error.to_string());
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("there is never room: {}", self.state());
    }

    fn token(&mut self) -> OpToken {
        self.numbers += 1;
        OpToken {
            handle: self.numbers.into(),
            implicit: false,
        }
    }

    fn request(
        &mut self,
        (from, to): (usize, usize),
        (category, len): (Category, usize),
        wants: Option<(Category, usize)>,
    ) {
        self.numbers += 1;
        let number = self.numbers;
        let data = bytes(number, len);
        let (kind, wanted) = wants.map_or((NO_REPLY, 0), |(kind, len)| (u8::from(kind), len));
        let args = [number, kind.into(), wanted as u32];
        let sent = self.inject(|job| {
            let data = SharedBytes::from_slice(&data);
            let message = Message {
                handler: ASK,
                args: &args,
                payload: match category {
                    Category::Short => Payload::None,
                    Category::Medium => Payload::Medium(data),
                    Category::Long => Payload::Long(data, place_of(MessageClass::Request, number)),
                },
            };
            job.ranks[from].request(JobRank(to as u32), &message)
        });
        if sent.is_some() {
            self.due.push((to, MessageClass::Request, number));
            if wants.is_some() {
                self.due.push((from, MessageClass::Reply, number));
            }
        }
    }

    fn negotiated(&mut self, from: usize, len: usize, commits: bool) {
        let to = JobRank(1 - from as u32);
        let want = PrepareRequest {
            to,
            class: MessageClass::Request,
            nargs: 3,
            least: len,
            most: len,
            offset: None,
        };
        let Some(mut prepared) = self.inject(|job| job.ranks[from].prepare(&want)) else {
            return;
        };
        if !commits {
            return self.ranks[from].cancel(prepared);
        }
        self.numbers += 1;
        let number = self.numbers;
        // SAFETY: the conduit is there.
        let mut buffer = unsafe { prepared.buffer() };
        buffer.copy_from(0, &bytes(number, len)).unwrap();
        self.ranks[from].commit(prepared, ASK, &[number, NO_REPLY.into(), 0], len);
        self.due.push((1 - from, MessageClass::Request, number));
    }

    /// A put or a get of private memory, or of the rank's own segment.
    fn operation(&mut self, from: usize, is_put: bool, len: usize, in_segment: bool) {
        let token = self.token();
        let mut private = bytes(self.numbers, len).into_boxed_slice();
        let memory = match in_segment {
            true => self.segments[from].base().as_ptr(),
            false => private.as_mut_ptr(),
        };
        self.kept.push(private);
        let to = JobRank(1 - from as u32);
        let begun = self.inject(|job| {
            let (conduit, offset) = (&job.ranks[from], SegmentOffset(0));
            // As the engine does it.
            // SAFETY: the memory stays until the job is over, and nothing else touches it.
            unsafe {
                let moved = match is_put {
                    true => conduit.put_now(to, offset, memory, len),
                    false => conduit.get_now(to, offset, memory, len),
                };
                match (moved, is_put) {
                    (true, _) => Ok(Injected::Complete),
                    (false, true) => conduit.put(to, offset, memory, len, token),
                    (false, false) => conduit.get(to, offset, memory, len, token),
                }
            }
        });
        match begun {
            None | Some(Injected::Complete) => {}
            Some(Injected::Pending | Injected::Local) => self.begun.push((from, token.handle)),
        }
    }

    /// Some of everything, of both ranks.
    pub(crate) fn work(&mut self, way: Way) {
        for from in 0..RANKS as usize {
            for (category, len) in [
                (Category::Short, 0),
                (Category::Medium, 100),
                (Category::Medium, LARGE),
                (Category::Long, 100),
                (Category::Long, LARGE),
            ] {
                self.request((from, 1 - from), (category, len), None);
                for wants in [
                    (Category::Short, 0),
                    (Category::Medium, 100),
                    (Category::Medium, LARGE),
                    (Category::Long, LARGE),
                ] {
                    self.request((from, 1 - from), (category, len), Some(wants));
                }
            }
            for in_segment in [false, true] {
                for (is_put, len) in [(true, 100), (true, LARGE), (false, 100), (false, LARGE)] {
                    self.operation(from, is_put, len, in_segment);
                }
            }
            // To itself: credits are called back from the other for this.
            for _ in 0..8 {
                self.request((from, from), (Category::Medium, 900), None);
            }
            self.negotiated(from, 100, true);
            self.negotiated(from, LARGE, true);
            self.negotiated(from, LARGE, false);
        }
        if way == Way::Unpaid {
            self.overflow();
        }
        self.finish();
    }

    /// More than receive buffers hold, while their owner does not look.
    fn overflow(&mut self) {
        for _ in 0..300 {
            self.numbers += 1;
            let number = self.numbers;
            let message = Message {
                handler: ASK,
                args: &[number, NO_REPLY.into(), 0],
                payload: Payload::None,
            };
            match self.ranks[0].request(JobRank(1), &message) {
                Ok(()) => self.due.push((1, MessageClass::Request, number)),
                Err(SendError::Full) => return,
                Err(error) => self.refused.push(error.to_string()),
            }
        }
    }

    /// The segment of a rank grows; whether its conduit has taken that.
    pub(crate) fn grow(&mut self) -> bool {
        let len = self.segments[0].len();
        if len == SEGMENT {
            return true;
        }
        self.segments[0].grow(len + 4096).unwrap();
        match self.ranks[0].segment_grown() {
            Ok(()) => true,
            Err(error) => {
                self.refused.push(error);
                false
            }
        }
    }

    /// Rank 0 does; whether it owes itself something then.
    pub(crate) fn send_to_itself(&mut self) -> bool {
        self.request((0, 0), (Category::Short, 0), None);
        self.owes_itself()
    }

    pub(crate) fn owes_itself(&self) -> bool {
        self.ranks[0].owes_itself()
    }

    /// More large mediums than rank 1 has buffers for, of which rank 0 alone takes note for a
    /// while: how long that was.
    pub(crate) fn knock(&mut self, time: Duration) -> Duration {
        let begun = Instant::now();
        while begun.elapsed() < time {
            let number = self.numbers + 1;
            let payload = bytes(number, LARGEST);
            let message = Message {
                handler: ASK,
                args: &[number, NO_REPLY.into(), 0],
                payload: Payload::Medium(SharedBytes::from_slice(&payload)),
            };
            match self.ranks[0].request(JobRank(1), &message) {
                Ok(()) => {
                    self.numbers = number;
                    self.due.push((1, MessageClass::Request, number));
                }
                Err(SendError::Full) => {
                    self.ranks[0].poll(&mut self.logs[0]);
                }
                Err(error) => panic!("{error}"),
            }
        }
        begun.elapsed()
    }

    /// Polls until nothing is in use any more, at any rank.
    pub(crate) fn finish(&mut self) {
        let mut over = 0;
        for _ in 0..ROUNDS {
            self.poll();
            let idle = |rank: &Portals<Refusing>| rank.in_use().is_nothing() && rank.is_quiescent();
            over = if self.is_over() { over + 1 } else { 0 };
            if self.ranks.iter().all(idle) || over > STILL_ROUNDS {
                return;
            }
            // Operations held back go on with calls; messages that wait for room are tried again
            // after some microseconds.
            for rank in &self.ranks {
                rank.sleep(Some(Duration::ZERO), rank.epoch());
            }
        }
        panic!("something stays in use: {}", self.state());
    }

    /// Whether nothing goes on any more in a job that would have ended: a rank that waits for a
    /// message that was refused twice waits forever.
    fn is_over(&self) -> bool {
        let waits = |rank: &Portals<Refusing>| {
            let InUse {
                send_chunks,
                halves,
                questions,
                ..
            } = rank.in_use();
            (send_chunks + halves + questions) as usize
        };
        let own = |rank: &Portals<Refusing>| InUse {
            send_chunks: 0,
            under_way: 0,
            received: 0,
            halves: 0,
            questions: 0,
            credits: 0,
            ..rank.in_use()
        };
        let waiting: usize = self.ranks.iter().map(waits).sum();
        (1..=2 * self.fatal()).contains(&waiting)
            && self.ranks.iter().all(|rank| own(rank).is_nothing())
    }

    /// How many errors polls reported, where calls are refused that are made again: a job ends by
    /// them.
    pub(crate) fn fatal(&self) -> usize {
        let ends = |rank: &Portals<Refusing>| rank.interface().orders.lock().unwrap().ends;
        let errors = self.logs.iter().map(|log| log.errors.len()).sum();
        if self.ranks.iter().any(ends) {
            errors
        } else {
            0
        }
    }

    fn state(&self) -> String {
        let ranks = self.ranks.iter().map(|rank| format!("{:?}", rank.in_use()));
        let ranks: Vec<String> = ranks.collect();
        format!("{}; errors: {:?}", ranks.join(" | "), self.errors())
    }

    /// All errors that were reported.
    fn errors(&self) -> Vec<String> {
        let sinks = self.logs.iter().flat_map(|log| &log.errors);
        let sinks = sinks.map(ToString::to_string);
        sinks.chain(self.refused.iter().cloned()).collect()
    }

    /// Everything came about once, except where an error was reported; forgets it all.
    pub(crate) fn compare(&mut self) -> usize {
        let errors = self.errors();
        let mut missing = Vec::new();
        for &(rank, class, number) in &self.due {
            let log = &self.logs[rank];
            let came = match class {
                MessageClass::Request => log.requests.get(&number),
                MessageClass::Reply => log.replies.get(&number),
            };
            match came.copied().unwrap_or(0) {
                1 => {}
                0 => missing.push(format!("{class:?} {number} at rank {rank}")),
                times => panic!("{class:?} {number} came {times} times"),
            }
        }
        for &(rank, number) in &self.begun {
            let log = &self.logs[rank];
            let parts = [&log.local, &log.remote].map(|part| part.get(&number).copied());
            assert!(parts.iter().all(|times| times.is_none_or(|n| n == 1)));
            if parts[1].is_none() {
                missing.push(format!("operation {number} of rank {rank}"));
            }
        }
        // One that is lost takes its reply with it.
        assert!(
            missing.len() <= 2 * errors.len(),
            "{missing:?} are lost; errors: {errors:?}"
        );
        let total: usize = self
            .logs
            .iter()
            .map(|log| log.requests.len() + log.replies.len())
            .sum();
        assert!(total <= self.due.len(), "more came than was sent");
        if self.fatal() == 0 {
            self.check_credits();
        }
        self.due.clear();
        self.begun.clear();
        self.refused.clear();
        self.logs = (0..RANKS).map(|_| Log::default()).collect();
        errors.len()
    }

    fn check_credits(&self) {
        for (rank, own) in self.ranks.iter().enumerate() {
            let Some(lent) = own.lent() else {
                return;
            };
            let sum = lent.banked + lent.untouched + lent.lent;
            assert_eq!(sum, lent.total, "credits of rank {rank}");
            for (peer, other) in self.ranks.iter().enumerate() {
                let mine = own.credit(JobRank(peer as u32));
                let its = other.credit(JobRank(rank as u32));
                if let Some((mine, its)) = mine.zip(its) {
                    assert_eq!(mine.loan, its.held, "lent by rank {rank} to rank {peer}");
                }
            }
        }
    }
}

/// A category that none is.
const NO_REPLY: u8 = 0xff;
