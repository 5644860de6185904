//! Settings of the end of a job.

use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{
    BACKTRACE, BACKTRACE_NODES, BACKTRACE_SIGNAL, BACKTRACE_TYPE, BacktraceType, CATCH_EXIT,
    EXIT_TIMEOUT, EXIT_TIMEOUT_FACTOR, EXIT_TIMEOUT_MAX, EXIT_TIMEOUT_MIN, FREEZE, FREEZE_ON_ERROR,
    FREEZE_SIGNAL, FS_SYNC, NO_CATCH_SIGNAL, NodeSet, Settings, SignalNumber, Signals,
};

/// The user's settings for the end of a rank's process, in a place that signal handlers can read.
#[derive(Debug, Clone)]
pub(crate) struct ExitOptions {
    timeout: Option<Duration>,
    timeout_max: Duration,
    timeout_min: Duration,
    timeout_factor: Duration,
    /// Whether leaving without finalizing ends the job.
    pub(crate) catch_exit: bool,
    no_catch: Option<Signals>,
    /// Whether a rank writes all file systems' buffers when it ends.
    pub(crate) fs_sync: bool,
    /// Whether fatal errors of this job print a backtrace, on the ranks of `backtrace_nodes`.
    backtrace: bool,
    backtrace_nodes: NodeSet,
    /// The signal that prints one and goes on.
    pub(crate) backtrace_signal: Option<i32>,
    /// The mechanisms; the first that works is taken.
    pub(crate) backtrace_types: Vec<BacktraceType>,
    /// Whether each rank waits for a debugger when it joins.
    pub(crate) freeze: bool,
    /// Whether a rank waits for a debugger at a fatal error.
    pub(crate) freeze_on_error: bool,
    /// The signal at which a rank waits for a debugger.
    pub(crate) freeze_signal: Option<i32>,
}

impl Default for ExitOptions {
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

impl ExitOptions {
    pub(crate) fn new(settings: &Settings) -> Self {
        let signal = |signal: Option<SignalNumber>| signal.map(|SignalNumber(number)| number);
        let types = settings.get(&BACKTRACE_TYPE);
        Self {
            timeout: settings.get(&EXIT_TIMEOUT),
            timeout_max: settings.get(&EXIT_TIMEOUT_MAX),
            timeout_min: settings.get(&EXIT_TIMEOUT_MIN),
            timeout_factor: settings.get(&EXIT_TIMEOUT_FACTOR),
            catch_exit: settings.get(&CATCH_EXIT),
            no_catch: settings.get(&NO_CATCH_SIGNAL),
            fs_sync: settings.get(&FS_SYNC),
            backtrace: settings.get(&BACKTRACE),
            backtrace_nodes: settings.get(&BACKTRACE_NODES),
            backtrace_signal: signal(settings.get(&BACKTRACE_SIGNAL)),
            backtrace_types: types
                .unwrap_or_else(|| vec![BacktraceType::Execinfo, BacktraceType::Gdb]),
            freeze: settings.get(&FREEZE),
            freeze_on_error: settings.get(&FREEZE_ON_ERROR),
            freeze_signal: signal(settings.get(&FREEZE_SIGNAL)),
        }
    }

    /// Time that a job of `ranks` ranks may take to end once a rank has asked for it.
    pub(crate) fn timeout_for(&self, ranks: u32) -> Duration {
        let computed = || {
            let all = self.timeout_factor.saturating_mul(ranks);
            self.timeout_max.min(self.timeout_min.saturating_add(all))
        };
        self.timeout.unwrap_or_else(computed)
    }

    /// Whether `signal` may be caught.
    pub(crate) fn catches(&self, signal: i32) -> bool {
        let left_alone = |list: &Signals| list.contains(SignalNumber(signal));
        !self.no_catch.as_ref().is_some_and(left_alone)
    }

    /// Whether a fatal error of `rank` prints a backtrace.
    pub(crate) fn backtrace(&self, rank: JobRank) -> bool {
        self.backtrace && self.backtrace_nodes.contains(rank.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_out_grows_with_the_ranks_up_to_a_limit_unless_it_is_given() {
        let options = ExitOptions::default();
        assert_eq!(options.timeout_for(4), Duration::from_millis(1400));
        assert_eq!(options.timeout_for(64), Duration::from_secs(5));
        let given = Some(Duration::from_millis(250));
        let options = ExitOptions {
            timeout: given,
            ..options
        };
        assert_eq!(Some(options.timeout_for(64)), given);
    }
}
