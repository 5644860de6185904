//! Patterns of messages between ranks.

use crate::random::Random;

/// Messages of a face: 5 variables of 32 KiB in mediums of a chunk, each 4 credits, so 640 credits.
const FACE: u32 = 160;
const FULL: u16 = 4;
/// Computing between exchanges, in ns; drawn within a tenth up and down.
const COMPUTE_NS: u64 = 5_000_000;

/// A pattern of communication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All compute, and send one message to a neighbor now and then.
    Idle,
    /// Faces of a box to six neighbors on a torus, as in the text: 160 full messages each, which
    /// would take 640 credits.
    GhostZones,
    /// The same neighbors, in bursts of 32 messages: every round, every 3rd, 6th, 16th, 40th and
    /// every 100th.
    Rates,
    /// Reduction and broadcast on a binary tree, 16 full messages a hop.
    Tree,
    /// All send to rank 0.
    HotSpot,
    /// Each rank sends to any rank.
    Random,
    /// Ghost zones whose six neighbors are others after so many rounds.
    Changing {
        /// Rounds of 960 requests.
        rounds: u32,
    },
}

/// The next step of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Compute(u64),
    Send {
        to: u32,
        cost: u16,
    },
    Poll,
    /// Until all replies have come.
    Replies,
    /// Until so many requests were received since the start.
    Received(u64),
}

/// Where a rank is in its pattern.
pub(super) struct Script {
    rank: u32,
    ranks: u32,
    random: Random,
    round: u32,
    /// Which part of the round, and how far in it.
    part: u32,
    sent: u32,
}

const PERIODS: [u32; 6] = [1, 3, 6, 16, 40, 100];
const BURST: u32 = 32;
const HOP: u32 = 16;

impl Pattern {
    /// Ranks that receive requests, by which epochs of the job are counted.
    pub(super) fn receivers(self, ranks: u32) -> u64 {
        match self {
            Pattern::HotSpot => 1,
            _ => ranks.into(),
        }
    }
}

impl Script {
    pub(super) fn new(rank: u32, ranks: u32, seed: u64) -> Self {
        Self {
            rank,
            ranks,
            random: Random::fork(seed, rank.into()),
            round: 0,
            part: 0,
            sent: 0,
        }
    }

    /// One of the six neighbors on a torus that is as near to a cube as the number of ranks allows.
    fn neighbor(&self, direction: u32) -> u32 {
        let [x, y, z] = sides(self.ranks);
        let (stride, side) = [(1, x), (x, y), (x * y, z)][direction as usize / 2];
        let at = self.rank / stride % side;
        let next = if direction.is_multiple_of(2) {
            (at + 1) % side
        } else {
            (at + side - 1) % side
        };
        self.rank - at * stride + next * stride
    }

    /// One of six others that belong to the `set`th set; two ranks of such a pair send to each
    /// other.
    fn other(&self, set: u32, direction: u32) -> u32 {
        let mut random = Random::fork(u64::from(set), 77);
        let half = self.ranks / 2 - 1;
        let mut offset = 0;
        for _ in 0..=direction / 2 {
            offset = 1 + random.range(0, u64::from(half - 1)) as u32;
        }
        let offset = if direction.is_multiple_of(2) {
            offset
        } else {
            self.ranks - offset
        };
        (self.rank + offset) % self.ranks
    }

    fn compute(&mut self) -> Step {
        let tenth = COMPUTE_NS / 10;
        Step::Compute(self.random.range(COMPUTE_NS - tenth, COMPUTE_NS + tenth))
    }

    pub(super) fn next(&mut self, pattern: Pattern) -> Step {
        match pattern {
            Pattern::Idle => {
                self.part += 1;
                match self.part % 3 {
                    1 => Step::Compute(self.random.range(90_000, 110_000)),
                    2 => Step::Poll,
                    _ => Step::Send {
                        to: self.neighbor(0),
                        cost: 1,
                    },
                }
            }
            Pattern::GhostZones => self.faces(|script, direction| script.neighbor(direction)),
            Pattern::Changing { rounds } => {
                let set = self.round / rounds;
                self.faces(|script, direction| script.other(set, direction))
            }
            Pattern::Rates => self.rates(),
            Pattern::Tree => self.tree(),
            Pattern::HotSpot if self.rank == 0 => Step::Received(u64::MAX),
            Pattern::HotSpot => {
                self.part += 1;
                match self.part % 2 {
                    1 => Step::Compute(10_000),
                    _ => Step::Send { to: 0, cost: FULL },
                }
            }
            Pattern::Random => {
                self.part += 1;
                match self.part % 3 {
                    1 => return Step::Compute(self.random.range(1_000, 3_000)),
                    2 => return Step::Poll,
                    _ => {}
                }
                let other = 1 + self.random.range(0, u64::from(self.ranks) - 2) as u32;
                Step::Send {
                    to: (self.rank + other) % self.ranks,
                    cost: self.random.range(1, FULL.into()) as u16,
                }
            }
        }
    }

