//! What the calls of an interface take and give.

use argonet_base::JobRank;
use argonet_segment::SharedBytes;
use core::ptr::NonNull;

/// Longest datagram (`GNI_DATAGRAM_MAXSIZE`).
pub const DATAGRAM_BYTES: usize = 128;

/// Where an interface is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct NicAddress {
    /// The rank that has it.
    pub rank: JobRank,
    /// Which of the rank's (`cdm_id`).
    pub nic: u16,
}

/// By which interfaces belong together (`ptag`, `cookie`): those with others refuse each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Protection tag.
    pub ptag: u8,
    /// Shared by the processes of a job.
    pub cookie: u32,
}

/// How much of each thing an interface has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Places for registered memory.
    pub registrations: u32,
    /// Completion queues.
    pub queues: u32,
    /// Events of a queue.
    pub events: u32,
    /// Wildcard datagrams.
    pub wildcards: u32,
    /// Longest short message.
    pub message_bytes: u32,
    /// Longest operation by the processor's window.
    pub fma_bytes: u64,
    /// Longest operation by the engine.
    pub rdma_bytes: u64,
}

/// What peers may do to registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Put, get, atomics, short messages.
    ReadWrite,
    /// Get.
    ReadOnly,
}

/// Names registered memory to peers (`gni_mem_handle_t`); it travels as two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemHandle {
    /// The interface that has it.
    pub of: NicAddress,
    /// Its place in the table.
    pub index: u32,
    /// Is that of the owner's table; never 0.
    pub key: u64,
}

impl MemHandle {
    /// As two words.
    ///
    /// Ranks are below 2^24 and places below 2^24.
    #[must_use]
    pub fn to_words(self) -> [u64; 2] {
        let of = u64::from(self.of.rank.0) << 40 | u64::from(self.of.nic) << 24;
        [of | u64::from(self.index) & 0xff_ffff, self.key]
    }

    /// The reverse of [`to_words`](Self::to_words).
    #[must_use]
    pub fn from_words(words: [u64; 2]) -> Self {
        let [word, key] = words;
        Self {
            of: NicAddress {
                rank: JobRank((word >> 40) as u32),
                nic: (word >> 24) as u16,
            },
            index: (word & 0xff_ffff) as u32,
            key,
        }
    }
}

/// What events of an endpoint carry (`GNI_EpSetEventData`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventData {
    /// In events of this rank.
    pub local: u32,
    /// In those that the peer gets.
    pub remote: u32,
}

/// Something that has happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// The [`EventData`] of the endpoint: its local part, or the remote one of the peer's.
    pub data: u32,
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// An operation of this rank has ended; `fetched` is what an atomic one has found.
    Ended {
        /// Its [`Post::id`].
        id: u64,
        /// The value before it, of an atomic operation that fetches; else 0.
        fetched: u64,
        /// Whether it was carried; else why not.
        result: Result<(), Failure>,
    },
    /// A short message has come, or a peer's operation that asked for a remote event.
    Came,
}

/// An operation that has failed, or an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// It may be tried again (`GNI_RC_TRANSACTION_ERROR`, recoverable).
    #[error("a transaction has failed, which may be tried again")]
    Transient,
    /// The same will fail again.
    #[error("a transaction has failed for ever")]
    Fatal,
    /// The memory was deregistered while the operation was under way.
    #[error("the memory of a transaction is not registered any more")]
    Gone,
}

/// An atomic operation (`gni_fma_cmd_type_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amo {
    /// Adds the operand.
    Add,
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// The lesser, signed.
    Min,
    /// The greater, signed.
    Max,
    /// Stores the operand.
    Swap,
    /// Stores the second operand if it finds the first.
    CompareSwap,
}

/// How long the word of an atomic operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmoBits {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

/// What a post does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Writes the peer's memory.
    Put,
    /// Reads the peer's memory.
    Get,
    /// Changes a word of the peer's memory, and reports what it was if `fetch`.
    Amo {
        /// How.
        amo: Amo,
        /// How long the word is.
        bits: AmoBits,
        /// Operands; the second is that of [`Amo::CompareSwap`].
        operands: [u64; 2],
        /// Whether the event says what was found.
        fetch: bool,
    },
}

/// A place in registered memory of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemotePlace {
    /// Which memory.
    pub handle: MemHandle,
    /// Bytes from its beginning on.
    pub offset: u64,
}

/// An operation (`gni_post_descriptor_t`).
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// What is done.
    pub operation: Operation,
    /// Where data is read or written here; not used by atomics.
    pub local: NonNull<u8>,
    /// The place at the peer.
    pub remote: RemotePlace,
    /// Bytes.
    pub len_bytes: u64,
    /// In the event at its end.
    pub id: u64,
    /// The peer's queue of the memory gets an event, too.
    pub remote_event: bool,
    /// Begins when earlier ones of the endpoint have ended (`GNI_RDMAMODE_FENCE`).
    pub fence: bool,
}

// SAFETY: it is a description; who posts it promises the memory.
unsafe impl Send for Post {}

/// How many messages a mailbox holds, and how long they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Messages that were not released (`mbox_maxcredit`).
    pub messages: u32,
    /// Bytes of the longest (`msg_maxsize`).
    pub message_bytes: u32,
}

/// Memory in which short messages arrive (`gni_smsg_attr_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// Registered memory.
    pub handle: MemHandle,
    /// Where in it, a multiple of 64.
    pub offset: u64,
    /// Its shape.
    pub shape: Shape,
}

/// A short message that has come.
pub struct Arrived<'a> {
    /// What its sender gave.
    pub tag: u8,
    /// Its bytes, in memory that the peer can write.
    pub bytes: SharedBytes<'a>,
}

/// A datagram that was exchanged.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// The `id` with which it was posted.
    pub id: u64,
    /// The other interface.
    pub peer: NicAddress,
    /// What the other interface has posted.
    data: [u8; DATAGRAM_BYTES],
    len: usize,
}

impl Exchanged {
    /// With this data, cut off at [`DATAGRAM_BYTES`].
    pub(super) fn new(id: u64, peer: NicAddress, data: &[u8]) -> Self {
        let mut exchanged = Self {
            id,
            peer,
            data: [0; DATAGRAM_BYTES],
            len: data.len().min(DATAGRAM_BYTES),
        };
        exchanged.data[..exchanged.len].copy_from_slice(&data[..exchanged.len]);
        exchanged
    }

    /// What the other interface has posted.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_words_and_back() {
        for (rank, nic, index) in [(0, 0, 0), (1, 2, 3), ((1 << 24) - 1, u16::MAX, 0xff_ffff)] {
            let rank = JobRank(rank);
            let of = NicAddress { rank, nic };
            let handle = MemHandle { of, index, key: 7 };
            assert_eq!(MemHandle::from_words(handle.to_words()), handle);
        }
    }
}
