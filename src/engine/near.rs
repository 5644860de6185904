//! The near table: what C code needs to reach a neighbour's memory without a call.
//!
//! `include/argonet_near.h` declares the same struct; the test `layout` compares the two. A field
//! that moves, or changes its meaning, means a new [`NEAR_VERSION`].
#![allow(unsafe_code)]

use super::core::Engine;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_segment::Directory;
use core::ptr::NonNull;
use static_assertions::const_assert_eq;
use std::sync::Arc;

/// First word of a [`NearPrefix`]: `ARGN` in ASCII, little-endian.
pub const NEAR_MAGIC: u32 = u32::from_le_bytes(*b"ARGN");

/// Version of the layout and of what the fields mean.
pub const NEAR_VERSION: u32 = 1;

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
    pub near_len: u32,
    /// This process's rank in the team.
    pub rank: u32,
    /// Ranks of the team.
    pub size: u32,
    /// `near_len` address deltas: `delta[r - near_lo]` added to an address in this process's own
    /// segment is the address of the same offset in the segment of rank `r`; 0 means that there is
    /// no such address, and that a call is needed (it is 0 for this rank itself).
    pub delta: *const isize,
}

const_assert_eq!(size_of::<NearPrefix>(), 32);
const_assert_eq!(core::mem::offset_of!(NearPrefix, near_lo), 8);
const_assert_eq!(core::mem::offset_of!(NearPrefix, rank), 16);
const_assert_eq!(core::mem::offset_of!(NearPrefix, delta), 24);

/// A prefix with its table and the mappings that it leads to. Never changes.
#[derive(Debug)]
pub struct NearTable {
    prefix: Box<NearPrefix>,
    /// What `prefix.delta` points to.
    _delta: Box<[isize]>,
    /// Keeps mapped what the deltas lead to.
    directory: Arc<Directory>,
    /// Bytes of each rank's segment that were mapped when the table was made; the smallest.
    reach: u64,
}

// SAFETY: the pointer in the prefix leads to the boxed table beside it, which nothing changes.
unsafe impl Send for NearTable {}
// SAFETY: as for Send.
unsafe impl Sync for NearTable {}

impl NearTable {
    /// The prefix, for C. Valid as long as this value.
    #[must_use]
    pub fn prefix(&self) -> NonNull<NearPrefix> {
        NonNull::from(&*self.prefix)
    }

    /// Offsets below this many bytes can be accessed in every segment of the table. Segments may
    /// have grown since; what they gained is reached by calls.
    #[must_use]
    pub fn reach_bytes(&self) -> u64 {
        self.reach
    }

    /// The directory whose addresses the table has.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }
}

impl<C: Conduit> Engine<C> {
    /// Maps the attached part of every neighbour's segment and makes the table that leads there.
    ///
    /// # Errors
    /// What the system says of a mapping.
    pub fn near_table(&self) -> Result<NearTable, argonet_segment::SegmentError> {
        let directory = self.directory.directory();
        directory.map_all(|rank| (self.segment_len)(rank))?;
        let own = directory.span_base(self.rank);
        let delta = |rank: JobRank| -> isize {
            match (directory.span_base(rank), own) {
                // Both lie in one reservation, so that the difference fits.
                (Some(there), Some(own)) if directory.attached_bytes(rank) > 0 => {
                    there.addr().get().wrapping_sub(own.addr().get()) as isize
                }
                _ => 0,
            }
        };
        let ranks = directory.file().ranks().min(self.size);
        let table: Box<[isize]> = (0..ranks).map(|rank| delta(JobRank(rank))).collect();
        let attached = (0..ranks).map(|rank| directory.attached_bytes(JobRank(rank)));
        let prefix = NearPrefix {
            magic: NEAR_MAGIC,
            version: NEAR_VERSION,
            // All ranks of a job are neighbours as long as smp is the only conduit.
            near_lo: 0,
            near_len: ranks,
            rank: self.rank.0,
            size: self.size,
            delta: table.as_ptr(),
        };
        Ok(NearTable {
            prefix: Box::new(prefix),
            reach: attached.min().unwrap_or(0),
            _delta: table,
            directory: Arc::clone(directory),
        })
    }
}
