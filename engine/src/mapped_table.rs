//! The mapped table, by which C code reaches a neighbor's memory without a call.
//!
//! `include/argonet/mapped.h` declares the same struct; the C compiler compares the two in a test.
//! A field that moves, or changes its meaning, means a new [`MAPPED_VERSION`].
use super::core::Engine;
use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_conduit::Conduit;
use argonet_segment::SegmentError;
use static_assertions::const_assert_eq;

/// First word of a [`MappedPrefix`]: `ARGN` in ASCII, little-endian.
pub const MAPPED_MAGIC: u32 = number32("ARGONET_MAPPED_MAGIC");

/// Version of the layout and of the meaning of the fields and the table.
pub const MAPPED_VERSION: u32 = number32("ARGONET_MAPPED_VERSION");

/// The table's entry of a rank whose memory cannot be reached by loads and stores.
pub const MAPPED_NONE: isize = 0;

/// The beginning of a team, as C sees it.
///
/// Behind the whole team, at [`MAPPED_TABLE`], lies its table: an `isize` for each rank below
/// `mapped_len`, made by [`mapped_entry`].
///
/// ```text
/// 0        4         8          12     16     20         24                   64
/// | magic  | version | mapped_len | rank | size | reserved | the library's own  | table
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct MappedPrefix {
    /// [`MAPPED_MAGIC`].
    pub magic: u32,
    /// [`MAPPED_VERSION`].
    pub version: u32,
    /// Ranks that the table has, from rank 0 on.
    pub mapped_len: u32,
    /// This process's rank in the team.
    pub rank: u32,
    /// Ranks of the team.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
}

/// Where the table begins, from the beginning of the team: the next cache line.
pub const MAPPED_TABLE: usize = 64;

const_assert_eq!(size_of::<MappedPrefix>(), 24);
const_assert_eq!(core::mem::offset_of!(MappedPrefix, mapped_len), 8);
const_assert_eq!(core::mem::offset_of!(MappedPrefix, rank), 12);
const_assert_eq!(core::mem::offset_of!(MappedPrefix, size), 16);

impl MappedPrefix {
    /// For a team of `size` ranks in which this process is `rank`, with a table for the first
    /// `mapped_len` of them.
    #[must_use]
    pub const fn new(rank: u32, size: u32, mapped_len: u32) -> Self {
        Self {
            magic: MAPPED_MAGIC,
            version: MAPPED_VERSION,
            mapped_len,
            rank,
            size,
            reserved: 0,
        }
    }
}

/// The table's entry for a rank, from the distance between an address of that rank's process and
/// the same memory here.
///
/// The distance may be 0, for the rank itself or processes that were forked alike, so that the
/// entry is one more; no memory is an odd distance away from itself.
#[must_use]
pub const fn mapped_entry(delta: Option<isize>) -> isize {
    match delta {
        Some(delta) => delta.wrapping_add(1),
        None => MAPPED_NONE,
    }
}

impl<C: Conduit> Engine<C> {
    /// Maps the attached memory of neighbors' segments.
    ///
    /// Gives a distance for each rank from rank 0 to the last neighbor, to be added to an address
    /// of that rank's process, or `None` if its memory is not mapped here. It is right as long as
    /// the engine's directory lives.
    ///
    /// # Errors
    /// A mapping that the system refuses.
    pub fn mapped_deltas(&self) -> Result<Box<[Option<isize>]>, SegmentError> {
        let directory = self.directory();
        directory.map_all(|rank| (self.segment_len)(rank))?;
        let delta = |rank: JobRank| match directory.attached_bytes(rank) {
            0 => None,
            _ => Some(self.segment_delta(rank)),
        };
        let ranks = directory.file().owners().end.min(self.size);
        Ok((0..ranks).map(|rank| delta(JobRank(rank))).collect())
    }
}
