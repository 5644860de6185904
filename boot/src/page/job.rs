//! The page that the whole job shares.

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use argonet_base::JobRank;
use static_assertions::const_assert_eq;

use crate::exit_word::{ExitStage, ExitWord};
use crate::tally::Tally;

/// Shared words of the whole job: its identity, its fence, and its end.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct JobPage {
    /// The magic number.
    ///
    /// Written once by the maker before any rank starts; read when a rank attaches.
    pub(super) magic: AtomicU64,
    /// Hash of sizes and offsets.
    ///
    /// As `magic`.
    pub(super) layout_hash: AtomicU64,
    /// Random identity of the job.
    ///
    /// As `magic`.
    pub(super) job_id: AtomicU64,
    /// Number of ranks.
    ///
    /// As `magic`.
    pub(super) size: AtomicU32,
    /// Version of the layout.
    ///
    /// As `magic`.
    pub(super) version: AtomicU32,
    /// Page size of the segments file ([`HugePages`](crate::HugePages)) or 0.
    ///
    /// As `magic`.
    pub(super) huge_pages: AtomicU32,
    /// Process id of the launcher, or of rank 0 of a job that started itself, or of one whose
    /// launcher is not known.
    ///
    /// As `magic`.
    pub(super) launcher_pid: AtomicU32,
    /// Process id of the guardian once it watches, else 0.
    ///
    /// Written by the guardian; read by all processes of the job, for reports.
    pub(super) guardian_pid: AtomicU32,
    /// Time that an exit may take, in milliseconds.
    ///
    /// As `magic`.
    pub(super) exit_timeout_ms: AtomicU32,
    /// [`ExitStage`]: how far the guardian has come with ending the job.
    ///
    /// Written by the guardian (Release) before it signals a rank, read by that rank's signal
    /// handler (Acquire).
    pub(super) exit_stage: AtomicU32,
    /// Number of reports of all ranks asked for so far.
    ///
    /// Incremented by the launcher, or by a rank whose wait is long; every rank compares it with
    /// the number that it saw last. Relaxed: nothing else depends on it.
    pub(super) reports: AtomicU32,
    /// The packed [`ExitWord`], 0 until a process ends the job.
    ///
    /// Written once, by compare-and-exchange, by the first (rank, guardian or launcher); AcqRel
    /// pairs with the Acquire loads of threads that report, wait or poll.
    pub(super) exit_word: AtomicU64,
    /// The fence, on its own line: every rank writes it.
    pub(crate) fence: FenceWords,
    /// The first rank on this host.
    ///
    /// As `magic`.
    pub(super) host_first: AtomicU32,
    /// Number of ranks of this host.
    ///
    /// As `magic`.
    pub(super) host_ranks: AtomicU32,
    /// Most ranks of this host that share memory.
    ///
    /// As `magic`.
    pub(super) neighborhood: AtomicU32,
    /// Not 0 once a rank of this host has begun to report to the others that it ends the job, or
    /// has heard of an end over a network.
    ///
    /// Written by that rank after the exit word (Release); read by ranks of this host that wait or
    /// poll (Relaxed in polls, which look at the word by Acquire then).
    pub(super) exit_reported: AtomicU32,
    /// Time when the guardian kills the remaining ranks, in milliseconds of the monotonic clock; 0
    /// while it has not begun to end the job.
    ///
    /// Written by the guardian, read by ranks that end. Relaxed: nothing else depends on it.
    pub(super) forced_at_ms: AtomicU64,
    /// Not 0 once a rank of this host is about to report what several ranks find, and to end the
    /// job.
    ///
    /// Set by that rank, by a swap. Relaxed: nothing else depends on it.
    pub(super) claimed: AtomicU64,
    /// Not 0 if the user has asked that the job goes on without ranks that are lost.
    ///
    /// As `magic`.
    pub(super) goes_on: AtomicU32,
    /// Number of ranks that the job has lost, as far as they are declared.
    ///
    /// Written by the one process of the host that declares losses: the guardian, or the host's
    /// agent in a job over several hosts. Release, after the rank's `lost`; pairs with the Acquire
    /// loads of ranks that poll or agree.
    pub(super) losses: AtomicU32,
    /// The last agreement: its round, from bit 32 on, and the number of losses that it decided.
    ///
    /// Written by compare-and-exchange, by any rank that finds a round complete, or by the host's
    /// agent; AcqRel pairs with the Acquire loads of ranks that ask for the result. The round only
    /// grows.
    pub(super) agreement: AtomicU64,
    /// Not 0 once all ranks of the job accept losses, in a job over several hosts.
    ///
    /// Written by the host's agent (Release) before it lets the ranks go from the fence that all
    /// have entered after they accepted; read by processes that judge the end of a rank (Acquire).
    pub(super) all_accept: AtomicU32,
    /// Number of losses that all ranks that are left have acknowledged, in a job over several
    /// hosts.
    ///
    /// Written by the host's agent (Release), and never lowered, as no tally takes anything back;
    /// read by ranks that wait for others to acknowledge (Acquire).
    pub(super) all_acknowledged: AtomicU32,
    /// The most losses that one rank that is left has acknowledged, from bit 32 on, and that rank,
    /// in a job over several hosts.
    ///
    /// Written by the host's agent (Release), read by ranks that agree (Acquire).
    pub(super) furthest: AtomicU64,
    _tail: [AtomicU64; 8],
}
const_assert_eq!(size_of::<JobPage>(), 256);

