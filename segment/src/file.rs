//! The segment file: one sparse, nameless file that holds the segments of all ranks of a host.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use argonet_base::JobRank;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create,
};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

use crate::error::SegmentError;
use crate::pages::{self, PageKind};

/// The file never changes its size again: a shorter file would turn other ranks' loads into
/// SIGBUS, and a seal that stops writing could be added by anyone who holds the file.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Largest file and address range that is tried: half of a signed 64-bit size.
const MAX_TOTAL_BYTES: u64 = 1 << 62;

/// The file that holds the segments of all ranks of a host, one span of `stride` bytes each.
///
/// A memfd: it has no name in `/dev/shm` or anywhere, and the kernel frees it when the last process
/// that holds or maps it has ended, however it ended. It is as long as all spans together from the
/// start and sparse: memory is taken only by pages that a process touches.
///
/// The process that starts the job creates it; ranks receive the descriptor over fork and exec and
/// open it with [`from_fd`](Self::from_fd).
#[derive(Debug)]
pub struct SegmentFile {
    fd: OwnedFd,
    /// The rank of the first span.
    first: JobRank,
    ranks: u32,
    stride_bytes: u64,
    pages: PageKind,
}

impl SegmentFile {
    /// Creates the file, close-on-exec (see [`set_inheritable`](Self::set_inheritable)).
    ///
    /// `stride` is the most that each segment can grow to; it is rounded up to
    /// [`PageKind::span_alignment_bytes`].
    ///
    /// # Errors
    ///
    /// When `ranks` or `stride` is 0, when they are too large together, when the kernel has no
    /// pages of that kind or their pool is empty, and when the kernel refuses the file.
    pub fn create(ranks: u32, stride: u64, pages: PageKind) -> Result<Self, SegmentError> {
        pages.check()?;
        layout(ranks, stride, pages)?;
        let mut flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        if let PageKind::Huge { size_bytes } = pages {
            // Each rank needs one page at least; a pool without that is found here, by the one
            // process that can say so before any rank runs.
            if pages::obtainable_pages(size_bytes) < u64::from(ranks) {
                return Err(pages::pool_too_small(size_bytes, u64::from(ranks)));
            }
            let exponent = size_bytes.trailing_zeros();
            flags |= MemfdFlags::HUGETLB | MemfdFlags::from_bits_retain(exponent << MFD_HUGE_SHIFT);
        }
        let fd = memfd_create(c"argonet-segments", flags)
            .map_err(SegmentError::os("create the segment file"))?;
        Self::establish(fd, ranks, stride, pages)
    }

    /// Makes an empty memory file that the launcher created for the purpose, on pages of this kind,
    /// into the segment file: sets its length and seals it.
    ///
    /// One rank does it, before the others call [`from_fd`](Self::from_fd).
    ///
    /// # Errors
    ///
    /// When `ranks` or `stride` is 0, when they are too large together, and when the kernel
    /// refuses.
    pub fn establish(
        fd: OwnedFd,
        ranks: u32,
        stride: u64,
        pages: PageKind,
    ) -> Result<Self, SegmentError> {
        let (stride_bytes, total) = layout(ranks, stride, pages)?;
        ftruncate(&fd, total).map_err(|errno| match errno {
            Errno::FBIG | Errno::INVAL => SegmentError::SpanTooLarge {
                ranks,
                stride_bytes,
            },
            _ => SegmentError::os("set the length of the segment file")(errno),
        })?;
        fcntl_add_seals(&fd, SEALS).map_err(SegmentError::os("seal the segment file"))?;
        let file = Self {
            fd,
            first: JobRank(0),
            ranks,
            stride_bytes,
            pages,
        };
        file.set_inheritable(false)?;
        Ok(file)
    }

    /// Opens the file that the job's first process created with the same arguments, and
    /// sets its close-on-exec flag, so that programs that the rank starts do not keep it alive.
    ///
    /// # Errors
    ///
    /// When the descriptor is not a file of that size, sealed as [`create`](Self::create) does and
    /// on pages of that size.
    pub fn from_fd(
        fd: OwnedFd,
        ranks: u32,
        stride: u64,
        pages: PageKind,
    ) -> Result<Self, SegmentError> {
        let (stride_bytes, total) = layout(ranks, stride, pages)?;
        let wrong = |reason: String| SegmentError::WrongFile {
            ranks,
            stride_bytes,
            reason,
        };
        let seals = fcntl_get_seals(&fd)
            .map_err(|_| wrong("it is no memory file that can be sealed".to_owned()))?;
        if !seals.contains(SEALS) {
            return Err(wrong("its size is not sealed".to_owned()));
        }
        let stat = fstat(&fd).map_err(SegmentError::os("look at the segment file"))?;
        if u64::try_from(stat.st_size) != Ok(total) {
            return Err(wrong(format!(
                "it has {} bytes and should have {total}",
                stat.st_size
            )));
        }
        // hugetlbfs reports the size of its pages as the preferred block size; shared memory may
        // report that of transparent huge pages.
        let block = u64::try_from(stat.st_blksize).unwrap_or(0);
        if matches!(pages, PageKind::Huge { size_bytes } if size_bytes != block) {
            return Err(wrong(format!("its pages have {block} bytes")));
        }
        let file = Self {
            fd,
            first: JobRank(0),
            ranks,
            stride_bytes,
            pages,
        };
        file.set_inheritable(false)?;
        Ok(file)
    }

