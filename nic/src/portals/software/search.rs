//! Which entry a message is for.

use super::memory::{Place, Span};
use super::message::{Action, Message};
use super::records::{self, entry, index};
use super::transaction::Transaction;
use crate::portals::NicError;
use core::ptr::NonNull;

/// The entry that accepts a message, and how much of it where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    pub(super) entry: u32,
    /// Where in the entry.
    pub(super) offset: u64,
    /// How much is moved.
    pub(super) moved: u64,
    pub(super) options: u64,
    /// Where that is in this process.
    pub(super) memory: NonNull<u8>,
}

/// Whether an entry accepts these bits and this source.
#[inline(always)]
pub(super) fn matches(message: &Message, bits: u64, ignore: u64, options: u64) -> bool {
    (message.bits ^ bits) & !ignore == 0
        && (options & records::SOURCE == 0 || options >> 32 == u64::from(message.initiator))
        && message.needs() & !options == 0
}

/// How much of a message fits from this offset on; `None` if the entry does not accept it.
#[inline(always)]
pub(super) fn fit(offset: u64, message: u64, len: u64, options: u64) -> Option<u64> {
    let room = len.checked_sub(offset)?;
    if message <= room {
        Some(message)
    } else {
        (options & records::TRUNCATE != 0).then_some(room)
    }
}

/// Whether the memory is aligned as the operation's elements must be, and the moved part has no
/// half of one.
#[inline(always)]
pub(super) fn suits(message: &Message, memory: NonNull<u8>, moved: u64) -> bool {
    match message.action {
        Action::Atomic { kind, .. } => {
            memory.addr().get().is_multiple_of(kind.bytes())
                && moved.is_multiple_of(kind.bytes() as u64)
        }
        _ => true,
    }
}

impl Transaction<'_> {
    /// The first entry in the list of the message's portal that accepts it.
    pub(super) fn search(&self, message: &Message) -> Result<Option<Selected>, NicError> {
        for entry in self.list(message.portal.0) {
            if let Some(selected) = self.try_entry(entry?, message) {
                return Ok(Some(selected));
            }
        }
        Ok(None)
    }

    #[inline]
    fn try_entry(&self, entry: u32, message: &Message) -> Option<Selected> {
        let at = self.shared.region.layout.entry(self.place, entry);
        self.try_words(entry, message, |word| self.get(at + word))
    }

    /// The same, of an entry whose words are read by `word`.
    #[inline(always)]
    pub(super) fn try_words(
        &self,
        entry: u32,
        message: &Message,
        word: impl Fn(u64) -> u64,
    ) -> Option<Selected> {
        let shared = self.shared;
        let options = word(entry::OPTIONS);
        if !matches(message, word(entry::BITS), word(entry::IGNORE), options)
            || word(entry::LEFT) == 0
        {
            return None;
        }
        let len = word(entry::LEN);
        let offset = if options & records::LOCAL == 0 {
            message.offset
        } else {
            let offset = word(entry::OFFSET);
            let free = len.checked_sub(offset)?;
            if free < word(entry::MIN_FREE) {
                return None;
            }
            offset
        };
        let moved = fit(offset, message.len, len, options)?;
        let place = Place::from_bits(word(entry::MEMORY));
        let memory = shared.resolve(self.place, Span { place, len }, offset, moved)?;
        suits(message, memory, moved).then_some(Selected {
            entry,
            offset,
            moved,
            options,
            memory,
        })
    }

    /// Queue and counter of an entry.
    #[inline]
    pub(super) fn reports(&self, entry: u32) -> (Option<u32>, Option<u32>) {
        let config = &self.shared.region.layout.config;
        let at = self.shared.region.layout.entry(self.place, entry);
        let reports = self.get(at + entry::REPORTS);
        let queue = index(reports >> 16 & 0xffff, config.queues);
        let counter = index(reports >> 32, config.counters);
        (queue, counter)
    }
}

impl super::shared::Shared {
    /// The address here of a part of an entry's memory.
    #[inline]
    pub(super) fn resolve(
        &self,
        owner: u32,
        whole: Span,
        offset: u64,
        len: u64,
    ) -> Option<NonNull<u8>> {
        let rank = self.rank_at(owner);
        self.memory
            .resolve(&self.region, owner, rank, whole, (offset, len))
    }
}
