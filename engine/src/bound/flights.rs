//! Operations on bound memory that are under way here.
//!
//! The memory that an answer may write to is looked up here and never taken from the answer.

use super::super::vis::{KeptNotice, Scatter};
use super::BoundMemory;
use argonet_base::JobRank;
use argonet_conduit::OpToken;
use core::ptr::with_exposed_provenance_mut;
use parking_lot::Mutex;
use std::sync::Arc;

/// Where answers go.
///
/// Addresses are exposed, and valid for the operation's accesses until it is complete, as its
/// caller promised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) enum Landing {
    /// Acknowledgements of a put.
    Put,
    /// Bytes of a get: `len` in fragments of `piece`, the last one shorter.
    Get {
        address: usize,
        len: usize,
        piece: usize,
    },
    /// The memory that a peer has bound.
    Query(Answer),
    /// The value before an atomic operation, of so many bytes, none if it is not fetched; address 0
    /// if the caller does not want it.
    Atomic { address: usize, bytes: usize },
    /// The values before a batch of atomic operations, of 64 bits each.
    Batch { address: usize, values: usize },
    /// Acknowledgements of a put of many fragments, whose target gets a notice.
    Noticed(Arc<KeptNotice>),
    /// Bytes of a get into many pieces.
    Scatter(Arc<Scatter>),
}

/// Where the answer to a query goes: addresses of numbers of 64 bits, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Answer {
    /// The endpoint of the query.
    pub(super) endpoint: u32,
    pub(super) address: usize,
    pub(super) len: usize,
}

impl Answer {
    pub(super) fn new(endpoint: u32, [address, len]: [*mut u64; 2]) -> Self {
        Self {
            endpoint,
            address: address.expose_provenance(),
            len: len.expose_provenance(),
        }
    }

    /// Writes the answer to its places.
    ///
    /// # Safety
    /// Each place is 0, or the exposed address of an aligned and writable number.
    pub(super) unsafe fn write(self, bound: BoundMemory) {
        for (place, value) in [(self.address, bound.address), (self.len, bound.len)] {
            if place != 0 {
                // SAFETY: this function's contract.
                unsafe { with_exposed_provenance_mut::<u64>(place).write(value) };
            }
        }
    }
}

/// An operation whose answers have not all come.
#[derive(Debug)]
pub(in super::super) struct Flight {
    /// The rank that answers.
    pub(in super::super) peer: JobRank,
    pub(in super::super) token: OpToken,
    pub(in super::super) landing: Landing,
    /// Answers that have not come.
    pub(in super::super) coming: u64,
    /// Answers that have come and are being dealt with.
    pub(in super::super) landing_now: u64,
}

#[derive(Default)]
struct Slot {
    /// Changes when the slot is freed.
    generation: u32,
    flight: Option<Flight>,
}

#[derive(Default)]
struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slab {
    fn slot(&mut self, op: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(op as u32 as usize)?;
        (u64::from(slot.generation) == op >> 32).then_some(slot)
    }

    fn remove(&mut self, op: u64) -> Option<Flight> {
        let slot = self.slot(op)?;
        let flight = slot.flight.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(op as u32);
        Some(flight)
    }
}

/// The operations, by the numbers that travel.
#[derive(Default)]
pub(in super::super) struct Flights(Mutex<Slab>);

impl Flights {
    /// Takes an operation in and gives its number.
    pub(in super::super) fn begin(&self, flight: Flight) -> u64 {
        let slab = &mut *self.0.lock();
        let index = slab.free.pop().unwrap_or_else(|| {
            slab.slots.push(Slot::default());
            (slab.slots.len() - 1) as u32
        });
        let slot = &mut slab.slots[index as usize];
        slot.flight = Some(flight);
        u64::from(index) | u64::from(slot.generation) << 32
    }

    /// Forgets an operation of which nothing has been sent.
    ///
    /// False if an answer to it is being dealt with, or has completed it: then its place may still
    /// be written.
    #[must_use]
    pub(in super::super) fn abandon(&self, op: u64) -> bool {
        let flight = self.0.lock().remove(op);
        flight.is_some_and(|flight| flight.landing_now == 0)
    }

    /// Takes an operation out of which no answer is being dealt with.
    pub(in super::super) fn take_idle(&self, op: u64) -> Option<Flight> {
        let mut slab = self.0.lock();
        let flight = slab.slot(op)?.flight.as_ref()?;
        match flight.landing_now {
            0 => slab.remove(op),
            _ => None,
        }
    }

    /// Takes out all operations with a peer that answers no more.
    pub(in super::super) fn lose(&self, peer: JobRank) -> Vec<OpToken> {
        let slab = &mut *self.0.lock();
        let is_its = |slot: &Slot| slot.flight.as_ref().is_some_and(|f| f.peer == peer);
        let of_peer = (0..).zip(&slab.slots).filter(|(_, slot)| is_its(slot));
        let ops: Vec<u64> = of_peer
            .map(|(index, slot): (u64, _)| index | u64::from(slot.generation) << 32)
            .collect();
        let flights = ops.into_iter().filter_map(|op| slab.remove(op));
        flights.map(|flight| flight.token).collect()
    }

