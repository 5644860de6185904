//! The directory: from (rank, offset) to an address of this process, and back.

use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use argonet_base::{JobRank, SegmentOffset};
use parking_lot::Mutex;
use static_assertions::const_assert_eq;

use crate::bulk::{SharedBytes, SharedBytesMut};
use crate::error::SegmentError;
use crate::file::SegmentFile;
use crate::pages::PageKind;
use crate::reservation::Reservation;

/// Entry of the directory for one rank of the job.
///
/// ```text
///  0               8               16
/// +---------------+---------------+
/// | base   | kind | attached      |    kind: the low 12 bits of `base`, zero in every page address
/// +---------------+---------------+
/// ```
///
/// `kind` is 0 for a span of the segment file, the only kind so far. Other kinds (memory outside
/// segments, found through a registration cache) keep `attached` at 0, so that the fast path
/// refuses them without a test of its own and the slow path looks at the kind.
#[repr(C)]
struct Entry {
    /// Where the span begins in this process, null before it is first mapped.
    ///
    /// Written under the directory's lock before `attached` is; read after `attached`, which orders
    /// it.
    base: AtomicPtr<u8>,
    /// Length that is mapped here and belongs to the segment.
    ///
    /// Written under the directory's lock with release, when the mapping exists; read by any thread
    /// with acquire. It grows, and falls back to 0 when this process gives up its own segment.
    attached: AtomicU64,
}

const_assert_eq!(size_of::<Entry>(), 16);

/// The bits of [`Entry::base`] that hold the kind of an entry.
const KIND_MASK: usize = 0xfff;

impl Entry {
    const fn empty() -> Self {
        Self {
            base: AtomicPtr::new(null_mut()),
            attached: AtomicU64::new(0),
        }
    }
}

/// State that only the slow path touches.
#[derive(Debug)]
struct Slow {
    /// How much of this rank's own span has ever been mapped: it stays mapped when the segment is
    /// given up, and a second attachment must not map over what may still be in use.
    own_mapped_bytes: u64,
    /// Ranks whose segments are mapped no more, as they have ended.
    given_up: Vec<JobRank>,
}

/// The segments of the ranks that share memory with this process, as it sees them.
///
/// Addresses for all spans are reserved at once, in the order of ranks: the address of an offset
/// never changes as long as the directory lives, whether the segment is mapped yet or not, and
/// finding the rank of an address is a division. A neighbor's segment is mapped when it is first
/// used ([`ensure`](Self::ensure), [`refresh`](Self::refresh)) or all at once
/// ([`map_all`](Self::map_all)), and only as far as its owner has attached it.
///
/// Ranks of the job whose segments are not in the file have an entry that nothing is ever mapped
/// for, so that the fast path does not ask which ranks are neighbors.
///
/// All methods may be called by any thread at any time. [`resolve`](Self::resolve) and
/// [`translate`](Self::translate) take no lock and never block; the others may take the directory's
/// lock and map memory.
///
/// # Addresses that it hands out
///
/// Safe views borrow from the directory. Pointers stay mapped until the directory is dropped, even
/// those into a segment that was given up (whose memory then reads as zero).
pub struct Directory {
    entries: Arc<[Entry]>,
    reservation: Reservation,
    /// Copy of the file's stride, beside the entries on the fast path.
    stride_bytes: u64,
    own: JobRank,
    slow: Mutex<Slow>,
}

/// The own rank of a directory without one.
const NO_RANK: JobRank = JobRank(u32::MAX);

#[inline(always)]
fn resolve_in(
    entries: &[Entry],
    rank: JobRank,
    offset: SegmentOffset,
    len: usize,
) -> Option<NonNull<u8>> {
    let entry = entries.get(rank.index())?;
    // Pairs with the release store in `refresh`: a thread that sees the length sees the base and
    // the mapping.
    let attached = entry.attached.load(Ordering::Acquire);
    let end = offset.0.checked_add(len as u64)?;
    if end > attached {
        return None;
    }
    let base = NonNull::new(entry.base.load(Ordering::Relaxed))?;
    debug_assert_eq!(base.addr().get() & KIND_MASK, 0, "only spans have a length");
    // SAFETY: offset <= attached, and `refresh` mapped that many bytes from `base`.
    Some(unsafe { base.add(offset.0 as usize) })
}

