//! Payloads that leave the stream: which may, who carries them, and what becomes of them when that is lost.

use super::{Placed, SendStream, Way};
use crate::channel::frame::{AWAY_FLAG, FLAGS_AT, Fields, HeadBytes, Kind};
use crate::channel::stream::pieces::Pieces;

/// A payload that travels beside the stream, over some connection.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Where its frame begins in the stream.
    pub(crate) position: u64,
    head: HeadBytes,
    payload: *mut u8,
    len: usize,
    /// Bytes that are written.
    at: usize,
}

// SAFETY: the payload is read through the kernel alone, and kept as long as the claim is under way.
unsafe impl Send for Claim {}

impl Claim {
    /// Whether some of it is written.
    pub(crate) fn has_begun(&self) -> bool {
        self.at > 0
    }

    /// What is not written.
    pub(crate) fn left(&self) -> usize {
        self.head.as_bytes().len() + self.len - self.at
    }

    pub(crate) fn pieces(&self, out: &mut Pieces) {
        let head = self.head.as_bytes();
        let of_head = self.at.min(head.len());
        out.add(head[of_head..].as_ptr().cast_mut(), head.len() - of_head);
        let of_payload = self.at - of_head;
        let payload = self.payload.wrapping_add(of_payload);
        out.add(payload, self.len - of_payload);
    }

    /// So many bytes were written. Whether that is all.
    pub(crate) fn wrote(&mut self, bytes: usize) -> bool {
        self.at += bytes;
        self.left() == 0
    }
}

impl SendStream {
    /// How many connections there are besides the stream's, and whether payloads leave the stream for them.
    pub(crate) fn set_rails(&mut self, rails: usize, stripes: bool) {
        self.rails = rails;
        self.stripes = stripes && rails > 0;
    }

    /// Whether a payload that has left the stream waits for a connection.
    #[inline]
    pub(crate) fn waits_for_rail(&self) -> bool {
        self.waiting > 0 || self.own.is_some()
    }

    /// The next payload that some connection must carry: its length, and that of all from there on.
    pub(crate) fn next_to_stripe(&self) -> Option<(usize, u64)> {
        let index = self.next_striped()?;
        let (first, last) = (&self.extents[index], self.extents.back()?);
        let behind_last = last.before + last.extent.len() as u64;
        Some((first.extent.len(), behind_last - first.before))
    }

    fn next_striped(&self) -> Option<usize> {
        let waits = |placed: &Placed| placed.way == Way::Waits;
        if self.waiting > 0 {
            return self.extents.iter().position(waits);
        }
        if !self.stripes {
            return None;
        }
        let rest = self.extents.range(self.next_extent..);
        let mut free = rest.enumerate();
        let found = free.find(|(_, placed)| placed.may_leave(self.boundary, self.stays_until));
        found.map(|(index, _)| self.next_extent + index)
    }

    /// The next payload stays in the stream. False if it has left it already.
    pub(crate) fn keep_next(&mut self) -> bool {
        match self.next_striped() {
            Some(index) if self.waiting == 0 => {
                self.stays_until = self.extents[index].end();
                true
            }
            _ => false,
        }
    }

    /// Gives the next payload to a connection. Until it is written ([`wrote_body`](Self::wrote_body)) or the connection is
    /// lost ([`lose_rail`](Self::lose_rail)), it stays where it is.
    pub(crate) fn claim(&mut self, rail: u16) -> Option<Claim> {
        let index = self.next_striped()?;
        let placed = &mut self.extents[index];
        let (kind, fields) = placed.movable?;
        if placed.way == Way::Waits {
            self.waiting -= 1;
        } else {
            let head = placed.begin - placed.before;
            *self.ring.byte_mut(head + FLAGS_AT) |= AWAY_FLAG;
        }
        placed.way = Way::With(rail, true);
        self.writing += 1;
        let len = placed.extent.len();
        let fields = Fields {
            position: placed.begin,
            wanted: u8::from(kind).into(),
            ..fields
        };
        Some(Claim {
            position: placed.begin,
            head: HeadBytes::new(Kind::Body, 0, &[], len, &fields),
            payload: placed.extent.as_ptr(),
            len,
            at: 0,
        })
    }

    /// The payload of the frame at `position` was written to its end.
    pub(crate) fn wrote_body(&mut self, position: u64) {
        let at = self.extents.partition_point(|p| p.begin < position);
        if let Some(placed) = self.extents.get_mut(at)
            && let Way::With(rail, true) = placed.way
        {
            placed.way = Way::With(rail, false);
            self.writing -= 1;
        }
        if self.taken > self.released {
            self.release();
        }
    }

    /// A connection is lost: what it carried and the peer has not taken waits for another one.
    pub(crate) fn lose_rail(&mut self, lost: u16) {
        for placed in &mut self.extents {
            if let Way::With(rail, writes) = placed.way
                && rail == lost
            {
                placed.way = Way::Waits;
                self.waiting += 1;
                self.writing -= usize::from(writes);
            }
        }
        if self.taken > self.released {
            self.release();
        }
    }

    /// Bytes of extents that were given up since the beginning: what large transfers have moved.
    pub(crate) fn moved(&self) -> u64 {
        self.extents_released
    }

    /// Bytes of the stream that must be written next.
    pub(crate) fn committed(&self) -> u64 {
        self.boundary - self.sent
    }
}
