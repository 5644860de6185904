//! Costs of a run for its machine.

use core::fmt;

/// Processor time of the thread that ran it, and the most memory that the process had meanwhile.
///
/// Time by the clock says more about other work of the machine.
pub(crate) struct Cost {
    processor_s: Option<f64>,
    most_mib: Option<u64>,
}

impl Cost {
    /// Runs something.
    pub(crate) fn of<T>(run: impl FnOnce() -> T) -> (T, Self) {
        // From here on the system counts the most memory anew. Where it does not, that of the runs
        // before counts, too.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let before = processor_ns();
        let result = run();
        let took = processor_ns()
            .zip(before)
            .map(|(after, before)| after - before);
        let cost = Self {
            processor_s: took.map(|ns| ns as f64 / 1e9),
            most_mib: most_kib().map(|kib| kib >> 10),
        };
        (result, cost)
    }
}

/// Processor time of this thread.
fn processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn most_kib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor_s {
            Some(seconds) => write!(f, "{seconds:.0} | ")?,
            None => f.write_str("? | ")?,
        }
        match self.most_mib {
            Some(mib) => write!(f, "{mib}"),
            None => f.write_str("?"),
        }
    }
}
