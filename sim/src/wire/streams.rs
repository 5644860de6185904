//! Bytes in order between two ranks, which come late and in parts, and break off anywhere.

use super::faults::FaultPlan;
use super::joining::{Call, Joining};
use crate::config::Sizes;
use crate::random::Random;
use argonet_base::JobRank;
use argonet_conduit::channel::rail::{RailId, Ready, Vital};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From a break until an end learns of it, as a multiple of the shortest delay; the mean.
const NOTICE_DELAYS: u64 = 5;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct End {
    pub(super) connection: u64,
    /// Which of the two.
    pub(super) side: usize,
}

impl End {
    pub(super) fn other(self) -> Self {
        Self {
            side: 1 - self.side,
            ..self
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.connection, self.side)
    }
}

/// An event at a later time.
#[derive(Debug)]
pub(crate) enum Later {
    /// Bytes come to an end.
    Arrive(End, Vec<u8>),
    /// Bytes on their way are lost, and so are those written from now on.
    Break(u64),
    /// An end learns that there is no more.
    Close(End),
    /// The host of an end asks that of the other, which does not answer.
    ///
    /// Where the end has written something that is not acknowledged, the host repeats that instead,
    /// for longer than a run.
    Ask(End),
    /// An end's host hears that so many bytes have come.
    Acknowledge(End, usize),
    /// A rank hears of a connection that is being made.
    Call(u32, Call),
    /// An attempt to make one has had its time.
    Retry(u32, RailId, u64),
    /// A rank dies.
    Die(u32),
}

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Later::Arrive(end, bytes) => write!(f, "{} bytes come to {end}", bytes.len()),
            Later::Break(connection) => write!(f, "connection {connection} breaks"),
            Later::Close(end) => write!(f, "{end} is closed"),
            Later::Ask(end) => write!(f, "{end} asks in vain"),
            Later::Acknowledge(end, bytes) => write!(f, "{bytes} bytes of {end} are acknowledged"),
            Later::Call(rank, call) => write!(f, "rank {rank} hears {call:?}"),
            Later::Retry(rank, id, attempt) => {
                write!(f, "attempt {attempt} of rank {rank} at {id:?} is over")
            }
            Later::Die(rank) => write!(f, "rank {rank} dies"),
        }
    }
}

/// Bytes that one end has written, and the part that the other has.
#[derive(Debug, Default)]
struct Direction {
    /// Bytes that have not come to the other end.
    in_flight: usize,
    /// When the last of them comes.
    arrives_ns: u64,
    /// Bytes that have come and were not read.
    unread: VecDeque<u8>,
    /// The end that writes has learned that there is no more.
    is_closed: bool,
    /// When the host of the end that writes last heard from the other's.
    heard_ns: u64,
}

#[derive(Debug)]
struct Connection {
    /// The ranks, by side.
    ranks: [u32; 2],
    number: u16,
    /// By the side that writes.
    directions: [Direction; 2],
    is_broken: bool,
}

/// Why an end takes or gives nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nothing {
    /// It may later.
    Now,
    /// It has ended.
    Ever,
}

/// All connections of a cluster.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(super) random: Random,
    /// Bytes of a direction that were written and not read, at most.
    pipe_bytes: usize,
    /// Channels find silent hosts, so that a break may be one that no host notices.
    has_silent_breaks: bool,
    /// Until when each rank's outgoing wire is busy.
    busy_until_ns: Vec<u64>,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    /// Ends that ranks use, by rank and by the word of their rail.
    open: Vec<BTreeMap<u64, End>>,
    /// Words of those that have something, if only their end.
    ready: Vec<BTreeSet<u64>>,
    /// Ends at which ranks wait for room.
    for_room: Vec<BTreeSet<End>>,
    pub(super) joining: Joining,
    /// Consequences of a call.
    pub(super) later: Vec<(u64, Later)>,
    /// Ranks for which a call has brought something.
    pub(super) woken: Vec<u32>,
    /// Connections that were made, and those that broke.
    pub(crate) made: u64,
    pub(crate) broken: u64,
}

