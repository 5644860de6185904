//! The smp conduit through the suite: each thread mode, and both ways to order sleep and send.

#[path = "rigs/smp.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::SmpRig;

fn main() {
    let trials = SmpRig::all()
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
