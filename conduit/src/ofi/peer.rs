//! What a rank knows of a peer: windows of both directions, and what has come and was not read.

use super::header::{HEADER_BYTES, Header, Kind};
use argonet_nic::rdm::MessageQueue;
use std::collections::{BTreeMap, VecDeque};

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

/// So far may a message be ahead of its turn: all that fit into a window, and others without bytes,
/// of which few are under way.
const MOST_EARLY: u32 = WINDOW / MESSAGE_COST + 64;

/// Bytes of messages that are kept until it is their turn: a window, and the headers.
const MOST_EARLY_BYTES: usize = WINDOW as usize + MOST_EARLY as usize * HEADER_BYTES;

/// When a message comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// It is the next one.
    Now,
    /// Others come first.
    Later,
    /// It came before, or it is more than the peer may send.
    Never,
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
    /// Messages whose turn has not come, by their numbers.
    early: BTreeMap<u32, Box<[u8]>>,
    early_bytes: usize,
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
            early: BTreeMap::new(),
            early_bytes: 0,
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
    fn grant(&mut self, taken: u32) -> bool {
        let more = taken.wrapping_sub(self.granted);
        if more > self.sent.wrapping_sub(self.granted) {
            return false;
        }
        self.granted = taken;
        true
    }

    /// When a message of this number comes.
    pub(super) fn turn(&self, number: u32) -> Turn {
        match number.wrapping_sub(self.numbers[1]) {
            0 => Turn::Now,
            ahead if ahead <= MOST_EARLY && !self.early.contains_key(&number) => Turn::Later,
            _ => Turn::Never,
        }
    }

    /// Keeps a message until its turn; false if that is more than the peer may send.
    #[must_use]
    pub(super) fn keep_early(&mut self, number: u32, message: &[u8]) -> bool {
        if self.early_bytes + message.len() > MOST_EARLY_BYTES {
            return false;
        }
        self.early_bytes += message.len();
        self.early.insert(number, message.into());
        true
    }

    /// A message that was kept, whose turn it is.
    pub(super) fn next_early(&mut self) -> Option<Box<[u8]>> {
        let message = self.early.remove(&self.numbers[1])?;
        self.early_bytes -= message.len();
        Some(message)
    }

    /// Takes a message whose turn it is; whether its bytes must be [kept](Self::keep), as they were
    /// not copied.
    ///
    /// `None`: such a one cannot come now. `copies`: few buffers are free.
    pub(super) fn take(&mut self, header: &Header, bytes: &[u8], copies: bool) -> Option<bool> {
        self.numbers[1] = header.number.wrapping_add(1);
        let is_data = header.kind == Kind::Data;
        if is_data && (self.has_left || !self.count_came(bytes.len())) || !self.grant(header.taken)
        {
            return None;
        }
        match header.kind {
            Kind::Data => return Some(!self.copy(bytes, copies)),
            Kind::Grant => {}
            // One that crossed its end.
            Kind::Ask if self.has_left => {}
            Kind::Ask => self.owe(Kind::Grant),
            Kind::Leave => {
                self.has_left = true;
                // It takes nothing else any more.
                self.owed = Owed::default();
                self.owe(Kind::Seen);
            }
            Kind::Seen => self.has_seen = true,
        }
        Some(false)
    }

    /// A message with bytes of the rail has come; false if it is more than the window has.
    #[must_use]
    fn count_came(&mut self, bytes: usize) -> bool {
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
        if self.taken.wrapping_sub(self.known) >= MOST_UNKNOWN && !self.has_left {
            self.owe(Kind::Grant);
        }
    }

    /// Keeps bytes of a message until they are read, if it is short or `copies`; whether it does.
    fn copy(&mut self, bytes: &[u8], copies: bool) -> bool {
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
        if self.parts.is_empty() && self.copied.capacity() > WINDOW as usize / 8 {
            self.copied = VecDeque::new();
        }
        self.count_taken(read as u32);
        (read, freed)
    }

    /// Nothing more is read; of how many buffers.
    pub(super) fn forget(&mut self, queue: &mut Q) -> usize {
        self.copied = VecDeque::new();
        self.early = BTreeMap::new();
        self.early_bytes = 0;
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

    /// Its process has ended: it is sent nothing more, and is waited for no more.
    pub(super) fn end(&mut self) {
        self.waiting = Vec::new();
        self.owed = Owed::default();
        (self.has_left, self.is_given_up) = (true, true);
    }

    /// The rank takes nothing more from it, and sends it nothing more than that.
    pub(super) fn owe_end(&mut self) {
        self.owed.0 &= 1 << Kind::Seen as u8;
        if !self.has_left {
            self.owe(Kind::Leave);
        }
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

    /// Over the end of numbers.
    #[test]
    fn a_message_waits_for_its_turn_unless_it_came_or_is_too_far_ahead() {
        let mut peer = Peer::<Rdm>::new([1, 2]);
        peer.numbers[1] = u32::MAX;
        assert_eq!(peer.turn(u32::MAX), Turn::Now);
        assert_eq!(peer.turn(u32::MAX - 1), Turn::Never);
        let last = u32::MAX.wrapping_add(MOST_EARLY);
        assert_eq!(peer.turn(last), Turn::Later);
        assert_eq!(peer.turn(last + 1), Turn::Never);
        assert!(peer.keep_early(0, b"next"));
        assert_eq!(peer.turn(0), Turn::Never, "it has come");
        assert!(peer.next_early().is_none());
        peer.numbers[1] = 0;
        assert_eq!(peer.next_early().as_deref(), Some(&b"next"[..]));
        // No more than fits into a window.
        let long = vec![0; MOST_EARLY_BYTES];
        assert!(!peer.keep_early(1, &[&long[..], &[0]].concat()));
        assert!(peer.keep_early(1, &long));
        assert!(!peer.keep_early(2, &[0]));
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
