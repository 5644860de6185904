//! The tcp conduit through the suite: each thread mode, over connected loopback sockets in one
//! process; then over connections that break and are made again, for several seeds, of which
//! `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/tcp.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::TcpRig;

fn main() {
    let seeds = argonet_conformance::seeds_asked().unwrap_or(2);
    let trials = TcpRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
