//! The control file: job page, ranks' pages and key store, as every process of the job maps them.
//!
//! ```text
//! 0        JobPage               256 bytes
//! 256      RankPage x size       64 bytes each
//! ...      KeySlot x KEYS x size 248 bytes each
//! ```
//!
//! All fields are atomics, because other processes write them: a reference to them is sound whatever a peer does.
//! Offsets follow from the number of ranks alone (`Layout`), and the hash of all sizes and offsets is stored in the page,
//! so that a program built from another version is refused instead of misread.
#![allow(unsafe_code)]

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::os::fd::AsFd;
use std::time::Duration;

use argonet_base::JobRank;
use memmap2::{MmapOptions, MmapRaw};
use num_enum::{IntoPrimitive, TryFromPrimitive};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use static_assertions::const_assert_eq;

use crate::board::Notice;
use crate::bootstrap::{KEYS, MAX_VALUE_BYTES};
use crate::error::BootError;
pub(crate) use crate::exit_word::ExitStage;
pub use crate::exit_word::{ExitKind, ExitWord};
pub(crate) use crate::part::HostPart;

/// The most ranks that one host runs for one job.
pub const MAX_LOCAL_RANKS: u32 = argonet_settings::MAX_LOCAL_RANKS;

/// The most ranks of a job over several hosts.
pub const MAX_JOB_RANKS: u32 = 1 << 16;

const MAGIC: u64 = u64::from_le_bytes(*b"argonet\0");
const VERSION: u32 = 1;

/// What the whole job shares: who it is, its fence, and how it ended.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct JobPage {
    /// The magic number. Written once by the maker before any rank starts; read when a rank attaches.
    magic: AtomicU64,
    /// Hash of sizes and offsets. As `magic`.
    layout_hash: AtomicU64,
    /// Random identity of the job. As `magic`.
    job_id: AtomicU64,
    /// Number of ranks. As `magic`.
    size: AtomicU32,
    /// Version of the layout. As `magic`.
    version: AtomicU32,
    /// Page size of the segments file ([`HugePages`](crate::HugePages)) or 0. As `magic`.
    huge_pages: AtomicU32,
    /// Process id of the launcher, or of rank 0 of a job that started itself. As `magic`.
    launcher_pid: AtomicU32,
    /// Process id of the guardian once it watches, else 0. Written by the guardian; read by anyone, for reports.
    guardian_pid: AtomicU32,
    /// How long an exit may take, in milliseconds. As `magic`.
    exit_timeout_ms: AtomicU32,
    /// [`ExitStage`]: how far the guardian has come with ending the job. Written by the guardian (Release) before it signals
    /// a rank, read by that rank's signal handler (Acquire).
    exit_stage: AtomicU32,
    /// How many reports of all ranks have been asked for. Counted up by whoever asks (launcher, or a rank whose wait is
    /// long); every rank compares it with what it last saw. Relaxed: nothing else depends on it.
    reports: AtomicU32,
    /// The packed [`ExitWord`], 0 until somebody ends the job. Written once, by compare-and-exchange, by whoever is first
    /// (rank, guardian or launcher); AcqRel pairs with the Acquire loads of whoever reports, waits or polls.
    exit_word: AtomicU64,
    /// The fence, on its own line: every rank writes it.
    pub(crate) fence: FenceWords,
    /// The first rank on this host. As `magic`.
    host_first: AtomicU32,
    /// How many ranks this host has. As `magic`.
    host_ranks: AtomicU32,
    /// How many ranks of this host share memory at most. As `magic`.
    neighbourhood: AtomicU32,
    _pad: AtomicU32,
    _tail: [AtomicU64; 14],
}
const_assert_eq!(size_of::<JobPage>(), 256);

