//! On a cluster that fails in its own way.
//!
//! `ARGONET_SIM_SEEDS` is how many, `ARGONET_SIM_BASE` the first.

use crate::many::{self, kept, none_fails};
use argonet_sim::workload::run_seed;

/// Seeds of a run that says nothing else.
const SEEDS: u64 = 200;

/// Seeds that have failed once.
const KEPT: &str = include_str!("../../seeds.txt");

fn run(seed: u64) -> Option<String> {
    let report = run_seed(seed, None).unwrap();
    (!report.ok()).then(|| report.to_string())
}

#[test]
fn seeds_that_failed_once() {
    none_fails(&kept(KEPT), "--seed", run);
}

#[test]
fn seeds() {
    none_fails(&many::seeds("ARGONET_SIM_SEEDS", SEEDS), "--seed", run);
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 0x77, 0xdead] {
        let here = run_seed(seed, None).unwrap();
        let elsewhere = std::thread::spawn(move || run_seed(seed, None).unwrap());
        assert_eq!(here, elsewhere.join().unwrap());
        let other = run_seed(seed + 1, None).unwrap();
        assert_ne!(here.outcome.digest, other.outcome.digest);
    }
}

#[test]
fn a_trace_changes_nothing_and_records_all() {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&lines);
    let trace = move |line: std::fmt::Arguments<'_>| sink.lock().unwrap().push(line.to_string());
    let traced = run_seed(3, Some(Box::new(trace))).unwrap();
    assert_eq!(traced, run_seed(3, None).unwrap());
    assert_eq!(lines.lock().unwrap().len() as u64, traced.outcome.events);
}
