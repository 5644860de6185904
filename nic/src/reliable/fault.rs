//! Paths that carry no datagrams, or not all, in words.

use argonet_base::JobRank;
use core::fmt;
use core::time::Duration;

use super::path::PathState;

/// What is wrong with the path from an end to another one, as far as the evidence goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PathFault {
    /// The other end has answered before, and does not any more.
    Silent,
    /// Nothing of the other end has ever come; what arrives there is not known.
    Unheard,
    /// Nothing passes in either direction.
    NoWay,
    /// Datagrams come from there, and none arrives there.
    OneWay,
    /// Short ones arrive there, and none of this length.
    TooLong {
        /// Bytes of the datagram, without the headers of UDP and below.
        datagram_bytes: usize,
    },
}

impl PathFault {
    /// What is wrong between two ends, of which each knows a part, and whether it is the path from
    /// the second to the first; `datagram_bytes` is the full length.
    ///
    /// Nothing, if what one does not know the other does.
    #[must_use]
    pub fn between(
        here: PathState,
        there: PathState,
        datagram_bytes: usize,
    ) -> Option<(Self, bool)> {
        let arrives_there = here.answered || there.heard;
        let arrives_here = here.heard || there.answered;
        let too_long = Self::TooLong { datagram_bytes };
        match (arrives_there, arrives_here) {
            (false, false) => Some((Self::NoWay, false)),
            (false, true) => Some((Self::OneWay, false)),
            (true, false) => Some((Self::OneWay, true)),
            (true, true) if here.misses_full() => Some((too_long, false)),
            (true, true) if there.misses_full() => Some((too_long, true)),
            (true, true) => None,
        }
    }

    /// What to change where a provider of libfabric carries datagrams.
    fn advice_over_fabric(self) -> &'static str {
        match self {
            Self::Silent => SILENT_ADVICE,
            Self::Unheard | Self::NoWay | Self::OneWay => {
                "let what the provider sends pass the firewalls of both hosts, or choose another provider with ARGONET_USNIC_PROVIDER or a network that they share with ARGONET_TCP_INTERFACES"
            }
            Self::TooLong { .. } => {
                "a part of the path takes no packets of that length: raise its MTU, or use sockets (ARGONET_USNIC_NIC=udp), whose datagrams follow the path"
            }
        }
    }

    /// What to change.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Silent => SILENT_ADVICE,
            Self::Unheard | Self::NoWay | Self::OneWay => {
                "let UDP pass the firewalls of both hosts (to ports of ARGONET_TCP_PORTS, where it is set), or choose a network that they share with ARGONET_TCP_INTERFACES"
            }
            Self::TooLong { .. } => {
                "a part of the path takes no packets of that length: raise its MTU to 1280 or more, or use the conduit tcp"
            }
        }
    }
}

/// Advice to the user of a job whose peer does not answer any more; tcp says the same.
const SILENT_ADVICE: &str = "see whether the program there still runs, and whether a firewall or ARGONET_TCP_INTERFACES keeps the hosts apart";

/// A fault, for how long it has been seen, and how often the oldest datagram was sent; 0: it was
/// not.
pub(crate) struct Words {
    pub(crate) fault: PathFault,
    pub(crate) silent: Duration,
    pub(crate) sends: u32,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.silent.as_secs_f64();
        match self.fault {
            PathFault::Silent => write!(f, "it has answered no datagram for {seconds:.1} s")?,
            PathFault::Unheard => write!(f, "no datagram of it has come within {seconds:.1} s")?,
            PathFault::NoWay => {
                write!(f, "no datagram passes, either way, within {seconds:.1} s")?;
            }
            PathFault::OneWay => f.write_str(
                "the path is one-way: datagrams come from there, and none arrives there",
            )?,
            PathFault::TooLong { datagram_bytes } => write!(
                f,
                "short datagrams arrive there, and none of {datagram_bytes} bytes does"
            )?,
        }
        match self.sends {
            0 => Ok(()),
            1 => f.write_str(", after 1 send of the oldest"),
            sends => write!(f, ", after {sends} sends of the oldest"),
        }
    }
}

/// An end of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathEnd {
    /// The rank, or nothing where an end is a host.
    pub rank: Option<JobRank>,
    /// The name of its host; empty if it is not known.
    pub host: String,
    /// Where it gets datagrams, in words, if that is known.
    pub place: Option<String>,
}

