//! Where everything lies in the file that the interfaces of a host share.
//!
//! ```text
//!  file   | identity | first interface of the first rank | its second | ...
//!
//!  interface   who it is            one line
//!              sleep word           one line
//!              rung by datagrams    a bit for each interface of the host
//!              registrations        half a line each
//!              heads of queues      two lines each
//!              datagrams            three lines to each interface of the host
//!              events               a word each, a range for each queue
//!              buffers              which peers may be given access to
//! ```
//!
//! All fields are 8-byte words, native endian, as all that map them run on one host. Places are
//! offsets in the file, never addresses.

use super::config::SoftwareConfig;
use crate::gni::DATAGRAM_BYTES;
use crate::host_file::{PAGE, WORD};

const LINE: u64 = 64;

/// Says that a file is one of these, and in which version.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"argogni1");

const SLEEP: u64 = LINE;
const RUNG: u64 = 2 * LINE;
const RECORD_BYTES: u64 = LINE / 2;
const QUEUE_BYTES: u64 = 2 * LINE;
const DATAGRAM_SLOT: u64 = LINE + DATAGRAM_BYTES as u64;

/// Words of a registration.
pub(super) mod record {
    /// 0: none.
    pub(in super::super) const KEY: usize = 0;
    pub(in super::super) const PLACE: usize = 1;
    pub(in super::super) const LEN: usize = 2;
    /// Access, and the queue that gets events.
    pub(in super::super) const FLAGS: usize = 3;
    pub(in super::super) const WORDS: usize = 4;
}

/// Places in a slot of a datagram.
pub(super) mod slot {
    use super::{LINE, WORD};
    pub(in super::super) const STATE: u64 = 0;
    pub(in super::super) const LEN: u64 = WORD;
    /// The number of the other side's last datagram that the owner of the slot has read.
    pub(in super::super) const READ: u64 = 2 * WORD;
    pub(in super::super) const DATA: u64 = LINE;
}

/// Offsets of tables within an interface, and of interfaces within the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) config: SoftwareConfig,
    records: u64,
    queues: u64,
    datagrams: u64,
    events: u64,
    buffers: u64,
    area_bytes: u64,
}

impl Layout {
    /// `None` if the sizes are beyond the limit of a file.
    pub(super) fn new(config: SoftwareConfig) -> Option<Self> {
        let table = |from: u64, count: u64, bytes: u64| {
            from.checked_add(count.checked_mul(bytes)?)?
                .checked_next_multiple_of(LINE)
        };
        let places = u64::from(config.places());
        let records = table(RUNG, places.div_ceil(64), WORD)?;
        let queues = table(records, config.registrations.into(), RECORD_BYTES)?;
        let datagrams = table(queues, config.queues.into(), QUEUE_BYTES)?;
        let end = table(datagrams, places, DATAGRAM_SLOT)?;
        let events = end.checked_next_multiple_of(PAGE)?;
        let all = u64::from(config.queue_events).checked_mul(config.queues.into())?;
        let buffers = table(events, all, WORD)?.checked_next_multiple_of(PAGE)?;
        let area_bytes = buffers
            .checked_add(config.buffer_bytes)?
            .checked_next_multiple_of(PAGE)?;
        let layout = Self {
            config,
            records,
            queues,
            datagrams,
            events,
            buffers,
            area_bytes,
        };
        let total = area_bytes.checked_mul(places)?.checked_add(PAGE)?;
        (total <= 1 << 46).then_some(layout)
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.area(self.config.places())
    }

    #[inline(always)]
    pub(super) fn area(&self, place: u32) -> u64 {
        PAGE + u64::from(place) * self.area_bytes
    }

    pub(super) fn joined(&self, place: u32) -> u64 {
        self.area(place)
    }

    #[inline(always)]
    pub(super) fn sleep(&self, place: u32) -> u64 {
        self.area(place) + SLEEP
    }

    /// A word of the bits that datagrams set.
    pub(super) fn rung(&self, place: u32, word: u32) -> u64 {
        self.area(place) + RUNG + u64::from(word) * WORD
    }

    pub(super) fn rung_words(&self) -> u32 {
        self.config.places().div_ceil(64)
    }

    #[inline(always)]
    pub(super) fn record(&self, place: u32, index: u32) -> u64 {
        self.area(place) + self.records + u64::from(index) * RECORD_BYTES
    }

    /// What a queue is and where its next event goes, in one line.
    #[inline(always)]
    pub(super) fn queue(&self, place: u32, index: u32) -> u64 {
        self.area(place) + self.queues + u64::from(index) * QUEUE_BYTES
    }

    /// The word that says that events were lost, apart from what each event changes.
    #[inline(always)]
    pub(super) fn overrun(&self, place: u32, index: u32) -> u64 {
        self.queue(place, index) + LINE
    }

    /// From the interface at one place to that at another.
    pub(super) fn datagram(&self, from: u32, to: u32) -> u64 {
        self.area(from) + self.datagrams + u64::from(to) * DATAGRAM_SLOT
    }

    #[inline(always)]
    pub(super) fn event(&self, place: u32, queue: u32, at: u64) -> u64 {
        let before = u64::from(queue) * u64::from(self.config.queue_events);
        self.area(place) + self.events + (before + at) * WORD
    }

    #[inline(always)]
    pub(super) fn buffers(&self, place: u32) -> u64 {
        self.area(place) + self.buffers
    }

    /// Bytes of an interface before its buffers.
    #[cfg(test)]
    pub(super) fn table_bytes(&self) -> u64 {
        self.buffers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let config = SoftwareConfig {
            ranks: 3,
            nics: 2,
            registrations: 3,
            queues: 2,
            queue_events: 8,
            buffer_bytes: 100,
            ..SoftwareConfig::default()
        };
        let layout = Layout::new(config).unwrap();
        let mut ranges = vec![(0, crate::host_file::IDENTITY_WORDS * WORD)];
        for place in 0..6 {
            let mut add = |at, len| ranges.push((at, at + len));
            add(layout.joined(place), LINE);
            add(layout.sleep(place), LINE);
            add(layout.rung(place, 0), WORD);
            (0..3).for_each(|n| add(layout.record(place, n), RECORD_BYTES));
            for queue in 0..2 {
                add(layout.queue(place, queue), LINE);
                add(layout.overrun(place, queue), LINE);
                (0..8).for_each(|n| add(layout.event(place, queue, n), WORD));
            }
            (0..6).for_each(|n| add(layout.datagram(place, n), DATAGRAM_SLOT));
            assert!(layout.buffers(place).is_multiple_of(PAGE));
            add(layout.buffers(place), 100);
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0));
        assert!(ranges.last().unwrap().1 <= layout.total_bytes());
    }

    #[test]
    fn files_have_a_limit() {
        let large = SoftwareConfig {
            buffer_bytes: 1 << 46,
            ..SoftwareConfig::default()
        };
        assert!(Layout::new(large).is_none());
        let beyond = SoftwareConfig {
            buffer_bytes: u64::MAX,
            ..large
        };
        assert!(Layout::new(beyond).is_none());
    }
}
