//! The channel over failover between two members through the suite; then over members that fail and
//! are made again, for several seeds, of which `CONFORMANCE_SEEDS` says how many: with the second
//! and the third of each three seeds, rails of one member last.

#[path = "rigs/failover.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::FailoverRig;

fn main() {
    let seeds = argonet_conformance::seeds_asked().unwrap_or(1);
    let trials = FailoverRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
