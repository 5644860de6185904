//! Shared memory.

use super::{ConduitRow, LinkName};

/// The conduit of ranks that share memory.
pub const SMP_ROW: ConduitRow = ConduitRow {
    name: "smp",
    about: "ranks of one host, through shared memory",
    page: None,
    spans_hosts: false,
    leaves_neighborhoods: false,
    sends_datagrams: false,
    needs_library: false,
    moves_segments: |_| false,
    links: &[LinkName::of_gasnet("smp")],
    settings: None,
};
