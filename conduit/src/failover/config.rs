//! How rails over several members are set up.

use super::member::Member;
use crate::channel::AnyRail;
use argonet_base::JobRank;
use core::time::Duration;

/// One of the members.
pub struct MemberConfig {
    /// As the user names it, such as `tcp:eth0`.
    pub name: String,
    /// Its rails.
    pub rails: Box<dyn Member<Rail = AnyRail>>,
    /// Rails of it to each peer, beside the one that can carry the stream, that carry payloads.
    pub further: u16,
}

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
    /// Reports to the user that the stream to a peer goes over another member.
    pub warn: fn(&str),
}
