//! Writing into rings.

use super::conduit::Smp;
use super::ring::{Ring, Writer, publish};
use crate::conduit::SendError;
use argonet_am::record::{self, Head, Medium, Short};
use argonet_am::{AmError, Category, Message, MessageClass, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::bulk;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

impl Smp {
    /// Packs a message into a ring.
    ///
    /// The caller owns the class.
    #[inline(always)]
    pub(super) fn write(
        &self,
        to: JobRank,
        class: MessageClass,
        writer: &Writer,
        message: &Message<'_>,
    ) -> Result<(), SendError> {
        let ring = self.region.ring(to, self.rank, class);
        if matches!(message.payload, Payload::None)
            && let Some(short) = Short::pack(message.handler, message.args)
        {
            let at = writer.reserve(&ring, 1).ok_or_else(|| self.no_room(to))?;
            ring.words.store(at + 1, short.rest, Ordering::Relaxed);
            publish(&ring, at, short.head);
        } else if let Payload::Medium(bytes) = message.payload
            && let Some(medium) = Medium::pack(message.handler, message.args, bytes.len())
        {
            let at = writer
                .reserve(&ring, medium.head.units())
                .ok_or_else(|| self.no_room(to))?;
            // SAFETY: as in `write_large`.
            unsafe { ring.words.copy_in(at + 2, bytes.as_ptr(), bytes.len()) };
            ring.words.store(at + 1, medium.rest, Ordering::Relaxed);
            publish(&ring, at, medium.head);
        } else {
            self.write_large(to, &ring, writer, message)?;
        }
        self.wake_sleepers(to);
        Ok(())
    }

    #[inline(never)]
    fn write_large(
        &self,
        to: JobRank,
        ring: &Ring<'_>,
        writer: &Writer,
        message: &Message<'_>,
    ) -> Result<(), SendError> {
        let category = message.payload.category();
        let len = message.payload.len();
        let nargs = message.args.len();
        Self::LIMITS.check(self.rank, to, category, nargs, len)?;
        let units = record::record_units(category, nargs, len);
        let at = writer
            .reserve(ring, units)
            .ok_or_else(|| self.no_room(to))?;
        let mut offset = 0;
        match message.payload {
            Payload::None => {}
            Payload::Medium(bytes) => {
                let payload_at = at + record::header_units(category, nargs) * 2;
                // SAFETY: the units are reserved; the source is readable (SharedBytes) and cannot
                // overlap units that no reader has: a reply may carry its request's payload, but
                // that lies in another ring.
                unsafe { ring.words.copy_in(payload_at, bytes.as_ptr(), len) };
            }
            Payload::Long(bytes, to_offset) => {
                offset = to_offset.0;
                if let Err(error) = self.place(to, to_offset, bytes.as_ptr(), len) {
                    publish(ring, at, Head::skip(units));
                    return Err(error.into());
                }
            }
        }
        self.publish_packed(
            ring,
            at,
            units,
            message.handler,
            category,
            message.args,
            len,
            offset,
        );
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one record")]
    #[inline(always)]
    pub(super) fn publish_packed(
        &self,
        ring: &Ring<'_>,
        at: usize,
        units: u32,
        handler: HandlerIndex,
        category: Category,
        args: &[u32],
        len: usize,
        offset: u64,
    ) {
        let packed = record::pack(category, handler, args, len as u64, offset, units);
        for i in 1..packed.count {
            ring.words.store(at + i, packed.words[i], Ordering::Relaxed);
        }
        publish(ring, at, Head(packed.words[0]));
    }

    /// Copies a long's payload to its place in the segment of `to`.
    pub(super) fn place(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> Result<(), AmError> {
        if len == 0 {
            return Ok(());
        }
        let dst = self.reach(to, offset, len)?;
        // SAFETY: the directory has checked that `len` bytes at `dst` are mapped; the source is
        // readable by the callers' promise. If both are the same segment they may overlap; then the
        // bytes are unspecified, as with memcpy, but none outside is touched.
        unsafe { bulk::copy(dst.as_ptr(), src, len) };
        Ok(())
    }

    /// Address of `len` bytes in a segment.
    #[inline]
    pub(super) fn reach(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, AmError> {
        match self.directory.resolve(to, offset, len) {
            Some(place) => Ok(place),
            None => self.grown(to, offset, len),
        }
    }

    /// Address in a segment that may have grown since it was last looked at.
    #[cold]
    fn grown(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, AmError> {
        // If the system refuses the mapping, the engine reports that to the next caller that asks;
        // here the place cannot be reached either way.
        let extended = self.directory.refresh(to, (self.segment_len)(to));
        let place = self.directory.resolve(to, offset, len);
        place
            .filter(|_| extended.is_ok())
            .ok_or_else(|| self.outside(to, offset, len))
    }

    #[cold]
    pub(super) fn outside(&self, to: JobRank, offset: SegmentOffset, len: usize) -> AmError {
        if let SendError::Message(lost) = self.no_room(to) {
            return lost;
        }
        AmError::OutsideSegment {
            offset: offset.0,
            len,
            segment: self.directory.attached_bytes(to),
            from: self.rank,
            to,
        }
    }

    pub(super) fn class_writer(&self, to: JobRank, class: MessageClass) -> &Writer {
        match class {
            MessageClass::Request => &self.peer(to).out_request,
            MessageClass::Reply => &self.peer(to).out_reply,
        }
    }
}
