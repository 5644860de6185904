//! Calls of all ranks by cells, as the Rust API has them: each rank waits for all others.

use super::group::Group;
use crate::client::ClientCode;
use crate::collective::{Kind, Label, Signature};
use crate::core::Engine;
use crate::thread::ThreadCtx;
use crate::tree::{Fold, TreePass};
use argonet_am::AmError;
use argonet_boot::WaitFor;
use argonet_conduit::{Conduit, SharedCells};

/// Words of a contribution that fits the first cache line of a cell.
///
/// A fold clears a buffer for the contribution of each rank, and a short one costs less.
const SHORT_WORDS: usize = 6;

/// Words of any contribution that fits a cell.
const ALL_WORDS: usize = SharedCells::MAX_BYTES / 8;

impl<C: Conduit> Engine<C> {
    /// A barrier of all ranks.
    #[inline(always)]
    ///
    /// # Errors
    /// [`AmError::PeerLost`].
    pub(crate) fn barrier_by_cells(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        group: &Group,
    ) -> Result<(), AmError> {
        let label = Label::new(Kind::Barrier, 0, 0, Signature::default());
        let entered = self.enter(ctx, (cells, group), label, &[])?;
        entered.all(ctx, WaitFor::Barrier, |_| {})
    }

    /// A pass of all ranks; says whether that was all.
    ///
    /// If not, because it is too long, all are known to mean the same one.
    ///
    /// # Errors
    /// [`AmError::PeerLost`].
    pub(crate) fn pass_by_cells(
        &self,
        ctx: &ThreadCtx,
        (cells, group): (SharedCells<'_>, &Group),
        pass: &TreePass<'_>,
        bytes: &mut [u8],
    ) -> Result<bool, AmError> {
        let fits = bytes.len() <= SharedCells::MAX_BYTES;
        let is_root = self.rank == pass.root;
        let contributes = fits && (pass.fold.is_some() || (pass.down && is_root));
        let mine = if contributes { &*bytes } else { &[] };
        let entered = self.enter(ctx, (cells, group), pass.label(bytes.len()), mine)?;
        let why = WaitFor::Collective;
        match pass.fold {
            Some(fold) if fits && (pass.down || is_root) => {
                if bytes.len() <= SHORT_WORDS * 8 {
                    entered.fold::<SHORT_WORDS>(ctx, fold, bytes)?;
                } else {
                    entered.fold::<ALL_WORDS>(ctx, fold, bytes)?;
                }
            }
            None if fits && pass.down && !is_root => entered.all(ctx, why, |cell| {
                if cell.member == pass.root.0 {
                    cell.read(bytes);
                }
            })?,
            _ => entered.all(ctx, why, |_| {})?,
        }
        Ok(fits)
    }
}

impl<C: Conduit> Engine<C> {
    /// All ranks mean the same pass of `total` bytes, which is too long for cells.
    ///
    /// # Errors
    /// [`AmError::PeerLost`].
    pub(crate) fn agree_by_cells(
        &self,
        ctx: &ThreadCtx,
        (cells, group): (SharedCells<'_>, &Group),
        pass: &TreePass<'_>,
        total: usize,
    ) -> Result<(), AmError> {
        let entered = self.enter(ctx, (cells, group), pass.label(total), &[])?;
        entered.all(ctx, WaitFor::Collective, |_| {})
    }
}

impl<C: Conduit> super::wait::Entered<'_, C> {
    /// Folds the contributions of all members, in the order of ranks, into `bytes`, which takes at
    /// most `WORDS` words.
    #[inline(always)]
    fn fold<const WORDS: usize>(
        self,
        ctx: &ThreadCtx,
        fold: &Fold<'_>,
        bytes: &mut [u8],
    ) -> Result<(), AmError> {
        let engine = self.engine;
        self.all(ctx, WaitFor::Collective, |cell| {
            if cell.member == 0 {
                cell.read(bytes);
                return;
            }
            let mut words = [[0; 8]; WORDS];
            let theirs = &mut words.as_flattened_mut()[..bytes.len()];
            cell.read(theirs);
            engine.call_client(ctx, ClientCode::Combination, || fold(bytes, theirs));
        })
    }
}
