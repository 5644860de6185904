//! Datagrams that two interfaces exchange.
//!
//! For each ordered pair of interfaces there is a slot, in the area of the first: what it has
//! posted to the second. Exchanges of a pair are numbered, and number `k` of each goes with number
//! `k` of the other. A slot has
//!
//! * a state: number, and whether that is posted or matched. Its owner posts, and takes back by a
//!   compare-and-swap; the other side matches by one, before it reads. So one of the two succeeds.
//! * the number of the last datagram of the other side that the owner has read. The other side
//!   posts its next one when all before it have been read.
//!
//! An interface that has a wildcard and finds a datagram where it has posted none matches it, and
//! posts the wildcard's data as its own of the same number.
//!
//! Posts set a bit in a map of the other interface, which examines those alone. What it cannot
//! match yet it notes, in memory of the process.

use super::layout::slot;
use super::shared::Shared;
use crate::gni::{DATAGRAM_BYTES, Exchanged, GniError, NicAddress};
use argonet_segment::bulk;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::VecDeque;

const NONE: u64 = 0;
const POSTED: u64 = 1;
const MATCHED: u64 = 2;
const STATE_BITS: u32 = 2;

fn state(number: u64, state: u64) -> u64 {
    number << STATE_BITS | state
}

/// What this process knows of its interface's datagrams.
pub(super) struct Datagrams {
    known: Mutex<Known>,
    /// Whether something may be found though no bit is set in the map.
    look: AtomicBool,
}

#[derive(Default)]
struct Known {
    peers: Vec<Peer>,
    wildcards: VecDeque<Data>,
    /// Interfaces that have posted something which could not be matched, a bit each.
    noted: Vec<u64>,
    /// Where the search goes on, so that each has its turn.
    next: u32,
}

#[derive(Clone, Default)]
struct Peer {
    /// The number of the last exchange.
    exchanged: u64,
    /// What is bound to it and was not exchanged.
    bound: Option<Bound>,
}

#[derive(Clone, Copy)]
struct Bound {
    id: u64,
    /// A fault keeps it from the peer.
    lost: bool,
}

struct Data {
    id: u64,
    bytes: [u8; DATAGRAM_BYTES],
    len: usize,
}

impl Datagrams {
    pub(super) fn new(places: u32) -> Self {
        let known = Known {
            peers: vec![Peer::default(); places as usize],
            noted: vec![0; places.div_ceil(u64::BITS) as usize],
            ..Known::default()
        };
        Self {
            known: Mutex::new(known),
            look: AtomicBool::new(false),
        }
    }
}

impl Known {
    /// The next interface that is noted, in turn.
    fn next_noted(&self, from: u32) -> Option<u32> {
        let places = self.peers.len() as u32;
        (from..places).find(|place| {
            let word = self.noted.get((place / 64) as usize);
            word.is_some_and(|word| word >> (place % 64) & 1 != 0)
        })
    }

    fn forget(&mut self, place: u32) {
        if let Some(word) = self.noted.get_mut((place / 64) as usize) {
            *word &= !(1 << (place % 64));
        }
    }
}

/// What has become of a datagram that a peer may have posted.
enum Found {
    /// None is there.
    Nothing,
    /// Nothing to exchange it with.
    Later,
    Exchanged(Exchanged),
}

impl Shared {
    /// A word of the slot from one interface to another.
    fn slot_word(&self, from: u32, to: u32, which: u64) -> &AtomicU64 {
        self.region
            .word(self.region.layout.datagram(from, to) + which)
    }

