//! The words of portals, entries and counters.

use super::layout::WORD;
use super::memory::Place;
use super::transaction::Transaction;
use crate::portals::{Entry, Events, Managed, Matching};

/// Words of a portal.
pub(super) mod portal {
    use super::WORD;
    /// Flags | (queue + 1) << 32.
    pub(in super::super) const STATE: u64 = 0;
    /// First and last entry, plus 1; 0: none.
    pub(in super::super) const HEAD: u64 = WORD;
    pub(in super::super) const TAIL: u64 = 2 * WORD;
    pub(in super::super) const ALLOCATED: u64 = 1;
    pub(in super::super) const ENABLED: u64 = 2;
    pub(in super::super) const FLOW_CONTROL: u64 = 4;
}

/// Words of an entry: a line that searches read, one that operations write, one with the rest.
pub(super) mod entry {
    use super::WORD;
    /// Generation << 32 | flags.
    pub(in super::super) const STATE: u64 = 0;
    pub(in super::super) const BITS: u64 = WORD;
    pub(in super::super) const IGNORE: u64 = 2 * WORD;
    /// Options | place of the source << 32.
    pub(in super::super) const OPTIONS: u64 = 3 * WORD;
    pub(in super::super) const MEMORY: u64 = 4 * WORD;
    pub(in super::super) const LEN: u64 = 5 * WORD;
    /// The next, plus 1 | (the one before, plus 1) << 32.
    pub(in super::super) const LINKS: u64 = 6 * WORD;
    /// Portal | (queue + 1) << 16 | (counter + 1) << 32.
    pub(in super::super) const REPORTS: u64 = 7 * WORD;
    /// Where the next operation goes, if the entry manages that.
    pub(in super::super) const OFFSET: u64 = 8 * WORD;
    /// Operations that it still accepts; `u64::MAX`: any number.
    pub(in super::super) const LEFT: u64 = 9 * WORD;
    /// Operations that have begun and not ended.
    pub(in super::super) const PENDING: u64 = 10 * WORD;
    pub(in super::super) const MIN_FREE: u64 = 11 * WORD;
    pub(in super::super) const USER: u64 = 12 * WORD;
    /// Counts of operations and bytes that went through the list in the ordinary way.
    pub(in super::super) const PUTS: u64 = 13 * WORD;
    pub(in super::super) const GETS: u64 = 14 * WORD;
    pub(in super::super) const BYTES: u64 = 15 * WORD;
    pub(in super::super) const ATOMICS: u64 = 16 * WORD;

    pub(in super::super) const ALLOCATED: u64 = 1;
    /// It is in a list.
    pub(in super::super) const LINKED: u64 = 2;
    /// An operation changes nothing in the entry and is not reported, so it needs no lock.
    pub(in super::super) const PLAIN: u64 = 4;
    /// A put is reported by one event at its end, and by nothing else.
    pub(in super::super) const BRIEF: u64 = 8;
}

pub(super) const PUTS: u64 = 1;
pub(super) const GETS: u64 = 2;
pub(super) const LOCAL: u64 = 4;
pub(super) const TRUNCATE: u64 = 8;
pub(super) const ACK_DISABLE: u64 = 16;
pub(super) const AUTO_UNLINK: u64 = 32;
pub(super) const START_EVENTS: u64 = 64;
pub(super) const END_EVENTS: u64 = 128;
pub(super) const COUNT_BYTES: u64 = 256;
/// Only messages of one source are accepted.
pub(super) const SOURCE: u64 = 512;

pub(super) mod counter {
    use super::WORD;
    /// Generation << 32 | 1 while it is allocated.
    pub(in super::super) const STATE: u64 = 0;
    pub(in super::super) const SUCCESS: u64 = WORD;
    pub(in super::super) const FAILURE: u64 = 2 * WORD;
}

/// From 1 on in a word whose other half is something else; 0: none.
pub(super) const fn one_based(index: Option<u32>) -> u64 {
    match index {
        Some(index) => index as u64 + 1,
        None => 0,
    }
}

