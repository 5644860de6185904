//! When gathered messages and acknowledgements leave.

use super::bits::Bits;
use super::core::Core;
use super::peer::{Inbound, Outbound, Peer};
use crate::channel::rail::{RailId, Rails};
use crate::channel::stream::Pieces;
use argonet_base::cpu::ticks;
use core::sync::atomic::Ordering;
use std::io;

/// Polls that find nothing before an acknowledgement is sent by itself.
const PATIENCE: u32 = 32;

impl<R: Rails> Core<R> {
    /// Something was added for a peer: it leaves now, or is gathered with messages that follow at
    /// once.
    #[inline(always)]
    pub(super) fn depart(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, unsent_before: u64) {
        let unsent = outbound.send_stream.unsent();
        if unsent_before > 0 && unsent < self.sizes.gather_bytes as u64 {
            // It joins the messages gathered already.
            return;
        }
        let now = ticks();
        let at_once = self.sizes.gather_time.is_zero()
            || unsent >= self.sizes.gather_bytes as u64
            || (unsent_before == 0 && self.begins_burst(outbound, now));
        if at_once {
            self.flush(peer, outbound);
        } else if unsent_before == 0 {
            outbound.gathered_at = now;
            match outbound.wire.is_some() {
                true => self.dirty.set(peer.rank.0),
                false => self.connect_for(peer, outbound),
            }
            self.helper.gather();
        }
    }

    /// Whether nothing has left for some time: not for this peer, and, where there are several, for
    /// none of them.
    ///
    /// A rank that sends to each of many peers in turn has one burst for all of them; otherwise it
    /// would make a system call for each message.
    #[inline]
    fn begins_burst(&self, outbound: &Outbound<R>, now: u64) -> bool {
        let is_over = |left_at: u64| now.wrapping_sub(left_at) > self.sizes.burst_ticks;
        is_over(outbound.left_at) && is_over(self.left_at.load(Ordering::Relaxed))
    }

    /// Writes as much as the rails take.
    #[inline]
    pub(super) fn flush(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        if outbound.striping.has_rails() {
            self.stripe(peer, outbound);
        }
        self.flush_stream(peer, outbound);
    }

