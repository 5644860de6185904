//! The memory that a rank keeps for its connections, and the counts of its gate, where other
//! processes of the same user can read them while the job runs.
//!
//! A memory file like that of the credits; `argonet info --connections` reads it. Words of 64 bits:
//!
//! ```text
//! 0 magic   1 rank, ranks   2 peers used, connections   3 bytes of a rank that was not used, of a peer that was
//! 4 .. 14   counts of the gate, in the order in which it has them
//! ```

mod gate_counts;

pub use gate_counts::GateCounts;

use crate::ledger::Held;
use crate::words::{self, Words, two};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::io;

/// The name of the memory file.
pub const CONNECTIONS_FILE_NAME: &str = "argonet-connections";

const MAGIC: u64 = u64::from_le_bytes(*b"argoconn");
const HEAD: usize = 4;

/// The memory file.
pub(crate) struct Doors {
    words: Words,
    /// The state that the file was last written for.
    ///
    /// A hint.
    recorded: AtomicU64,
}

impl Doors {
    /// Of a rank of so many, which keeps so many bytes of a rank that was not used, and of a peer
    /// that was.
    pub(crate) fn new((rank, ranks): (u32, u32), (unused, used): (u32, u32)) -> io::Result<Self> {
        let words = Words::new(CONNECTIONS_FILE_NAME, HEAD + GateCounts::WORDS)?;
        words.set(0, MAGIC);
        words.set(1, two(rank, ranks));
        words.set(3, two(unused, used));
        let recorded = AtomicU64::new(0);
        Ok(Self { words, recorded })
    }

    /// Reads the file.
    pub(crate) fn read(&self) -> Connections {
        Connections::of(&self.words.all()).unwrap_or_default()
    }

    /// Records so many peers used and rails open, and the counts of the gate, if any of that has
    /// changed: `came` changes with `callers`, which are not there while another thread is at them.
    ///
    /// The next call records them then.
    #[inline]
    pub(crate) fn record(
        &self,
        (used, connected): (u32, u32),
        came: u64,
        callers: impl FnOnce() -> Option<GateCounts>,
    ) {
        let now = came << 40 | u64::from(used) << 20 | u64::from(connected);
        if self.recorded.load(Relaxed) != now
            && let Some(callers) = callers()
        {
            self.write((used, connected), callers);
            self.recorded.store(now, Relaxed);
        }
    }

    #[cold]
    fn write(&self, (used, connected): (u32, u32), callers: GateCounts) {
        self.words.set(2, two(used, connected));
        for (at, count) in callers.to_words().into_iter().enumerate() {
            self.words.set(HEAD + at, count);
        }
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
    /// Counts of the gate.
    pub callers: GateCounts,
    /// Memory that the peers that were used hold together; `None` where it is not known, as in
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