    /// The file whose spans belong to `first` and the ranks that follow it.
    ///
    /// Without this they belong to rank 0 and those that follow.
    #[must_use]
    pub fn starting_at(self, first: JobRank) -> Self {
        Self { first, ..self }
    }

    /// Number of ranks that have a span.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The ranks that have a span.
    #[must_use]
    pub fn owners(&self) -> Range<u32> {
        self.first.0..self.first.0.saturating_add(self.ranks)
    }

    /// Length of one rank's span in bytes, rounded up from the length asked for: the most that its
    /// segment can grow to.
    #[must_use]
    pub fn stride_bytes(&self) -> u64 {
        self.stride_bytes
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        // `layout` established that this does not overflow.
        self.stride_bytes * u64::from(self.ranks)
    }

    /// The pages that segments lie on.
    #[must_use]
    pub fn pages(&self) -> PageKind {
        self.pages
    }

    /// Memory that the file holds now, over all ranks, in bytes.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to say.
    pub fn allocated_bytes(&self) -> Result<u64, SegmentError> {
        let stat = fstat(&self.fd).map_err(SegmentError::os("look at the segment file"))?;
        // POSIX leaves the unit of st_blocks open; on Linux it is 512 bytes.
        Ok(u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
    }

    /// Whether programs started from this process inherit the descriptor.
    ///
    /// The launcher sets it in the child between fork and exec.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to change the flag.
    pub fn set_inheritable(&self, inheritable: bool) -> Result<(), SegmentError> {
        let action = "change close-on-exec of the segment file";
        let mut flags = fcntl_getfd(&self.fd).map_err(SegmentError::os(action))?;
        flags.set(FdFlags::CLOEXEC, !inheritable);
        fcntl_setfd(&self.fd, flags).map_err(SegmentError::os(action))
    }

    /// Gives the descriptor back, for instance to hand it to a rank.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Where the span of `rank` begins in the file.
    ///
    /// # Errors
    ///
    /// When that rank has none.
    pub(crate) fn span_offset(&self, rank: JobRank) -> Result<u64, SegmentError> {
        let place = rank.0.checked_sub(self.first.0);
        place
            .filter(|place| *place < self.ranks)
            .map(|place| u64::from(place) * self.stride_bytes)
            .ok_or(SegmentError::NoSuchRank {
                rank,
                ranks: self.ranks,
            })
    }

    /// Gives all memory of a rank's span back to the system.
    ///
    /// Mappings stay valid and read as zero.
    pub(crate) fn release_span(&self, rank: JobRank) -> Result<(), SegmentError> {
        let offset = self.span_offset(rank)?;
        fallocate(
            &self.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            offset,
            self.stride_bytes,
        )
        .map_err(SegmentError::os("give the segment's memory back"))
    }
}

impl AsRawFd for SegmentFile {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for SegmentFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where the exponent of the page size lies in the flags of `memfd_create` (`MFD_HUGE_SHIFT`).
const MFD_HUGE_SHIFT: u32 = 26;

/// The rounded stride and the length of the whole file.
fn layout(ranks: u32, stride: u64, pages: PageKind) -> Result<(u64, u64), SegmentError> {
    if ranks == 0 {
        return Err(SegmentError::NoSuchRank {
            rank: JobRank(0),
            ranks,
        });
    }
    if stride == 0 {
        return Err(SegmentError::Empty { rank: JobRank(0) });
    }
    let too_large = || SegmentError::SpanTooLarge {
        ranks,
        stride_bytes: stride,
    };
    let stride = stride
        .checked_next_multiple_of(pages.span_alignment_bytes())
        .ok_or_else(too_large)?;
    let total = stride
        .checked_mul(u64::from(ranks))
        .filter(|total| *total <= MAX_TOTAL_BYTES)
        .ok_or_else(too_large)?;
    Ok((stride, total))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use argonet_base::JobRank;

    use super::SegmentFile;
    use crate::error::SegmentError;
    use crate::pages::{PageKind, TRANSPARENT_BYTES};

    #[test]
    fn a_huge_sparse_file_costs_nothing() {
        let file = SegmentFile::create(64, 1 << 40, PageKind::TransparentHuge).unwrap();
        assert_eq!(file.total_bytes(), 64 << 40);
        assert_eq!(file.allocated_bytes().unwrap(), 0);
    }

    #[test]
    fn the_stride_is_rounded_for_the_pages() {
        let normal = SegmentFile::create(2, 1, PageKind::Normal).unwrap();
        assert_eq!(normal.stride_bytes(), PageKind::Normal.page_bytes());
        let huge =
            SegmentFile::create(2, TRANSPARENT_BYTES + 1, PageKind::TransparentHuge).unwrap();
        assert_eq!(huge.stride_bytes(), 2 * TRANSPARENT_BYTES);
    }

    #[test]
    fn the_size_cannot_be_changed() {
        let file = SegmentFile::create(2, 1 << 20, PageKind::Normal).unwrap();
        assert!(ftruncate(&file, 0).is_err());
        assert!(ftruncate(&file, 4 << 20).is_err());
        assert!(rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::FUTURE_WRITE).is_err());
    }

