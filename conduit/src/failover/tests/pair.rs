//! Two ranks with failover between members in memory, and little channels that check each byte.

use super::super::{FailoverConfig, FailoverRails, Member, MemberConfig};
use super::pipe::{Chance, Pipe};
use crate::channel::Pieces;
use crate::channel::rail::{Look, Made, NewRail, Rail, RailId, Rails, Ready, Vital};
use crate::channel::{AnyRail, Erased};
use argonet_am::AmError;
use argonet_base::JobRank;
use core::net::IpAddr;
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Good,
    Refuses,
    /// Nothing arrives, and no rail is made.
    Silent,
    /// The same, and what was sent before it is acknowledged.
    Quiet,
}

/// A member between both ranks.
pub(super) struct Net {
    lasts: bool,
    room: usize,
    chance: Option<Chance>,
    state: Mutex<NetState>,
}

struct NetState {
    way: Way,
    since: Instant,
    pipes: Option<[Pipe; 2]>,
    incarnation: u64,
    made: [VecDeque<Made<Pipe>>; 2],
    wanted: bool,
    /// Ranks that wait for room.
    waits: [bool; 2],
    /// Ranks that can make no rails any more.
    failed: [bool; 2],
    /// At which each rank has it.
    addresses: [Option<IpAddr>; 2],
}

impl Net {
    pub(super) fn new(lasts: bool, room: usize, chance: Option<Chance>) -> Arc<Self> {
        Arc::new(Self {
            lasts,
            room,
            chance,
            state: Mutex::new(NetState {
                way: Way::Good,
                since: Instant::now(),
                pipes: None,
                incarnation: 0,
                made: [VecDeque::new(), VecDeque::new()],
                wanted: false,
                waits: [false; 2],
                failed: [false; 2],
                addresses: [None; 2],
            }),
        })
    }

    /// It is like this from now on; rails that do not last end where they are refused.
    pub(super) fn turn(&self, way: Way) {
        let mut state = self.state.lock();
        (state.way, state.since) = (way, Instant::now());
        if let Some([pipe, _]) = &state.pipes {
            let ends = way == Way::Refuses && !self.lasts;
            pipe.set_silent(way != Way::Good && !ends);
            if ends {
                pipe.shut();
            }
        }
        if way == Way::Good && state.wanted {
            self.make(&mut state);
        }
    }

    /// Whether a rank waits for room there.
    pub(super) fn waits(&self, rank: usize) -> bool {
        self.state.lock().waits[rank]
    }

    /// A rank can make no rails any more, to no peer, and says so once.
    pub(super) fn fail(&self, rank: usize) {
        let mut state = self.state.lock();
        state.failed[rank] = true;
        let (at, number) = (JobRank(rank as u32), 0);
        let why = "no descriptors are left".to_owned();
        let error = AmError::Unreachable { at, peer: at, why };
        let own = RailId { peer: at, number };
        state.made[rank].push_back(Made::Unreachable(own, error));
    }

    /// A rank has it at this address.
    pub(super) fn place(&self, rank: usize, address: IpAddr) {
        self.state.lock().addresses[rank] = Some(address);
    }

    /// Ends its rail, if it does not last.
    pub(super) fn cut(&self) {
        if let Some([pipe, _]) = &self.state.lock().pipes
            && !self.lasts
        {
            pipe.shut();
        }
    }

    fn make(&self, state: &mut NetState) {
        state.wanted = false;
        let lives = |pipes: &[Pipe; 2]| !pipes[0].has_ended();
        if state.pipes.as_ref().is_some_and(lives) {
            return;
        }
        state.incarnation += 1;
        let pipes = Pipe::pair(self.room, self.chance.clone());
        for (rank, pipe) in pipes.iter().enumerate() {
            let (peer, number) = (JobRank(1 - rank as u32), 0);
            state.made[rank].push_back(Made::Rail(NewRail {
                id: RailId { peer, number },
                rail: pipe.clone(),
                incarnation: state.incarnation,
                received: 0,
            }));
        }
        state.pipes = Some(pipes);
    }
}

/// A rank's side of it.
struct Side {
    rank: usize,
    net: Arc<Net>,
}

