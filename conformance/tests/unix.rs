//! The channel over the rails of Unix sockets through the suite, in each thread mode; then over two
//! rails between each two ranks.

#[path = "rigs/unix.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::UnixRig;

fn main() {
    let trials = UnixRig::all()
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
