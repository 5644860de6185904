//! Options of a trace by the settings, and their errors.

use std::path::{Path, PathBuf};

use argonet_settings::{
    Letters, STATS_FILE, STATS_MASK, STATS_NODES, Settings, TRACE_FILE, TRACE_FLUSH, TRACE_FORMAT,
    TRACE_LOCAL, TRACE_MASK, TRACE_NODES, TraceFormat,
};

use crate::form::Form;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file of this rank alone.
    Own(PathBuf),
    /// A file that all ranks write to, which rank 0 makes.
    Shared(PathBuf),
}

impl Target {
    /// Reads the name that the user gave; `%` stands for the rank.
    #[must_use]
    pub fn of(name: &Path, rank: u32) -> Self {
        match name.to_str() {
            Some("stdout") => return Self::Stdout,
            Some("stderr" | "-") => return Self::Stderr,
            _ => {}
        }
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let bytes = name.as_os_str().as_bytes();
        if !bytes.contains(&b'%') {
            return Self::Shared(name.to_owned());
        }
        let rank = rank.to_string();
        let mut own = Vec::new();
        for (at, part) in bytes.split(|byte| *byte == b'%').enumerate() {
            if at > 0 {
                own.extend_from_slice(rank.as_bytes());
            }
            own.extend_from_slice(part);
        }
        Self::Own(std::ffi::OsString::from_vec(own).into())
    }
}

/// A file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}: {setting} names {}, which cannot be opened for writing: {cause}", path.display())]
pub struct TraceError {
    /// Where.
    pub rank: u32,
    /// The setting that names the file.
    pub setting: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
    pub cause: std::io::Error,
}

/// Options of a rank for traces and counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub size: u32,
    /// Where the trace goes, if there is one anywhere.
    pub trace: Option<Target>,
    /// Whether this rank traces.
    pub traces: bool,
    /// Where statistics go, if anywhere.
    pub stats: Option<Target>,
    /// Whether this rank counts.
    pub counts: bool,
    /// The letters that are traced.
    pub trace_letters: Letters,
    /// The letters that are counted.
    pub stats_letters: Letters,
    /// Whether each record is written at once.
    pub flush: bool,
    /// Whether puts and gets to the rank itself are traced.
    pub local: bool,
    /// How.
    pub form: Form,
}

impl Options {
    /// Options of a rank by `settings`.
    #[must_use]
    pub fn of(settings: &Settings, rank: u32, size: u32) -> Self {
        let trace = settings.get(&TRACE_FILE);
        let form = match settings.get(&TRACE_FORMAT) {
            TraceFormat::Text => Form::Text,
            TraceFormat::Perfetto => Form::Json,
            TraceFormat::Auto => Form::by_name(trace.as_deref()),
        };
        Self {
            rank,
            size,
            trace: trace.map(|name| Target::of(&name, rank)),
            traces: settings.get(&TRACE_NODES).contains(rank),
            stats: settings
                .get(&STATS_FILE)
                .map(|name| Target::of(&name, rank)),
            counts: settings.get(&STATS_NODES).contains(rank),
            trace_letters: settings.get(&TRACE_MASK),
            stats_letters: settings.get(&STATS_MASK),
            flush: settings.get(&TRACE_FLUSH),
            local: settings.get(&TRACE_LOCAL),
            form,
        }
    }

    /// Whether this rank has anything to do.
    #[must_use]
    pub fn is_on(&self) -> bool {
        (self.trace.is_some() && self.traces) || (self.stats.is_some() && self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let own = |path: &str| Target::Own(path.into());
        for (name, target) in [
            ("stdout", Target::Stdout),
            ("stderr", Target::Stderr),
            ("-", Target::Stderr),
            ("trace-%", own("trace-12")),
            ("%/%.json", own("12/12.json")),
            ("a/trace", Target::Shared("a/trace".into())),
            ("./stdout", Target::Shared("./stdout".into())),
        ] {
            assert_eq!(Target::of(Path::new(name), 12), target, "{name}");
        }
    }

    fn options(given: &[(&str, &str)], rank: u32) -> Options {
        let given = given
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Options::of(&Settings::from_pairs(given).unwrap(), rank, 8)
    }

    #[test]
    fn lists_of_ranks_and_forms() {
        assert!(!options(&[], 0).is_on());
        let given = [("GASNET_TRACEFILE", "t"), ("GASNET_TRACENODES", "0,2-3")];
        let on: Vec<u32> = (0..8).filter(|&r| options(&given, r).is_on()).collect();
        assert_eq!(on, [0, 2, 3]);
        for (name, format, form) in [
            ("t.json", "auto", Form::Json),
            ("t.pftrace", "auto", Form::Json),
            ("t.txt", "auto", Form::Text),
            ("json", "auto", Form::Text),
            ("t.json", "text", Form::Text),
            ("t", "perfetto", Form::Json),
        ] {
            let given = [("GASNET_TRACEFILE", name), ("ARGONET_TRACE_FORMAT", format)];
            assert_eq!(options(&given, 1).form, form, "{name} {format}");
        }
    }

    #[test]
    fn bad_masks_and_lists_are_reported_by_name() {
        for (name, value) in [
            ("GASNET_TRACEMASK", "GZ"),
            ("GASNET_STATSMASK", "gets"),
            ("GASNET_TRACENODES", "3-1"),
            ("GASNET_STATSNODES", "one"),
            ("GASNET_TRACEFLUSH", "maybe"),
            ("ARGONET_TRACE_FORMAT", "xml"),
        ] {
            let error = Settings::from_pairs([(name.into(), value.into())]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }
}
