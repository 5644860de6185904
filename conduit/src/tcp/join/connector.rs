//! Attempts to connect that are under way.

use super::dial::{Attempt, Failure};
use super::exchange::{Broken, Exchange, nonce, prepare};
use super::handshake::{Handshake, Hello, Progress};
use super::key::JobKey;
use super::listen::family;
use super::wait::{Place, Source, Waiting};
use argonet_base::{JobRank, socket_option};
use core::net::{IpAddr, SocketAddr};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, SocketType, sockopt};

#[derive(Debug)]
struct ConnectAttempt {
    turn: u32,
    peer: JobRank,
    attempt: Attempt,
    /// The peer's kernel has taken it.
    reached: bool,
    exchange: Exchange,
}

/// Outcome of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The peer's kernel has taken it.
    Reached,
    /// The peer has taken it.
    Joined(OwnedFd, Hello),
    Failed(Failure),
}

/// Where an attempt leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The address of this host that it leaves from; the system chooses if it is not given.
    pub(super) from: Option<IpAddr>,
    /// The peer's address.
    pub(super) to: SocketAddr,
}

impl Route {
    /// A socket whose connection has begun to be made.
    fn connect(&self) -> rustix::io::Result<OwnedFd> {
        let Self { from, to } = *self;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family(&to), SocketType::STREAM, flags, None)?;
        prepare(&socket)?;
        if let Some(from) = from {
            // Else the port would be taken from all connections of that address, whatever they lead
            // to. A system without that takes it so.
            let (level, option) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
            let _ = socket_option::set(&socket, level, option, 1);
            // An address that the host has no more: the system chooses another one.
            let _ = net::bind(&socket, &SocketAddr::new(from, 0));
        }
        match net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
            Err(error) => Err(error),
        }
    }
}

/// The attempts of a rank.
#[derive(Debug, Default)]
pub(super) struct Connector {
    places: Vec<Option<ConnectAttempt>>,
    turn: u32,
    count: usize,
}

impl Connector {
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether this peer has an attempt under way.
    pub(super) fn is_busy_with(&self, peer: JobRank) -> bool {
        self.places.iter().flatten().any(|u| u.peer == peer)
    }

    /// Begins to connect.
    pub(super) fn begin(
        &mut self,
        waiting: &Waiting,
        key: &JobKey,
        me: Hello,
        peer: JobRank,
        attempt: Attempt,
        route: Route,
    ) -> Result<(), Failure> {
        let socket = route.connect().map_err(system)?;
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or(self.places.len());
        self.turn = self.turn.wrapping_add(1);
        let who = Place {
            index: place as u32,
            turn: self.turn,
        };
        // Also where it stands already, as to this host it may: the event comes at once.
        let source = Source::Attempt(who);
        waiting.writable(&socket, source).map_err(system)?;
        let nonce = nonce().map_err(system)?;
        let handshake = Handshake::connect(key, me, peer, nonce);
        let under_way = ConnectAttempt {
            turn: self.turn,
            peer,
            attempt,
            reached: false,
            exchange: Exchange { socket, handshake },
        };
        if place == self.places.len() {
            self.places.push(None);
        }
        self.places[place] = Some(under_way);
        self.count += 1;
        Ok(())
    }

    /// Closes an attempt's socket.
    pub(super) fn abandon(&mut self, peer: JobRank, attempt: Attempt) {
        let is_it = |u: &ConnectAttempt| u.peer == peer && u.attempt == attempt;
        for place in &mut self.places {
            if place.as_ref().is_some_and(is_it) {
                *place = None;
                self.count -= 1;
            }
        }
    }

    /// An attempt's socket is ready.
    ///
    /// Yields its peer and its outcome.
    pub(super) fn hear(
        &mut self,
        waiting: &Waiting,
        who: Place,
    ) -> Option<(JobRank, Attempt, Outcome)> {
        let place = self.places.get_mut(who.index as usize)?;
        let under_way = place.as_mut().filter(|u| u.turn == who.turn)?;
        let (peer, attempt) = (under_way.peer, under_way.attempt);
        let outcome = match under_way.step(waiting, Source::Attempt(who)) {
            Ok(Step::Nothing) => return None,
            Ok(Step::Reached) => Outcome::Reached,
            Ok(Step::Done(hello)) => {
                self.count -= 1;
                let socket = place.take()?.exchange.socket;
                match waiting.forget(&socket) {
                    Ok(()) => Outcome::Joined(socket, hello),
                    Err(error) => Outcome::Failed(system(error)),
                }
            }
            Err(why) => {
                self.count -= 1;
                *place = None;
                Outcome::Failed(why)
            }
        };
        Some((peer, attempt, outcome))
    }
}

enum Step {
    Nothing,
    Reached,
    Done(Hello),
}

impl ConnectAttempt {
    fn step(&mut self, waiting: &Waiting, source: Source) -> Result<Step, Failure> {
        let socket = &self.exchange.socket;
        let mut step = Step::Nothing;
        if !self.reached {
            sockopt::socket_error(socket)
                .and_then(|result| result)
                .map_err(system)?;
            waiting.now_readable(socket, source).map_err(system)?;
            self.reached = true;
            step = Step::Reached;
        }
        match self.exchange.advance() {
            Ok(Progress::Done(hello)) => Ok(Step::Done(hello)),
            Ok(_) => Ok(step),
            Err(Broken::Closed) => Err(Failure::Closed),
            Err(Broken::System(error)) => Err(system(error)),
            Err(Broken::Refused(why)) => Err(Failure::Refused(why)),
        }
    }
}

const fn system(error: Errno) -> Failure {
    Failure::System(error.raw_os_error())
}
