//! Random sequences on small tables with several caches, against models that know the rules only.
#![cfg(not(loom))]

use std::collections::{HashMap, HashSet};

use argonet_event::{
    Category, CategoryMask, Completion, Completions, Event, EventError, HandleTable, Limits,
    NbiToken, ThreadCache,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::FileFailurePersistence;

const CACHES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Alloc {
        cache: usize,
        local: u32,
        remote: u32,
    },
    /// Any event ever given out, stale ones too.
    Complete {
        event: Index,
        completion: Completion,
        count: u32,
    },
    AddCompletions {
        event: Index,
        local: u32,
        remote: u32,
    },
    Test {
        cache: usize,
        event: Index,
    },
    TestLeaf {
        event: Index,
    },
    Cancel {
        cache: usize,
        event: Index,
    },
    /// Living events, and their leaves where the flag says so.
    TestArray {
        cache: usize,
        events: Vec<(Index, bool)>,
        all: bool,
    },
    Retire {
        cache: usize,
    },
    Relieve {
        cache: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let cache = 0..CACHES;
    let event = any::<Index>();
    let completion = prop_oneof![
        Just(Completion::Local),
        Just(Completion::Remote),
        Just(Completion::Both)
    ];
    prop_oneof![
        6 => (cache.clone(), 0..3_u32, 0..3_u32)
            .prop_map(|(cache, local, remote)| Step::Alloc { cache, local, remote }),
        8 => (event.clone(), completion, 0..3_u32)
            .prop_map(|(event, completion, count)| Step::Complete { event, completion, count }),
        1 => (event.clone(), 0..3_u32, 0..3_u32)
            .prop_map(|(event, local, remote)| Step::AddCompletions { event, local, remote }),
        8 => (cache.clone(), event.clone()).prop_map(|(cache, event)| Step::Test { cache, event }),
        2 => event.clone().prop_map(|event| Step::TestLeaf { event }),
        1 => (cache.clone(), event.clone()).prop_map(|(cache, event)| Step::Cancel { cache, event }),
        2 => (cache.clone(), prop::collection::vec((event, any::<bool>()), 0..6), any::<bool>())
            .prop_map(|(cache, events, all)| Step::TestArray { cache, events, all }),
        1 => cache.clone().prop_map(|cache| Step::Retire { cache }),
        1 => cache.prop_map(|cache| Step::Relieve { cache }),
    ]
}

/// Pending local and remote completions of every living operation, and all events ever given out.
struct Model {
    table: HandleTable,
    caches: Vec<ThreadCache>,
    limit: u32,
    live: HashMap<Event, (u32, u32)>,
    ever: Vec<Event>,
}

impl Model {
    fn new(limit: u32, batch: u32) -> Self {
        let table = HandleTable::with_limits(Limits {
            operations: limit,
            scopes: 8,
            batch,
        });
        let caches = (0..CACHES).map(|_| table.thread_cache()).collect();
        Self {
            table,
            caches,
            limit,
            live: HashMap::new(),
            ever: Vec::new(),
        }
    }

    fn pick(&self, index: &Index) -> Option<Event> {
        (!self.ever.is_empty()).then(|| *index.get(&self.ever))
    }

    fn alloc(&mut self, cache: usize, local: u32, remote: u32) {
        let Ok(completions) = Completions::new(local, remote) else {
            assert_eq!((local, remote), (0, 0));
            return;
        };
        let in_use = self.live.len() as u32;
        match self.table.alloc(&self.caches[cache], completions) {
            Ok(event) => {
                assert!(in_use < self.limit);
                assert!(!self.ever.contains(&event), "{event} was given out twice");
                assert!(!event.is_done());
                self.live.insert(event, (local, remote));
                self.ever.push(event);
            }
            Err(exhausted) => {
                let kept: u32 = self.caches.iter().map(ThreadCache::free_handles).sum();
                assert_eq!(self.caches[cache].free_handles(), 0);
                assert_eq!(
                    (exhausted.limit, exhausted.in_use),
                    (self.limit, in_use + kept)
                );
                assert_eq!(in_use + kept, self.limit);
            }
        }
    }

    fn complete(&mut self, event: Event, completion: Completion, count: u32) {
        let result = self.table.complete(event, completion, count);
        let Some((local, remote)) = self.live.get_mut(&event) else {
            assert_eq!(result, Err(EventError::Stale(event)));
            return;
        };
        let (locals, remotes) = match completion {
            Completion::Local => (count, 0),
            Completion::Remote => (0, count),
            Completion::Both => (count, count),
        };
        if locals > *local || remotes > *remote {
            assert!(matches!(result, Err(EventError::TooManyCompletions { .. })));
        } else {
            (*local, *remote) = (*local - locals, *remote - remotes);
            assert_eq!(result, Ok((*local, *remote) == (0, 0)));
        }
    }

    fn add_completions(&mut self, event: Event, local: u32, remote: u32) {
        let Ok(completions) = Completions::new(local, remote) else {
            return;
        };
        let result = self.table.add_completions(event, completions);
        match self.live.get_mut(&event) {
            None => assert_eq!(result, Err(EventError::Stale(event))),
            Some((0, 0)) => assert_eq!(result, Err(EventError::AlreadyComplete(event))),
            Some((locals, remotes)) => {
                assert_eq!(result, Ok(()));
                (*locals, *remotes) = (*locals + local, *remotes + remote);
            }
        }
    }

    fn test(&mut self, cache: usize, event: Event) {
        let result = self.table.test(&self.caches[cache], event);
        match self.live.get(&event) {
            None => assert_eq!(result, Err(EventError::Stale(event))),
            Some(&pending) => {
                assert_eq!(result, Ok(pending == (0, 0)));
                if pending == (0, 0) {
                    self.live.remove(&event);
                }
            }
        }
    }

    fn test_leaf(&self, event: Event) {
        let leaf = self.table.query_leaf(event, Category::Lc);
        let Some((local, _)) = self.live.get(&event) else {
            assert_eq!(leaf, Err(EventError::Stale(event)));
            return;
        };
        let done = self.table.test(&self.caches[0], leaf.unwrap());
        assert_eq!(done, Ok(*local == 0));
    }

    fn test_array(&mut self, cache: usize, picks: &[(Index, bool)], all: bool) {
        let mut roots = HashSet::new();
        let mut given = Vec::new();
        for (index, is_leaf) in picks {
            let Some(root) = self
                .pick(index)
                .filter(|event| self.live.contains_key(event))
            else {
                given.push((Event::DONE, Event::DONE));
                continue;
            };
            if *is_leaf {
                let leaf = self.table.query_leaf(root, Category::Lc).unwrap();
                given.push((leaf, root));
            } else if roots.insert(root) {
                given.push((root, root));
            }
        }
        let mut events: Vec<Event> = given.iter().map(|(event, _)| *event).collect();
        let cache = &self.caches[cache];
        let result = if all {
            self.table.test_all(cache, &mut events)
        } else {
            self.table.test_some(cache, &mut events)
        };
        let (mut reaped, mut pending) = (false, false);
        for ((event, root), after) in given.into_iter().zip(events) {
            let done = match self.live.get(&root) {
                None => continue,
                Some(&(local, _)) if event.is_leaf() => local == 0,
                Some(&completions) => completions == (0, 0),
            };
            assert_eq!(after, if done { Event::DONE } else { event });
            reaped |= done;
            pending |= !done;
        }
        assert_eq!(result, Ok(!pending || (!all && reaped)));
        for root in roots {
            if self.live[&root] == (0, 0) {
                self.live.remove(&root);
            }
        }
    }

    fn run(&mut self, step: Step) {
        let event = match &step {
            Step::Complete { event, .. }
            | Step::AddCompletions { event, .. }
            | Step::Test { event, .. }
            | Step::TestLeaf { event }
            | Step::Cancel { event, .. } => match self.pick(event) {
                Some(event) => event,
                None => return,
            },
            _ => Event::DONE,
        };
        match step {
            Step::Alloc {
                cache,
                local,
                remote,
            } => self.alloc(cache, local, remote),
            Step::Complete {
                completion, count, ..
            } => self.complete(event, completion, count),
            Step::AddCompletions { local, remote, .. } => {
                self.add_completions(event, local, remote)
            }
            Step::Test { cache, .. } => self.test(cache, event),
            Step::TestLeaf { .. } => self.test_leaf(event),
            Step::Cancel { cache, .. } => {
                let result = self.table.cancel(&self.caches[cache], event);
                assert_eq!(result.is_ok(), self.live.remove(&event).is_some());
            }
            Step::TestArray { cache, events, all } => self.test_array(cache, &events, all),
            Step::Retire { cache } => {
                let fresh = self.table.thread_cache();
                self.table
                    .retire(core::mem::replace(&mut self.caches[cache], fresh));
            }
            Step::Relieve { cache } => self.table.relieve(&self.caches[cache]),
        }
    }

    /// Everything that is not living can be had again by one thread once the others have retired.
    fn finish(mut self) {
        for cache in self.caches.drain(..) {
            self.table.retire(cache);
        }
        self.caches.push(self.table.thread_cache());
        assert_eq!(self.table.handles_given_out(), self.live.len() as u32);
        for _ in self.live.len() as u32..self.limit {
            self.alloc(0, 1, 1);
        }
        assert_eq!(self.live.len() as u32, self.limit);
        assert!(
            self.table
                .alloc(&self.caches[0], Completions::BOTH)
                .is_err()
        );
    }
}

#[derive(Clone, Debug)]
enum NbiStep {
    Initiate {
        thread: usize,
        category: Category,
        count: u32,
    },
    /// Any token ever given out, stale ones too.
    Complete {
        token: Index,
        count: u32,
    },
    Test {
        thread: usize,
        mask: CategoryMask,
    },
    Begin {
        thread: usize,
    },
    End {
        thread: usize,
    },
    TestRegion {
        thread: usize,
        region: Index,
    },
    TestLeaf {
        region: Index,
        category: Category,
    },
    Retire {
        thread: usize,
    },
}

fn nbi_step() -> impl Strategy<Value = NbiStep> {
    let thread = 0..CACHES;
    let category = prop::sample::select(&Category::ALL[..]);
    let mask = (0..32_u8).prop_map(|bits| CategoryMask::from_bits(bits).unwrap());
    let index = any::<Index>();
    prop_oneof![
        8 => (thread.clone(), category.clone(), 1..4_u32)
            .prop_map(|(thread, category, count)| NbiStep::Initiate { thread, category, count }),
        12 => (index.clone(), 1..4_u32)
            .prop_map(|(token, count)| NbiStep::Complete { token, count }),
        3 => (thread.clone(), mask).prop_map(|(thread, mask)| NbiStep::Test { thread, mask }),
        3 => thread.clone().prop_map(|thread| NbiStep::Begin { thread }),
        3 => thread.clone().prop_map(|thread| NbiStep::End { thread }),
        4 => (thread.clone(), index.clone())
            .prop_map(|(thread, region)| NbiStep::TestRegion { thread, region }),
        2 => (index, category)
            .prop_map(|(region, category)| NbiStep::TestLeaf { region, category }),
        1 => thread.prop_map(|thread| NbiStep::Retire { thread }),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    /// A thread's default scope or its open region.
    Open,
    /// A region's event that was not reaped.
    Event,
    /// Left behind by a thread.
    Orphan,
    Over,
}

struct ScopeModel {
    outstanding: [u32; Category::COUNT],
    fate: Fate,
}

impl ScopeModel {
    fn is_drained(&self) -> bool {
        self.outstanding.iter().all(|&count| count == 0)
    }
}

struct ThreadModel {
    cache: ThreadCache,
    /// Positions in the list of scopes.
    default: Option<usize>,
    region: Option<Option<usize>>,
}

struct NbiModel {
    table: HandleTable,
    limit: usize,
    threads: Vec<ThreadModel>,
    scopes: Vec<ScopeModel>,
    tokens: Vec<(NbiToken, usize)>,
    regions: Vec<(Event, usize)>,
}

impl NbiModel {
    fn new(limit: u32, batch: u32) -> Self {
        let table = HandleTable::with_limits(Limits {
            operations: 1,
            scopes: limit,
            batch,
        });
        let threads = (0..CACHES).map(|_| Self::thread(&table)).collect();
        let limit = limit as usize;
        Self {
            table,
            limit,
            threads,
            scopes: vec![],
            tokens: vec![],
            regions: vec![],
        }
    }

    fn thread(table: &HandleTable) -> ThreadModel {
        ThreadModel {
            cache: table.thread_cache(),
            default: None,
            region: None,
        }
    }

    fn initiate(&mut self, thread: usize, category: Category, count: u32) {
        let in_use = self
            .scopes
            .iter()
            .filter(|scope| scope.fate != Fate::Over)
            .count();
        let thread = &mut self.threads[thread];
        let place = match &mut thread.region {
            Some(region) => region,
            None => &mut thread.default,
        };
        match self.table.nbi(&thread.cache).initiate(category, count) {
            Ok(token) => {
                let scope = *place.get_or_insert_with(|| {
                    assert!(in_use < self.limit);
                    let outstanding = [0; Category::COUNT];
                    self.scopes.push(ScopeModel {
                        outstanding,
                        fate: Fate::Open,
                    });
                    self.scopes.len() - 1
                });
                self.scopes[scope].outstanding[category as usize] += count;
                let known = self.tokens.iter().find(|(known, _)| *known == token);
                assert!(
                    known.is_none_or(|(_, other)| *other == scope),
                    "a token means two scopes"
                );
                self.tokens.push((token, scope));
            }
            Err(error) => {
                assert!(matches!(error, EventError::Exhausted(_)));
                assert!(place.is_none());
                // With one batch kept by each thread the table can seem full that much earlier.
                assert!(in_use + CACHES * 4 >= self.limit);
            }
        }
    }

    fn complete(&mut self, token: NbiToken, scope: usize, count: u32) {
        let result = self.table.complete_nbi(token, count);
        let scope = &mut self.scopes[scope];
        let outstanding = &mut scope.outstanding[token.category().unwrap() as usize];
        if scope.fate == Fate::Over {
            assert!(matches!(result, Err(EventError::Stale(_))), "{result:?}");
        } else if count > *outstanding {
            assert!(
                matches!(result, Err(EventError::TooManyCompletions { .. })),
                "{result:?}"
            );
        } else {
            *outstanding -= count;
            assert_eq!(result, Ok(*outstanding == 0));
            if scope.fate == Fate::Orphan && scope.is_drained() {
                scope.fate = Fate::Over;
            }
        }
    }

    fn close(&mut self, scope: usize, fate: Fate) -> bool {
        let scope = &mut self.scopes[scope];
        let done = scope.is_drained();
        scope.fate = if done { Fate::Over } else { fate };
        done
    }

    fn end(&mut self, thread: usize) {
        let result = self.table.nbi(&self.threads[thread].cache).end_region();
        match self.threads[thread].region.take() {
            None => assert_eq!(result, Err(EventError::NoRegion)),
            Some(None) => assert_eq!(result, Ok(Event::DONE)),
            Some(Some(scope)) => {
                let done = self.close(scope, Fate::Event);
                let event = result.unwrap();
                assert_eq!(event.is_done(), done);
                if !done {
                    self.regions.push((event, scope));
                }
            }
        }
    }

    fn run(&mut self, step: NbiStep) {
        match step {
            NbiStep::Initiate {
                thread,
                category,
                count,
            } => self.initiate(thread, category, count),
            NbiStep::Complete { token, count } => {
                if !self.tokens.is_empty() {
                    let (token, scope) = *token.get(&self.tokens);
                    self.complete(token, scope, count);
                }
            }
            NbiStep::Test { thread, mask } => {
                let thread = &self.threads[thread];
                let result = self.table.nbi(&thread.cache).test(mask);
                let drained = thread.default.is_none_or(|scope| {
                    let outstanding = &self.scopes[scope].outstanding;
                    Category::ALL
                        .iter()
                        .all(|&c| !mask.contains(c) || outstanding[c as usize] == 0)
                });
                let inside = thread.region.is_some();
                assert_eq!(
                    result,
                    if inside {
                        Err(EventError::RegionOpen)
                    } else {
                        Ok(drained)
                    }
                );
            }
            NbiStep::Begin { thread } => {
                let thread = &mut self.threads[thread];
                let result = self.table.nbi(&thread.cache).begin_region();
                assert_eq!(result.is_err(), thread.region.is_some());
                thread.region.get_or_insert(None);
            }
            NbiStep::End { thread } => self.end(thread),
            NbiStep::TestRegion { thread, region } => {
                if self.regions.is_empty() {
                    return;
                }
                let (event, scope) = *region.get(&self.regions);
                let result = self.table.test(&self.threads[thread].cache, event);
                let scope = &mut self.scopes[scope];
                if scope.fate == Fate::Over {
                    assert_eq!(result, Err(EventError::Stale(event)));
                } else {
                    assert_eq!(result, Ok(scope.is_drained()));
                    if scope.is_drained() {
                        scope.fate = Fate::Over;
                    }
                }
            }
            NbiStep::TestLeaf { region, category } => {
                if self.regions.is_empty() {
                    return;
                }
                let (event, scope) = *region.get(&self.regions);
                let scope = &self.scopes[scope];
                match self.table.query_leaf(event, category) {
                    Ok(leaf) => {
                        let done = scope.outstanding[category as usize] == 0;
                        assert_eq!(scope.fate, Fate::Event);
                        assert_eq!(self.table.test(&self.threads[0].cache, leaf), Ok(done));
                    }
                    Err(_) => assert_eq!(scope.fate, Fate::Over),
                }
            }
            NbiStep::Retire { thread } => {
                let fresh = Self::thread(&self.table);
                let old = core::mem::replace(&mut self.threads[thread], fresh);
                self.table.retire(old.cache);
                for scope in [old.default, old.region.flatten()].into_iter().flatten() {
                    self.close(scope, Fate::Orphan);
                }
            }
        }
    }

    /// Everything completes, all threads end, and then every scope can be had again.
    fn finish(mut self) {
        for (token, scope) in self.tokens.clone() {
            let left = self.scopes[scope].outstanding[token.category().unwrap() as usize];
            if left > 0 {
                self.complete(token, scope, left);
            }
        }
        for (event, scope) in core::mem::take(&mut self.regions) {
            if self.scopes[scope].fate == Fate::Event {
                assert_eq!(self.table.test(&self.threads[0].cache, event), Ok(true));
            }
        }
        for thread in self.threads.drain(..) {
            self.table.retire(thread.cache);
        }
        let caches: Vec<ThreadCache> = (0..self.limit)
            .map(|_| {
                let cache = self.table.thread_cache();
                self.table.nbi(&cache).initiate(Category::Put, 1).unwrap();
                self.table.relieve(&cache);
                cache
            })
            .collect();
        let one_more = self.table.thread_cache();
        assert!(
            self.table
                .nbi(&one_more)
                .initiate(Category::Put, 1)
                .is_err()
        );
        drop(caches);
    }
}

/// A failing case is kept beside this file.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn operations_follow_the_model(
        limit in 1..12_u32,
        batch in 0..4_u32,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut model = Model::new(limit, batch);
        for step in steps {
            model.run(step);
        }
        model.finish();
    }

    #[test]
    fn implicit_operations_follow_the_model(
        limit in 1..12_u32,
        batch in 0..2_u32,
        steps in prop::collection::vec(nbi_step(), 0..200),
    ) {
        let mut model = NbiModel::new(limit, batch);
        for step in steps {
            model.run(step);
        }
        model.finish();
    }
}
