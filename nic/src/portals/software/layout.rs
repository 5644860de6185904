//! Where everything lies in the file that the interfaces of a host share.
//!
//! ```text
//!  file   | identity | interface of the first rank | of the second | ...
//!
//!  interface   0x000  who it is            one line
//!              0x040  lock and sleep word  one line
//!              0x080  version of the lists one line
//!              0x0c0  counts               one line
//!              0x100  journal              768 bytes
//!              0x400  operations under way 8 lines
//!              0x600  portal table         a line each
//!                     entries              three lines each
//!                     queues               two lines each
//!                     counters             half a line each
//!                     events               two lines each, a range for each queue
//!                     buffers              which peers may be given access to
//! ```
//!
//! All fields are 8-byte words, native endian, as all that map them run on one host. Places are
//! offsets in the file, never addresses.

use super::config::SoftwareConfig;
use crate::host_file::PAGE;

pub(super) use crate::host_file::WORD;

const LINE: u64 = 64;

/// Says that a file is one of these, and in which version.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"argonic1");

const LOCK: u64 = 0x40;
const VERSION: u64 = 0x80;
const COUNTS: u64 = 0xc0;
const JOURNAL: u64 = 0x100;
const SLOTS: u64 = 0x400;
const PORTALS: u64 = 0x600;

/// Entries of a journal; the longest transaction changes less than half of it.
pub(super) const JOURNAL_ENTRIES: usize = ((SLOTS - JOURNAL - WORD) / (2 * WORD)) as usize;
/// Operations that a rank has under way outside of locks.
pub(super) const SLOT_COUNT: u64 = 8;
pub(super) const SLOT_BYTES: u64 = LINE;
const PORTAL_BYTES: u64 = LINE;
const ENTRY_BYTES: u64 = 3 * LINE;
const QUEUE_BYTES: u64 = 2 * LINE;
const COUNTER_BYTES: u64 = LINE / 2;
/// An event, two lines, as the protocol text counts it.
pub(super) const EVENT_BYTES: u64 = 2 * LINE;

static_assertions::const_assert!(SLOTS + SLOT_COUNT * SLOT_BYTES == PORTALS);

/// Offsets of tables within an interface, and of interfaces within the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) config: SoftwareConfig,
    entries: u64,
    queues: u64,
    counters: u64,
    events: u64,
    arena: u64,
    area_bytes: u64,
}

impl Layout {
    /// `None` if the sizes are beyond the limit of a file.
    pub(super) fn new(config: SoftwareConfig) -> Option<Self> {
        let table = |from: u64, count: u64, bytes: u64| from.checked_add(count.checked_mul(bytes)?);
        let entries = table(PORTALS, config.portals.into(), PORTAL_BYTES)?;
        let queues = table(entries, config.entries.into(), ENTRY_BYTES)?;
        let counters = table(queues, config.queues.into(), QUEUE_BYTES)?;
        let end = table(counters, config.counters.into(), COUNTER_BYTES)?;
        let events = end.checked_next_multiple_of(PAGE)?;
        let all_events = config.queue_events.checked_mul(config.queues.into())?;
        let arena = table(events, all_events, EVENT_BYTES)?.checked_next_multiple_of(PAGE)?;
        let area_bytes = arena
            .checked_add(config.arena_bytes)?
            .checked_next_multiple_of(PAGE)?;
        let layout = Self {
            config,
            entries,
            queues,
            counters,
            events,
            arena,
            area_bytes,
        };
        let total = area_bytes
            .checked_mul(config.ranks.into())?
            .checked_add(PAGE)?;
        (total <= 1 << 46).then_some(layout)
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.area(self.config.ranks)
    }

    #[inline(always)]
    pub(super) fn area(&self, place: u32) -> u64 {
        PAGE + u64::from(place) * self.area_bytes
    }

    pub(super) fn joined(&self, place: u32) -> u64 {
        self.area(place)
    }

    #[inline(always)]
    pub(super) fn lock(&self, place: u32) -> u64 {
        self.area(place) + LOCK
    }

    /// Beside the lock, which a thread that looks at it holds.
    #[inline(always)]
    pub(super) fn sleep(&self, place: u32) -> u64 {
        self.lock(place) + WORD
    }

    #[inline(always)]
    pub(super) fn version(&self, place: u32) -> u64 {
        self.area(place) + VERSION
    }

    #[inline(always)]
    pub(super) fn counts(&self, place: u32) -> u64 {
        self.area(place) + COUNTS
    }

    #[inline(always)]
    pub(super) fn journal(&self, place: u32) -> u64 {
        self.area(place) + JOURNAL
    }

