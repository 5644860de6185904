//! Faults of a run, and their times.

use crate::random::Random;

/// How the wire treats the bytes that ranks write.
///
/// Chances are in a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quality {
    /// Shortest time from one rank to another.
    pub delay_ns: u64,
    /// Mean of the time that is added to it.
    pub jitter_ns: u64,
    /// Writes that are held back, as by a loss that the system repairs; all that is written later
    /// waits for them.
    pub hold_ppm: u32,
    /// Mean of how long.
    pub hold_ns: u64,
    /// Writes at which the connection breaks.
    pub break_ppm: u32,
    /// Reads and writes that take a part only.
    pub short_ppm: u32,
    /// Time that a rank's outgoing wire is busy with a byte, in ps.
    pub byte_ps: u64,
}

impl Quality {
    /// A wire without faults: 2 us and 10 GB/s.
    pub const CLEAN: Self = Self {
        delay_ns: 2_000,
        jitter_ns: 0,
        hold_ppm: 0,
        hold_ns: 0,
        break_ppm: 0,
        short_ppm: 0,
        byte_ps: 100,
    };
}

/// Ranks that cannot reach the others for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// When it begins.
    pub from_ns: u64,
    /// When it heals.
    pub until_ns: u64,
    /// The ranks on one side; all others are on the other.
    pub side: Vec<u32>,
    /// Whether what this side writes still reaches the other.
    pub one_way: bool,
}

/// A rank that does nothing for a while, as if its process had been stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// The rank that pauses.
    pub rank: u32,
    /// When it begins.
    pub from_ns: u64,
    /// When it goes on.
    pub until_ns: u64,
}

