//! Many seeds, each a job of whole engines on a cluster that fails in its own way.
//!
//! `ARGONET_SIM_SEEDS` is how many, `ARGONET_SIM_BASE` the first.
#![forbid(unsafe_code)]

use argonet_sim::workload::{SeedReport, run_seed};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of a run that says nothing else.
const SEEDS: u64 = 200;

/// Seeds that have failed once.
const KEPT: &str = include_str!("../seeds.txt");

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => number(&text).unwrap_or_else(|| panic!("{name}={text}: not a number")),
        Err(_) => default,
    }
}

fn kept() -> Vec<u64> {
    let lines = KEPT
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| number(line).unwrap_or_else(|| panic!("seeds.txt: {line}")))
        .collect()
}

/// Runs seeds on all processors; the reports of those that failed.
fn run_all(seeds: &[u64]) -> Vec<SeedReport> {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            // Enough of them is enough.
            while failed.len() < 3
                && let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize)
            {
                let report = run_seed(*seed, None).unwrap();
                if !report.ok() {
                    failed.push(report);
                }
            }
            failed
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    })
}

fn none_fails(seeds: &[u64]) {
    let failed = run_all(seeds);
    for report in &failed {
        println!("{report}");
        println!(
            "to replay: cargo run -p argonet-sim -- --seed {:#x} --trace",
            report.seed
        );
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}

#[test]
fn seeds_that_failed_once() {
    none_fails(&kept());
}

#[test]
fn seeds() {
    let base = setting("ARGONET_SIM_BASE", 0x1000);
    let count = setting("ARGONET_SIM_SEEDS", SEEDS);
    println!("{count} seeds from {base:#x}");
    let seeds: Vec<u64> = (0..count).map(|i| base.wrapping_add(i)).collect();
    none_fails(&seeds);
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
fn a_trace_changes_nothing_and_tells_all() {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&lines);
    let trace = move |line: std::fmt::Arguments<'_>| sink.lock().unwrap().push(line.to_string());
    let traced = run_seed(3, Some(Box::new(trace))).unwrap();
    assert_eq!(traced, run_seed(3, None).unwrap());
    assert_eq!(lines.lock().unwrap().len() as u64, traced.outcome.events);
}
