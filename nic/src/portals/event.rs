//! Events and their meaning.

use super::PortalIndex;
use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Kinds of events.
///
/// # Order
///
/// Of one operation, a queue holds the start before the end. At the initiator of a put these are
/// `SendStart`, `SendEnd`, `Ack`, of a get or a fetching atomic `ReplyStart`, `ReplyEnd`; at the
/// target the start and end of its kind. `Unlink` of an entry or descriptor comes after the last
/// event of every operation on it. Between the two ranks no order is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub enum EventKind {
    /// A put of a peer has found its entry and begins.
    PutStart = 1,
    /// Its data is in this rank's memory.
    PutEnd,
    /// A get of a peer has found its entry and begins.
    GetStart,
    /// It has read this rank's memory.
    GetEnd,
    /// An atomic operation of a peer begins.
    AtomicStart,
    /// It has changed this rank's memory.
    AtomicEnd,
    /// A put of this rank begins.
    SendStart,
    /// Its source may be reused.
    SendEnd,
    /// The target has it, or says why not: remote completion.
    Ack,
    /// The answer to a get or fetching atomic of this rank begins to arrive.
    ReplyStart,
    /// All of it is here, or will not come.
    ReplyEnd,
    /// An entry has left its list by itself, or a descriptor is no longer bound; the handle is
    /// void.
    Unlink,
    /// A portal with flow control refuses messages until it is enabled again.
    Disabled,
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub enum Outcome {
    /// It was done, for `moved_bytes`.
    Done = 0,
    /// Nothing in the list at that portal accepted it.
    ///
    /// Nothing was moved; the target has counted it.
    NoMatch,
    /// The portal refuses messages, is out of use or was never allocated.
    ///
    /// Nothing was moved.
    Refused,
    /// Something did not fit at a portal with flow control, which refuses from now on.
    ///
    /// Nothing was moved.
    Disabled,
    /// The other rank ended in the middle, or cannot be reached any more; how much was moved is not
    /// known.
    PeerDied,
    /// The target's tables are corrupt.
    ///
    /// Nothing was moved.
    Corrupt,
}

/// An entry of an event queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The kind of an event.
    pub kind: EventKind,
    /// How it ended; always `Done` for starts.
    pub outcome: Outcome,
    /// At the target the initiator, at the initiator the target.
    pub peer: JobRank,
    /// At which portal of the target.
    pub portal: PortalIndex,
    /// The match bits of the operation.
    pub bits: u64,
    /// The 64 bits of immediate data that a put or atomic carried; 0 for gets.
    pub header: u64,
    /// Bytes that were asked for.
    pub requested_bytes: u64,
    /// Bytes that were moved; less where the target truncates.
    pub moved_bytes: u64,
    /// At the target where in the entry, at the initiator where in the descriptor.
    pub offset_bytes: u64,
    /// The word that the owner gave the entry or descriptor.
    pub user: u64,
    /// The handle of the entry or descriptor, as a number.
    pub object: u64,
    /// The number that start and end of one operation of `peer` have in common.
    pub link: u64,
}
