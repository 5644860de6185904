//! Flow control of requests by credits, where receive space is bounded: over tcp and portals.

use crate::kind::{Kind, SIZE};
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::value::Bytes;
use std::path::PathBuf;

const CREDITS: Kind = Kind::Count {
    min: 0,
    max: u32::MAX as u64,
    unit: "credits",
};
const REQUESTS: Kind = Kind::Count {
    min: 1,
    max: u32::MAX as u64,
    unit: "requests",
};
const DERIVED: Preset = Preset::Words("derived from the number of ranks");

settings! {
    CREDITS_ON: Option<bool> = "ARGONET_CREDITS", Kind::Boolean, Preset::Words("1, or GASNET_PORTAL_FLOW_CONTROL"), Scope::Job,
        "Whether the receive space of a rank, for requests that come over tcp or portals and wait, is one for all peers and lent to them by credits of 256 bytes; if not, every peer has 256 KiB over tcp, and over portals requests that find no room are sent again.";
    CREDITS_MOVE: Option<bool> = "ARGONET_CREDITS_MOVE", Kind::Boolean, Preset::Words("1, or GASNET_PORTAL_DYNAMIC_CREDITS"), Scope::Rank,
        "Whether credits go to the peers that want them and come back from those that do not.";
    CREDITS_MENDED: bool = "ARGONET_CREDITS_MENDED", Kind::Boolean, Preset::Is("1"), Scope::Rank,
        "Whether credits move by argonet's rules; if not, by those of the text of GASNet's Portals conduit.";
    CREDITS_MOST: Option<u64> = "ARGONET_CREDITS_MOST", CREDITS, Preset::Words("1024 over tcp, 400 over portals, or GASNET_PORTAL_MAX_CRED_PER_NODE"), Scope::Job,
        "Most credits of a rank that one peer may have, 257 to 65535 over tcp and 4 to 65535 over portals.";
    CREDITS_SHARE: Option<u64> = "ARGONET_CREDITS_SHARE", CREDITS, DERIVED, Scope::Job,
        "Credits of a rank that each peer has at the start, at least the cost of the longest request: 257 over tcp, 4 over portals.";
    CREDITS_BANK: Option<u64> = "ARGONET_CREDITS_BANK", CREDITS, DERIVED, Scope::Job,
        "Credits of a rank that no peer holds at the start.";
    CREDITS_SPACE: Option<Bytes> = "ARGONET_CREDITS_SPACE", SIZE, DERIVED, Scope::Job,
        "Receive space of a rank that its credits stand for, in bytes; memory is taken only by requests that wait.";
    CREDITS_EPOCH: Option<u64> = "ARGONET_CREDITS_EPOCH", REQUESTS, Preset::Words("1024, or GASNET_PORTAL_EPOCH_DURATION"), Scope::Rank,
        "Requests received by a rank after which earlier use counts less.";
    CREDITS_FILE: Option<PathBuf> = "ARGONET_CREDITS_FILE", Kind::Path, Preset::Unset, Scope::Rank,
        "The file that statistics of credits go to when the rank ends; each `%` stands for the rank.";
    PORTAL_FLOW_CONTROL: Option<bool> = "GASNET_PORTAL_FLOW_CONTROL", Kind::Boolean, Preset::Unset, Scope::Job,
        "Over tcp and portals: ARGONET_CREDITS, if that is not given.";
    PORTAL_DYNAMIC_CREDITS: Option<bool> = "GASNET_PORTAL_DYNAMIC_CREDITS", Kind::Boolean, Preset::Unset, Scope::Rank,
        "Over tcp and portals: ARGONET_CREDITS_MOVE, if that is not given.";
    PORTAL_MAX_CRED_PER_NODE: Option<u64> = "GASNET_PORTAL_MAX_CRED_PER_NODE", CREDITS, Preset::Unset, Scope::Job,
        "Over tcp and portals: ARGONET_CREDITS_MOST, if that is not given.";
    PORTAL_CRED_PER_NODE: Option<u64> = "GASNET_PORTAL_CRED_PER_NODE", CREDITS, Preset::Unset, Scope::Job,
        "Over tcp and portals: ARGONET_CREDITS_SHARE, if that is not given.";
    PORTAL_BANKED_CREDITS: Option<u64> = "GASNET_PORTAL_BANKED_CREDITS", CREDITS, Preset::Unset, Scope::Job,
        "Over tcp and portals: ARGONET_CREDITS_BANK, if that is not given.";
    PORTAL_AMRECV_SPACE: Option<Bytes> = "GASNET_PORTAL_AMRECV_SPACE", SIZE, Preset::Unset, Scope::Job,
        "Over tcp and portals: ARGONET_CREDITS_SPACE, if that is not given.";
    PORTAL_EPOCH_DURATION: Option<u64> = "GASNET_PORTAL_EPOCH_DURATION", REQUESTS, Preset::Unset, Scope::Rank,
        "Over tcp and portals: ARGONET_CREDITS_EPOCH, if that is not given.";
    PORTAL_CREDIT_STATS: bool = "GASNET_PORTAL_CREDIT_STATS", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Over tcp and portals: writes statistics of credits to gasnet_credits.% when the rank ends, if ARGONET_CREDITS_FILE is not given.";
}
