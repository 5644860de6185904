//! All operations of all types, compared with a model after the specification.

use super::*;
use crate::bound::tests::rig::context;
use proptest::prelude::*;

/// A type as the model knows it.
trait Known: AtomicWord + core::fmt::Debug {
    /// The result of an operation on `op0`.
    fn after(op: Operation, op0: Self, op1: Self, op2: Self) -> Self;
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Known for $int {
            fn after(op: Operation, op0: Self, op1: Self, op2: Self) -> Self {
                // Wide enough for all but products, of which the low bits count.
                let [a, b, c] = [op0, op1, op2].map(i128::from);
                let result = match op.nonfetching() {
                    Operation::Add => a + b,
                    Operation::Sub => a - b,
                    Operation::Mult => a.wrapping_mul(b),
                    Operation::Inc => a + 1,
                    Operation::Dec => a - 1,
                    Operation::Min => [b, a][usize::from(a < b)],
                    Operation::Max => [b, a][usize::from(a > b)],
                    Operation::And => a & b,
                    Operation::Or => a | b,
                    Operation::Xor => a ^ b,
                    Operation::Set => b,
                    Operation::Cas => [a, c][usize::from(a == b)],
                    Operation::Get => a,
                    other => unreachable!("{other:?}"),
                };
                result as Self
            }
        }
    )*};
}

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl Known for $float {
            fn after(op: Operation, op0: Self, op1: Self, op2: Self) -> Self {
                match op.nonfetching() {
                    Operation::Add => op0 + op1,
                    Operation::Sub => op0 - op1,
                    Operation::Mult => op0 * op1,
                    Operation::Inc => op0 + 1.0,
                    Operation::Dec => op0 - 1.0,
                    Operation::Min => [op1, op0][usize::from(op0 < op1)],
                    Operation::Max => [op1, op0][usize::from(op0 > op1)],
                    Operation::Set => op1,
                    Operation::Cas => [op0, op2][usize::from(op0.to_bits() == op1.to_bits())],
                    Operation::Get => op0,
                    other => unreachable!("{other:?}"),
                }
            }
        }
    )*};
}

integers!(i32 u32 i64 u64);
floats!(f32 f64);

/// The same value, or both no number: of which kind is the processor's affair where it computes.
#[allow(clippy::eq_op, reason = "only a NaN differs from itself")]
fn same<T: Known>(a: T, b: T) -> bool {
    a.bits() == b.bits() || (a != a && b != b)
}

/// Does a course of operations, which begins at zero, at four words: in a segment, bound, this
/// rank's own, and by itself.
///
/// The second operand is sometimes the value there, so that a compare-and-swap succeeds.
fn course<T: Known>(steps: &[(usize, T, T, bool)]) {
    let rig = Rig::pair(64);
    let operations: Vec<Operation> = operations_of::<T>().collect();
    rig.served(|engine, ctx| {
        let mut alone = T::of_bits(0);
        let targets = [
            segment_word(8),
            bound_word(&rig, 1, 0),
            bound_word(&rig, 0, 0),
        ];
        for target in targets {
            let zero = T::of_bits(0);
            engine
                .atomic(ctx, target, what(Operation::Set, zero, zero))
                .unwrap();
        }
        let mut op0 = T::of_bits(0);
        for &(which, op1, op2, hits) in steps {
            let op = operations[which % operations.len()];
            let op1 = if hits { op0 } else { op1 };
            let asked = what(op, op1, op2);
            let fetched = match op.is_fetching() {
                true => op0,
                false => T::of_bits(0),
            };
            // SAFETY: a variable of this function.
            let before = unsafe { T::apply(&raw mut alone, asked) };
            assert_eq!(before.bits(), fetched.bits(), "{op:?}");
            for target in targets {
                let before = engine.atomic(ctx, target, asked).unwrap();
                assert_eq!(before.bits(), fetched.bits(), "{op:?} at {target:?}");
            }
            let after = T::after(op, op0, op1, op2);
            let get = what(Operation::Get, op1, op2);
            for target in targets {
                let now = engine.atomic(ctx, target, get).unwrap();
                assert!(
                    same(now, after),
                    "{op:?} of {op0:?}, {op1:?}, {op2:?} at {target:?} gives {now:?}, not {after:?}"
                );
                assert_eq!(now.bits(), alone.bits(), "{op:?} differs at {target:?}");
            }
            op0 = alone;
        }
    });
}

/// Numbers at which something wraps, and any other.
fn edges(bits: u64) -> u64 {
    const EDGES: [u64; 8] = [
        0,
        1,
        2,
        i32::MAX as u64,
        1 << 31,
        u32::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    match bits % 3 {
        0 => EDGES[(bits / 3) as usize % EDGES.len()],
        _ => bits,
    }
}

fn steps<T: Known>(raw: &[(usize, u64, u64, bool)]) -> Vec<(usize, T, T, bool)> {
    let value = |bits| T::of_bits(edges(bits));
    raw.iter()
        .map(|&(which, a, b, hits)| (which, value(a), value(b), hits))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_sequence_agrees_with_the_model(raw in prop::collection::vec(any::<(usize, u64, u64, bool)>(), 1..40)) {
        course::<i32>(&steps(&raw));
        course::<u32>(&steps(&raw));
        course::<i64>(&steps(&raw));
        course::<u64>(&steps(&raw));
        // Any bits: infinities, numbers that are none, the smallest ones.
        course::<f32>(&steps(&raw));
        course::<f64>(&steps(&raw));
    }
}

#[test]
fn min_and_max_with_nan_take_the_operand_and_cas_compares_bits() {
    let nan = f64::from_bits(0x7ff8_0000_0000_0123);
    let mut word = nan;
    // SAFETY: a variable of this function.
    let mut apply = |op, a: f64, b: f64| unsafe { f64::apply(&raw mut word, what(op, a, b)) };
    assert_eq!(
        apply(Operation::FetchCas, nan, 0.0).to_bits(),
        nan.to_bits()
    );
    assert_eq!(apply(Operation::FetchCas, -0.0, 1.0).to_bits(), 0);
    assert_eq!(apply(Operation::FetchMin, nan, 0.0).to_bits(), 0);
    assert_eq!(
        apply(Operation::FetchMax, 3.0, 0.0).to_bits(),
        nan.to_bits()
    );
    assert_eq!(apply(Operation::Get, 0.0, 0.0), 3.0);
}

#[test]
fn operations_undefined_for_a_type_are_refused() {
    let rig = Rig::pair(64);
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ =
            rig.ranks[0]
                .engine
                .atomic(&context(), segment_word(0), what(Operation::And, 1.0, 1.0));
    }));
    assert!(run.is_err());
}