impl Streams {
    pub(crate) fn new(seed: u64, ranks: u32, sizes: &Sizes) -> Self {
        let (pipe_bytes, dead_after_ns) = (sizes.pipe_bytes, sizes.dead_after_ns);
        Self {
            random: Random::fork(seed, 1),
            pipe_bytes,
            has_silent_breaks: !sizes.channel.silent_time.is_zero(),
            busy_until_ns: vec![0; ranks as usize],
            connections: BTreeMap::new(),
            next_connection: 1,
            open: (0..ranks).map(|_| BTreeMap::new()).collect(),
            ready: (0..ranks).map(|_| BTreeSet::new()).collect(),
            for_room: (0..ranks).map(|_| BTreeSet::new()).collect(),
            joining: Joining::new(ranks, dead_after_ns),
            later: Vec::new(),
            woken: Vec::new(),
            made: 0,
            broken: 0,
        }
    }

    /// Consequences of the calls since the last one, and the ranks that they wake.
    pub(crate) fn take_news(&mut self) -> (Vec<(u64, Later)>, Vec<u32>) {
        (
            core::mem::take(&mut self.later),
            core::mem::take(&mut self.woken),
        )
    }

    /// When something that leaves now arrives; a cut holds it back.
    pub(super) fn arrival(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        [from, to]: [u32; 2],
        bytes: usize,
    ) -> u64 {
        let quality = plan.quality(now_ns);
        let busy = &mut self.busy_until_ns[from as usize];
        *busy = now_ns.max(*busy) + (bytes as u64 * quality.byte_ps).div_ceil(1000);
        let mut at_ns = plan.heals_at(from, to, *busy) + quality.delay_ns;
        if quality.jitter_ns > 0 {
            at_ns += self.random.around(quality.jitter_ns);
        }
        if self.random.chance(quality.hold_ppm) {
            at_ns += self.random.around(quality.hold_ns);
        }
        at_ns
    }

    /// A connection between two ranks; the end of each.
    pub(super) fn connect(&mut self, now_ns: u64, ranks: [u32; 2], number: u16) -> [End; 2] {
        let direction = || Direction {
            heard_ns: now_ns,
            ..Direction::default()
        };
        let connection = self.next_connection;
        self.next_connection += 1;
        self.made += 1;
        self.connections.insert(
            connection,
            Connection {
                ranks,
                number,
                directions: [direction(), direction()],
                is_broken: false,
            },
        );
        [0, 1].map(|side| End { connection, side })
    }

    /// A rank uses an end from now on; false if the connection has ended already.
    pub(crate) fn open(&mut self, rank: u32, id: RailId, end: End) -> bool {
        if !self.connections.contains_key(&end.connection) {
            return false;
        }
        self.open[rank as usize].insert(id.to_word(), end);
        self.look(end);
        self.woken.push(rank);
        true
    }

    /// Notes whether an end has something for the rank that uses it.
    fn look(&mut self, end: End) {
        let Some(connection) = self.connections.get(&end.connection) else {
            return;
        };
        let rank = connection.ranks[end.side] as usize;
        let id = RailId {
            peer: JobRank(connection.ranks[end.other().side]),
            number: connection.number,
        };
        let word = id.to_word();
        if self.open[rank].get(&word) == Some(&end) && self.is_ready(end) {
            self.ready[rank].insert(word);
        } else if self.open[rank].get(&word).is_none_or(|open| *open == end) {
            self.ready[rank].remove(&word);
        }
    }

    /// A rank has given up an end.
    pub(crate) fn close(&mut self, plan: &FaultPlan, now_ns: u64, rank: u32, id: RailId, end: End) {
        let open = &mut self.open[rank as usize];
        if open.get(&id.to_word()) == Some(&end) {
            open.remove(&id.to_word());
            self.ready[rank as usize].remove(&id.to_word());
        }
        self.for_room[rank as usize].remove(&end);
        self.shut(plan, now_ns, end);
    }

