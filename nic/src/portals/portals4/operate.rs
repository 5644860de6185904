//! Operations, where they begin.

use super::abi::{self, Process};
use super::answer::check;
use super::bound::{Bound, Use};
use super::lacks;
use super::open::Portals4;
use super::outstanding::{Operation, Side};
use crate::portals::slots::Slots;
use crate::portals::{Ack, AtomicKind, AtomicOp, DescriptorHandle, NicError, Part, Target};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

/// A descriptor and the part of it that an operation is about.
struct Local<'a> {
    bound: &'a Bound,
    handle: DescriptorHandle,
    part: Part,
}

impl Local<'_> {
    fn side(&self) -> Side {
        Side {
            handle: self.handle,
            user: self.bound.options.user,
            offset: self.part.offset_bytes,
        }
    }
}

/// An atomic operation of the trait as the library numbers it.
pub(super) fn op_number(op: AtomicOp) -> u8 {
    match op {
        AtomicOp::Min => 0,
        AtomicOp::Max => 1,
        AtomicOp::Sum => abi::OP_SUM,
        AtomicOp::Product => 3,
        AtomicOp::Or => 6,
        AtomicOp::And => 7,
        AtomicOp::Xor => 9,
        AtomicOp::Swap => abi::OP_SWAP,
        AtomicOp::CompareSwap => abi::OP_COMPARE_SWAP,
    }
}

/// The kind of elements as the library numbers it.
pub(super) fn kind_number(kind: AtomicKind) -> u8 {
    match kind {
        AtomicKind::I32 => 4,
        AtomicKind::U32 => 5,
        AtomicKind::F32 => 6,
        AtomicKind::I64 => 7,
        AtomicKind::U64 => abi::TYPE_U64,
        AtomicKind::F64 => 9,
    }
}

impl Portals4 {
    fn refuse(&self, what: &'static str) -> NicError {
        NicError::Invalid {
            rank: self.ni.rank,
            what,
        }
    }

