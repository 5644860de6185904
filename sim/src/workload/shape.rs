//! What a seed brings: how large everything is, what goes wrong, how much is done.

use crate::config::{SimConfig, Sizes};
use crate::job::JobConfig;
use crate::link::LinkConfig;
use crate::random::Random;
use crate::wire::FaultPlan;
use argonet_conduit::SMALL_PUT;
use argonet_engine::WaitPolicy;
use core::fmt;

/// A workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Cluster, faults, sizes and waiting.
    pub job: JobConfig,
    /// Phases between collectives.
    pub phases: u32,
    /// Operations of a rank in a phase.
    pub operations: u32,
    /// Whether collective operations go on in the background.
    pub background: bool,
    /// Bytes of a rank's segment that belong to one writer.
    pub area_bytes: u64,
}

impl Shape {
    /// What the seed says.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::fork(seed, 3);
        let ranks = match random.range(0, 99) {
            0..50 => random.range(2, 4),
            50..85 => random.range(5, 8),
            85..98 => random.range(9, 16),
            _ => random.range(17, 64),
        } as u32;
        let mut sizes = match random.range(0, 3) {
            0 => Sizes::default(),
            1 => Sizes::smallest(),
            _ => draw_sizes(&mut random),
        };
        let mut faults = FaultPlan::draw(&mut random, ranks);
        if random.chance(60_000) {
            let dead = random.index(ranks as usize) as u32;
            faults.deaths.push((dead, random.range(0, 5_000_000)));
        } else if random.chance(500_000) {
            // Probes repair much; without them everything else has to.
            sizes.link.keepalive_ns = 3_600_000_000_000;
            sizes.link.dead_after_ns = 7_200_000_000_000;
        }
        Self::new(seed, ranks, sizes, faults)
    }

    /// A workload of a given size; how much is done and how ranks wait is the seed's.
    #[must_use]
    pub fn new(seed: u64, ranks: u32, sizes: Sizes, faults: FaultPlan) -> Self {
        let mut random = Random::fork(seed, 4);
        let area_bytes = if ranks <= 16 { 16 * 1024 } else { 4096 };
        let sim = SimConfig {
            ranks,
            seed,
            segment_bytes: u64::from(ranks) * area_bytes,
            sizes,
            faults,
        };
        let mut job = JobConfig::new(sim);
        job.policy = WaitPolicy {
            spins: random.pick(&[0, 3, 20]),
            yields: random.pick(&[0, 2]),
            room: 1,
            gives_way: false,
        };
        job.operations = random.pick(&[32, 1024]);
        // The same amount of work for many ranks as for few, about.
        let most = (200 / u64::from(ranks)).clamp(4, 40);
        Self {
            job,
            phases: random.range(1, 3) as u32,
            operations: random.range(2, most) as u32,
            background: Random::fork(seed, 5).chance(500_000),
            area_bytes,
        }
    }
}

fn draw_sizes(random: &mut Random) -> Sizes {
    let small = Sizes::smallest();
    let medium_bytes = random.pick(&[512, 2000, 16 * 1024]);
    let long_bytes = random.pick(&[1024, 4096]);
    let copy_bytes = random.pick(&[SMALL_PUT, 100, 1000, 8192]);
    Sizes {
        link: LinkConfig {
            part_bytes: random.pick(&[64, 100, 1024, 8192]),
            send_messages: random.pick(&[1, 2, 8, 64]),
            send_parts: random.pick(&[1, 2, 16, 64]),
            recv_parts: random.pick(&[1, 2, 8, 64]),
            resends_per_pass: random.pick(&[1, 4, 64]),
            ..LinkConfig::default()
        },
        request_credits: random.pick(&[1, 2, 16]),
        medium_bytes,
        long_bytes,
        chunk_bytes: random.pick(&[64, 1000, 4096]),
        operations: random.pick(&[1, 3, 64]),
        copy_bytes,
        replay_bytes: medium_bytes.max(long_bytes).max(copy_bytes) * random.pick(&[1, 4]),
        nic_frames: random.pick(&[4, 64, 4096]),
        poll_frames: random.pick(&[1, 8, 64]),
        poll_messages: random.pick(&[1, 4, 16]),
        ..small
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = &self.job.sim.faults;
        let quality = &faults.faulty;
        write!(
            f,
            "{} ranks, {} phases of {} operations, loss {} % duplicates {} % until {} us, {} \
             partitions, {} pauses, {} slow, {} dead",
            self.job.sim.ranks,
            self.phases,
            self.operations,
            f64::from(quality.loss_ppm) / 10_000.0,
            f64::from(quality.duplicate_ppm) / 10_000.0,
            faults.stop_ns / 1000,
            faults.partitions.len(),
            faults.pauses.len(),
            faults.slow.len(),
            faults.deaths.len()
        )
    }
}
