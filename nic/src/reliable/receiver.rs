//! The incoming half of a link.

use super::config::SPAN;
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

#[derive(Debug)]
pub(super) struct Receiver {
    /// The number that is delivered next.
    next: Seq,
    /// Early records, from `next` on, and a bit for each.
    kept: VecDeque<Option<Record>>,
    has: u128,
    kept_bytes: usize,
    most_bytes: usize,
    /// Records taken since an acknowledgement was sent.
    pub(super) owed: u32,
}

impl Receiver {
    pub(super) fn new(first: Seq, most_bytes: usize) -> Self {
        Self {
            next: first,
            kept: VecDeque::new(),
            has: 0,
            kept_bytes: 0,
            most_bytes,
            owed: 0,
        }
    }

    /// The contents of an acknowledgement.
    pub(super) fn acknowledgement(&self) -> (Seq, u128) {
        (self.next, self.has)
    }

    /// Whether something came before its turn, so that something else is missing.
    pub(super) fn has_gap(&self) -> bool {
        self.has != 0
    }

    fn advance(&mut self) {
        self.next = self.next.plus(1);
        self.has >>= 1;
        self.owed = self.owed.saturating_add(1);
    }

    /// A record has come.
    ///
    /// `accept`: whether the next may be delivered now.
    pub(super) fn came(&mut self, seq: Seq, bytes: &[u8], accept: impl FnOnce() -> bool) -> Taken {
        let Ok(ahead) = u32::try_from(seq.distance(self.next)) else {
            return Taken::Repeated;
        };
        if ahead >= SPAN {
            return Taken::Impossible;
        }
        if self.has >> ahead & 1 == 1 {
            return Taken::Repeated;
        }
        if ahead == 0 && accept() {
            self.kept.pop_front();
            self.advance();
            return Taken::Next;
        }
        if self.kept_bytes + bytes.len() > self.most_bytes {
            return Taken::NoRoom;
        }
        let place = ahead as usize;
        if self.kept.len() <= place {
            self.kept.resize_with(place + 1, || None);
        }
        self.kept[place] = Some(Record::copy_of(bytes));
        self.kept_bytes += bytes.len();
        self.has |= 1 << ahead;
        Taken::Kept
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