/// A directory with its entries at hand: code that resolves for every access keeps this, which
/// saves following two pointers.
///
/// Everything else is reached through the directory that it stands for.
#[derive(Clone)]
pub struct Resolver {
    entries: Arc<[Entry]>,
    /// Keeps what the entries name mapped.
    directory: Arc<Directory>,
}

impl Resolver {
    /// For a directory.
    #[must_use]
    pub fn new(directory: Arc<Directory>) -> Self {
        Self {
            entries: Arc::clone(&directory.entries),
            directory,
        }
    }

    /// [`Directory::resolve`].
    #[inline(always)]
    #[must_use]
    pub fn resolve(&self, rank: JobRank, offset: SegmentOffset, len: usize) -> Option<NonNull<u8>> {
        resolve_in(&self.entries, rank, offset, len)
    }

    /// The directory itself.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }
}

impl core::ops::Deref for Resolver {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.directory
    }
}

impl Directory {
    /// Reserves addresses for the segments of all ranks of `file`, which are all that there are;
    /// maps nothing yet.
    ///
    /// `own` is the rank of this process.
    ///
    /// # Errors
    ///
    /// When `own` is not a rank of the file, and when the addresses cannot be had.
    pub fn new(file: SegmentFile, own: JobRank) -> Result<Arc<Self>, SegmentError> {
        Self::of_job(file, own, 0)
    }

    /// [`new`](Self::new) in a job of so many `ranks`, of which others may have no span in `file`.
    ///
    /// # Errors
    ///
    /// As `new`.
    pub fn of_job(file: SegmentFile, own: JobRank, ranks: u32) -> Result<Arc<Self>, SegmentError> {
        file.span_offset(own)?;
        let near = file.owners();
        Self::over(file, own, ranks, near)
    }

    /// [`of_job`](Self::of_job) where `file` has more ranks than share memory with this one: of the
    /// others, nothing is ever mapped.
    ///
    /// # Errors
    ///
    /// As `new`.
    pub fn of_neighborhood(
        file: SegmentFile,
        own: JobRank,
        ranks: u32,
        near: Range<u32>,
    ) -> Result<Arc<Self>, SegmentError> {
        file.span_offset(own)?;
        Self::over(file, own, ranks, near)
    }

    /// All segments of `file`, none of which is this directory's own: each is mapped as those of
    /// neighbors are, as far as it was attached elsewhere.
    ///
    /// # Errors
    ///
    /// When the addresses cannot be had.
    pub fn of_all(file: SegmentFile) -> Result<Arc<Self>, SegmentError> {
        let near = file.owners();
        Self::over(file, NO_RANK, 0, near)
    }

    fn over(
        file: SegmentFile,
        own: JobRank,
        ranks: u32,
        near: Range<u32>,
    ) -> Result<Arc<Self>, SegmentError> {
        let ranks = ranks.max(file.owners().end);
        let entries = (0..ranks).map(|_| Entry::empty()).collect();
        let stride_bytes = file.stride_bytes();
        Ok(Arc::new(Self {
            entries,
            reservation: Reservation::new(file, near)?,
            stride_bytes,
            own,
            slow: Mutex::new(Slow {
                own_mapped_bytes: 0,
                given_up: Vec::new(),
            }),
        }))
    }

    /// The rank of this process.
    #[must_use]
    pub fn own_rank(&self) -> JobRank {
        self.own
    }

    /// The file that holds the segments.
    #[must_use]
    pub fn file(&self) -> &SegmentFile {
        self.reservation.file()
    }

    /// Address of [offset, offset + len) in the segment of `rank`, or `None` when that is not
    /// mapped (yet): then [`ensure`](Self::ensure) decides whether it exists.
    ///
    /// Every value is checked, so that rank and offset may come from a message. With `len` 0 the
    /// end of the segment is an address too.
    #[inline]
    #[must_use]
    pub fn resolve(&self, rank: JobRank, offset: SegmentOffset, len: usize) -> Option<NonNull<u8>> {
        resolve_in(&self.entries, rank, offset, len)
    }

    /// Rank and offset of an address that lies in a mapped segment, `None` for any other.
    #[inline]
    #[must_use]
    pub fn translate(&self, addr: *const u8) -> Option<(JobRank, SegmentOffset)> {
        self.translate_range(addr, 1)
    }

