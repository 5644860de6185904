//! Collective operations over active messages: a dissemination barrier, and a binomial tree that
//! carries contributions up and results down.
//!
//! Every collective but the barrier is one pass up and one pass down the tree of its root, so no
//! rank leaves an operation before all have entered it, and a rank is never more than one
//! operation ahead of another: two sets of slots, used in turn, are enough.

use super::client::ClientCode;
use super::collective::{self, Label, Signature};
use super::core::Engine;
use super::limits::internal;
use super::mismatch::{Called, MismatchCheck, Sequence};
use super::thread::ThreadCtx;
use super::traced::span;
use crate::Injection;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use argonet_trace::{Kind, What};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// Rounds of the largest job: 2^32 ranks.
pub(super) const ROUNDS: usize = 32;

/// Bytes that one pass carries at most; longer data goes in several passes.
///
/// Less where the conduit has shorter mediums.
pub(super) const CHUNK: usize = 32 * 1024;

/// The kind of a barrier: the client's, or the purpose for which the library enters it.
///
/// Barriers of one kind do not count for another: a rank that calls barriers while another is in a
/// quiet phase waits, and cannot touch the slices held there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// The client asked for it.
    Client,
    /// Part of draining.
    Drain,
    /// Begins or ends a quiet phase.
    Quiet,
    /// Part of finalizing.
    Finalize,
    /// Begins or ends the use of segments.
    Segments,
    /// Makes a distributed object.
    Instances,
}

impl From<BarrierKind> for WaitFor {
    fn from(kind: BarrierKind) -> Self {
        match kind {
            BarrierKind::Client => Self::Barrier,
            BarrierKind::Drain => Self::Drain,
            BarrierKind::Quiet => Self::Quiet,
            BarrierKind::Finalize => Self::Finalize,
            BarrierKind::Segments => Self::Segments,
            BarrierKind::Instances => Self::Instances,
        }
    }
}

impl BarrierKind {
    /// All kinds, by their numbers.
    pub(super) const ALL: [Self; 6] = [
        Self::Client,
        Self::Drain,
        Self::Quiet,
        Self::Finalize,
        Self::Segments,
        Self::Instances,
    ];
}

/// Beside the parity of a barrier's message: a rank goes on.
const GOES_ON: u32 = 2;

/// How many kinds of barriers there are.
const KINDS: usize = BarrierKind::ALL.len();

/// State of the barriers of one kind.
#[derive(Default)]
struct Rounds {
    /// One thread of the rank at a time; holds the parity of the next barrier.
    parity: Mutex<u32>,
    /// Barriers that this rank has entered.
    ///
    /// Written by the thread that has the lock, read by a thread that learns of others' calls;
    /// Relaxed, as both are calls of this rank.
    calls: AtomicU64,
    /// Messages of each round, by parity.
    ///
    /// Handlers add (Release), the waiting thread takes away.
    arrived: [[AtomicU32; ROUNDS]; 2],
    /// Whether a message of that round said that a rank goes on, by parity.
    ///
    /// Written before `arrived`, read and reset after it.
    goes_on: [[AtomicBool; ROUNDS]; 2],
}

/// State of the barriers, by kind.
#[derive(Default)]
pub(super) struct Barrier([Rounds; KINDS]);

impl Barrier {
    pub(super) fn register(self: &Arc<Self>, handlers: &mut HandlerTable) -> Result<(), AmError> {
        let this = Arc::clone(self);
        let run = move |delivery: &mut Delivery<'_>| {
            let round = delivery.arg(0) as usize % ROUNDS;
            let rounds = &this.0[delivery.arg(2) as usize % KINDS];
            if delivery.arg(1) & GOES_ON != 0 {
                rounds.goes_on[delivery.arg(1) as usize & 1][round].store(true, Ordering::Relaxed);
            }
            rounds.arrived[delivery.arg(1) as usize & 1][round].fetch_add(1, Ordering::Release);
        };
        handlers.register_internal(internal::BARRIER, "argonet::barrier", Box::new(run))
    }
}

