//! The cache itself.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::entry::{Entry, Pinned, Shared};
use super::stripes::Stripes;
use super::{
    BadLimits, BadRange, CacheLimits, CacheStatistics, PageRange, Refused, Registrar,
    RegistrationError,
};

/// Registrations of memory, kept within limits.
///
/// Any thread may call at any time; one that finds its memory registered waits only for a thread
/// that registers something else at that moment.
pub struct RegistrationCache<R: Registrar> {
    limits: CacheLimits,
    shared: Arc<Shared<R>>,
    stripes: Stripes<R>,
    queue: Mutex<Queue>,
}

/// The order in which entries go, and counts that only misses change.
#[derive(Default)]
struct Queue {
    /// When an entry was used, as far as was seen, and where it begins.
    ///
    /// It may have been used since.
    order: BTreeSet<(u64, usize)>,
    counts: CacheStatistics,
}

impl Queue {
    /// Puts an entry that is not in the queue at the place of its time of use.
    fn put<R: Registrar>(&mut self, entry: &Entry<R>, used: u64) {
        entry.set_queued(used);
        self.order.insert((used, entry.range.start()));
    }
}

/// Outcome for registrations in memory that goes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Invalidated {
    /// Registrations that were given back.
    pub given_back: usize,
    /// Registrations that operations under way use still; they go with the last of these, and no
    /// other finds them.
    pub in_use: usize,
}

