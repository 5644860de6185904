//! Addresses for the segments of all ranks of a host, reserved once and filled as segments attach.

use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use argonet_base::JobRank;
use memmap2::MmapOptions;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

use crate::error::SegmentError;
use crate::file::SegmentFile;
use crate::pages::{PageKind, TRANSPARENT_BYTES, pool_too_small};

/// One contiguous range of addresses, a span for each of some ranks that follow each other.
///
/// All of it is reserved without access and without memory; [`map`](Self::map) puts parts of the
/// segment file over it. Its addresses belong to it until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    file: SegmentFile,
    /// Ranks that have a span here; they all have one in the file.
    ranks: Range<u32>,
    /// The range that the kernel gave, with slack for alignment.
    raw: NonNull<u8>,
    raw_len: usize,
    /// The first span.
    base: NonNull<u8>,
    /// Whether a part of the range was lost to the rest of the process, so that nothing may be
    /// mapped into it or unmapped any more.
    ///
    /// Written by `map`, under the directory's lock; read by `map` under the same lock and by
    /// `drop`, which has the value to itself: relaxed is enough.
    lost: AtomicBool,
}

// SAFETY: the pointers are addresses of mappings that belong to the process, not to a thread;
// all methods but `map` only read the fields, and `map` changes mappings by calls that the kernel
// orders.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves addresses for the spans of these ranks in `file`.
    pub(crate) fn new(file: SegmentFile, ranks: Range<u32>) -> Result<Self, SegmentError> {
        if let Some(last) = ranks.clone().next_back() {
            file.span_offset(JobRank(ranks.start))?;
            file.span_offset(JobRank(last))?;
        }
        let alignment = file.pages().span_alignment_bytes() as usize;
        let count = ranks.len() as u64;
        // These are at most the spans of the file, whose total `SegmentFile` keeps at 2^62 at most,
        // so that the sum does not overflow.
        let total_bytes = count * file.stride_bytes();
        let raw_len = total_bytes as usize + alignment;
        // SAFETY: without an address and without MAP_FIXED the kernel chooses free addresses;
        // nothing of the process is replaced.
        let reserved = unsafe { mmap_anonymous(null_mut(), raw_len, ProtFlags::empty(), RESERVE) };
        let cannot = |source: io::Error| SegmentError::CannotReserve {
            ranks: count as u32,
            stride_bytes: file.stride_bytes(),
            total_bytes,
            limit: address_limits(),
            source,
        };
        let raw = reserved.map_err(|errno| cannot(errno.into()))?;
        let raw = NonNull::new(raw.cast::<u8>())
            .ok_or_else(|| cannot(io::ErrorKind::OutOfMemory.into()))?;
        let address = raw.addr().get();
        let skip = address.next_multiple_of(alignment) - address;
        Ok(Self {
            // SAFETY: `skip` is less than the alignment, by which the mapping is longer than the
            // spans.
            base: unsafe { raw.add(skip) },
            file,
            ranks,
            raw,
            raw_len,
            lost: AtomicBool::new(false),
        })
    }

    pub(crate) fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Ranks that have a span.
    #[inline(always)]
    pub(crate) fn ranks(&self) -> &Range<u32> {
        &self.ranks
    }

    /// The first span.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The span of a rank.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn span(&self, rank: JobRank) -> Result<NonNull<u8>, SegmentError> {
        if !self.ranks.contains(&rank.0) {
            return Err(SegmentError::NoSuchRank {
                rank,
                ranks: self.ranks.len() as u32,
            });
        }
        let distance = u64::from(rank.0 - self.ranks.start) * self.file.stride_bytes();
        // SAFETY: less than the length of the spans that `new` reserved from `base`, one for each
        // of `ranks`.
        Ok(unsafe { self.base.add(distance as usize) })
    }

    /// Maps the part [`from`, `to`) of a rank's span; both are rounded up to pages.
    ///
    /// The part before `from` stays mapped as it is. `own` is whether it is this process's own
    /// segment.
    ///
    /// Calls must not overlap in time; the directory's lock sees to that.
    pub(crate) fn map(
        &self,
        rank: JobRank,
        from: u64,
        to: u64,
        own: bool,
    ) -> Result<(), SegmentError> {
        let span = self.span(rank)?;
        let span_offset = self.file.span_offset(rank)?;
        let stride = self.file.stride_bytes();
        let beyond = SegmentError::BeyondSpan {
            rank,
            wanted_bytes: to,
            stride_bytes: stride,
        };
        let pages = self.file.pages();
        // The stride is a multiple of the page, so that rounding up never leaves the span.
        let (Some(start), Some(end)) = (pages.round_up(from), pages.round_up(to)) else {
            return Err(beyond);
        };
        if end > stride {
            return Err(beyond);
        }
        if start >= end {
            return Ok(());
        }
        if self.lost.load(Ordering::Relaxed) {
            return Err(SegmentError::os(
                "map a segment after an earlier attempt failed half-way",
            )(Errno::NOMEM));
        }
        let len = (end - start) as usize;
        // SAFETY: start < stride, the length of the span.
        let at = unsafe { span.add(start as usize) };
        let offset = span_offset + start;
        let failed = |error: io::Error| match (error.raw_os_error(), pages) {
            (Some(libc::ENOMEM), PageKind::Huge { size_bytes }) => {
                pool_too_small(size_bytes, len as u64 / size_bytes)
            }
            _ => SegmentError::Os {
                action: "map a segment (vm.max_map_count or RLIMIT_AS may be too low)",
                source: error,
            },
        };
        // A MAP_FIXED that fails may already have removed the old mapping. Its causes of failure
        // (huge pages, number of mappings) fail a trial at a free address as well, without harm;
        // huge pages that the trial reserved stay reserved for the file.
        let trial = MmapOptions::new()
            .offset(offset)
            .len(len)
            .map_raw(&self.file);
        drop(trial.map_err(failed)?);

        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: [at, at + len) lies inside this rank's span, in addresses that belong to this
        // reservation (`new` reserved them, and `lost` says that none was given up). MAP_FIXED
        // replaces the reservation itself there, in which nothing can be accessed.
        let mapped = unsafe {
            mmap(
                at.as_ptr().cast(),
                len,
                protection,
                flags,
                &self.file,
                offset,
            )
        };
        if let Err(errno) = mapped {
            self.reserve_again(at, len);
            return Err(failed(errno.into()));
        }
        self.advise(span, start, end, own);
        Ok(())
    }

    /// Advice that makes a mapping better and whose refusal harms nothing.
    fn advise(&self, span: NonNull<u8>, start: u64, end: u64, own: bool) {
        if self.file.pages() == PageKind::TransparentHuge && end >= TRANSPARENT_BYTES {
            // From the start of the span, so that the kernel sees one mapping after growth too.
            // SAFETY: [span, span + end) is mapped from the file; this advice changes no content.
            let _ = unsafe { madvise(span.as_ptr().cast(), end as usize, Advice::LinuxHugepage) };
        }
        if !own {
            // A core dump holds this rank's segment, and not those of 63 neighbors as well.
            // SAFETY: as above; `start` <= `end`.
            let _ = unsafe {
                madvise(
                    span.add(start as usize).as_ptr().cast(),
                    (end - start) as usize,
                    Advice::LinuxDontDump,
                )
            };
        }
    }

    /// After a failed MAP_FIXED the kernel may have removed the old mapping.
    ///
    /// The hole must not be filled by another thread's mapping, which a later MAP_FIXED would
    /// destroy.
    fn reserve_again(&self, at: NonNull<u8>, len: usize) {
        // SAFETY: MAP_FIXED_NOREPLACE replaces nothing.
        let again = unsafe {
            mmap_anonymous(
                at.as_ptr().cast(),
                len,
                ProtFlags::empty(),
                RESERVE | MapFlags::FIXED_NOREPLACE,
            )
        };
        // EXIST: the kernel removed nothing, or another thread was faster. The two look the same,
        // and only the first is harmless, so that neither is built upon.
        if again.is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.lost.load(Ordering::Relaxed) {
            // A part may belong to someone else by now: leave the addresses to the process.
            return;
        }
        // SAFETY: the range was reserved by `new`, all of it still belongs to `self`, and a holder
        // of addresses into it borrows from the directory that owns `self`, or has promised (in
        // `unsafe` code) not to use them after it.
        let _ = unsafe { munmap(self.raw.as_ptr().cast(), self.raw_len) };
    }
}

