//! The page that a rank publishes to the others.

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert_eq;

use crate::board::Notice;

/// Progress of a rank.
///
/// Only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoPrimitive, TryFromPrimitive)]
#[repr(u32)]
#[non_exhaustive]
pub enum RankState {
    /// The process may exist, but has not attached.
    Starting = 0,
    /// The process has attached; fences still have the start-up limit.
    Joined = 1,
    /// The rank has started up.
    Running = 2,
    /// The rank does not need the others any more.
    Finalized = 3,
    /// The process ended without ever attaching.
    Ended = 4,
    /// The rank itself has asked for the end of the job, or left without finalizing: no other
    /// process had to end it.
    Exiting = 5,
    /// The rank was asked to end, before it ended the job itself.
    AskedToEnd = 6,
    /// The rank knew that the job ends, with 0, and then came to its own end with 0: no other
    /// process ended it.
    Returned = 7,
}

impl RankState {
    /// Whether the end of a process in this state ends the job, with any exit code.
    #[must_use]
    pub const fn is_member(self) -> bool {
        matches!(self, Self::Joined | Self::Running)
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Joined => "joined",
            Self::Running => "running",
            Self::Finalized => "finalized",
            Self::Ended => "ended",
            Self::Exiting => "exiting",
            Self::AskedToEnd => "asked to end",
            Self::Returned => "returned",
        }
    }
}

/// Place of a rank that is lost in an order that is not known here yet.
///
/// Beyond any count of losses.
pub(crate) const UNDECLARED: u32 = u32::MAX;

/// Words that one rank publishes to the others, on its own cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RankPage {
    /// [`RankState`].
    ///
    /// Written by the rank (Release), and by guardian or launcher when a process ended without
    /// attaching; read by processes that wait for the rank or judge its end (Acquire).
    pub(super) state: AtomicU32,
    /// Process id of the process that attached as this rank.
    ///
    /// Written by it before `state` becomes Joined; read for reports.
    pub(super) pid: AtomicU32,
    /// Bytes of segment that the rank has attached, 0 before.
    ///
    /// Written by the rank with Release after the memory is there, read by neighbors with Acquire
    /// before they map or bound-check.
    pub segment_len: AtomicU64,
    /// Address at which the rank's segment begins, or will begin, in its process.
    ///
    /// Written by the rank before the first fence that others complete before they look.
    pub segment_base: AtomicU64,
    /// Number of fences that this rank has entered.
    ///
    /// Written by the rank, read by ranks that name the missing ones.
    pub(crate) fences_entered: AtomicU32,
    /// Place of the rank in the order in which losses were declared, from 1 on; 0 while it is not
    /// lost, and [`UNDECLARED`] while its guardian alone knows that it is.
    ///
    /// Written by the process that declares losses (Release), before the job's count, and before
    /// that by the guardian in a job over several hosts; read by ranks that look for lost ones or
    /// agree (Acquire).
    pub(super) lost: AtomicU32,
    /// The wait of the rank.
    pub(super) notice: Notice,
    /// Not 0 if the rank's client goes on when the job loses other ranks: then one more than the
    /// losses that it has acknowledged.
    ///
    /// Raised by the rank (Release), read by processes that judge the end of a rank, and by ranks
    /// that wait for others to acknowledge (Acquire).
    pub(super) accepts_losses: AtomicU32,
    /// The last round of agreement that the rank has entered.
    ///
    /// Raised by the rank (Release), read by ranks that decide a round, and the host's agent
    /// (Acquire).
    pub(super) agreed: AtomicU32,
}
const_assert_eq!(size_of::<RankPage>(), 64);

impl RankPage {
    /// Progress of the rank.
    #[must_use]
    pub fn state(&self) -> RankState {
        // Only this module stores here, so another value means memory that is not ours to trust:
        // treat it as running, which makes the rank's end a failure.
        RankState::try_from(self.state.load(Ordering::Acquire)).unwrap_or(RankState::Running)
    }

    /// The process id of the process that attached as this rank; 0 if none has.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    pub(crate) fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Place of the rank in the order of losses, from 1 on, or [`UNDECLARED`]; `None` while it is
    /// not lost.
    pub(crate) fn lost(&self) -> Option<u32> {
        Some(self.lost.load(Ordering::Acquire)).filter(|&order| order != 0)
    }

    /// Before the job's count of losses.
    pub(crate) fn set_lost(&self, order: u32) {
        self.lost.store(order, Ordering::Release);
    }

    pub(crate) fn accepts_losses(&self) -> bool {
        self.accepts_losses.load(Ordering::Acquire) != 0
    }

    pub(crate) fn accept_losses(&self) {
        self.accepts_losses.fetch_max(1, Ordering::AcqRel);
    }

    /// Losses that the rank has acknowledged.
    pub(crate) fn acknowledged(&self) -> u32 {
        self.accepts_losses
            .load(Ordering::Acquire)
            .saturating_sub(1)
    }

    pub(crate) fn acknowledge(&self, losses: u32) {
        let word = losses.saturating_add(1);
        self.accepts_losses.fetch_max(word, Ordering::AcqRel);
    }

    /// The last round of agreement that the rank has entered.
    pub(crate) fn agreed(&self) -> u32 {
        self.agreed.load(Ordering::Acquire)
    }

    /// Enters a round of agreement; whether that is news.
    pub(crate) fn enter_agreement(&self, round: u32) -> bool {
        self.agreed.fetch_max(round, Ordering::AcqRel) < round
    }

    /// Makes this process the rank; false if the rank has been taken before.
    pub(crate) fn join(&self, pid: u32) -> bool {
        let free = self
            .pid
            .compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        free && self.advance(RankState::Joined)
    }

    /// Raises the state; false if it was there already or beyond.
    pub(crate) fn advance(&self, to: RankState) -> bool {
        self.state.fetch_max(to.into(), Ordering::AcqRel) < to.into()
    }

    /// Notes that the rank was asked to end; false if it had come to its end by itself.
    pub(crate) fn ask_to_end(&self) -> bool {
        let asked = RankState::AskedToEnd.into();
        let by_itself = [RankState::Exiting.into(), RankState::Returned.into()];
        let raise = |state| (!by_itself.contains(&state)).then_some(asked);
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raise)
            .is_ok()
    }

    /// Notes that the process ended without attaching; false if it had attached.
    pub(crate) fn end_unattached(&self) -> bool {
        let (from, to) = (RankState::Starting.into(), RankState::Ended.into());
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
