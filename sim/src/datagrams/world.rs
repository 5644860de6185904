//! Ranks with endpoints of the reliable layer, and their logs.

use super::shape::DatagramShape;
use super::wire::Wire;
use crate::random::Random;
use argonet_base::JobRank;
use argonet_nic::reliable::{Channel, Counts, Endpoint, ReliableError, Seal};
use core::fmt;
use core::time::Duration;

/// How long faults last, and how long everything may take.
const FAULTS_LAST: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(120);

/// How often ranks that have nothing to do look whether they submit or take something.
const LOOK: Duration = Duration::from_millis(1);

/// Records between one rank and another on one channel.
#[derive(Clone, Default)]
struct Log {
    sent: u64,
    came: u64,
}

/// Ranks over a wire, driven record by record.
pub struct DatagramWorld {
    shape: DatagramShape,
    now: Duration,
    ends: Vec<Endpoint>,
    wire: Wire,
    /// Whether each rank takes records.
    takes: Vec<bool>,
    /// By sender, receiver and channel.
    logs: Vec<[Log; 2]>,
    violations: Vec<String>,
    digest: u64,
}

fn incarnation(rank: u32) -> u64 {
    // The numbers of rank 0 pass their end soon.
    [0xffff_fff0, 0x1234_5678_0000_0001][rank as usize % 2] + (u64::from(rank) << 40)
}

/// The nth record of a log: its length and its bytes say which it is.
fn record(shape: &DatagramShape, pair: usize, channel: Channel, n: u64) -> Vec<u8> {
    let most = shape.most_bytes[channel.index()] as u64;
    let len = n.wrapping_mul(37) % (most + 1);
    let mark = [n, (pair * 2 + channel.index()) as u64];
    let mark = mark.map(u64::to_le_bytes);
    let bytes = mark.as_flattened().iter().copied().cycle();
    bytes.take(len as usize).collect()
}

impl DatagramWorld {
    /// Ranks of this shape, of which none has sent anything.
    ///
    /// # Errors
    /// Sizes and times that contradict each other.
    pub fn new(shape: DatagramShape) -> Result<Self, ReliableError> {
        let end = |rank| -> Result<Endpoint, ReliableError> {
            let seal_of = match shape.encrypted {
                true => Seal::encrypting,
                false => Seal::from_secret,
            };
            let seal = shape.sealed.then(|| seal_of(b"of the run"));
            let own = incarnation(rank);
            let mut end = Endpoint::new(shape.link, JobRank(rank), own, seal, shape.ranks)?;
            for peer in (0..shape.ranks).filter(|peer| *peer != rank) {
                end.know(JobRank(peer), incarnation(peer))?;
            }
            Ok(end)
        };
        let pairs = (shape.ranks * shape.ranks) as usize;
        Ok(Self {
            now: Duration::ZERO,
            ends: (0..shape.ranks).map(end).collect::<Result<_, _>>()?,
            wire: Wire::new(shape.wire, shape.ranks, shape.seed),
            takes: vec![true; shape.ranks as usize],
            logs: vec![Default::default(); pairs],
            violations: Vec::new(),
            digest: 0,
            shape,
        })
    }

    /// The virtual time since the beginning.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Counts of a rank's endpoint; of none for a rank that is not there.
    #[must_use]
    pub fn counts(&self, rank: u32) -> Counts {
        let end = self.ends.get(rank as usize);
        end.map_or(Counts::default(), Endpoint::counts)
    }

    /// How many records one rank has sent another on a channel, and how many have come.
    #[must_use]
    pub fn passed(&self, from: u32, to: u32, channel: Channel) -> (u64, u64) {
        let log = self.logs.get(self.pair(from, to));
        log.map_or((0, 0), |log| {
            let log = &log[channel.index()];
            (log.sent, log.came)
        })
    }

    fn pair(&self, from: u32, to: u32) -> usize {
        (from * self.shape.ranks + to) as usize
    }

    /// Submits the next record of a log, if there is room.
    pub fn submit(&mut self, from: u32, to: u32, channel: Channel) -> bool {
        let pair = self.pair(from, to);
        let Some(end) = self.ends.get_mut(from as usize) else {
            return false;
        };
        if !end.room(JobRank(to), channel) {
            return false;
        }
        let log = &mut self.logs[pair][channel.index()];
        let bytes = record(&self.shape, pair, channel, log.sent);
        let fill = |place: &mut [u8]| place.copy_from_slice(&bytes);
        let submitted = end.submit(self.now, JobRank(to), channel, bytes.len(), fill);
        if let Err(error) = &submitted {
            self.violations.push(error.to_string());
        }
        log.sent += u64::from(submitted.is_ok());
        submitted.is_ok()
    }

