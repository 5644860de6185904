//! Signals by name or number.

use std::fmt;

/// A signal of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalNumber(pub i32);

/// Without those that end or stop a process in any case (KILL and STOP).
const NAMES: [(&str, i32); 29] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

/// Real-time signals have numbers up to this and no name.
const LAST: i32 = 64;
/// The first that the C library leaves to programs.
const FIRST_REAL_TIME: i32 = 34;

impl SignalNumber {
    /// Reads a name in any case, with or without `SIG`, or a number; `None` if there is no such
    /// signal, or none that a process can handle.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let number = text.parse().ok()?;
            let known = NAMES.iter().any(|(_, n)| *n == number);
            return (known || (FIRST_REAL_TIME..=LAST).contains(&number)).then_some(Self(number));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, number)| Self(*number))
    }
}

impl fmt::Display for SignalNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Some signals, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signals {
    /// Every signal: `*`.
    All,
    /// These.
    Some(Vec<SignalNumber>),
}

impl Signals {
    /// Reads `*`, or signals separated by commas or blanks; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.trim() == "*" {
            return Some(Self::All);
        }
        let items = text.split([',', ' ']).filter(|item| !item.is_empty());
        let signals: Option<Vec<_>> = items.map(SignalNumber::parse).collect();
        signals
            .filter(|signals| !signals.is_empty())
            .map(Self::Some)
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(&self, signal: SignalNumber) -> bool {
        match self {
            Self::All => true,
            Self::Some(signals) => signals.contains(&signal),
        }
    }
}

impl fmt::Display for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Some(signals) => {
                let texts: Vec<String> = signals.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SignalNumber, Signals};

    #[test]
    fn names_and_numbers() {
        for text in ["SIGTERM", "term", " SigTerm ", "15"] {
            assert_eq!(SignalNumber::parse(text), Some(SignalNumber(15)), "{text}");
        }
        for text in [
            "",
            "0",
            "9",
            "KILL",
            "SIGSTOP",
            "33",
            "65",
            "-1",
            "15x",
            "SIG",
            "TERMINATE",
        ] {
            assert_eq!(SignalNumber::parse(text), None, "{text}");
        }
        let list = Signals::parse("SIGINT, usr1 40").unwrap();
        assert_eq!(list.to_string(), "SIGINT,SIGUSR1,40");
        assert!(list.contains(SignalNumber(40)) && !list.contains(SignalNumber(15)));
        assert!(Signals::parse("*").unwrap().contains(SignalNumber(11)));
        assert_eq!(Signals::parse(","), None);
        assert_eq!(Signals::parse("INT,KILL"), None);
    }
}