    fn local<'a>(
        &self,
        table: &'a Slots<Bound>,
        handle: DescriptorHandle,
        part: Part,
    ) -> Result<Local<'a>, NicError> {
        let bound = table.get(handle.index, handle.generation)?;
        if bound.is_releasing() {
            return Err(table.gone(handle.index, handle.generation));
        }
        let end = part.offset_bytes.checked_add(part.len_bytes);
        if end.is_none_or(|end| end > bound.len) {
            return Err(NicError::OutOfRange {
                rank: self.ni.rank,
                offset_bytes: part.offset_bytes,
                len_bytes: part.len_bytes,
                size_bytes: bound.len,
            });
        }
        if part.len_bytes > self.ni.limits.message_bytes {
            return Err(lacks::too_long(self.ni.rank));
        }
        Ok(Local {
            bound,
            handle,
            part,
        })
    }

    fn source(&self, local: &Local<'_>, ack: Ack) -> Result<Use, NicError> {
        local.bound.source(ack).ok_or_else(|| {
            self.refuse(match ack {
                Ack::Count => "an acknowledgement by count of a descriptor without a counter",
                _ => "an acknowledgement by event of a descriptor without a queue",
            })
        })
    }

    /// Keeps the operation if events will report it, and begins it by `call` with its number.
    fn begin(
        &self,
        operation: Operation,
        name: &'static str,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> Result<(), NicError> {
        let number = if operation.awaits == 0 {
            None
        } else {
            Some(self.outstanding.lock().begin(operation)?)
        };
        let code = call(number.unwrap_or(u64::MAX) as *mut c_void);
        if let Err(error) = check(self.ni.rank, name, code) {
            if let Some(number) = number {
                self.outstanding.lock().end(number);
            }
            return Err(error);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a put, or an atomic operation that fetches nothing.
    fn send(
        &self,
        local: &Local<'_>,
        way: Use,
        target: &Target,
        header: u64,
        name: &'static str,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> Result<(), NicError> {
        let operation = Operation {
            sends: (way.awaits != 0).then(|| local.side()),
            receives: None,
            target: *target,
            header,
            requested: local.part.len_bytes,
            awaits: way.awaits,
        };
        self.begin(operation, name, call)
    }

    pub(super) fn begin_put(
        &self,
        source: DescriptorHandle,
        part: Option<Part>,
        ack: Ack,
        target: &Target,
        header: u64,
    ) -> Result<(), NicError> {
        let process = self.ni.target(target)?;
        let table = self.bound.read();
        let part = whole(&table, source, part)?;
        let local = self.local(&table, source, part)?;
        let way = self.source(&local, ack)?;
        self.send(&local, way, target, header, "PtlPut", |user| {
            // SAFETY: the part is within the descriptor's memory, which its binder keeps while
            // operations are under way.
            unsafe {
                (self.ni.library.call.put)(
                    way.md,
                    part.offset_bytes,
                    part.len_bytes,
                    way.ack,
                    process,
                    target.portal.0,
                    target.bits,
                    target.offset_bytes,
                    user,
                    header,
                )
            }
        })
    }

    pub(super) fn begin_get(
        &self,
        destination: DescriptorHandle,
        part: Option<Part>,
        target: &Target,
    ) -> Result<(), NicError> {
        let process = self.ni.target(target)?;
        let table = self.bound.read();
        let part = whole(&table, destination, part)?;
        let local = self.local(&table, destination, part)?;
        let way = local
            .bound
            .destination()
            .ok_or_else(|| table.gone(destination.index, destination.generation))?;
        let operation = Operation {
            sends: None,
            receives: (way.awaits != 0).then(|| local.side()),
            target: *target,
            header: 0,
            requested: part.len_bytes,
            awaits: way.awaits,
        };
        self.begin(operation, "PtlGet", |user| {
            // SAFETY: as for puts; nothing else accesses the destination until the reply.
            unsafe {
                (self.ni.library.call.get)(
                    way.md,
                    part.offset_bytes,
                    part.len_bytes,
                    process,
                    target.portal.0,
                    target.bits,
                    target.offset_bytes,
                    user,
                )
            }
        })
    }

    /// Longest atomic operation of both sorts.
    pub(super) fn atomic_bytes(&self) -> u64 {
        let limits = &self.ni.limits;
        limits.atomic_bytes.min(limits.fetch_atomic_bytes)
    }

    fn check_atomic(
        &self,
        part: Part,
        target: &Target,
        op: AtomicOp,
        kind: AtomicKind,
        fetches: bool,
    ) -> Result<(), NicError> {
        let (len, offset) = (part.len_bytes, target.offset_bytes);
        if let Some(wrong) = kind.objection(op, len, offset, fetches, self.atomic_bytes()) {
            return Err(self.refuse(wrong));
        }
        if !fetches {
            lacks::atomic(self.ni.rank, op)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(super) fn begin_atomic(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
    ) -> Result<(), NicError> {
        self.check_atomic(part, target, op, kind, false)?;
        let process = self.ni.target(target)?;
        let table = self.bound.read();
        let local = self.local(&table, source, part)?;
        let way = self.source(&local, ack)?;
        self.send(&local, way, target, header, "PtlAtomic", |user| {
            // SAFETY: as for puts.
            unsafe {
                (self.ni.library.call.atomic)(
                    way.md,
                    part.offset_bytes,
                    part.len_bytes,
                    way.ack,
                    process,
                    target.portal.0,
                    target.bits,
                    target.offset_bytes,
                    user,
                    header,
                    op_number(op),
                    kind_number(kind),
                )
            }
        })
    }

    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(super) fn begin_fetch_atomic(
        &self,
        fetched: DescriptorHandle,
        fetched_offset: u64,
        source: DescriptorHandle,
        part: Part,
        target: &Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    ) -> Result<(), NicError> {
        self.check_atomic(part, target, op, kind, true)?;
        let process: Process = self.ni.target(target)?;
        let table = self.bound.read();
        let from = self.local(&table, source, part)?;
        let answer = Part {
            offset_bytes: fetched_offset,
            ..part
        };
        let to = self.local(&table, fetched, answer)?;
        let sends = self.source(&from, Ack::None)?;
        let receives = to
            .bound
            .destination()
            .ok_or_else(|| table.gone(fetched.index, fetched.generation))?;
        let operation = Operation {
            sends: (sends.awaits != 0).then(|| from.side()),
            receives: (receives.awaits != 0).then(|| to.side()),
            target: *target,
            header,
            requested: part.len_bytes,
            awaits: sends.awaits | receives.awaits,
        };
        let swaps = matches!(op, AtomicOp::Swap | AtomicOp::CompareSwap);
        let (operand, call) = (compare.to_ne_bytes(), &self.ni.library.call);
        let name = if swaps { "PtlSwap" } else { "PtlFetchAtomic" };
        self.begin(operation, name, |user| {
            // SAFETY: as for puts and gets; the operand is as long as the longest element, and
            // copied by the call.
            unsafe {
                if swaps {
                    (call.swap)(
                        receives.md,
                        fetched_offset,
                        sends.md,
                        part.offset_bytes,
                        part.len_bytes,
                        process,
                        target.portal.0,
                        target.bits,
                        target.offset_bytes,
                        user,
                        header,
                        operand.as_ptr().cast(),
                        op_number(op),
                        kind_number(kind),
                    )
                } else {
                    (call.fetch_atomic)(
                        receives.md,
                        fetched_offset,
                        sends.md,
                        part.offset_bytes,
                        part.len_bytes,
                        process,
                        target.portal.0,
                        target.bits,
                        target.offset_bytes,
                        user,
                        header,
                        op_number(op),
                        kind_number(kind),
                    )
                }
            }
        })
    }
}

/// `part`, or all of the descriptor.
fn whole(
    table: &Slots<Bound>,
    handle: DescriptorHandle,
    part: Option<Part>,
) -> Result<Part, NicError> {
    match part {
        Some(part) => Ok(part),
        None => Ok(Part {
            offset_bytes: 0,
            len_bytes: table.get(handle.index, handle.generation)?.len,
        }),
    }
}
