//! The machine on which the figures hold.

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Model of its processor.
    pub(crate) processor: String,
    /// Processors that this process may use.
    pub(crate) processors: usize,
    /// Name of the operating system.
    pub(crate) system: String,
    /// Release of its kernel.
    pub(crate) kernel: String,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            processor: field("/proc/cpuinfo", "model name", ':').unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            system: field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_else(unknown),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} processor(s) of {}, {}, Linux {}",
            self.processors, self.processor, self.system, self.kernel
        )
    }
}

/// The first value of a name in a file of names and values.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// Runnable processes over the last minute, as the kernel averages them.
pub(crate) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
