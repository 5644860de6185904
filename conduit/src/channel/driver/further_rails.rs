//! Further rails to a peer, which carry payloads of large transfers.

use super::config::ChannelSizes;
use super::core::Core;
use super::idle::Closing;
use super::peer::{Inbound, Outbound, Peer};
use super::silence::{Silence, Verdict};
use super::wire::Wire;
use crate::channel::rail::{MOST_RAILS, NewRail, Rail, RailId, Rails};
use crate::channel::stream::{Choice, Claim, ReceiveStream, Speed};
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;

/// Fragments of large transfers while several rails are used: short, so that they end
/// together.
const STRIPED_BYTES: usize = 128 << 10;

/// The receiving half of a further rail.
pub(super) struct InboundRail<W> {
    pub(super) number: u16,
    pub(super) rail: W,
    pub(super) receive_stream: ReceiveStream,
    silence: Silence,
}

/// The sending half of a further rail.
pub(super) struct OutboundRail<W> {
    pub(super) number: u16,
    pub(super) rail: W,
    /// The payload that is being written.
    pub(super) claim: Option<Claim>,
    /// A sleep ends when it takes more of that.
    pub(super) waits_for_room: bool,
    pub(super) speed: Speed,
}

impl<W> OutboundRail<W> {
    pub(super) fn id(&self, peer: JobRank) -> RailId {
        let number = self.number;
        RailId { peer, number }
    }
}

/// The rails over which large transfers go.
pub(super) struct Striping<W> {
    pub(super) rails: Vec<OutboundRail<W>>,
    /// Of the first rail.
    pub(super) main: Speed,
    pub(super) choice: Choice,
    /// They were asked for.
    pub(super) asked: bool,
    /// Payloads that may leave the stream always do so.
    pub(super) is_beside: bool,
    /// The last incarnation of each number; a rail whose incarnation is not above it is stale.
    seen: Vec<(u16, u64)>,
}

