//! The print-out of `GASNET_VERBOSEENV`: every setting as it is read, in GASNet's shape.

use std::collections::BTreeSet;
use std::fmt;

type Write = Box<dyn FnMut(&str) + Send>;

/// Where a line of a setting goes that is read for the first time.
#[derive(Default)]
pub(crate) struct Log {
    seen: BTreeSet<&'static str>,
    sink: Sink,
}

enum Sink {
    /// Kept until it is known which rank this is.
    Held(Vec<String>),
    Open(Write),
    Closed,
}

impl Default for Sink {
    fn default() -> Self {
        Self::Held(Vec::new())
    }
}

impl Log {
    pub(crate) fn add(&mut self, name: &'static str, shown: &str, is_default: bool) {
        if matches!(self.sink, Sink::Closed) || !self.seen.insert(name) {
            return;
        }
        let line = line(name, shown, is_default);
        match &mut self.sink {
            Sink::Held(lines) => lines.push(line),
            Sink::Open(write) => write(&line),
            Sink::Closed => {}
        }
    }

    pub(crate) fn open(&mut self, mut write: Write) {
        if let Sink::Held(lines) = &self.sink {
            lines.iter().for_each(|line| write(line));
        }
        self.sink = Sink::Open(write);
    }

    pub(crate) fn close(&mut self) {
        *self = Self {
            seen: BTreeSet::new(),
            sink: Sink::Closed,
        };
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

/// Columns of GASNet's print-out up to which `(default)` is pushed right, and its least width.
const COLUMNS: usize = 55;
const LEAST: usize = 10;

/// One line of the print-out, as GASNet shapes it.
#[must_use]
pub fn line(name: &str, shown: &str, is_default: bool) -> String {
    let shown = match shown {
        "" => "*empty*",
        shown => shown,
    };
    let used = name.len() + shown.len();
    let width = COLUMNS.saturating_sub(used).max(LEAST);
    let mark = if is_default { "   (default)" } else { "" };
    let line = format!("ENV parameter: {name} = {shown}{mark:>width$}");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_shape_is_gasnets() {
        assert_eq!(
            line("GASNET_X", "5 MB", true),
            "ENV parameter: GASNET_X = 5 MB                                  (default)"
        );
        assert_eq!(
            line("GASNET_X", "5MB (5 MB)", false),
            "ENV parameter: GASNET_X = 5MB (5 MB)"
        );
        let long = "v".repeat(60);
        assert!(line("GASNET_X", &long, true).ends_with("v   (default)"));
    }

    #[test]
    fn lines_are_held_then_written_once_each() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut log = Log::default();
        log.add("A", "1", false);
        log.add("A", "1", false);
        let into = Arc::clone(&lines);
        log.open(Box::new(move |line| {
            into.lock().unwrap().push(line.to_owned())
        }));
        log.add("B", "2", false);
        log.add("A", "1", false);
        assert_eq!(
            *lines.lock().unwrap(),
            ["ENV parameter: A = 1", "ENV parameter: B = 2"]
        );
        log.close();
        log.add("C", "3", false);
        assert_eq!(lines.lock().unwrap().len(), 2);
    }
}