    /// Writes a datagram of this interface, and lets the peer know.
    fn post_to(&self, peer: u32, number: u64, data: &[u8]) {
        let at = self.region.layout.datagram(self.place, peer) + slot::DATA;
        let len = data.len().min(DATAGRAM_BYTES);
        if let Some(bytes) = self.region.bytes(at, DATAGRAM_BYTES as u64) {
            self.step();
            // SAFETY: the slot has room for the longest; it is accessed by `bulk` only.
            unsafe { bulk::copy(bytes.as_ptr(), data.as_ptr(), len) };
        }
        let word = |which| self.slot_word(self.place, peer, which);
        word(slot::LEN).store(len as u64, Ordering::Relaxed);
        self.step();
        word(slot::STATE).swap(state(number, POSTED), Ordering::SeqCst);
        self.step();
        let rung = self.region.layout.rung(peer, self.place / 64);
        self.region
            .word(rung)
            .fetch_or(1 << (self.place % 64), Ordering::SeqCst);
        self.step();
        self.wake_place(peer);
    }

    /// Reads the datagram of a peer that this interface has matched, number `number`.
    // spec G2: bound datagrams, and wildcards of a peer.
    fn read_from(&self, peer: u32, number: u64, id: u64) -> Exchanged {
        let word = |which| self.slot_word(peer, self.place, which);
        let len = word(slot::LEN).load(Ordering::Relaxed);
        let len = len.min(DATAGRAM_BYTES as u64) as usize;
        let mut data = [0; DATAGRAM_BYTES];
        let at = self.region.layout.datagram(peer, self.place) + slot::DATA;
        if let Some(bytes) = self.region.bytes(at, DATAGRAM_BYTES as u64) {
            // SAFETY: the slot has as many bytes, and so has the array.
            unsafe { bulk::copy(data.as_mut_ptr(), bytes.as_ptr(), len) };
        }
        self.step();
        self.slot_word(self.place, peer, slot::READ)
            .swap(number, Ordering::SeqCst);
        // The peer may wait for that, to post its next one.
        self.wake_place(peer);
        let address = self.region.layout.config.address(peer);
        Exchanged::new(id, address, &data[..len])
    }

    pub(super) fn post_datagram(
        &self,
        to: Option<NicAddress>,
        id: u64,
        data: &[u8],
    ) -> Result<(), GniError> {
        if data.len() > DATAGRAM_BYTES {
            let len = data.len() as u64;
            return Err(self.too_long("a datagram", len, DATAGRAM_BYTES as u64));
        }
        let mut known = self.datagrams.known.lock();
        match to {
            Some(to) => self.post_bound(&mut known, to, id, data)?,
            None => {
                let limit = self.region.layout.config.wildcards;
                if known.wildcards.len() >= limit as usize {
                    return Err(self.no_space("wildcard datagram", limit.into()));
                }
                let mut bytes = [0; DATAGRAM_BYTES];
                bytes[..data.len()].copy_from_slice(data);
                let len = data.len();
                known.wildcards.push_back(Data { id, bytes, len });
            }
        }
        // It may go with one that was noted.
        self.datagrams.look.swap(true, Ordering::SeqCst);
        drop(known);
        self.wake_place(self.place);
        Ok(())
    }

    fn post_bound(
        &self,
        known: &mut Known,
        to: NicAddress,
        id: u64,
        data: &[u8],
    ) -> Result<(), GniError> {
        let place = self.peer(to)?;
        let rank = self.rank();
        let bad = GniError::BadPeer { rank, peer: to };
        if place == self.place {
            return Err(bad);
        }
        let peer = known.peers.get_mut(place as usize).ok_or(bad)?;
        let read = self.slot_word(place, self.place, slot::READ);
        if peer.bound.is_some() || read.load(Ordering::Acquire) != peer.exchanged {
            return Err(self.busy("another exchange with that interface"));
        }
        let lost = self.faults.loses_datagram();
        peer.bound = Some(Bound { id, lost });
        if !lost {
            self.post_to(place, peer.exchanged + 1, data);
        }
        Ok(())
    }

    /// Whether [`next_datagram`](Self::next_datagram) may find something.
    #[inline]
    pub(super) fn has_datagram(&self) -> bool {
        let layout = &self.region.layout;
        let rung = |n| self.region.word(layout.rung(self.place, n));
        self.datagrams.look.load(Ordering::SeqCst)
            || (0..layout.rung_words()).any(|n| rung(n).load(Ordering::SeqCst) != 0)
    }

