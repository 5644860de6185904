use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use argonet_base::{JobRank, SegmentOffset};
use memmap2::MmapOptions;
use proptest::prelude::*;

use super::{Directory, Resolver};
use crate::error::SegmentError;
use crate::file::SegmentFile;
use crate::pages::PageKind;
use crate::segment::{NeighborSegment, OwnSegment};

const MIB: u64 = 1 << 20;

fn offset(bytes: u64) -> SegmentOffset {
    SegmentOffset(bytes)
}

fn page() -> u64 {
    PageKind::Normal.page_bytes()
}

/// Two processes' views of one file, in one process.
fn pair(stride: u64, pages: PageKind) -> (Arc<Directory>, Arc<Directory>) {
    let file = SegmentFile::create(2, stride, pages).unwrap();
    let fd = file.as_fd().try_clone_to_owned().unwrap();
    let other = SegmentFile::from_fd(fd, 2, stride, pages).unwrap();
    (
        Directory::new(file, JobRank(0)).unwrap(),
        Directory::new(other, JobRank(1)).unwrap(),
    )
}

#[test]
fn a_segment_that_is_given_up_is_found_no_more() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    let own = OwnSegment::attach(&zero, 100).unwrap();
    let there = one.ensure(JobRank(0), offset(40), 5, || own.len()).unwrap();
    one.give_up(JobRank(0));
    assert!(one.resolve(JobRank(0), offset(40), 5).is_none());
    assert!(one.ensure(JobRank(0), offset(40), 5, || own.len()).is_err());
    assert_eq!(one.attached_bytes(JobRank(0)), 0);
    // Addresses of the past stay mapped.
    // SAFETY: mapped as long as the directory lives, and initialized.
    unsafe { there.as_ptr().write_volatile(1) };
    // A rank does not give itself up.
    zero.give_up(JobRank(0));
    assert!(zero.resolve(JobRank(0), offset(40), 5).is_some());
}

#[test]
fn a_directory_says_what_it_is_of() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    assert_eq!(zero.pages(), PageKind::Normal);
    let mapped = [0, 1, 2].map(|rank| zero.is_mapped(JobRank(rank)));
    assert_eq!(mapped, [true, true, false]);
    assert!(one.are_all_mapped(2) && !one.are_all_mapped(3));
    let own = OwnSegment::attach(&one, 100).unwrap();
    zero.ensure(JobRank(1), offset(0), 1, || own.len()).unwrap();
    let there = NeighborSegment::of(&zero, JobRank(1)).unwrap();
    assert_eq!((own.rank(), there.rank()), (JobRank(1), JobRank(1)));
    let text = format!("{one:?}");
    for part in [
        "Directory",
        "own: job rank 1",
        "ranks: 2",
        "stride_bytes: 1048576",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_resolver_finds_what_its_directory_does() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    assert_eq!((zero.own_rank(), one.own_rank()), (JobRank(0), JobRank(1)));
    let own = OwnSegment::attach(&zero, 100).unwrap();
    one.ensure(JobRank(0), offset(40), 5, || own.len()).unwrap();
    let resolver = Resolver::new(Arc::clone(&one));
    let end = own.len();
    for (rank, at, len) in [(0, 40, 5), (0, end - 1, 1), (0, end - 1, 2), (1, 0, 1)] {
        let expected = one.resolve(JobRank(rank), offset(at), len);
        assert_eq!(expected.is_some(), rank == 0 && at + len as u64 <= end);
        assert_eq!(resolver.resolve(JobRank(rank), offset(at), len), expected);
    }
    assert!(Arc::ptr_eq(resolver.directory(), &one));
}

