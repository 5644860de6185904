//! The incoming half of a channel.

use super::config::{FEW, ReliableConfig};
use super::datagram::{Chunk, MORE_BYTES, NAMED};
use super::pool::{Pool, Record};
use super::seq::Seq;
use std::collections::VecDeque;

/// The fate of a record that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is the next.
    Next,
    /// It is kept until its turn.
    Kept,
    /// It has been here before.
    Repeated,
    /// It cannot be kept.
    NoRoom,
    /// The peer cannot have sent it by now.
    Impossible,
}

/// A record of which chunks have come.
#[derive(Debug)]
struct Chunked {
    seq: Seq,
    /// Its form; the place is that of the first chunk that came.
    of: Chunk,
    bytes: Box<[u8]>,
    /// A bit for each chunk that is here.
    has: u64,
}

#[derive(Debug)]
pub(super) struct Receiver {
    /// The number that is delivered next.
    next: Seq,
    /// Early records, from `next` on; the last one is here.
    kept: VecDeque<Option<Record>>,
    kept_bytes: usize,
    most_bytes: usize,
    /// Numbers from `next` on that a record may have.
    span: u32,
    /// One record at most: a peer sends the chunks of one after those of another.
    chunked: Option<Box<Chunked>>,
    /// Records taken since an acknowledgement was sent.
    pub(super) owed: u32,
}

impl Receiver {
    pub(super) fn new(first: Seq, config: &ReliableConfig) -> Self {
        Self {
            next: first,
            kept: VecDeque::new(),
            kept_bytes: 0,
            most_bytes: config.window_bytes,
            span: config.span(),
            chunked: None,
            owed: 0,
        }
    }

    /// The number that it waits for.
    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// Whether something came before its turn, or was not accepted in its turn.
    pub(super) fn keeps_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether something is missing that was sent before what is kept.
    pub(super) fn has_gap(&self) -> bool {
        self.kept.front().is_some_and(Option::is_none)
    }

    /// Whether it keeps more than a header names.
    pub(super) fn keeps_more(&self) -> bool {
        self.kept.len() > NAMED as usize
    }

    /// What a header names of the kept ones.
    pub(super) fn named(&self) -> u128 {
        let first = self.kept.iter().take(NAMED as usize).enumerate();
        first.fold(0, |bits, (at, record)| {
            bits | u128::from(record.is_some()) << at
        })
    }

    /// Names the others, a bit each; in how many bytes.
    pub(super) fn name_more(&self, bytes: &mut [u8]) -> usize {
        let mut len = 0;
        let mut others = self.kept.iter().skip(NAMED as usize).map(Option::is_some);
        for byte in bytes.iter_mut().take(MORE_BYTES) {
            if others.len() == 0 {
                break;
            }
            let bits = others.by_ref().take(8).enumerate();
            *byte = bits.fold(0, |byte, (at, has)| byte | u8::from(has) << at);
            len += 1;
        }
        len
    }

    fn advance(&mut self) {
        self.next = self.next.plus(1);
        self.owed = self.owed.saturating_add(1);
        let next = self.next;
        self.chunked
            .take_if(|chunked| chunked.seq.distance(next) < 0);
        if self.kept.is_empty() && self.kept.capacity() > FEW {
            self.kept = VecDeque::new();
        }
    }

    /// A record has come.
    ///
    /// `accept`: whether the next may be delivered now.
    pub(super) fn came(&mut self, seq: Seq, bytes: &[u8], accept: impl FnOnce() -> bool) -> Taken {
        let Ok(ahead) = u32::try_from(seq.distance(self.next)) else {
            return Taken::Repeated;
        };
        if ahead >= self.span {
            return Taken::Impossible;
        }
        let place = ahead as usize;
        if self.kept.get(place).is_some_and(Option::is_some) {
            return Taken::Repeated;
        }
        if ahead == 0 && accept() {
            self.kept.pop_front();
            self.advance();
            return Taken::Next;
        }
        // The next one is all that the others wait for.
        if ahead > 0 && self.kept_bytes + bytes.len() > self.most_bytes {
            return Taken::NoRoom;
        }
        if self.kept.len() <= place {
            self.kept.resize_with(place + 1, || None);
        }
        self.kept[place] = Some(Record::copy_of(bytes));
        self.kept_bytes += bytes.len();
        Taken::Kept
    }

