//! The forms of a trace, and the fields that all of them need: thread, time, place in the client's
//! source.

use core::fmt::{self, Write};
use std::path::Path;

use argonet_settings::Letter;

use crate::event::Event;
use crate::{json, text};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line each, as GASNet writes them.
    Text,
    /// Trace events in JSON: an array, one event a line.
    Json,
}

impl Form {
    /// As the name of a file ends.
    pub(crate) fn by_name(name: Option<&Path>) -> Self {
        match name.and_then(|name| name.extension()?.to_str()) {
            Some("json" | "pftrace") => Self::Json,
            _ => Self::Text,
        }
    }

    /// The beginning of a file.
    pub(crate) const fn opening(self) -> &'static [u8] {
        match self {
            Self::Text => b"",
            // The first element, so that every other begins with a comma.
            Self::Json => b"[\n{\"name\":\"argonet\",\"ph\":\"M\",\"pid\":0,\"ts\":0,\"args\":{}}",
        }
    }

    /// The end of a file.
    pub(crate) const fn closing(self) -> &'static [u8] {
        match self {
            Self::Text => b"",
            Self::Json => b"\n]\n",
        }
    }

    /// Writes an event.
    ///
    /// `details` is whether addresses are wanted.
    pub(crate) fn event(
        self,
        to: &mut impl Write,
        who: &Who<'_>,
        event: &Event<'_>,
        details: bool,
    ) -> fmt::Result {
        match self {
            Self::Text => text::event(to, who, event, details),
            Self::Json => json::event(to, who, event, details),
        }
    }

    /// Writes that a handler begins.
    pub(crate) fn begins(
        self,
        to: &mut impl Write,
        who: &Who<'_>,
        event: &Event<'_>,
        details: bool,
    ) -> fmt::Result {
        match self {
            Self::Text => text::event(to, who, event, details),
            Self::Json => json::begins(to, who, event, details),
        }
    }

    /// Writes that a handler has ended, where that is said apart.
    pub(crate) fn ends(self, to: &mut impl Write, who: &Who<'_>, event: &Event<'_>) -> fmt::Result {
        match self {
            Self::Text => Ok(()),
            Self::Json => json::ends(to, who, event),
        }
    }

    /// Writes a message of one or several lines.
    pub(crate) fn note(
        self,
        to: &mut impl Write,
        who: &Who<'_>,
        at_ns: u64,
        letter: Letter,
        message: &str,
    ) -> fmt::Result {
        match self {
            Self::Text => text::note(to, who, at_ns, letter, message),
            Self::Json => json::note(to, who, at_ns, letter, message),
        }
    }
}

/// The thread that writes, and its place in the client's source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) rank: u32,
    /// The system's number of the thread.
    pub(crate) thread: u32,
    /// When the job began, by the same clock as events.
    pub(crate) epoch_ns: u64,
    pub(crate) source: Option<(&'a str, u32)>,
}

impl Who<'_> {
    /// Time of the job; 0 for events before its start.
    pub(crate) fn time(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.epoch_ns)
    }
}

/// A time with six digits after the point, in units of 10^9 (seconds) or 10^3 (microseconds, three
/// digits) nanoseconds.
pub(crate) struct Seconds(pub(crate) u64);
pub(crate) struct Micros(pub(crate) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:06}",
            self.0 / 1_000_000_000,
            self.0 / 1_000 % 1_000_000
        )
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}
