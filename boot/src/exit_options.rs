//! How a job ends, as the user can set it.

use std::time::Duration;

use argonet_base::JobRank;

use crate::error::BootError;
use crate::exit::signal_number;

/// What a user can say about the end of a job, crashes and backtraces.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitOptions {
    /// `GASNET_EXITTIMEOUT`: how long the ranks have once one has asked for the end; `None` computes it from the three below.
    pub timeout: Option<Duration>,
    /// `GASNET_EXITTIMEOUT_MAX`: the most that is computed.
    pub timeout_max: Duration,
    /// `GASNET_EXITTIMEOUT_MIN`: what a job of no ranks would have.
    pub timeout_min: Duration,
    /// `GASNET_EXITTIMEOUT_FACTOR`: what each rank adds.
    pub timeout_factor: Duration,
    /// `GASNET_CATCH_EXIT`: whether leaving without finalising ends the job.
    pub catch_exit: bool,
    /// `GASNET_NO_CATCH_SIGNAL`: which signals are left alone.
    pub no_catch: SignalList,
    /// `GASNET_FS_SYNC`: whether a rank writes all file systems' buffers when it ends.
    pub fs_sync: bool,
    /// `GASNET_SPAWN_VERBOSE`: whether starting and ending of processes is told on standard error.
    pub spawn_verbose: bool,
    /// `GASNET_BACKTRACE`: whether fatal errors print a backtrace.
    pub backtrace: bool,
    /// `GASNET_BACKTRACE_NODES`: the ranks that may.
    pub backtrace_nodes: RankList,
    /// `GASNET_BACKTRACE_SIGNAL`: the signal that prints one and goes on.
    pub backtrace_signal: Option<i32>,
    /// `GASNET_BACKTRACE_TYPE`: the mechanisms, the first that works is taken.
    pub backtrace_types: Vec<BacktraceType>,
    /// `GASNET_FREEZE`: whether each rank waits for a debugger when it joins.
    pub freeze: bool,
    /// `GASNET_FREEZE_ON_ERROR`: whether a rank waits for a debugger at a fatal error.
    pub freeze_on_error: bool,
    /// `GASNET_FREEZE_SIGNAL`: the signal at which a rank waits for a debugger.
    pub freeze_signal: Option<i32>,
}

impl Default for ExitOptions {
    fn default() -> Self {
        Self {
            timeout: None,
            timeout_max: Duration::from_secs(5),
            timeout_min: Duration::from_secs(1),
            timeout_factor: Duration::from_millis(100),
            catch_exit: true,
            no_catch: SignalList::Some(Vec::new()),
            fs_sync: false,
            spawn_verbose: false,
            backtrace: false,
            backtrace_nodes: RankList::All,
            backtrace_signal: None,
            backtrace_types: vec![BacktraceType::ExecInfo, BacktraceType::Gdb],
            freeze: false,
            freeze_on_error: false,
            freeze_signal: None,
        }
    }
}

/// A list of signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalList {
    /// Every signal (`*`).
    All,
    /// These.
    Some(Vec<i32>),
}

impl SignalList {
    /// Whether it has `signal`.
    #[must_use]
    pub fn contains(&self, signal: i32) -> bool {
        match self {
            Self::All => true,
            Self::Some(list) => list.contains(&signal),
        }
    }
}

/// A list of ranks such as `0,2-4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankList {
    /// Every rank (`*`, or nothing).
    All,
    /// The ranks of these ranges, both ends included.
    Some(Vec<(u32, u32)>),
}

