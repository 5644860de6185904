//! Data that travels by itself: the halves of messages that carry it, and operations in general.

use super::config::LARGE_ALIGN;
use super::core::Portals;
use super::operations::{Operation, Source, Then, Transfer};
use super::roles;
use super::send::Reserved;
use super::slots::Slots;
use super::wire::{Kind, Piece};
use crate::conduit::OpToken;
use argonet_base::JobRank;
use argonet_base::kept::Kept;
use argonet_nic::portals::{Ack, DescriptorHandle, NicError, Part, Portals as Interface, Target};
use argonet_segment::SharedBytes;
use core::ptr::NonNull;

impl<N: Interface> Portals<N> {
    /// The half of a message that carries its data; `None` if there is none.
    #[allow(clippy::too_many_arguments, reason = "the fields of a half")]
    pub(super) fn half(
        &self,
        to: JobRank,
        kind: Kind,
        reserved: &Reserved,
        bytes: &SharedBytes<'_>,
        offset: u64,
        local: Option<OpToken>,
        is_reply: bool,
    ) -> Result<Option<Operation>, NicError> {
        let len = bytes.len();
        if len == 0 {
            return Ok(None);
        }
        let slot = reserved.slot.filter(|_| kind == Kind::LargeMedium);
        let [long, large] = match is_reply {
            false => [roles::LONG_REQUESTS, roles::LARGE_REQUESTS],
            true => [roles::LONG_REPLIES, roles::LARGE_REPLIES],
        };
        let (portal, total) = match slot {
            Some(_) => (large, len.next_multiple_of(LARGE_ALIGN) as u64),
            None => (long, len as u64),
        };
        let mut transfer = Transfer {
            to,
            portal,
            // A medium has none.
            offset,
            len: total,
            total,
            lid: reserved.lid,
            object: self.slots.descriptor,
            from: 0,
            gets: false,
        };
        let source = if let Some(slot) = slot {
            // SAFETY: the slot is the message's, the payload readable.
            unsafe { self.slots.write(slot, bytes.as_ptr(), len) };
            transfer.from = Slots::offset(slot);
            Source::Slot(slot)
        } else if !reserved.temporary
            && let Some(found) = self.segment.find(bytes.as_ptr(), len)
        {
            (transfer.object, transfer.from) = (found.put, found.offset);
            Source::Segment
        } else {
            let kept = (!self.reads_at_once(len) && local.is_none())
                .then(|| Kept::new(bytes.to_vec().into()));
            let start = match &kept {
                Some(kept) => kept.as_ptr().cast::<u8>().cast_const(),
                None => bytes.as_ptr(),
            };
            transfer.object = self.bind_temporary(start, len, false)?;
            Source::Temporary(transfer.object, kept)
        };
        let then = Then::Half(local);
        Ok(Some(Operation {
            transfer,
            source,
            then,
        }))
    }

    /// Covers memory for one operation (TMPMD).
    ///
    /// The caller has its ticket.
    pub(super) fn bind_temporary(
        &self,
        start: *const u8,
        len: usize,
        gets: bool,
    ) -> Result<DescriptorHandle, NicError> {
        let descriptor = super::segment::operations(self.queues.safe)[usize::from(gets)];
        let start = NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling());
        // SAFETY: the memory is kept by its beginner until its operation is complete; where the
        // call's end frees it, the interface has read it by then (`reads_at_once`).
        unsafe { self.nic.bind(start, len as u64, descriptor) }
    }

    /// Begins an operation, which has a ticket.
    pub(super) fn start(&self, operation: Operation) -> Result<(), NicError> {
        let transfer = operation.transfer;
        let handle = self.table.lock().insert(operation);
        self.begins();
        let issued = self.issue(handle, &transfer);
        if issued.is_err() {
            self.drop_operation(handle);
        }
        issued
    }

    /// The transfer of an operation, if it is under way.
    pub(super) fn transfer_of(&self, handle: u32) -> Option<Transfer> {
        Some(self.table.lock().get_mut(handle)?.transfer)
    }

    /// An operation that its interface refuses.
    #[cold]
    pub(super) fn drop_operation(&self, handle: u32) {
        let operation = self.table.lock().remove(handle);
        if let Some(operation) = operation {
            self.operation_is_over(operation.transfer.to, operation.source);
        }
    }

    /// Moves all of it, or the first part of a payload that is longer than the interface's
    /// messages.
    pub(super) fn issue(&self, handle: u32, transfer: &Transfer) -> Result<(), NicError> {
        let len_bytes = transfer.part(self.message_bytes);
        let part = Part {
            offset_bytes: transfer.from,
            len_bytes,
        };
        let target = Target {
            rank: transfer.to,
            // The last part of a long is its half, and its event reports all of them to the target.
            portal: match transfer.portal {
                roles::LONG_REQUESTS | roles::LONG_REPLIES if len_bytes < transfer.len => {
                    roles::RAR
                }
                portal => portal,
            },
            bits: super::wire::operation(handle, transfer.lid),
            offset_bytes: transfer.offset,
        };
        if transfer.gets {
            self.nic.get_region(transfer.object, part, target)
        } else {
            let header = match transfer.portal {
                roles::LARGE_REQUESTS | roles::LARGE_REPLIES => Piece::of(transfer).header(),
                _ => transfer.total,
            };
            self.nic
                .put_region(transfer.object, part, Ack::Event, target, header)
        }
    }
}