    /// Rank and offset of [addr, addr + len) when all of it lies in one mapped segment.
    #[inline]
    #[must_use]
    pub fn translate_range(&self, addr: *const u8, len: usize) -> Option<(JobRank, SegmentOffset)> {
        let distance = addr
            .addr()
            .checked_sub(self.reservation.base().addr().get())? as u64;
        let rank = distance / self.stride_bytes;
        let offset = distance % self.stride_bytes;
        let near = self.reservation.ranks();
        let rank = rank.checked_add(near.start.into())?;
        if rank >= near.end.into() {
            return None;
        }
        let entry = self.entries.get(usize::try_from(rank).ok()?)?;
        let end = offset.checked_add(len as u64)?;
        // Acquire as in `resolve`: the caller may access the memory.
        if end > entry.attached.load(Ordering::Acquire) {
            return None;
        }
        // The index exists, and there are at most 2^32 entries.
        Some((JobRank(rank as u32), SegmentOffset(offset)))
    }

    /// Where the span of `rank` begins in this process, mapped or not.
    ///
    /// Fixed for the life of the directory. The difference to the address in the owner's process is
    /// the delta by which the owner's addresses are turned into addresses here.
    #[inline]
    #[must_use]
    pub fn span_base(&self, rank: JobRank) -> Option<NonNull<u8>> {
        self.reservation.span(rank).ok()
    }

    /// Whether the segments of all of a job's `ranks` ranks can be mapped here.
    ///
    /// The file may have more than can.
    #[must_use]
    pub fn are_all_mapped(&self, ranks: u32) -> bool {
        let near = self.reservation.ranks();
        near.start == 0 && near.end >= ranks
    }

    /// Whether the segment of `rank` can be mapped here, attached or not.
    #[inline]
    #[must_use]
    pub fn is_mapped(&self, rank: JobRank) -> bool {
        self.reservation.ranks().contains(&rank.0)
    }

    /// How much of the segment of `rank` is mapped here; 0 for ranks that do not share memory with
    /// this one.
    #[inline]
    #[must_use]
    pub fn attached_bytes(&self, rank: JobRank) -> u64 {
        self.entries
            .get(rank.index())
            .map_or(0, |entry| entry.attached.load(Ordering::Acquire))
    }

    /// A view to read [offset, offset + len) of the segment of `rank`; `None` as for
    /// [`resolve`](Self::resolve).
    #[inline]
    #[must_use]
    pub fn bytes(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Option<SharedBytes<'_>> {
        let ptr = self.resolve(rank, offset, len)?;
        // SAFETY: `resolve` returns memory mapped from the segment file for read and write, which
        // stays mapped until `self` is dropped and is initialized as all of a file is. The crate's
        // documentation asks everyone who takes a pointer to access segments only through views and
        // atomics.
        Some(unsafe { SharedBytes::from_raw(ptr, len) })
    }

    /// A view to write [offset, offset + len) of the segment of `rank`; `None` as for
    /// [`resolve`](Self::resolve).
    #[inline]
    #[must_use]
    pub fn bytes_mut(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Option<SharedBytesMut<'_>> {
        let ptr = self.resolve(rank, offset, len)?;
        // SAFETY: as in `bytes`; several views of the same memory are allowed.
        Some(unsafe { SharedBytesMut::from_raw(ptr, len) })
    }

    /// Makes `published_len` bytes of the segment of `rank` reachable, mapping the missing part.
    ///
    /// Does nothing when that much is mapped already, or that rank does not share memory with this
    /// one.
    ///
    /// The length is the one that the segment's owner published; it is checked against the
    /// span, because a peer wrote it. For this process's own rank there is nothing to do:
    /// [`OwnSegment`](crate::OwnSegment) attaches that.
    ///
    /// # Errors
    ///
    /// When there is no such rank, when the length exceeds the span, and when the kernel
    /// refuses the mapping. The segment stays reachable as far as it was.
    #[cold]
    pub fn refresh(&self, rank: JobRank, published_len: u64) -> Result<(), SegmentError> {
        if rank == self.own || (rank.index() < self.entries.len() && !self.is_mapped(rank)) {
            return Ok(());
        }
        let mut slow = self.slow.lock();
        self.extend(&mut slow, rank, published_len)
    }

    /// [`refresh`](Self::refresh) for every rank that shares memory with this one, in ascending
    /// order.
    ///
    /// # Errors
    ///
    /// The first that occurs; ranks before it are mapped.
    pub fn map_all(&self, published: impl Fn(JobRank) -> u64) -> Result<(), SegmentError> {
        (self.reservation.ranks().clone())
            .map(JobRank)
            .try_for_each(|rank| self.refresh(rank, published(rank)))
    }

