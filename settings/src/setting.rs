//! Typed access to a row.

use core::marker::PhantomData;

use crate::row::Row;
use crate::settings::Settings;

/// A row with an effect, and the type of its value.
///
/// `Setting<Option<T>>` is one without a constant default.
pub struct Setting<T> {
    row: &'static Row,
    value: PhantomData<fn() -> T>,
}

impl<T> Setting<T> {
    pub(crate) const fn new(row: &'static Row) -> Self {
        Self {
            row,
            value: PhantomData,
        }
    }

    /// The row.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// The variable.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row.name
    }
}

/// A typed constant, for tests that go through all.
#[derive(Clone, Copy, Debug)]
pub struct TypedConstant {
    /// The constant's name in Rust.
    pub constant: &'static str,
    /// Its row.
    pub row: &'static Row,
    /// Reads it, and panics if the constant's type does not fit the row.
    pub read: fn(&Settings),
}

/// Rows with an effect: for each a public constant, and the list of all.
macro_rules! settings {
    // Those that are not read yet.
    (no effect $reason:literal; $($rows:tt)*) => {
        crate::setting::settings! { @ crate::row::Effect::NoEffect($reason); $($rows)* }
    };
    (@ $effect:expr; $($constant:ident: $type:ty = $name:literal, $kind:expr, $preset:expr, $scope:expr, $about:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $about)]
            pub const $constant: crate::setting::Setting<$type> =
                crate::setting::Setting::new(&crate::row::Row {
                    name: $name,
                    kind: $kind,
                    preset: $preset,
                    scope: $scope,
                    about: $about,
                    effect: $effect,
                });
        )*
        pub(crate) const USED: &[crate::setting::TypedConstant] = &[$(
            crate::setting::TypedConstant {
                constant: stringify!($constant),
                row: $constant.row(),
                read: |settings| {
                    let _ = settings.get(&$constant);
                },
            },
        )*];
    };
    ($($rows:tt)*) => {
        crate::setting::settings! { @ crate::row::Effect::Used; $($rows)* }
    };
}
pub(crate) use settings;
