//! What a rank keeps for its connections, and what has come to its doors, where other processes of
//! the same user can read it while the job runs.
//!
//! A memory file like that of the credits; `argonet info --connections` reads it. Words of 64 bits:
//!
//! ```text
//! 0 magic   1 rank, ranks   2 peers used, connections   3 bytes of a rank that was not used, of a peer that was
//! 4 .. 14   counts of the gate, in the order in which it has them
//! ```

use super::core::Core;
use super::join::gate::GateCounts;
use super::peer::{Inbound, Outbound, Peer};
use crate::ledger::Held;
use crate::words::{self, Words, two};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::io;
use std::sync::OnceLock;

/// The name of the memory file.
pub const CONNECTIONS_FILE_NAME: &str = "argonet-connections";

const MAGIC: u64 = u64::from_le_bytes(*b"argoconn");
const HEAD: usize = 4;

/// Of a rank that was not used.
pub(super) const UNUSED_BYTES: usize = size_of::<OnceLock<Box<Peer>>>();

/// Of a peer that was, beside that and without its buffers.
const USED_BYTES: usize = size_of::<Peer>();

/// The memory file.
pub(super) struct Doors {
    words: Words,
    /// What the file was last written for. A hint.
    recorded: AtomicU64,
}

impl Doors {
    pub(super) fn new(rank: u32, ranks: u32) -> io::Result<Self> {
        let words = Words::new(CONNECTIONS_FILE_NAME, HEAD + GateCounts::WORDS)?;
        words.set(0, MAGIC);
        words.set(1, two(rank, ranks));
        words.set(3, two(UNUSED_BYTES as u32, USED_BYTES as u32));
        let recorded = AtomicU64::new(0);
        Ok(Self { words, recorded })
    }
}

/// Connections of a rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Connections {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Peers that were used.
    pub used: u32,
    /// Connections to them that stand, further ones too.
    pub connected: u32,
    /// Bytes kept for a rank of the job, whether it was used or not.
    pub unused_bytes: u32,
    /// Bytes kept for a peer that was used, beside those and its buffers.
    pub used_bytes: u32,
    /// Who has come.
    pub callers: GateCounts,
    /// What the peers that were used hold together; `None` where that is not known, as it is to
    /// other processes.
    pub held: Option<Held>,
}

impl Connections {
    /// Out of the bytes of the memory file; `None` if they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::of(&words::read(bytes)?)
    }

    fn of(words: &[u64]) -> Option<Self> {
        let (&[magic, ranks, peers, bytes], counts) = words.split_first_chunk::<HEAD>()?;
        let counts = counts.try_into().ok()?;
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        (magic == MAGIC).then(|| Self {
            rank: low(ranks),
            ranks: high(ranks),
            used: low(peers),
            connected: high(peers),
            unused_bytes: low(bytes),
            used_bytes: high(bytes),
            callers: GateCounts::from_words(counts),
            held: None,
        })
    }

    /// Bytes kept for all ranks, without buffers.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        let of = |count: u32, bytes: u32| u64::from(count) * u64::from(bytes);
        of(self.ranks, self.unused_bytes) + of(self.used, self.used_bytes)
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            ranks,
            used,
            connected,
            unused_bytes,
            used_bytes,
            callers,
            held,
        } = self;
        write!(
            f,
            "rank {rank} of {ranks}: {used} peers used, {connected} connections; state {} bytes: {unused_bytes} for each rank, {used_bytes} \
             more for each peer used; ",
            self.state_bytes()
        )?;
        if let Some(Held {
            buffer_bytes,
            descriptors,
            ..
        }) = held
        {
            write!(f, "buffers {buffer_bytes} bytes, {descriptors} sockets; ")?;
        }
        write!(f, "at its doors: {callers}")
    }
}

/// What is kept for a peer that was used.
pub(super) fn held(inbound: &Inbound, outbound: &Outbound) -> Held {
    let rails = inbound.rails.iter();
    let first = inbound.wire.as_ref().and_then(|wire| wire.descriptor());
    let buffers = inbound.receive_stream.buffer_bytes()
        + inbound.parked.buffer_bytes()
        + inbound.replies.buffer_bytes()
        + rails
            .map(|rail| rail.receive_stream.buffer_bytes())
            .sum::<usize>()
        + outbound.send_stream.buffer_bytes()
        + outbound.operations.buffer_bytes();
    Held {
        state_bytes: (UNUSED_BYTES + USED_BYTES) as u64,
        buffer_bytes: buffers as u64,
        descriptors: u32::from(first.is_some()) + inbound.rails.len() as u32,
    }
}

impl Core {
    /// What is kept, and who has come. Peers that another thread serves just now count without
    /// their buffers.
    pub(super) fn connections(&self) -> Connections {
        let all = self.all_used().filter_map(|peer| {
            let inbound = peer.inbound.try_lock()?;
            let outbound = peer.outbound.try_lock()?;
            Some(held(&inbound, &outbound))
        });
        let held = all.fold(Held::default(), |sum, one| Held {
            state_bytes: sum.state_bytes + one.state_bytes,
            buffer_bytes: sum.buffer_bytes + one.buffer_bytes,
            descriptors: sum.descriptors + one.descriptors,
        });
        self.gauge_doors();
        let known = Connections::of(&self.doors.words.all()).unwrap_or_default();
        Connections {
            held: Some(held),
            ..known
        }
    }

    /// Writes who has come and what is connected, if that has changed.
    #[inline]
    pub(super) fn gauge_doors(&self) {
        let (used, connected) = (self.used.load(Relaxed), self.connected.load(Relaxed));
        let now = self.connector.came() << 40 | u64::from(used) << 20 | u64::from(connected);
        if self.doors.recorded.load(Relaxed) != now {
            self.write_doors(now);
        }
    }

    #[cold]
    fn write_doors(&self, now: u64) {
        // Where another thread makes connections just now, the next call records them.
        let Some(callers) = self.connector.callers() else {
            return;
        };
        let (used, connected) = (self.used.load(Relaxed), self.connected.load(Relaxed));
        self.doors.words.set(2, two(used, connected));
        for (at, count) in callers.to_words().into_iter().enumerate() {
            self.doors.words.set(HEAD + at, count);
        }
        self.doors.recorded.store(now, Relaxed);
    }
}
