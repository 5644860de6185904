//! Jobs over a wire that is clean, and over one with all faults at once, with buffers of the usual
//! sizes and of the smallest.
//!
//! `ARGONET_SIM_SEEDS` is how many seeds each is run with.

use argonet_sim::{FaultPlan, JobConfig, Outcome, Quality, SimConfig, Sizes, StartError};

/// A program that every rank runs under a configuration.
type Job<'j> = &'j dyn Fn(&JobConfig) -> Result<Outcome, StartError>;

/// Nothing is late, and no connection breaks.
pub(crate) fn nothing_goes_wrong(ranks: u32, job: Job<'_>) {
    well(ranks, Quality::CLEAN, job);
}

/// Written bytes are held back, taken in parts, and lost with their connection.
pub(crate) fn all_faults_at_once(ranks: u32, job: Job<'_>) {
    let quality = Quality {
        jitter_ns: 5_000,
        hold_ppm: 200_000,
        hold_ns: 50_000,
        break_ppm: 20_000,
        short_ppm: 300_000,
        ..Quality::CLEAN
    };
    well(ranks, quality, job);
}

/// Seeds of a run that says nothing else.
const SEEDS: u64 = 4;

fn seeds() -> u64 {
    match std::env::var("ARGONET_SIM_SEEDS") {
        Ok(text) => text.parse().expect("ARGONET_SIM_SEEDS is a number"),
        Err(_) => SEEDS,
    }
}

fn well(ranks: u32, quality: Quality, job: Job<'_>) {
    let mut broken = 0;
    for sizes in [Sizes::default(), Sizes::smallest()] {
        // A transfer that breaks off begins again with its frame, so the longest frame goes through
        // the smallest connection before that breaks.
        let small = sizes == Sizes::smallest();
        let quality = Quality {
            break_ppm: quality.break_ppm / if small { 100 } else { 1 },
            ..quality
        };
        for seed in 0..seeds() {
            let mut sim = SimConfig::new(ranks, seed);
            sim.sizes = sizes;
            sim.faults = FaultPlan {
                healed: quality,
                ..FaultPlan::none()
            };
            let outcome = job(&JobConfig::new(sim)).unwrap();
            assert_eq!(
                (&outcome.failure, &outcome.abort),
                (&None, &None),
                "seed {seed}, {sizes:?}"
            );
            broken += outcome.connections.1;
        }
    }
    assert_eq!(broken > 0, quality.break_ppm > 0, "{broken} breaks");
}