    #[test]
    fn spans_belong_to_the_ranks_from_the_first_on() {
        let page = PageKind::Normal.page_bytes();
        let file = SegmentFile::create(3, 2 * page, PageKind::Normal).unwrap();
        assert_eq!((file.ranks(), file.pages()), (3, PageKind::Normal));
        let offset = |file: &SegmentFile, rank| file.span_offset(JobRank(rank)).ok();
        let offsets = [0, 1, 2, 3].map(|rank| offset(&file, rank));
        assert_eq!(offsets, [Some(0), Some(2 * page), Some(4 * page), None]);
        let file = file.starting_at(JobRank(5));
        assert_eq!((file.ranks(), file.owners()), (3, 5..8));
        let offsets = [4, 5, 7, 8].map(|rank| offset(&file, rank));
        assert_eq!(offsets, [None, Some(0), Some(4 * page), None]);
    }

    #[test]
    fn programs_inherit_the_file_where_they_should() {
        let file = SegmentFile::create(1, 1, PageKind::Normal).unwrap();
        let closes = |file: &SegmentFile| {
            let flags = rustix::io::fcntl_getfd(file).unwrap();
            flags.contains(rustix::io::FdFlags::CLOEXEC)
        };
        assert!(closes(&file));
        file.set_inheritable(true).unwrap();
        assert!(!closes(&file));
        let fd = file.into_fd();
        let again = SegmentFile::from_fd(fd, 1, 1, PageKind::Normal).unwrap();
        assert!(closes(&again));
    }

    #[test]
    fn the_memory_of_one_span_goes_back() {
        let page = PageKind::Normal.page_bytes();
        let file = SegmentFile::create(3, page, PageKind::Normal).unwrap();
        for rank in 0..3 {
            rustix::io::pwrite(&file, b"x", rank * page).unwrap();
        }
        assert_eq!(file.allocated_bytes().unwrap(), 3 * page);
        file.release_span(JobRank(1)).unwrap();
        assert_eq!(file.allocated_bytes().unwrap(), 2 * page);
        let first = |rank| {
            let mut byte = [9];
            rustix::io::pread(&file, &mut byte, rank * page).unwrap();
            byte[0]
        };
        assert_eq!([0, 1, 2].map(first), [b'x', 0, b'x']);
        assert_eq!(file.total_bytes(), 3 * page);
        assert!(file.release_span(JobRank(3)).is_err());
    }

    #[test]
    fn a_received_descriptor_is_checked() {
        let page = PageKind::Normal;
        let reopen = |fd: &SegmentFile| fd.as_fd().try_clone_to_owned().unwrap();
        let file = SegmentFile::create(3, 1 << 20, page).unwrap();
        let same = SegmentFile::from_fd(reopen(&file), 3, 1 << 20, page).unwrap();
        assert_eq!(same.total_bytes(), 3 << 20);

        let wrong = |fd: OwnedFd, ranks, stride, kind| {
            let error = SegmentFile::from_fd(fd, ranks, stride, kind).unwrap_err();
            assert!(matches!(error, SegmentError::WrongFile { .. }), "{error}");
        };
        wrong(reopen(&file), 2, 1 << 20, page);
        wrong(reopen(&file), 3, 2 << 20, page);
        // The same total, but pages of another size.
        let two = SegmentFile::create(2, 2 << 20, page).unwrap();
        wrong(
            reopen(&two),
            2,
            2 << 20,
            PageKind::Huge {
                size_bytes: 2 << 20,
            },
        );
        wrong(File::open("/dev/null").unwrap().into(), 3, 1 << 20, page);
        let unsealed = memfd_create(c"unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&unsealed, 3 << 20).unwrap();
        wrong(unsealed, 3, 1 << 20, page);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for (ranks, stride) in [(0, 1), (1, 0), (1, u64::MAX), (u32::MAX, 1 << 40)] {
            assert!(SegmentFile::create(ranks, stride, PageKind::Normal).is_err());
        }
    }

    #[test]
    fn a_pool_that_is_too_small_is_named() {
        let size_bytes = 2 << 20;
        let kind = PageKind::Huge { size_bytes };
        // More ranks than any pool has pages.
        match SegmentFile::create(100_000_000, 1, kind) {
            Err(error @ SegmentError::NoHugePages { .. }) => {
                let text = error.to_string();
                assert!(text.contains("100000000 are wanted"), "{text}");
                assert!(text.contains("/proc/sys/vm/nr_hugepages"), "{text}");
            }
            // A kernel without huge pages.
            Err(SegmentError::UnsupportedPageSize { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