    /// A chunk of a record has come; the fate of the record, if it is whole or is not wanted.
    pub(super) fn came_in_chunks(&mut self, seq: Seq, body: &[u8]) -> Option<Taken> {
        let Some((chunk, which, bytes)) = Chunk::read(body) else {
            return Some(Taken::Impossible);
        };
        match u32::try_from(seq.distance(self.next)) {
            Err(_) => return Some(Taken::Repeated),
            Ok(ahead) if ahead >= self.span => return Some(Taken::Impossible),
            Ok(ahead) => {
                if self.kept.get(ahead as usize).is_some_and(Option::is_some) {
                    return Some(Taken::Repeated);
                }
            }
        }
        let form = Chunk { from: 0, ..chunk };
        let is_same = |known: &Chunked| known.seq == seq && known.of == form;
        let known = self.chunked.take().filter(|known| is_same(known));
        let mut whole = known.unwrap_or_else(|| {
            Box::new(Chunked {
                seq,
                of: form,
                bytes: vec![0; usize::from(chunk.of)].into_boxed_slice(),
                has: 0,
            })
        });
        let from = usize::from(chunk.from);
        if let Some(place) = whole.bytes.get_mut(from..from + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        whole.has |= 1 << which;
        if (whole.has.count_ones() as usize) < chunk.count() {
            self.chunked = Some(whole);
            return None;
        }
        Some(self.came(seq, &whole.bytes, || false))
    }

    /// The next record, if it is kept.
    pub(super) fn take(&mut self) -> Option<Record> {
        let record = self.kept.front_mut()?.take()?;
        self.kept.pop_front();
        self.kept_bytes -= record.len();
        self.advance();
        Some(record)
    }

    /// Gives all buffers back.
    pub(super) fn dissolve(&mut self, pool: &mut Pool) {
        let records = self.kept.drain(..).flatten();
        records.for_each(|record| pool.give_back(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliable::datagram::CHUNK_BYTES;

    /// The body of a chunk.
    fn body(chunk: Chunk, bytes: &[u8]) -> Vec<u8> {
        let mut body = vec![0; CHUNK_BYTES];
        chunk.write(&mut body);
        [&body, bytes].concat()
    }

    #[test]
    fn chunks_in_any_order_are_one_record() {
        let config = ReliableConfig::default();
        let first = Seq(u32::MAX);
        let mut receiver = Receiver::new(first, &config);
        let record: Vec<u8> = (0..250).collect();
        let chunk = |which: usize| {
            let from = 100 * which as u16;
            let place = Chunk {
                from,
                of: 250,
                each: 100,
            };
            let bytes = record.chunks(100).nth(which).unwrap_or_default();
            body(place, bytes)
        };
        for seq in [first.plus(1), first] {
            // Also again, and with another record in between, which puts it aside.
            for which in [2, 2, 0] {
                assert_eq!(receiver.came_in_chunks(seq, &chunk(which)), None);
            }
            assert_eq!(receiver.came_in_chunks(first.plus(2), &chunk(1)), None);
            assert_eq!(receiver.came_in_chunks(seq, &chunk(1)), None);
            assert_eq!(receiver.came_in_chunks(seq, &chunk(2)), None);
            assert_eq!(receiver.came_in_chunks(seq, &chunk(0)), Some(Taken::Kept));
            assert_eq!(
                receiver.came_in_chunks(seq, &chunk(0)),
                Some(Taken::Repeated)
            );
        }
        for _ in 0..2 {
            assert_eq!(receiver.take().unwrap().bytes(), record);
        }
        let repeated = receiver.came_in_chunks(first, &chunk(0));
        assert_eq!(repeated, Some(Taken::Repeated));
        // One that came whole meanwhile takes what was there of its chunks along.
        assert_eq!(receiver.came_in_chunks(receiver.next(), &chunk(0)), None);
        let next = receiver.came(receiver.next(), &record, || true);
        assert!(next == Taken::Next && receiver.chunked.is_none());
    }

    /// Later records wait for the next one, which has its place though they take all room.
    #[test]
    fn the_next_record_is_kept_where_later_ones_leave_no_room() {
        let config = ReliableConfig {
            window_bytes: 2000,
            ..ReliableConfig::default()
        };
        let mut receiver = Receiver::new(Seq(0), &config);
        for (seq, taken) in [(1, Taken::Kept), (2, Taken::Kept), (3, Taken::NoRoom)] {
            assert_eq!(receiver.came(Seq(seq), &[7; 1000], || true), taken);
        }
        let chunk = |from| Chunk {
            from,
            of: 1000,
            each: 500,
        };
        let mut came = |from| receiver.came_in_chunks(Seq(0), &body(chunk(from), &[7; 500]));
        assert_eq!((came(0), came(500)), (None, Some(Taken::Kept)));
        let taken = core::iter::from_fn(|| receiver.take()).count();
        assert_eq!((taken, receiver.next()), (3, Seq(3)));
    }

    #[test]
    fn chunks_that_contradict_themselves_are_dropped() {
        let config = ReliableConfig::default();
        let mut receiver = Receiver::new(Seq(0), &config);
        let chunk = |from, of, each| Chunk { from, of, each };
        let good = chunk(100, 150, 100);
        for wrong in [
            body(good, &[0; 49]),
            body(good, &[0; 51]),
            body(good, &[]),
            body(chunk(99, 150, 100), &[0; 51]),
            body(chunk(200, 150, 100), &[]),
            body(chunk(150, 150, 50), &[]),
            body(chunk(0, 0, 100), &[]),
            body(chunk(0, 150, 0), &[]),
            body(chunk(0, 65, 1), &[0]),
            body(chunk(u16::MAX, u16::MAX, u16::MAX), &[]),
            vec![0; CHUNK_BYTES - 1],
        ] {
            let came = receiver.came_in_chunks(Seq(0), &wrong);
            assert_eq!(came, Some(Taken::Impossible), "{wrong:?}");
        }
        let far = Seq(config.span());
        let came = receiver.came_in_chunks(far, &body(good, &[0; 50]));
        assert_eq!(came, Some(Taken::Impossible));
        assert!(receiver.chunked.is_none());
        assert_eq!(receiver.came_in_chunks(Seq(0), &body(good, &[0; 50])), None);
    }

    #[test]
    fn all_that_is_kept_is_named_and_places_are_given_back() {
        let config = ReliableConfig::default();
        let first = Seq(u32::MAX - 2000);
        let mut receiver = Receiver::new(first, &config);
        let has = |place: u32| place % 3 == 1 || place == 4095;
        for place in (0..4096).rev().filter(|place| has(*place)) {
            let taken = receiver.came(first.plus(place), b"8 bytes.", || true);
            assert_eq!(taken, Taken::Kept, "{place}");
        }
        let beyond = receiver.came(first.plus(4096), b"", || true);
        assert_eq!(beyond, Taken::Impossible);
        let mut more = [0xff; MORE_BYTES + 1];
        assert_eq!(receiver.name_more(&mut more), MORE_BYTES);
        let named = receiver.named();
        for place in 0..4096 {
            let (at, bit) = ((place as usize).wrapping_sub(128) / 8, place % 8);
            let is_named = match place < NAMED {
                true => named >> place & 1 == 1,
                false => more[at] >> bit & 1 == 1,
            };
            assert_eq!(is_named, has(place), "{place}");
        }
        assert!(receiver.keeps_more() && receiver.has_gap());
        for place in 0..4096 {
            let came = receiver.came(first.plus(place), b"8 bytes.", || true);
            let wanted = if has(place) {
                Taken::Repeated
            } else {
                Taken::Next
            };
            assert_eq!(came, wanted, "{place}");
            while receiver.take().is_some() {}
        }
        assert_eq!(receiver.next(), first.plus(4096));
        assert!(!receiver.has_gap() && receiver.kept.capacity() <= FEW);
        assert_eq!((receiver.named(), receiver.name_more(&mut more)), (0, 0));
    }
}
