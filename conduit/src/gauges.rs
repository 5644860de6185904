//! Credits that a rank holds, uses, lends and banks, where another process of the same user can
//! read them while the job runs.
//!
//! A memory file that only this process has open; `argonet info --credits` opens it through
//! `/proc`. Words of 64 bits:
//!
//! ```text
//! 0 magic   1 rank, ranks   2 credits of a rank, share   3 banked, epochs   4 lent   5 given back   6 not touched   7 0
//! 8 + 2p    rank p: credits held, in use, lent to it, used by it, 16 bits each from the lowest     9 + 2p  stalls
//! ```

use crate::words::{self, Words, two};
use argonet_am::credit::{Bank, Figures};
use core::fmt;
use std::io;

/// The name of the memory file.
pub const CREDITS_FILE_NAME: &str = "argonet-credits";

const MAGIC: u64 = u64::from_le_bytes(*b"argocred");
const HEAD: usize = 8;

/// Credits of a rank, as they are now.
///
/// Outlives the conduit, for the writer of statistics when the process ends.
pub struct Gauges(Words);

impl Gauges {
    /// For the bank's rank among `ranks`.
    pub(crate) fn new(rank: u32, ranks: u32, bank: &Bank) -> io::Result<Self> {
        let gauges = Gauges(Words::new(CREDITS_FILE_NAME, HEAD + 2 * ranks as usize)?);
        let plan = bank.plan();
        let total = u32::try_from(plan.total()).unwrap_or(u32::MAX);
        gauges.0.set(0, MAGIC);
        gauges.0.set(1, two(rank, ranks));
        gauges.0.set(2, two(total, plan.share().into()));
        gauges.bank(bank);
        Ok(gauges)
    }

    /// Records the credits that the bank has, and has moved.
    #[cold]
    pub(crate) fn bank(&self, bank: &Bank) {
        let moved = bank.moved();
        self.0.set(3, two(bank.banked(), bank.epoch()));
        self.0.set(4, moved.lent);
        self.0.set(5, moved.returned);
        self.0.set(6, bank.untouched());
    }

    /// Records the credits held of a peer, and lent to it.
    #[inline]
    pub(crate) fn peer(&self, rank: u32, figures: Figures, stalls: u64) {
        let of = |count: u16, place: u32| u64::from(count) << (16 * place);
        let Figures {
            held,
            in_use,
            loan,
            owed,
            ..
        } = figures;
        let at = HEAD + 2 * rank as usize;
        self.0
            .set(at, of(held, 0) | of(in_use, 1) | of(loan, 2) | of(owed, 3));
        self.0.set(at + 1, stalls);
    }

    /// As others read it.
    #[must_use]
    pub fn report(&self) -> CreditReport {
        CreditReport::of(&self.0.all()).unwrap_or_default()
    }
}

/// Credits between a rank and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerCredits {
    /// The peer.
    pub peer: u32,
    /// Credits of the peer that the rank holds.
    pub held: u16,
    /// Of them in use when the peer last reported its handled requests, or a request last had to
    /// wait.
    pub in_use: u16,
    /// Credits of the rank that the peer holds.
    pub lent: u16,
    /// Of them used by requests that wait.
    pub owed: u16,
    /// Requests to the peer that had to wait.
    pub stalls: u64,
}

/// Credits of a rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CreditReport {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// All credits of the rank: its receive space.
    pub total: u32,
    /// Credits that each peer holds of them at the start.
    pub share: u32,
    /// Not lent.
    pub banked: u32,
    /// Of peers that were not used yet.
    pub untouched: u64,
    /// Epochs that have ended.
    pub epochs: u32,
    /// Credits lent in addition to shares since the start.
    pub lent: u64,
    /// Credits given back since the start.
    pub returned: u64,
    /// Peers that were used.
    pub peers: Vec<PeerCredits>,
}

impl CreditReport {
    /// Out of the bytes of the memory file; `None` if they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::of(&words::read(bytes)?)
    }

    fn of(words: &[u64]) -> Option<Self> {
        let (head, peers) = words.split_at_checked(HEAD)?;
        let (low, high) = (
            |at: usize| head[at] as u32,
            |at: usize| (head[at] >> 32) as u32,
        );
        if head[0] != MAGIC || peers.len() != 2 * high(1) as usize {
            return None;
        }
        let of = |word: u64, place: u32| (word >> (16 * place)) as u16;
        let used = (0..)
            .zip(peers.as_chunks::<2>().0)
            .filter(|(_, [figures, _])| *figures != 0);
        Some(Self {
            rank: low(1),
            ranks: high(1),
            total: low(2),
            share: high(2),
            banked: low(3),
            untouched: head[6],
            epochs: high(3),
            lent: head[4],
            returned: head[5],
            peers: used
                .map(|(peer, [figures, stalls])| PeerCredits {
                    peer,
                    held: of(*figures, 0),
                    in_use: of(*figures, 1),
                    lent: of(*figures, 2),
                    owed: of(*figures, 3),
                    stalls: *stalls,
                })
                .collect(),
        })
    }
}

impl fmt::Display for CreditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            ranks,
            total,
            share,
            banked,
            untouched,
            epochs,
            lent,
            returned,
            peers,
        } = self;
        writeln!(
            f,
            "rank {rank} of {ranks}: {total} credits of 256 bytes, {banked} banked, {untouched} with peers that were not used, share {share}; \
             {lent} lent and {returned} given back in {epochs} epochs"
        )?;
        writeln!(
            f,
            "{:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "peer", "held", "in use", "stalled", "lent", "owed"
        )?;
        for p in peers {
            let (peer, held, in_use, lent, owed, stalls) =
                (p.peer, p.held, p.in_use, p.lent, p.owed, p.stalls);
            writeln!(
                f,
                "{peer:>8} {held:>8} {in_use:>8} {stalls:>8} {lent:>8} {owed:>8}"
            )?;
        }
        Ok(())
    }
}
