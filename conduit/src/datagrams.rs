//! Counts of datagrams that a rank's socket has dropped, where other processes of the same user can
//! read them while the job runs.
//!
//! A memory file like that of the credits; `argonet info --connections` reads it. Words of 64 bits:
//!
//! ```text
//! 0 magic   1 rank, ranks   2 .. 7 counts, in the order in which the interface has them
//! ```

use crate::words::{self, Words, two};
use argonet_nic::Dropped;
use core::fmt;
use std::io;

/// The name of the memory file.
pub const DATAGRAMS_FILE_NAME: &str = "argonet-datagrams";

const MAGIC: u64 = u64::from_le_bytes(*b"argodgrm");
const HEAD: usize = 2;

/// The memory file.
pub(crate) struct DatagramGauge(Words);

impl DatagramGauge {
    pub(crate) fn new(rank: u32, ranks: u32) -> io::Result<Self> {
        let words = Words::new(DATAGRAMS_FILE_NAME, HEAD + Dropped::WORDS)?;
        words.set(0, MAGIC);
        words.set(1, two(rank, ranks));
        Ok(Self(words))
    }

    pub(crate) fn show(&self, dropped: Dropped) {
        for (at, count) in dropped.to_words().into_iter().enumerate() {
            self.0.set(HEAD + at, count);
        }
    }
}

/// Datagrams that a rank has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Datagrams and records without a meaning.
    pub dropped: Dropped,
}

impl Datagrams {
    /// Out of the bytes of the memory file; `None` if they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let words = words::read(bytes)?;
        let (&[magic, ranks], counts) = words.split_first_chunk::<HEAD>()?;
        let counts = counts.try_into().ok()?;
        (magic == MAGIC).then(|| Self {
            rank: ranks as u32,
            ranks: (ranks >> 32) as u32,
            dropped: Dropped::from_words(counts),
        })
    }
}

impl fmt::Display for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            ranks,
            dropped,
        } = self;
        write!(f, "rank {rank} of {ranks}: at its socket: {dropped}")
    }
}