/// The index that [`one_based`] made, if it is below `limit`.
#[inline(always)]
pub(super) fn index(one_based: u64, limit: u32) -> Option<u32> {
    let index = u32::try_from(one_based.checked_sub(1)?).ok()?;
    (index < limit).then_some(index)
}

pub(super) fn options_of(entry: &Entry) -> u64 {
    let flag = |set, bit| if set { bit } else { 0 };
    flag(entry.puts, PUTS)
        | flag(entry.gets, GETS)
        | flag(matches!(entry.managed, Managed::Local { .. }), LOCAL)
        | flag(entry.truncate, TRUNCATE)
        | flag(entry.ack_disable, ACK_DISABLE)
        | flag(entry.auto_unlink, AUTO_UNLINK)
        | flag(entry.events.start, START_EVENTS)
        | flag(entry.events.end, END_EVENTS)
        | flag(entry.count.is_some_and(|c| c.bytes), COUNT_BYTES)
}

/// The word that accepts only this place.
///
/// A place of a rank of another host may be any number.
fn source_of(place: u32) -> u64 {
    SOURCE | u64::from(place) << 32
}

/// Whether operations change nothing in an entry and are not reported.
fn is_plain(entry: &Entry) -> bool {
    entry.managed == Managed::Remote
        && entry.threshold.is_none()
        && entry.queue.is_none()
        && entry.count.is_none()
}

/// Whether a put is reported by one event at its end, and by nothing else.
fn is_brief(entry: &Entry) -> bool {
    entry.threshold.is_none()
        && entry.queue.is_some()
        && entry.count.is_none()
        && entry.events
            == Events {
                start: false,
                end: true,
            }
}

/// An entry that is written: its place, its portal, its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct New {
    pub(super) index: u32,
    pub(super) generation: u32,
    pub(super) portal: u32,
    /// The only rank whose messages it takes, by the place that the rank would have in the file;
    /// `None`: any rank.
    pub(super) source: Option<u32>,
    pub(super) memory: Place,
    pub(super) len: u64,
}

impl Transaction<'_> {
    /// Writes an entry that is in no list yet.
    pub(super) fn write_entry(&mut self, new: &New, matching: &Matching, options: &Entry) {
        let at = self.shared.region.layout.entry(self.place, new.index);
        let min_free = match options.managed {
            Managed::Local { min_free_bytes } => min_free_bytes,
            Managed::Remote => 0,
        };
        let queue = one_based(options.queue.map(|q| q.index)) << 16;
        let counter = one_based(options.count.map(|c| c.counter.index)) << 32;
        let plain = if is_plain(options) { entry::PLAIN } else { 0 };
        let brief = if is_brief(options) { entry::BRIEF } else { 0 };
        let words = [
            (entry::BITS, matching.bits),
            (entry::IGNORE, matching.ignore),
            (
                entry::OPTIONS,
                options_of(options) | new.source.map_or(0, source_of),
            ),
            (entry::MEMORY, new.memory.to_bits()),
            (entry::LEN, new.len),
            (entry::REPORTS, u64::from(new.portal) | queue | counter),
            (entry::OFFSET, 0),
            (entry::LEFT, options.threshold.map_or(u64::MAX, u64::from)),
            (entry::PENDING, 0),
            (entry::MIN_FREE, min_free),
            (entry::USER, options.user),
            (entry::PUTS, 0),
            (entry::GETS, 0),
            (entry::BYTES, 0),
            (entry::ATOMICS, 0),
            (
                entry::STATE,
                u64::from(new.generation) << 32 | entry::ALLOCATED | plain | brief,
            ),
        ];
        for (word, value) in words {
            self.set(at + word, value);
        }
    }

    /// Adds to a counter of this interface: a success of so many bytes, or a failure.
    pub(super) fn count_event(&mut self, counter: u32, bytes: Option<u64>, success: bool) {
        let at = self.shared.region.layout.counter(self.place, counter);
        if success {
            self.add(at + counter::SUCCESS, bytes.unwrap_or(1));
        } else {
            self.add(at + counter::FAILURE, 1);
        }
    }
}
