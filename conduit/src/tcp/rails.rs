//! Further connections to a peer, which carry parts of large transfers.

use super::config::TcpSizes;
use super::connector::Connection;
use super::core::Core;
use super::peer::{Inbound, Outbound, Peer};
use super::silence::{Silence, Verdict};
use super::wire::Wire;
use crate::channel::stream::{Choice, Claim, ReceiveStream, Speed};
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Fragments of large transfers while several connections are used: short, so that they end
/// together.
const STRIPED_BYTES: usize = 128 << 10;

/// What comes over one.
pub(super) struct InboundRail {
    pub(super) number: u16,
    pub(super) wire: Arc<Wire>,
    pub(super) receive_stream: ReceiveStream,
    silence: Silence,
}

/// What goes over one.
pub(super) struct OutboundRail {
    pub(super) number: u16,
    pub(super) wire: Arc<Wire>,
    /// The payload that is being written.
    pub(super) claim: Option<Claim>,
    pub(super) speed: Speed,
}

/// The connections over which large transfers go.
#[derive(Default)]
pub(super) struct Striping {
    pub(super) rails: Vec<OutboundRail>,
    /// Of the first connection.
    pub(super) main: Speed,
    pub(super) choice: Choice,
    /// They were asked for.
    asked: bool,
    /// The last incarnation of each number; what is not above it is of the past.
    seen: Vec<(u16, u64)>,
}

impl Striping {
    #[inline]
    pub(super) fn has_rails(&self) -> bool {
        !self.rails.is_empty()
    }

    /// Whether a payload is half written.
    #[inline]
    pub(super) fn is_writing(&self) -> bool {
        self.has_rails() && self.rails.iter().any(|rail| rail.claim.is_some())
    }

    /// In what fragments large transfers go.
    #[inline]
    pub(super) fn fragment_bytes(&self, sizes: &TcpSizes) -> usize {
        if self.has_rails() && self.choice.all() {
            sizes.fragment_bytes.min(STRIPED_BYTES)
        } else {
            sizes.fragment_bytes
        }
    }

    /// Whether a connection is later than all of its number, which it is then the last of.
    fn is_next(&mut self, number: u16, incarnation: u64) -> bool {
        match self.seen.iter_mut().find(|(its, _)| *its == number) {
            Some((_, last)) if incarnation <= *last => return false,
            Some((_, last)) => *last = incarnation,
            None => self.seen.push((number, incarnation)),
        }
        true
    }
}

impl Outbound {
    /// The connection of a number.
    pub(super) fn wire_of(&self, number: u16) -> Option<Arc<Wire>> {
        if number == 0 {
            return self.wire.clone();
        }
        let mut rails = self.striping.rails.iter();
        let rail = rails.find(|rail| rail.number == number)?;
        Some(Arc::clone(&rail.wire))
    }
}

impl Core {
    /// Asks for further connections, for a transfer of `len` bytes, if that has not been done.
    pub(super) fn ask_for_rails(
        &self,
        peer: &Peer,
        mut outbound: MutexGuard<'_, Outbound>,
        len: usize,
    ) {
        let most = self.sizes.connections;
        if len < self.sizes.fragment_bytes / 2
            || most < 2
            || outbound.striping.asked
            || peer.rank == self.rank
        {
            return;
        }
        outbound.striping.asked = true;
        drop(outbound);
        (1..most).for_each(|number| self.connector.want(peer.rank, number));
    }

    /// Asks again for those that were lost.
    #[cold]
    pub(super) fn want_rails(&self, peer: &Peer, lost: u32) {
        let most = self.sizes.connections;
        let lost = (1..most).filter(|number| lost & 1 << number != 0);
        lost.for_each(|number| self.connector.want(peer.rank, number));
    }

    /// Uses a further connection, the first of its number or another.
    pub(super) fn adopt_rail(&self, connection: Connection) {
        let (peer, _) = self.meet(connection.peer);
        let mut inbound = peer.inbound.lock();
        let mut outbound = peer.outbound.lock();
        let number = connection.connection;
        if number >= super::join::dial::MAX_CONNECTIONS
            || outbound.failed.is_some()
            || !outbound.striping.is_next(number, connection.incarnation)
        {
            return;
        }
        self.unwire_rail(&mut inbound, &mut outbound, number);
        if self.wire_up(&connection, peer.rank.0).is_err() {
            return;
        }
        let wire = Arc::new(Wire::Socket(connection.socket));
        inbound.rails.push(InboundRail {
            number,
            wire: Arc::clone(&wire),
            receive_stream: ReceiveStream::new(self.sizes.long_bytes),
            silence: Silence::default(),
        });
        outbound.striping.rails.push(OutboundRail {
            number,
            wire,
            claim: None,
            speed: Speed::default(),
        });
        self.connected.fetch_add(1, Ordering::Relaxed);
        outbound.striping.asked = true;
        self.flush(peer, &mut outbound);
    }

    // spec B1: a failed rail is left out for its peer. spec B7: its payloads go over another.
    /// Gives up a further connection. What it carried waits for another.
    fn unwire_rail(&self, inbound: &mut Inbound, outbound: &mut Outbound, number: u16) -> bool {
        inbound.rails.retain(|rail| rail.number != number);
        let rails = &mut outbound.striping.rails;
        let Some(at) = rails.iter().position(|rail| rail.number == number) else {
            return false;
        };
        let rail = rails.swap_remove(at);
        if let Some(socket) = rail.wire.descriptor() {
            self.readiness.remove(socket);
            self.progress.forget(socket);
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.connected.fetch_sub(1, Ordering::Relaxed);
        let (rails, all) = (rails.len(), outbound.striping.choice.all());
        outbound.send_stream.set_rails(rails, all);
        outbound.send_stream.lose_rail(number);
        true
    }

    /// The same for all.
    pub(super) fn unwire_rails(&self, inbound: &mut Inbound, outbound: &mut Outbound) {
        while let Some(rail) = outbound.striping.rails.first() {
            let number = rail.number;
            self.unwire_rail(inbound, outbound, number);
        }
        inbound.rails.clear();
    }

    /// A further connection has ended. The holder of `inbound` asks for another when it does not
    /// hold it any more.
    #[cold]
    pub(super) fn lost_rail(&self, peer: &Peer, inbound: &mut Inbound, number: u16) {
        let mut outbound = peer.outbound.lock();
        if self.unwire_rail(inbound, &mut outbound, number) && outbound.failed.is_none() {
            inbound.lost_rails |= 1 << number;
        }
        // What waits now leaves with the next poll.
        if outbound.is_unsent() {
            self.dirty.set(peer.rank.0);
            self.helper.gather();
        }
    }

    /// Gives up further connections whose host does not answer.
    pub(super) fn look_after_rails(&self, peer: &Peer, inbound: &mut Inbound, now_ns: u64) {
        let limit_ns = self.vitals.limit_ns;
        let silent = |rail: &mut InboundRail| {
            let vital = rail.wire.vital()?;
            let verdict = rail.silence.look(now_ns, limit_ns, false, vital);
            (verdict == Verdict::GiveUp).then_some(rail.number)
        };
        let silent: Vec<u16> = inbound.rails.iter_mut().filter_map(silent).collect();
        for number in silent {
            self.lost_rail(peer, inbound, number);
        }
        let lost = core::mem::take(&mut inbound.lost_rails);
        if lost > 0 {
            self.want_rails(peer, lost);
        }
    }
}
