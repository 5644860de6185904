//! One thing that happened.

use crate::flow::Flow;
use crate::kind::Kind;

/// Something that happened on the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its kind.
    pub kind: Kind,
    /// When it began, by [`now_ns`](crate::now_ns).
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// More about it.
    pub what: What<'a>,
    /// The message that it sent.
    pub flow: Option<Flow>,
}

/// The other side of a put or a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Which rank.
    pub rank: u32,
    /// Whether it is this rank.
    pub is_self: bool,
}

/// Details of an event.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// Nothing more.
    Time,
    /// How many things, or whether it succeeded.
    Value(u64),
    /// Bytes that were moved between an address here and an address or offset there.
    Transfer {
        /// The other rank.
        peer: Peer,
        /// How many.
        bytes: u64,
        /// Where in this process.
        here: u64,
        /// Where at the peer.
        there: u64,
    },
    /// An active message.
    Message {
        /// The receiver, or the sender.
        peer: u32,
        /// Its handler.
        handler: u8,
        /// Its payload, in bytes; `None` for a short.
        bytes: Option<u64>,
        /// Where the payload lies in this process.
        payload: u64,
        /// Its arguments.
        args: &'a [u32],
    },
    /// Bytes that a collective operation has.
    Bytes(u64),
}

impl What<'_> {
    /// The value that is counted.
    pub(crate) fn value(&self) -> u64 {
        match *self {
            Self::Time => 0,
            Self::Value(value) | Self::Bytes(value) => value,
            Self::Transfer { bytes, .. } => bytes,
            Self::Message { bytes, .. } => bytes.unwrap_or(0),
        }
    }
}
