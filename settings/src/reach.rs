//! Which ranks a conduit joins.

use crate::settings::Settings;
use crate::table::portals::PORTALS_INTERFACE;

/// Which ranks that do not share memory can communicate through a conduit, or need none (`none`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Those of several hosts.
    pub hosts: bool,
    /// Those of one host that are in several neighbourhoods.
    pub neighbourhoods: bool,
    /// The conduit moves data between segments of ranks of one host, so that the segments of all of the host must be one file.
    pub segments: bool,
}

impl Reach {
    /// Conduits that join ranks of several hosts, for messages.
    pub const OVER_HOSTS: &str = "tcp, portals with ARGONET_PORTALS_INTERFACE=portals4";

    /// That of a conduit, as its other settings are.
    #[must_use]
    pub fn of(conduit: &str, settings: &Settings) -> Self {
        let [hosts, neighbourhoods, segments] = match (conduit, settings.peek(&PORTALS_INTERFACE)) {
            ("tcp" | "none", _) | ("portals", "portals4") => [true, true, false],
            ("portals", _) => [false, true, true],
            _ => [false; 3],
        };
        Self {
            hosts,
            neighbourhoods,
            segments,
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
    fn the_list_for_messages_names_who_spans_hosts_and_nobody_else() {
        for conduit in CONDUITS {
            for interface in PORTALS_INTERFACES {
                let name = match *conduit {
                    "portals" => format!("{conduit} with ARGONET_PORTALS_INTERFACE={interface}"),
                    _ => (*conduit).to_owned(),
                };
                let named = Reach::OVER_HOSTS.split(", ").any(|one| one == name);
                assert_eq!(of(conduit, interface).hosts, named, "{name}");
            }
        }
    }

    #[test]
    fn only_software_needs_the_segments_of_the_host_in_one_file() {
        assert!(of("portals", "software").segments);
        assert!(!of("portals", "portals4").segments);
        assert!(!of("tcp", "software").segments);
        assert!(of("portals", "portals4").neighbourhoods);
        assert!(!of("smp", "portals4").neighbourhoods);
    }
}
