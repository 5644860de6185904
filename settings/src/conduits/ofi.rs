//! Messages over libfabric, with the settings of TCP for addresses and sizes.

use super::{ConduitRow, LinkName};
use crate::kind::Kind;
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::table::section;

/// The conduit over reliable messages of libfabric.
pub const OFI_ROW: ConduitRow = ConduitRow {
    name: "ofi",
    about: "hosts, through a provider of libfabric; neighbors through shared memory",
    page: Some("docs/ofi.md"),
    spans_hosts: true,
    leaves_neighborhoods: true,
    sends_datagrams: false,
    needs_library: true,
    moves_segments: |_| false,
    // Clients that know GASNet's conduit of this name would prefer it, also where there is no
    // libfabric, and build for it by rules that need its headers.
    links: &[LinkName {
        is_apart: true,
        ..LinkName::new("ofi")
    }],
    settings: Some(section("libfabric", USED, &[])),
};

settings! {
    OFI_PROVIDER: Option<String> = "ARGONET_OFI_PROVIDER", Kind::Text,
        Preset::Words("the first of cxi, opx, psm3, psm2, efa, verbs;ofi_rxm, tcp, tcp;ofi_rxm, udp;ofi_rxd and sockets that can be used"), Scope::Rank,
        "The provider of libfabric for the ofi conduit, such as verbs;ofi_rxm or tcp;ofi_rxm.";
}
