//! How rails over several members are set up.

use super::member::Member;
use crate::channel::AnyRail;
use argonet_base::JobRank;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;

/// One of the members.
pub struct MemberConfig {
    /// As the user names it, such as `tcp:eth0`.
    pub name: String,
    /// Its rails.
    pub rails: Box<dyn Member<Rail = AnyRail>>,
    /// Rails of it to each peer, beside the one that can carry the stream, that carry payloads.
    pub further: u16,
}

/// Lists the addresses of this host's interfaces that are up and have a link.
pub type ListAddresses = fn() -> io::Result<BTreeSet<IpAddr>>;

/// How [`FailoverRails`](super::FailoverRails) are set up.
pub struct FailoverConfig {
    /// This rank.
    pub rank: JobRank,
    /// How many ranks the job has.
    pub ranks: u32,
    /// Name of the conduit.
    pub name: &'static str,
    /// The members, the best one first; the same on all ranks.
    pub members: Vec<MemberConfig>,
    /// How long no member that [lasts](Member::lasts) may answer until a peer is given up that no
    /// other one reaches.
    pub limit: Duration,
    /// Rails are given up at once at addresses that are not in this list any more.
    pub addresses: ListAddresses,
    /// Reports to the user that the stream to a peer goes over another member.
    pub warn: fn(&str),
    /// Notes each change of a rail, for traces.
    pub note: fn(&str),
}
