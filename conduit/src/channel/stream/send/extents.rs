//! Payloads of a stream that do not lie in its ring, in the order of the stream.

use super::extent::Extent;
use crate::channel::frame::{Fields, Kind};
use std::collections::VecDeque;

/// Where a payload travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// In the stream.
    Stream,
    /// Beside it, over no rail yet.
    Waits,
    /// Over this rail; and whether it is in the middle of being written.
    With(u16, bool),
}

#[derive(Debug)]
pub(super) struct Placed {
    /// Where its frame begins in the stream, and where it does.
    pub(super) begin: u64,
    pub(super) at: u64,
    /// Bytes of extents before it, since the stream began.
    pub(super) before: u64,
    pub(super) extent: Extent,
    route: Route,
    /// The kind and the fields of its head, if it may leave the stream.
    pub(super) movable: Option<(Kind, Fields)>,
}

impl Placed {
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.at + self.extent.len() as u64
    }

    #[inline]
    pub(super) fn is_in_stream(&self) -> bool {
        self.route == Route::Stream
    }

    pub(super) fn route(&self) -> Route {
        self.route
    }

    /// Whether it may leave the stream, as its head is not among the bytes that must be written
    /// next.
    #[inline]
    pub(super) fn may_leave(&self, boundary: u64, stays_until: u64) -> bool {
        self.is_in_stream()
            && self.movable.is_some()
            && self.begin >= boundary
            && self.end() > stays_until
    }
}

#[derive(Debug, Default)]
pub(super) struct Extents {
    queue: VecDeque<Placed>,
    /// The first that is not written to its end.
    next: usize,
    /// Bytes of those that were given up, and of all.
    released: u64,
    total: u64,
    /// Bytes of copies.
    owned_bytes: usize,
    /// Those that lie with the user.
    of_user: usize,
    /// Those beside the stream that wait for a rail, and that are being written.
    waiting: usize,
    writing: usize,
}

impl Extents {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that are kept for them.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.owned_bytes + self.queue.capacity() * size_of::<Placed>()
    }

    /// Frees the list if it is empty.
    pub(super) fn free(&mut self) {
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
    }

    pub(super) fn owned_bytes(&self) -> usize {
        self.owned_bytes
    }

    /// Those that lie with the user, whom this rank makes wait.
    #[inline]
    pub(super) fn of_user(&self) -> usize {
        self.of_user
    }

    /// Bytes of all that ever were.
    #[inline]
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of those that were given up.
    pub(super) fn released(&self) -> u64 {
        self.released
    }

    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Placed> {
        self.queue.get(index)
    }

    pub(super) fn last(&self) -> Option<&Placed> {
        self.queue.back()
    }

    /// The index of the first that is not written to its end.
    #[inline]
    pub(super) fn next_index(&self) -> usize {
        self.next
    }

    /// Those from the next one on.
    #[inline]
    pub(super) fn rest(&self) -> impl Iterator<Item = &Placed> {
        self.queue.range(self.next..)
    }

    /// Adds one; its bytes.
    pub(super) fn push(
        &mut self,
        begin: u64,
        at: u64,
        extent: Extent,
        movable: Option<(Kind, Fields)>,
    ) -> u64 {
        let len = extent.len() as u64;
        match extent {
            Extent::Owned(_, len) => self.owned_bytes += len,
            Extent::User(_) => self.of_user += 1,
            Extent::Segment(..) => {}
        }
        self.queue.push_back(Placed {
            begin,
            at,
            before: self.total,
            extent,
            route: Route::Stream,
            movable,
        });
        self.total += len;
        len
    }

    /// The next one is written to its end.
    #[inline]
    pub(super) fn pass_next(&mut self) {
        self.next += 1;
    }

    /// The stream is written from a position on.
    pub(super) fn go_to(&mut self, position: u64) {
        let before = self.queue.iter().take_while(|p| p.end() <= position);
        self.next = before.count();
    }

    /// Gives up those that end before `taken`; up to where the ring is given up then, without the
    /// bytes of extents.
    pub(super) fn release(&mut self, taken: u64) -> u64 {
        while let Some(first) = self.queue.front()
            && first.end() <= taken
        {
            if first.route == Route::Waits {
                self.waiting -= 1;
            }
            self.released = first.before + first.extent.len() as u64;
            match first.extent {
                Extent::Owned(_, len) => self.owned_bytes -= len,
                Extent::User(_) => self.of_user -= 1,
                Extent::Segment(..) => {}
            }
            self.queue.pop_front();
            self.next = self.next.saturating_sub(1);
        }
        // Inside of an extent no frame ends: the bytes before it are released.
        let end = self.queue.front().map_or(taken, |p| p.at.min(taken));
        end - self.released
    }

    /// Where the first payload lies that another rail is in the middle of writing.
    pub(super) fn being_written(&self) -> u64 {
        if self.writing == 0 {
            return u64::MAX;
        }
        let writes = |placed: &&Placed| matches!(placed.route, Route::With(_, true));
        let first = self.queue.iter().find(writes);
        first.map_or(u64::MAX, |placed| placed.begin)
    }

    /// The first that waits for a rail.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.queue
            .iter()
            .position(|placed| placed.route == Route::Waits)
    }

    /// One leaves the stream, and waits for a rail.
    pub(super) fn wait(&mut self, index: usize) {
        if let Some(placed) = self.queue.get_mut(index) {
            placed.route = Route::Waits;
            self.waiting += 1;
        }
    }

    /// One leaves over a rail, which is in the middle of writing it from now on.
    pub(super) fn leave(&mut self, index: usize, rail: u16) {
        let placed = &mut self.queue[index];
        if placed.route == Route::Waits {
            self.waiting -= 1;
        }
        placed.route = Route::With(rail, true);
        self.writing += 1;
    }

    /// The payload of the frame at `position` was written to its end.
    pub(super) fn wrote(&mut self, position: u64) {
        let at = self.queue.partition_point(|p| p.begin < position);
        if let Some(placed) = self.queue.get_mut(at)
            && let Route::With(rail, true) = placed.route
        {
            placed.route = Route::With(rail, false);
            self.writing -= 1;
        }
    }

    // spec B7: payloads are taken out of a failed rail one by one.
    /// A rail is lost: payloads that it carried wait for another one.
    pub(super) fn lose(&mut self, lost: u16) {
        for placed in &mut self.queue {
            if let Route::With(rail, writes) = placed.route
                && rail == lost
            {
                placed.route = Route::Waits;
                self.waiting += 1;
                self.writing -= usize::from(writes);
            }
        }
    }
}
