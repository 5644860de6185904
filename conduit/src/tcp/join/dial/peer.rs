//! The machine of one peer: its connections by number.

use super::super::handshake::{Hello, Verdict};
use super::connection::Connection;
use super::error::{Failure, Tried};
use super::{DialConfig, MAX_CONNECTIONS};
use argonet_base::JobRank;
use core::fmt;
use core::net::SocketAddr;

/// The two ranks of a connection, and the peer's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// This rank.
    pub me: JobRank,
    /// The peer.
    pub peer: JobRank,
    /// How many addresses the peer has.
    pub addresses: u8,
    /// Where the chance in pauses comes from; differs from rank to rank.
    pub seed: u64,
}

/// Names an attempt to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Attempt {
    /// Which of the connections.
    pub connection: u16,
    /// Which of the attempts.
    pub number: u32,
}

/// The next step of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Connect to the peer's address of this index, and say in the handshake which incarnation it
    /// is.
    Connect {
        /// Names it from now on.
        attempt: Attempt,
        /// Index of the address.
        address: usize,
        /// The incarnation that the handshake says.
        incarnation: u64,
    },
    /// Close the socket of this attempt.
    Abandon(Attempt),
    /// The peer cannot be reached; nothing more happens on this connection.
    GiveUp {
        /// Which of the connections.
        connection: u16,
        /// For how long it has been unreachable, ns.
        for_ns: u64,
    },
}

/// The answer to a peer that has connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Its connection is the one from now on.
    Accept {
        /// Under this incarnation.
        incarnation: u64,
        /// The one that was up until now, which must be ended before the answer is given.
        replaces: Option<u64>,
    },
    /// Not this connection.
    Refuse {
        /// Why.
        verdict: Verdict,
        /// The highest incarnation that is known here.
        incarnation: u64,
    },
}

struct Used {
    pair: Pair,
    connections: Vec<Connection>,
}

/// The machine of one peer.
///
/// One that was never used is a word.
#[derive(Default)]
pub struct Peer(Option<Box<Used>>);

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = self.used().filter(|c| c.is_up()).count();
        f.debug_struct("Peer").field("up", &up).finish()
    }
}

impl Peer {
    /// Whether it has ever been used.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.0.is_some()
    }

    /// The connection of this number is wanted.
    ///
    /// Nothing changes if it is there or under way, or was given up.
    ///
    /// # Panics
    /// If the number is not below [`MAX_CONNECTIONS`].
    pub fn ask(&mut self, now_ns: u64, pair: Pair, connection: u16) {
        assert!(connection < MAX_CONNECTIONS, "connection {connection}");
        self.open(pair, connection).ask(now_ns);
    }

    /// Something to do; to be called until there is nothing.
    pub fn poll_action(&mut self, config: &DialConfig, now_ns: u64) -> Option<Action> {
        self.used_mut()
            .find_map(|connection| connection.poll_action(config, now_ns))
    }

    /// The peer has another address of this index, which may be one more.
    pub fn replace(&mut self, address: usize) {
        if let Some(used) = &mut self.0 {
            let count = usize::from(used.pair.addresses).max(address + 1);
            used.pair.addresses = u8::try_from(count).unwrap_or(u8::MAX);
            for connection in &mut used.connections {
                connection.replace(address);
            }
        }
    }

    /// The next attempt of this connection is at that address.
    pub fn try_next(&mut self, connection: u16, address: usize) {
        if let Some(connection) = self.get(connection) {
            connection.try_next(address);
        }
    }

    /// When there is something to do, if nothing happens until then; ns.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.used().filter_map(Connection::poll_timeout).min()
    }

    /// The peer's kernel has taken the attempt.
    pub fn reached(&mut self, config: &DialConfig, now_ns: u64, attempt: Attempt) {
        if let Some(connection) = self.get(attempt.connection) {
            connection.reached(config, now_ns, attempt.number);
        }
    }

    /// The peer has taken the attempt, under this incarnation.
    ///
    /// False if it was abandoned meanwhile: then its socket is to be closed.
    pub fn joined(&mut self, attempt: Attempt, incarnation: u64) -> bool {
        self.get(attempt.connection)
            .is_some_and(|connection| connection.joined(attempt.number, incarnation))
    }

    /// The attempt has failed.
    ///
    /// One that was abandoned is left alone.
    pub fn failed(&mut self, config: &DialConfig, now_ns: u64, attempt: Attempt, why: Failure) {
        if let Some(connection) = self.get(attempt.connection) {
            connection.failed(config, now_ns, attempt.number, why);
        }
    }

    /// The peer has connected, and proved who it is.
    pub fn incoming(
        &mut self,
        config: &DialConfig,
        now_ns: u64,
        pair: Pair,
        hello: &Hello,
    ) -> Decision {
        if hello.connection >= MAX_CONNECTIONS {
            return Decision::Refuse {
                verdict: Verdict::Limit,
                incarnation: 0,
            };
        }
        self.open(pair, hello.connection)
            .incoming(config, now_ns, &pair, hello.incarnation)
    }

    /// A connection has broken, and is to be made anew.
    ///
    /// False if it was not in use any more.
    pub fn lost(
        &mut self,
        config: &DialConfig,
        now_ns: u64,
        connection: u16,
        incarnation: u64,
    ) -> bool {
        let Some(used) = &mut self.0 else {
            return false;
        };
        let pair = used.pair;
        self.get(connection)
            .is_some_and(|c| c.lost(config, now_ns, &pair, incarnation))
    }

    /// The connection is not wanted any more.
    ///
    /// An attempt that is under way is abandoned, one that the peer makes later is taken.
    pub fn close(&mut self, connection: u16) {
        if let Some(connection) = self.get(connection) {
            connection.close();
        }
    }

    /// The incarnation that is up.
    #[must_use]
    pub fn incarnation(&self, connection: u16) -> Option<u64> {
        self.used()
            .nth(usize::from(connection))
            .and_then(Connection::incarnation)
    }

    /// Attempts at the peer's addresses since the connection was last up.
    #[must_use]
    pub fn tried(&self, connection: u16, addresses: &[SocketAddr]) -> Vec<Tried> {
        let Some(connection) = self.used().nth(usize::from(connection)) else {
            return Vec::new();
        };
        let known = addresses.iter().zip(connection.tries());
        known
            .map(|(address, tries)| Tried {
                address: *address,
                tries: tries.count,
                last: tries.last,
            })
            .collect()
    }

    fn open(&mut self, pair: Pair, number: u16) -> &mut Connection {
        let used = self.0.get_or_insert_with(|| {
            Box::new(Used {
                pair,
                connections: Vec::new(),
            })
        });
        let have = used.connections.len() as u16;
        let missing = (have..=number).map(|number| Connection::new(&pair, number));
        used.connections.extend(missing);
        &mut used.connections[usize::from(number)]
    }

    fn get(&mut self, connection: u16) -> Option<&mut Connection> {
        self.used_mut().nth(usize::from(connection))
    }

    fn used(&self) -> impl Iterator<Item = &Connection> {
        self.0.iter().flat_map(|used| &used.connections)
    }

    fn used_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.0.iter_mut().flat_map(|used| &mut used.connections)
    }
}
