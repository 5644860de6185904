//! Reductions of arrays, element by element.

use super::{DataType, Operation};

/// `inout = inout op other`, element by element: `inout` stands on the left, so it comes from lower
/// ranks.
///
/// The type and the operation go together ([`Operation::reduces`]) and are built in.
///
/// Integers wrap around. Minimum and maximum of floats are as the comparison in C gives them: where
/// an operand is a NaN, or both are zeros, the result is the right operand.
///
/// The bytes need no alignment.
///
/// # Panics
/// If the type or the operation is the client's own or they do not go together, if the lengths
/// differ, or if they are no whole number of elements.
pub fn fold(op: Operation, dt: DataType, inout: &mut [u8], other: &[u8]) {
    apply(op, dt, inout, other, false);
}

/// `inout = other op inout`: as [`fold`] with the values of lower ranks in `other`.
///
/// # Panics
/// As [`fold`].
pub fn fold_before(op: Operation, dt: DataType, inout: &mut [u8], other: &[u8]) {
    apply(op, dt, inout, other, true);
}

fn apply(op: Operation, dt: DataType, inout: &mut [u8], other: &[u8], before: bool) {
    assert_eq!(
        inout.len(),
        other.len(),
        "both sides of a reduction are of one length"
    );
    let bytes = dt.bytes();
    assert!(
        bytes.is_some_and(|bytes| inout.len().is_multiple_of(bytes)),
        "{} bytes are no whole number of {}",
        inout.len(),
        dt.name()
    );
    let known = match dt {
        DataType::I32 => i32::fold(op, inout, other, before),
        DataType::U32 => u32::fold(op, inout, other, before),
        DataType::I64 => i64::fold(op, inout, other, before),
        DataType::U64 => u64::fold(op, inout, other, before),
        DataType::F32 => f32::fold(op, inout, other, before),
        DataType::F64 => f64::fold(op, inout, other, before),
        DataType::User => false,
    };
    assert!(
        known,
        "{} is no built-in reduction of {}",
        op.name(),
        dt.name()
    );
}

/// A type with built-in reductions.
trait Element {
    /// Whether there was such an operation, which is done then.
    fn fold(op: Operation, inout: &mut [u8], other: &[u8], before: bool) -> bool;
}

/// One loop for each operation, so that the compiler makes vectors of it.
macro_rules! each {
    ($type:ty, $inout:ident, $other:ident, $before:ident, $combine:expr) => {{
        let combine = typed::<$type>($combine);
        pairs($inout, $other, |a, b| {
            let (x, y) = (<$type>::from_ne_bytes(*a), <$type>::from_ne_bytes(*b));
            *a = if $before {
                combine(y, x)
            } else {
                combine(x, y)
            }
            .to_ne_bytes();
        });
        true
    }};
}

/// Gives the closure's arguments their type.
#[inline(always)]
fn typed<T>(combine: impl Fn(T, T) -> T) -> impl Fn(T, T) -> T {
    combine
}

#[inline(always)]
fn pairs<const N: usize>(inout: &mut [u8], other: &[u8], f: impl Fn(&mut [u8; N], &[u8; N])) {
    let (inout, _) = inout.as_chunks_mut::<N>();
    let (other, _) = other.as_chunks::<N>();
    inout.iter_mut().zip(other).for_each(|(a, b)| f(a, b));
}

macro_rules! elements {
    (integers: $($int:ty)*) => {$(
        impl Element for $int {
            fn fold(op: Operation, inout: &mut [u8], other: &[u8], before: bool) -> bool {
                match op {
                    Operation::Add => each!($int, inout, other, before, |a, b| a.wrapping_add(b)),
                    Operation::Mult => each!($int, inout, other, before, |a, b| a.wrapping_mul(b)),
                    Operation::Min => each!($int, inout, other, before, |a, b| a.min(b)),
                    Operation::Max => each!($int, inout, other, before, |a, b| a.max(b)),
                    Operation::And => each!($int, inout, other, before, |a, b| a & b),
                    Operation::Or => each!($int, inout, other, before, |a, b| a | b),
                    Operation::Xor => each!($int, inout, other, before, |a, b| a ^ b),
                    _ => false,
                }
            }
        }
    )*};
    (floats: $($float:ty)*) => {$(
        impl Element for $float {
            fn fold(op: Operation, inout: &mut [u8], other: &[u8], before: bool) -> bool {
                match op {
                    Operation::Add => each!($float, inout, other, before, |a, b| a + b),
                    Operation::Mult => each!($float, inout, other, before, |a, b| a * b),
                    Operation::Min => each!($float, inout, other, before, |a, b| if a < b { a } else { b }),
                    Operation::Max => each!($float, inout, other, before, |a, b| if a > b { a } else { b }),
                    _ => false,
                }
            }
        }
    )*};
}

