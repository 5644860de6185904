//! Events in the order of their times.

use std::collections::BTreeMap;

/// Times are rounded up to this many nanoseconds; events of one slot happen in the order in which
/// they were planned.
const SLOT_NS: u64 = 100;
const SLOTS: u64 = 1 << 16;

/// Events of the wheel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A rank goes on.
    Wake { rank: u32 },
    /// A request arrives, with its tag.
    Request { from: u32, to: u32, bits: u64 },
    /// A reply arrives.
    Reply { from: u32, to: u32, bits: u64 },
    /// A system message arrives.
    System { from: u32, to: u32, word: u64 },
}

/// Near events in slots, far ones in a tree.
pub(super) struct Wheel {
    slots: Vec<Vec<Event>>,
    /// A bit for each slot with events, so that quiet times cost little.
    taken: Vec<u64>,
    far: BTreeMap<u64, Vec<Event>>,
    /// The slot whose events happen now.
    at: u64,
    planned: usize,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            taken: vec![0; (SLOTS / 64) as usize],
            far: BTreeMap::new(),
            at: 0,
            planned: 0,
        }
    }

    /// Virtual time in ns.
    pub(super) fn now(&self) -> u64 {
        self.at * SLOT_NS
    }

    pub(super) fn plan(&mut self, time_ns: u64, event: Event) {
        // Never in the slot that is being emptied.
        let slot = time_ns.div_ceil(SLOT_NS).max(self.at + 1);
        self.planned += 1;
        if slot - self.at < SLOTS {
            let slot = slot % SLOTS;
            self.taken[(slot / 64) as usize] |= 1 << (slot % 64);
            self.slots[slot as usize].push(event);
        } else {
            self.far.entry(slot).or_default().push(event);
        }
    }

    /// Goes on to the next events and puts them into `events`.
    ///
    /// `false` if there are none.
    pub(super) fn next(&mut self, events: &mut Vec<Event>) -> bool {
        events.clear();
        if self.planned == 0 {
            return false;
        }
        let far = self.far.first_key_value().map(|(slot, _)| *slot);
        self.at = match (self.near(), far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(slot), None) | (None, Some(slot)) => slot,
            (None, None) => return false,
        };
        if let Some(far) = self.far.remove(&self.at) {
            events.extend(far);
        }
        let slot = self.at % SLOTS;
        self.taken[(slot / 64) as usize] &= !(1 << (slot % 64));
        events.append(&mut self.slots[slot as usize]);
        self.planned -= events.len();
        true
    }

    /// The next slot with events.
    fn near(&self) -> Option<u64> {
        let first = self.at + 1;
        let (word, bit) = (first % SLOTS / 64, first % 64);
        let words = SLOTS / 64;
        for n in 0..=words {
            let mut bits = self.taken[((word + n) % words) as usize];
            if n == 0 {
                bits &= u64::MAX << bit;
            }
            if bits != 0 {
                let start = first - bit + n * 64;
                return Some(start + u64::from(bits.trailing_zeros()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_events_come_in_order() {
        let mut wheel = Wheel::new();
        let times = [5_000, 100, 20_000_000, 250, 6_553_600, 90_000_000];
        for (rank, time) in (0..).zip(times) {
            wheel.plan(time, Event::Wake { rank });
        }
        let (mut events, mut seen) = (Vec::new(), Vec::new());
        while wheel.next(&mut events) {
            for event in &events {
                let Event::Wake { rank } = event else {
                    panic!()
                };
                seen.push((wheel.now(), *rank));
            }
        }
        let expected = [(100, 1), (300, 3), (5_000, 0), (6_553_600, 4)];
        assert_eq!(seen[..4], expected);
        assert_eq!(seen[4..], [(20_000_000, 2), (90_000_000, 5)]);
    }
}
