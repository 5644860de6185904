//! The short way to an entry that reports nothing: no lock, nothing written at the target but the
//! data.
//!
//! Lists have a version, odd while they change. A thread that finds an even one, goes through a
//! list and finds the same version afterwards has seen a list that existed. It may use the entry
//! that it found only until the owner takes it away, so the operation is announced first
//! ([`announcements`](super::announcements)), then the version is looked at again: either it has
//! changed, or a thread that changes it from now on sees the announcement.

use super::deliver::Arrival;
use super::memory::{Place, Span};
use super::message::Message;
use super::records::{self, entry, index, portal};
use super::search::{fit, matches, suits};
use super::shared::Shared;
use core::sync::atomic::Ordering;

/// Entries that are looked at before the search is left to the ordinary way.
const REACH: u32 = 16;

impl Shared {
    /// Carries a message to its entry if the first that matches is plain.
    ///
    /// `None`: nothing was done, and the ordinary way will find out.
    ///
    /// # Safety
    /// The action's memory is valid for the message's length, as [`Message::carry`] wants it.
    #[inline]
    pub(super) unsafe fn carry_direct(&self, place: u32, message: &Message) -> Option<Arrival> {
        if self.faults.nothing_may_match() {
            return None;
        }
        let region = &self.region;
        let layout = &region.layout;
        let version = region.word(layout.version(place));
        let before = version.load(Ordering::Acquire);
        if before & 1 == 1 {
            return None;
        }
        let portal = layout.portal(place, message.portal.0);
        let wanted = portal::ALLOCATED | portal::ENABLED;
        if region.load(portal + portal::STATE) & wanted != wanted {
            return None;
        }
        let entries = layout.config.entries;
        let mut next = index(region.load(portal + portal::HEAD), entries);
        for _ in 0..REACH {
            let entry = next?;
            let at = layout.entry(place, entry);
            let options = region.load(at + entry::OPTIONS);
            let bits = region.load(at + entry::BITS);
            if !matches(message, bits, region.load(at + entry::IGNORE), options) {
                next = index(
                    region.load(at + entry::LINKS) & u64::from(u32::MAX),
                    entries,
                );
                continue;
            }
            if region.load(at + entry::STATE) & entry::PLAIN == 0 {
                return None;
            }
            let whole = Span {
                place: Place::from_bits(region.load(at + entry::MEMORY)),
                len: region.load(at + entry::LEN),
            };
            let moved = fit(message.offset, message.len, whole.len, options)?;
            let memory = self.resolve(place, whole, message.offset, moved)?;
            if options & records::LOCAL != 0 || !suits(message, memory, moved) {
                return None;
            }
            let claim = self.claim();
            claim.announce(place, entry);
            if version.load(Ordering::Acquire) != before {
                claim.withdraw();
                return None;
            }
            // SAFETY: `moved` bytes were resolved, no more than the message has; the announced
            // operation keeps the entry, which was in the list when it was announced.
            unsafe { message.carry(memory, moved) };
            claim.withdraw();
            return Some(Arrival::done(moved, options));
        }
        None
    }
}
