//! The cache against a registrar that keeps books, a model that keeps a list, and several threads.

use super::{
    CacheLimits, PageRange, Pinned, Refused, Registrar, RegistrationCache, RegistrationError,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

mod model;
mod threads;

const PAGE: usize = 4096;

/// The error of a [`Books`].
#[derive(Debug, thiserror::Error)]
#[error("no more than {pages} pages, none from page {hole}")]
struct Full {
    pages: usize,
    hole: usize,
}

/// A registrar that knows all registrations, has room for so many pages, and a page that is not
/// there.
#[derive(Debug)]
struct Book {
    live: BTreeMap<u64, PageRange>,
    next: u64,
    pages: usize,
    hole: usize,
    /// Handles that were given back when they were not live.
    wrong: usize,
}

#[derive(Clone, Debug)]
struct Books(Arc<Mutex<Book>>);

impl Books {
    fn new(pages: usize, hole: usize) -> Self {
        Self(Arc::new(Mutex::new(Book {
            live: BTreeMap::new(),
            next: 0,
            pages,
            hole,
            wrong: 0,
        })))
    }

    /// The registered ranges, in order, as first and last page but one.
    fn live(&self) -> Vec<(usize, usize)> {
        let pages = |range: &PageRange| (range.start() / PAGE, range.end() / PAGE);
        let mut live: Vec<_> = self.0.lock().live.values().map(pages).collect();
        live.sort_unstable();
        live
    }

    fn is_live(&self, handle: u64) -> bool {
        self.0.lock().live.contains_key(&handle)
    }
}

impl Registrar for Books {
    type Handle = u64;
    type Error = Full;

    fn register(&self, range: PageRange) -> Result<u64, Refused<Full>> {
        let mut book = self.0.lock();
        let full = Full {
            pages: book.pages,
            hole: book.hole,
        };
        let hole = PageRange::around(book.hole * PAGE, PAGE, PAGE).unwrap();
        if range.overlaps(hole) {
            return Err(Refused::Failed(full));
        }
        let pinned: usize = book.live.values().map(|range| range.bytes()).sum();
        if (pinned + range.bytes()) / PAGE > book.pages {
            return Err(Refused::NoResources(full));
        }
        book.next += 1;
        let handle = book.next;
        book.live.insert(handle, range);
        Ok(handle)
    }

    fn deregister(&self, range: PageRange, handle: &u64) {
        let mut book = self.0.lock();
        if book.live.remove(handle) != Some(range) {
            book.wrong += 1;
        }
    }
}

const NO_HOLE: usize = 1 << 40;

fn limits(pages: usize, count: usize, bucket: usize) -> CacheLimits {
    CacheLimits {
        bytes: pages * PAGE,
        count,
        page_bytes: PAGE,
        bucket_bytes: bucket * PAGE,
    }
}

fn cache(books: &Books, limits: CacheLimits) -> RegistrationCache<Books> {
    RegistrationCache::new(books.clone(), limits).unwrap()
}

/// Pages `first..end`.
fn pages(
    cache: &RegistrationCache<Books>,
    first: usize,
    end: usize,
) -> Result<Pinned<Books>, RegistrationError<Full>> {
    cache.acquire(first * PAGE, (end - first) * PAGE)
}

#[test]
fn covered_ranges_hit() {
    let books = Books::new(100, NO_HOLE);
    let cache = cache(&books, limits(100, 10, 1));
    let all = pages(&cache, 10, 20).unwrap();
    let part = cache.acquire(12 * PAGE + 5, PAGE).unwrap();
    assert_eq!((part.range(), part.handle()), (all.range(), all.handle()));
    let statistics = cache.statistics();
    assert_eq!((statistics.hits, statistics.misses), (1, 1));
    assert_eq!(
        (statistics.pinned_bytes, statistics.pinned_count),
        (10 * PAGE, 1)
    );
    drop((all, part));
    // It stays for the next.
    assert_eq!(books.live(), [(10, 20)]);
    pages(&cache, 19, 20).unwrap();
    assert_eq!(cache.statistics().hits, 2);
}

#[test]
fn overlaps_become_unions_unless_that_is_more_than_twice_as_much() {
    let books = Books::new(1000, NO_HOLE);
    let cache = cache(&books, limits(1000, 10, 1));
    pages(&cache, 0, 4).unwrap();
    pages(&cache, 2, 6).unwrap();
    assert_eq!(books.live(), [(0, 6)]);
    assert_eq!(cache.statistics().unions, 1);
    // Both hit now.
    pages(&cache, 0, 4).unwrap();
    pages(&cache, 2, 6).unwrap();
    assert_eq!(cache.statistics().hits, 2);
    // A window that goes on does not pin all that it has passed.
    for first in 3..900 {
        pages(&cache, first, first + 4).unwrap();
        let [.., (_, end)] = books.live()[..] else {
            panic!("nothing is registered")
        };
        assert!(end >= first + 4);
        assert!(
            cache.statistics().pinned_bytes <= 16 * PAGE,
            "{:?}",
            books.live()
        );
    }
}

#[test]
fn registrations_in_use_outlive_their_place() {
    let books = Books::new(100, NO_HOLE);
    let cache = cache(&books, limits(100, 10, 1));
    let old = pages(&cache, 0, 4).unwrap();
    let new = pages(&cache, 2, 6).unwrap();
    assert_eq!(books.live(), [(0, 4), (0, 6)]);
    assert!(books.is_live(*old.handle()) && books.is_live(*new.handle()));
    let copy = old.clone();
    drop(old);
    assert_eq!(books.live().len(), 2);
    drop(copy);
    assert_eq!(books.live(), [(0, 6)]);
    // Also its cache.
    drop(cache);
    assert_eq!(books.live(), [(0, 6)]);
    drop(new);
    assert!(books.live().is_empty());
}

#[test]
fn buckets_are_taken_where_they_can_be() {
    let books = Books::new(100, 9);
    let cache = cache(&books, limits(100, 10, 4));
    pages(&cache, 1, 2).unwrap();
    pages(&cache, 3, 4).unwrap();
    assert_eq!(books.live(), [(0, 4)]);
    // The bucket has a page that is not there.
    pages(&cache, 10, 11).unwrap();
    pages(&cache, 11, 12).unwrap();
    assert_eq!(books.live(), [(0, 4), (10, 11), (11, 12)]);
    let error = pages(&cache, 8, 10).unwrap_err();
    assert!(matches!(error, RegistrationError::Failed { .. }), "{error}");
    assert!(error.to_string().contains("0x8000-0xa000"), "{error}");
    assert_eq!(books.live(), [(0, 4), (10, 11), (11, 12)]);
}

#[test]
fn the_registrar_without_room_gets_some() {
    let books = Books::new(4, NO_HOLE);
    let cache = cache(&books, limits(100, 10, 1));
    for page in 0..4 {
        pages(&cache, 2 * page, 2 * page + 1).unwrap();
    }
    let held = pages(&cache, 0, 1).unwrap();
    pages(&cache, 20, 22).unwrap();
    assert_eq!(books.live(), [(0, 1), (6, 7), (20, 22)]);
    let also = pages(&cache, 20, 22).unwrap();
    let error = pages(&cache, 30, 32).unwrap_err();
    let RegistrationError::NoResources {
        used_bytes,
        used_count,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*used_bytes, *used_count), (3 * PAGE, 2));
    assert!(
        error.to_string().contains("no more than 4 pages"),
        "{error}"
    );
    drop((held, also));
    pages(&cache, 30, 34).unwrap();
    assert_eq!(books.live(), [(30, 34)]);
}

