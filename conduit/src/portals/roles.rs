//! Purposes of the portals, entries and descriptors of a rank.

use argonet_nic::portals::PortalIndex;

/// Portals, the same on all ranks.
pub(super) const RAR: PortalIndex = PortalIndex(0);
pub(super) const REQUESTS: PortalIndex = PortalIndex(1);
pub(super) const LONG_REQUESTS: PortalIndex = PortalIndex(2);
pub(super) const LARGE_REQUESTS: PortalIndex = PortalIndex(3);
pub(super) const REPLIES: PortalIndex = PortalIndex(4);
pub(super) const LONG_REPLIES: PortalIndex = PortalIndex(5);
pub(super) const LARGE_REPLIES: PortalIndex = PortalIndex(6);
pub(super) const SYSTEM: PortalIndex = PortalIndex(7);

/// Portals that a rank has.
pub(super) const PORTALS: u32 = 8;

/// The subject of an event: the word that its entry or descriptor was made with, with a number of
/// 32 bits.
// spec P1: descriptors and their roles.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, num_enum::TryFromPrimitive, num_enum::IntoPrimitive,
)]
#[repr(u8)]
pub(super) enum Role {
    /// ReqRB, by number: requests arrive there.
    RequestBuffer = 1,
    /// CB: a request without a ReqRB arrives there without its body.
    CatchBasin,
    /// RARAM: data of long requests.
    LongRequest,
    /// Buffers for payloads of large mediums, by number.
    LargeRequest,
    /// ReqSB as a target: replies.
    Reply,
    /// RARSRC as a target: data of long replies.
    LongReply,
    /// As `LargeRequest`, for replies.
    LargeReply,
    /// SYSMD as a target.
    System,
    /// RARSRC, a bounce chunk of ReqSB, a slot or TMPMD as source or destination: the match bits
    /// name the operation.
    Operation,
    /// ReqSB as the source of requests.
    SentRequest,
    /// RplSB.
    SentReply,
    /// SYSMD as a source.
    SentSystem,
}

impl Role {
    pub(super) fn word(self, number: u32) -> u64 {
        u64::from(u8::from(self)) << 32 | u64::from(number)
    }

    pub(super) fn of(word: u64) -> Option<(Self, u32)> {
        let role = Self::try_from(u8::try_from(word >> 32).ok()?).ok()?;
        Some((role, word as u32))
    }
}
