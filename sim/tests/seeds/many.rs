//! The seeds that are run, and the record of those that fail.

use std::sync::atomic::{AtomicU64, Ordering};

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A number that the environment gives.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => number(&text).unwrap_or_else(|| panic!("{name}={text}: not a number")),
        Err(_) => default,
    }
}

/// So many seeds as the variable says, from `ARGONET_SIM_BASE` on.
pub(crate) fn seeds(variable: &str, default: u64) -> Vec<u64> {
    let base = setting("ARGONET_SIM_BASE", 0x1000);
    let count = setting(variable, default);
    println!("{count} seeds from {base:#x}");
    (0..count).map(|i| base.wrapping_add(i)).collect()
}

/// The seeds of a file: a line each, with a comment.
pub(crate) fn kept(file: &str) -> Vec<u64> {
    let lines = file
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| number(line).unwrap_or_else(|| panic!("no seed: {line}")))
        .collect()
}

/// Runs seeds on all processors.
///
/// `run` gives the report of one that failed; `replay` is the option that replays it.
pub(crate) fn none_fails(seeds: &[u64], replay: &str, run: impl Fn(u64) -> Option<String> + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed = std::thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            // Three failures a thread are enough for a report.
            while failed.len() < 3
                && let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize)
            {
                failed.extend(run(*seed).map(|report| (*seed, report)));
            }
            failed
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().flat_map(|w| w.join().unwrap());
        ends.collect::<Vec<_>>()
    });
    for (seed, report) in &failed {
        println!("{report}");
        println!("to replay: cargo run -p argonet-sim -- {replay} {seed:#x} --trace");
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}
