//! Faults of a wire, by rule and seed: between the link's layer and the socket.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Chances in millionths that a datagram that this rank sends is lost, arrives twice, or is
/// overtaken by the next ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireFaults {
    /// Where chances begin.
    pub seed: u64,
    /// It never arrives.
    pub drop: u32,
    /// It arrives twice.
    pub duplicate: u32,
    /// It leaves after some later ones; never, if there are none.
    pub reorder: u32,
}

/// By how many sends a datagram comes late at most.
const LATEST: u64 = 4;

#[derive(Debug)]
pub(super) struct Faults {
    rules: WireFaults,
    random: Xoshiro256PlusPlus,
    /// The datagram that is held back, its target, and for how many sends more.
    held: Option<(u32, Vec<u8>, u64)>,
}

impl Faults {
    /// `None` where nothing goes wrong.
    pub(super) fn new(rules: WireFaults) -> Option<Self> {
        let any = rules.drop != 0 || rules.duplicate != 0 || rules.reorder != 0;
        any.then(|| Self {
            rules,
            random: Xoshiro256PlusPlus::seed_from_u64(rules.seed),
            held: None,
        })
    }

    fn chance(&mut self, per_million: u32) -> bool {
        self.random.next_u64() % 1_000_000 < u64::from(per_million)
    }

    /// Sends a datagram, after the rules' faults.
    pub(super) fn send(&mut self, peer: u32, bytes: &[u8], mut send: impl FnMut(u32, &[u8])) {
        if let Some((_, _, left)) = &mut self.held {
            *left -= 1;
        }
        let [drop, twice, late] = [self.rules.drop, self.rules.duplicate, self.rules.reorder]
            .map(|chance| self.chance(chance));
        if late && self.held.is_none() {
            let sends = 1 + self.random.next_u64() % LATEST;
            self.held = Some((peer, bytes.to_vec(), sends));
        } else if !drop {
            send(peer, bytes);
            if twice {
                send(peer, bytes);
            }
        }
        if let Some((peer, bytes, _)) = self.held.take_if(|(_, _, left)| *left == 0) {
            send(peer, &bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_and_seeds_repeat() {
        let sent = |rules: WireFaults| {
            let mut faults = Faults::new(rules).unwrap();
            let mut sent = Vec::new();
            for n in 0_u32..1000 {
                faults.send(n, &n.to_le_bytes(), |peer, bytes| {
                    assert_eq!(bytes, peer.to_le_bytes());
                    sent.push(peer);
                });
            }
            sent
        };
        let none = WireFaults {
            seed: 1,
            ..WireFaults::default()
        };
        assert!(Faults::new(none).is_none());
        let dropping = WireFaults {
            drop: 100_000,
            ..none
        };
        let left = sent(dropping);
        assert!((850..950).contains(&left.len()), "{}", left.len());
        assert!(left.is_sorted());
        let doubling = WireFaults {
            duplicate: 100_000,
            ..none
        };
        let twice = sent(doubling);
        assert!((1050..1150).contains(&twice.len()) && twice.is_sorted());
        let mixing = WireFaults {
            reorder: 100_000,
            ..none
        };
        let mut mixed = sent(mixing);
        assert!(!mixed.is_sorted() && mixed == sent(mixing));
        mixed.sort_unstable();
        mixed.dedup();
        assert!(mixed.len() >= 999, "{}", mixed.len());
    }
}