    fn faces(&mut self, partner: impl Fn(&Self, u32) -> u32) -> Step {
        if self.part < 6 {
            if self.part == 0 && self.sent == 0 {
                self.sent = 1;
                return self.compute();
            }
            let to = partner(self, self.part);
            self.sent += 1;
            if self.sent > FACE {
                self.part += 1;
                self.sent = 1;
            }
            return Step::Send { to, cost: FULL };
        }
        self.part += 1;
        if self.part == 7 {
            return Step::Replies;
        }
        self.round += 1;
        (self.part, self.sent) = (0, 0);
        Step::Received(u64::from(self.round) * 6 * u64::from(FACE))
    }

    fn rates(&mut self) -> Step {
        while let Some(period) = PERIODS.get(self.part as usize) {
            if self.round.is_multiple_of(*period) && self.sent < BURST {
                self.sent += 1;
                let to = self.neighbor(self.part);
                return Step::Send { to, cost: FULL };
            }
            self.part += 1;
            self.sent = 0;
        }
        self.part += 1;
        if self.part == 7 {
            return Step::Replies;
        }
        self.round += 1;
        self.part = 0;
        Step::Compute(self.random.range(90_000, 110_000))
    }

    fn tree(&mut self) -> Step {
        let children: Vec<u32> = [self.rank * 2 + 1, self.rank * 2 + 2]
            .into_iter()
            .filter(|child| *child < self.ranks)
            .collect();
        let is_root = self.rank == 0;
        let hop = u64::from(HOP);
        let (below, above) = (children.len() as u64 * hop, if is_root { 0 } else { hop });
        let before = u64::from(self.round) * (below + above);
        loop {
            match self.part {
                0 => {
                    self.part = 1;
                    return Step::Received(before + below);
                }
                1 if !is_root && self.sent < HOP => {
                    self.sent += 1;
                    let to = (self.rank - 1) / 2;
                    return Step::Send { to, cost: FULL };
                }
                1 => (self.part, self.sent) = (2, 0),
                2 => {
                    self.part = 3;
                    return Step::Received(before + below + above);
                }
                3 if self.sent < HOP * children.len() as u32 => {
                    let to = children[(self.sent / HOP) as usize];
                    self.sent += 1;
                    return Step::Send { to, cost: FULL };
                }
                3 => {
                    self.part = 4;
                    return Step::Replies;
                }
                _ => {
                    (self.part, self.sent) = (0, 0);
                    self.round += 1;
                    return Step::Compute(self.random.range(40_000, 60_000));
                }
            }
        }
    }
}

/// Three factors of a number, as near to each other as may be.
fn sides(ranks: u32) -> [u32; 3] {
    let mut best = [ranks, 1, 1];
    for x in 1..=ranks {
        if x * x * x > ranks {
            break;
        }
        if !ranks.is_multiple_of(x) {
            continue;
        }
        let rest = ranks / x;
        let y = (x..=rest)
            .take_while(|y| y * y <= rest)
            .filter(|y| rest.is_multiple_of(*y));
        if let Some(y) = y.last() {
            best = [rest / y, y, x];
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_mutual() {
        assert_eq!(sides(1000), [10, 10, 10]);
        assert_eq!(sides(10_000), [25, 20, 20]);
        for rank in 0..60 {
            let script = Script::new(rank, 60, 1);
            for direction in 0..6 {
                let back = direction ^ 1;
                let there = Script::new(script.neighbor(direction), 60, 1);
                assert_eq!(there.neighbor(back), rank);
                let there = Script::new(script.other(3, direction), 60, 1);
                assert_eq!(there.other(3, back), rank);
                assert_ne!(script.other(3, direction), rank);
            }
        }
    }
}