impl fmt::Display for PathEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rank, self.host.is_empty()) {
            (Some(rank), true) => write!(f, "rank {rank}")?,
            (Some(rank), false) => write!(f, "rank {rank} on {}", self.host)?,
            (None, _) => f.write_str(&self.host)?,
        }
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// A path that does not carry what it should, with both of its ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPath {
    /// Where datagrams come from that do not arrive.
    pub from: PathEnd,
    /// Where they do not arrive.
    pub to: PathEnd,
    /// What is wrong.
    pub fault: PathFault,
    /// For how long that has been seen.
    pub silent: Duration,
    /// How often the oldest record was sent; 0 if there is none.
    pub sends: u32,
    /// What the system or the network says to a datagram from there to there.
    pub answer: Option<String>,
    /// Whether a provider of libfabric carries datagrams.
    pub over_fabric: bool,
}

impl BadPath {
    /// What to change.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.over_fabric {
            false => self.fault.advice(),
            true => self.fault.advice_over_fabric(),
        }
    }

    /// What is wrong between which ends, without what to change.
    #[must_use]
    pub fn found(&self) -> String {
        let Self {
            from,
            to,
            fault,
            silent,
            sends,
            answer,
            over_fabric: _,
        } = self;
        let words = Words {
            fault: *fault,
            silent: *silent,
            sends: *sends,
        };
        let found = format!("{from} cannot reach {to}: {words}");
        match answer {
            Some(answer) => format!("{found} (a datagram there is answered by \"{answer}\")"),
            None => found,
        }
    }
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.found(), self.advice())
    }
}

impl core::error::Error for BadPath {}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: PathState = PathState {
        heard: false,
        answered: false,
        full: false,
    };

    #[test]
    fn both_ends_know_together_what_is_wrong() {
        let between = |here, there| PathFault::between(here, there, 1232);
        let too_long = PathFault::TooLong {
            datagram_bytes: 1232,
        };
        let heard = PathState {
            heard: true,
            ..UNKNOWN
        };
        let short = PathState {
            full: false,
            ..PathState::WELL
        };
        for (here, there, fault) in [
            (PathState::WELL, PathState::WELL, None),
            (UNKNOWN, UNKNOWN, Some((PathFault::NoWay, false))),
            (heard, UNKNOWN, Some((PathFault::OneWay, false))),
            (UNKNOWN, heard, Some((PathFault::OneWay, true))),
            (short, PathState::WELL, Some((too_long, false))),
            (PathState::WELL, short, Some((too_long, true))),
            // One of them was stopped until the other one had given up, and then heard it.
            (UNKNOWN, PathState::WELL, None),
            // The last answer was lost.
            (
                PathState {
                    answered: false,
                    ..PathState::WELL
                },
                PathState::WELL,
                None,
            ),
        ] {
            assert_eq!(between(here, there), fault, "{here:?} {there:?}");
        }
    }

    #[test]
    fn a_bad_path_is_named_with_both_ends_and_what_to_change() {
        let end = |rank, host: &str, address: &str| PathEnd {
            rank: Some(JobRank(rank)),
            host: host.into(),
            place: Some(format!("UDP {address}")),
        };
        let mut path = BadPath {
            from: end(0, "a", "10.0.0.1:4000"),
            to: end(1, "b", "10.0.0.2:4001"),
            fault: PathFault::Unheard,
            silent: Duration::from_secs(5),
            sends: 6,
            answer: Some("Connection refused".into()),
            over_fabric: false,
        };
        let text = path.to_string();
        assert!(
            text.starts_with(
                "rank 0 on a (UDP 10.0.0.1:4000) cannot reach rank 1 on b (UDP 10.0.0.2:4001): \
                 no datagram of it has come within 5.0 s, after 6 sends of the oldest \
                 (a datagram there is answered by \"Connection refused\"); let UDP pass"
            ),
            "{text}"
        );
        assert!(text.contains("ARGONET_TCP_INTERFACES"), "{text}");
        path.from = PathEnd {
            rank: None,
            place: None,
            ..path.from
        };
        (path.fault, path.answer, path.sends) = (PathFault::OneWay, None, 0);
        let text = path.to_string();
        assert!(text.starts_with("a cannot reach rank 1 on b"), "{text}");
        assert!(
            text.contains("one-way: datagrams come from there"),
            "{text}"
        );
        path.fault = PathFault::TooLong {
            datagram_bytes: 1232,
        };
        let text = path.to_string();
        assert!(
            text.contains("none of 1232 bytes does; a part of the path") && text.contains("MTU"),
            "{text}"
        );
        path.over_fabric = true;
        for fault in [path.fault, PathFault::NoWay, PathFault::OneWay] {
            path.fault = fault;
            let text = path.to_string();
            assert!(text.contains("ARGONET_USNIC_"), "{text}");
        }
    }
}
