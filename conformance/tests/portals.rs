//! The portals conduit through the suite, over the software interface, and over the same with no
//! more than the binding of Portals 4 has, with long and with short messages: each thread mode,
//! then with faults for several seeds, of which `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/portals.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::{LONG, PortalsRig, SHORT, Whole};

/// Seeds without being asked.
const FEW: u64 = 1;

fn main() {
    let seeds = argonet_conformance::seeds_asked().unwrap_or(FEW);
    let software = PortalsRig::all(Whole, seeds).into_iter();
    let long = PortalsRig::all(LONG, seeds).into_iter();
    // Threads make no difference to parts, and rigs with parts take long: rigs that differ in
    // payment, packing and faults run only where many seeds are asked for.
    let mut short = PortalsRig::all(SHORT, seeds);
    short.retain(|rig| rig.is_par() && (seeds > FEW || rig.is_usual()));
    let trials = software
        .flat_map(argonet_conformance::trials)
        .chain(long.flat_map(argonet_conformance::trials))
        .chain(short.into_iter().flat_map(argonet_conformance::trials));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