#[test]
fn a_neighbor_reads_what_the_owner_wrote() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    let own = OwnSegment::attach(&zero, 100).unwrap();
    assert_eq!(own.len(), page());
    own.bytes_mut(offset(40), 5)
        .unwrap()
        .copy_from(0, b"hello")
        .unwrap();

    assert!(
        one.resolve(JobRank(0), offset(0), 1).is_none(),
        "mapped at first use only"
    );
    assert!(NeighborSegment::of(&one, JobRank(0)).is_none());
    one.ensure(JobRank(0), offset(40), 5, || own.len()).unwrap();
    let view = one.bytes(JobRank(0), offset(40), 5).unwrap();
    assert_eq!(view.to_vec(), b"hello");

    // And back, through another way to the same memory.
    let neighbor = NeighborSegment::of(&one, JobRank(0)).unwrap();
    assert_eq!((neighbor.rank(), neighbor.len()), (JobRank(0), page()));
    neighbor
        .bytes_mut(offset(40), 1)
        .unwrap()
        .write(0, &b'j')
        .unwrap();
    assert_eq!(own.bytes(offset(40), 5).unwrap().to_vec(), b"jello");
    assert_eq!(neighbor.bytes(offset(41), 1).unwrap().to_vec(), b"e");
    assert_eq!(Some(neighbor.base()), one.span_base(JobRank(0)));
}

#[test]
fn growth_is_seen_by_another_mapping_and_moves_nothing() {
    for pages in [PageKind::Normal, PageKind::TransparentHuge] {
        let (zero, one) = pair(8 * MIB, pages);
        let own = OwnSegment::attach(&zero, MIB).unwrap();
        let base = own.base();
        one.refresh(JobRank(0), own.len()).unwrap();
        own.bytes_mut(offset(0), 4)
            .unwrap()
            .write(0, &7_u32)
            .unwrap();
        let before = one.resolve(JobRank(0), offset(0), 4).unwrap();

        let published = AtomicU64::new(own.len());
        published.store(own.grow(5 * MIB - 1).unwrap(), Ordering::Release);
        assert_eq!((own.len(), own.base()), (5 * MIB, base));
        own.bytes_mut(offset(5 * MIB - 4), 4)
            .unwrap()
            .write(0, &9_u32)
            .unwrap();

        assert!(one.resolve(JobRank(0), offset(5 * MIB - 4), 4).is_none());
        one.ensure(JobRank(0), offset(5 * MIB - 4), 4, || {
            published.load(Ordering::Acquire)
        })
        .unwrap();
        let read = |at| {
            one.bytes(JobRank(0), offset(at), 4)
                .unwrap()
                .read::<u32>(0)
                .unwrap()
        };
        assert_eq!((read(0), read(5 * MIB - 4)), (7, 9));
        assert_eq!(one.resolve(JobRank(0), offset(0), 4), Some(before));

        // A mapping that knows nothing of this crate agrees.
        let plain = MmapOptions::new()
            .len(5 << 20)
            .map_raw(zero.file())
            .unwrap();
        // SAFETY: inside the mapping; nothing writes it meanwhile.
        let last = unsafe { plain.as_ptr().add((5 << 20) - 4).cast::<u32>().read() };
        assert_eq!(last, 9);
    }
}

#[test]
fn growth_has_a_limit_and_only_goes_up() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    assert!(matches!(
        OwnSegment::attach(&zero, 0),
        Err(SegmentError::Empty { .. })
    ));
    assert!(matches!(
        OwnSegment::attach(&zero, MIB + 1),
        Err(SegmentError::BeyondSpan { .. })
    ));
    assert!(matches!(
        OwnSegment::attach(&zero, u64::MAX),
        Err(SegmentError::BeyondSpan { .. })
    ));
    let own = OwnSegment::attach(&zero, MIB / 2).unwrap();
    assert!(matches!(
        OwnSegment::attach(&zero, MIB),
        Err(SegmentError::AlreadyAttached { .. })
    ));
    assert!(matches!(
        own.grow(MIB / 4),
        Err(SegmentError::CannotShrink { .. })
    ));
    assert_eq!(own.grow(MIB / 2).unwrap(), MIB / 2);
    let error = own.grow(MIB + 1).unwrap_err();
    assert!(error.to_string().contains("GASNET_MAX_SEGSIZE"), "{error}");
    assert_eq!(own.len(), MIB / 2);
    assert_eq!(own.grow(MIB).unwrap(), MIB);

    // A length that a peer made up does not get past the span.
    for length in [MIB + 1, u64::MAX, u64::MAX - page() + 1] {
        assert!(matches!(
            one.refresh(JobRank(0), length),
            Err(SegmentError::BeyondSpan { .. })
        ));
    }
    assert!(matches!(
        one.refresh(JobRank(2), 1),
        Err(SegmentError::NoSuchRank { .. })
    ));
    assert!(matches!(
        one.ensure(JobRank(0), offset(MIB), 1, || MIB),
        Err(SegmentError::OutOfSegment { .. })
    ));
    assert_eq!(one.attached_bytes(JobRank(0)), MIB);
}

