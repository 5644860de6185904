//! What a rank knows of a peer: windows of both directions, and what has come and was not read.

use super::header::Kind;
use argonet_nic::rdm::MessageQueue;
use std::collections::VecDeque;

/// How much a peer may have sent that was not read.
pub(super) const WINDOW: u32 = 512 << 10;

/// What a message counts beside its bytes, until it was taken from the provider.
pub(super) const MESSAGE_COST: u32 = 128;

/// What was read since the peer has learned of it; for as much it gets a message of its own.
const MOST_UNKNOWN: u32 = WINDOW / 4;

/// Longest message that is copied, so that its buffer is free at once.
const COPIED_BYTES: usize = 1 << 10;

/// Shorter parts of what is written wait for more room.
const LEAST_PART: usize = 512;

/// What came, in order.
enum Part<R> {
    /// A message in its buffer, from this byte on.
    Buffer(R, usize),
    /// So many bytes of `Peer::copied`.
    Copied(usize),
}

/// Messages without bytes that a peer is to be sent, as a set.
#[derive(Clone, Copy, Default)]
struct Owed(u8);

/// The order in which they are sent.
const CONTROLS: [Kind; 4] = [Kind::Grant, Kind::Ask, Kind::Seen, Kind::Leave];

/// Of a peer that was used.
pub(super) struct Peer<Q: MessageQueue> {
    /// The token of what comes, and of what is sent.
    pub(super) tokens: [u64; 2],
    /// The number of the next message that is sent, and of the next one that comes.
    pub(super) numbers: [u32; 2],
    /// How much was sent, and how much of it the peer has read.
    sent: u32,
    granted: u32,
    /// How much has come, how much of it was read, and how much of that the peer knows of.
    came: u32,
    taken: u32,
    known: u32,
    /// A message that the provider had no room for; empty if there is none.
    pub(super) waiting: Vec<u8>,
    owed: Owed,
    parts: VecDeque<Part<Q::Received>>,
    copied: VecDeque<u8>,
    /// How often in turn it was asked and nothing came.
    pub(super) asks: u32,
    /// The channel uses the rail.
    pub(super) is_open: bool,
    /// It is in `State::ready`.
    pub(super) is_listed: bool,
    /// It is in `State::held_up`.
    pub(super) is_held_up: bool,
    /// Nothing more is read or sent: it was lost, or the rail was shut.
    pub(super) is_shut: bool,
    /// It sends nothing more.
    pub(super) has_left: bool,
    /// It has seen that this rank leaves.
    pub(super) has_seen: bool,
    /// The channel knows that there is no rail any more, or learns it in time.
    pub(super) is_given_up: bool,
}

impl<Q: MessageQueue> Peer<Q> {
    pub(super) fn new(tokens: [u64; 2]) -> Self {
        Self {
            tokens,
            numbers: [0; 2],
            sent: 0,
            granted: 0,
            came: 0,
            taken: 0,
            known: 0,
            waiting: Vec::new(),
            owed: Owed::default(),
            parts: VecDeque::new(),
            copied: VecDeque::new(),
            asks: 0,
            is_open: false,
            is_listed: false,
            is_held_up: false,
            is_shut: false,
            has_left: false,
            has_seen: false,
            is_given_up: false,
        }
    }

    /// How many of so many bytes can be sent now in a message of at most `most`; 0 if none.
    pub(super) fn room(&self, bytes: usize, most: usize) -> usize {
        if !self.waiting.is_empty() {
            return 0;
        }
        let under_way = self.sent.wrapping_sub(self.granted);
        let room = WINDOW.saturating_sub(under_way);
        let room = room.saturating_sub(MESSAGE_COST) as usize;
        let part = bytes.min(most);
        // What the peer reads makes room for a whole part.
        if room < part.min(LEAST_PART) {
            return 0;
        }
        part.min(room)
    }

    /// A message of so many bytes of the rail is sent.
    pub(super) fn count_sent(&mut self, bytes: usize) {
        let cost = MESSAGE_COST.wrapping_add(bytes as u32);
        self.sent = self.sent.wrapping_add(cost);
    }

    /// How much was read, as the next message says.
    pub(super) fn announce(&mut self) -> u32 {
        self.known = self.taken;
        self.owed.0 &= !(1 << Kind::Grant as u8);
        self.taken
    }

    /// The peer has read so much; false if that is more than was sent.
    #[must_use]
    pub(super) fn grant(&mut self, taken: u32) -> bool {
        let more = taken.wrapping_sub(self.granted);
        if more > self.sent.wrapping_sub(self.granted) {
            return false;
        }
        self.granted = taken;
        true
    }

    /// A message with bytes of the rail has come; false if it is more than the window has.
    #[must_use]
    pub(super) fn count_came(&mut self, bytes: usize) -> bool {
        let cost = MESSAGE_COST.wrapping_add(bytes as u32);
        self.came = self.came.wrapping_add(cost);
        if self.came.wrapping_sub(self.taken) > WINDOW {
            return false;
        }
        // It was taken from the provider.
        self.count_taken(MESSAGE_COST);
        true
    }

    fn count_taken(&mut self, much: u32) {
        self.taken = self.taken.wrapping_add(much);
        if self.taken.wrapping_sub(self.known) >= MOST_UNKNOWN {
            self.owe(Kind::Grant);
        }
    }

