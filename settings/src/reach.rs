//! Which ranks a conduit joins.

use crate::settings::Settings;
use crate::table::portals::PORTALS_INTERFACE;

/// Which ranks a conduit joins, as its other settings are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Those that do not share memory, on any hosts, or it needs none (`none`).
    pub hosts: bool,
    /// The conduit moves data between segments of ranks of one host, so that the segments of all of
    /// the host must be one file.
    pub segments: bool,
}

impl Reach {
    /// Conduits that join ranks of several hosts, for messages.
    pub const OVER_HOSTS: &str = "tcp, portals, usnic";

    /// The reach of a conduit.
    #[must_use]
    pub fn of(conduit: &str, settings: &Settings) -> Self {
        Self {
            hosts: ["tcp", "portals", "usnic", "none"].contains(&conduit),
            segments: conduit == "portals" && settings.peek(&PORTALS_INTERFACE) == "software",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::portals::PORTALS_INTERFACES;
    use crate::table::start::CONDUITS;

    fn of(conduit: &str, interface: &str) -> Reach {
        let pair = (PORTALS_INTERFACE.name().into(), interface.into());
        Reach::of(conduit, &Settings::from_pairs([pair]).unwrap())
    }

    #[test]
    fn the_list_for_messages_names_exactly_the_conduits_over_hosts() {
        for conduit in CONDUITS {
            let named = Reach::OVER_HOSTS.split(", ").any(|one| one == *conduit);
            for interface in PORTALS_INTERFACES {
                assert_eq!(of(conduit, interface).hosts, named, "{conduit} {interface}");
            }
        }
    }

    #[test]
    fn only_software_needs_the_segments_of_the_host_in_one_file() {
        assert!(of("portals", "software").segments);
        assert!(!of("portals", "portals4").segments);
        assert!(!of("tcp", "software").segments);
        assert!(!of("portals", "udp").segments);
    }
}