    /// A record has come: it is the next of its log.
    fn came(&mut self, from: u32, to: u32, channel: Channel, bytes: &[u8]) {
        let pair = self.pair(from, to);
        let log = &mut self.logs[pair][channel.index()];
        if log.came >= log.sent || bytes != record(&self.shape, pair, channel, log.came) {
            let n = log.came;
            let what = format!("record {n} from {from} to {to} on {channel:?} is another one");
            self.violations.push(what);
        }
        log.came += 1;
        let what = self.now.as_nanos() as u64 ^ (pair as u64) << 48 ^ bytes.len() as u64;
        self.digest = (self.digest ^ what).wrapping_mul(0x100_0000_01b3);
    }

    fn take(&mut self, rank: u32, peer: u32) {
        for channel in Channel::BOTH {
            while self.takes[rank as usize]
                && let Some(record) =
                    self.ends[rank as usize].take(self.now, JobRank(peer), channel)
            {
                self.came(peer, rank, channel, record.bytes());
                self.ends[rank as usize].recycle(record);
            }
        }
    }

    fn transmit(&mut self) {
        for (from, end) in (0..).zip(&mut self.ends) {
            while let Some(transmit) = end.poll_transmit(self.now) {
                let sent = (transmit.peer.0, transmit.bytes.to_vec());
                self.wire.send(self.now, from, transmit.queue, sent);
            }
        }
    }

    /// Goes on to the next thing that happens, no later than `until`; whether there was one.
    pub fn step(&mut self, until: Duration) -> bool {
        self.transmit();
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let next = self.wire.next().into_iter().chain(timers).min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        while let Some((to, mut bytes)) = self.wire.arrived(self.now) {
            let takes = self.takes[to as usize];
            let end = &mut self.ends[to as usize];
            let Some(arrived) = end.handle_recv(self.now, &mut bytes, |_, _| takes) else {
                continue;
            };
            let from = arrived.peer.0;
            if let Some(record) = arrived.record.and_then(|record| bytes.get(record)) {
                self.came(from, to, arrived.channel, record);
            }
            self.take(to, from);
        }
        for end in &mut self.ends {
            end.handle_timeout(self.now);
            if let Some(lost) = end.poll_event() {
                self.violations.push(lost.to_string());
            }
        }
        true
    }

    /// Each rank submits what its windows have room for, in bursts.
    fn submit_all(&mut self, random: &mut Random) {
        let ranks = self.shape.ranks;
        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for channel in Channel::BOTH {
                let most = self.shape.records[channel.index()];
                let mut burst = random.range(0, 8);
                while burst > 0
                    && self.passed(from, to, channel).0 < most
                    && self.submit(from, to, channel)
                {
                    burst -= 1;
                }
            }
        }
    }

    fn pause(&mut self, random: &mut Random) {
        for rank in 0..self.shape.ranks {
            let is_over = self.now >= FAULTS_LAST;
            self.takes[rank as usize] = is_over || !random.chance(self.shape.pauses);
            for peer in 0..self.shape.ranks {
                self.take(rank, peer);
            }
        }
    }

    /// Whether all has come that is to be sent, and no rank owes anything.
    fn is_over(&self) -> bool {
        let ranks = self.shape.ranks;
        let is_whole = |(at, logs): (usize, &[Log; 2])| {
            let (from, to) = (at as u32 / ranks, at as u32 % ranks);
            let most = if from == to {
                [0; 2]
            } else {
                self.shape.records
            };
            logs.each_ref().map(|log| log.came) == most
        };
        self.logs.iter().enumerate().all(is_whole) && self.ends.iter().all(Endpoint::is_drained)
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatagramReport {
    /// What was run.
    pub shape: DatagramShape,
    /// Violations; empty if all is well.
    pub violations: Vec<String>,
    /// How long it took, in virtual time.
    pub took: Duration,
    /// Records sent again, by all ranks.
    pub sent_again: u64,
    /// A hash of all that came, and when.
    pub digest: u64,
}

impl DatagramReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for DatagramReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {:#x}: {}; {} sent again in {:?}, digest {:016x}",
            self.shape.seed, self.shape, self.sent_again, self.took, self.digest
        )?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// Runs a seed.
///
/// # Errors
/// As [`run_datagrams_shape`].
pub fn run_datagrams_seed(seed: u64) -> Result<DatagramReport, ReliableError> {
    run_datagrams_shape(DatagramShape::draw(seed))
}

/// Runs a shape until all has come, or nothing more does.
///
/// # Errors
/// Sizes and times that contradict each other.
pub fn run_datagrams_shape(shape: DatagramShape) -> Result<DatagramReport, ReliableError> {
    let mut world = DatagramWorld::new(shape)?;
    let mut random = Random::fork(shape.seed, 2);
    while !world.is_over() && world.violations.is_empty() {
        world.submit_all(&mut random);
        world.pause(&mut random);
        if world.now >= FAULTS_LAST {
            world.wire.mend();
        }
        let until = world.now + LOOK;
        world.step(until);
        if world.now > LIMIT {
            world.violations.push("not all has come".into());
        }
    }
    let sent_again = (0..shape.ranks).map(|rank| world.counts(rank).sent_again);
    Ok(DatagramReport {
        shape,
        took: world.now,
        sent_again: sent_again.sum(),
        violations: world.violations,
        digest: world.digest,
    })
}