    /// Ends a connection from one end.
    ///
    /// The other takes the bytes on their way first.
    pub(crate) fn shut(&mut self, plan: &FaultPlan, now_ns: u64, end: End) {
        let Some(connection) = self.connections.get_mut(&end.connection) else {
            return;
        };
        let own = &mut connection.directions[end.side];
        if own.is_closed {
            self.forget(end.connection);
            return;
        }
        own.is_closed = true;
        let after_ns = own.arrives_ns;
        let ranks = [
            connection.ranks[end.side],
            connection.ranks[end.other().side],
        ];
        self.look(end);
        self.woken.push(ranks[0]);
        let at_ns = self.arrival(plan, now_ns, ranks, 0).max(after_ns);
        self.later.push((at_ns, Later::Close(end.other())));
    }

    /// Forgets a connection that neither end uses.
    fn forget(&mut self, connection: u64) {
        let Some(state) = self.connections.get(&connection) else {
            return;
        };
        let is_used = |side: usize| {
            let open = &self.open[state.ranks[side] as usize];
            open.values().any(|end| *end == End { connection, side })
        };
        if state.directions.iter().all(|d| d.is_closed) && !is_used(0) && !is_used(1) {
            self.connections.remove(&connection);
        }
    }

    /// How many bytes an end takes now, of so many.
    ///
    /// # Errors
    /// That it takes nothing.
    pub(crate) fn room(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        end: End,
        wanted: usize,
    ) -> Result<usize, Nothing> {
        let connection = self.connections.get(&end.connection);
        let direction = connection.map(|connection| &connection.directions[end.side]);
        let Some(direction) = direction.filter(|direction| !direction.is_closed) else {
            return Err(Nothing::Ever);
        };
        let pending = direction.in_flight + direction.unread.len();
        let room = self.pipe_bytes.saturating_sub(pending).min(wanted);
        if room == 0 {
            return Err(Nothing::Now);
        }
        Ok(self.shortened(plan, now_ns, room))
    }

    /// A part of so many bytes, or all.
    fn shortened(&mut self, plan: &FaultPlan, now_ns: u64, bytes: usize) -> usize {
        if self.random.chance(plan.quality(now_ns).short_ppm) {
            self.random.range(1, bytes as u64) as usize
        } else {
            bytes
        }
    }

    /// Writes bytes for which there is [room](Self::room).
    pub(crate) fn write(&mut self, plan: &FaultPlan, now_ns: u64, end: End, mut bytes: Vec<u8>) {
        let Some(connection) = self.connections.get(&end.connection) else {
            return;
        };
        let ranks = [
            connection.ranks[end.side],
            connection.ranks[end.other().side],
        ];
        let at_ns = self.arrival(plan, now_ns, ranks, bytes.len());
        let quality = plan.quality(now_ns);
        let breaks = self.random.chance(quality.break_ppm);
        let Some(connection) = self.connections.get_mut(&end.connection) else {
            return;
        };
        let direction = &mut connection.directions[end.side];
        direction.in_flight += bytes.len();
        direction.arrives_ns = direction.arrives_ns.max(at_ns);
        let at_ns = direction.arrives_ns;
        if breaks {
            // At any of the bytes that were written.
            bytes.truncate(self.random.range(0, bytes.len() as u64) as usize);
        }
        self.later.push((at_ns, Later::Arrive(end.other(), bytes)));
        if breaks {
            self.later.push((at_ns, Later::Break(end.connection)));
        }
    }

    /// Reads at most so many bytes into `into`.
    ///
    /// # Errors
    /// That there are none.
    pub(crate) fn read(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        end: End,
        most: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), Nothing> {
        let Some(connection) = self.connections.get(&end.connection) else {
            return Err(Nothing::Ever);
        };
        let unread = connection.directions[end.other().side].unread.len();
        if unread == 0 {
            return Err(match connection.directions[end.side].is_closed {
                true => Nothing::Ever,
                false => Nothing::Now,
            });
        }
        let count = self.shortened(plan, now_ns, unread.min(most));
        let Some(connection) = self.connections.get_mut(&end.connection) else {
            return Err(Nothing::Ever);
        };
        let writer = connection.ranks[end.other().side];
        let direction = &mut connection.directions[end.other().side];
        into.extend(direction.unread.drain(..count));
        self.look(end);
        if self.for_room[writer as usize].contains(&end.other()) {
            self.woken.push(writer);
        }
        Ok(())
    }