#[test]
fn a_segment_given_up_returns_its_memory_and_no_access_faults() {
    let (zero, one) = pair(MIB, PageKind::Normal);
    let own = OwnSegment::attach(&zero, MIB).unwrap();
    one.map_all(|rank| if rank == JobRank(0) { MIB } else { 0 })
        .unwrap();
    assert_eq!(
        zero.file().allocated_bytes().unwrap(),
        0,
        "attaching takes no memory"
    );
    own.bytes_mut(offset(0), MIB as usize)
        .unwrap()
        .fill(0, MIB as usize, 1)
        .unwrap();
    assert_eq!(zero.file().allocated_bytes().unwrap(), MIB);

    let stale = zero.bytes(JobRank(0), offset(0), 8).unwrap();
    drop(own);
    assert_eq!(zero.file().allocated_bytes().unwrap(), 0);
    assert_eq!(stale.read(0), Ok(0_u64));
    assert_eq!(
        one.bytes(JobRank(0), offset(0), 8).unwrap().read(0),
        Ok(0_u64)
    );
    assert!(zero.resolve(JobRank(0), offset(0), 1).is_none());
    assert!(zero.translate(stale.as_ptr()).is_none());

    let again = OwnSegment::attach(&zero, page()).unwrap();
    assert!(again.bytes(offset(page()), 1).is_err());
    again.grow(MIB).unwrap();
    again
        .bytes_mut(offset(MIB - 1), 1)
        .unwrap()
        .write(0, &1_u8)
        .unwrap();
}

#[test]
fn an_own_rank_outside_the_file_is_refused() {
    let file = SegmentFile::create(2, MIB, PageKind::Normal).unwrap();
    assert!(matches!(
        Directory::new(file, JobRank(2)),
        Err(SegmentError::NoSuchRank { .. })
    ));
}

/// Readers resolve and write while a neighbor's mapping grows under them: every address that
/// they get is accessible.
#[test]
fn addresses_resolved_during_growth_are_accessible() {
    let (zero, one) = pair(4 * MIB, PageKind::Normal);
    let own = OwnSegment::attach(&zero, page()).unwrap();
    let published = AtomicU64::new(own.len());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| {
            while own.len() < 4 * MIB {
                let Ok(len) = own.grow(own.len() + page()) else {
                    break;
                };
                published.store(len, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        })];
        for thread in 0..2_u64 {
            let (one, published, done) = (&one, &published, &done);
            threads.push(scope.spawn(move || {
                let mut last = false;
                while !last {
                    last = done.load(Ordering::Acquire);
                    let at = published.load(Ordering::Acquire) - 16 + thread * 8;
                    if one.resolve(JobRank(0), offset(at), 8).is_none() {
                        one.ensure(JobRank(0), offset(at), 8, || {
                            published.load(Ordering::Acquire)
                        })
                        .unwrap();
                    }
                    one.bytes_mut(JobRank(0), offset(at), 8)
                        .unwrap()
                        .write(0, &at)
                        .unwrap();
                }
            }));
        }
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(one.attached_bytes(JobRank(0)), 4 * MIB);
    let last = own.bytes(offset(4 * MIB - 16), 16).unwrap();
    assert_eq!(last.read(0), Ok(4 * MIB - 16));
    assert_eq!(last.read(8), Ok(4 * MIB - 8));
}