impl<W> Striping<W> {
    pub(super) fn new(is_beside: bool) -> Self {
        Self {
            rails: Vec::new(),
            main: Speed::default(),
            choice: Choice::default(),
            asked: false,
            is_beside,
            seen: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn has_rails(&self) -> bool {
        !self.rails.is_empty()
    }

    /// Whether a payload is half written.
    #[inline]
    pub(super) fn is_writing(&self) -> bool {
        self.has_rails() && self.rails.iter().any(|rail| rail.claim.is_some())
    }

    /// Whether payloads leave the stream where there are further rails.
    pub(super) fn leave_stream(&self) -> bool {
        self.is_beside || self.choice.all()
    }

    /// The length of fragments of large transfers.
    #[inline]
    pub(super) fn fragment_bytes(&self, sizes: &ChannelSizes) -> usize {
        if self.has_rails() && self.choice.all() {
            sizes.fragment_bytes.min(STRIPED_BYTES)
        } else {
            sizes.fragment_bytes
        }
    }

    /// Whether a rail is later than all of its number, which it is then the last of.
    fn is_next(&mut self, number: u16, incarnation: u64) -> bool {
        match self.seen.iter_mut().find(|(its, _)| *its == number) {
            Some((_, last)) if incarnation <= *last => return false,
            Some((_, last)) => *last = incarnation,
            None => self.seen.push((number, incarnation)),
        }
        true
    }
}

impl<R: Rails> Outbound<R> {
    /// The rail of a number.
    pub(super) fn rail(&self, number: u16) -> Option<&R::Rail> {
        if number == 0 {
            return self.wire.as_ref().and_then(Wire::rail);
        }
        let mut rails = self.striping.rails.iter();
        let rail = rails.find(|rail| rail.number == number)?;
        Some(&rail.rail)
    }
}

impl<R: Rails> Core<R> {
    /// Asks for further rails, for a transfer of `len` bytes, if that has not been done.
    pub(super) fn ask_for_rails(
        &self,
        peer: &Peer<R>,
        mut outbound: MutexGuard<'_, Outbound<R>>,
        len: usize,
    ) {
        let most = self.sizes.rails;
        if len < self.sizes.fragment_bytes / 2
            || most < 2
            || outbound.striping.asked
            || peer.rank == self.rank
        {
            return;
        }
        outbound.striping.asked = true;
        drop(outbound);
        (1..most).for_each(|number| self.want(peer.rank, number));
    }

    /// Asks again for rails that were lost.
    #[cold]
    pub(super) fn want_rails(&self, peer: &Peer<R>, lost: u32) {
        let most = self.sizes.rails;
        let lost = (0..most).filter(|number| lost & 1 << number != 0);
        lost.for_each(|number| self.want(peer.rank, number));
    }

    /// Uses a further rail, the first of its number or another.
    pub(super) fn adopt_further(&self, new: NewRail<R::Rail>) {
        let (peer, _) = self.peer_or_init(new.id.peer);
        let mut inbound = peer.inbound.lock();
        let mut outbound = peer.outbound.lock();
        let number = new.id.number;
        if number >= MOST_RAILS
            || outbound.failed.is_some()
            || !outbound.striping.is_next(number, new.incarnation)
        {
            new.rail.shut();
            return;
        }
        self.unwire_rail(peer, &mut inbound, &mut outbound, number);
        if self.rails.open(new.id, &new.rail).is_err() {
            new.rail.shut();
            return;
        }
        inbound.rails.push(InboundRail {
            number,
            rail: new.rail.clone(),
            receive_stream: ReceiveStream::new(self.sizes.long_bytes),
            silence: Silence::default(),
        });
        outbound.striping.rails.push(OutboundRail {
            number,
            rail: new.rail,
            claim: None,
            waits_for_room: false,
            speed: Speed::default(),
        });
        self.connected.fetch_add(1, Ordering::Relaxed);
        outbound.striping.asked = true;
        self.flush(peer, &mut outbound);
    }

    // spec B1: a failed rail is left out for its peer. spec B7: its payloads go over another.
    /// Gives up a further rail.
    ///
    /// Payloads that it carried wait for another.
    fn unwire_rail(
        &self,
        peer: &Peer<R>,
        inbound: &mut Inbound<R>,
        outbound: &mut Outbound<R>,
        number: u16,
    ) -> bool {
        inbound.rails.retain(|rail| rail.number != number);
        let rails = &mut outbound.striping.rails;
        let Some(at) = rails.iter().position(|rail| rail.number == number) else {
            return false;
        };
        let rail = rails.swap_remove(at);
        let peer = peer.rank;
        self.rails.close(RailId { peer, number }, &rail.rail);
        self.connected.fetch_sub(1, Ordering::Relaxed);
        let (rails, all) = (rails.len(), outbound.striping.leave_stream());
        outbound.send_stream.set_rails(rails, all);
        outbound.send_stream.lose_rail(number);
        true
    }

    /// The same for all.
    pub(super) fn unwire_rails(
        &self,
        peer: &Peer<R>,
        inbound: &mut Inbound<R>,
        outbound: &mut Outbound<R>,
    ) {
        while let Some(rail) = outbound.striping.rails.first() {
            let number = rail.number;
            self.unwire_rail(peer, inbound, outbound, number);
        }
        inbound.rails.clear();
    }

    /// A further rail has ended.
    ///
    /// The holder of `inbound` asks for another when it does not hold it any more.
    #[cold]
    pub(super) fn lost_rail(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, number: u16) {
        let mut outbound = peer.outbound.lock();
        if self.unwire_rail(peer, inbound, &mut outbound, number) && outbound.failed.is_none() {
            match outbound.closing {
                // Probably the peer has agreed; the next large transfer asks for it.
                Closing::Asked(..) => {
                    outbound.striping.asked = false;
                    let peer = peer.rank;
                    self.rails.unwant(RailId { peer, number });
                }
                _ => inbound.lost_rails |= 1 << number,
            }
        }
        // Payloads that wait now leave with the next poll.
        if outbound.is_unsent() {
            self.dirty.set(peer.rank.0);
            self.helper.gather();
        }
    }

    /// Gives up further rails whose host does not answer.
    pub(super) fn look_after_rails(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, now_ns: u64) {
        let silent = |rail: &mut InboundRail<R::Rail>| {
            let vital = rail.rail.vital()?;
            let limit_ns = self.vitals.limit_ns(vital);
            let verdict = rail.silence.look(now_ns, limit_ns, false, vital);
            (verdict == Verdict::GiveUp).then_some(rail.number)
        };
        let silent: Vec<u16> = inbound.rails.iter_mut().filter_map(silent).collect();
        for number in silent {
            self.lost_rail(peer, inbound, number);
        }
    }
}
