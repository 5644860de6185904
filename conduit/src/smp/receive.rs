//! Polling of rings.

use super::conduit::Smp;
use super::peer::Peer;
use super::ring::{Cursor, ROOM_FOR_ANY, Ring};
use crate::conduit::Sink;
use crate::threads::ThreadMode;
use argonet_am::record::{self, Head, Kind, Medium, RecordError, Scratch, Short};
use argonet_am::{AmError, Category, Delivery, MessageClass};
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::SharedBytesMut;
use core::sync::atomic::Ordering;
use crossbeam_utils::Backoff;

/// Peers that one poll looks at; the next poll goes on with the next ones.
const WINDOW: u32 = 8;

/// Messages that one poll takes from one class of one peer.
const BATCH: u32 = 64;

impl Smp {
    #[inline]
    pub(super) fn take<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let window = self.ranks.min(WINDOW);
        let first = if self.ranks <= WINDOW {
            0
        } else {
            let first = self.cursor.load(Ordering::Relaxed);
            let next = first + window;
            self.cursor.store(
                if next >= self.ranks {
                    next - self.ranks
                } else {
                    next
                },
                Ordering::Relaxed,
            );
            first
        };
        let mut taken = 0;
        for i in 0..window {
            let rank = first + i;
            let place = if rank >= self.ranks {
                rank - self.ranks
            } else {
                rank
            };
            let rank = JobRank(self.first.0 + place);
            let peer = self.peer(rank);
            if peer.rest.goes_on() {
                continue;
            }
            let some = self.poll_class(rank, peer, MessageClass::Reply, sink)
                + self.poll_class(rank, peer, MessageClass::Request, sink);
            if some > 0 {
                // A full batch has left messages there.
                if some < BATCH {
                    peer.rest.begin(some);
                }
                taken += some;
            }
        }
        self.wake_threads(taken);
        taken as usize
    }

    /// A handler that ran here may have done what another thread of this process sleeps for, or is
    /// about to.
    #[inline]
    fn wake_threads(&self, taken: u32) {
        if taken > 0 && self.mode == ThreadMode::Par {
            self.epoch.fetch_add(1, Ordering::Release);
            self.wake_sleepers(self.rank);
        }
    }

    /// Takes messages that this rank has sent to itself, whether its rings rest or not.
    ///
    /// Waits for another thread that holds a class: it may have looked before the last message was
    /// there.
    pub(super) fn take_own<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let peer = self.peer(self.rank);
        let backoff = Backoff::new();
        let mut taken = 0;
        while taken < BATCH {
            let some = self.poll_class(self.rank, peer, MessageClass::Request, sink)
                + self.poll_class(self.rank, peer, MessageClass::Reply, sink);
            taken += some;
            let classes = [MessageClass::Request, MessageClass::Reply];
            let is_empty = |class| {
                let position = peer.reader(class).position();
                self.region
                    .first_word(self.rank, self.rank, class, position)
                    == 0
            };
            if classes.into_iter().all(is_empty) {
                break;
            }
            if some == 0 {
                backoff.snooze();
            }
        }
        self.wake_threads(taken);
        taken as usize
    }

    #[inline(always)]
    fn poll_class<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        peer: &Peer,
        class: MessageClass,
        sink: &mut S,
    ) -> u32 {
        let position = peer.reader(class).position();
        if self.region.first_word(self.rank, from, class, position) == 0 {
            return 0;
        }
        self.drain(from, class, sink)
    }

    #[inline(never)]
    fn drain<S: Sink + ?Sized>(&self, from: JobRank, class: MessageClass, sink: &mut S) -> u32 {
        let ring = &self.region.ring(self.rank, from, class);
        let peer = self.peer(from);
        let lock = match class {
            MessageClass::Request => &peer.in_request_lock,
            MessageClass::Reply => &peer.in_reply_lock,
        };
        let Some(_guard) = lock.try_lock(self.mode) else {
            return 0;
        };
        let reply_ring = self.region.ring(from, self.rank, MessageClass::Reply);
        // A request is not accepted until its reply has room; see the module's introduction (spec
        // P6).
        let accepts =
            || class == MessageClass::Reply || peer.out_reply.has_room(&reply_ring, ROOM_FOR_ANY);
        let mut accepted = accepts();
        let mut cursor = peer.reader(class).cursor(ring);
        let mut taken = 0;
        while accepted && taken < BATCH {
            let Some((head, at)) = cursor.peek() else {
                break;
            };
            let replied = if head.is_one_unit_short() {
                let replied = self.deliver_short(from, class, ring, head, at, sink);
                cursor.advance(1);
                replied
            } else if let Some(medium) = Medium::check(
                head,
                ring.words.load(at + 1, Ordering::Relaxed),
                cursor.units_to_end(),
            ) {
                let replied = self.deliver_medium(from, class, ring, medium, at, sink);
                cursor.advance(head.units());
                replied
            } else {
                match self.deliver(from, class, ring, &mut cursor, head, at, sink) {
                    Ok(replied) => replied,
                    Err(cause) => {
                        sink.on_error(AmError::Broken {
                            at: self.rank,
                            from,
                            cause,
                        });
                        break;
                    }
                }
            };
            taken += 1;
            if replied {
                accepted = accepts();
            }
        }
        taken
    }

    /// The commonest message, in few instructions.
    ///
    /// Returns whether its handler has replied.
    #[inline(always)]
    fn deliver_short<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        class: MessageClass,
        ring: &Ring<'_>,
        head: Head,
        at: usize,
        sink: &mut S,
    ) -> bool {
        let rest = ring.words.load(at + 1, Ordering::Relaxed);
        let args = Short { head, rest }.args();
        let mut delivery = Delivery::new(
            from,
            class,
            Category::Short,
            head.handler(),
            &args[..head.nargs() & 3],
            None,
            SegmentOffset(0),
            self,
        );
        sink.deliver(&mut delivery);
        delivery.has_replied()
    }

    /// A medium with a header of one unit.
    ///
    /// Returns whether its handler has replied.
    #[inline(always)]
    fn deliver_medium<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        class: MessageClass,
        ring: &Ring<'_>,
        medium: Medium,
        at: usize,
        sink: &mut S,
    ) -> bool {
        let args = medium.args();
        let bytes = ring.words.bytes(at + 2, medium.len());
        // SAFETY: `Medium::check` has made sure that the payload ends within the record, which is
        // this reader's until the cursor advances; the handler gets it for its run only.
        let payload = unsafe { SharedBytesMut::from_raw(bytes, medium.len()) };
        let mut delivery = Delivery::new(
            from,
            class,
            Category::Medium,
            medium.head.handler(),
            &args[..medium.head.nargs().min(args.len())],
            Some(payload),
            SegmentOffset(0),
            self,
        );
        sink.deliver(&mut delivery);
        delivery.has_replied()
    }

    /// Any record.
    ///
    /// Returns whether its handler has replied.
    #[allow(clippy::too_many_arguments, reason = "one call site")]
    #[inline(never)]
    fn deliver<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        class: MessageClass,
        ring: &Ring<'_>,
        cursor: &mut Cursor<'_>,
        head: Head,
        at: usize,
        sink: &mut S,
    ) -> Result<bool, RecordError> {
        let available = cursor.units_to_end();
        let category = match head.kind()? {
            Kind::Message(category) => category,
            Kind::Skip => {
                // A skip covers a payload that was prepared and canceled, or all up to the end of
                // the ring.
                let units = head.units();
                let known = (1..=record::MAX_UNITS).contains(&units) || units == available;
                if !known || units > available {
                    return Err(RecordError::Units {
                        units,
                        needed: 1,
                        available,
                    });
                }
                cursor.advance(units);
                return Ok(false);
            }
        };
        let mut scratch = Scratch::default();
        // No record is longer, though the ring may be.
        let available = available.min(record::MAX_UNITS);
        let got = record::unpack(head, category, available, &mut scratch, |i| {
            ring.words.load(at + i, Ordering::Relaxed)
        })?;
        let len = got.payload as usize;
        let payload = match category {
            Category::Short => None,
            Category::Medium => {
                let bytes = ring.words.bytes(at + got.header_units as usize * 2, len);
                // SAFETY: `unpack` has checked that the payload ends within the record, which is
                // this reader's until `advance` below; the handler gets it for its run only.
                Some(unsafe { SharedBytesMut::from_raw(bytes, len) })
            }
            Category::Long if len == 0 => None,
            Category::Long => {
                let offset = SegmentOffset(got.offset);
                let place = self.directory.resolve(self.rank, offset, len);
                let place = place.ok_or(RecordError::Payload {
                    len: got.offset.saturating_add(got.payload),
                    max: self.directory.attached_bytes(self.rank),
                })?;
                // SAFETY: the directory has checked that the bytes lie in this rank's attached
                // segment, which stays mapped as long as the directory.
                Some(unsafe { SharedBytesMut::from_raw(place, len) })
            }
        };
        let mut delivery = Delivery::new(
            from,
            class,
            category,
            head.handler(),
            got.args(&scratch),
            payload,
            SegmentOffset(got.offset),
            self,
        );
        sink.deliver(&mut delivery);
        cursor.advance(head.units());
        Ok(delivery.has_replied())
    }
}
