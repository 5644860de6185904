//! Sizes that the active-message engine fixes for every conduit.

use argonet_base::HandlerIndex;
use argonet_base::gasnet::number32;

/// Arguments a message can carry, 32 bits each (GASNet-EX 0.19, `gex_AM_MaxArgs`).
pub const MAX_ARGS: usize = number32("ARGONET_AM_MOST_ARGS") as usize;

/// Arguments that records and frames can carry: a client's, and the word that names endpoints
/// ([`Endpoints`](crate::Endpoints)).
pub const MAX_CARRIED: usize = MAX_ARGS + 1;

/// Endpoints of one process: those with a lower index.
pub const ENDPOINTS: u32 = number32("GASNET_MAXEPS");

/// Entries of the handler table.
pub const HANDLERS: usize = 256;

/// First index that belongs to clients; those below are the library's own.
pub const CLIENT_BASE: HandlerIndex = HandlerIndex(number32("GEX_AM_INDEX_BASE") as u8);

static_assertions::const_assert!((number32("GEX_AM_INDEX_BASE") as usize) < HANDLERS);

/// Largest medium payload that every conduit carries, in bytes.
pub const MAX_MEDIUM: usize = 64 * 1024;
