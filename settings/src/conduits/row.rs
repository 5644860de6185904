//! What can be known of a conduit without its code.

use super::CONDUITS;
use crate::settings::Settings;
use crate::table::Section;

/// A conduit that a job can choose, as all crates may know it.
#[derive(Debug)]
pub struct ConduitRow {
    /// As `--conduit` and `ARGONET_CONDUIT` name it.
    pub name: &'static str,
    /// Which ranks it reaches, and how.
    pub about: &'static str,
    /// The page with details, by its path in the repository.
    pub page: Option<&'static str>,
    /// Whether it joins ranks of several hosts.
    pub spans_hosts: bool,
    /// Whether it joins ranks of several neighborhoods, of one host at least.
    pub leaves_neighborhoods: bool,
    /// Whether messages go in datagrams, with which speeds are compared then.
    pub sends_datagrams: bool,
    /// Whether it needs a library of the system, which not each machine has.
    pub needs_library: bool,
    /// Whether it moves data between segments of ranks of one host, with the other settings as they
    /// are, so that the segments of all of the host must be one file.
    pub moves_segments: fn(&Settings) -> bool,
    /// The names by which programs in C are linked for it.
    pub links: &'static [LinkName],
    /// The settings that are its own.
    pub(crate) settings: Option<Section>,
}

/// A name by which programs in C are linked for a conduit.
#[derive(Debug)]
pub struct LinkName {
    /// As libraries (`libgasnet-NAME-MODE.a`), launchers (`gasnetrun_NAME`) and macros of the
    /// headers have it.
    pub name: &'static str,
    /// Whether releases of GASNet have a conduit of this name, for which build systems of clients
    /// have rules that fit this one.
    pub is_gasnets: bool,
    /// Whether build systems of clients are not to find it by themselves.
    ///
    /// Such a system collects `include/*-conduit/*.mak`, keeps of its own list what matches a name
    /// that it found, and takes the first: one that does not exist where the name is within
    /// another, or one that wants a library. So the files of make lie where it does not look.
    pub is_apart: bool,
}

impl LinkName {
    /// A name that clients do not know, or whose rules do not fit.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_gasnets: false,
            is_apart: false,
        }
    }

    /// A name that releases of GASNet have, with rules of clients that fit.
    pub(super) const fn of_gasnet(name: &'static str) -> Self {
        Self {
            is_gasnets: true,
            ..Self::new(name)
        }
    }
}

impl ConduitRow {
    /// The conduit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CONDUITS.iter().copied().find(|row| row.name == name)
    }

    /// The conduit of programs in C that are linked by that name.
    #[must_use]
    pub fn linked_as(name: &str) -> Option<&'static Self> {
        let has = |row: &&Self| row.links.iter().any(|link| link.name == name);
        CONDUITS.iter().copied().find(has)
    }
}

/// Rows with the same name are of one conduit.
impl PartialEq for ConduitRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ConduitRow {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_to_their_conduit() {
        for row in CONDUITS {
            assert_eq!(ConduitRow::named(row.name), Some(*row));
            assert!(!row.links.is_empty(), "{} cannot be linked for", row.name);
            assert!(row.leaves_neighborhoods || !row.spans_hosts, "{}", row.name);
            for link in row.links {
                assert_eq!(ConduitRow::linked_as(link.name), Some(*row), "{link:?}");
            }
        }
        assert_eq!(ConduitRow::named("none"), None);
    }
}
