//! The channel over rails of datagrams through the suite, in each thread mode; then over a wire
//! that loses, repeats, reorders and changes datagrams, with several seeds.

#[path = "rigs/usnic.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::UsnicRig;

fn main() {
    let trials = UsnicRig::all()
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