#[test]
fn limits_are_kept_and_said() {
    let books = Books::new(1000, NO_HOLE);
    let cache = cache(&books, limits(8, 3, 1));
    let error = pages(&cache, 0, 9).unwrap_err().to_string();
    assert!(
        error.contains("36864 bytes") && error.contains("32768 bytes"),
        "{error}"
    );
    let held: Vec<_> = [0, 2, 4]
        .map(|first| pages(&cache, first, first + 1).unwrap())
        .into();
    let error = pages(&cache, 6, 7).unwrap_err().to_string();
    for sum in [
        "4096 bytes of 0x6000-0x7000",
        "12288 bytes in 3",
        "32768 bytes in 3",
    ] {
        assert!(error.contains(sum), "{error}");
    }
    drop(held);
    pages(&cache, 6, 7).unwrap();
    assert_eq!(books.live(), [(2, 3), (4, 5), (6, 7)]);
    pages(&cache, 10, 18).unwrap();
    assert_eq!(books.live(), [(10, 18)]);
    assert_eq!(cache.statistics().evictions, 4);
}

#[test]
fn bad_requests_and_limits_are_refused() {
    let books = Books::new(1000, NO_HOLE);
    for bad in [
        limits(8, 0, 1),
        limits(0, 8, 1),
        limits(8, 8, 0),
        limits(8, 8, 3),
        CacheLimits {
            page_bytes: 100,
            ..limits(8, 8, 1)
        },
    ] {
        let error = RegistrationCache::new(books.clone(), bad).err().unwrap();
        assert!(error.to_string().contains("cannot be"), "{error}");
    }
    let cache = cache(&books, limits(8, 8, 1));
    for (address, len, says) in [
        (0x1234, 0, "0 bytes at 0x1234"),
        (usize::MAX - 4, 100, "100 bytes at 0xffff"),
        (PAGE, usize::MAX - PAGE, "beyond the end"),
    ] {
        let error = cache.acquire(address, len).unwrap_err();
        assert!(matches!(error, RegistrationError::Range(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(cache.invalidate(1, 0).is_err());
    assert!(books.live().is_empty());
}

#[test]
fn memory_that_goes_away_is_not_found_again() {
    let books = Books::new(1000, NO_HOLE);
    let cache = cache(&books, limits(100, 10, 1));
    let held = pages(&cache, 0, 4).unwrap();
    pages(&cache, 6, 8).unwrap();
    pages(&cache, 10, 12).unwrap();
    let gone = cache.invalidate(3 * PAGE + 1, 4 * PAGE).unwrap();
    assert_eq!((gone.given_back, gone.in_use), (1, 1));
    assert_eq!(books.live(), [(0, 4), (10, 12)]);
    let anew = pages(&cache, 0, 4).unwrap();
    assert_ne!(held.handle(), anew.handle());
    drop(held);
    assert_eq!(books.live(), [(0, 4), (10, 12)]);
    let none = cache.invalidate(500 * PAGE, PAGE).unwrap();
    assert_eq!((none.given_back, none.in_use), (0, 0));
}
