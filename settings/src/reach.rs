//! Which ranks a conduit joins.

use crate::conduits::{CONDUITS, ConduitRow};
use crate::settings::Settings;

/// Which ranks a conduit joins, as its other settings are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Those of several hosts, or it needs none (`none`).
    pub hosts: bool,
    /// Those of several neighborhoods, of one host at least, or it needs none.
    pub neighborhoods: bool,
    /// The conduit moves data between segments of ranks of one host, so that the segments of all of
    /// the host must be one file.
    pub segments: bool,
}

impl Reach {
    /// The reach of a conduit.
    #[must_use]
    pub fn of(conduit: &str, settings: &Settings) -> Self {
        match ConduitRow::named(conduit) {
            Some(row) => Self {
                hosts: row.spans_hosts,
                neighborhoods: row.leaves_neighborhoods,
                segments: (row.moves_segments)(settings),
            },
            None => Self {
                hosts: conduit == "none",
                neighborhoods: conduit == "none",
                segments: false,
            },
        }
    }

    /// Conduits that join ranks of several hosts, for messages.
    #[must_use]
    pub fn over_hosts() -> String {
        let rows = CONDUITS.iter().filter(|row| row.spans_hosts);
        let names: Vec<&str> = rows.map(|row| row.name).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PORTALS_INTERFACE, PORTALS_INTERFACES};

    fn of(conduit: &str, interface: &str) -> Reach {
        let pair = (PORTALS_INTERFACE.name().into(), interface.into());
        Reach::of(conduit, &Settings::from_pairs([pair]).unwrap())
    }

    #[test]
    fn the_list_for_messages_names_exactly_the_conduits_over_hosts() {
        assert_eq!(Reach::over_hosts(), "tcp, portals, usnic, ofi");
        for row in CONDUITS {
            let all = Reach::over_hosts();
            let named = all.split(", ").any(|one| one == row.name);
            for interface in PORTALS_INTERFACES {
                assert_eq!(of(row.name, interface).hosts, named, "{row:?} {interface}");
            }
        }
    }

    #[test]
    fn only_software_needs_the_segments_of_the_host_in_one_file() {
        assert!(of("portals", "software").segments);
        assert!(of("gni", "software").segments);
        assert!(!of("portals", "portals4").segments);
        assert!(!of("tcp", "software").segments);
        assert!(!of("portals", "udp").segments);
    }

    #[test]
    fn no_conduit_needs_none_and_some_have_less_than_hosts() {
        assert!(of("none", "software").hosts);
        assert!(of("gni", "software").neighborhoods && !of("gni", "software").hosts);
        assert!(!of("smp", "software").neighborhoods);
        assert!(!of("teleport", "software").hosts);
    }
}