    // spec T2: a write that the rail takes in part resumes where it stopped.
    /// The same for frames over the first rail.
    pub(super) fn flush_stream(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        outbound.is_held_up = false;
        while let Some(wire) = &outbound.wire {
            let mut pieces = Pieces::new();
            outbound.send_stream.next_burst(&mut pieces);
            if pieces.bytes() == 0 {
                break;
            }
            // SAFETY: the send stream keeps all pieces where they are until `wrote`, and users keep
            // theirs until local completion is reported.
            match unsafe { wire.write(&pieces) } {
                Ok(bytes) => {
                    outbound.send_stream.wrote(bytes);
                    outbound.striping.main.wrote(bytes);
                    if wire.holds_own() {
                        self.work.set(peer.rank.0);
                        self.wake();
                    }
                    if bytes < pieces.bytes() {
                        outbound.is_held_up = true;
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    outbound.is_held_up = true;
                    break;
                }
                Err(_) => {
                    // The thread that reads finds its end, and asks for another.
                    wire.shut();
                    break;
                }
            }
        }
        outbound.left_at = ticks();
        self.left_at.store(outbound.left_at, Ordering::Relaxed);
        // Payloads whose bytes were sent again, though the peer had taken them, are not read any
        // more.
        if outbound.taken() {
            self.work.set(peer.rank.0);
        }
        // A transfer may have waited for that. Nothing is added behind a payload that is lent.
        if !outbound.operations.has_room() && !outbound.send_stream.is_lent() {
            outbound.go_on(&self.sizes);
        }
        if outbound.is_unsent() {
            // Further rails alone carry no stream.
            if outbound.wire.is_none() && outbound.failed.is_none() {
                self.connect_for(peer, outbound);
                self.helper.gather();
            }
            if outbound.wire.is_some() || outbound.striping.has_rails() {
                self.dirty.set(peer.rank.0);
                self.helper.gather();
            }
        }
        if outbound.is_watched && !outbound.is_held_up {
            self.look_after_write(peer, outbound);
        }
    }

    /// Something waits for a rail.
    #[cold]
    pub(super) fn connect_for(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        self.unconnected.set(peer.rank.0);
        self.reopen(peer, outbound);
    }

    #[cold]
    fn look_after_write(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        // A rail that is waited for with nothing to write would end every sleep.
        self.wait_for_room(peer, outbound, false);
        // The rank may make no further call, by which it would find that the rail has ended.
        if outbound.may_be_lost() {
            self.unconnected.set(peer.rank.0);
            self.helper.gather();
        }
        outbound.watch();
    }

    /// Sends gathered messages to any peer, and acknowledgements that have been due for long.
    #[inline]
    pub(super) fn flush_gathered(&self) {
        if self.dirty.any() {
            self.each_of(&self.dirty, |peer, outbound| self.flush(peer, outbound));
        }
        if self.ack_due.any() {
            self.each_of(&self.ack_due, |peer, outbound| {
                self.acknowledge_after(peer, outbound, PATIENCE)
            });
        }
    }

    /// Takes the peers out of a set, and does something for each.
    pub(super) fn each_of(&self, bits: &Bits, mut f: impl FnMut(&Peer<R>, &mut Outbound<R>)) {
        bits.each(|rank| {
            bits.take(rank);
            if let Some(peer) = self.used(rank) {
                f(peer, &mut peer.outbound.lock());
            }
        });
    }

    /// Acknowledges taken bytes after so many polls.
    fn acknowledge_after(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, patience: u32) {
        if outbound.send_stream.ack_due() == 0 || outbound.wire.is_none() {
            return;
        }
        if outbound.patience < patience {
            outbound.patience += 1;
        } else {
            outbound.patience = 0;
            outbound.send_stream.ack_now();
            self.flush(peer, outbound);
        }
        if outbound.send_stream.ack_due() > 0 {
            self.ack_due.set(peer.rank.0);
        }
    }

    /// Before a sleep everything leaves and is acknowledged.
    ///
    /// Bytes without room end sleeps when there is room. Whether something waits that no rail will
    /// end a sleep for: payloads that are handed out when hosts have acknowledged more.
    pub(super) fn flush_all(&self) -> bool {
        let mut waits = false;
        self.each_of(&self.ack_due, |peer, outbound| {
            self.acknowledge_after(peer, outbound, 0)
        });
        self.each_of(&self.dirty, |peer, outbound| {
            self.flush(peer, outbound);
            if outbound.is_unsent() {
                if outbound.is_held_up {
                    self.wait_for_room(peer, outbound, true);
                }
                let claims = self.wait_for_claims(peer, outbound);
                waits |= outbound.wire.is_some() && !outbound.is_held_up && !claims;
            }
        });
        waits
    }

    /// A read of a peer's first rail has found something.
    #[inline]
    pub(super) fn heard(&self, peer: &Peer<R>, inbound: &Inbound<R>) {
        if let Some(rail) = inbound.wire.as_ref().and_then(|wire| wire.rail()) {
            self.rails.heard(peer.rank, rail, &|| self.sleepers.any());
        }
    }

    /// Lets sleeps end, or not, when the first rail takes more.
    #[cold]
    fn wait_for_room(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, waits: bool) {
        if let Some(rail) = outbound.wire.as_ref().and_then(|wire| wire.rail())
            && outbound.waits_for_room != waits
        {
            let (peer, number) = (peer.rank, 0);
            self.rails
                .wait_for_room(RailId { peer, number }, rail, waits);
            outbound.waits_for_room = waits;
            outbound.watch();
        }
    }
}
