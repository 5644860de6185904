//! The portals conduit through the suite, over the software interface: each thread mode, then with faults for several seeds, of which
//! `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/portals.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::PortalsRig;

fn main() {
    let seeds = std::env::var("CONFORMANCE_SEEDS").ok();
    let seeds = seeds.map_or(2, |seeds| {
        seeds.parse().expect("CONFORMANCE_SEEDS is a number")
    });
    let trials = PortalsRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
