//! The simulated conduit through the suite: on a wire without faults, and with those of several
//! seeds, of which `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/sim.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::SimRig;

fn main() {
    let seeds = argonet_conformance::seeds_asked().unwrap_or(2);
    let trials = SimRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
