//! The portals conduit through the suite, over the software interface, and over the same with no more than the binding of Portals 4 has: each
//! thread mode, then with faults for several seeds, of which `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/portals.rs"]
mod rig;

use argonet_nic::portals::four::Narrow;
use argonet_nic::portals::software::Software;
use libtest_mimic::Arguments;
use rig::PortalsRig;

fn main() {
    let seeds = std::env::var("CONFORMANCE_SEEDS").ok();
    let seeds = seeds.map_or(2, |seeds| {
        seeds.parse().expect("CONFORMANCE_SEEDS is a number")
    });
    let software = PortalsRig::<Software>::all(seeds).into_iter();
    let narrow = PortalsRig::<Narrow>::all(seeds).into_iter();
    let trials = software
        .flat_map(argonet_conformance::trials)
        .chain(narrow.flat_map(argonet_conformance::trials));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