elements!(integers: i32 u32 i64 u64);
elements!(floats: f32 f64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    /// The expressions as a C compiler evaluates them, on wide numbers.
    fn integer(op: Operation, a: i128, b: i128) -> i128 {
        match op {
            Operation::Add => a + b,
            // Products of 64 unsigned bits need 128 unsigned ones; only the low ones count.
            Operation::Mult => a.wrapping_mul(b),
            Operation::Min => [b, a][usize::from(a < b)],
            Operation::Max => [b, a][usize::from(a > b)],
            Operation::And => a & b,
            Operation::Or => a | b,
            Operation::Xor => a ^ b,
            _ => unreachable!("{op:?} reduces nothing"),
        }
    }

    fn float(op: Operation, a: f64, b: f64) -> f64 {
        match op {
            Operation::Add => a + b,
            Operation::Mult => a * b,
            Operation::Min => [b, a][usize::from(a < b)],
            Operation::Max => [b, a][usize::from(a > b)],
            _ => unreachable!("{op:?} reduces no floats"),
        }
    }

    fn built_in(dt: DataType) -> impl Iterator<Item = Operation> {
        Operation::all().filter(move |op| {
            op.reduces(dt) && !matches!(op, Operation::User | Operation::UserNonCommutative)
        })
    }

    /// Folds at an odd address, both ways.
    fn both_ways(op: Operation, dt: DataType, a: &[u8], b: &[u8]) -> [Vec<u8>; 2] {
        [fold, fold_before].map(|fold| {
            let mut inout = [&[9], a].concat();
            fold(op, dt, &mut inout[1..], b);
            assert_eq!(inout[0], 9);
            inout.split_off(1)
        })
    }

    macro_rules! integers {
        ($($name:ident $int:ty, $dt:expr;)*) => {proptest! {$(
            #[test]
            fn $name(pairs in prop::collection::vec(any::<($int, $int)>(), 0..70)) {
                let (a, b): (Vec<$int>, Vec<$int>) = pairs.iter().copied().unzip();
                for op in built_in($dt) {
                    let expect = |x: $int, y: $int| integer(op, x.into(), y.into()) as $int;
                    let forth: Vec<$int> = pairs.iter().map(|&(x, y)| expect(x, y)).collect();
                    let back: Vec<$int> = pairs.iter().map(|&(x, y)| expect(y, x)).collect();
                    let got = both_ways(op, $dt, a.as_bytes(), b.as_bytes());
                    prop_assert_eq!(&got[0][..], forth.as_bytes());
                    prop_assert_eq!(&got[1][..], back.as_bytes());
                }
            }
        )*}};
    }

    integers! {
        i32_wraps_like_the_model i32, DataType::I32;
        u32_wraps_like_the_model u32, DataType::U32;
        i64_wraps_like_the_model i64, DataType::I64;
        u64_wraps_like_the_model u64, DataType::U64;
    }

    proptest! {
        #[test]
        fn floats_follow_the_expressions_of_c(pairs in prop::collection::vec(any::<(f64, f64)>(), 0..70)) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let (a32, b32): (Vec<f32>, Vec<f32>) = pairs.iter().map(|&(x, y)| (x as f32, y as f32)).unzip();
            for op in built_in(DataType::F64) {
                let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
                let [forth, back] = both_ways(op, DataType::F64, a.as_bytes(), b.as_bytes());
                for (i, &(x, y)) in pairs.iter().enumerate() {
                    let at = |bytes: &[u8]| f64::from_ne_bytes(bytes[i * 8..][..8].try_into().unwrap());
                    prop_assert!(same(at(&forth), float(op, x, y)), "{op:?} of {x} and {y}");
                    prop_assert!(same(at(&back), float(op, y, x)), "{op:?} of {y} and {x}");
                }
                // A sum or product of two f32, rounded to f64 and then to f32, is rounded right.
                let [forth, _] = both_ways(op, DataType::F32, a32.as_bytes(), b32.as_bytes());
                for (i, (&x, &y)) in a32.iter().zip(&b32).enumerate() {
                    let got = f32::from_ne_bytes(forth[i * 4..][..4].try_into().unwrap());
                    let expect = float(op, x.into(), y.into()) as f32;
                    prop_assert!(got.to_bits() == expect.to_bits() || (got.is_nan() && expect.is_nan()));
                }
            }
        }
    }

    #[test]
    fn of_a_nan_or_of_zeros_the_right_operand_is_taken() {
        for op in [Operation::Min, Operation::Max] {
            for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (0.0, -0.0), (-0.0, 0.0)] {
                let [forth, back] = both_ways(op, DataType::F64, a.as_bytes(), b.as_bytes());
                assert_eq!((&forth[..], &back[..]), (b.as_bytes(), a.as_bytes()));
            }
        }
    }

    #[test]
    fn invalid_reductions_are_refused() {
        let refused = |op, dt, left: usize, right: usize| {
            std::panic::catch_unwind(|| fold(op, dt, &mut vec![0; left], &vec![0; right])).is_err()
        };
        assert!(refused(Operation::Sub, DataType::I32, 8, 8));
        assert!(refused(Operation::And, DataType::F64, 8, 8));
        assert!(refused(Operation::User, DataType::User, 8, 8));
        assert!(refused(Operation::Add, DataType::I32, 8, 4));
        assert!(refused(Operation::Add, DataType::I32, 7, 7));
        assert!(!refused(Operation::Add, DataType::I32, 8, 8));
    }
}
