//! Something measured beside its limit, in alternating chunks.

use std::time::Instant;

const CHUNKS: usize = 41;

/// One thing that is measured: `ours` and `limit` do it so often, and say how long one took, in ns.
pub(crate) struct Case<'a> {
    pub(crate) name: &'static str,
    pub(crate) ours: Box<dyn FnMut() -> f64 + 'a>,
    pub(crate) limit: Box<dyn FnMut() -> f64 + 'a>,
}

/// Time of each of `count` times in `f`, in ns.
pub(crate) fn timed(count: u64, f: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    f();
    begun.elapsed().as_nanos() as f64 / count as f64
}

fn median(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values.len() / 4, values.len() / 2, values.len() * 3 / 4].map(|i| values[i])
}

/// Keeps this thread on a core.
pub(crate) fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    // A machine with one core has nothing to choose.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Runs the cases that the command line names, or all, and prints a line for each.
pub(crate) fn run(mut cases: Vec<Case<'_>>, limit: &str) {
    let arguments = || std::env::args().skip(1);
    let filter: Vec<String> = arguments().filter(|arg| !arg.starts_with('-')).collect();
    if arguments().any(|arg| arg == "--ours") {
        cases
            .iter_mut()
            .for_each(|case| case.limit = Box::new(|| 1.0));
    }
    cases.retain(|case| filter.is_empty() || filter.iter().any(|f| case.name.contains(f.as_str())));
    println!(
        "{:<20} {:>11} {:>11} {:>7}  {:<18} {:>9} {:>9} {:>7}  ({limit})",
        "", "ours ns", "limit ns", "ratio", "quartiles", "best ours", "limit", "ratio"
    );
    for case in &mut cases {
        let (mut ours, mut limit, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..CHUNKS {
            let pair = ((case.ours)(), (case.limit)());
            ours.push(pair.0);
            limit.push(pair.1);
            ratios.push(pair.0 / pair.1);
        }
        let best = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let bests = (best(&ours), best(&limit));
        let (ours, limit, ratio) = (median(&mut ours), median(&mut limit), median(&mut ratios));
        let quartiles = format!("{:.3} to {:.3}", ratio[0], ratio[2]);
        println!(
            "{:<20} {:>11.1} {:>11.1} {:>7.3}  {quartiles:<18} {:>9.1} {:>9.1} {:>7.3}",
            case.name,
            ours[1],
            limit[1],
            ratio[1],
            bests.0,
            bests.1,
            bests.0 / bests.1
        );
    }
}
