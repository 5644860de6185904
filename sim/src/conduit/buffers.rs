//! Payloads that must stay readable until the peer has acknowledged them: the replay buffer, and
//! buffers of the user.

use argonet_conduit::OpToken;
use argonet_conduit::wire::UserBytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the bytes of a put lie.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A copy.
    Copied(Arc<[u8]>),
    /// With the user.
    User(UserBytes),
}

/// What the tail of a message is.
#[derive(Clone, Debug)]
pub(super) enum Buffer {
    /// The payload of a request, which counts for the replay buffer, or of a reply.
    Payload { bytes: Box<[u8]>, replay: bool },
    /// The payload of a request that stays with the user, and whom to tell.
    InPlace { source: UserBytes, op: OpToken },
    /// A chunk of a put.
    Chunk {
        source: Source,
        at: usize,
        len: usize,
        op: u64,
    },
}

/// The tails of messages under way.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    next: u64,
    held: BTreeMap<u64, Buffer>,
    /// Bytes of requests and puts that are copied and not acknowledged.
    pub(super) replay_bytes: usize,
}

impl Buffers {
    /// Keeps a tail; the result is its token.
    pub(super) fn keep(&mut self, buffer: Buffer) -> u64 {
        if let Buffer::Payload {
            bytes,
            replay: true,
        } = &buffer
        {
            self.replay_bytes += bytes.len();
        }
        self.next += 1;
        self.held.insert(self.next, buffer);
        self.next
    }

    /// Gives up a tail that is acknowledged or was never sent.
    pub(super) fn release(&mut self, token: u64) -> Option<Buffer> {
        let buffer = self.held.remove(&token);
        if let Some(Buffer::Payload {
            bytes,
            replay: true,
        }) = &buffer
        {
            self.replay_bytes -= bytes.len();
        }
        buffer
    }

    /// Reads bytes of a tail, for a frame.
    pub(super) fn read(&self, token: u64, offset: usize, out: &mut [u8]) {
        match self.held.get(&token) {
            Some(Buffer::Payload { bytes, .. }) => {
                out.copy_from_slice(&bytes[offset..offset + out.len()]);
            }
            Some(Buffer::InPlace { source, .. }) => source.read(offset, out),
            Some(Buffer::Chunk { source, at, .. }) => match source {
                Source::Copied(bytes) => {
                    out.copy_from_slice(&bytes[at + offset..at + offset + out.len()]);
                }
                Source::User(source) => source.read(at + offset, out),
            },
            None => unreachable!("a tail is kept until the link has said that it is acknowledged"),
        }
    }
}