    /// Bytes that wait at an end for the host of the other.
    pub(crate) fn queued(&self, end: End) -> usize {
        let connection = self.connections.get(&end.connection);
        connection.map_or(0, |connection| connection.directions[end.side].in_flight)
    }

    /// Signs of life of the other end's host.
    pub(crate) fn vital(&self, now_ns: u64, end: End) -> Option<Vital> {
        let direction = &self.connections.get(&end.connection)?.directions[end.side];
        Some(Vital {
            owed: direction.in_flight > 0,
            silent_ns: now_ns.saturating_sub(direction.heard_ns),
            rto_ns: 0,
        })
    }

    /// Whether the rank wakes when an end takes more.
    pub(crate) fn wait_for_room(&mut self, end: End, waits: bool) {
        if let Some(connection) = self.connections.get(&end.connection) {
            let waiting = &mut self.for_room[connection.ranks[end.side] as usize];
            match waits {
                true => waiting.insert(end),
                false => waiting.remove(&end),
            };
        }
    }

    /// Whether an end has something, if only its end.
    fn is_ready(&self, end: End) -> bool {
        self.connections.get(&end.connection).is_none_or(|state| {
            state.directions[end.side].is_closed
                || !state.directions[end.other().side].unread.is_empty()
        })
    }

    /// Whether there is room at an end.
    fn has_room(&self, end: End) -> bool {
        self.connections.get(&end.connection).is_some_and(|state| {
            let direction = &state.directions[end.side];
            let pending = direction.in_flight + direction.unread.len();
            pending < self.pipe_bytes
        })
    }

    /// Which rails of a rank have something; each has its turn.
    pub(crate) fn find_ready(&self, rank: u32, turn: u32, found: &mut Ready) {
        let ready = self.ready[rank as usize].iter();
        let mut all: Vec<_> = ready.map(|word| RailId::from_word(*word)).collect();
        let turn = turn as usize % all.len().max(1);
        all.rotate_left(turn);
        for id in all {
            found.add(id);
        }
        if self.joining.has_task(rank) {
            found.add_made();
        }
    }

    /// Whether a poll of a rank would find something.
    pub(crate) fn has_ready(&self, rank: u32) -> bool {
        self.joining.has_task(rank) || !self.ready[rank as usize].is_empty()
    }

    /// Whether a rank that sleeps is to wake.
    pub(crate) fn is_awake(&self, rank: u32) -> bool {
        let waiting = &self.for_room[rank as usize];
        self.has_ready(rank) || waiting.iter().any(|end| self.has_room(*end))
    }

    /// Whether two ranks have ever tried to connect.
    pub(crate) fn knows(&self, rank: u32, peer: u32) -> bool {
        self.joining.knows(rank, peer)
    }

    /// The process of a rank has ended.
    pub(crate) fn end(&mut self, plan: &FaultPlan, now_ns: u64, rank: u32) {
        self.joining.end(rank);
        self.open[rank as usize].clear();
        self.ready[rank as usize].clear();
        self.for_room[rank as usize].clear();
        for end in self.ends_of(rank) {
            self.shut(plan, now_ns, end);
        }
    }

    fn ends_of(&self, rank: u32) -> Vec<End> {
        let connections = self.connections.iter();
        connections
            .flat_map(|(connection, state)| {
                let sides = [0, 1].into_iter();
                let own = sides.filter(|side| state.ranks[*side] == rank);
                own.map(|side| End {
                    connection: *connection,
                    side,
                })
            })
            .collect()
    }