impl<R: Registrar> RegistrationCache<R> {
    /// An empty cache.
    ///
    /// # Errors
    /// Limits that cannot be kept.
    pub fn new(registrar: R, limits: CacheLimits) -> Result<Self, BadLimits> {
        Ok(Self {
            limits: limits.check()?,
            shared: Arc::new(Shared {
                registrar,
                bytes: AtomicUsize::new(0),
                count: AtomicUsize::new(0),
                clock: AtomicU64::new(0),
            }),
            stripes: Stripes::new(),
            queue: Mutex::default(),
        })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> CacheLimits {
        self.limits
    }

    /// The registrar that the cache was made with.
    #[must_use]
    pub fn registrar(&self) -> &R {
        &self.shared.registrar
    }

    /// Memory for an operation, registered until the result is dropped.
    ///
    /// May call the registrar, for a request that no registration covers; other such requests wait
    /// meanwhile.
    ///
    /// # Errors
    /// [`RegistrationError`]; after [`InUse`](RegistrationError::InUse) and
    /// [`NoResources`](RegistrationError::NoResources) it is worth to try again when operations are
    /// complete.
    pub fn acquire(
        &self,
        address: usize,
        len: usize,
    ) -> Result<Pinned<R>, RegistrationError<R::Error>> {
        let wanted = PageRange::around(address, len, self.limits.page_bytes)?;
        match self.stripes.enter(wanted) {
            Some(entry) => Ok(Pinned::counted(entry)),
            None => self.miss(wanted),
        }
    }

    #[cold]
    #[inline(never)]
    fn miss(&self, wanted: PageRange) -> Result<Pinned<R>, RegistrationError<R::Error>> {
        let mut queue = self.queue.lock();
        // Another thread may have registered it while this one waited.
        if let Some(entry) = self.stripes.enter(wanted) {
            return Ok(Pinned::counted(entry));
        }
        queue.counts.misses += 1;
        self.shared.clock.fetch_add(1, Ordering::Relaxed);
        let mut refusal = RegistrationError::TooLarge {
            wanted,
            limit_bytes: self.limits.bytes,
        };
        let buckets = wanted.widened(self.limits.bucket_bytes);
        let narrower = (wanted != buckets).then_some(wanted);
        for range in [Some(buckets), narrower].into_iter().flatten() {
            for with_others in [true, false] {
                // Failed attempts may have taken others away, so that each looks anew.
                let candidate = if with_others {
                    self.union(range)
                } else {
                    Some(range)
                };
                let fitting = candidate.filter(|range| range.bytes() <= self.limits.bytes);
                let Some(candidate) = fitting else {
                    continue;
                };
                match self.register(&mut queue, candidate) {
                    Ok(handle) => return Ok(self.insert(&mut queue, candidate, handle)),
                    Err(why) => refusal = why,
                }
            }
        }
        Err(refusal)
    }

    /// The union of a range with the registrations that it overlaps in part, if there is any and it
    /// is at most twice as much.
    fn union(&self, range: PageRange) -> Option<PageRange> {
        let overlapping = self.stripes.overlapping(range);
        let all = overlapping
            .iter()
            .fold(range, |all, entry| all.union(entry.range));
        (all != range && all.bytes() / 2 <= range.bytes()).then_some(all)
    }

    /// Makes room and registers, without a place in the cache.
    fn register(
        &self,
        queue: &mut Queue,
        wanted: PageRange,
    ) -> Result<R::Handle, RegistrationError<R::Error>> {
        let CacheLimits { bytes, count, .. } = self.limits;
        while self.pinned().0.saturating_add(wanted.bytes()) > bytes || self.pinned().1 >= count {
            if !self.evict(queue, wanted) {
                let (used_bytes, used_count) = self.pinned();
                return Err(RegistrationError::InUse {
                    wanted,
                    used_bytes,
                    used_count,
                    limit_bytes: bytes,
                    limit_count: count,
                });
            }
        }
        loop {
            let refused = match self.shared.registrar.register(wanted) {
                Ok(handle) => return Ok(handle),
                Err(refused) => refused,
            };
            queue.counts.refusals += 1;
            match refused {
                Refused::Failed(source) => {
                    return Err(RegistrationError::Failed { wanted, source });
                }
                Refused::NoResources(source) => {
                    if !self.evict(queue, wanted) {
                        let (used_bytes, used_count) = self.pinned();
                        return Err(RegistrationError::NoResources {
                            wanted,
                            used_bytes,
                            used_count,
                            source,
                        });
                    }
                }
            }
        }
    }

    /// Takes a registration in, in place of those that it overlaps.
    fn insert(&self, queue: &mut Queue, range: PageRange, handle: R::Handle) -> Pinned<R> {
        queue.counts.registered += 1;
        let overlapping = self.stripes.overlapping(range);
        if overlapping.iter().any(|entry| range.contains(entry.range)) {
            queue.counts.unions += 1;
        }
        for entry in &overlapping {
            self.retire(queue, entry);
        }
        let entry = Arc::new(Entry::new(range, handle, &self.shared));
        queue.put(&entry, entry.last_used());
        self.stripes.insert(&entry);
        Pinned::counted(entry)
    }

    /// Gives back one registration that no operation uses, one that would be retired for `wanted`
    /// if there is one, else the least recently used one; whether there was any.
    fn evict(&self, queue: &mut Queue, wanted: PageRange) -> bool {
        let overlapping = self.stripes.overlapping(wanted);
        let unused = overlapping.iter().find(|entry| entry.uses.retire_unused());
        if let Some(entry) = unused {
            self.evicted(queue, entry);
            return true;
        }
        let mut in_use = Vec::new();
        let victim = loop {
            let Some((seen, start)) = queue.order.pop_first() else {
                break None;
            };
            let Some(entry) = self.stripes.at(start) else {
                continue;
            };
            let used = entry.last_used();
            if used > seen {
                queue.put(&entry, used);
            } else if entry.uses.retire_unused() {
                break Some(entry);
            } else {
                in_use.push(entry);
            }
        };
        // Entries in use count as used now.
        let now = self.shared.clock.load(Ordering::Relaxed);
        for entry in in_use {
            queue.put(&entry, now);
        }
        victim.inspect(|entry| self.evicted(queue, entry)).is_some()
    }

    /// No operation uses it any more, as [`Uses`](super::uses::Uses) has said.
    fn evicted(&self, queue: &mut Queue, entry: &Arc<Entry<R>>) {
        self.forget(queue, entry);
        queue.counts.evictions += 1;
        entry.give_back();
    }

    /// Takes one out of the cache; it goes at once, or with its last user.
    ///
    /// Whether at once.
    fn retire(&self, queue: &mut Queue, entry: &Arc<Entry<R>>) -> bool {
        self.forget(queue, entry);
        queue.counts.retired += 1;
        let unused = entry.uses.retire();
        if unused {
            entry.give_back();
        }
        unused
    }

    fn forget(&self, queue: &mut Queue, entry: &Entry<R>) {
        self.stripes.remove(entry);
        queue.order.remove(&(entry.queued(), entry.range.start()));
    }

    /// Reports that memory goes away, or has another content for the registrar: nothing finds
    /// registrations there any more.
    ///
    /// Call it before the addresses can be mapped anew.
    ///
    /// # Errors
    /// There are no such bytes.
    pub fn invalidate(&self, address: usize, len: usize) -> Result<Invalidated, BadRange> {
        let range = PageRange::around(address, len, self.limits.page_bytes)?;
        let mut queue = self.queue.lock();
        let mut outcome = Invalidated::default();
        for entry in self.stripes.overlapping(range) {
            if self.retire(&mut queue, &entry) {
                outcome.given_back += 1;
            } else {
                outcome.in_use += 1;
            }
        }
        Ok(outcome)
    }

    /// Counts of its work.
    #[must_use]
    pub fn statistics(&self) -> CacheStatistics {
        let (pinned_bytes, pinned_count) = self.pinned();
        CacheStatistics {
            hits: self.stripes.hits(),
            pinned_bytes,
            pinned_count,
            ..self.queue.lock().counts
        }
    }

    /// Bytes and registrations.
    fn pinned(&self) -> (usize, usize) {
        let Shared { bytes, count, .. } = &*self.shared;
        (bytes.load(Ordering::Relaxed), count.load(Ordering::Relaxed))
    }
}

impl<R: Registrar> Drop for RegistrationCache<R> {
    fn drop(&mut self) {
        for entry in self.stripes.take() {
            if entry.uses.retire() {
                entry.give_back();
            }
        }
    }
}
