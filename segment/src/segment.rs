//! Segments: this process's own, and its neighbors'.

use std::ptr::NonNull;
use std::sync::Arc;

use argonet_base::{JobRank, SegmentOffset};

use crate::bulk::{SharedBytes, SharedBytesMut};
use crate::directory::Directory;
use crate::error::SegmentError;

/// The segment of this process: memory that every rank of the job may read and write.
///
/// It can grow in place; its address never changes. There is one at a time for each
/// [`Directory`].
///
/// Dropping it gives the memory back to the system at once, also that which neighbors have
/// mapped: they read zeros from then on. Its addresses stay mapped until the directory is dropped,
/// so that a pointer or view that outlives the segment does not fault.
#[derive(Debug)]
pub struct OwnSegment {
    directory: Arc<Directory>,
}

impl OwnSegment {
    /// Attaches `len` bytes, rounded up to whole pages.
    ///
    /// Takes no memory until pages are touched.
    ///
    /// Others see nothing of it until the caller has published [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// When a segment is attached already, when `len` is 0 or exceeds the span fixed at start,
    /// and when the kernel refuses the mapping or lacks huge pages.
    pub fn attach(directory: &Arc<Directory>, len: u64) -> Result<Self, SegmentError> {
        directory.attach_own(len)?;
        Ok(Self {
            directory: Arc::clone(directory),
        })
    }

    /// Makes the segment `new_len` bytes long, rounded up to whole pages, and returns its length,
    /// which the caller then publishes.
    ///
    /// New memory reads as zero. Any thread may call it while others use the segment.
    ///
    /// # Errors
    ///
    /// When it would shrink or exceed its span, and when the kernel refuses; the segment stays as
    /// it was.
    pub fn grow(&self, new_len: u64) -> Result<u64, SegmentError> {
        self.directory.grow_own(new_len)
    }

    /// The rank of this process among the ranks of this host.
    #[must_use]
    pub fn rank(&self) -> JobRank {
        self.directory.own_rank()
    }

    /// Address of the first byte; page-aligned, never changes.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.directory
            .span_base(self.rank())
            .expect("Directory::new refuses an own rank without a span")
    }

    /// Length in bytes, a whole number of pages.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    pub fn len(&self) -> u64 {
        self.directory.attached_bytes(self.rank())
    }

    /// A view to read `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// [`SegmentError::OutOfSegment`] when they are not all inside the segment.
    pub fn bytes(
        &self,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<SharedBytes<'_>, SegmentError> {
        self.directory
            .bytes(self.rank(), offset, len)
            .ok_or_else(|| self.outside(offset, len))
    }

    /// A view to write `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// [`SegmentError::OutOfSegment`] when they are not all inside the segment.
    pub fn bytes_mut(
        &self,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<SharedBytesMut<'_>, SegmentError> {
        self.directory
            .bytes_mut(self.rank(), offset, len)
            .ok_or_else(|| self.outside(offset, len))
    }

    /// The directory that it is attached in.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn outside(&self, offset: SegmentOffset, len: usize) -> SegmentError {
        SegmentError::OutOfSegment {
            rank: self.rank(),
            offset,
            len_bytes: len,
            attached_bytes: self.len(),
        }
    }
}

impl Drop for OwnSegment {
    fn drop(&mut self) {
        // Should the kernel refuse, the memory goes back when the last process has let go of
        // the file, which is soon and needs no report.
        let _ = self.directory.detach_own();
    }
}

/// The part of a neighbor's segment that is mapped here, as of the moment of asking.
#[derive(Clone, Copy, Debug)]
pub struct NeighborSegment<'a> {
    rank: JobRank,
    base: NonNull<u8>,
    len_bytes: u64,
    directory: &'a Directory,
}

impl<'a> NeighborSegment<'a> {
    /// The segment of `rank` (own or neighbor's), `None` while nothing of it is mapped here.
    #[must_use]
    pub fn of(directory: &'a Directory, rank: JobRank) -> Option<Self> {
        let len_bytes = directory.attached_bytes(rank);
        let base = directory.span_base(rank)?;
        (len_bytes != 0).then_some(Self {
            rank,
            base,
            len_bytes,
            directory,
        })
    }

    /// The rank that has the segment.
    #[must_use]
    pub fn rank(&self) -> JobRank {
        self.rank
    }

    /// Address of the first byte in this process; never changes.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length that was mapped when this was made; never 0.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a mapped segment is never empty"
    )]
    pub fn len(&self) -> u64 {
        self.len_bytes
    }

    /// A view to read `len` bytes from `offset`; `None` when they are not all mapped.
    #[must_use]
    pub fn bytes(&self, offset: SegmentOffset, len: usize) -> Option<SharedBytes<'a>> {
        self.directory.bytes(self.rank, offset, len)
    }

    /// A view to write `len` bytes from `offset`; `None` when they are not all mapped.
    #[must_use]
    pub fn bytes_mut(&self, offset: SegmentOffset, len: usize) -> Option<SharedBytesMut<'a>> {
        self.directory.bytes_mut(self.rank, offset, len)
    }
}
