//! The driver: listens, connects, and hands authenticated sockets to its user.

use super::connector::{Connector, Outcome, Route};
use super::dial::{Action, Attempt, Decision, MAX_CONNECTIONS, Pair, Peer, Unreachable};
use super::gate::GateCounts;
use super::handshake::Hello;
use super::interfaces::{Interface, in_order_of_reach, source_for};
use super::key::JobKey;
use super::listen::{ListenError, Listener};
use super::user::{JoinConfig, JoinError, JoinUser, Joined, Whereabouts};
use super::wait::{Place, Source, Waiting};
use argonet_base::{JobRank, random};
use core::net::{IpAddr, SocketAddr};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::{BTreeSet, HashMap};

/// Addresses of a peer that are known at most: as it has published them, and from which it has
/// connected since, of which the last ones are kept.
const MOST_PUBLISHED: usize = u8::MAX as usize - MOST_FOLLOWED;
const MOST_FOLLOWED: usize = 8;

/// Ports that are tried at an address from which a peer has connected.
const PORTS: usize = 2;

/// A peer from so many addresses is not known by its next ones where strangers fill the gate.
const MOST_KNOWN: usize = 1024;

/// Polls that are so far apart are seldom, ns.
const SELDOM_NS: u64 = 250_000_000;
/// How long such a poll waits for an answer, ns, and how often at most.
const PATIENCE_NS: u32 = 2_000_000;
const PATIENT_STEPS: usize = 8;

/// Where a peer is.
#[derive(Debug)]
struct Known {
    /// With addresses from which it has connected behind those that it has published.
    place: Whereabouts,
    /// How many it has published.
    published: usize,
    /// How many were added behind these, of which the last ones are kept.
    followed: usize,
}

impl Known {
    fn find(&self, from: IpAddr) -> Option<usize> {
        let is_it = |at: &SocketAddr| at.ip().to_canonical() == from;
        self.place.addresses.iter().position(is_it)
    }

    /// Adds an address, at which the peer listens at a port that it has published; the places.
    fn add(&mut self, from: IpAddr) -> Vec<usize> {
        let published = self.place.addresses[..self.published].iter();
        let ports = |of_any: bool| -> BTreeSet<u16> {
            let is_alike = |at: &&SocketAddr| of_any || at.is_ipv4() == from.is_ipv4();
            let alike = published.clone().filter(is_alike);
            alike.map(SocketAddr::port).collect()
        };
        let of_family = ports(false);
        let ports = if of_family.is_empty() {
            ports(true)
        } else {
            of_family
        };
        let mut places = Vec::new();
        for port in ports.into_iter().take(PORTS) {
            let place = self.published + self.followed % MOST_FOLLOWED;
            self.followed += 1;
            let at = SocketAddr::new(from, port);
            match self.place.addresses.get_mut(place) {
                Some(before) => *before = at,
                None => self.place.addresses.push(at),
            }
            places.push(place);
        }
        places
    }
}

// spec T2: sockets that do not block, and one place that hears of all.
/// Makes and takes the connections of one rank.
///
/// Owns no clock: times are ns of any clock that does not go back.
///
/// The file descriptor ([`AsFd`]) becomes readable when [`poll`](Self::poll) has something to do,
/// besides the times of [`poll_timeout`](Self::poll_timeout). A poll with nothing to do is one
/// system call.
#[derive(Debug)]
pub struct Joiner {
    config: JoinConfig,
    me: JobRank,
    key: JobKey,
    seed: u64,
    pub(super) ours: Vec<Interface>,
    waiting: Waiting,
    listener: Listener,
    connector: Connector,
    /// By rank.
    peers: Vec<Peer>,
    /// Of peers that were connected to.
    places: HashMap<u32, Known>,
    /// Peers whose machines have something to do, now or later.
    busy: BTreeSet<u32>,
    /// When the next of them has.
    next_ns: Option<u64>,
    /// The time of the last poll.
    polled_ns: u64,
}