/// Everything that goes wrong in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// The wire as long as faults last.
    pub faulty: Quality,
    /// The wire afterwards.
    ///
    /// Its chances of faults never end.
    pub healed: Quality,
    /// When faults stop: no partition or pause lasts longer.
    pub stop_ns: u64,
    /// Partitions.
    pub partitions: Vec<Partition>,
    /// Pauses.
    pub pauses: Vec<Pause>,
    /// Ranks whose processor is so many times slower, for the whole run.
    pub slow: Vec<(u32, u32)>,
    /// Ranks that die, and when.
    pub deaths: Vec<(u32, u64)>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self {
            faulty: Quality::CLEAN,
            healed: Quality::CLEAN,
            stop_ns: 0,
            partitions: Vec::new(),
            pauses: Vec::new(),
            slow: Vec::new(),
            deaths: Vec::new(),
        }
    }

    /// Draws the faults of a seed for a cluster of `ranks` ranks; no rank dies.
    #[must_use]
    pub fn draw(random: &mut Random, ranks: u32) -> Self {
        let stop_ns = random.range(100_000, 30_000_000);
        let delay_ns = random.pick(&[500, 2_000, 20_000, 100_000]);
        let byte_ps = random.pick(&[10, 100, 1_000, 10_000]);
        // Most runs have some kinds of faults, some have none, some have all.
        let mut often = |chances: &[u32]| {
            if random.chance(500_000) {
                random.pick(chances)
            } else {
                0
            }
        };
        let hold_ppm = often(&[10_000, 100_000, 500_000]);
        let break_ppm = often(&[1_000, 10_000, 50_000]);
        let short_ppm = often(&[10_000, 100_000, 500_000]);
        let healed = Quality {
            delay_ns,
            jitter_ns: random.pick(&[0, delay_ns / 10, delay_ns]),
            short_ppm,
            byte_ps,
            ..Quality::CLEAN
        };
        let faulty = Quality {
            hold_ppm,
            hold_ns: delay_ns * random.range(1, 20),
            break_ppm,
            ..healed
        };
        let mut plan = Self {
            faulty,
            healed,
            stop_ns,
            partitions: Vec::new(),
            pauses: Vec::new(),
            slow: Vec::new(),
            deaths: Vec::new(),
        };
        let span = |random: &mut Random| {
            let from_ns = random.range(0, stop_ns);
            (from_ns, (from_ns + random.around(stop_ns / 4)).min(stop_ns))
        };
        for _ in 0..random.pick(&[0, 0, 1, 3]) {
            let (from_ns, until_ns) = span(random);
            let side = (0..ranks).filter(|_| random.chance(400_000)).collect();
            let one_way = random.chance(300_000);
            plan.partitions.push(Partition {
                from_ns,
                until_ns,
                side,
                one_way,
            });
        }
        for _ in 0..random.pick(&[0, 0, 1, 4]) {
            let (from_ns, until_ns) = span(random);
            let rank = random.index(ranks as usize) as u32;
            plan.pauses.push(Pause {
                rank,
                from_ns,
                until_ns,
            });
        }
        for _ in 0..random.pick(&[0, 0, 1, 2]) {
            let rank = random.index(ranks as usize) as u32;
            plan.slow.push((rank, random.pick(&[3, 20, 100])));
        }
        plan
    }

    /// Processor time of a rank as a multiple of the usual.
    #[must_use]
    pub fn factor(&self, rank: u32) -> u64 {
        let slow = self.slow.iter().filter(|(who, _)| *who == rank);
        slow.map(|(_, factor)| u64::from(*factor))
            .max()
            .unwrap_or(1)
    }

    /// When a rank that is to run now may run: now, or when its pause is over.
    #[must_use]
    pub fn runs_at(&self, rank: u32, now_ns: u64) -> u64 {
        let mut at = now_ns;
        // Pauses may follow each other without a gap.
        while let Some(pause) = self
            .pauses
            .iter()
            .find(|p| p.rank == rank && p.from_ns <= at && at < p.until_ns)
        {
            at = pause.until_ns;
        }
        at
    }

    /// Whether a partition stands between two ranks.
    #[must_use]
    pub fn is_cut(&self, from: u32, to: u32, now_ns: u64) -> bool {
        self.partitions.iter().any(|p| {
            let (out, back) = (p.side.contains(&from), p.side.contains(&to));
            let lasts = p.from_ns <= now_ns && now_ns < p.until_ns;
            lasts && out != back && !(p.one_way && out)
        })
    }

    /// When a partition that stands between two ranks heals; the time itself where there is none.
    #[must_use]
    pub fn heals_at(&self, from: u32, to: u32, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        // Partitions may follow each other without a gap.
        while self.is_cut(from, to, at_ns) {
            let lasting = self.partitions.iter();
            let ends = lasting.map(|p| p.until_ns).filter(|until| *until > at_ns);
            at_ns = ends.min().unwrap_or(u64::MAX);
        }
        at_ns
    }

    /// Whether a rank is dead.
    #[must_use]
    pub fn is_dead(&self, rank: u32, now_ns: u64) -> bool {
        self.deaths
            .iter()
            .any(|&(who, at)| who == rank && at <= now_ns)
    }

    /// The wire at a time.
    #[must_use]
    pub fn quality(&self, now_ns: u64) -> &Quality {
        if now_ns < self.stop_ns {
            &self.faulty
        } else {
            &self.healed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_and_partitions_begin_and_end() {
        let mut plan = FaultPlan::none();
        for (from_ns, until_ns) in [(10, 20), (20, 30)] {
            plan.pauses.push(Pause {
                rank: 1,
                from_ns,
                until_ns,
            });
        }
        assert_eq!([9, 10, 29, 30].map(|t| plan.runs_at(1, t)), [9, 30, 30, 30]);
        assert_eq!(plan.runs_at(0, 15), 15);
        plan.partitions.push(Partition {
            from_ns: 10,
            until_ns: 20,
            side: vec![0],
            one_way: true,
        });
        assert!(!plan.is_cut(0, 1, 15) && plan.is_cut(1, 0, 15));
        assert!(!plan.is_cut(1, 2, 15) && !plan.is_cut(1, 0, 20));
        assert_eq!(
            [(0, 1), (1, 0)].map(|(a, b)| plan.heals_at(a, b, 15)),
            [15, 20]
        );
    }

    #[test]
    fn drawn_faults_stop_in_time() {
        for seed in 0..200 {
            let plan = FaultPlan::draw(&mut Random::new(seed), 8);
            assert!(plan.partitions.iter().all(|p| p.until_ns <= plan.stop_ns));
            assert!(plan.pauses.iter().all(|p| p.until_ns <= plan.stop_ns));
            let healed = plan.quality(plan.stop_ns);
            assert_eq!(healed.hold_ppm + healed.break_ppm, 0);
        }
    }
}
