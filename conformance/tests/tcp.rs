//! The tcp conduit through the suite: each thread mode, over connected loopback sockets in one
//! process; then over connections that break and are made again, for several seeds, of which
//! `CONFORMANCE_SEEDS` says how many.

#[path = "rigs/tcp.rs"]
mod rig;

use libtest_mimic::Arguments;
use rig::TcpRig;

fn main() {
    let seeds = std::env::var("CONFORMANCE_SEEDS").ok();
    let seeds = seeds.map_or(2, |seeds| {
        seeds.parse().expect("CONFORMANCE_SEEDS is a number")
    });
    let trials = TcpRig::all(seeds)
        .into_iter()
        .flat_map(argonet_conformance::trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
