//! This rank's segment and the symmetric heap in it.

use crate::collective::vote;
use crate::engine::{Heap, Pass};
use crate::error::{Error, Result};
use crate::process;
use crate::world::{Threading, World};
use argonet_base::SegmentOffset;
use argonet_boot::LocalJob;
use argonet_segment::{HostMemory, OwnSegment, admit};
use core::sync::atomic::Ordering;
use parking_lot::Mutex;
use std::sync::Arc;

pub(crate) struct Memory {
    pub(crate) own: OwnSegment,
    heap: Mutex<Heap>,
    boot: Arc<LocalJob>,
}

impl Memory {
    pub(crate) fn new(own: OwnSegment, limit: u64, boot: Arc<LocalJob>) -> Self {
        Self {
            own,
            heap: Mutex::new(Heap::new(limit)),
            boot,
        }
    }
}

impl<M: Threading> World<M> {
    /// Takes `len` zeroed bytes at the same offset on all ranks. Collective.
    pub(crate) fn allocate(&self, len: u64) -> Result<SegmentOffset> {
        let memory = &self.inner.memory;
        let rank = self.rank();
        let taken = memory.heap.lock().allocate(len);
        // Ranks must agree before any of them maps memory or gives up.
        let mine = match &taken {
            Ok(offset) => [len, *offset],
            Err(_) => [len, u64::MAX],
        };
        if let Err(error) = vote(self, "SharedVec::alloc", mine) {
            if let Ok(offset) = taken {
                memory.heap.lock().release(offset, len);
            }
            return Err(error);
        }
        let offset = taken.map_err(|cause| Error::Heap { rank, cause })?;
        let attach = self.grow_for(offset + len);
        if let Err(error) = attach {
            memory.heap.lock().release(offset, len);
            return Err(error);
        }
        let mut piece = memory.own.bytes_mut(SegmentOffset(offset), len as usize)?;
        piece
            .fill(0, len as usize, 0)
            .map_err(argonet_segment::SegmentError::from)?;
        self.barrier()?;
        Ok(SegmentOffset(offset))
    }

    /// Gives back what [`allocate`](Self::allocate) returned. Collective.
    pub(crate) fn release(&self, offset: SegmentOffset, len: u64) -> Result<()> {
        vote(self, "SharedVec::free", [len, offset.0])?;
        self.inner.memory.heap.lock().release(offset.0, len);
        Ok(())
    }

    /// Attaches more of the segment where `needed` bytes are not there yet. Collective, and the
    /// same decision on all ranks: rank 0 compares what all need with what the host has.
    fn grow_for(&self, needed: u64) -> Result<()> {
        let memory = &self.inner.memory;
        let attached = memory.own.len();
        if needed <= attached {
            return Ok(());
        }
        let target = needed
            .max(attached.saturating_mul(2))
            .min(memory.heap.lock().limit());
        // Grow by what is needed if doubling does not fit.
        let mut verdict = [0u64];
        if self.rank().0 == 0 {
            let host = HostMemory::probe()?;
            let fits =
                |len: u64| admit(&vec![len - attached; self.size() as usize], &host).map(|()| len);
            verdict[0] = fits(target).or_else(|_| fits(needed)).unwrap_or(0);
        }
        let down = Pass {
            root: World::<M>::job_rank(argonet_base::Rank(0)),
            fold: None,
            down: true,
        };
        process::with(|ctx| {
            self.engine().collective(
                ctx,
                &down,
                zerocopy::IntoBytes::as_mut_bytes(&mut verdict),
                8,
            )
        })?;
        if verdict[0] == 0 {
            let requests = vec![needed - attached; self.size() as usize];
            admit(&requests, &HostMemory::probe()?)?;
            // Memory was freed since rank 0 looked; what was decided stands.
            verdict[0] = needed;
        }
        let len = memory.own.grow(verdict[0])?;
        let page = memory.boot.rank_page(self.engine().rank());
        page.segment_len.store(len, Ordering::Release);
        Ok(())
    }
}
