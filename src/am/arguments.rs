//! How the arguments of an active message travel: as words.

use crate::global::Global;
use argonet_am::MAX_ARGS;
use zerocopy::IntoBytes;

/// Bytes that the argument words of a message hold.
pub(crate) const MAX_BYTES: usize = 4 * MAX_ARGS;

/// Marker of an [`Am`](crate::Am) with one argument, or with none (`()`).
pub struct OneValue(());

/// Marker of an [`Am`](crate::Am) with two to eight arguments.
///
/// The sender passes a tuple, and the handler has one parameter for each value. They travel in
/// this order, without padding.
pub struct SeveralValues(());

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OneValue {}
    impl Sealed for super::SeveralValues {}
}

/// How arguments of type `A` travel: as [one value](OneValue), or as [several](SeveralValues).
///
/// The two markers implement it, and nothing else can.
#[diagnostic::on_unimplemented(
    message = "`{A}` cannot be the arguments of an active message",
    note = "a handler of `am!` has at most eight arguments, of `Global` types"
)]
pub trait AmArguments<A>: sealed::Sealed {
    #[doc(hidden)]
    const BYTES: usize;

    /// Calls `f` with the arguments as words, as many as the types need.
    #[doc(hidden)]
    fn with_words<R>(args: A, f: impl FnOnce(&[u32]) -> R) -> R;

    /// The arguments of these words; `None` if they are too few.
    #[doc(hidden)]
    fn unpack(words: &[u32]) -> Option<A>;
}

impl<A: Global> AmArguments<A> for OneValue {
    const BYTES: usize = size_of::<A>();

    #[inline(always)]
    fn with_words<R>(args: A, f: impl FnOnce(&[u32]) -> R) -> R {
        #[inline(always)]
        fn words<A: Global, const N: usize, R>(args: A, f: impl FnOnce(&[u32]) -> R) -> R {
            let mut words = [0u32; N];
            words.as_mut_bytes()[..size_of::<A>()].copy_from_slice(args.as_bytes());
            f(&words)
        }
        match size_of::<A>().div_ceil(4) {
            0 => f(&[]),
            1 => words::<A, 1, R>(args, f),
            2 => words::<A, 2, R>(args, f),
            3 => words::<A, 3, R>(args, f),
            4 => words::<A, 4, R>(args, f),
            count => words::<A, MAX_ARGS, R>(args, |words| f(&words[..count])),
        }
    }

    #[inline(always)]
    fn unpack(words: &[u32]) -> Option<A> {
        let (value, _) = A::read_from_prefix(words.as_bytes()).ok()?;
        Some(value)
    }
}

macro_rules! several {
    ($($type:ident $value:ident),*) => {
        impl<$($type: Global),*> AmArguments<($($type,)*)> for SeveralValues {
            const BYTES: usize = 0 $(+ size_of::<$type>())*;

            #[inline(always)]
            fn with_words<R>(args: ($($type,)*), f: impl FnOnce(&[u32]) -> R) -> R {
                let mut words = [0u32; MAX_ARGS];
                let bytes = words.as_mut_bytes();
                let ($($value,)*) = args;
                let mut end = 0;
                $(
                    bytes[end..end + size_of::<$type>()].copy_from_slice($value.as_bytes());
                    end += size_of::<$type>();
                )*
                f(&words[..end.div_ceil(4)])
            }

            #[inline(always)]
            fn unpack(words: &[u32]) -> Option<($($type,)*)> {
                let rest = words.as_bytes();
                $(let ($value, rest) = $type::read_from_prefix(rest).ok()?;)*
                let _ = rest;
                Some(($($value,)*))
            }
        }
    };
}

several!(A a, B b);
several!(A a, B b, C c);
several!(A a, B b, C c, D d);
several!(A a, B b, C c, D d, E e);
several!(A a, B b, C c, D d, E e, F f);
several!(A a, B b, C c, D d, E e, F f, G g);
several!(A a, B b, C c, D d, E e, F f, G g, H h);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::num::f32::NORMAL;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn several_values_come_out_as_they_went_in(
            values in (any::<(u8, u64, [u16; 3], i32, u8, u128)>(), NORMAL, any::<u64>()),
        ) {
            type Several = SeveralValues;
            let ((a, b, c, d, e, f), g, h) = values;
            let values = (a, b, c, d, e, f, g, h);
            // 1 + 8 + 6 + 4 + 1 + 16 + 4 + 8 bytes.
            Several::with_words(values, |words| {
                assert_eq!(words.len(), 12);
                assert_eq!(Several::unpack(words), Some(values));
                assert_eq!(<Several as AmArguments<(u128, u128, u128, u8)>>::unpack(words), None);
            });
            Several::with_words((a, e), |words| {
                assert_eq!(words.len(), 1);
                assert_eq!(Several::unpack(words), Some((a, e)));
            });
        }
    }

    #[test]
    fn one_value_may_have_any_length_up_to_the_limit() {
        OneValue::with_words((), |words| assert_eq!(words.len(), 0));
        OneValue::with_words([7u8; 5], |words| {
            assert_eq!(words.len(), 2);
            assert_eq!(OneValue::unpack(words), Some([7u8; 5]));
            assert_eq!(<OneValue as AmArguments<[u32; 3]>>::unpack(words), None);
        });
        OneValue::with_words([9u64; 8], |words| {
            assert_eq!(words.len(), 16);
            assert_eq!(OneValue::unpack(words), Some([9u64; 8]));
        });
    }
}
