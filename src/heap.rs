//! This rank's segment and the symmetric heap in it.

use crate::collectives::{Reduction, vote};
use crate::error::{Error, Result};
use crate::process;
use crate::world::{Threading, World};
use argonet_base::{Rank, SegmentOffset};
use argonet_engine::Heap;
use argonet_segment::{HostMemory, OwnSegment, admit};
use argonet_start::Published;
use parking_lot::Mutex;
use std::sync::Arc;

pub(crate) struct Memory {
    pub(crate) own: OwnSegment,
    heap: Mutex<Heap>,
    published: Arc<Published>,
    /// Ranks on this host.
    on_host: usize,
}

impl Memory {
    pub(crate) fn new(
        own: OwnSegment,
        limit: u64,
        published: Arc<Published>,
        on_host: usize,
    ) -> Self {
        Self {
            own,
            heap: Mutex::new(Heap::new(limit)),
            published,
            on_host,
        }
    }
}

impl<M: Threading> World<M> {
    /// Takes `len` zeroed bytes at the same offset on all ranks.
    ///
    /// Collective.
    pub(crate) fn allocate(&self, len: u64) -> Result<SegmentOffset> {
        let memory = &self.inner.memory;
        let rank = self.rank();
        // Where it cannot agree with the others, the heap stays as theirs.
        process::with(|ctx| ctx.permit_collective("an allocation", self.engine().rank()))?;
        let taken = memory.heap.lock().allocate(len);
        // Ranks must agree before any of them maps memory or gives up.
        let mine = match &taken {
            Ok(offset) => [len, *offset],
            Err(_) => [len, u64::MAX],
        };
        if let Err(error) = vote(self, "SharedArray::alloc", mine) {
            if let Ok(offset) = taken {
                memory.heap.lock().release(offset, len);
            }
            return Err(error);
        }
        let offset = taken.map_err(|cause| Error::Heap { rank, cause })?;
        let mine = self.provide(offset, len);
        // Also the barrier after which all may use it.
        let all = self.all_well(mine.is_ok())?;
        let outcome = mine.and(match all {
            true => Ok(SegmentOffset(offset)),
            false => Err(Error::ElsewhereFailed {
                rank,
                what: "SharedArray::alloc",
            }),
        });
        if outcome.is_err() {
            memory.heap.lock().release(offset, len);
        }
        outcome
    }

    /// Makes sure that this rank's segment has a piece, and zeroes it.
    fn provide(&self, offset: u64, len: u64) -> Result<()> {
        self.grow_for(offset + len)?;
        let own = &self.inner.memory.own;
        let mut piece = own.bytes_mut(SegmentOffset(offset), len as usize)?;
        let zeroed = piece.fill(0, len as usize, 0);
        Ok(zeroed.map_err(argonet_segment::SegmentError::from)?)
    }

    /// Whether all ranks say yes.
    ///
    /// Collective.
    fn all_well(&self, mine: bool) -> Result<bool> {
        let mut yes = [u8::from(mine)];
        self.reduce_all(Reduction::Min, &mut yes)?;
        Ok(yes[0] != 0)
    }

    /// Gives back a piece that [`allocate`](Self::allocate) returned.
    ///
    /// Collective.
    pub(crate) fn release(&self, offset: SegmentOffset, len: u64) -> Result<()> {
        vote(self, "SharedArray::free", [len, offset.0])?;
        self.inner.memory.heap.lock().release(offset.0, len);
        Ok(())
    }

    /// Attaches more of the segment where `needed` bytes are not there yet.
    ///
    /// Collective, and the same decision on all ranks: rank 0 compares the need of all with the
    /// memory of the host.
    fn grow_for(&self, needed: u64) -> Result<()> {
        let memory = &self.inner.memory;
        let attached = memory.own.len();
        if needed <= attached {
            return Ok(());
        }
        let target = needed
            .max(attached.saturating_mul(2))
            .min(memory.heap.lock().limit());
        // The length that all grow to, 0 for not at all; and the memory that rank 0 saw, so that
        // all ranks report the same. Grow by the missing bytes if doubling does not fit.
        let mut verdict = [0u64; 2];
        let request = |len: u64| vec![len - attached; memory.on_host];
        let mut probed = Ok(());
        if self.rank().0 == 0 {
            match HostMemory::probe() {
                Ok(host) => {
                    let fits = |len: &u64| admit(&request(*len), &host).is_ok();
                    let len = [target, needed].into_iter().find(fits);
                    verdict = [len.unwrap_or(0), host.available_bytes()];
                }
                Err(error) => probed = Err(error),
            }
        }
        self.broadcast(Rank(0), &mut verdict)?;
        probed?;
        if verdict[0] == 0 {
            let host = HostMemory::probe()?.with_available(verdict[1]);
            admit(&request(needed), &host)?;
            // Only if rank 0 could not look at its host.
            return Err(Error::ElsewhereFailed {
                rank: self.rank(),
                what: "growing the segment",
            });
        }
        let len = memory.own.grow(verdict[0])?;
        Ok(memory.published.all_have(len)?)
    }
}
