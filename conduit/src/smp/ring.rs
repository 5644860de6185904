//! The ring: one writer, one reader, records of 16-byte units in shared memory.
//!
//! A lone short message moves one cache line and nothing else, because the record itself shows that
//! it is there: its first word is never zero, and the writer zeroes the first word of the *next*
//! record before it publishes this one. The reader only reads, until it has taken a quarter of a
//! lap; then it stores its position in a line of its own, which the writer reads only when the ring
//! seems full.
//!
//! ```text
//! unit     0        1        2        3        4
//!          +--------+--------+--------+--------+---
//!          | rec A  | rec B (two units)| 0 ...  |        reader looks at word 0 of its position;
//!          +--------+--------+--------+--------+---     zero means nothing yet
//! ```
//!
//! Invariants
//! 1. The word at the writer's position is zero (fresh memory, or stored by the last `reserve`).
//! 2. `tail - head < units`: the zero word never overwrites a record that was not read.
//! 3. A record does not wrap: when it does not fit before the end, a skip record covers the rest.
//!
//! A record that is not large begins anew where it would leave the lap, a part of the ring at its
//! beginning, so that those that read and write little touch little memory: a skip record covers
//! all that is behind. Where the reader has not made room for that yet, records go on behind the
//! lap up to the end of the ring.
//!
//! Orderings: `publish` stores the first word with Release and pairs with the Acquire load of
//! `peek`, so the reader sees the whole record and the zero behind it. The reader's position is
//! stored with Release in `Cursor::advance` and loaded with Acquire in `reserve`, so the writer
//! reuses units only after they were read.

use super::words::Words;
use argonet_am::record::{Head, MAX_UNITS};
use argonet_base::sync::atomic::{AtomicU32, Ordering};

/// Units that hold the largest record wherever the position stands: the skip before it, the
/// record, and the zero word behind it.
pub(crate) const ROOM_FOR_ANY: u32 = 2 * MAX_UNITS + 1;

/// Where a ring lies: its words and the reader's published position.
pub(crate) struct Ring<'a> {
    /// Its units, two words each.
    pub(crate) words: Words,
    /// Units, a power of two.
    pub(crate) units: u32,
    /// Units of the lap.
    pub(crate) lap: u32,
    /// Units of the longest record that keeps to the lap.
    pub(crate) large: u32,
    /// Written by the reader, read by the writer.
    pub(crate) read_position: &'a AtomicU32,
}

/// The writer's private state: 8 bytes a class.
///
/// The holder of the class's lock reads and writes it; atomics only so that no lock discipline is
/// needed for memory safety. Relaxed throughout: the lock orders.
#[derive(Default, Debug)]
pub(crate) struct Writer {
    tail: AtomicU32,
    /// The reader's position when last looked at.
    head: AtomicU32,
}

/// The reader's private state: 8 bytes a class.
///
/// Changed by the holder of the class's lock; `peek` may be called by any thread of the process, to
/// see whether taking the lock is worth it.
#[derive(Default, Debug)]
pub(crate) struct Reader {
    head: AtomicU32,
    published: AtomicU32,
}

impl Ring<'_> {
    #[inline(always)]
    fn word_of(&self, position: u32) -> usize {
        self.index(position) as usize * 2
    }

    #[inline(always)]
    fn index(&self, position: u32) -> u32 {
        position & (self.units - 1)
    }

    /// Whether a record of so many units goes here, rather than at the beginning.
    #[inline(always)]
    fn fits(&self, index: u32, units: u32) -> bool {
        let limit = if units > self.large || index > self.lap {
            self.units
        } else {
            self.lap
        };
        index + units <= limit
    }
}

impl Writer {
    /// Takes `units` contiguous units and returns the index of their first word, or nothing when
    /// the reader has not made room yet.
    ///
    /// The record becomes visible with [`publish`].
    #[inline(always)]
    pub(crate) fn reserve(&self, ring: &Ring<'_>, units: u32) -> Option<usize> {
        let tail = self.tail.load(Ordering::Relaxed);
        let used = tail.wrapping_sub(self.head.load(Ordering::Relaxed));
        if ring.fits(ring.index(tail), units) && used + units < ring.units {
            return Some(self.take(ring, tail, units));
        }
        self.reserve_slow(ring, units)
    }

    /// [`reserve`](Self::reserve) of one unit, as far as the last known position of the reader
    /// allows.
    #[inline(always)]
    pub(crate) fn reserve_one(&self, ring: &Ring<'_>) -> Option<usize> {
        let tail = self.tail.load(Ordering::Relaxed);
        let used = tail.wrapping_sub(self.head.load(Ordering::Relaxed));
        let fits = ring.index(tail) != ring.lap;
        (fits && used + 1 < ring.units).then(|| self.take(ring, tail, 1))
    }