impl RankList {
    /// Whether it has `rank`.
    #[must_use]
    pub fn contains(&self, rank: JobRank) -> bool {
        match self {
            Self::All => true,
            Self::Some(list) => list.iter().any(|&(a, b)| (a..=b).contains(&rank.0)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        let range = |part: &str| {
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
        };
        text.split(',')
            .map(range)
            .collect::<Option<_>>()
            .map(Self::Some)
    }
}

/// A way to get a backtrace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BacktraceType {
    /// The process looks at its own stack, in a copy of itself; the calling thread only.
    ExecInfo,
    /// `gdb`.
    Gdb,
    /// `lldb`.
    Lldb,
    /// `gstack`.
    Gstack,
    /// `pstack`.
    Pstack,
    /// A mechanism of other systems: skipped.
    Foreign,
}

impl BacktraceType {
    const NAMES: [(&'static str, Self); 7] = [
        ("EXECINFO", Self::ExecInfo),
        ("GDB", Self::Gdb),
        ("LLDB", Self::Lldb),
        ("GSTACK", Self::Gstack),
        ("PSTACK", Self::Pstack),
        ("DBX", Self::Foreign),
        ("PRINTSTACK", Self::Foreign),
    ];

    fn parse(text: &str) -> Option<Self> {
        let found = Self::NAMES
            .iter()
            .find(|(name, _)| text.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind)
    }
}

/// The longest exit time-out, a day.
const TIMEOUT_MAX_S: f64 = 86_400.0;

impl ExitOptions {
    /// What the environment says.
    ///
    /// # Errors
    /// [`BootError::BadSetting`], which names variable, value and what is allowed.
    pub fn from_environment() -> Result<Self, BootError> {
        Self::read(|name| {
            let value = std::env::var_os(name)?;
            Some(value.to_string_lossy().trim().to_string())
        })
    }

    /// The one place where the variables are read.
    fn read(value: impl Fn(&str) -> Option<String>) -> Result<Self, BootError> {
        let mut options = Self::default();
        let given = |name: &'static str| value(name).filter(|v| !v.is_empty());
        fn set<T>(
            place: &mut T,
            name: &'static str,
            given: Option<String>,
            allowed: &str,
            parse: impl Fn(&str) -> Option<T>,
        ) -> Result<(), BootError> {
            let Some(value) = given else { return Ok(()) };
            let Some(parsed) = parse(&value) else {
                let allowed = allowed.into();
                return Err(BootError::BadSetting {
                    name,
                    value,
                    allowed,
                });
            };
            *place = parsed;
            Ok(())
        }
        const SECONDS: &str = "seconds from 0 to 86400, a fraction is allowed";
        for (place, name) in [
            (&mut options.timeout_max, "GASNET_EXITTIMEOUT_MAX"),
            (&mut options.timeout_min, "GASNET_EXITTIMEOUT_MIN"),
            (&mut options.timeout_factor, "GASNET_EXITTIMEOUT_FACTOR"),
        ] {
            set(place, name, given(name), SECONDS, seconds)?;
        }
        let name = "GASNET_EXITTIMEOUT";
        let above_0 = |text: &str| seconds(text).filter(|t| t.as_millis() > 0).map(Some);
        let allowed = "seconds above 0 and up to 86400, a fraction is allowed";
        set(&mut options.timeout, name, given(name), allowed, above_0)?;
        for (place, name) in [
            (&mut options.catch_exit, "GASNET_CATCH_EXIT"),
            (&mut options.fs_sync, "GASNET_FS_SYNC"),
            (&mut options.spawn_verbose, "GASNET_SPAWN_VERBOSE"),
            (&mut options.backtrace, "GASNET_BACKTRACE"),
            (&mut options.freeze, "GASNET_FREEZE"),
            (&mut options.freeze_on_error, "GASNET_FREEZE_ON_ERROR"),
        ] {
            set(place, name, given(name), "1, y or yes; 0, n or no", boolean)?;
        }
        for (place, name) in [
            (&mut options.backtrace_signal, "GASNET_BACKTRACE_SIGNAL"),
            (&mut options.freeze_signal, "GASNET_FREEZE_SIGNAL"),
        ] {
            let allowed = "a signal such as SIGUSR1, usr1 or 10";
            set(place, name, given(name), allowed, |text| {
                signal_number(text).map(Some)
            })?;
        }
        let name = "GASNET_NO_CATCH_SIGNAL";
        let allowed = "signals such as SIGSEGV, segv or 11, separated by commas, or *";
        set(&mut options.no_catch, name, given(name), allowed, signals)?;
        let name = "GASNET_BACKTRACE_NODES";
        let allowed = "ranks and ranges such as 0,2-4, or *";
        set(
            &mut options.backtrace_nodes,
            name,
            given(name),
            allowed,
            RankList::parse,
        )?;
        let name = "GASNET_BACKTRACE_TYPE";
        let allowed = "names out of EXECINFO, GDB, LLDB, GSTACK, PSTACK, DBX and PRINTSTACK, separated by commas";
        let types = |text: &str| {
            text.split(',')
                .map(|t| BacktraceType::parse(t.trim()))
                .collect()
        };
        set(
            &mut options.backtrace_types,
            name,
            given(name),
            allowed,
            types,
        )?;
        Ok(options)
    }

