//! Over the portals conduit.
//!
//! `ARGONET_PORTALS_SEEDS` is how many, `ARGONET_SIM_BASE` the first.

use crate::many::{self, kept, none_fails};
use argonet_sim::portals::{PortalsShape, run_portals_seed};

/// Seeds of a run that says nothing else.
const SEEDS: u64 = 200;

/// Seeds that have failed once.
const KEPT: &str = include_str!("../../portals-seeds.txt");

fn run(seed: u64) -> Option<String> {
    let report = run_portals_seed(seed, None).unwrap();
    (!report.ok()).then(|| report.to_string())
}

#[test]
fn portals_seeds_that_failed_once() {
    none_fails(&kept(KEPT), "--portals --seed", run);
}

#[test]
fn seeds_over_portals() {
    none_fails(
        &many::seeds("ARGONET_PORTALS_SEEDS", SEEDS),
        "--portals --seed",
        run,
    );
}

#[test]
fn the_same_seed_is_the_same_run_over_portals() {
    // Without faults an interface asks the processor's clock when it tries again.
    let faulty = |seed: &u64| PortalsShape::draw(*seed).faults.seed != 0;
    for seed in (1..).filter(faulty).take(3) {
        let here = run_portals_seed(seed, None).unwrap();
        let elsewhere = std::thread::spawn(move || run_portals_seed(seed, None).unwrap());
        assert_eq!(here, elsewhere.join().unwrap());
    }
}

/// All that a seed may bring is brought by some of the first few hundred.
#[test]
fn seeds_bring_every_kind_of_fault() {
    let shapes: Vec<_> = (0..300).map(PortalsShape::draw).collect();
    let some = |what: fn(&PortalsShape) -> bool| shapes.iter().filter(|shape| what(shape)).count();
    for (name, count) in [
        ("no fault", some(|shape| shape.faults.late_calls == 0)),
        ("delay", some(|shape| shape.faults.delay > 0)),
        ("reorder", some(|shape| shape.faults.reorder > 0)),
        ("slow targets", some(|shape| shape.faults.slow_target > 0)),
        ("no match", some(|shape| shape.faults.no_match > 0)),
        ("full queues", some(PortalsShape::loses_events)),
        ("no credits", some(|shape| !shape.sizes.flow_control)),
        ("one chunk", some(|shape| shape.sizes.send_chunks == 1)),
        ("four tickets", some(|shape| shape.sizes.messages == 4)),
    ] {
        assert!(count > 5, "{name}: {count} of 300");
    }
}