    /// Operations that are under way.
    #[cfg(test)]
    pub(in super::super) fn under_way(&self) -> usize {
        let slab = self.0.lock();
        slab.slots.len() - slab.free.len()
    }

    /// An answer has come from `peer`: where it goes.
    ///
    /// The operation stays until [`landed`](Self::landed) has been called for each that this
    /// admits, so that no message of a peer writes after completion.
    pub(in super::super) fn land(&self, op: u64, peer: JobRank) -> Result<Landing, &'static str> {
        let mut slab = self.0.lock();
        let flight = slab.slot(op).and_then(|slot| slot.flight.as_mut());
        let flight = flight.ok_or("it answers an operation that is not under way")?;
        if flight.peer != peer {
            return Err("it answers an operation with another rank");
        }
        if flight.coming == 0 {
            return Err("it answers an operation that has all its answers");
        }
        flight.coming -= 1;
        flight.landing_now += 1;
        Ok(flight.landing.clone())
    }

    /// An answer has been dealt with.
    ///
    /// Gives the operation that is complete with the last one.
    pub(in super::super) fn landed(&self, op: u64) -> Option<Flight> {
        self.count(op, |flight| flight.landing_now -= 1)
    }

    /// There will be one more answer than was known.
    pub(in super::super) fn expect_one_more(&self, op: u64) {
        self.count(op, |flight| flight.coming += 1);
    }

    /// There will be one less.
    ///
    /// Gives the operation if all others have been dealt with.
    pub(in super::super) fn expect_one_less(&self, op: u64) -> Option<Flight> {
        // An answer that came before all was sent is the peer's mistake, and may have been counted.
        self.count(op, |flight| flight.coming = flight.coming.saturating_sub(1))
    }

    fn count(&self, op: u64, change: impl FnOnce(&mut Flight)) -> Option<Flight> {
        let mut slab = self.0.lock();
        let flight = slab.slot(op)?.flight.as_mut()?;
        change(flight);
        if flight.coming > 0 || flight.landing_now > 0 {
            return None;
        }
        slab.remove(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(peer: u32, coming: u64) -> Flight {
        Flight {
            peer: JobRank(peer),
            token: OpToken {
                handle: 9,
                implicit: false,
            },
            landing: Landing::Put,
            coming,
            landing_now: 0,
        }
    }

    #[test]
    fn a_flight_completes_with_its_last_piece() {
        let flights = Flights::default();
        let op = flights.begin(flight(1, 2));
        let peer = JobRank(1);
        assert!(flights.land(op, JobRank(0)).is_err());
        assert!(flights.land(op + 1, peer).is_err());
        assert!(flights.land(op + (1 << 32), peer).is_err());
        assert_eq!(flights.land(op, peer), Ok(Landing::Put));
        assert_eq!(flights.land(op, peer), Ok(Landing::Put));
        assert!(flights.land(op, peer).is_err());
        assert!(flights.landed(op).is_none());
        assert_eq!(
            flights.landed(op).map(|flight| flight.token.handle),
            Some(9)
        );
        assert!(flights.land(op, peer).is_err());
    }

    /// A peer that guesses the number of an operation answers it before anything was sent.
    #[test]
    fn an_answer_to_nothing_is_found_when_the_operation_is_abandoned() {
        let flights = Flights::default();
        let peer = JobRank(1);
        let copied = flights.begin(flight(1, 2));
        assert!(flights.land(copied, peer).is_ok());
        assert!(!flights.abandon(copied));
        let complete = flights.begin(flight(1, 1));
        assert!(flights.land(complete, peer).is_ok());
        assert!(flights.landed(complete).is_some());
        assert!(!flights.abandon(complete));
        // Its messages are counted one by one, and one more until all have been sent.
        let counted = flights.begin(flight(1, 1));
        assert!(flights.land(counted, peer).is_ok());
        assert!(flights.expect_one_less(counted).is_none());
        assert!(flights.landed(counted).is_some());
    }

    #[test]
    fn a_lost_peer_takes_its_operations_with_it() {
        let flights = Flights::default();
        let (lost, other) = (JobRank(1), JobRank(2));
        let first = flights.begin(flight(1, 1));
        let kept = flights.begin(flight(2, 1));
        let second = flights.begin(flight(1, 3));
        assert!(flights.land(second, lost).is_ok());
        assert_eq!(flights.lose(lost).len(), 2);
        assert_eq!(flights.under_way(), 1);
        assert!(flights.land(first, lost).is_err() && flights.landed(second).is_none());
        assert!(flights.lose(lost).is_empty());
        assert!(flights.land(kept, other).is_ok());
        assert!(flights.take_idle(first).is_none() && flights.take_idle(kept).is_none());
        let idle = flights.begin(flight(2, 1));
        assert!(flights.take_idle(idle).is_some() && flights.take_idle(idle).is_none());
    }

    #[test]
    fn numbers_are_not_used_again() {
        let flights = Flights::default();
        let first = flights.begin(flight(1, 1));
        assert!(flights.abandon(first));
        let second = flights.begin(flight(1, 1));
        assert_ne!(first, second);
        assert_eq!(first as u32, second as u32);
        assert!(flights.land(first, JobRank(1)).is_err());
        assert!(flights.land(second, JobRank(1)).is_ok());
    }
}
