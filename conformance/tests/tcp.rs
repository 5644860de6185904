//! The tcp conduit through the suite: each thread mode, over connected loopback sockets in one process.

#[path = "rigs/tcp.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::TcpRig;

fn main() {
    let trials = TcpRig::all()
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
