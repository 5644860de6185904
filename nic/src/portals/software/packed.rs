//! An event as words of a queue: the usual one fills one line, so that one line goes from its
//! writer to its reader.

use crate::portals::{Event, EventKind, Outcome, PortalIndex};
use argonet_base::JobRank;

/// Words of the first line, and two lengths behind them.
pub(super) const EVENT_WORDS: usize = LINE_WORDS + 2;
const LINE_WORDS: usize = 8;

/// In the first word: the lengths are behind the line, as they differ or are too long for half a
/// word.
const APART: u64 = 1 << 15;

/// The words of an event.
pub(super) struct Packed {
    /// The first line.
    ///
    /// The upper half of its first word is 0.
    pub(super) line: [u64; LINE_WORDS],
    /// The lengths behind the line, if there are any.
    pub(super) lengths: Option<[u64; 2]>,
}

impl Packed {
    #[inline(always)]
    pub(super) fn new(event: &Event) -> Self {
        let kind = u64::from(u8::from(event.kind));
        let outcome = u64::from(u8::from(event.outcome)) << 8;
        let portal = u64::from(event.portal.0 as u16) << 16;
        let (requested, moved) = (event.requested_bytes, event.moved_bytes);
        let is_apart = requested != moved || requested > u64::from(u32::MAX);
        let (apart, short) = if is_apart {
            (APART, 0)
        } else {
            (0, requested << 32)
        };
        Self {
            line: [
                kind | outcome | apart | portal,
                u64::from(event.peer.0) | short,
                event.bits,
                event.header,
                event.offset_bytes,
                event.user,
                event.object,
                event.link,
            ],
            lengths: is_apart.then_some([requested, moved]),
        }
    }
}

/// The event whose words `word` reads; `None` if they are none.
#[inline(always)]
pub(super) fn unpack(word: impl Fn(usize) -> u64) -> Option<Event> {
    let (what, peer) = (word(0), word(1));
    let (requested_bytes, moved_bytes) = if what & APART == 0 {
        (peer >> 32, peer >> 32)
    } else {
        (word(LINE_WORDS), word(LINE_WORDS + 1))
    };
    Some(Event {
        kind: EventKind::try_from(what as u8).ok()?,
        outcome: Outcome::try_from((what >> 8) as u8 & !((APART >> 8) as u8)).ok()?,
        peer: JobRank(peer as u32),
        portal: PortalIndex(u32::from((what >> 16) as u16)),
        bits: word(2),
        header: word(3),
        requested_bytes,
        moved_bytes,
        offset_bytes: word(4),
        user: word(5),
        object: word(6),
        link: word(7),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(packed: &Packed) -> Option<Event> {
        // The words before.
        let mut words = [u64::MAX; EVENT_WORDS];
        words[..LINE_WORDS].copy_from_slice(&packed.line);
        words[LINE_WORDS..].copy_from_slice(&packed.lengths.unwrap_or([u64::MAX; 2]));
        // A position is in the upper half.
        words[0] |= 0xfeed_f00d << 32;
        unpack(|number| words[number])
    }

    proptest! {
        #[test]
        fn packed_events_are_read_back(
            kind in 1_u8..=13,
            outcome in 0_u8..16,
            small in any::<[u32; 2]>(),
            words in any::<[u64; 8]>(),
            lengths in 0..4,
        ) {
            let (Ok(kind), Ok(outcome)) = (EventKind::try_from(kind), Outcome::try_from(outcome)) else {
                return Ok(());
            };
            let requested_bytes = if lengths & 1 == 0 { words[6] } else { words[6] >> 32 };
            let event = Event {
                kind,
                outcome,
                peer: JobRank(small[0]),
                portal: PortalIndex(small[1] & 0x7fff),
                bits: words[0],
                header: words[1],
                requested_bytes,
                moved_bytes: if lengths & 2 == 0 { requested_bytes } else { words[7] },
                offset_bytes: words[2],
                user: words[3],
                object: words[4],
                link: words[5],
            };
            let packed = Packed::new(&event);
            prop_assert_eq!(packed.line[0] >> 32, 0);
            prop_assert_eq!(packed.lengths.is_none(), lengths == 1);
            prop_assert_eq!(read(&packed), Some(event));
        }
    }

    #[test]
    fn words_of_no_event_are_refused() {
        for first in [0, 0xff, 0x7f << 8 | 1] {
            assert_eq!(unpack(|number| if number == 0 { first } else { 0 }), None);
        }
    }
}
