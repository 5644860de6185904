//! Over what ranks of a job on one host reach each other.

/// The network that a run asks the library for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Network {
    /// Memory, unless the environment of the tests says otherwise.
    Memory,
    /// TCP, also to the rank itself: no rank has a neighbor.
    Wire,
    /// Memory between ranks 0 and 1, 2 and 3 and so on, TCP between pairs.
    Pairs,
    /// Interfaces in software, also to the rank itself.
    Interfaces,
    /// Memory within pairs, interfaces in software between them.
    InterfacesOfPairs,
    /// Datagrams, also to the rank itself.
    Datagrams,
    /// TCP, or datagrams where that fails, also to the rank itself.
    Rails,
}

impl Network {
    pub(crate) const ALL: [Self; 7] = [
        Self::Memory,
        Self::Wire,
        Self::Pairs,
        Self::Interfaces,
        Self::InterfacesOfPairs,
        Self::Datagrams,
        Self::Rails,
    ];

    /// For a run that is about memory, also where the environment of the tests says otherwise.
    pub(crate) const NEIGHBORS: (&str, &str) = (NEIGHBORHOOD, "0");

    /// The variables of a run.
    pub(crate) fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Memory => &[],
            Self::Wire => &[TCP, (NEIGHBORHOOD, "1")],
            Self::Pairs => &[TCP, (NEIGHBORHOOD, "2")],
            Self::Interfaces => &[PORTALS, (NEIGHBORHOOD, "1")],
            Self::InterfacesOfPairs => &[PORTALS, (NEIGHBORHOOD, "2")],
            Self::Datagrams => &[USNIC, (NEIGHBORHOOD, "1")],
            Self::Rails => &[TCP, (NEIGHBORHOOD, "1"), ("ARGONET_RAILS", "tcp,usnic")],
        }
    }

    /// For titles.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Memory => "",
            Self::Wire => ", tcp",
            Self::Pairs => ", tcp between pairs",
            Self::Interfaces => ", portals",
            Self::InterfacesOfPairs => ", portals between pairs",
            Self::Datagrams => ", usnic",
            Self::Rails => ", rails",
        }
    }
}

const TCP: (&str, &str) = ("ARGONET_CONDUIT", "tcp");
const PORTALS: (&str, &str) = ("ARGONET_CONDUIT", "portals");
const USNIC: (&str, &str) = ("ARGONET_CONDUIT", "usnic");
/// How many ranks of a host are neighbors; 0 for all.
const NEIGHBORHOOD: &str = "GASNET_SUPERNODE_MAXSIZE";
