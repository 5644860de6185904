//! Calls by cells that wait: no event, no allocation, and in PAR mode one lock, the group's call
//! lock.

use super::group::Group;
use crate::collective::Label;
use crate::core::Engine;
use crate::mismatch::{Called, MismatchCheck, Sequence};
use crate::thread::ThreadCtx;
use crate::tree::BarrierKind;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, Entry, SharedCells, ThreadMode};
use parking_lot::MutexGuard;

/// Looks at a cell before anything else is done.
///
/// The cell of a rank that runs comes within some hundred nanoseconds, and these take less.
const LOOKS: u32 = 64;

/// Looks between two yields, where ranks are more than processors.
///
/// They are few, as the awaited rank probably waits for this processor.
const LOOKS_BETWEEN_YIELDS: u32 = 16;

/// Yields before the thread polls between looks.
///
/// Until then it does nothing else, as the awaited rank waits for all that each rank does in turn.
const YIELDS: u32 = 4;

/// Looks before such a yield where no awaited rank needs this processor: as long as some ranks take
/// on another one.
pub(crate) const LOOKS_AT_OTHERS: u32 = 400;

/// Calls of which one polls in any case.
///
/// The others poll when they have to wait.
const POLL_EVERY: u64 = 8;

/// A call that this rank has entered and not finished.
#[must_use]
pub(crate) struct Entered<'e, C: Conduit> {
    pub(super) engine: &'e Engine<C>,
    cells: SharedCells<'e>,
    group: &'e Group,
    call: u64,
    label: Label,
    /// The word in this rank's cell.
    what: u64,
    _lock: Option<MutexGuard<'e, ()>>,
}

/// Where a cell is.
#[derive(Clone, Copy)]
pub(crate) struct CellPlace {
    pub(crate) slot: u32,
    pub(crate) rank: JobRank,
    pub(crate) call: u64,
}

/// The members of a call by cells.
#[derive(Clone, Copy)]
pub(crate) struct CellMembers<'a> {
    /// Those whose cells have not been read.
    pub(crate) awaited: &'a [JobRank],
    pub(crate) all: &'a [JobRank],
}

/// The cell of one member in a call.
pub(crate) struct MemberCell<'e> {
    cells: SharedCells<'e>,
    slot: u32,
    call: u64,
    /// The member.
    pub(crate) member: u32,
    rank: JobRank,
}

impl MemberCell<'_> {
    /// Copies the member's contribution.
    ///
    /// Its word has been compared, so it means the same operation and contributes as many bytes.
    #[inline(always)]
    pub(crate) fn read(&self, data: &mut [u8]) {
        self.cells.read(self.slot, self.rank, self.call, data);
    }
}

