//! The simulated conduit through the suite: on a wire without faults, and with those of several
//! seeds, of which `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/sim.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::SimRig;

fn main() {
    let seeds = std::env::var("CONFORMANCE_SEEDS").ok();
    let seeds = seeds.map_or(2, |seeds| {
        seeds.parse().expect("CONFORMANCE_SEEDS is a number")
    });
    let trials = SimRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
