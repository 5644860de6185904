//! Flags of `gasnet_fwd.h` that several kinds of calls take.
//!
//! Flags of different calls may be the same bits.

use argonet_base::gasnet::number32;

pub(crate) const IMMEDIATE: u32 = number32("GEX_FLAG_IMMEDIATE");

/// `GEX_FLAG_SELF_SEG_OFFSET`, and all that say where memory of the caller lies.
pub(crate) const SELF_OFFSET: u32 = number32("GEX_FLAG_SELF_SEG_OFFSET");
pub(crate) const SELF_DISPOSITION: u32 = number32("GEX_FLAG_SELF_SEG_UNKNOWN")
    | number32("GEX_FLAG_SELF_SEG_SOME")
    | number32("GEX_FLAG_SELF_SEG_BOUND")
    | SELF_OFFSET;

/// `GEX_FLAG_PEER_SEG_OFFSET`, and all that say where memory of the peer lies.
pub(crate) const PEER_OFFSET: u32 = number32("GEX_FLAG_PEER_SEG_OFFSET");
pub(crate) const PEER_DISPOSITION: u32 = number32("GEX_FLAG_PEER_SEG_UNKNOWN")
    | number32("GEX_FLAG_PEER_SEG_SOME")
    | number32("GEX_FLAG_PEER_SEG_BOUND")
    | PEER_OFFSET;

/// `GEX_FLAG_LC_COPY_YES`, `GEX_FLAG_LC_COPY_NO`: advice.
///
/// Payloads and sources are copied, or done with, when a call returns.
pub(crate) const COPY: u32 = number32("GEX_FLAG_LC_COPY_YES") | number32("GEX_FLAG_LC_COPY_NO");

/// `GEX_FLAG_RANK_IS_JOBRANK`.
pub(crate) const RANK_IS_JOBRANK: u32 = number32("GEX_FLAG_RANK_IS_JOBRANK");

/// `GEX_EVENT_NOW`, `GEX_EVENT_DEFER`, `GEX_EVENT_GROUP`: values in place of the address of an
/// event.
pub(crate) const NOW: usize = number32("GEX_EVENT_NOW") as usize;
pub(crate) const DEFER: usize = number32("GEX_EVENT_DEFER") as usize;
pub(crate) const GROUP: usize = number32("GEX_EVENT_GROUP") as usize;

// They lie beside each other, below every address.
const _: () = assert!(NOW < DEFER && DEFER < GROUP);
// Each group of flags is apart from the others that a call takes with it.
const _: () = assert!(SELF_DISPOSITION & PEER_DISPOSITION == 0);
const _: () = assert!((SELF_DISPOSITION | PEER_DISPOSITION) & (IMMEDIATE | COPY) == 0);
