//! Of the reliable layer of datagrams alone.
//!
//! `ARGONET_DATAGRAM_SEEDS` is how many, `ARGONET_SIM_BASE` the first.

use crate::many::{self, none_fails};
use argonet_sim::datagrams::{DatagramShape, run_datagrams_seed};

/// Seeds of a run that says nothing else.
const SEEDS: u64 = 200;

fn run(seed: u64) -> Option<String> {
    let report = run_datagrams_seed(seed).unwrap();
    (!report.ok()).then(|| report.to_string())
}

/// spec U2: each channel's records arrive once and in order.
#[test]
fn seeds_of_datagrams() {
    let seeds = many::seeds("ARGONET_DATAGRAM_SEEDS", SEEDS);
    none_fails(&seeds, "--datagrams --seed", run);
}

#[test]
fn the_same_seed_is_the_same_run_of_datagrams() {
    for seed in [3, 0x77, 0xdead] {
        let here = run_datagrams_seed(seed).unwrap();
        let elsewhere = std::thread::spawn(move || run_datagrams_seed(seed).unwrap());
        assert_eq!(here, elsewhere.join().unwrap());
        let other = run_datagrams_seed(seed + 1).unwrap();
        assert_ne!(here.digest, other.digest);
    }
}

#[test]
fn seeds_of_datagrams_bring_every_kind_of_fault() {
    let shapes: Vec<_> = (0..300).map(DatagramShape::draw).collect();
    let some = |what: fn(&DatagramShape) -> bool| shapes.iter().filter(|shape| what(shape)).count();
    for (name, count) in [
        ("no fault", some(|shape| shape.wire.drop == 0)),
        ("losses", some(|shape| shape.wire.drop > 100_000)),
        ("repeats", some(|shape| shape.wire.duplicate > 100_000)),
        ("late ones", some(|shape| shape.wire.delay > 100_000)),
        ("changed ones", some(|shape| shape.wire.corrupt > 1000)),
        (
            "codes alone",
            some(|shape| shape.sealed && !shape.encrypted),
        ),
        ("encrypted ones", some(|shape| shape.encrypted)),
        ("pauses", some(|shape| shape.pauses > 10_000)),
        ("two queues", some(|shape| shape.wire.has_two_queues)),
        ("one queue", some(|shape| !shape.wire.has_two_queues)),
        ("paths that change", some(|shape| shape.wire.mtus.len() > 1)),
    ] {
        assert!(count > 20, "{name}: {count} of 300");
    }
}
