//! The channel over mailboxes of GNI through the suite, over interfaces in software: without
//! and with threads, then with faults for several seeds, of which `CONFORMANCE_SEEDS` says how
//! many.

#[path = "rigs/gni.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::GniRig;

/// Seeds without being asked.
const FEW: u64 = 1;

fn main() {
    let seeds = argonet_conformance::seeds_asked().unwrap_or(FEW);
    let rigs = GniRig::all(seeds).into_iter();
    let trials = rigs.flat_map(argonet_conformance::trials).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
