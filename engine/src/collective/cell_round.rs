//! A round by cells: the data that a member writes, the cells that it reads, and how it combines
//! them.
#![allow(unsafe_code)]

use super::call::{AllSync, Call, Kind};
use super::label::History;
use super::pool::Stage;
use argonet_conduit::SharedCells;
use core::ops::Range;

/// The data of one cell, aligned for every predefined type.
#[repr(C, align(64))]
struct Data([u8; SharedCells::MAX_BYTES]);

impl Kind {
    /// Whether a member's source is a block for each rank.
    fn gives_blocks(self) -> bool {
        matches!(self, Self::Scatter | Self::Exchange | Self::ReduceScatter)
    }
}

impl Call {
    /// Bytes that a member contributes, if it contributes.
    fn given(&self, size: u32) -> usize {
        match self.kind {
            Kind::Barrier | Kind::Window => 0,
            kind if kind.is_unequal() => 0,
            kind if kind.gives_blocks() => self.block().saturating_mul(size as usize),
            _ => self.block(),
        }
    }

    /// Whether the call can go by cells; the same at all members that call the same.
    ///
    /// A call with a flag of [`AllSync`] goes by messages, and one whose blocks have lengths that
    /// no other member knows.
    pub(super) fn fits_cell(&self, size: u32) -> bool {
        self.kind != Kind::Window
            && !self.kind.is_unequal()
            && self.all_sync == AllSync::default()
            && self.given(size) <= SharedCells::MAX_BYTES
    }
}

/// A round of a call by cells, as one member goes through it.
#[derive(Clone)]
pub(super) struct CellRound {
    pub(super) call: Call,
    /// Its number among the rounds of the team's slot.
    pub(super) number: u64,
    /// How many rounds and calls by messages of the team precede it.
    pub(super) before: u64,
    /// The word that other members compare.
    pub(super) what: u64,
    /// The partial calls before it.
    pub(super) history: History,
    pub(super) entered: bool,
    /// Which stage of a call that goes through pools; `None` for a call that its cell holds.
    pub(super) stage: Option<Stage>,
    /// Most calls that a member whose cell was read had not finished before this one.
    pub(super) unfinished: u64,
    /// The members whose cells are still to be read.
    pub(super) left: Range<u32>,
    rank: u32,
    size: u32,
}

impl CellRound {
    pub(super) fn new(
        call: Call,
        stage: Option<Stage>,
        (number, before): (u64, u64),
        history: History,
        rank: u32,
        size: u32,
    ) -> Self {
        let is_root = rank == call.root;
        let left = match call.kind {
            _ if stage.is_some() => 0..size,
            Kind::Barrier
            | Kind::Window
            | Kind::ReduceAll
            | Kind::GatherAll
            | Kind::Exchange
            | Kind::ExchangeV
            | Kind::ReduceScatter => 0..size,
            Kind::Broadcast | Kind::Scatter | Kind::ScatterV if is_root => 0..0,
            Kind::Broadcast | Kind::Scatter | Kind::ScatterV => call.root..call.root + 1,
            Kind::Reduce | Kind::Gather | Kind::GatherV if is_root => 0..size,
            Kind::Reduce | Kind::Gather | Kind::GatherV => 0..0,
            Kind::Scan => 0..rank + 1,
            Kind::ExclusiveScan => 0..rank,
        };
        let word = call.label().to_word();
        let is_partial = stage.is_none() && call.kind.is_partial();
        Self {
            call,
            number,
            before,
            what: if is_partial { word } else { history.mix(word) },
            history,
            entered: false,
            stage,
            unfinished: 0,
            left,
            rank,
            size,
        }
    }

    /// Whether some member reads only some others' cells.
    #[inline(always)]
    pub(super) fn is_partial(&self) -> bool {
        self.stage.is_none() && self.call.kind.is_partial()
    }

    /// Whether all members' cells are read, which says that all have finished the calls before.
    pub(super) fn reads_all(&self) -> bool {
        self.stage.is_some()
            || matches!(
                self.call.kind,
                Kind::Barrier
                    | Kind::ReduceAll
                    | Kind::GatherAll
                    | Kind::Exchange
                    | Kind::ReduceScatter
            )
    }

    /// Calls `enter` with the data that this member writes, and copies its contribution to itself.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands.
    #[inline(always)]
    pub(super) unsafe fn give(&self, enter: impl FnOnce(&[u8])) {
        let Call { kind, src, dst, .. } = self.call;
        let (given, block) = (self.call.given(self.size), self.call.block());
        let from_root = matches!(kind, Kind::Broadcast | Kind::Scatter);
        if self.stage.is_some() || given == 0 || (from_root && self.rank != self.call.root) {
            enter(&[]);
            return;
        }
        // SAFETY: the source is readable for as many bytes until the call is complete, and no code
        // writes there before this call does below.
        enter(unsafe { core::slice::from_raw_parts(src, given) });
        if from_root {
            let own = match kind {
                Kind::Scatter => src.wrapping_add(self.rank as usize * block),
                _ => src,
            };
            if own != dst {
                // SAFETY: both are a block; they may be parts of the same memory.
                unsafe { core::ptr::copy(own, dst, block) };
            }
        }
    }

    /// Takes the contribution of the next member, which `read` copies.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands, and `give` has been called.
    #[inline(always)]
    pub(super) unsafe fn take(&mut self, read: impl FnOnce(&mut [u8])) {
        let Call { kind, dst, .. } = self.call;
        let (given, block) = (self.call.given(self.size), self.call.block());
        let member = self.left.start;
        self.left.start += 1;
        if self.stage.is_some() || block == 0 || kind == Kind::Barrier {
            return;
        }
        let first = member == 0;
        let (from, into) = match kind {
            Kind::Scatter => (self.rank as usize * block, 0),
            Kind::Exchange => (self.rank as usize * block, member as usize * block),
            Kind::ReduceScatter => (self.rank as usize * block, 0),
            Kind::Gather | Kind::GatherAll => (0, member as usize * block),
            _ => (0, 0),
        };
        let folding = self.call.folding.filter(|_| kind.folds() && !first);
        // SAFETY: the target has room for as many bytes, by the promise of `collective_start`.
        let into = unsafe { dst.add(into) };
        if given == 8 && folding.is_none() && block == 8 {
            let mut word = [0; 8];
            read(&mut word);
            // SAFETY: the target is writable for a block of 8 bytes; no slice of it exists.
            unsafe { core::ptr::copy_nonoverlapping(word.as_ptr(), into, 8) };
            return;
        }
        let mut data = Data([0; SharedCells::MAX_BYTES]);
        let theirs = &mut data.0[..given];
        read(theirs);
        let piece = &mut theirs[from..from + block];
        if let Some(folding) = folding {
            // SAFETY: the target has the contributions of the members before, as many elements as
            // the piece, which lies elsewhere; the function and its context are usable until the
            // call is complete.
            unsafe {
                (folding.function)(folding.context, into, piece.as_mut_ptr(), self.call.count);
            }
        }
        // SAFETY: the target is writable for a block; no slice of it exists.
        unsafe { core::ptr::copy_nonoverlapping(piece.as_ptr(), into, block) };
    }
}
