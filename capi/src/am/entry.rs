//! A client's entry for a handler.

use core::ffi::{CStr, c_char, c_void};
use core::mem::offset_of;
use std::borrow::Cow;

use argonet_am::{Category, MessageClass};
use argonet_base::gasnet::number32;

/// `GEX_FLAG_AM_SHORT` and its kin: one of the first three bits or `MEDLONG`, and one or both of
/// the others.
pub(crate) const SHORT: u32 = number32("GEX_FLAG_AM_SHORT");
pub(crate) const MEDIUM: u32 = number32("GEX_FLAG_AM_MEDIUM");
pub(crate) const LONG: u32 = number32("GEX_FLAG_AM_LONG");
pub(crate) const REQUEST: u32 = number32("GEX_FLAG_AM_REQUEST");
pub(crate) const REPLY: u32 = number32("GEX_FLAG_AM_REPLY");
pub(crate) const CATEGORIES: u32 = SHORT | MEDIUM | LONG;
pub(crate) const KINDS: u32 = REQUEST | REPLY;

/// As a number of arguments: any number.
///
/// `gasnet_attach` registers such handlers, of all categories and kinds.
const ANY_COUNT: u32 = u32::MAX;

/// `gex_AM_Entry_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) index: u8,
    /// A function whose parameters the other fields describe; `None` is a null pointer.
    pub(crate) function: Option<unsafe extern "C" fn()>,
    pub(crate) flags: u32,
    pub(crate) nargs: u32,
    pub(crate) cdata: *const c_void,
    pub(crate) name: *const c_char,
}

// SAFETY: the pointers are the client's, handed back to it and not followed, but for the name,
// which the client keeps as long as the job.
unsafe impl Send for Entry {}
// SAFETY: as for Send; nothing changes here.
unsafe impl Sync for Entry {}

impl Entry {
    /// A handler of which nothing is known but its function.
    pub(crate) fn of_anything(index: u8, function: Option<unsafe extern "C" fn()>) -> Self {
        Self {
            index,
            function,
            flags: CATEGORIES | KINDS,
            nargs: ANY_COUNT,
            cdata: core::ptr::null(),
            name: core::ptr::null(),
        }
    }

    /// Its name, for messages.
    pub(crate) fn named(&self) -> Cow<'_, str> {
        if self.name.is_null() {
            return Cow::Borrowed("without a name");
        }
        // SAFETY: a string that the client keeps, as the header asks.
        let name = unsafe { CStr::from_ptr(self.name) };
        Cow::Owned(format!("\"{}\"", name.to_string_lossy().escape_debug()))
    }

    /// Reports why a message does not fit this handler.
    pub(crate) fn mismatch(
        &self,
        category: Category,
        class: MessageClass,
        nargs: usize,
    ) -> Option<String> {
        let bit = match category {
            Category::Short => SHORT,
            Category::Medium => MEDIUM,
            Category::Long => LONG,
        };
        let (kind, class) = match class {
            MessageClass::Request => (REQUEST, "request"),
            MessageClass::Reply => (REPLY, "reply"),
        };
        let counts = self.nargs == ANY_COUNT || self.nargs as usize == nargs;
        if self.flags & bit != 0 && self.flags & kind != 0 && counts {
            return None;
        }
        Some(format!(
            "a {} {class} with {nargs} arguments does not fit handler {} ({}), registered with flags {:#x} and {} arguments",
            category.name(),
            self.index,
            self.named(),
            self.flags,
            self.nargs,
        ))
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(gex_AM_Entry_t)", size_of::<Entry>()),
    (
        "offsetof(gex_AM_Entry_t, gex_index)",
        offset_of!(Entry, index),
    ),
    (
        "offsetof(gex_AM_Entry_t, gex_fnptr)",
        offset_of!(Entry, function),
    ),
    (
        "offsetof(gex_AM_Entry_t, gex_flags)",
        offset_of!(Entry, flags),
    ),
    (
        "offsetof(gex_AM_Entry_t, gex_nargs)",
        offset_of!(Entry, nargs),
    ),
    (
        "offsetof(gex_AM_Entry_t, gex_cdata)",
        offset_of!(Entry, cdata),
    ),
    (
        "offsetof(gex_AM_Entry_t, gex_name)",
        offset_of!(Entry, name),
    ),
];