/// Offsets and lengths near every edge: of pages, segments, spans and of 64 bits.
fn edge(stride: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        0..2 * stride,
        (0..=2 * stride / 4096, 0..9_u64)
            .prop_map(|(page, by)| (page * 4096).saturating_add(by).saturating_sub(4)),
        (0..9_u64).prop_map(|by| u64::MAX - by),
        Just(1 << 63),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The directory against a table of lengths.
    #[test]
    fn resolve_and_translate_agree_with_a_table(
        ranks in 1..6_u32,
        stride_pages in 1..5_u64,
        refreshes in proptest::collection::vec((0..7_u32, edge(5 * 4096)), 0..12),
        queries in proptest::collection::vec((0..7_u32, edge(5 * 4096), edge(5 * 4096)), 50),
    ) {
        let stride = stride_pages * page();
        // The last rank is this process, which attaches nothing.
        let file = SegmentFile::create(ranks + 1, stride, PageKind::Normal).unwrap();
        let directory = Directory::new(file, JobRank(ranks)).unwrap();
        let base = directory.span_base(JobRank(0)).unwrap().addr().get() as u64;
        let mut table = vec![0_u64; ranks as usize + 1];

        for (rank, len) in refreshes {
            let legal = rank == ranks || (rank < ranks && len <= stride);
            prop_assert_eq!(directory.refresh(JobRank(rank), len).is_ok(), legal);
            if legal && rank != ranks {
                let entry = &mut table[rank as usize];
                *entry = len.max(*entry);
            }
        }
        for (rank, at, len) in queries {
            let attached = table.get(rank as usize).copied().unwrap_or(0);
            let inside = u128::from(at) + u128::from(len) <= u128::from(attached) && attached != 0;
            let want = inside.then(|| base + u64::from(rank) * stride + at);
            let got = directory.resolve(JobRank(rank), offset(at), len as usize);
            prop_assert_eq!(got.map(|ptr| ptr.addr().get() as u64), want);

            // The same numbers as an address, wrapping as forged ones may.
            let address = base.wrapping_add(u64::from(rank).wrapping_mul(stride)).wrapping_add(at);
            let want = address.checked_sub(base).and_then(|distance| {
                let owner = distance / stride;
                let within = distance % stride;
                let attached = *table.get(usize::try_from(owner).ok()?)?;
                (u128::from(within) + u128::from(len) <= u128::from(attached))
                    .then_some((JobRank(owner as u32), offset(within)))
            });
            let pointer = std::ptr::without_provenance(address as usize);
            prop_assert_eq!(directory.translate_range(pointer, len as usize), want);
        }
        // Every attached byte is accessible, and translates back.
        for (rank, attached) in table.iter().enumerate().filter(|(_, attached)| **attached > 0) {
            let rank = JobRank(rank as u32);
            let last = offset(attached - 1);
            directory.bytes_mut(rank, last, 1).unwrap().write(0, &1_u8).unwrap();
            let pointer = directory.resolve(rank, last, 1).unwrap();
            prop_assert_eq!(directory.translate(pointer.as_ptr()), Some((rank, last)));
        }
    }
}

#[test]
fn a_file_of_more_ranks_than_share_memory_has_not_all_near() {
    let file = || SegmentFile::create(4, MIB, PageKind::Normal).unwrap();
    let pairs = Directory::of_neighborhood(file(), JobRank(2), 4, 2..4).unwrap();
    assert!(!pairs.are_all_mapped(4));
    let first = Directory::of_neighborhood(file(), JobRank(0), 4, 0..2).unwrap();
    assert!(!first.are_all_mapped(4));
    assert!(first.are_all_mapped(2));
    let all = Directory::new(file(), JobRank(1)).unwrap();
    assert!(all.are_all_mapped(4));
}
