//! Puts and gets.

use super::config::CHUNK_BYTES;
use super::core::Portals;
use super::operations::{Operation, Source, Then, Transfer};
use super::roles;
use crate::conduit::{Injected, OpToken, SMALL_PUT, SendError};
use crate::wire::UserPlace;
use argonet_base::kept::Kept;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::portals::{Answer, Outcome, Part, Portals as Interface, Target};
use argonet_segment::bulk;

impl<N: Interface> Portals<N> {
    /// Memory here for an operation: the segment, a chunk, or a temporary descriptor, in this
    /// order.
    ///
    /// A small put takes a chunk first, from which it leaves whenever the interface reads it.
    /// Requests to peers that do not poll may hold all chunks: then it leaves from a copy in memory
    /// of its own, unless the interface reads at once.
    ///
    /// # Safety
    /// Of an operation that puts, the `len` bytes from `address` on can be read.
    // spec P3: the three cases of the source.
    pub(super) unsafe fn choose(
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
        let is_small_put = !gets && len <= SMALL_PUT;
        if !is_small_put && let Some(found) = self.segment.find(address, len) {
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
        let is_copied = is_small_put && !self.reads_at_once(len);
        let copied = is_copied.then(|| {
            let mut copy = vec![0; len];
            // SAFETY: the caller promises the source; no other code has the copy.
            unsafe { bulk::copy(copy.as_mut_ptr(), address, len) };
            Kept::new(copy.into())
        });
        let start = match &copied {
            Some(copy) => copy.as_ptr().cast::<u8>().cast_const(),
            None => address,
        };
        match self.bind_temporary(start, len, gets) {
            Ok(descriptor) => {
                transfer.object = descriptor;
                Ok((Source::Temporary(descriptor, copied), transfer))
            }
            Err(error) => {
                self.temporaries.give(1);
                Err(self.refuses(to, &error).into())
            }
        }
    }

    /// Moves bytes between here and the segment of a rank, by an interface that returns the outcome
    /// at once: no ticket, and no place in the table of operations.
    ///
    /// False where the interface or the target did not do it all.
    ///
    /// # Safety
    /// As `Conduit::put_now`, and, if it `GETS`, as `Conduit::get_now`.
    #[inline]
    pub(super) unsafe fn move_now<const GETS: bool>(
        &self,
        peer: JobRank,
        offset: SegmentOffset,
        here: *mut u8,
        len: usize,
    ) -> bool {
        if !self.reads_at_once(len) {
            return false;
        }
        // The descriptors of puts, which raise no events.
        // SAFETY: as the interface reads at once, nothing is copied.
        let Ok((source, transfer)) = (unsafe { self.choose(peer, here, len, false) }) else {
            return false;
        };
        if let (Source::Bounce(chunk), false) = (&source, GETS) {
            // SAFETY: the chunk is this operation's, the caller promises the source.
            unsafe { self.send_chunks.write(*chunk, 0, here, len) };
        }
        let part = Part {
            offset_bytes: transfer.from,
            len_bytes: transfer.len,
        };
        let target = Target {
            rank: peer,
            portal: transfer.portal,
            bits: 0,
            offset_bytes: offset.0,
        };
        let answer = match GETS {
            true => self.nic.get_answered(transfer.object, part, target),
            false => self.nic.put_answered(transfer.object, part, target, 0),
        };
        let whole = Answer {
            outcome: Outcome::Done,
            moved_bytes: transfer.len,
        };
        let is_done = answer.is_ok_and(|answer| answer == whole);
        if let (Source::Bounce(chunk), true, true) = (&source, GETS, is_done) {
            let from = self.send_chunks.memory(*chunk);
            // SAFETY: the caller promises the place; the chunk is this operation's.
            unsafe { bulk::copy(here, from.as_ptr(), len) };
        }
        self.leave_source(peer, source);
        is_done
    }

    /// Puts bytes from here into the segment of a rank, or gets them.
    ///
    /// # Safety
    /// As `Conduit::put`; if it gets, as `Conduit::get`.
    #[inline]
    pub(super) unsafe fn transfer<const GETS: bool>(
        &self,
        peer: JobRank,
        offset: SegmentOffset,
        here: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        if len == 0 {
            return Ok(Injected::Complete);
        }
        self.check_place(peer, offset, len)?;
        if !self.tickets.take(1) {
            return Err(SendError::Full);
        }
        // SAFETY: the caller promises the source of a put.
        let chosen = unsafe { self.choose(peer, here, len, GETS) };
        let (source, transfer) = chosen.inspect_err(|_| self.tickets.give(1))?;
        let (then, injected) = if GETS {
            // SAFETY: the caller keeps the place writable until completion.
            let place = unsafe { UserPlace::new(here, len) };
            (Then::Get(op, place), Injected::Pending)
        } else {
            if let Source::Bounce(chunk) = source {
                // SAFETY: the chunk is this operation's, the caller promises the source.
                unsafe { self.send_chunks.write(chunk, 0, here, len) };
            }
            let is_read = matches!(source, Source::Bounce(_) | Source::Temporary(_, Some(_)));
            match is_read || self.reads_at_once(len) {
                true => (Then::Put(op, false), Injected::Local),
                false => (Then::Put(op, true), Injected::Pending),
            }
        };
        let offset = offset.0;
        let started = self.start(Operation {
            transfer: Transfer { offset, ..transfer },
            source,
            then,
        });
        started.map_err(|error| self.refuses(peer, &error))?;
        Ok(injected)
    }
}