/// No access, no memory, no accounting.
const RESERVE: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

/// The limits on addresses, with their present values.
fn address_limits() -> String {
    let rlimit = getrlimit(Resource::As).current;
    let rlimit = rlimit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    let overcommit = fs::read_to_string("/proc/sys/vm/overcommit_memory");
    let overcommit = overcommit.as_deref().map_or("unknown", str::trim);
    format!(
        "RLIMIT_AS (ulimit -v, now {rlimit}), vm.overcommit_memory (now {overcommit}) or the processor's addresses (128 \
         TiB on x86-64)"
    )
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use argonet_base::JobRank;

    use super::Reservation;
    use crate::error::SegmentError;
    use crate::file::SegmentFile;
    use crate::pages::{PageKind, TRANSPARENT_BYTES, obtainable_pages};

    #[test]
    fn spans_are_aligned_for_huge_pages() {
        let file = SegmentFile::create(3, TRANSPARENT_BYTES, PageKind::TransparentHuge).unwrap();
        let owners = file.owners();
        let reservation = Reservation::new(file, owners).unwrap();
        assert_eq!(
            reservation.base().addr().get() as u64 % TRANSPARENT_BYTES,
            0
        );
    }

    #[test]
    fn an_address_space_that_is_too_small_is_named() {
        // 2^60 bytes: a legal file, more addresses than any processor has.
        let file = SegmentFile::create(1 << 10, 1 << 50, PageKind::Normal).unwrap();
        let owners = file.owners();
        let error = Reservation::new(file, owners).unwrap_err();
        assert!(
            matches!(error, SegmentError::CannotReserve { .. }),
            "{error}"
        );
        let text = error.to_string();
        for name in [
            "RLIMIT_AS",
            "vm.overcommit_memory",
            "GASNET_MAX_SEGSIZE",
            "1024 segments",
        ] {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn nothing_is_mapped_outside_a_span() {
        let file = SegmentFile::create(2, 1 << 20, PageKind::Normal).unwrap();
        let owners = file.owners();
        let reservation = Reservation::new(file, owners).unwrap();
        for (rank, to) in [
            (0, (1 << 20) + 1),
            (1, (1 << 20) + 1),
            (0, u64::MAX),
            (2, 1),
            (u32::MAX, 1),
        ] {
            assert!(
                reservation.map(JobRank(rank), 0, to, true).is_err(),
                "rank {rank} to {to}"
            );
        }
        reservation.map(JobRank(1), 0, 1 << 20, false).unwrap();
    }

    // Of a file of all segments of a host, a rank reaches its neighborhood's.
    #[test]
    fn spans_of_some_ranks_are_where_the_file_has_them() {
        let stride = 1 << 20;
        let file = SegmentFile::create(8, stride, PageKind::Normal).unwrap();
        let over = |ranks| {
            let fd = file.as_fd().try_clone_to_owned().unwrap();
            let again = SegmentFile::from_fd(fd, 8, stride, PageKind::Normal).unwrap();
            Reservation::new(again, ranks)
        };
        let (all, some) = (over(0..8).unwrap(), over(3..5).unwrap());
        assert_eq!(some.span(JobRank(3)).unwrap(), some.base());
        for rank in [2, 5, 8, u32::MAX] {
            let rank = JobRank(rank);
            assert!(some.span(rank).is_err() && some.map(rank, 0, 1, false).is_err());
        }
        for rank in [JobRank(3), JobRank(4)] {
            for (reservation, own) in [(&all, true), (&some, false)] {
                reservation.map(rank, 0, stride, own).unwrap();
            }
            let [at, seen] = [&all, &some].map(|of| of.span(rank).unwrap());
            // SAFETY: both are mapped, and this test alone uses them.
            unsafe {
                at.add(17).write(rank.0 as u8);
                assert_eq!(seen.add(17).read(), rank.0 as u8);
            }
        }
        assert!(over(7..9).is_err() && over(9..9).is_ok());
    }

    /// The flags of the mapping that has an address, as `/proc/self/smaps` names them; none if none
    /// has.
    fn flags_at(address: usize) -> Option<Vec<String>> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_there = false;
        for line in smaps.lines() {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let ends = range.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16)));
            if let Some([Ok(from), Ok(to)]) = ends {
                is_there = (from..to).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_there) {
                return Some(flags.split_whitespace().map(str::to_owned).collect());
            }
        }
        None
    }

    #[test]
    fn neighbors_segments_are_not_dumped_and_long_ones_may_have_huge_pages() {
        let long = TRANSPARENT_BYTES;
        let file = SegmentFile::create(2, 2 * long, PageKind::TransparentHuge).unwrap();
        let reservation = Reservation::new(file, 0..2).unwrap();
        let has = |rank, at: u64, flag: &str| {
            let span = reservation.span(JobRank(rank)).unwrap();
            let flags = flags_at(span.addr().get() + at as usize).unwrap();
            flags.iter().any(|held| held == flag)
        };
        reservation.map(JobRank(0), 0, long / 2, true).unwrap();
        assert!(!has(0, 0, "dd") && !has(0, 0, "hg"));
        reservation.map(JobRank(0), long / 2, long, true).unwrap();
        assert!(!has(0, 0, "dd"));
        reservation.map(JobRank(1), 0, long / 2, false).unwrap();
        reservation
            .map(JobRank(1), long / 2, long + 1, false)
            .unwrap();
        assert!(has(1, 0, "dd") && has(1, long / 2, "dd") && has(1, long, "dd"));
        // A kernel without huge pages refuses the advice.
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            assert!(has(0, 0, "hg") && has(0, long - 1, "hg") && has(1, long, "hg"));
        }
    }

    #[test]
    fn normal_pages_are_not_asked_to_be_huge() {
        let file = SegmentFile::create(1, TRANSPARENT_BYTES, PageKind::Normal).unwrap();
        let reservation = Reservation::new(file, 0..1).unwrap();
        reservation
            .map(JobRank(0), 0, TRANSPARENT_BYTES, true)
            .unwrap();
        let flags = flags_at(reservation.base().addr().get()).unwrap();
        assert!(!flags.iter().any(|flag| flag == "hg"), "{flags:?}");
    }

    #[test]
    fn addresses_go_back_with_the_reservation() {
        // Longer than what other tests map meanwhile.
        let stride = 1 << 40;
        let file = SegmentFile::create(1, stride, PageKind::Normal).unwrap();
        let reservation = Reservation::new(file, 0..1).unwrap();
        let middle = reservation.base().addr().get() + stride as usize / 2;
        assert!(flags_at(middle).is_some());
        drop(reservation);
        assert!(flags_at(middle).is_none());
    }

    #[test]
    fn a_pool_that_cannot_fill_a_segment_is_named() {
        let size_bytes = 2 << 20;
        let Ok(file) = SegmentFile::create(1, 1 << 40, PageKind::Huge { size_bytes }) else {
            // No pool at all; the file's own tests cover that error.
            return;
        };
        let owners = file.owners();
        let reservation = Reservation::new(file, owners).unwrap();
        let wanted = obtainable_pages(size_bytes) + 1;
        let error = reservation
            .map(JobRank(0), 0, wanted * size_bytes, true)
            .unwrap_err();
        assert!(matches!(error, SegmentError::NoHugePages { .. }), "{error}");
        // The addresses are still ours.
        reservation.map(JobRank(0), 0, size_bytes, true).unwrap();
    }
}