#[derive(Default)]
struct Slot {
    full: AtomicU32,
    /// The sender's call: the [`Label`]'s word, and the root.
    ///
    /// Written before `full`, read after it.
    word: AtomicU64,
    root: AtomicU32,
    bytes: Mutex<Vec<u8>>,
}

/// Slots of the trees: contributions of each child, and the result from the parent.
#[derive(Default)]
pub(super) struct Tree {
    /// One thread of the rank at a time; holds the parity of the next operation.
    parity: Mutex<u32>,
    /// Passes that this rank has begun, as [`Rounds::calls`].
    passes: AtomicU64,
    up: [[Slot; ROUNDS]; 2],
    down: [Slot; 2],
}

impl Slot {
    /// A handler fills it.
    ///
    /// The buffer keeps its memory, so repeating an operation allocates nothing.
    fn fill(&self, delivery: &Delivery<'_>) {
        let payload = delivery.payload();
        let mut bytes = self.bytes.lock();
        bytes.resize(payload.len(), 0);
        // Cannot fail: the buffer has the payload's length.
        let copied = payload.copy_to(0, &mut bytes);
        debug_assert!(copied.is_ok());
        let word = u64::from(delivery.arg(2)) | u64::from(delivery.arg(3)) << 32;
        self.word.store(word, Ordering::Relaxed);
        self.root.store(delivery.arg(1) >> 1, Ordering::Relaxed);
        self.full.store(1, Ordering::Release);
    }

    fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire) != 0
    }

    /// The sender's call.
    fn call(&self) -> (u64, u32) {
        (
            self.word.load(Ordering::Relaxed),
            self.root.load(Ordering::Relaxed),
        )
    }

    /// Empties it for the operation after the next.
    fn take(&self, read: impl FnOnce(&[u8])) {
        // Not read under the lock: a fold is the client's.
        let bytes = core::mem::take(&mut *self.bytes.lock());
        read(&bytes);
        *self.bytes.lock() = bytes;
        self.full.store(0, Ordering::Relaxed);
    }
}

impl Tree {
    pub(super) fn register(self: &Arc<Self>, handlers: &mut HandlerTable) -> Result<(), AmError> {
        let this = Arc::clone(self);
        let up = move |delivery: &mut Delivery<'_>| {
            let child = delivery.arg(0) as usize % ROUNDS;
            let slot = &this.up[delivery.arg(1) as usize & 1][child];
            slot.fill(delivery);
        };
        handlers.register_internal(internal::TREE_UP, "argonet::tree_up", Box::new(up))?;
        let this = Arc::clone(self);
        let down = move |delivery: &mut Delivery<'_>| {
            let slot = &this.down[delivery.arg(1) as usize & 1];
            slot.fill(delivery);
        };
        handlers.register_internal(internal::TREE_DOWN, "argonet::tree_down", Box::new(down))
    }
}

/// Folds the second slice into the first.
pub type Fold<'f> = dyn Fn(&mut [u8], &[u8]) + 'f;

/// One pass over the tree, and its work on the bytes.
#[derive(Clone, Copy)]
pub struct TreePass<'f> {
    /// Root of the tree.
    pub root: JobRank,
    /// Folds a child's contribution (second) into this rank's (first); `None` where nothing goes up
    /// but the news that a rank has entered.
    ///
    /// Children come in the order of their ranks from the root, so the order of folding is the same
    /// in every run.
    pub fold: Option<&'f Fold<'f>>,
    /// Whether the root's bytes come back down to all ranks.
    pub down: bool,
    /// The values and their folding, as ranks compare them.
    pub signature: Signature,
}

impl TreePass<'_> {
    /// The label of a pass of so many bytes, which ranks compare.
    #[inline(always)]
    pub(super) fn label(&self, total: usize) -> Label {
        let kind = match (self.fold.is_some(), self.down) {
            (true, true) => collective::Kind::ReduceAll,
            (true, false) => collective::Kind::Reduce,
            (false, _) => collective::Kind::Broadcast,
        };
        Label::new(kind, self.root.0, total as u64, self.signature)
    }
}

