//! Puts and gets.

use super::config::CHUNK_BYTES;
use super::core::Portals;
use super::operations::{Operation, Source, Then, Transfer};
use super::roles;
use crate::conduit::{Injected, OpToken, SendError};
use crate::wire::UserPlace;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::portals::Portals as Interface;

impl<N: Interface> Portals<N> {
    /// Memory here for an operation: the segment, a chunk, or a temporary descriptor, in this order.
    // seed P3: the three cases of the source.
    fn choose(
        &self,
        to: JobRank,
        address: *const u8,
        len: usize,
        gets: bool,
    ) -> Result<(Source, Transfer), SendError> {
        let mut transfer = Transfer {
            to,
            portal: roles::RAR,
            offset: 0,
            len: len as u64,
            total: len as u64,
            lid: 0,
            object: self.bounce[usize::from(gets)],
            from: 0,
            gets,
        };
        if let Some(found) = self.segment.find(address, len) {
            transfer.object = if gets { found.get } else { found.put };
            transfer.from = found.offset;
            return Ok((Source::Segment, transfer));
        }
        if len <= CHUNK_BYTES
            && let Some(chunk) = self.send_chunks.free.take()
        {
            transfer.from = self.send_chunks.offset(chunk);
            return Ok((Source::Bounce(chunk), transfer));
        }
        if !self.temporaries.take(1) {
            return Err(SendError::Full);
        }
        match self.bind_temporary(address, len, gets) {
            Ok(descriptor) => {
                transfer.object = descriptor;
                Ok((Source::Temporary(descriptor, None), transfer))
            }
            Err(error) => {
                self.temporaries.give(1);
                Err(self.refuses(to, &error).into())
            }
        }
    }

    /// # Safety
    /// As `Conduit::put`.
    #[inline]
    pub(super) unsafe fn put_bytes(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        if len == 0 {
            return Ok(Injected::Complete);
        }
        self.check_place(to, offset, len)?;
        if !self.tickets.take(1) {
            return Err(SendError::Full);
        }
        let chosen = self.choose(to, src, len, false);
        let (source, transfer) = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                self.tickets.give(1);
                return Err(error);
            }
        };
        let mut injected = Injected::Pending;
        if let Source::Bounce(chunk) = source {
            // SAFETY: the chunk is this operation's, the caller promises the source.
            unsafe { self.send_chunks.write(chunk, 0, src, len) };
            injected = Injected::Local;
        } else if self.reads_at_once(len) {
            injected = Injected::Local;
        }
        let operation = Operation {
            transfer: Transfer {
                offset: offset.0,
                ..transfer
            },
            source,
            then: Then::Put(op, injected == Injected::Pending),
        };
        match self.start(operation) {
            Ok(()) => Ok(injected),
            Err(error) => Err(self.refuses(to, &error).into()),
        }
    }

    /// # Safety
    /// As `Conduit::get`.
    #[inline]
    pub(super) unsafe fn get_bytes(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        if len == 0 {
            return Ok(Injected::Complete);
        }
        self.check_place(from, offset, len)?;
        if !self.tickets.take(1) {
            return Err(SendError::Full);
        }
        let chosen = self.choose(from, dst, len, true);
        let (source, transfer) = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                self.tickets.give(1);
                return Err(error);
            }
        };
        // SAFETY: the caller keeps the place writable until completion.
        let place = unsafe { UserPlace::new(dst, len) };
        let operation = Operation {
            transfer: Transfer {
                offset: offset.0,
                ..transfer
            },
            source,
            then: Then::Get(op, place),
        };
        match self.start(operation) {
            Ok(()) => Ok(Injected::Pending),
            Err(error) => Err(self.refuses(from, &error).into()),
        }
    }
}