    /// Keeps bytes of a message until they are read; true if the buffer is free, as they were
    /// copied.
    ///
    /// `copies`: few buffers are free.
    pub(super) fn copy(&mut self, bytes: &[u8], copies: bool) -> bool {
        if bytes.len() > COPIED_BYTES && !copies {
            return false;
        }
        self.copied.extend(bytes);
        match self.parts.back_mut() {
            Some(Part::Copied(len)) => *len += bytes.len(),
            _ if bytes.is_empty() => {}
            _ => self.parts.push_back(Part::Copied(bytes.len())),
        }
        true
    }

    /// Keeps a message in its buffer, whose bytes begin there.
    pub(super) fn keep(&mut self, received: Q::Received, begin: usize) {
        self.parts.push_back(Part::Buffer(received, begin));
    }

    /// Whether something came that was not read.
    pub(super) fn has_unread(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Hands bytes out, as many as `fill` takes of at most `room`; how many, and of how many
    /// buffers the last was read.
    pub(super) fn read(
        &mut self,
        queue: &mut Q,
        mut room: usize,
        fill: &mut dyn FnMut(&[u8]) -> usize,
    ) -> (usize, usize) {
        let (mut read, mut freed) = (0, 0);
        while room > 0
            && let Some(part) = self.parts.front_mut()
        {
            let (filled, is_over) = match part {
                Part::Copied(len) => {
                    let (first, _) = self.copied.as_slices();
                    let piece = &first[..room.min(*len).min(first.len())];
                    let filled = fill(piece).min(piece.len());
                    self.copied.drain(..filled);
                    *len -= filled;
                    (filled, *len == 0)
                }
                Part::Buffer(received, begin) => {
                    let bytes = queue.bytes(received).get(*begin..).unwrap_or_default();
                    let piece = &bytes[..room.min(bytes.len())];
                    let filled = fill(piece).min(piece.len());
                    *begin += filled;
                    (filled, filled == bytes.len())
                }
            };
            read += filled;
            room -= filled;
            if is_over {
                if let Some(Part::Buffer(received, _)) = self.parts.pop_front() {
                    queue.give_back(received);
                    freed += 1;
                }
            } else if filled == 0 {
                break;
            }
        }
        self.count_taken(read as u32);
        (read, freed)
    }

    /// Nothing more is read; of how many buffers.
    pub(super) fn forget(&mut self, queue: &mut Q) -> usize {
        self.copied = VecDeque::new();
        let mut freed = 0;
        for part in self.parts.drain(..) {
            if let Part::Buffer(received, _) = part {
                queue.give_back(received);
                freed += 1;
            }
        }
        freed
    }

    /// It is to be sent a message without bytes.
    pub(super) fn owe(&mut self, kind: Kind) {
        self.owed.0 |= 1 << kind as u8;
    }

    /// Whether it is to be sent something that was not.
    pub(super) fn is_owed(&self) -> bool {
        !self.waiting.is_empty() || self.owed.0 != 0
    }

    /// It is sent nothing of that any more.
    pub(super) fn forget_owed(&mut self) {
        self.waiting = Vec::new();
        self.owed = Owed::default();
    }

    /// The next of these messages.
    pub(super) fn take_owed(&mut self) -> Option<Kind> {
        let is_owed = |kind: &Kind| self.owed.0 & 1 << *kind as u8 != 0;
        let kind = CONTROLS.into_iter().find(is_owed)?;
        self.owed.0 &= !(1 << kind as u8);
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_nic::rdm::Rdm;

    #[test]
    fn a_window_is_full_until_the_peer_has_read() {
        let mut peer = Peer::<Rdm>::new([1, 2]);
        // Over the end of numbers.
        (peer.sent, peer.granted) = (u32::MAX - 5, u32::MAX - 5);
        let (mut count, mut all) = (0, 0);
        loop {
            let part = peer.room(1 << 20, 16_000);
            if part == 0 {
                break;
            }
            peer.count_sent(part);
            (count, all) = (count + 1, all + part);
        }
        let under_way = all as u32 + count * MESSAGE_COST;
        assert!(
            under_way <= WINDOW && under_way + 1024 > WINDOW,
            "{under_way}"
        );
        assert!(!peer.grant(u32::MAX - 6), "less than before");
        let all_read = peer.sent;
        assert!(!peer.grant(all_read.wrapping_add(1)), "more than was sent");
        assert!(peer.grant(peer.granted.wrapping_add(20_000)));
        assert_eq!(peer.room(1 << 20, 16_000), 16_000);
        assert_eq!(peer.room(1, 16_000), 1);
        peer.waiting.push(0);
        assert_eq!(peer.room(1, 16_000), 0, "one message waits already");
    }

    #[test]
    fn a_peer_that_sends_beyond_its_window_is_noticed() {
        let mut peer = Peer::<Rdm>::new([1, 2]);
        let most = WINDOW as usize - MESSAGE_COST as usize;
        assert!(peer.count_came(most));
        // What the message itself cost is free again, its bytes are not.
        assert!(!peer.count_came(1));
    }

    #[test]
    fn a_peer_learns_of_a_quarter_of_its_window() {
        let mut peer = Peer::<Rdm>::new([1, 2]);
        peer.count_taken(MOST_UNKNOWN - 1);
        assert!(!peer.is_owed());
        peer.count_taken(1);
        assert_eq!(peer.take_owed(), Some(Kind::Grant));
        peer.owe(Kind::Grant);
        peer.owe(Kind::Leave);
        peer.owe(Kind::Seen);
        // Another message says it, too; the end comes last.
        assert_eq!(peer.announce(), MOST_UNKNOWN);
        assert_eq!(peer.take_owed(), Some(Kind::Seen));
        assert_eq!(peer.take_owed(), Some(Kind::Leave));
        assert_eq!(peer.take_owed(), None);
    }
}