impl Rails for Side {
    type Rail = Pipe;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn want(&self, id: RailId) {
        let mut state = self.net.state.lock();
        if state.failed[self.rank] {
            return;
        }
        match state.way {
            Way::Good => self.net.make(&mut state),
            Way::Silent | Way::Quiet => state.wanted = true,
            Way::Refuses => {
                let (at, peer) = (JobRank(self.rank as u32), id.peer);
                let why = format!("way {} is closed", u8::from(self.net.lasts));
                let error = AmError::Unreachable { at, peer, why };
                state.made[self.rank].push_back(Made::Unreachable(id, error));
            }
        }
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<Pipe>> {
        self.net.state.lock().made[self.rank].pop_front()
    }

    fn open(&self, _id: RailId, _rail: &Pipe) -> io::Result<()> {
        Ok(())
    }

    fn close(&self, _id: RailId, rail: &Pipe) {
        rail.shut();
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        Look {
            first: None,
            all: true,
        }
    }

    fn polls(&self) -> u32 {
        0
    }

    fn ready(&self, found: &mut Ready) {
        let state = self.net.state.lock();
        if let Some(pipes) = &state.pipes
            && pipes[self.rank].is_readable()
        {
            let (peer, number) = (JobRank(1 - self.rank as u32), 0);
            found.add(RailId { peer, number });
        }
        if !state.made[self.rank].is_empty() {
            found.add_made();
        }
    }

    fn has_ready(&self) -> bool {
        let mut found = Ready::new();
        self.ready(&mut found);
        found.has_made() || !found.rails().is_empty()
    }

    fn wait_for_room(&self, _id: RailId, _rail: &Pipe, waits: bool) {
        self.net.state.lock().waits[self.rank] = waits;
    }

    fn sleep(&self, _timeout: Option<Duration>) {}

    fn wake(&self) {}

    fn forget_wakeups(&self) {}
}

impl Member for Side {
    fn lasts(&self) -> bool {
        self.net.lasts
    }

    fn begin_sleep<'a>(&'a self, _wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        !self.has_ready()
    }

    fn end_sleep(&self) {}

    fn address(&self, _rail: &Pipe) -> Option<IpAddr> {
        self.net.state.lock().addresses[self.rank]
    }

    fn silence(&self, _peer: JobRank, _rail: &Pipe) -> Option<Vital> {
        let state = self.net.state.lock();
        let unread = state.pipes.as_ref().map(|pipes| pipes[self.rank].unread());
        let owed = match state.way {
            Way::Good => false,
            Way::Quiet => self.net.lasts && unread.is_some_and(|bytes| bytes > 0),
            Way::Refuses | Way::Silent => true,
        };
        let silent_ns = state.since.elapsed().as_nanos() as u64;
        Some(Vital {
            owed,
            silent_ns,
            rto_ns: 0,
        })
    }
}

/// Byte of a rank's stream at a position.
fn byte(rank: usize, at: usize) -> u8 {
    (at * 31 % 251 + at / 251 + rank * 7) as u8
}

/// A rank, and as much of a channel as there must be.
pub(super) struct Rank {
    rank: usize,
    pub(super) rails: FailoverRails,
    wire: Option<AnyRail>,
    /// By the generations that were adopted.
    pub(super) generations: Vec<u64>,
    /// Bytes that are to be sent, and were.
    pub(super) bytes: usize,
    sent: usize,
    /// Bytes that were taken, and where the next one that is read lies.
    pub(super) taken: usize,
    reads_at: usize,
    pub(super) unreachable: Option<AmError>,
    /// It has failed its peer, and refuses what is made; how often it has.
    pub(super) has_failed: bool,
    pub(super) refused: u32,
}

impl Rank {
    pub(super) fn id(&self) -> RailId {
        RailId {
            peer: JobRank(1 - self.rank as u32),
            number: 0,
        }
    }

    /// Bytes that its rails have taken.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// Offers that it has made or answered.
    pub(super) fn offers(&self) -> usize {
        self.rails.offers()
    }

    pub(super) fn has_wire(&self) -> bool {
        self.wire.is_some()
    }

    /// Gives up the rail, as for the silence of its peer.
    pub(super) fn lose(&mut self) {
        if let Some(wire) = self.wire.take() {
            self.rails.close(self.id(), &wire);
            self.rails.want(self.id());
        }
    }

    /// Waits for room, as a channel does before a sleep.
    pub(super) fn wait_for_room(&self) {
        let wire = self.wire.as_ref().expect("a wire");
        self.rails.wait_for_room(self.id(), wire, true);
    }

