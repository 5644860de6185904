//! The receive space, and the credits that it is good for.

use super::cost::Costs;

/// Receive buffers of one rank, each of some chunks; or, where nothing is
/// [recycled](Costs::recycles), one buffer of pieces of a credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Buffers.
    pub buffers: u32,
    /// Chunks of a buffer, or credits.
    pub chunks: u32,
    /// Costs of requests, with the size of a chunk.
    pub costs: Costs,
}

/// Buffers of a space that is made to measure: one of them is slack, and another number would round
/// more.
const BUFFERS: u32 = 17;

impl Space {
    /// The smallest space of 17 buffers that is good for `credits`.
    #[must_use]
    pub fn for_credits(credits: u64, costs: Costs) -> Space {
        if !costs.recycles {
            return Space::plain(credits, costs);
        }
        let bytes = credits * u64::from(costs.granularity);
        let chunks = bytes.div_ceil(u64::from(costs.chunk_bytes));
        let per_buffer = chunks.div_ceil(u64::from(BUFFERS - 1)).max(1) + 1;
        Space {
            buffers: BUFFERS,
            chunks: u32::try_from(per_buffer).unwrap_or(u32::MAX),
            costs,
        }
    }

    /// The largest space of 17 buffers within `bytes`; of 2, or none at all, if that is very
    /// little.
    #[must_use]
    pub fn within(bytes: u64, costs: Costs) -> Space {
        if !costs.recycles {
            return Space::plain(bytes / u64::from(costs.granularity), costs);
        }
        let chunks = bytes / u64::from(costs.chunk_bytes);
        let buffers = if chunks >= 4 * u64::from(BUFFERS) {
            BUFFERS
        } else {
            2
        };
        Space {
            buffers,
            chunks: u32::try_from(chunks / u64::from(buffers)).unwrap_or(u32::MAX),
            costs,
        }
    }

    fn plain(credits: u64, costs: Costs) -> Space {
        Space {
            buffers: 1,
            chunks: u32::try_from(credits).unwrap_or(u32::MAX),
            costs,
        }
    }

    /// Credits that it is good for: those of all buffers but one, and of all chunks of a buffer but
    /// one.
    ///
    /// One buffer may be full of requests of which all but one have been handled, and so given
    /// back. A buffer is left when less than a chunk is free. [`recycling`](crate::recycling) has
    /// the argument.
    #[must_use]
    pub fn credits(&self) -> u64 {
        if !self.costs.recycles {
            return self.chunks.into();
        }
        let buffers = u64::from(self.buffers.saturating_sub(1));
        let chunks = u64::from(self.chunks.saturating_sub(1));
        buffers * chunks * u64::from(self.costs.chunk_bytes / self.costs.granularity)
    }

    /// Bytes of all buffers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let piece = if self.costs.recycles {
            self.costs.chunk_bytes
        } else {
            self.costs.granularity
        };
        u64::from(self.buffers) * u64::from(self.chunks) * u64::from(piece)
    }

    /// Bytes that the credits stand for: of receive space and of the event queue.
    #[must_use]
    pub fn credited_bytes(&self) -> u64 {
        self.credits() * u64::from(self.costs.granularity + self.costs.event_bytes)
    }

    /// Bytes that are there so that buffers can be recycled.
    #[must_use]
    pub fn slack_bytes(&self) -> u64 {
        self.bytes() - self.credits() * u64::from(self.costs.granularity)
    }
}