/// The words of the fence (see the module `fence` for the algorithm).
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct FenceWords {
    /// How many fences have completed; the futex word that ranks sleep on. Written with Release by the last rank to
    /// arrive, read with Acquire by those who wait.
    pub(crate) generation: AtomicU32,
    /// How many ranks have arrived at the current fence. Every rank adds with AcqRel; the last one resets it before it
    /// advances the generation.
    pub(crate) arrived: AtomicU32,
    /// The number of the last fence that all ranks of this host have entered, in a job over several hosts. Written with
    /// Release by the last of them, read with Acquire by the host's agent.
    pub(crate) host_arrived: AtomicU32,
    _pad: [AtomicU32; 13],
}
const_assert_eq!(size_of::<FenceWords>(), 64);

/// How far a rank has come. Only ever grows.
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
    Finalised = 3,
    /// The process ended without ever attaching.
    Ended = 4,
    /// The rank itself has asked for the end of the job, or left without finalising: nobody had to make it.
    Exiting = 5,
    /// The rank was told that the job is ending, before it asked for that itself.
    Told = 6,
}

impl RankState {
    /// Whether the end of a process in this state ends the job whatever its exit code.
    #[must_use]
    pub const fn is_member(self) -> bool {
        matches!(self, Self::Joined | Self::Running)
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Joined => "joined",
            Self::Running => "running",
            Self::Finalised => "finalised",
            Self::Ended => "ended",
            Self::Exiting => "exiting",
            Self::Told => "told to end",
        }
    }
}

/// What one rank tells the others, on its own cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RankPage {
    /// [`RankState`]. Written by the rank (Release), and by guardian or launcher when a process ended without attaching;
    /// read by whoever waits for the rank or judges its end (Acquire).
    state: AtomicU32,
    /// Process id of the process that attached as this rank. Written by it before `state` becomes Joined; read for reports.
    pid: AtomicU32,
    /// Bytes of segment that the rank has attached, 0 before. Written by the rank with Release after the memory is there,
    /// read by neighbours with Acquire before they map or bound-check.
    pub segment_len: AtomicU64,
    /// Where the rank's segment begins, or will begin, in its process. Written by the rank before the first fence that
    /// others complete before they look.
    pub segment_base: AtomicU64,
    /// How many fences this rank has entered. Written by the rank, read by ranks that name who is missing.
    pub(crate) fences_entered: AtomicU32,
    _pad: AtomicU32,
    /// What the rank waits for.
    notice: Notice,
    _spare: AtomicU64,
}
const_assert_eq!(size_of::<RankPage>(), 64);

impl RankPage {
    /// How far the rank has come.
    #[must_use]
    pub fn state(&self) -> RankState {
        // Only this module stores here, so another value means memory that is not ours to trust: treat it as running,
        // which makes the rank's end a failure.
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

    /// Notes that the rank was told to end; false if it had asked for that itself.
    pub(crate) fn tell(&self) -> bool {
        let told = RankState::Told.into();
        let by_itself = RankState::Exiting.into();
        let raise = |state| (state != by_itself).then_some(told);
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

const VALUE_WORDS: usize = MAX_VALUE_BYTES / 8;

/// One published value.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KeySlot {
    /// 0 until published, then length + 1. Written by the owner with Release after `value`, read by others with Acquire.
    pub(crate) filled: AtomicU64,
    /// The value in little-endian words. Written by the owner once, before `filled`.
    pub(crate) value: [AtomicU64; VALUE_WORDS],
}
const_assert_eq!(size_of::<KeySlot>(), 8 + MAX_VALUE_BYTES);

/// Where things lie in the control file of a job of a given size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    size: usize,
}

impl Layout {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            size: size as usize,
        }
    }
    const fn rank_page(self, rank: usize) -> usize {
        size_of::<JobPage>() + rank * size_of::<RankPage>()
    }
    const fn key_slot(self, rank: usize, key: usize) -> usize {
        self.rank_page(self.size) + (rank * KEYS + key) * size_of::<KeySlot>()
    }
    pub(crate) const fn total_bytes(self) -> usize {
        self.key_slot(self.size, 0)
    }
}

/// Bytes of the control memory of a job of `ranks` ranks on one host.
#[must_use]
pub fn control_bytes(ranks: u32) -> usize {
    Layout::new(ranks).total_bytes()
}