    #[cold]
    #[inline(never)]
    fn reserve_slow(&self, ring: &Ring<'_>, units: u32) -> Option<usize> {
        let mut tail = self.position();
        let index = ring.index(tail);
        let to_end = ring.units - index;
        let mut skip = if ring.fits(index, units) { 0 } else { to_end };
        if units <= to_end && !self.has_room(ring, skip + units) {
            skip = 0;
        }
        if !self.has_room(ring, skip + units) {
            return None;
        }
        if skip > 0 {
            let at = self.take(ring, tail, skip);
            publish(ring, at, Head::skip(skip));
            tail = tail.wrapping_add(skip);
        }
        Some(self.take(ring, tail, units))
    }

    /// Whether `units` and the zero word behind them fit now.
    #[inline(always)]
    pub(crate) fn has_room(&self, ring: &Ring<'_>, units: u32) -> bool {
        let tail = self.position();
        if tail.wrapping_sub(self.head.load(Ordering::Relaxed)) + units < ring.units {
            return true;
        }
        let head = ring.read_position.load(Ordering::Acquire);
        let used = tail.wrapping_sub(head);
        if used >= ring.units {
            // The reader breaks the rules. Its last valid position stays, so that sums of it and a
            // record's units never overflow.
            return false;
        }
        self.head.store(head, Ordering::Relaxed);
        used + units < ring.units
    }

    /// The reader has ended: there is no room any more.
    ///
    /// The caller owns the class.
    #[cold]
    pub(crate) fn end(&self, ring: &Ring<'_>) {
        let tail = self.position();
        // A position beyond the writer's own, which stays so, as nothing is written any more.
        ring.read_position
            .store(tail.wrapping_add(1), Ordering::Release);
        let full = tail.wrapping_sub(ring.units - 1);
        self.head.store(full, Ordering::Relaxed);
    }

    #[inline(always)]
    fn take(&self, ring: &Ring<'_>, tail: u32, units: u32) -> usize {
        let next = tail.wrapping_add(units);
        self.tail.store(next, Ordering::Relaxed);
        ring.words.store(ring.word_of(next), 0, Ordering::Relaxed);
        ring.word_of(tail)
    }

    /// Position in units since the start, modulo 2^32: units sent.
    pub(crate) fn position(&self) -> u32 {
        self.tail.load(Ordering::Relaxed)
    }
}

/// Makes the record at word `at` visible.
///
/// All its other words were stored before.
#[inline(always)]
pub(crate) fn publish(ring: &Ring<'_>, at: usize, head: Head) {
    ring.words.store(at, head.0, Ordering::Release);
}

impl Reader {
    /// First word of the next record, if there is one, and the index of that word.
    #[inline(always)]
    pub(crate) fn peek(&self, ring: &Ring<'_>) -> Option<(Head, usize)> {
        let at = ring.word_of(self.position());
        let head = ring.words.load(at, Ordering::Acquire);
        (head != 0).then_some((Head(head), at))
    }

    /// The writer has ended: what it has written and this rank has not taken is taken no more.
    ///
    /// The caller holds the class's lock.
    #[cold]
    pub(crate) fn end(&self, ring: &Ring<'_>) {
        let at = ring.word_of(self.position());
        ring.words.store(at, 0, Ordering::Release);
    }

    /// The reader's position, for taking several records.
    ///
    /// The caller holds the class's lock.
    #[inline(always)]
    pub(crate) fn cursor<'a>(&'a self, ring: &'a Ring<'a>) -> Cursor<'a> {
        Cursor {
            reader: self,
            ring,
            head: self.position(),
            published: self.published.load(Ordering::Relaxed),
        }
    }

    /// Position in units since the start, modulo 2^32: units handled.
    #[inline(always)]
    pub(crate) fn position(&self) -> u32 {
        self.head.load(Ordering::Relaxed)
    }
}

/// A reader's position while records are taken one after the other: in registers, and stored back
/// when the cursor is dropped.
///
/// Until then others see the old position, at which a record still seems to wait; they find the
/// class locked.
pub(crate) struct Cursor<'a> {
    reader: &'a Reader,
    ring: &'a Ring<'a>,
    head: u32,
    published: u32,
}

impl Cursor<'_> {
    /// First word of the next record, if there is one, and the index of that word.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<(Head, usize)> {
        let at = self.ring.word_of(self.head);
        let head = self.ring.words.load(at, Ordering::Acquire);
        (head != 0).then_some((Head(head), at))
    }

    /// Units from the position to the end of the ring: no record is longer.
    #[inline(always)]
    pub(crate) fn units_to_end(&self) -> u32 {
        self.ring.units - self.ring.index(self.head)
    }

    /// Gives `units` back to the writer; nothing of the record is used any more.
    #[inline(always)]
    pub(crate) fn advance(&mut self, units: u32) {
        self.head = self.head.wrapping_add(units);
        if self.head.wrapping_sub(self.published) >= self.ring.lap / 4 {
            self.published = self.head;
            self.ring.read_position.store(self.head, Ordering::Release);
        }
    }
}

impl Drop for Cursor<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: a thread that finds nothing left sees what the handlers have done.
        self.reader.head.store(self.head, Ordering::Release);
        self.reader
            .published
            .store(self.published, Ordering::Relaxed);
    }
}
