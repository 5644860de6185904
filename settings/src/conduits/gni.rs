//! The conduit over GNI interfaces.

use super::{ConduitRow, LinkName};
use crate::kind::Kind;
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::table::section;
use crate::value::Bytes;

/// The conduit over interfaces of the kind of Cray's Generic Network Interface.
pub const GNI_ROW: ConduitRow = ConduitRow {
    name: "gni",
    about: "ranks of one host through an interface in software that is shaped by Cray's GNI",
    page: Some("docs/gni.md"),
    spans_hosts: false,
    leaves_neighborhoods: true,
    sends_datagrams: false,
    needs_library: false,
    moves_segments: |_| true,
    links: &[LinkName::new("gni")],
    settings: Some(section("GNI", USED, &[])),
};

const MESSAGES: Kind = Kind::Count {
    min: 2,
    max: 4096,
    unit: "messages",
};

/// Up to the longest that the interface in software has; in shorter ones heads and rounding to 64
/// bytes cost too much.
const MESSAGE: Kind = Kind::Size {
    min: 256,
    max: 64 << 10,
};

settings! {
    GNI_MAILBOX_CREDITS: u64 = "ARGONET_GNI_MAILBOX_CREDITS", MESSAGES, Preset::Is("8"), Scope::Rank,
        "Short messages that a rank has room for from each peer over the gni conduit, the same for all ranks.";
    GNI_MAILBOX_MESSAGE: Bytes = "ARGONET_GNI_MAILBOX_MESSAGE", MESSAGE, Preset::Is("4096"), Scope::Rank,
        "The longest of these messages, the same for all ranks; what is longer goes in several.";
}
