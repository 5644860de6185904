//! Datagrams over UDP or libfabric, with the settings of TCP for addresses and sizes.

use super::{ConduitRow, LinkName};
use crate::kind::Kind;
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::table::section;

/// The conduit over datagrams.
pub const USNIC_ROW: ConduitRow = ConduitRow {
    name: "usnic",
    about: "hosts, through sealed datagrams that are sent again; neighbors through shared memory",
    page: Some("docs/usnic.md"),
    spans_hosts: true,
    leaves_neighborhoods: true,
    sends_datagrams: true,
    needs_library: false,
    moves_segments: |_| false,
    links: &[LinkName::new("usnic")],
    settings: Some(section("usNIC", USED, &[])),
};

/// The default: sockets of the system.
const UDP: &str = "udp";

/// Interfaces that datagrams of the usnic conduit can go through.
pub const USNIC_NICS: &[&str] = &[UDP, "fabric"];

settings! {
    USNIC_NIC: &'static str = "ARGONET_USNIC_NIC", Kind::Choice(USNIC_NICS), Preset::Is(UDP), Scope::Rank,
        "What datagrams of the usnic conduit go through: udp, sockets of the system; or fabric, a provider of libfabric; ranks of different ones do not reach each other, which is an error.";
    USNIC_PROVIDER: Option<String> = "ARGONET_USNIC_PROVIDER", Kind::Text, Preset::Words("the first with datagram endpoints that libfabric lists"), Scope::Rank,
        "The provider of libfabric for the usnic conduit, such as usnic, verbs, efa or udp.";
}
