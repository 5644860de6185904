//! Atomic operations on elements of shared memory, by the processor's own.

use crate::portals::{AtomicKind, AtomicOp};
use argonet_segment::bulk;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Combines `len` bytes of elements at `from` into `memory`; the old elements go to `to`.
///
/// Each element is changed by one compare-and-swap, so it is atomic with regard to every other
/// atomic access of its size, by any thread or process.
///
/// # Safety
/// `memory` is valid for `len` bytes, aligned to the element and accessed by atomics and [`bulk`]
/// only; `from` can be read, `to` written, for `len` bytes.
pub(super) unsafe fn apply(
    memory: NonNull<u8>,
    from: NonNull<u8>,
    to: Option<NonNull<u8>>,
    len: usize,
    op: AtomicOp,
    kind: AtomicKind,
    compare: u64,
) {
    let size = kind.bytes();
    debug_assert!(
        memory.addr().get().is_multiple_of(size),
        "the search has checked the alignment"
    );
    for at in (0..len / size).map(|n| n * size) {
        let mut operand = [0_u8; 8];
        // SAFETY: the element lies within the operands; the array has room for the largest.
        unsafe { bulk::copy(operand.as_mut_ptr(), from.as_ptr().add(at), size) };
        let operand = u64::from_ne_bytes(operand);
        // SAFETY: the element lies within the memory and is aligned (caller).
        let element = unsafe { memory.as_ptr().add(at) };
        let change = |old: u64| combine(old, operand, compare, op, kind);
        let old = if size == 4 {
            // SAFETY: as above; four bytes.
            let word = unsafe { AtomicU32::from_ptr(element.cast()) };
            let change = |old| Some(change(u64::from(old)) as u32);
            let (Ok(old) | Err(old)) =
                word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
            u64::from(old)
        } else {
            // SAFETY: as above; eight bytes.
            let word = unsafe { AtomicU64::from_ptr(element.cast()) };
            let (Ok(old) | Err(old)) =
                word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(change(old)));
            old
        };
        if let Some(to) = to {
            // SAFETY: the element lies within the destination (caller).
            unsafe { bulk::copy(to.as_ptr().add(at), old.to_ne_bytes().as_ptr(), size) };
        }
    }
}

macro_rules! by_kind {
    ($old:ident, $operand:ident, $kind:ident, $int:expr, $float:expr) => {{
        let (old, operand) = ($old, $operand);
        match $kind {
            AtomicKind::I32 => $int(i64::from(old as i32), i64::from(operand as i32)) as u32 as u64,
            AtomicKind::I64 => $int(old as i64, operand as i64) as u64,
            AtomicKind::F32 => {
                let (old, operand) = (f32::from_bits(old as u32), f32::from_bits(operand as u32));
                u64::from(($float(f64::from(old), f64::from(operand)) as f32).to_bits())
            }
            AtomicKind::F64 => $float(f64::from_bits(old), f64::from_bits(operand)).to_bits(),
            // The caller has unsigned ones.
            AtomicKind::U32 | AtomicKind::U64 => old,
        }
    }};
}

/// The new value.
///
/// Numbers of 4 bytes are in the lower half (all supported processors are little-endian).
///
/// Sum and product of two `f32` computed as `f64` and rounded once are those of `f32`: 53 bits are
/// more than twice 24 and two.
fn combine(old: u64, operand: u64, compare: u64, op: AtomicOp, kind: AtomicKind) -> u64 {
    let unsigned = matches!(kind, AtomicKind::U32 | AtomicKind::U64);
    match op {
        AtomicOp::Min if unsigned => old.min(operand),
        AtomicOp::Max if unsigned => old.max(operand),
        AtomicOp::Sum if unsigned => old.wrapping_add(operand),
        AtomicOp::Product if unsigned => old.wrapping_mul(operand),
        AtomicOp::Min => by_kind!(old, operand, kind, i64::min, f64::min),
        AtomicOp::Max => by_kind!(old, operand, kind, i64::max, f64::max),
        AtomicOp::Sum => by_kind!(old, operand, kind, i64::wrapping_add, |a: f64, b: f64| a
            + b),
        AtomicOp::Product => {
            by_kind!(old, operand, kind, i64::wrapping_mul, |a: f64, b: f64| a
                * b)
        }
        AtomicOp::Or => old | operand,
        AtomicOp::And => old & operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::Swap => operand,
        AtomicOp::CompareSwap => {
            let mask = if kind.bytes() == 4 {
                u64::from(u32::MAX)
            } else {
                u64::MAX
            };
            if old & mask == compare & mask {
                operand
            } else {
                old
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicKind::{F32, F64, I32, I64, U32, U64};
    use AtomicOp::{And, CompareSwap, Max, Min, Or, Product, Sum, Swap, Xor};

    #[test]
    fn every_operation_of_every_kind() {
        let neg = |n: i64| n as u64;
        let low = |n: i32| u64::from(n as u32);
        let f = |x: f32| u64::from(x.to_bits());
        let d = |x: f64| x.to_bits();
        for (kind, op, old, operand, new) in [
            (U64, Sum, u64::MAX, 2, 1),
            (U64, Min, neg(-1), 2, 2),
            (U64, Max, neg(-1), 2, neg(-1)),
            (U32, Product, 1 << 31, 2, 1 << 32),
            (I64, Min, neg(-1), 2, neg(-1)),
            (I64, Max, neg(-1), 2, 2),
            (I64, Product, neg(-3), 5, neg(-15)),
            (I32, Min, low(-1), 2, low(-1)),
            (I32, Max, low(-1), 2, 2),
            (I32, Sum, low(i32::MAX), 1, low(i32::MIN)),
            (I32, Product, low(i32::MAX), 2, low(-2)),
            (F32, Sum, f(1.5), f(2.0), f(3.5)),
            (F32, Min, f(-1.5), f(2.0), f(-1.5)),
            (F64, Product, d(1.5), d(2.0), d(3.0)),
            (F64, Max, d(-1.5), d(-2.0), d(-1.5)),
            (U64, Or, 5, 2, 7),
            (U64, And, 5, 4, 4),
            (U64, Xor, 5, 4, 1),
            (F64, Swap, d(1.0), d(2.0), d(2.0)),
        ] {
            let is = combine(old, operand, 0, op, kind);
            let mask = if kind.bytes() == 4 {
                u64::from(u32::MAX)
            } else {
                u64::MAX
            };
            assert_eq!(is & mask, new & mask, "{kind:?} {op:?}");
        }
        assert_eq!(combine(5, 9, 5, CompareSwap, U64), 9);
        assert_eq!(combine(5, 9, 6, CompareSwap, U64), 5);
        assert_eq!(combine(5, 9, 5 | 1 << 32, CompareSwap, U32), 9);
    }
}