impl Joiner {
    /// Begins to listen, at `interfaces` only, as rank `me` of `ranks`.
    ///
    /// # Errors
    /// [`JoinError`]; it names the address.
    pub fn new(
        config: JoinConfig,
        key: JobKey,
        me: JobRank,
        ranks: u32,
        interfaces: Vec<Interface>,
    ) -> Result<Self, JoinError> {
        let system = |cause| JoinError::System { rank: me, cause };
        let waiting = Waiting::new().map_err(system)?;
        let listener = Listener::bind(
            &interfaces,
            &config.ports,
            config.gate,
            key.clone(),
            me,
            ranks,
        )?;
        let seed = random::number().map_err(system)?;
        let mut this = Self {
            config,
            me,
            key,
            seed,
            ours: interfaces,
            waiting,
            listener,
            connector: Connector::default(),
            peers: (0..ranks).map(|_| Peer::default()).collect(),
            places: HashMap::new(),
            busy: BTreeSet::new(),
            next_ns: None,
            polled_ns: 0,
        };
        this.listener.tend(&this.waiting, 0).map_err(system)?;
        Ok(this)
    }

    /// This rank's interfaces have other addresses: it listens and connects at these from now on.
    ///
    /// Without any it keeps those that it has.
    ///
    /// # Errors
    /// That of the last address at which it cannot listen; to be called again.
    pub fn readdress(&mut self, interfaces: Vec<Interface>) -> Result<(), ListenError> {
        if interfaces.is_empty() {
            return Ok(());
        }
        let (ports, waiting) = (&self.config.ports, &self.waiting);
        let outcome = self.listener.readdress(&interfaces, ports, waiting);
        self.ours = interfaces;
        outcome
    }

    /// A peer has made a connection from an address, at which the next one is tried first.
    fn follow(&mut self, peer: JobRank, connection: u16, from: IpAddr) {
        let is_local = matches!(from, IpAddr::V6(from) if from.is_unicast_link_local());
        let Some(known) = self.places.get_mut(&peer.0).filter(|_| !is_local) else {
            return;
        };
        let place = match known.find(from) {
            Some(place) => place,
            None => {
                if known.followed < MOST_KNOWN {
                    self.listener.know([from]);
                }
                let new = known.add(from);
                for place in &new {
                    self.peers[peer.index()].replace(*place);
                }
                let Some(first) = new.first() else {
                    return;
                };
                *first
            }
        };
        self.peers[peer.index()].try_next(connection, place);
    }

