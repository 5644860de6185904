//! The shape of a run, by its seed.

use crate::config::Sizes;
use crate::random::Random;
use crate::wire::FaultPlan;
use crate::workload::Shape;
use argonet_conduit::portals::PortalsSizes;
use argonet_nic::portals::software::FaultRules;
use core::fmt;

/// A workload over interfaces in software.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalsShape {
    /// The work of ranks, their number, their way to wait, and the slow ones.
    pub work: Shape,
    /// Sizes of the conduit.
    pub sizes: PortalsSizes,
    /// Faults of the interfaces.
    pub faults: FaultRules,
}

/// Most ranks of a job.
const MOST_RANKS: u64 = 5;

impl PortalsShape {
    /// Draws the shape of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::fork(seed, 7);
        let ranks = random.range(2, MOST_RANKS) as u32;
        let mut plan = FaultPlan::none();
        for rank in 0..ranks {
            if random.chance(100_000) {
                plan.slow.push((rank, random.range(2, 50) as u32));
            }
        }
        let sizes = match random.range(0, 3) {
            0 => PortalsSizes::default(),
            1 => PortalsSizes::smallest(),
            _ => draw_sizes(&mut random, ranks),
        };
        let faults = draw_faults(&mut random);
        Self {
            work: Shape::new(seed, ranks, Sizes::default(), plan),
            sizes,
            faults,
        }
    }

    /// Whether events may be lost, which ends the job by an error.
    #[must_use]
    pub fn loses_events(&self) -> bool {
        self.faults.queue_full > 0
    }
}

fn draw_sizes(random: &mut Random, ranks: u32) -> PortalsSizes {
    let mut sizes = PortalsSizes {
        messages: random.pick(&[4, 5, 9, 250]),
        temporaries: random.pick(&[1, 2, 1024]),
        packed_longs: random.chance(500_000),
        flow_control: random.chance(800_000),
        send_chunks: random.pick(&[1, 2, 5, 64, 1024]),
        reply_chunks: random.pick(&[1, 2, 64]),
        safe_events: random.pick(&[0, 1, 2, 12]),
        am_events: random.pick(&[0, 1, 3, 8]),
        system_events: random.pick(&[0, 1]),
        large_buffers: random.pick(&[1, 2, 4]),
        large_slots: random.pick(&[1, 2, 16]),
        ..PortalsSizes::default()
    };
    sizes.rules.dynamic = random.chance(800_000);
    sizes.rules.epoch_requests = random.pick(&[1, 4, 64, 1024]);
    let share = random.pick(&[u32::from(sizes.rules.least), 6, 50]);
    sizes.wishes.share = Some(share);
    sizes.wishes.bank = Some(random.pick(&[0, 8, 100]));
    // Drawn numbers that do not fit each other are those of another seed.
    match sizes.plan(ranks) {
        Ok(_) => sizes,
        Err(_) => PortalsSizes::default(),
    }
}

fn draw_faults(random: &mut Random) -> FaultRules {
    if random.chance(150_000) {
        return FaultRules::default();
    }
    FaultRules {
        seed: random.bits(),
        delay: random.pick(&[0, 20_000, 200_000]),
        reorder: random.pick(&[0, 20_000, 200_000]),
        slow_target: random.pick(&[0, 20_000, 200_000]),
        late_calls: random.pick(&[1, 8, 100]),
        queue_full: random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1_000]),
        no_match: random.pick(&[0, 5_000, 100_000]),
        ..FaultRules::default()
    }
}

impl fmt::Display for PortalsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape {
            phases, operations, ..
        } = self.work;
        let ranks = self.work.job.sim.ranks;
        write!(
            f,
            "{ranks} ranks, {phases} phases of {operations} operations, {:?}, {:?}",
            self.sizes, self.faults
        )
    }
}
