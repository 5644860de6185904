//! Several threads with one cache: nothing that is held is ever given back, and the limits hold.

use super::*;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::thread;

#[test]
fn held_registrations_stay() {
    const THREADS: u64 = 8;
    const STEPS: usize = 4000;
    let books = Books::new(60, NO_HOLE);
    let cache = cache(&books, limits(64, 12, 2));
    thread::scope(|scope| {
        let (books, cache) = (&books, &cache);
        let one = |seed| {
            scope.spawn(move || {
                let mut random = Xoshiro256StarStar::seed_from_u64(seed);
                let mut below = |end: usize| random.next_u64() as usize % end;
                let mut held: Vec<Pinned<Books>> = Vec::new();
                for _ in 0..STEPS {
                    let (first, count) = (below(48), 1 + below(5));
                    if below(50) == 0 {
                        cache.invalidate(first * PAGE, count * PAGE).unwrap();
                    }
                    match pages(cache, first, first + count) {
                        Ok(pinned) => {
                            assert!(pinned.range().start() <= first * PAGE);
                            assert!((first + count) * PAGE <= pinned.range().end());
                            held.push(pinned);
                        }
                        // Others hold too much.
                        Err(
                            RegistrationError::InUse { .. } | RegistrationError::NoResources { .. },
                        ) => held.clear(),
                        Err(error) => panic!("{error}"),
                    }
                    for pinned in &held {
                        assert!(books.is_live(*pinned.handle()), "{pinned:?} was given back");
                    }
                    while held.len() > 1 {
                        held.swap_remove(below(held.len()));
                    }
                    let pinned: usize = books.live().iter().map(|(a, b)| b - a).sum();
                    assert!(pinned <= 64);
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(one).collect();
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    let statistics = cache.statistics();
    assert_eq!(statistics.pinned_count, books.live().len());
    assert!(
        statistics.hits > 0 && statistics.evictions > 0 && statistics.retired > 0,
        "{statistics:?}"
    );
    drop(cache);
    let book = books.0.lock();
    assert!(book.live.is_empty() && book.wrong == 0, "{book:?}");
}
