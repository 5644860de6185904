//! The two ranks that measure, their memory, and the alternation of chunks.

use super::datagrams::Datagrams;
use super::limits::Shared;
use super::metric::{Load, Metric, Side};
use super::modes::Modes;
use super::over::Over;
use super::sockets::Sockets;
use super::stats::Chunks;
use argonet::{GlobalPtr, GlobalSlice, Rank, Result, SharedArray, World, raw};
use std::cell::{Cell, OnceCell, RefCell};
use std::time::Duration;

/// Largest size that is moved in one piece.
pub(crate) const LARGEST: usize = 4 << 20;

/// Of which the low bits of addresses are compared.
const PAGE: usize = 4096;

/// Ranks 0 and 1 of a job, and the memory that a chunk works with.
pub(crate) struct Pair<'w> {
    pub(crate) world: &'w World,
    memory: SharedArray<u64>,
    /// Source and destination that no other rank sees.
    private: RefCell<Vec<u8>>,
    /// Offset in `private` at which the bytes begin: half a page away from the bulk data modulo a
    /// page, because a processor that compares the low bits of addresses takes loads for stores
    /// otherwise, and both sides would measure that.
    private_at: usize,
    /// The memory of each rank, as addresses of this process, for the raw side; none where ranks
    /// share no memory.
    raw: Vec<Shared>,
    /// Messages that were exchanged through the raw side's rings by now, the same on both ranks.
    pub(crate) raw_messages: [Cell<u64>; 2],
    /// Rounds of the raw side's ping-pong by now.
    pub(crate) raw_rounds: Cell<u64>,
    /// Engines of both thread modes, once a metric has asked for them.
    modes: OnceCell<Modes>,
    /// Likewise.
    sockets: OnceCell<Sockets>,
    /// Likewise.
    datagrams: OnceCell<Datagrams>,
}

impl<'w> Pair<'w> {
    /// Takes memory on all ranks.
    ///
    /// Collective.
    pub(crate) fn new(world: &'w World, over: Over) -> Result<Self> {
        let memory = SharedArray::alloc(world, (Shared::FRONT + LARGEST) / 8)?;
        let len = memory.len() * 8;
        let mut raw = Vec::new();
        let sharing = if over.shares_memory() {
            world.size()
        } else {
            0
        };
        for rank in (0..sharing).map(Rank) {
            // Reading the last word maps the neighbor's memory as far as it is attached.
            world.get_value(memory.ptr(rank, memory.len() - 1))?;
            raw.push(Shared::at(world, memory.ptr(rank, 0).offset(), rank, len));
        }
        // Pages exist before anything is measured.
        memory.write_from(world, 0, &vec![0; memory.len()]);
        let private = vec![0xa5; LARGEST + PAGE];
        let private_at = (PAGE / 2).wrapping_sub(private.as_ptr().addr()) % PAGE;
        world.barrier()?;
        Ok(Self {
            world,
            memory,
            private: RefCell::new(private),
            private_at,
            raw,
            raw_messages: Default::default(),
            raw_rounds: Cell::new(0),
            modes: OnceCell::new(),
            sockets: OnceCell::new(),
            datagrams: OnceCell::new(),
        })
    }

    /// This rank.
    pub(crate) fn rank(&self) -> Rank {
        self.world.rank()
    }

    /// Place of so many bytes of bulk data in the memory of rank 1.
    pub(crate) fn bulk(&self, bytes: usize) -> GlobalSlice<u8> {
        let words = self.memory.on(Rank(1)).part(Shared::FRONT / 8..);
        assert!(bytes <= words.len() * 8, "{bytes} bytes of bulk data");
        raw::global_slice(raw::global_ptr(words.rank(), words.offset()), bytes)
    }

    /// A word of rank 1 for single words.
    pub(crate) fn word(&self) -> GlobalPtr<u64> {
        self.memory.ptr(Rank(1), Shared::WORD / 8)
    }

    /// The bulk data of rank 1 for the raw side, which has at least so many bytes.
    pub(crate) fn raw_bulk(&self, bytes: usize) -> *mut u8 {
        self.raw[1].bytes(Shared::FRONT, bytes).cast()
    }

    /// The memory of a rank for the raw side.
    pub(crate) fn raw(&self, rank: usize) -> Shared {
        self.raw[rank]
    }

    /// Engines of both thread modes.
    ///
    /// Collective the first time.
    pub(crate) fn modes(&self) -> Result<&Modes> {
        if self.modes.get().is_none() {
            let _ = self.modes.set(Modes::new(self.world)?);
        }
        Ok(self.modes.get().expect("set above"))
    }

    /// Connections for the raw side.
    ///
    /// Collective the first time.
    pub(crate) fn sockets(&self) -> Result<&Sockets> {
        if self.sockets.get().is_none() {
            let _ = self.sockets.set(Sockets::new(self.world)?);
        }
        Ok(self.sockets.get().expect("set above"))
    }

    /// Sockets for datagrams of the raw side.
    ///
    /// Collective the first time.
    pub(crate) fn datagrams(&self) -> Result<&Datagrams> {
        if self.datagrams.get().is_none() {
            let _ = self.datagrams.set(Datagrams::new(self.world)?);
        }
        Ok(self.datagrams.get().expect("set above"))
    }

    /// Calls `f` with this rank's private bytes.
    pub(crate) fn with_private<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        f(&mut self.private.borrow_mut()[self.private_at..])
    }

    fn chunk(&self, side: Side, load: Load) -> Result<f64> {
        self.world.barrier()?;
        super::messages::reset();
        self.world.barrier()?;
        let time: Duration = side(self, load)?;
        Ok(time.as_secs_f64() * 1e9 / load.count as f64)
    }

    /// Measures `chunks` chunks of ours and of the limit in turn, after one of each that does not
    /// count.
    ///
    /// Nanoseconds an operation, chunk by chunk. Collective.
    pub(crate) fn measure(&self, metric: &Metric, chunks: usize) -> Result<Chunks> {
        let load = Load {
            count: metric.count,
            bytes: metric.subject.bytes,
        };
        let mut measured = Chunks::default();
        for turn in 0..=chunks {
            let ours = self.chunk(metric.ours, load)?;
            let limit = metric
                .limit
                .map(|side| self.chunk(side, load))
                .transpose()?;
            if turn > 0 {
                measured.ours.push(ours);
                measured.limit.extend(limit);
            }
        }
        Ok(measured)
    }
}
