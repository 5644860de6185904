//! Where memory of a rank is: in its segment, mapped here or not, or bound to an endpoint.
//!
//! [`Engine::locate`] decides that for clients that have an address. Whether a segment is mapped
//! here is found for each access ([`Engine::ensure_mapped`]), as segments grow.

use super::bound::BoundPlace;
use super::core::Engine;
use super::events::OpError;
use super::thread::ThreadCtx;
use super::vis::PeerMemory;
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::Conduit;
use core::ptr::NonNull;

/// The endpoint whose memory is a rank's segment, once that is attached.
const PRIMORDIAL: u32 = 0;

/// Memory of a rank, as clients name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerAddress {
    /// The rank of the memory.
    pub rank: JobRank,
    /// Endpoint of that rank to which the memory is bound.
    pub endpoint: u32,
    /// Address in that rank's process, or offset in the bound memory.
    pub address: u64,
    /// Whether it is an offset.
    pub is_offset: bool,
}

impl PeerAddress {
    /// The place in bound memory from whose beginning on the address counts.
    fn from(self, beginning: u64) -> Target {
        Target::Bound(BoundPlace {
            rank: self.rank,
            endpoint: self.endpoint,
            address: self.address.wrapping_add(beginning),
        })
    }
}

/// Memory of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// In an attached segment.
    Segment {
        /// The rank of the segment.
        rank: JobRank,
        /// Where in it.
        offset: SegmentOffset,
    },
    /// In memory that a rank has bound to an endpoint without attaching it.
    Bound(BoundPlace),
}

impl Target {
    /// The rank of the memory.
    #[must_use]
    pub const fn rank(self) -> JobRank {
        match self {
            Self::Segment { rank, .. } => rank,
            Self::Bound(place) => place.rank,
        }
    }