impl<C: Conduit> Engine<C> {
    /// Enters the next call of a group, the same operation on all members.
    ///
    /// Waits while this rank's cell has no room, as another member is 16 calls behind.
    ///
    /// The caller has checked that this thread may wait.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of a member.
    #[inline(always)]
    pub(super) fn enter<'e>(
        &'e self,
        ctx: &ThreadCtx,
        (cells, group): (SharedCells<'e>, &'e Group),
        label: Label,
        data: &[u8],
    ) -> Result<Entered<'e, C>, AmError> {
        let what = self.world_history().mix(label.to_word());
        let lock = (self.mode == ThreadMode::Par).then(|| group.call_lock.lock());
        let call = group.next();
        if !group.has_room(call) && !group.look_for_room(cells, call) {
            self.wait_for_room(ctx, cells, group, call)?;
        }
        let unfinished = 0;
        cells.enter(group.slot, call, Entry { unfinished, what }, data);
        cells.wake(group.others());
        group.entered(call);
        Ok(Entered {
            engine: self,
            cells,
            group,
            call,
            label,
            what,
            _lock: lock,
        })
    }

    /// The entry of a rank in a call, once it has entered it.
    ///
    /// `check` is called from time to time when that lasts.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of any member, also of one that has entered the call: others that know
    /// of its loss do not enter it any more.
    pub(crate) fn wait_for_cell(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        place: CellPlace,
        members: CellMembers<'_>,
        waiting: Waiting,
        mut check: impl FnMut(),
    ) -> Result<Entry, AmError> {
        let CellPlace { slot, rank, call } = place;
        let look = || cells.look(slot, rank, call);
        // While the cell is on its way here.
        self.progress(ctx);
        let mut wait = self.waiting_for_cell(waiting);
        let (yields, looks) = match wait.gives_way() {
            false => (0, LOOKS),
            true => (YIELDS, LOOKS_BETWEEN_YIELDS),
        };
        for round in 0..=yields {
            if round > 0 {
                if !cells.needs_processor(slot, members.awaited, call) {
                    for _ in 0..LOOKS_AT_OTHERS {
                        if let Some(entry) = look() {
                            return Ok(entry);
                        }
                        argonet_base::cpu::relax();
                    }
                }
                self.conduit.yield_now();
            }
            for _ in 0..looks {
                if let Some(entry) = look() {
                    return Ok(entry);
                }
            }
        }
        loop {
            if wait.lasts() {
                self.check_cell(cells, place);
                check();
            }
            wait.pause_unless(ctx, &|| look().is_some());
            if let Some(entry) = look() {
                return Ok(entry);
            }
            self.unless_lost(|lost| members.all.contains(&lost))?;
        }
    }

    /// Polls in some calls: a rank that makes collective calls alone takes its messages, even if
    /// the others always enter first.
    #[inline(always)]
    pub(crate) fn poll_between(&self, ctx: &ThreadCtx, call: u64) {
        if call.is_multiple_of(POLL_EVERY) {
            self.progress_and_run(ctx, true);
        }
    }

    /// Ends the job if a cell can never come.
    #[cold]
    fn check_cell(&self, cells: SharedCells<'_>, CellPlace { slot, rank, call }: CellPlace) {
        if cells.is_past(slot, rank, call) {
            self.fatal(&format!(
                "rank {}: rank {rank} has gone on to a later call in slot {slot} of the neighborhood's cells than call \
                 {call}, which this rank waits for: the shared memory is damaged",
                self.rank
            ));
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_room(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        group: &Group,
        call: u64,
    ) -> Result<(), AmError> {
        let mut wait = self.waiting_unannounced(Waiting::new(WaitFor::Collective));
        while !group.look_for_room(cells, call) {
            self.unless_lost(|lost| group.members.contains(&lost))?;
            wait.pause(ctx);
        }
        Ok(())
    }
}

impl<'e, C: Conduit> Entered<'e, C> {
    /// The cell of a member, once it has entered the call, and whether it means the same operation.
    #[inline(always)]
    fn await_cell(
        &self,
        ctx: &ThreadCtx,
        member: u32,
        why: WaitFor,
    ) -> Result<(MemberCell<'e>, Entry), AmError> {
        let &Self {
            cells,
            group: &Group {
                slot, ref members, ..
            },
            call,
            ..
        } = self;
        let rank = members[member as usize];
        let entry = match cells.look(slot, rank, call) {
            Some(entry) => entry,
            None => self.wait_for_cell(ctx, rank, why)?,
        };
        let cell = MemberCell {
            cells,
            slot,
            call,
            member,
            rank,
        };
        Ok((cell, entry))
    }

    #[inline(never)]
    fn wait_for_cell(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        why: WaitFor,
    ) -> Result<Entry, AmError> {
        let place = CellPlace {
            slot: self.group.slot,
            rank,
            call: self.call,
        };
        let waiting = Waiting::on(why, rank);
        let called = || match why {
            WaitFor::Barrier => Called::barrier(BarrierKind::Client, self.call),
            _ => Called {
                sequence: Sequence::Passes,
                number: self.call,
                label: self.label,
            },
        };
        let mut check = MismatchCheck::default();
        let members = CellMembers {
            awaited: &self.group.members,
            all: &self.group.members,
        };
        self.engine
            .wait_for_cell(ctx, self.cells, place, members, waiting, || {
                self.engine.check_mismatch(&mut check, rank, &called);
            })
    }

    #[cold]
    #[inline(never)]
    fn differs(&self, rank: JobRank, theirs: u64) -> ! {
        let place = CellPlace {
            slot: self.group.slot,
            rank,
            call: self.call,
        };
        self.engine.world_cells_differ(self.label, place, theirs)
    }

    /// Waits for all members, calls `visit` with their cells in the order of ranks, with this
    /// rank's too, and finishes the call.
    ///
    /// Ends the job if a member means another operation.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of a member.
    #[inline(always)]
    pub(super) fn all(
        self,
        ctx: &ThreadCtx,
        why: WaitFor,
        mut visit: impl FnMut(&MemberCell<'e>),
    ) -> Result<(), AmError> {
        self.engine.poll_between(ctx, self.call);
        let mut unfinished = 0;
        for member in 0..self.group.members.len() as u32 {
            let (cell, entry) = self.await_cell(ctx, member, why)?;
            if entry.what != self.what {
                self.differs(cell.rank, entry.what);
            }
            unfinished = unfinished.max(entry.unfinished);
            visit(&cell);
        }
        // A member that has entered this call has finished those before.
        self.group.knows(self.call.saturating_sub(unfinished));
        self.cells.finish(self.group.slot, self.call + 1);
        Ok(())
    }
}