/// FNV-1a over everything that two builds must agree on.
const LAYOUT_HASH: u64 = {
    let parts = [
        size_of::<JobPage>(),
        size_of::<RankPage>(),
        size_of::<KeySlot>(),
        KEYS,
        offset_of!(JobPage, size),
        offset_of!(JobPage, huge_pages),
        offset_of!(JobPage, guardian_pid),
        offset_of!(JobPage, reports),
        offset_of!(JobPage, exit_word),
        offset_of!(JobPage, fence),
        offset_of!(JobPage, host_first),
        offset_of!(JobPage, neighbourhood),
        offset_of!(FenceWords, host_arrived),
        offset_of!(RankPage, segment_len),
        offset_of!(RankPage, segment_base),
        offset_of!(RankPage, fences_entered),
        offset_of!(RankPage, notice),
        RankState::Told as usize,
        offset_of!(JobPage, exit_timeout_ms),
        VERSION as usize,
    ];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < parts.len() {
        hash = (hash ^ parts[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
};

/// What the maker of a job writes into the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobIdentity {
    pub(crate) job_id: u64,
    pub(crate) size: u32,
    pub(crate) huge_pages: u32,
    pub(crate) launcher_pid: u32,
    pub(crate) part: HostPart,
}

/// The mapped control file.
#[derive(Debug)]
pub(crate) struct Control {
    map: MmapRaw,
    size: u32,
    part: HostPart,
}

impl Control {
    /// Maps a control file that was just made for `identity.size` ranks, and fills in the job page.
    pub(crate) fn create(fd: impl AsFd, identity: JobIdentity) -> Result<Self, BootError> {
        let control = Self::map(fd, identity.size, identity.part)
            .map_err(|e| BootError::system("mapping the control memory", e))?;
        let job = control.job();
        let HostPart {
            first,
            ranks,
            neighbourhood,
        } = identity.part;
        job.host_first.store(first, Ordering::Relaxed);
        job.host_ranks.store(ranks, Ordering::Relaxed);
        job.neighbourhood.store(neighbourhood, Ordering::Relaxed);
        job.layout_hash.store(LAYOUT_HASH, Ordering::Relaxed);
        job.version.store(VERSION, Ordering::Relaxed);
        job.job_id.store(identity.job_id, Ordering::Relaxed);
        job.size.store(identity.size, Ordering::Relaxed);
        job.huge_pages.store(identity.huge_pages, Ordering::Relaxed);
        job.launcher_pid
            .store(identity.launcher_pid, Ordering::Relaxed);
        job.magic.store(MAGIC, Ordering::Release);
        Ok(control)
    }

    /// Maps a control file that somebody says is one; the reason if it is not.
    pub(crate) fn open(fd: impl AsFd, size: u32, job_id: u64) -> Result<Self, String> {
        let fd = fd.as_fd();
        let seals = fcntl_get_seals(fd)
            .map_err(|_| "the control descriptor is not a shared memory file".to_string())?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err("the control file is not sealed against shrinking".into());
        }
        let bytes = fstat(fd)
            .map_err(|e| format!("the control file cannot be examined: {e}"))?
            .st_size;
        let need = Layout::new(size).total_bytes();
        if u64::try_from(bytes).unwrap_or(0) != need as u64 {
            return Err(format!(
                "the control file has {bytes} bytes, but {size} ranks of this version need {need}"
            ));
        }
        let mut control = Self::map(fd, size, HostPart::whole(size))
            .map_err(|e| format!("the control file cannot be mapped: {e}"))?;
        let job = control.job();
        if job.magic.load(Ordering::Acquire) != MAGIC {
            return Err("the control file is not argonet's (wrong magic number)".into());
        }
        let (version, hash) = (
            job.version.load(Ordering::Relaxed),
            job.layout_hash.load(Ordering::Relaxed),
        );
        if (version, hash) != (VERSION, LAYOUT_HASH) {
            return Err(format!(
                "the launcher and this program were built from different versions of argonet (control layout {version} \
                 {hash:016x} against {VERSION} {LAYOUT_HASH:016x}); build both from the same one"
            ));
        }
        if job.size() != size || job.job_id() != job_id {
            return Err("the control file belongs to another job".into());
        }
        let part = HostPart {
            first: job.host_first.load(Ordering::Relaxed),
            ranks: job.host_ranks.load(Ordering::Relaxed),
            neighbourhood: job.neighbourhood.load(Ordering::Relaxed),
        };
        control.part = part.check(size).ok_or_else(|| {
            format!("the control file gives this host impossible ranks ({part:?})")
        })?;
        Ok(control)
    }

    fn map(fd: impl AsFd, size: u32, part: HostPart) -> std::io::Result<Self> {
        let bytes = Layout::new(size).total_bytes();
        let fd = fd.as_fd();
        let map = MmapOptions::new().len(bytes).map_raw(&fd)?;
        Ok(Self { map, size, part })
    }

    /// A reference to the `T` at `offset`, which comes from [`Layout`] for a rank and key in range.
    fn at<T>(&self, offset: usize) -> &T {
        assert!(
            offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.map.len()
        );
        // SAFETY: the mapping is page-aligned, live as long as `self`, and the assertion above keeps the object inside of it
        // and aligned. The file is sealed against shrinking where it is made (`SharedFiles::create`) and that is checked
        // where it is received (`open`), so every byte is backed. Each `T` used here consists of atomics only (this module's
        // `repr(C)` structs), for which any bit pattern is valid and concurrent writes by other processes are no race.
        unsafe { &*self.map.as_ptr().add(offset).cast::<T>() }
    }

    fn layout(&self) -> Layout {
        Layout::new(self.size)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Which ranks are on this host.
    pub(crate) fn part(&self) -> HostPart {
        self.part
    }

    /// The ranks of this host.
    pub(crate) fn host_ranks(&self) -> impl Iterator<Item = JobRank> + use<> {
        self.part.all().map(JobRank)
    }

    /// Whether all ranks of the job are on this host.
    pub(crate) fn is_whole_job(&self) -> bool {
        self.part.ranks == self.size
    }

    pub(crate) fn job(&self) -> &JobPage {
        self.at(0)
    }

    /// # Panics
    /// If there is no such rank.
    pub(crate) fn rank_page(&self, rank: JobRank) -> &RankPage {
        assert!(
            rank.0 < self.size,
            "there is no {rank:?} in a job of {}",
            self.size
        );
        self.at(self.layout().rank_page(rank.index()))
    }

    /// # Panics
    /// If there is no such rank or key.
    pub(crate) fn key_slot(&self, rank: JobRank, key: usize) -> &KeySlot {
        assert!(
            rank.0 < self.size && key < KEYS,
            "there is no key {key} of {rank:?}"
        );
        self.at(self.layout().key_slot(rank.index(), key))
    }
}

impl KeySlot {
    /// Publishes a value of at most [`MAX_VALUE_BYTES`]; false if there is one. One thread of one process at a time.
    pub(crate) fn fill(&self, value: &[u8]) -> bool {
        if self.filled.load(Ordering::Relaxed) != 0 {
            return false;
        }
        for (word, bytes) in self.value.iter().zip(value.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.filled.store(value.len() as u64 + 1, Ordering::Release);
        true
    }

    /// The value, if there is one.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let bytes = self.filled.load(Ordering::Acquire).checked_sub(1)?;
        let words = self.value.iter();
        let mut value: Vec<u8> = words
            .flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        // A length beyond the slot can only come from a peer that writes where it must not; the value is cut then.
        value.truncate(usize::try_from(bytes).unwrap_or(MAX_VALUE_BYTES));
        Some(value)
    }
}

impl JobPage {
    /// The random identity of the job.
    #[must_use]
    pub fn job_id(&self) -> u64 {
        self.job_id.load(Ordering::Relaxed)
    }

    /// Whether the job is ending. One load.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.exit_word.load(Ordering::Acquire) != 0
    }

    /// The number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// The process id of the guardian; `None` before it watches, and in a job of one rank, which has none.
    #[must_use]
    pub fn guardian_pid(&self) -> Option<u32> {
        Some(self.guardian_pid.load(Ordering::Relaxed)).filter(|&pid| pid != 0)
    }

    /// The process id of the launcher, or of rank 0 of a job that started itself.
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

    /// How long the ranks have to end once one of them has asked for it.
    #[must_use]
    pub fn exit_timeout(&self) -> Duration {
        Duration::from_millis(self.exit_timeout_ms.load(Ordering::Relaxed).into())
    }

    /// Before any rank starts.
    pub(crate) fn set_exit_timeout(&self, timeout: Duration) {
        let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.exit_timeout_ms.store(ms, Ordering::Relaxed);
    }

    /// How far the guardian has come with ending the job.
    pub(crate) fn exit_stage(&self) -> ExitStage {
        ExitStage::try_from(self.exit_stage.load(Ordering::Acquire)).unwrap_or(ExitStage::Kill)
    }

    pub(crate) fn set_exit_stage(&self, stage: ExitStage) {
        self.exit_stage.store(stage.into(), Ordering::Release);
    }

    pub(crate) fn set_guardian_pid(&self, pid: u32) {
        self.guardian_pid.store(pid, Ordering::Relaxed);
    }

    /// The first failure of the job, if there was one. Async-signal-safe.
    #[must_use]
    pub fn exit_word(&self) -> Option<ExitWord> {
        ExitWord::unpack(self.exit_word.load(Ordering::Acquire))
    }

    /// Stores the first failure and wakes the ranks that wait at a fence; the failure that counts, which is an earlier
    /// one if there was one. Async-signal-safe.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SharedFiles;

    fn control(size: u32) -> (SharedFiles, Control) {
        let files = SharedFiles::create(size, None).unwrap();
        let identity = JobIdentity {
            job_id: 7,
            size,
            huge_pages: 0,
            launcher_pid: 1,
            part: HostPart::whole(size),
        };
        let control = Control::create(&files.control, identity).unwrap();
        (files, control)
    }

    #[test]
    fn every_part_of_the_largest_control_file_is_in_bounds_and_disjoint() {
        let (_files, control) = control(MAX_LOCAL_RANKS);
        let mut addresses = vec![control.job() as *const _ as usize];
        for rank in (0..MAX_LOCAL_RANKS).map(JobRank) {
            addresses.push(control.rank_page(rank) as *const _ as usize);
            addresses.extend((0..KEYS).map(|key| control.key_slot(rank, key) as *const _ as usize));
        }
        let count = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), count);
    }

    #[test]
    fn a_control_file_of_another_job_size_or_kind_is_refused() {
        let (files, _control) = control(4);
        assert!(Control::open(&files.control, 4, 7).is_ok());
        assert!(
            Control::open(&files.control, 4, 8)
                .unwrap_err()
                .contains("another job")
        );
        assert!(
            Control::open(&files.control, 5, 7)
                .unwrap_err()
                .contains("5 ranks")
        );
        assert!(
            Control::open(&files.rings, 4, 7)
                .unwrap_err()
                .contains("0 bytes")
        );
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(
            Control::open(&null, 4, 7)
                .unwrap_err()
                .contains("not a shared memory file")
        );
        let blank = SharedFiles::create(4, None).unwrap();
        assert!(
            Control::open(&blank.control, 4, 7)
                .unwrap_err()
                .contains("magic")
        );
    }

    #[test]
    fn a_rank_is_taken_once_and_its_state_only_grows() {
        let (_files, control) = control(2);
        let page = control.rank_page(JobRank(1));
        assert!(page.join(11) && !page.join(12));
        assert!(!page.end_unattached());
        assert!(page.advance(RankState::Finalised) && !page.advance(RankState::Running));
        assert_eq!((page.state(), page.pid()), (RankState::Finalised, 11));
        assert!(control.rank_page(JobRank(0)).end_unattached());
    }
}
