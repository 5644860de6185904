//! Any sequence of requests has the same results as a list that is searched from one end to the
//! other.

use super::*;

/// A call to the cache.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire {
        first: usize,
        pages: usize,
    },
    /// Drops one of those that are held.
    Release {
        which: usize,
    },
    Invalidate {
        first: usize,
        pages: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let pages = prop_oneof![4 => 1usize..6, 1 => 1usize..40];
    prop_oneof![
        5 => (0usize..64, pages.clone()).prop_map(|(first, pages)| Step::Acquire { first, pages }),
        4 => (0usize..16).prop_map(|which| Step::Release { which }),
        1 => (0usize..64, pages).prop_map(|(first, pages)| Step::Invalidate { first, pages }),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Known {
    range: (usize, usize),
    users: usize,
    used: u64,
    /// Whether requests find it.
    found: bool,
}

/// The list.
///
/// Ranges are pages from the first up to the last, without it.
struct Model {
    all: Vec<Option<Known>>,
    now: u64,
    limits: CacheLimits,
    room: usize,
    hole: usize,
}

fn overlap(a: (usize, usize), b: (usize, usize)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

fn length(range: (usize, usize)) -> usize {
    range.1 - range.0
}

impl Model {
    fn known(&self) -> impl Iterator<Item = (usize, Known)> + '_ {
        let all = self.all.iter().enumerate();
        all.filter_map(|(at, known)| known.map(|known| (at, known)))
    }

    fn live(&self) -> Vec<(usize, usize)> {
        let mut live: Vec<_> = self.known().map(|(_, known)| known.range).collect();
        live.sort_unstable();
        live
    }

    fn overlapping(&self, range: (usize, usize)) -> Vec<usize> {
        let found = self
            .known()
            .filter(|(_, k)| k.found && overlap(k.range, range));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by_key(|(_, known)| known.range);
        found.into_iter().map(|(at, _)| at).collect()
    }

    /// Where the registration is that a request gets, if it gets one.
    fn acquire(&mut self, wanted: (usize, usize)) -> Option<usize> {
        let hit = self.known().find(|(_, known)| {
            known.found && known.range.0 <= wanted.0 && wanted.1 <= known.range.1
        });
        if let Some((at, _)) = hit {
            let known = self.all[at].as_mut().unwrap();
            (known.users, known.used) = (known.users + 1, self.now);
            return Some(at);
        }
        self.now += 1;
        let bucket = self.limits.bucket_bytes / PAGE;
        let buckets = (
            wanted.0 / bucket * bucket,
            wanted.1.next_multiple_of(bucket),
        );
        for range in [buckets, wanted] {
            let union = self.overlapping(range).iter().fold(range, |all, &at| {
                let other = self.all[at].unwrap().range;
                (all.0.min(other.0), all.1.max(other.1))
            });
            let linear = length(union) <= 2 * length(range) && union != range;
            for candidate in [linear.then_some(union), Some(range)].into_iter().flatten() {
                if let Some(at) = self.register(candidate) {
                    return Some(at);
                }
            }
            if buckets == wanted {
                break;
            }
        }
        None
    }

    fn register(&mut self, range: (usize, usize)) -> Option<usize> {
        let most = self.limits.bytes / PAGE;
        if length(range) > most {
            return None;
        }
        let pinned = |model: &Self| model.live().iter().map(|r| length(*r)).sum::<usize>();
        while pinned(self) + length(range) > most || self.live().len() == self.limits.count {
            self.evict(range)?;
        }
        if overlap(range, (self.hole, self.hole + 1)) {
            return None;
        }
        while pinned(self) + length(range) > self.room {
            self.evict(range)?;
        }
        for at in self.overlapping(range) {
            self.retire(at);
        }
        self.all.push(Some(Known {
            range,
            users: 1,
            used: self.now,
            found: true,
        }));
        Some(self.all.len() - 1)
    }

    fn evict(&mut self, wanted: (usize, usize)) -> Option<()> {
        let unused = |at: &usize| self.all[*at].unwrap().users == 0;
        let near = self.overlapping(wanted).into_iter().find(unused);
        let oldest = || {
            let unused = self.known().filter(|(_, known)| known.users == 0);
            unused.min_by_key(|(_, known)| (known.used, known.range))
        };
        let at = near.or_else(|| oldest().map(|(at, _)| at))?;
        self.all[at] = None;
        Some(())
    }

    fn retire(&mut self, at: usize) {
        let known = self.all[at].as_mut().unwrap();
        known.found = false;
        if known.users == 0 {
            self.all[at] = None;
        }
    }

    fn release(&mut self, at: usize) {
        let known = self.all[at].as_mut().unwrap();
        (known.users, known.used) = (known.users - 1, self.now);
        if known.users == 0 && !known.found {
            self.all[at] = None;
        }
    }
}

fn follows_the_model(steps: &[Step], limits: CacheLimits, room: usize, hole: usize) {
    let books = Books::new(room, hole);
    let cache = cache(&books, limits);
    let mut model = Model {
        all: Vec::new(),
        now: 0,
        limits,
        room,
        hole,
    };
    let mut held: Vec<(Pinned<Books>, usize)> = Vec::new();
    for &step in steps {
        match step {
            Step::Acquire { first, pages: n } => {
                let (is, should) = (
                    pages(&cache, first, first + n),
                    model.acquire((first, first + n)),
                );
                match (is, should) {
                    (Ok(pinned), Some(at)) => {
                        let range = model.all[at].unwrap().range;
                        let (start, end) = (pinned.range().start(), pinned.range().end());
                        assert_eq!((start / PAGE, end / PAGE), range, "{step:?}");
                        assert!(range.0 <= first && first + n <= range.1, "{step:?}");
                        held.push((pinned, at));
                    }
                    (Err(_), None) => {}
                    (is, should) => panic!("{step:?}: {is:?}, should be {should:?}"),
                }
            }
            Step::Release { which } if !held.is_empty() => {
                let (pinned, at) = held.swap_remove(which % held.len());
                drop(pinned);
                model.release(at);
            }
            Step::Release { .. } => {}
            Step::Invalidate { first, pages } => {
                cache.invalidate(first * PAGE, pages * PAGE).unwrap();
                for at in model.overlapping((first, first + pages)) {
                    model.retire(at);
                }
            }
        }
        assert_eq!(books.live(), model.live(), "after {step:?}");
        assert!(
            held.iter()
                .all(|(pinned, _)| books.is_live(*pinned.handle()))
        );
        let statistics = cache.statistics();
        assert!(statistics.pinned_bytes <= limits.bytes && statistics.pinned_count <= limits.count);
        assert_eq!(statistics.pinned_count, books.live().len());
    }
    drop(cache);
    drop(held);
    let book = books.0.lock();
    assert!(book.live.is_empty() && book.wrong == 0, "{book:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 600 }))]

    #[test]
    fn any_sequence_is_as_in_a_list(
        steps in prop::collection::vec(step(), 1..80),
        bytes in 4usize..60,
        count in 1usize..8,
        bucket in prop::sample::select(vec![1usize, 2, 4, 8]),
        room in 4usize..60,
        hole in prop_oneof![Just(NO_HOLE), 0usize..64],
    ) {
        follows_the_model(&steps, limits(bytes, count, bucket), room, hole);
    }
}
