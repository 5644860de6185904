//! Functions for C, and their prototypes in C's words, which a test has the C compiler compare with
//! the headers.

use core::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicI32;

/// A function as C sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Its name.
    pub name: &'static str,
    /// The type of its result.
    pub result: &'static str,
    /// The types of its arguments.
    pub arguments: &'static [&'static str],
}

/// A type that C has under a name.
pub(crate) trait CType {
    const NAME: &'static str;
}

macro_rules! names {
    ($($type:ty = $name:literal,)*) => {
        $(impl crate::export::CType for $type { const NAME: &'static str = $name; })*
    };
}

names! {
    () = "void",
    c_int = "int",
    u64 = "uint64_t",
    i64 = "int64_t",
    usize = "size_t",
    f64 = "double",
    *const c_char = "const char *",
    *mut c_char = "char *",
    *const c_void = "const void *",
    *mut c_void = "void *",
    *const AtomicI32 = "volatile int *",
    Option<extern "C" fn(c_int)> = "gasnett_sighandlerfn_t",
}

/// Defines functions under their C names, and the list of their prototypes, `PROTOTYPES`.
///
/// Functions that never return have no result here; the header says so.
macro_rules! export {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? $body
        )*
        pub(crate) const PROTOTYPES: &[crate::export::Prototype] = &[$(
            crate::export::Prototype {
                name: stringify!($name),
                result: crate::export::result_name!($($result)?),
                arguments: &[$(<$type as crate::export::CType>::NAME),*],
            },
        )*];
    };
}

macro_rules! result_name {
    () => {
        "void"
    };
    ($result:ty) => {
        <$result as crate::export::CType>::NAME
    };
}

pub(crate) use {export, names, result_name};