impl<C: Conduit> Engine<C> {
    /// Waits until every rank has entered the barrier of that kind.
    ///
    /// Collective; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn barrier(&self, ctx: &ThreadCtx, kind: BarrierKind) -> Result<(), AmError> {
        ctx.permit_collective("a barrier", self.rank)?;
        self.unless_any_lost()?;
        let mut span = span(ctx, Kind::BarrierWait);
        if let Some(span) = span.as_mut().filter(|_| kind != BarrierKind::Client) {
            span.forget();
        }
        if kind == BarrierKind::Client
            && let Some(groups) = &self.groups
            && let Some(cells) = self.conduit.shared_cells()
        {
            return self.barrier_by_cells(ctx, cells, &groups.barrier);
        }
        self.barrier_by_messages(ctx, kind, false)?;
        Ok(())
    }

    /// [`barrier`](Self::barrier) by messages; returns whether any rank goes on.
    pub(super) fn barrier_while(
        &self,
        ctx: &ThreadCtx,
        kind: BarrierKind,
        goes_on: bool,
    ) -> Result<bool, AmError> {
        self.unless_any_lost()?;
        self.barrier_by_messages(ctx, kind, goes_on)
    }

    fn barrier_by_messages(
        &self,
        ctx: &ThreadCtx,
        kind: BarrierKind,
        mut goes_on: bool,
    ) -> Result<bool, AmError> {
        let rounds = &self.barrier.0[kind as usize];
        let mut calls = rounds.parity.lock();
        let parity = *calls & 1;
        *calls = calls.wrapping_add(1);
        let number = rounds.calls.load(Ordering::Relaxed);
        rounds.calls.store(number + 1, Ordering::Relaxed);
        let called = || Called::barrier(kind, number);
        let mut distance = 1u32;
        let mut round = 0u32;
        while distance < self.size {
            let to = JobRank(self.wrap(u64::from(self.rank.0) + u64::from(distance)));
            let args = [round, parity | (u32::from(goes_on) * GOES_ON), kind as u32];
            self.signal(ctx, to, internal::BARRIER, &args, &[])?;
            let arrived = &rounds.arrived[parity as usize][round as usize];
            let from = u64::from(self.rank.0) + u64::from(self.size - distance);
            let from = (kind.into(), JobRank(self.wrap(from)));
            self.wait_in(ctx, from, called, || arrived.load(Ordering::Acquire) > 0)?;
            arrived.fetch_sub(1, Ordering::Relaxed);
            let others = &rounds.goes_on[parity as usize][round as usize];
            goes_on |= others.swap(false, Ordering::Relaxed);
            distance = distance.saturating_mul(2);
            round += 1;
        }
        Ok(goes_on)
    }

    /// Waits until all that any rank sent before this call has been handled everywhere, requests
    /// and replies, and no [deferred](Self::on_deferred) code is left, with barriers of that kind.
    ///
    /// Collective; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn drain(&self, ctx: &ThreadCtx, kind: BarrierKind) -> Result<(), AmError> {
        ctx.permit_collective("draining", self.rank)?;
        let mut span = span(ctx, Kind::Drain);
        if let Some(span) = span.as_mut().filter(|_| kind == BarrierKind::Finalize) {
            span.forget();
        }
        let drained = self.drain_all(ctx, kind, || {
            let leaves = kind == BarrierKind::Finalize;
            if leaves {
                self.all_leave();
                // No rank makes another call, so the sequences of calls are complete.
                self.leave_teams_with_slots(ctx)?;
            }
            Ok(leaves)
        });
        match drained {
            // No rank communicates any more.
            Err(AmError::PeerLost { .. }) if kind == BarrierKind::Finalize => {
                self.all_leave();
                self.leave_as_survivor(ctx)?;
                argonet_trace::end(true);
                Ok(())
            }
            drained => drained,
        }
    }

    /// One pass up and down a binomial tree with at most [`CHUNK`] bytes, of an operation of
    /// `total` bytes.
    ///
    /// Collective; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    fn pass(
        &self,
        ctx: &ThreadCtx,
        pass: &TreePass<'_>,
        bytes: &mut [u8],
        total: usize,
    ) -> Result<(), AmError> {
        debug_assert!(bytes.len() <= CHUNK);
        let mut calls = self.tree.parity.lock();
        let parity = *calls & 1;
        *calls = calls.wrapping_add(1);
        let passes = self.tree.passes.load(Ordering::Relaxed) + 1;
        self.tree.passes.store(passes, Ordering::Relaxed);
        let up = &self.tree.up[parity as usize];
        let down = &self.tree.down[parity as usize];
        let place = self.place(pass.root);
        let children = self.children(pass.root);
        let label = pass.label(total);
        let word = label.to_word();
        let called = || Called {
            sequence: Sequence::Passes,
            number: self.passes() - 1,
            label,
        };
        let meet = |slot: &Slot, rank| {
            let (theirs, root) = slot.call();
            if (theirs, root) != (word, pass.root.0 & (u32::MAX >> 1)) {
                self.pass_differs(label, rank, theirs, root);
            }
        };
        let args = |k| {
            [
                k,
                parity | pass.root.0 << 1,
                word as u32,
                (word >> 32) as u32,
            ]
        };

        let waits_for = |rank| (WaitFor::Collective, rank);
        for (k, rank) in children.clone() {
            let slot = &up[k as usize];
            self.wait_in(ctx, waits_for(rank), called, || slot.is_full())?;
            meet(slot, rank);
            slot.take(|theirs| {
                if let Some(fold) = pass.fold {
                    self.call_client(ctx, ClientCode::Combination, || fold(bytes, theirs));
                }
            });
        }
        if place != 0 {
            let parent = u64::from(place & (place - 1)) + u64::from(pass.root.0);
            let contribution: &[u8] = if pass.fold.is_some() { bytes } else { &[] };
            let parent = JobRank(self.wrap(parent));
            let up = args(place.trailing_zeros());
            self.signal(ctx, parent, internal::TREE_UP, &up, contribution)?;
            self.wait_in(ctx, waits_for(parent), called, || down.is_full())?;
            meet(down, parent);
            down.take(|theirs| {
                if pass.down {
                    let len = bytes.len().min(theirs.len());
                    bytes[..len].copy_from_slice(&theirs[..len]);
                }
            });
        }
        for (_, rank) in children {
            let result: &[u8] = if pass.down { bytes } else { &[] };
            self.signal(ctx, rank, internal::TREE_DOWN, &args(0), result)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn pass_differs(&self, mine: Label, rank: JobRank, theirs: u64, root: u32) -> ! {
        let of_all = |label: Label| Called {
            sequence: Sequence::Passes,
            number: 0,
            label,
        };
        match Label::from_word(theirs) {
            Some(label) => {
                let theirs = of_all(Label { root, ..label });
                self.calls_differ(&of_all(mine), rank, &theirs)
            }
            None => self.calls_differ(&of_all(mine), rank, &format!("something ({theirs:#x})")),
        }
    }

    /// Waits in a call of all ranks for a rank.
    fn wait_in(
        &self,
        ctx: &ThreadCtx,
        (what, rank): (WaitFor, JobRank),
        called: impl Fn() -> Called,
        done: impl Fn() -> bool,
    ) -> Result<(), AmError> {
        ctx.permit("waiting", self.rank)?;
        let mut wait = self.waiting(Waiting::on(what, rank));
        let mut check = MismatchCheck::default();
        while !done() {
            wait.pause(ctx);
            if done() {
                break;
            }
            self.unless_any_lost()?;
            if wait.lasts() {
                self.check_mismatch(&mut check, rank, &called);
            }
        }
        Ok(())
    }

    /// Passes that this rank has begun: those by cells where it has some.
    pub(super) fn passes(&self) -> u64 {
        match &self.groups {
            Some(groups) => groups.passes.next(),
            None => self.tree.passes.load(Ordering::Relaxed),
        }
    }

    /// Barriers of a kind that this rank has entered.
    pub(super) fn barriers(&self, kind: BarrierKind) -> u64 {
        match &self.groups {
            Some(groups) if kind == BarrierKind::Client => groups.barrier.next(),
            _ => self.barrier.0[kind as usize].calls.load(Ordering::Relaxed),
        }
    }

    /// This rank counted from the root.
    fn place(&self, root: JobRank) -> u32 {
        self.wrap(u64::from(self.rank.0) + u64::from(self.size - root.0))
    }

    /// This rank's children in the tree of a root and their numbers: the places of children differ
    /// from this one's in one bit below its lowest set bit.
    pub(super) fn children(&self, root: JobRank) -> impl Iterator<Item = (u32, JobRank)> + Clone {
        let place = self.place(root);
        let (bits, size) = (place.trailing_zeros(), u64::from(self.size));
        (0..bits).map_while(move |k| {
            let child = u64::from(place) + (1u64 << k);
            let rank = (child + u64::from(root.0)) % size;
            (child < size).then_some((k, JobRank(rank as u32)))
        })
    }

    /// As many passes as `bytes` needs; `unit` is the size of an element, which is never split.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler; [`AmError::NoSuchRank`] for the root. Ranks that
    /// differ end the job.
    pub fn collective(
        &self,
        ctx: &ThreadCtx,
        pass: &TreePass<'_>,
        bytes: &mut [u8],
        unit: usize,
    ) -> Result<(), AmError> {
        ctx.permit_collective("a collective operation", self.rank)?;
        self.unless_any_lost()?;
        let mut span = span(ctx, Kind::Collective);
        if let Some(span) = &mut span {
            span.describe(What::Bytes(bytes.len() as u64));
        }
        if pass.root.0 >= self.size {
            return Err(AmError::NoSuchRank {
                to: pass.root,
                size: self.size,
                from: self.rank,
            });
        }
        if let Some(groups) = &self.groups
            && let Some(cells) = self.conduit.shared_cells()
            && self.pass_by_cells(ctx, (cells, &groups.passes), pass, bytes)?
        {
            return Ok(());
        }
        let total = bytes.len();
        if total == 0 {
            return self.pass(ctx, pass, bytes, total);
        }
        let most = CHUNK.min(self.conduit.limits().medium_request);
        let chunk = (most / unit.max(1)).max(1) * unit.max(1);
        bytes
            .chunks_mut(chunk)
            .try_for_each(|part| self.pass(ctx, pass, part, total))
    }

    /// Makes sure that all ranks call the same operation of `total` bytes: a pass without them.
    ///
    /// Collective; polls.
    ///
    /// # Errors
    /// As [`collective`](Self::collective).
    pub fn agree(&self, ctx: &ThreadCtx, pass: &TreePass<'_>, total: usize) -> Result<(), AmError> {
        ctx.permit_collective("a collective operation", self.rank)?;
        self.unless_any_lost()?;
        if pass.root.0 >= self.size {
            return Err(AmError::NoSuchRank {
                to: pass.root,
                size: self.size,
                from: self.rank,
            });
        }
        match (&self.groups, self.conduit.shared_cells()) {
            (Some(groups), Some(cells)) => {
                self.agree_by_cells(ctx, (cells, &groups.passes), pass, total)
            }
            _ => self.pass(ctx, pass, &mut [], total),
        }
    }

    /// Bytes of the longest pass.
    pub fn longest_pass(&self) -> usize {
        CHUNK.min(self.conduit.limits().medium_request)
    }

    pub(super) fn wrap(&self, place: u64) -> u32 {
        (place % u64::from(self.size)) as u32
    }

    fn signal(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        handler: argonet_base::HandlerIndex,
        args: &[u32],
        bytes: &[u8],
    ) -> Result<(), AmError> {
        let payload = match handler {
            internal::BARRIER => Payload::None,
            _ => Payload::Medium(SharedBytes::from_slice(bytes)),
        };
        self.request(
            ctx,
            to,
            &Message {
                handler,
                args,
                payload,
            },
            Injection::Blocking,
        )
    }
}
