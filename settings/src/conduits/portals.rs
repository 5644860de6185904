//! The conduit over Portals interfaces; settings that it shares with others are in
//! [credits](crate::table::credits).

use super::{ConduitRow, LinkName};
use crate::kind::{Kind, MAX_SIZE};
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::table::section;
use crate::value::Bytes;

/// The conduit over matching interfaces, named as older releases of GASNet had it.
///
/// Its name is within `portals4`, which build systems of clients know.
pub const PORTALS_ROW: ConduitRow = ConduitRow {
    name: "portals",
    about: "ranks of one host through an interface in software; hosts through the same over UDP, or \
            through a library of Portals 4",
    page: Some("docs/portals.md#portals-4"),
    spans_hosts: true,
    leaves_neighborhoods: true,
    sends_datagrams: false,
    needs_library: false,
    moves_segments: |settings| settings.peek(&PORTALS_INTERFACE) == SOFTWARE,
    links: &[LinkName {
        is_apart: true,
        ..LinkName::new("portals")
    }],
    settings: Some(section("Portals", USED, &[])),
};

const fn most(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Count { min, max, unit }
}

/// Arguments need as much.
const MESSAGE: Kind = Kind::Size {
    min: 512,
    max: MAX_SIZE,
};
const EVENTS: Kind = most(0, u32::MAX as u64, "events");

/// The default interface, which moves data between segments of ranks of one host.
const SOFTWARE: &str = "software";

/// Interfaces that the portals conduit can run over.
pub const PORTALS_INTERFACES: &[&str] = &[SOFTWARE, "udp", "portals4"];

settings! {
    PORTALS_INTERFACE: &'static str = "ARGONET_PORTALS_INTERFACE", Kind::Choice(PORTALS_INTERFACES), Preset::Is(SOFTWARE), Scope::Job,
        "The interfaces under the portals conduit: those in software, which reach ranks of the host in shared memory and others over UDP; \
         udp, the same with every other rank over UDP; or portals4, a library of Portals 4.";
    PORTALS_MESSAGE: Option<Bytes> = "ARGONET_PORTALS_MESSAGE", MESSAGE, Preset::Words("the longest that it has"), Scope::Job,
        "The longest message that a library of Portals 4 is asked for; longer ones go in fragments.";
    PORTAL_MSG_LIMIT: u64 = "GASNET_PORTAL_MSG_LIMIT", most(4, 65_535, "messages"), Preset::Is("250"), Scope::Rank,
        "Messages of a rank that the portals conduit has under way at once; two are kept for replies.";
    PORTAL_NUM_TMPMD: u64 = "GASNET_PORTAL_NUM_TMPMD", most(1, 1 << 20, "descriptors"), Preset::Is("1024"), Scope::Rank,
        "Temporary memory descriptors of a rank over portals, for data of more than a chunk that lies in no segment.";
    PORTAL_PACKED_LONG: bool = "GASNET_PORTAL_PACKED_LONG", Kind::Boolean, Preset::Is("1"), Scope::Rank,
        "Whether long messages that fit a chunk travel in one message over portals.";
    PORTAL_SB_CHUNKS: u64 = "GASNET_PORTAL_SB_CHUNKS", most(1, 65_535, "chunks"), Preset::Is("1024"), Scope::Job,
        "Chunks of 1 KiB that a rank sends requests from over portals, each of which is kept until its reply comes.";
    PORTAL_RPL_CHUNKS: u64 = "GASNET_PORTAL_RPL_CHUNKS", most(1, 65_535, "chunks"), Preset::Is("64"), Scope::Job,
        "Chunks of 1 KiB that a rank sends replies from over portals.";
    PORTAL_SAFE_LIMIT: u64 = "GASNET_PORTAL_SAFE_LIMIT", EVENTS, Preset::Is("12"), Scope::Rank,
        "Replies and completions that a poll takes over portals; 0 for all.";
    PORTAL_AM_LIMIT: u64 = "GASNET_PORTAL_AM_LIMIT", EVENTS, Preset::Is("8"), Scope::Rank,
        "Requests that a poll takes over portals; 0 for all.";
    PORTAL_SYS_LIMIT: u64 = "GASNET_PORTAL_SYS_LIMIT", EVENTS, Preset::Is("0"), Scope::Rank,
        "Messages of the system queue that a poll takes over portals; 0 for all.";
    PORTAL_ACCEL: bool = "GASNET_PORTAL_ACCEL", Kind::Boolean, Preset::Is("0"), Scope::Job,
        "Accelerated Portals of Sandia's Catamount, which do not exist here: 1 is an error over portals.";
}