    pub(super) fn next_datagram(&self) -> Option<Exchanged> {
        if !self.has_datagram() {
            return None;
        }
        let mut known = self.datagrams.known.lock();
        let known = &mut *known;
        self.datagrams.look.store(false, Ordering::SeqCst);
        for (n, noted) in (0..).zip(&mut known.noted) {
            let word = self.region.word(self.region.layout.rung(self.place, n));
            if word.load(Ordering::Relaxed) != 0 {
                self.step();
                *noted |= word.swap(0, Ordering::SeqCst);
            }
        }
        let start = known.next;
        for (from, end) in [(start, u32::MAX), (0, start)] {
            let mut at = from;
            while let Some(place) = known.next_noted(at).filter(|place| *place < end) {
                at = place + 1;
                match self.examine(known, place) {
                    Found::Later => {}
                    Found::Nothing => known.forget(place),
                    Found::Exchanged(exchanged) => {
                        known.forget(place);
                        known.next = at;
                        // There may be more.
                        self.datagrams.look.store(true, Ordering::SeqCst);
                        return Some(exchanged);
                    }
                }
            }
        }
        None
    }

    /// Exchanges what a peer has posted, if it has and there is something to exchange it with.
    fn examine(&self, known: &mut Known, place: u32) -> Found {
        let joined = self.credentials(place);
        let Some(peer) = known.peers.get_mut(place as usize) else {
            return Found::Nothing;
        };
        if place == self.place || joined != self.joined {
            return Found::Nothing;
        }
        let number = peer.exchanged + 1;
        let theirs = self.slot_word(place, self.place, slot::STATE);
        let posted = state(number, POSTED);
        if theirs.load(Ordering::Acquire) != posted {
            return Found::Nothing;
        }
        let has_partner = match peer.bound {
            Some(bound) => !bound.lost,
            None => !known.wildcards.is_empty(),
        };
        if !has_partner {
            return Found::Later;
        }
        self.step();
        let matched = theirs.compare_exchange(
            posted,
            state(number, MATCHED),
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        if matched.is_err() {
            // Taken back; the bit is set again when another is posted.
            return Found::Nothing;
        }
        self.step();
        peer.exchanged = number;
        if let Some(bound) = peer.bound.take() {
            return Found::Exchanged(self.read_from(place, number, bound.id));
        }
        let Some(wildcard) = known.wildcards.pop_front() else {
            return Found::Nothing;
        };
        let exchanged = self.read_from(place, number, wildcard.id);
        self.post_to(place, number, &wildcard.bytes[..wildcard.len]);
        Found::Exchanged(exchanged)
    }

    pub(super) fn cancel_datagram(&self, id: u64) -> Result<(), GniError> {
        let mut known = self.datagrams.known.lock();
        if let Some(at) = known.wildcards.iter().position(|data| data.id == id) {
            known.wildcards.remove(at);
            return Ok(());
        }
        let mut peers = (0..).zip(&mut known.peers);
        let found = peers.find(|(_, peer)| peer.bound.is_some_and(|bound| bound.id == id));
        let Some((place, peer)) = found else {
            return Err(self.bad_handle("a datagram of that number"));
        };
        let number = peer.exchanged + 1;
        let lost = peer.bound.is_some_and(|bound| bound.lost);
        let word = self.slot_word(self.place, place, slot::STATE);
        self.step();
        let taken_back = lost
            || word
                .compare_exchange(
                    state(number, POSTED),
                    state(number, NONE),
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                )
                .is_ok();
        if !taken_back {
            return Err(self.busy("taking back a datagram that is being exchanged"));
        }
        peer.bound = None;
        // One of the peer's may go with a wildcard instead.
        self.datagrams.look.swap(true, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
impl Shared {
    /// Whether a datagram waits for its exchange.
    pub(super) fn is_bound(&self, id: u64) -> bool {
        let known = self.datagrams.known.lock();
        let mut bound = known.peers.iter().filter_map(|peer| peer.bound);
        bound.any(|bound| bound.id == id)
    }
}