    /// Where this rank listens, as it publishes that to its peers.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.listener.addresses()
    }

    /// Names of its interfaces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.ours.iter().map(|interface| interface.name.as_str())
    }

    /// Attempts to connect that are under way.
    #[must_use]
    pub const fn attempts(&self) -> usize {
        self.connector.count()
    }

    /// The incarnation of a connection that is there.
    #[must_use]
    pub fn incarnation(&self, peer: JobRank, connection: u16) -> Option<u64> {
        self.peers.get(peer.index())?.incarnation(connection)
    }

    /// Counts of its gate.
    #[must_use]
    pub fn counts(&self) -> GateCounts {
        self.listener.counts()
    }

    /// Addresses of the job's hosts, which come first when strangers fill the gate.
    pub fn know(&mut self, hosts: impl IntoIterator<Item = IpAddr>) {
        self.listener.know(hosts);
    }

    /// Asks for connection `connection` to `peer`.
    ///
    /// It comes through [`JoinUser::joined`], at once if the peer's kernel is quick, else in a
    /// later [`poll`](Self::poll).
    ///
    /// # Panics
    /// If the peer is not another rank of the job, or the number not below [`MAX_CONNECTIONS`].
    pub fn ask(&mut self, now_ns: u64, peer: JobRank, connection: u16, user: &mut impl JoinUser) {
        assert!(peer != self.me, "{peer} does not connect to itself");
        assert!(connection < MAX_CONNECTIONS, "connection {connection}");
        let pair = self.pair(peer, user);
        self.peers[peer.index()].ask(now_ns, pair, connection);
        self.drive(now_ns, peer.0, user);
        self.note_next();
    }

    /// A connection has broken; it is made anew.
    ///
    /// The user ends its use of the old one ([`JoinUser::fence`]) before the next is there. Nothing
    /// happens if it was replaced already.
    pub fn lost(
        &mut self,
        now_ns: u64,
        peer: JobRank,
        connection: u16,
        incarnation: u64,
        user: &mut impl JoinUser,
    ) {
        let machine = &mut self.peers[peer.index()];
        if machine.lost(&self.config.dial, now_ns, connection, incarnation) {
            self.drive(now_ns, peer.0, user);
            self.note_next();
        }
    }

    /// A connection is not wanted any more; the user closes its socket.
    ///
    /// The peer may make it anew.
    pub fn close(&mut self, now_ns: u64, peer: JobRank, connection: u16, user: &mut impl JoinUser) {
        self.peers[peer.index()].close(connection);
        self.drive(now_ns, peer.0, user);
        self.note_next();
    }

    /// When [`poll`](Self::poll) must be called next if the descriptor does not become readable
    /// before; ns.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let listener = self.listener.poll_timeout();
        [self.next_ns, listener].into_iter().flatten().min()
    }

    /// Does all work that is due.
    ///
    /// Does not wait, with one exception: a rank that polls seldom, a quarter of a second apart or
    /// more, gives the answers to attempts that are under way 2 ms at a time to arrive, 16 ms at
    /// most. Else it would answer a challenge only when the peer has stopped waiting for it.
    ///
    /// # Errors
    /// The system refuses to list ready sockets, or to listen again.
    pub fn poll(&mut self, now_ns: u64, user: &mut impl JoinUser) -> rustix::io::Result<()> {
        let seldom = now_ns.saturating_sub(self.polled_ns) >= SELDOM_NS;
        self.polled_ns = now_ns;
        self.step(now_ns, 0, user)?;
        for _ in 0..PATIENT_STEPS {
            if !seldom || self.connector.count() == 0 {
                break;
            }
            self.step(now_ns, PATIENCE_NS, user)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        now_ns: u64,
        wait_ns: u32,
        user: &mut impl JoinUser,
    ) -> rustix::io::Result<()> {
        let mut any = false;
        for source in self.waiting.ready(wait_ns)? {
            any = true;
            match source {
                Source::Door(door) => {
                    for who in self.listener.accept(&self.waiting, now_ns, door) {
                        self.hear_stranger(now_ns, who, user);
                    }
                }
                Source::Stranger(who) => self.hear_stranger(now_ns, who, user),
                Source::Attempt(who) => self.hear_attempt(now_ns, who, user),
            }
        }
        if any || self.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
            self.listener.tend(&self.waiting, now_ns)?;
            for peer in self.busy.clone() {
                self.drive(now_ns, peer, user);
            }
            self.note_next();
        }
        Ok(())
    }

    fn hear_stranger(&mut self, now_ns: u64, who: Place, user: &mut impl JoinUser) {
        let Some(proven) = self.listener.hear(&self.waiting, who) else {
            return;
        };
        let hello = proven.hello;
        let peer = hello.rank;
        let pair = self.pair(peer, user);
        let machine = &mut self.peers[peer.index()];
        match machine.incoming(&self.config.dial, now_ns, pair, &hello) {
            Decision::Refuse {
                verdict,
                incarnation,
            } => proven.refuse(verdict, incarnation),
            Decision::Accept { incarnation, .. } => {
                if self.config.follows
                    && let Some(from) = proven.from()
                {
                    self.follow(peer, hello.connection, from);
                }
                let machine = &mut self.peers[peer.index()];
                let received = user.fence(peer, hello.connection);
                match proven.answer(incarnation, received) {
                    Some(socket) => user.joined(Joined {
                        peer,
                        connection: hello.connection,
                        incarnation,
                        received: hello.received,
                        socket,
                    }),
                    None => {
                        machine.lost(&self.config.dial, now_ns, hello.connection, incarnation);
                    }
                }
            }
        }
        self.drive(now_ns, peer.0, user);
    }

    fn hear_attempt(&mut self, now_ns: u64, who: Place, user: &mut impl JoinUser) {
        let Some((peer, attempt, outcome)) = self.connector.hear(&self.waiting, who) else {
            return;
        };
        let machine = &mut self.peers[peer.index()];
        match outcome {
            Outcome::Reached => machine.reached(&self.config.dial, now_ns, attempt),
            Outcome::Failed(why) => machine.failed(&self.config.dial, now_ns, attempt, why),
            Outcome::Joined(socket, hello) => {
                if machine.joined(attempt, hello.incarnation) {
                    user.joined(Joined {
                        peer,
                        connection: attempt.connection,
                        incarnation: hello.incarnation,
                        received: hello.received,
                        socket,
                    });
                }
            }
        }
        self.drive(now_ns, peer.0, user);
    }

    /// Whether a peer's machine may go on.
    ///
    /// One that is under way may; only those that would begin wait for room.
    fn may_go_on(&self, peer: u32) -> bool {
        self.connector.count() < self.config.attempts || self.connector.is_busy_with(JobRank(peer))
    }

    /// Does the next steps of a peer's machine.
    fn drive(&mut self, now_ns: u64, peer: u32, user: &mut impl JoinUser) {
        let rank = JobRank(peer);
        if self.may_go_on(peer) {
            loop {
                let machine = &mut self.peers[rank.index()];
                let Some(action) = machine.poll_action(&self.config.dial, now_ns) else {
                    break;
                };
                self.act(now_ns, rank, action, user);
            }
        }
        match self.peers[rank.index()].poll_timeout() {
            Some(_) => self.busy.insert(peer),
            None => self.busy.remove(&peer),
        };
    }

    /// Notes when a machine has to say something again.
    ///
    /// Machines that wait for room do when an attempt ends, which an event of its socket reports.
    fn note_next(&mut self) {
        let able = self.busy.iter().filter(|peer| self.may_go_on(**peer));
        self.next_ns = able
            .filter_map(|peer| self.peers[*peer as usize].poll_timeout())
            .min();
    }

    fn act(&mut self, now_ns: u64, peer: JobRank, action: Action, user: &mut impl JoinUser) {
        match action {
            Action::Connect {
                attempt,
                address,
                incarnation,
            } => self.connect(now_ns, peer, attempt, address, incarnation, user),
            Action::Abandon(attempt) => self.connector.abandon(peer, attempt),
            Action::GiveUp { connection, for_ns } => {
                let known = self.places.get(&peer.0);
                let place = known.map_or_else(Whereabouts::default, |known| known.place.clone());
                let tried = self.peers[peer.index()].tried(connection, &place.addresses);
                user.unreachable(Unreachable {
                    me: self.me,
                    peer,
                    host: place.host,
                    connection,
                    for_ns,
                    tried,
                });
            }
        }
    }

    fn connect(
        &mut self,
        now_ns: u64,
        peer: JobRank,
        attempt: Attempt,
        address: usize,
        incarnation: u64,
        user: &mut impl JoinUser,
    ) {
        let to = self
            .places
            .get(&peer.0)
            .and_then(|known| known.place.addresses.get(address));
        let to = *to.expect("the machine knows how many addresses there are");
        let me = Hello {
            rank: self.me,
            connection: attempt.connection,
            incarnation,
            received: user.fence(peer, attempt.connection),
        };
        let route = Route {
            from: source_for(&self.ours, to.ip(), attempt.connection),
            to,
        };
        let begun = self
            .connector
            .begin(&self.waiting, &self.key, me, peer, attempt, route);
        if let Err(why) = begun {
            let machine = &mut self.peers[peer.index()];
            machine.failed(&self.config.dial, now_ns, attempt, why);
        }
    }

    fn pair(&mut self, peer: JobRank, user: &mut impl JoinUser) -> Pair {
        let ours = &self.ours;
        let known = self.places.entry(peer.0).or_insert_with(|| {
            let mut place = user.whereabouts(peer);
            place.addresses = in_order_of_reach(ours, &place.addresses);
            place.addresses.truncate(MOST_PUBLISHED);
            Known {
                published: place.addresses.len(),
                place,
                followed: 0,
            }
        });
        Pair {
            me: self.me,
            peer,
            addresses: known.place.addresses.len() as u8,
            seed: self.seed ^ u64::from(peer.0),
        }
    }
}

impl AsFd for Joiner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}
