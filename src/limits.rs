//! Limits of messages.

use argonet_am::MAX_ARGS;

/// The limits of messages of a job, by the conduits that it uses; see
/// [`World::limits`](crate::World::limits).
///
/// Puts, gets, collective operations and
/// [`World::send_long`](crate::World::send_long) have no limit but the memory that they name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Arguments of a message, in words of 32 bits: [`MAX_ARGS`] on every conduit.
    pub args: usize,
    /// Payload of a medium request, in bytes: [`MAX_MEDIUM`](crate::MAX_MEDIUM) on every conduit.
    ///
    /// The arguments of a remote procedure call are such a payload.
    pub medium_request: usize,
    /// Payload of a medium reply, in bytes; as above.
    ///
    /// The result of a remote procedure call is such a payload.
    pub medium_reply: usize,
    /// Payload in bytes of a long that travels as one message, and of one that is prepared
    /// ([`Raw`](crate::raw::Raw)).
    ///
    /// A longer one of [`World::send_long`](crate::World::send_long) is put first, and costs a
    /// round trip more.
    pub long: usize,
}

impl Limits {
    pub(crate) fn of(conduit: argonet_conduit::Limits) -> Self {
        Self {
            args: conduit.args.min(MAX_ARGS),
            medium_request: conduit.medium_request,
            medium_reply: conduit.medium_reply,
            long: conduit.long,
        }
    }
}