    /// Something happens for which it is time.
    pub(crate) fn happen(&mut self, plan: &FaultPlan, now_ns: u64, what: Later) {
        match what {
            Later::Arrive(end, bytes) => self.arrive(plan, now_ns, end, &bytes),
            Later::Acknowledge(end, bytes) => self.acknowledge(now_ns, end, bytes),
            Later::Ask(end) => {
                if self.queued(end) == 0 {
                    self.happen(plan, now_ns, Later::Close(end));
                }
            }
            Later::Break(connection) => self.break_off(plan, now_ns, connection),
            Later::Close(end) => {
                if let Some(connection) = self.connections.get_mut(&end.connection) {
                    let rank = connection.ranks[end.side];
                    connection.directions[end.side].is_closed = true;
                    self.look(end);
                    self.woken.push(rank);
                    self.forget(end.connection);
                }
            }
            Later::Call(rank, call) => {
                if !plan.is_dead(rank, now_ns) && self.joining.hear(rank, call) {
                    self.woken.push(rank);
                } else if let Call::Answer(_, end) = call {
                    self.shut(plan, now_ns, end);
                }
            }
            Later::Retry(rank, id, attempt) => {
                if self.joining.retry(now_ns, rank, id, attempt) {
                    self.woken.push(rank);
                }
            }
            Later::Die(rank) => self.die(plan, now_ns, rank),
        }
    }

    fn arrive(&mut self, plan: &FaultPlan, now_ns: u64, end: End, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&end.connection) else {
            return;
        };
        let rank = connection.ranks[end.side];
        if connection.is_broken || plan.is_dead(rank, now_ns) {
            return;
        }
        let writer = connection.ranks[end.other().side];
        connection.directions[end.side].heard_ns = now_ns;
        if !connection.directions[end.side].is_closed {
            let direction = &mut connection.directions[end.other().side];
            direction.unread.extend(bytes);
            self.look(end);
            self.woken.push(rank);
        }
        // The other host hears of it at once, unless a partition holds that back.
        let heard_ns = plan.heals_at(rank, writer, now_ns);
        let acknowledgement = Later::Acknowledge(end.other(), bytes.len());
        if heard_ns == now_ns {
            self.happen(plan, now_ns, acknowledgement);
        } else {
            self.later.push((heard_ns, acknowledgement));
        }
    }

    fn acknowledge(&mut self, now_ns: u64, end: End, bytes: usize) {
        let Some(connection) = self.connections.get_mut(&end.connection) else {
            return;
        };
        if connection.is_broken {
            return;
        }
        let direction = &mut connection.directions[end.side];
        direction.in_flight -= bytes;
        direction.heard_ns = now_ns;
        let rank = connection.ranks[end.side];
        if self.for_room[rank as usize].contains(&end) {
            self.woken.push(rank);
        }
    }

    /// Both ends learn of it, each at its own time; bytes that have come before can be read, or
    /// not.
    fn break_off(&mut self, plan: &FaultPlan, now_ns: u64, connection: u64) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        if core::mem::replace(&mut state.is_broken, true) {
            return;
        }
        self.broken += 1;
        let notice_ns = NOTICE_DELAYS * plan.quality(now_ns).delay_ns;
        let is_silent = self.has_silent_breaks && self.random.chance(250_000);
        let asks_ns = now_ns + self.joining.dead_after_ns();
        for side in [0, 1] {
            if self.random.chance(500_000) {
                state.directions[side].unread.clear();
            }
            let end = End { connection, side };
            let at_ns = now_ns + self.random.around(notice_ns);
            self.later.push(match is_silent {
                true => (asks_ns, Later::Ask(end)),
                false => (at_ns, Later::Close(end)),
            });
        }
        for side in [0, 1] {
            self.look(End { connection, side });
        }
    }

    /// A process that dies alone leaves a host that closes its connections.
    ///
    /// With its host it falls silent: hosts that owe it nothing learn of that when they have asked
    /// in vain, and of the others the channel must find it.
    fn die(&mut self, plan: &FaultPlan, now_ns: u64, rank: u32) {
        let with_host = self.random.chance(500_000);
        for end in self.ends_of(rank) {
            if with_host {
                let at_ns = now_ns + self.joining.dead_after_ns();
                self.later.push((at_ns, Later::Ask(end.other())));
            } else {
                self.shut(plan, now_ns, end);
            }
        }
    }
}