    /// Address, or offset in the segment.
    pub(super) const fn place(self) -> u64 {
        match self {
            Self::Segment { offset, .. } => offset.0,
            Self::Bound(place) => place.address,
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Bytes of the segment in which memory at an endpoint of a rank lies; 0 if it does not.
    fn segment_at(&self, rank: JobRank, endpoint: u32) -> u64 {
        match endpoint {
            PRIMORDIAL => (self.segment_len)(rank),
            _ => 0,
        }
    }

    /// Which memory of a rank clients mean by addresses at one of its endpoints.
    #[must_use]
    pub fn memory_at(&self, rank: JobRank, endpoint: u32) -> PeerMemory {
        match self.segment_at(rank, endpoint) {
            0 => PeerMemory::Bound(endpoint),
            _ => PeerMemory::Segment,
        }
    }

    /// Where `len` bytes lie that a client names, as far as it is known here; `None` if the owner
    /// has to be asked for the beginning of its memory.
    ///
    /// Of bound memory the owner checks the range.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`], [`AmError::NoSuchRank`].
    pub fn locate_known(&self, at: PeerAddress, len: usize) -> Result<Option<Target>, AmError> {
        let PeerAddress {
            rank,
            endpoint,
            address,
            is_offset,
        } = at;
        self.check_rank(rank)?;
        let segment = self.segment_at(rank, endpoint);
        // No bytes need no segment.
        if segment == 0 && (len > 0 || endpoint != PRIMORDIAL) {
            if !is_offset {
                return Ok(Some(at.from(0)));
            }
            let bound = match rank == self.rank {
                true => Some(self.memory_bound_here(endpoint)),
                false => self.bound_known(rank, endpoint),
            };
            return Ok(bound.map(|bound| at.from(bound.address)));
        }
        let offset = match is_offset {
            true => SegmentOffset(address),
            false => self.offset_of(rank, address),
        };
        AmError::unless_inside(self.rank, rank, offset, len, segment)?;
        Ok(Some(Target::Segment { rank, offset }))
    }

    /// Where `len` bytes lie that a client names; asks their owner if that alone knows.
    ///
    /// # Errors
    /// As [`locate_known`](Self::locate_known); a call from inside a handler, if it has to ask.
    #[inline]
    pub fn locate(&self, ctx: &ThreadCtx, at: PeerAddress, len: usize) -> Result<Target, OpError> {
        match self.locate_known(at, len)? {
            Some(target) => Ok(target),
            None => Ok(at.from(self.bound_memory(ctx, at.rank, at.endpoint)?.address)),
        }
    }

    /// Refuses a rank that the job does not have.
    pub(super) fn check_rank(&self, to: JobRank) -> Result<(), AmError> {
        if to.0 < self.size {
            return self.unless_lost(|rank| rank == to);
        }
        Err(AmError::NoSuchRank {
            to,
            size: self.size,
            from: self.rank,
        })
    }

    /// Where `len` bytes of a segment are mapped here, for a thread that may load and store there
    /// without asking.
    ///
    /// `None` says nothing but that [`transfer`](Self::transfer) has to find out.
    #[inline(always)]
    pub fn mapped(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Option<NonNull<u8>> {
        if !ctx.is_free() {
            return None;
        }
        self.directory.resolve(rank, offset, len)
    }

    /// Where `len` bytes of a segment are mapped here, if they are, in any context of the thread.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`], [`AmError::NoSuchRank`].
    pub fn reach(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<Option<NonNull<u8>>, OpError> {
        self.ensure_mapped(rank, offset, len)?;
        Ok(self.directory.resolve(rank, offset, len))
    }

    /// The address of `len` bytes of a target in this process, as far as they lie there.
    #[must_use]
    pub fn address_here(&self, target: Target, len: usize) -> Option<usize> {
        match target {
            Target::Segment { rank, offset } => {
                let place = self.directory.resolve(rank, offset, len)?;
                Some(place.addr().get())
            }
            Target::Bound(place) => (place.rank == self.rank).then_some(place.address as usize),
        }
    }

    /// Offset in the segment of `rank` of an address of that rank's process, whether it lies in the
    /// segment or not.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, rank: JobRank, address: u64) -> SegmentOffset {
        SegmentOffset(address.wrapping_sub((self.segment_base)(rank)))
    }

    /// The distance from an address in the segment of `rank`, in that rank's process, to the
    /// address here, even if nothing is attached there.
    #[must_use]
    pub fn segment_delta(&self, rank: JobRank) -> isize {
        let here = self.directory.span_base(rank);
        let here = here.map_or(0, |base| base.addr().get() as u64);
        // Both are addresses of user memory, so that the difference fits.
        here.wrapping_sub((self.segment_base)(rank)) as isize
    }

    /// Where the segment that `rank` has attached lies in that rank's process, and its length in
    /// bytes; zeros if there is none.
    #[must_use]
    pub fn published_segment(&self, rank: JobRank) -> (u64, u64) {
        match (self.segment_len)(rank) {
            0 => (0, 0),
            len => ((self.segment_base)(rank), len),
        }
    }

    /// Makes sure that `len` bytes at `offset` of `to` can be reached, extending the mapping of a
    /// segment that has grown; says whether the segment is mapped here at all.
    ///
    /// If it is not, the conduit carries the bytes and the target checks where they go.
    #[inline(always)]
    pub(super) fn ensure_mapped(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<bool, AmError> {
        if to.0 < self.size && (len == 0 || self.directory.resolve(to, offset, len).is_some()) {
            return Ok(true);
        }
        self.ensure_mapped_slow(to, offset, len)
    }

    #[inline(never)]
    fn ensure_mapped_slow(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<bool, AmError> {
        self.check_rank(to)?;
        if self.is_unmapped(to) {
            return self.is_in_unmapped_segment(to, offset, len).map(|()| false);
        }
        match self.reach_slow(to, offset, len) {
            Ok(()) => Ok(true),
            Err(AmError::OutsideSegment { .. }) if self.directory.attached_bytes(to) == 0 => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the segment of a rank of the job can never be mapped here.
    #[inline(always)]
    pub(super) fn is_unmapped(&self, rank: JobRank) -> bool {
        rank.0 < self.size && !self.directory.is_mapped(rank)
    }

    /// Whether a place can be in a segment that is not mapped here: where its length is not known
    /// its owner checks.
    pub(super) fn is_in_unmapped_segment(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<(), AmError> {
        match (self.segment_len)(to) {
            0 => Ok(()),
            segment => AmError::unless_inside(self.rank, to, offset, len, segment),
        }
    }

    #[cold]
    #[inline(never)]
    fn reach_slow(&self, to: JobRank, offset: SegmentOffset, len: usize) -> Result<(), AmError> {
        self.check_rank(to)?;
        let published = (self.segment_len)(to);
        if let Err(error) = self.directory.refresh(to, published) {
            self.fatal(&error.to_string());
        }
        if self.directory.resolve(to, offset, len).is_some() {
            return Ok(());
        }
        let segment = published;
        Err(AmError::OutsideSegment {
            offset: offset.0,
            len,
            segment,
            from: self.rank,
            to,
        })
    }
}
