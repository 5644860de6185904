//! Datagrams over UDP, with the settings of TCP for addresses and sizes.

use super::{ConduitRow, LinkName};

/// The conduit over datagrams.
pub const USNIC_ROW: ConduitRow = ConduitRow {
    name: "usnic",
    about: "hosts, through sealed datagrams that are sent again; neighbors through shared memory",
    page: Some("docs/usnic.md"),
    spans_hosts: true,
    moves_segments: |_| false,
    links: &[LinkName::new("usnic")],
    settings: None,
};