    #[inline(always)]
    pub(super) fn slot(&self, place: u32, slot: u64) -> u64 {
        self.area(place) + SLOTS + slot * SLOT_BYTES
    }

    #[inline(always)]
    pub(super) fn portal(&self, place: u32, index: u32) -> u64 {
        self.area(place) + PORTALS + u64::from(index) * PORTAL_BYTES
    }

    #[inline(always)]
    pub(super) fn entry(&self, place: u32, index: u32) -> u64 {
        self.area(place) + self.entries + u64::from(index) * ENTRY_BYTES
    }

    #[inline(always)]
    pub(super) fn queue(&self, place: u32, index: u32) -> u64 {
        self.area(place) + self.queues + u64::from(index) * QUEUE_BYTES
    }

    pub(super) fn counter(&self, place: u32, index: u32) -> u64 {
        self.area(place) + self.counters + u64::from(index) * COUNTER_BYTES
    }

    #[inline(always)]
    pub(super) fn event(&self, place: u32, queue: u32, at: u64) -> u64 {
        let before = u64::from(queue) * self.config.queue_events;
        self.area(place) + self.events + (before + at) * EVENT_BYTES
    }

    /// Where the tables of an interface end and its events begin.
    #[cfg(test)]
    pub(super) fn events_offset(&self) -> u64 {
        self.events
    }

    pub(super) fn arena(&self, place: u32) -> u64 {
        self.area(place) + self.arena
    }

    /// Whether a transaction of the interface at `place` may have changed this word: a count, a
    /// place of an operation under way of any rank, or a word of the tables and queues.
    pub(super) fn is_journalled(&self, place: u32, at: u64) -> bool {
        if !at.is_multiple_of(WORD) || at < PAGE || at >= self.total_bytes() {
            return false;
        }
        let owner = (at - PAGE) / self.area_bytes;
        let within = (at - PAGE) % self.area_bytes;
        let slot = (SLOTS..PORTALS).contains(&within);
        let own = owner == u64::from(place)
            && ((COUNTS..JOURNAL).contains(&within) || (PORTALS..self.arena).contains(&within));
        slot || own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_file::IDENTITY_WORDS;

    #[test]
    fn nothing_overlaps() {
        let config = SoftwareConfig {
            ranks: 3,
            portals: 3,
            entries: 5,
            queues: 2,
            queue_events: 8,
            counters: 3,
            arena_bytes: 100,
            ..SoftwareConfig::default()
        };
        let layout = Layout::new(config).unwrap();
        let mut ranges = vec![(0, IDENTITY_WORDS * WORD)];
        for place in 0..3 {
            let mut add = |at, len| ranges.push((at, at + len));
            add(layout.joined(place), LINE);
            add(layout.lock(place), LINE);
            add(layout.version(place), LINE);
            add(layout.counts(place), LINE);
            add(
                layout.journal(place),
                WORD + JOURNAL_ENTRIES as u64 * 2 * WORD,
            );
            (0..SLOT_COUNT).for_each(|n| add(layout.slot(place, n), SLOT_BYTES));
            (0..3).for_each(|n| add(layout.portal(place, n), PORTAL_BYTES));
            (0..5).for_each(|n| add(layout.entry(place, n), ENTRY_BYTES));
            (0..2).for_each(|n| add(layout.queue(place, n), QUEUE_BYTES));
            (0..3).for_each(|n| add(layout.counter(place, n), COUNTER_BYTES));
            for queue in 0..2 {
                (0..8).for_each(|n| add(layout.event(place, queue, n), EVENT_BYTES));
            }
            add(layout.arena(place), 100);
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0));
        assert!(ranges.last().unwrap().1 <= layout.total_bytes());
    }

    #[test]
    fn a_journal_reaches_its_tables_and_the_slots_of_all() {
        let layout = Layout::new(SoftwareConfig::default()).unwrap();
        assert!(layout.is_journalled(0, layout.entry(0, 1)));
        assert!(layout.is_journalled(1, layout.queue(1, 0) + WORD));
        assert!(layout.is_journalled(1, layout.slot(0, 7)));
        assert!(layout.is_journalled(1, layout.event(1, 0, 0)));
        assert!(!layout.is_journalled(0, layout.event(1, 0, 0)));
        assert!(!layout.is_journalled(1, layout.entry(0, 1)));
        for at in [
            layout.lock(0),
            layout.version(0),
            layout.journal(0),
            layout.arena(0),
            layout.entry(0, 1) + 1,
            layout.total_bytes(),
            u64::MAX - 7,
            0,
        ] {
            assert!(!layout.is_journalled(0, at), "{at:#x}");
        }
    }
}
