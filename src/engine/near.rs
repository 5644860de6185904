//! The near table: what C code needs to reach a neighbour's memory without a call.
//!
//! `include/argonet_near.h` declares the same struct; a test has the C compiler compare the two. A field
//! that moves, or changes its meaning, means a new [`NEAR_VERSION`].
use super::core::Engine;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use static_assertions::const_assert_eq;

/// First word of a [`NearPrefix`]: `ARGN` in ASCII, little-endian.
pub const NEAR_MAGIC: u32 = u32::from_le_bytes(*b"ARGN");

/// Version of the layout and of what the fields mean.
pub const NEAR_VERSION: u32 = 2;

/// The delta of a rank whose memory cannot be reached by loads and stores. No real one is odd.
pub const NEAR_NONE: isize = -1;

/// What stands at the beginning of a team, as C sees it.
///
/// ```text
/// 0        4         8         12         16      20      24             32
/// | magic  | version | near_lo | near_len | rank  | size  | delta        |
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct NearPrefix {
    /// [`NEAR_MAGIC`].
    pub magic: u32,
    /// [`NEAR_VERSION`].
    pub version: u32,
    /// First rank of the team that the table has.
    pub near_lo: u32,
    /// Ranks that the table has, from `near_lo` on.
    pub near_len: AtomicU32,
    /// This process's rank in the team.
    pub rank: u32,
    /// Ranks of the team.
    pub size: u32,
    /// `near_len` address deltas: `delta[r - near_lo]` added to an address in the segment of rank
    /// `r`, as that rank's process has it, is where this process has it; [`NEAR_NONE`] means that
    /// there is no such address, and that a call is needed.
    pub delta: AtomicPtr<isize>,
}

const_assert_eq!(size_of::<NearPrefix>(), 32);
const_assert_eq!(core::mem::offset_of!(NearPrefix, near_lo), 8);
const_assert_eq!(core::mem::offset_of!(NearPrefix, rank), 16);
const_assert_eq!(core::mem::offset_of!(NearPrefix, delta), 24);

impl NearPrefix {
    /// For a team of `size` ranks in which this process is `rank`; it has no table yet.
    #[must_use]
    pub const fn new(rank: u32, size: u32) -> Self {
        Self {
            magic: NEAR_MAGIC,
            version: NEAR_VERSION,
            near_lo: 0,
            near_len: AtomicU32::new(0),
            rank,
            size,
            delta: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Gives it its table, for good. Who synchronises with the caller may use it.
    pub fn set_deltas(&self, deltas: &'static [isize]) {
        if argonet_trace::is_on() {
            // Every put and get comes to the library, which reports it.
            return;
        }
        self.delta
            .store(deltas.as_ptr().cast_mut(), Ordering::Relaxed);
        self.near_len.store(deltas.len() as u32, Ordering::Release);
    }
}

impl<C: Conduit> Engine<C> {
    /// Maps what neighbours have attached of their segments, and makes the table that leads there,
    /// one delta for each rank from rank 0 on. It is right as long as the engine's directory lives.
    ///
    /// # Errors
    /// What the system says of a mapping.
    pub fn near_deltas(&self) -> Result<Box<[isize]>, argonet_segment::SegmentError> {
        let directory = self.directory();
        directory.map_all(|rank| (self.segment_len)(rank))?;
        let delta = |rank: JobRank| match directory.attached_bytes(rank) {
            0 => NEAR_NONE,
            _ => self.segment_delta(rank),
        };
        // All ranks of a job are neighbours as long as smp is the only conduit.
        let ranks = directory.file().ranks().min(self.size);
        Ok((0..ranks).map(|rank| delta(JobRank(rank))).collect())
    }

    /// What has to be added to an address in the segment of `rank`, as that rank's process has it, to
    /// have the address here; whether anything is attached there or not.
    #[must_use]
    pub fn segment_delta(&self, rank: JobRank) -> isize {
        let here = self.directory.span_base(rank);
        let here = here.map_or(0, |base| base.addr().get() as u64);
        // Both are addresses of user memory, so that the difference fits.
        here.wrapping_sub((self.segment_base)(rank)) as isize
    }

    /// Where the segment that `rank` has attached lies in that rank's process, and its length in
    /// bytes; zeros if there is none.
    #[must_use]
    pub fn published_segment(&self, rank: JobRank) -> (u64, u64) {
        match (self.segment_len)(rank) {
            0 => (0, 0),
            len => ((self.segment_base)(rank), len),
        }
    }
}
