//! Calls of all ranks by lines, as the Rust API has them: each rank waits for all others, so all are told if they differ.

use super::circle::Circle;
use crate::engine::core::Engine;
use crate::engine::thread::ThreadCtx;
use crate::engine::tree::{Fold, Pass};
use argonet_am::AmError;
use argonet_boot::WaitFor;
use argonet_conduit::Conduit;
use argonet_conduit::smp::Lines;

/// Words that are cleared for the contribution of another rank: enough for what fits its first cache line, and for all.
const SHORT_WORDS: usize = 6;
const ALL_WORDS: usize = Lines::MAX_BYTES / 8;

/// What ranks compare of a pass: kind, root and length.
fn what(pass: &Pass<'_>, total: usize) -> u64 {
    let kind = 1 << 2 | u64::from(pass.fold.is_some()) << 1 | u64::from(pass.down);
    kind << 56 | u64::from(pass.root.0) << 32 | u64::from(total as u32)
}

impl<C: Conduit> Engine<C> {
    /// A barrier of all ranks.
    #[inline(always)]
    pub(in crate::engine) fn barrier_by_lines(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        circle: &Circle,
    ) -> Result<(), AmError> {
        let entered = self.enter(ctx, (lines, circle), 0, &[]);
        entered.all(ctx, WaitFor::Barrier, |_| {})
    }

    /// A pass of all ranks; says whether that was all. If not, because it is too long, all are known to mean the same one.
    ///
    /// # Errors
    /// [`AmError::DifferentCalls`], on all ranks.
    pub(in crate::engine) fn pass_by_lines(
        &self,
        ctx: &ThreadCtx,
        (lines, circle): (Lines<'_>, &Circle),
        pass: &Pass<'_>,
        bytes: &mut [u8],
    ) -> Result<bool, AmError> {
        let fits = bytes.len() <= Lines::MAX_BYTES;
        let is_root = self.rank == pass.root;
        let contributes = fits && (pass.fold.is_some() || (pass.down && is_root));
        let mine = if contributes { &*bytes } else { &[] };
        let entered = self.enter(ctx, (lines, circle), what(pass, bytes.len()), mine);
        let why = WaitFor::Collective;
        match pass.fold {
            Some(fold) if fits && (pass.down || is_root) => {
                if bytes.len() <= SHORT_WORDS * 8 {
                    entered.fold::<SHORT_WORDS>(ctx, fold, bytes)?;
                } else {
                    entered.fold::<ALL_WORDS>(ctx, fold, bytes)?;
                }
            }
            None if fits && pass.down && !is_root => entered.all(ctx, why, |line| {
                if line.member == pass.root.0 {
                    line.read(bytes);
                }
            })?,
            _ => entered.all(ctx, why, |_| {})?,
        }
        Ok(fits)
    }
}

impl<C: Conduit> Engine<C> {
    /// Whether all ranks mean the same pass of `total` bytes, which is too long for lines.
    ///
    /// # Errors
    /// [`AmError::DifferentCalls`], on all ranks.
    pub(in crate::engine) fn agree_by_lines(
        &self,
        ctx: &ThreadCtx,
        (lines, circle): (Lines<'_>, &Circle),
        pass: &Pass<'_>,
        total: usize,
    ) -> Result<(), AmError> {
        let entered = self.enter(ctx, (lines, circle), what(pass, total), &[]);
        entered.all(ctx, WaitFor::Collective, |_| {})
    }
}

impl<C: Conduit> super::meet::Entered<'_, C> {
    /// Folds what all members contribute, in the order of ranks, into `bytes`, which takes at most `WORDS` words.
    #[inline(always)]
    fn fold<const WORDS: usize>(
        self,
        ctx: &ThreadCtx,
        fold: &Fold<'_>,
        bytes: &mut [u8],
    ) -> Result<(), AmError> {
        self.all(ctx, WaitFor::Collective, |line| {
            if line.member == 0 {
                line.read(bytes);
                return;
            }
            let mut words = [[0; 8]; WORDS];
            let theirs = &mut words.as_flattened_mut()[..bytes.len()];
            line.read(theirs);
            fold(bytes, theirs);
        })
    }
}