    /// How long a job of `ranks` ranks may take to end once one has asked for it.
    #[must_use]
    pub fn timeout_for(&self, ranks: u32) -> Duration {
        let computed = || {
            let most = self.timeout_factor.saturating_mul(ranks);
            self.timeout_max.min(self.timeout_min.saturating_add(most))
        };
        self.timeout
            .unwrap_or_else(computed)
            .max(Duration::from_millis(1))
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    let allowed = (0.0..=TIMEOUT_MAX_S).contains(&seconds);
    allowed.then(|| Duration::from_secs_f64(seconds))
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" => Some(true),
        "0" | "n" | "no" => Some(false),
        _ => None,
    }
}

fn signals(text: &str) -> Option<SignalList> {
    if text == "*" {
        return Some(SignalList::All);
    }
    let numbers = text.split(',').map(|name| signal_number(name.trim()));
    numbers.collect::<Option<_>>().map(SignalList::Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<ExitOptions, BootError> {
        ExitOptions::read(|asked| (asked == name).then(|| value.to_string()))
    }

    #[test]
    fn the_time_out_grows_with_the_ranks_up_to_a_limit_unless_it_is_given() {
        let options = ExitOptions::default();
        assert_eq!(options.timeout_for(4), Duration::from_millis(1400));
        assert_eq!(options.timeout_for(64), Duration::from_secs(5));
        let options = read("GASNET_EXITTIMEOUT", "0.25").unwrap();
        assert_eq!(options.timeout_for(64), Duration::from_millis(250));
        let options = read("GASNET_EXITTIMEOUT_FACTOR", "0").unwrap();
        assert_eq!(options.timeout_for(64), Duration::from_secs(1));
    }

    #[test]
    fn lists_are_read() {
        let options = read("GASNET_NO_CATCH_SIGNAL", "SIGINT, segv,15").unwrap();
        let listed = [libc::SIGINT, libc::SIGSEGV, libc::SIGTERM];
        assert_eq!(options.no_catch, SignalList::Some(listed.to_vec()));
        let all = read("GASNET_NO_CATCH_SIGNAL", "*").unwrap();
        assert!(all.no_catch.contains(libc::SIGHUP) && !options.no_catch.contains(libc::SIGHUP));
        let ranks = read("GASNET_BACKTRACE_NODES", "0,2-4")
            .unwrap()
            .backtrace_nodes;
        let held: Vec<u32> = (0..6).filter(|&r| ranks.contains(JobRank(r))).collect();
        assert_eq!(held, [0, 2, 3, 4]);
        let types = read("GASNET_BACKTRACE_TYPE", "gdb,EXECINFO")
            .unwrap()
            .backtrace_types;
        assert_eq!(types, [BacktraceType::Gdb, BacktraceType::ExecInfo]);
        assert!(!read("GASNET_CATCH_EXIT", "No").unwrap().catch_exit);
        assert_eq!(
            read("GASNET_FREEZE_SIGNAL", "").unwrap(),
            ExitOptions::default()
        );
    }

    #[test]
    fn bad_values_are_named() {
        for (name, value) in [
            ("GASNET_EXITTIMEOUT", "0"),
            ("GASNET_EXITTIMEOUT", "-1"),
            ("GASNET_EXITTIMEOUT_MAX", "inf"),
            ("GASNET_CATCH_EXIT", "maybe"),
            ("GASNET_NO_CATCH_SIGNAL", "INT,*"),
            ("GASNET_BACKTRACE_SIGNAL", "SIGNOTHING"),
            ("GASNET_BACKTRACE_NODES", "1-x"),
            ("GASNET_BACKTRACE_TYPE", "MAGIC"),
        ] {
            let error = read(name, value).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