    /// Fails its peer: nothing passes any more.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
        if let Some(wire) = self.wire.take() {
            self.rails.close(self.id(), &wire);
        }
    }

    pub(super) fn poll(&mut self) {
        self.rails.begin_poll(false);
        let mut found = Ready::new();
        self.rails.ready(&mut found);
        if found.has_made() {
            self.take_made();
        }
        if found.rails().contains(&self.id()) {
            self.read();
        }
        self.write();
    }

    fn take_made(&mut self) {
        let taken = self.taken as u64;
        let received = |_: RailId| taken;
        while let Some(made) = self.rails.next(&received) {
            match made {
                Made::Rail(new) if self.has_failed => {
                    self.refused += 1;
                    self.rails.refuse(new.id, &new.rail);
                }
                Made::Rail(new) => self.adopt(new),
                Made::Unreachable(_, error) => self.unreachable = Some(error),
            }
        }
    }

    /// The next carrier, which [`adopt`](Self::adopt) takes later, as a channel does while another
    /// of its threads runs a handler.
    pub(super) fn next(&mut self) -> Option<NewRail<AnyRail>> {
        let taken = self.taken as u64;
        self.rails.begin_poll(false);
        self.rails.ready(&mut Ready::new());
        match self.rails.next(&|_| taken)? {
            Made::Rail(new) => Some(new),
            Made::Unreachable(_, error) => panic!("{error}"),
        }
    }

    pub(super) fn adopt(&mut self, new: NewRail<AnyRail>) {
        if let Some(wire) = self.wire.take() {
            self.rails.close(self.id(), &wire);
        }
        let last = self.generations.last();
        assert!(last.is_none_or(|last| *last < new.incarnation));
        self.generations.push(new.incarnation);
        assert!(new.received as usize <= self.bytes);
        self.sent = new.received as usize;
        self.rails.open(new.id, &new.rail).expect("it lives");
        self.wire = Some(new.rail);
        // From there on, the peer sends again; later offers may have said more.
        self.reads_at = self.rails.said(new.incarnation) as usize;
    }

    fn read(&mut self) {
        let Some(wire) = self.wire.clone() else {
            return;
        };
        let mut room = [0; 700];
        let mut pieces = Pieces::new();
        pieces.add(room.as_mut_ptr(), room.len());
        // SAFETY: the room outlives the call.
        match unsafe { wire.read(&pieces) } {
            Ok(0) => self.lose(),
            Ok(bytes) => {
                for (n, found) in room[..bytes].iter().enumerate() {
                    let at = self.reads_at + n;
                    assert_eq!(*found, byte(1 - self.rank, at), "byte {at}");
                }
                self.reads_at += bytes;
                self.taken = self.taken.max(self.reads_at);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }

    fn write(&mut self) {
        let Some(wire) = &self.wire else {
            return;
        };
        let mut rest: Vec<u8> = (self.sent..self.bytes)
            .take(40_000)
            .map(|at| byte(self.rank, at))
            .collect();
        if rest.is_empty() {
            return;
        }
        let mut pieces = Pieces::new();
        pieces.add(rest.as_mut_ptr(), rest.len());
        // SAFETY: the bytes outlive the call.
        match unsafe { wire.write(&pieces) } {
            Ok(bytes) => self.sent += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A read finds the end.
            Err(_) => wire.shut(),
        }
    }
}

/// A rank's rails over these, of a job of two.
pub(super) fn failover(rank: u32, members: impl Iterator<Item = MemberConfig>) -> FailoverRails {
    let rails = FailoverRails::new(FailoverConfig {
        rank: JobRank(rank),
        ranks: 2,
        name: "failover",
        members: members.collect(),
        limit: Duration::from_secs(75),
        addresses: || Ok(BTreeSet::new()),
        warn: |_| {},
        note: |_| {},
    });
    rails.expect("members")
}

/// Two ranks over members that are named by their numbers.
pub(super) fn pair(nets: &[Arc<Net>]) -> [Rank; 2] {
    [0, 1].map(|rank| {
        let members = nets.iter().enumerate().map(|(number, net)| MemberConfig {
            name: format!("m{number}"),
            rails: Box::new(Erased::new(Side {
                rank,
                net: Arc::clone(net),
            })),
            further: 0,
        });
        Rank {
            rank,
            rails: failover(rank as u32, members),
            wire: None,
            generations: Vec::new(),
            bytes: 0,
            sent: 0,
            taken: 0,
            reads_at: 0,
            unreachable: None,
            has_failed: false,
            refused: 0,
        }
    })
}

/// Polls both until something holds.
pub(super) fn until(ranks: &mut [Rank; 2], what: &str, holds: impl Fn(&[Rank; 2]) -> bool) {
    let begun = Instant::now();
    while !holds(ranks) {
        let late = begun.elapsed() > Duration::from_secs(20);
        assert!(!late, "{what}");
        ranks.iter_mut().for_each(Rank::poll);
    }
}

/// More bytes pass both ways.
pub(super) fn exchange(ranks: &mut [Rank; 2], bytes: usize) {
    ranks.iter_mut().for_each(|rank| rank.bytes += bytes);
    until(ranks, "all bytes pass", |[here, there]| {
        here.taken == there.bytes && there.taken == here.bytes
    });
}