/// The words of the fence (see the module `fence` for the algorithm).
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct FenceWords {
    /// Number of fences that have completed; the futex word that ranks sleep on.
    ///
    /// Written with Release by the last rank to arrive, read with Acquire by waiting ranks.
    pub(crate) generation: AtomicU32,
    /// Number of ranks that have arrived at the current fence.
    ///
    /// Every rank adds with AcqRel; the last one resets it before it advances the generation.
    pub(crate) arrived: AtomicU32,
    /// The number of the last fence that all ranks of this host have entered, in a job over several
    /// hosts.
    ///
    /// Written with Release by the last of them, read with Acquire by the host's agent.
    pub(crate) host_arrived: AtomicU32,
    _pad: [AtomicU32; 13],
}
const_assert_eq!(size_of::<FenceWords>(), 64);

impl JobPage {
    /// The random identity of the job.
    #[must_use]
    pub fn job_id(&self) -> u64 {
        self.job_id.load(Ordering::Relaxed)
    }

    /// Whether the job is ending.
    ///
    /// One load.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.exit_word.load(Ordering::Acquire) != 0
    }

    /// The number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// The process id of the guardian; `None` before it watches, and in a job of one rank, which
    /// has none.
    #[must_use]
    pub fn guardian_pid(&self) -> Option<u32> {
        Some(self.guardian_pid.load(Ordering::Relaxed)).filter(|&pid| pid != 0)
    }

    /// The process id of the launcher, or of rank 0 of a job that started itself, or of one whose
    /// launcher is not known.
    #[must_use]
    pub fn launcher_pid(&self) -> u32 {
        self.launcher_pid.load(Ordering::Relaxed)
    }

    pub(crate) fn reports(&self) -> &AtomicU32 {
        &self.reports
    }

    pub(crate) fn huge_pages(&self) -> u32 {
        self.huge_pages.load(Ordering::Relaxed)
    }

    /// Time that the ranks have to end once one of them has asked for it.
    #[must_use]
    pub fn exit_timeout(&self) -> Duration {
        Duration::from_millis(self.exit_timeout_ms.load(Ordering::Relaxed).into())
    }

    /// Before any rank starts.
    pub(crate) fn set_exit_timeout(&self, timeout: Duration) {
        let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.exit_timeout_ms.store(ms, Ordering::Relaxed);
    }

    /// Before any rank starts.
    pub(crate) fn set_launcher_pid(&self, pid: u32) {
        self.launcher_pid.store(pid, Ordering::Relaxed);
    }

    /// Progress of the guardian with ending the job.
    pub(crate) fn exit_stage(&self) -> ExitStage {
        ExitStage::try_from(self.exit_stage.load(Ordering::Acquire)).unwrap_or(ExitStage::Kill)
    }

    pub(crate) fn set_exit_stage(&self, stage: ExitStage) {
        self.exit_stage.store(stage.into(), Ordering::Release);
    }

    /// Time until the guardian kills the remaining ranks; `None` while the job is not ending.
    ///
    /// It is the whole time-out while the guardian does not know of the end, as the guardian counts
    /// from the time when it learns of it.
    pub(crate) fn time_until_forced(&self, now_ms: u64) -> Option<Duration> {
        let at_ms = self.forced_at_ms.load(Ordering::Relaxed);
        match (self.exit_word(), at_ms) {
            (None, _) => None,
            (Some(_), 0) => Some(self.exit_timeout()),
            (Some(_), at_ms) => Some(Duration::from_millis(at_ms.saturating_sub(now_ms))),
        }
    }

    pub(crate) fn set_forced_at_ms(&self, at_ms: u64) {
        self.forced_at_ms.store(at_ms, Ordering::Relaxed);
    }

    /// Whether the end of the job has been reported to the ranks of this host: by this mark, which
    /// is their system queue.
    #[inline]
    pub(crate) fn is_exit_reported(&self) -> bool {
        self.exit_reported.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn report_exit(&self) {
        self.exit_reported.store(1, Ordering::Release);
    }

    /// Whether the user has asked that the job goes on without ranks that are lost.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.goes_on.load(Ordering::Relaxed) != 0
    }

    /// Before any rank starts.
    pub(crate) fn set_goes_on(&self, goes_on: bool) {
        self.goes_on.store(goes_on.into(), Ordering::Relaxed);
    }

    /// Number of ranks that are declared lost.
    #[inline]
    pub(crate) fn losses(&self) -> u32 {
        self.losses.load(Ordering::Acquire)
    }

    /// After the page of the rank that is the last of so many.
    pub(crate) fn set_losses(&self, count: u32) {
        self.losses.store(count, Ordering::Release);
    }

    /// The last round of agreement that is decided, and the number of losses that it decided.
    pub(crate) fn agreement(&self) -> (u32, u32) {
        let word = self.agreement.load(Ordering::Acquire);
        ((word >> 32) as u32, word as u32)
    }

    /// Decides `round`, unless it or a later one is decided.
    pub(crate) fn decide(&self, round: u32, losses: u32) {
        let word = u64::from(round) << 32 | u64::from(losses);
        let later = |known: u64| (((known >> 32) as u32) < round).then_some(word);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        // An error means that it is decided.
        let _ = self.agreement.fetch_update(set, fetch, later);
    }

    /// Whether all ranks of the job accept losses, in a job over several hosts.
    ///
    /// Async-signal-safe.
    pub(crate) fn all_accept(&self) -> bool {
        self.all_accept.load(Ordering::Acquire) != 0
    }

    /// Number of losses that all ranks that are left have acknowledged, in a job over several
    /// hosts.
    pub(crate) fn all_acknowledged(&self) -> u32 {
        self.all_acknowledged.load(Ordering::Acquire)
    }

    /// The most losses that one rank that is left has acknowledged, and that rank, in a job over
    /// several hosts.
    pub(crate) fn furthest(&self) -> (u32, JobRank) {
        let word = self.furthest.load(Ordering::Acquire);
        ((word >> 32) as u32, JobRank(word as u32))
    }

    /// The tally of all hosts, as the host's agent has heard it.
    pub(crate) fn set_tally(&self, tally: &Tally) {
        let (losses, rank) = tally.furthest;
        let furthest = u64::from(losses) << 32 | u64::from(rank.0);
        self.all_accept
            .store(tally.accepts.into(), Ordering::Release);
        self.all_acknowledged
            .store(tally.acknowledged, Ordering::Release);
        self.furthest.store(furthest, Ordering::Release);
    }

    pub(crate) fn set_guardian_pid(&self, pid: u32) {
        self.guardian_pid.store(pid, Ordering::Relaxed);
    }

    /// Whether the caller is the first of this host that is about to report what several ranks
    /// find.
    pub(crate) fn claim_report(&self) -> bool {
        self.claimed.swap(1, Ordering::Relaxed) == 0
    }

    /// The first failure of the job, if there was one.
    ///
    /// Async-signal-safe.
    #[must_use]
    pub fn exit_word(&self) -> Option<ExitWord> {
        ExitWord::unpack(self.exit_word.load(Ordering::Acquire))
    }

    /// Stores the first failure and wakes the ranks that wait at a fence; the failure that counts,
    /// which is an earlier one if there was one.
    ///
    /// Async-signal-safe.
    pub fn set_exit_word(&self, word: ExitWord) -> ExitWord {
        let stored =
            self.exit_word
                .compare_exchange(0, word.pack(), Ordering::AcqRel, Ordering::Acquire);
        crate::fence::wake_all(&self.fence);
        match stored {
            Ok(_) => word,
            Err(earlier) => ExitWord::unpack(earlier).unwrap_or(word),
        }
    }
}
