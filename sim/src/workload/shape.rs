//! The shape of a run, by its seed: sizes, faults, amount of work.

use crate::config::{SimConfig, Sizes};
use crate::job::JobConfig;
use crate::random::Random;
use crate::wire::FaultPlan;
use argonet_conduit::channel::{ChannelCredits, ChannelSizes};
use argonet_engine::WaitPolicy;
use core::fmt;
use core::time::Duration;

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
    /// Longest payload of a medium.
    ///
    /// Messages through a small connection are short, too.
    pub medium_bytes: usize,
}

impl Shape {
    /// Draws the shape of a seed.
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
            _ => draw_sizes(&mut random, ranks),
        };
        if random.chance(400_000) {
            sizes = sizes.gathering();
        }
        let mut faults = FaultPlan::draw(&mut random, ranks);
        // A payload goes through the smallest in a time that ends.
        let least = faults.healed.delay_ns as usize / 100;
        sizes.pipe_bytes = sizes.pipe_bytes.max(least);
        if random.chance(60_000) {
            let dead = random.index(ranks as usize) as u32;
            faults.deaths.push((dead, random.range(0, 5_000_000)));
        } else if random.chance(500_000) {
            // Connections that are given up repair much; without that all else has to.
            sizes.channel.silent_time = Duration::ZERO;
            sizes.dead_after_ns = 7_200_000_000_000;
        }
        // Of a chance of their own, so that seeds keep all else.
        let mut random = Random::fork(seed, 6);
        let mut idle = || Duration::from_micros(random.pick(&[0, 0, 1000, 5000]));
        sizes.channel.idle_buffers = idle();
        sizes.channel.idle_rails = idle();
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
            medium_bytes: random
                .pick(&[1000, 4 << 10, 16 << 10, 64 << 10])
                .min(16 * sizes.pipe_bytes),
            background: Random::fork(seed, 5).chance(500_000),
            area_bytes,
        }
    }
}

fn draw_sizes(random: &mut Random, ranks: u32) -> Sizes {
    let small = Sizes::smallest();
    let least = small.channel;
    let credits = ChannelCredits {
        dynamic: random.chance(800_000),
        mended: random.chance(500_000),
        epoch_requests: random.pick(&[1, 4, 64, 1024]),
        ..ChannelCredits::default()
    };
    let credits = random.pick(&[None, Some(credits), least.credits]);
    let channel = ChannelSizes {
        eager_bytes: random.pick(&[least.eager_bytes, 100, 1000, 16 << 10]),
        replay_bytes: least.replay_bytes * random.pick(&[1, 2, 8]),
        window_bytes: least.window_bytes * random.pick(&[1, 4]),
        credits: credits.filter(|credits| credits.plan(ranks).is_ok()),
        fragment_bytes: random.pick(&[64, 512, 4096, 64 << 10]),
        gets: random.pick(&[1, 3, 64]),
        gather_bytes: random.pick(&[0, 200, 16 << 10]),
        rails: random.pick(&[1, 1, 2, 3]),
        ..least
    };
    Sizes {
        channel,
        pipe_bytes: random.pick(&[100, 1000, 4096, 256 << 10]),
        ..small
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = &self.job.sim.faults;
        let quality = &faults.faulty;
        write!(
            f,
            "{} ranks, {} phases of {} operations, {} % held {} % break {} % short until {} us, {} \
             partitions, {} pauses, {} slow, {} dead",
            self.job.sim.ranks,
            self.phases,
            self.operations,
            f64::from(quality.hold_ppm) / 10_000.0,
            f64::from(quality.break_ppm) / 10_000.0,
            f64::from(quality.short_ppm) / 10_000.0,
            faults.stop_ns / 1000,
            faults.partitions.len(),
            faults.pauses.len(),
            faults.slow.len(),
            faults.deaths.len()
        )
    }
}