    /// The slow path of [`resolve`](Self::resolve): asks for the length that the owner has
    /// published, maps the new part, and resolves again.
    ///
    /// # Errors
    ///
    /// As [`refresh`](Self::refresh), and [`SegmentError::OutOfSegment`] when the range is outside
    /// what the owner has attached.
    #[cold]
    pub fn ensure(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
        published: impl FnOnce() -> u64,
    ) -> Result<NonNull<u8>, SegmentError> {
        self.refresh(rank, published())?;
        self.resolve(rank, offset, len)
            .ok_or_else(|| SegmentError::OutOfSegment {
                rank,
                offset,
                len_bytes: len,
                attached_bytes: self.attached_bytes(rank),
            })
    }

    /// Gives up the segment of another rank that has ended: none of its addresses is resolved any
    /// more, and they stay mapped.
    pub fn give_up(&self, rank: JobRank) {
        if rank == self.own {
            return;
        }
        let mut slow = self.slow.lock();
        slow.given_up.push(rank);
        if let Some(entry) = self.entries.get(rank.index()) {
            entry.attached.store(0, Ordering::Release);
        }
    }

    fn extend(&self, slow: &mut Slow, rank: JobRank, len: u64) -> Result<(), SegmentError> {
        if slow.given_up.contains(&rank) {
            return Ok(());
        }
        let Some(entry) = self.entries.get(rank.index()) else {
            return Err(SegmentError::NoSuchRank {
                rank,
                ranks: self.file().ranks(),
            });
        };
        // Relaxed: written under the lock that is held here.
        let attached = entry.attached.load(Ordering::Relaxed);
        if len <= attached {
            return Ok(());
        }
        let own = rank == self.own;
        let mapped = if own { slow.own_mapped_bytes } else { attached };
        self.reservation.map(rank, mapped, len, own)?;
        if own {
            slow.own_mapped_bytes = mapped.max(len);
        }
        if let Some(base) = self.span_base(rank) {
            entry.base.store(base.as_ptr(), Ordering::Relaxed);
        }
        // Pairs with the acquire loads of the fast path.
        entry.attached.store(len, Ordering::Release);
        Ok(())
    }

    /// Attaches this process's own segment for the first time.
    pub(crate) fn attach_own(&self, len: u64) -> Result<u64, SegmentError> {
        let mut slow = self.slow.lock();
        let attached = self.attached_bytes(self.own);
        if attached != 0 {
            return Err(SegmentError::AlreadyAttached { rank: self.own });
        }
        self.extend_own(&mut slow, len)
    }

    /// Makes this process's own segment longer.
    pub(crate) fn grow_own(&self, len: u64) -> Result<u64, SegmentError> {
        let mut slow = self.slow.lock();
        let attached_bytes = self.attached_bytes(self.own);
        if len < attached_bytes {
            return Err(SegmentError::CannotShrink {
                rank: self.own,
                attached_bytes,
                wanted_bytes: len,
            });
        }
        self.extend_own(&mut slow, len)
    }

    fn extend_own(&self, slow: &mut Slow, len: u64) -> Result<u64, SegmentError> {
        if len == 0 {
            return Err(SegmentError::Empty { rank: self.own });
        }
        let rounded = self
            .file()
            .pages()
            .round_up(len)
            .filter(|rounded| *rounded <= self.stride_bytes)
            .ok_or(SegmentError::BeyondSpan {
                rank: self.own,
                wanted_bytes: len,
                stride_bytes: self.stride_bytes,
            })?;
        self.extend(slow, self.own, rounded)?;
        Ok(rounded)
    }

    /// Gives up this process's own segment: its memory goes back to the system, its addresses are
    /// no longer resolved, and stay mapped.
    pub(crate) fn detach_own(&self) -> Result<(), SegmentError> {
        let _slow = self.slow.lock();
        if let Some(entry) = self.entries.get(self.own.index()) {
            entry.attached.store(0, Ordering::Release);
        }
        self.file().release_span(self.own)
    }

    /// The pages that segments lie on.
    #[must_use]
    pub fn pages(&self) -> PageKind {
        self.file().pages()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("own", &self.own)
            .field("ranks", &self.entries.len())
            .field("stride_bytes", &self.stride_bytes)
            .field("base", &self.reservation.base())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
