//! The variant that this process was linked with: the library of a conduit and a thread mode, which
//! registers itself before `main`.

use core::ffi::{CStr, c_char, c_int};
use core::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use argonet_base::gasnet::number32;
use argonet_conduit::ThreadMode;

use crate::export::export;
use crate::job::SegmentMode;

/// `struct argonet_variant`: which library a program was linked with.
///
/// A static of that library.
#[repr(C)]
pub(crate) struct Variant {
    version: u32,
    mode: u32,
    debug: u32,
    segment: u32,
    conduit: *const c_char,
    /// Its clients' values of `GASNET_ERR_*`, in the order of [`Code`].
    errors: [c_int; CODES],
}

/// Changes with [`Variant`].
const VERSION: u32 = number32("ARGONET_VARIANT_VERSION");

/// How many codes there are beside `GASNET_OK`.
const CODES: usize = 5;

/// The error that a call returns.
///
/// Its number depends on the conduit that a program was linked for.
#[repr(usize)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    NotInit,
    Resource,
    BadArg,
    NotReady,
    BarrierMismatch,
}

/// The numbers that most conduits have.
///
/// Those of a process are what its linked library says.
const COMMON: [c_int; CODES] = [
    number32("GASNET_ERR_NOT_INIT") as c_int,
    number32("GASNET_ERR_RESOURCE") as c_int,
    number32("GASNET_ERR_BAD_ARG") as c_int,
    number32("GASNET_ERR_NOT_READY") as c_int,
    number32("GASNET_ERR_BARRIER_MISMATCH") as c_int,
];

impl Code {
    pub(crate) const ALL: [Self; CODES] = [
        Self::NotInit,
        Self::Resource,
        Self::BadArg,
        Self::NotReady,
        Self::BarrierMismatch,
    ];

    /// As the clients of this process have it.
    pub(crate) fn number(self) -> c_int {
        linked().map_or(&COMMON, |variant| &variant.errors)[self as usize]
    }

    /// The code of a number.
    pub(crate) fn of(number: c_int) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

impl Variant {
    /// Whether its library is of the version that this one is.
    pub(crate) fn fits(&self) -> bool {
        self.version == VERSION
    }

    pub(crate) fn is_debug(&self) -> bool {
        self.debug != 0
    }

    pub(crate) fn mode(&self) -> Option<ThreadMode> {
        [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par]
            .get(self.mode as usize)
            .copied()
    }

    pub(crate) fn segment(&self) -> Option<SegmentMode> {
        use SegmentMode::{Everything, Fast, Large};
        let all = [Fast, Large, Everything];
        all.get(self.segment as usize).copied()
    }

    /// As `ARGONET_CONDUIT` names it; nothing if it does not say.
    pub(crate) fn conduit(&self) -> &str {
        if self.conduit.is_null() {
            return "";
        }
        // SAFETY: the variant's library passes a string, which stays.
        let conduit = unsafe { CStr::from_ptr(self.conduit) };
        conduit.to_str().unwrap_or_default()
    }
}

/// The variant that was linked.
///
/// Stored before `main`, or when a job starts; loaded by all.
static LINKED: AtomicPtr<Variant> = AtomicPtr::new(null_mut());

/// The library of a conduit that this process was linked with, if it has said so.
pub(crate) fn linked() -> Option<&'static Variant> {
    // SAFETY: null, or a static of the variant's library, complete before it was stored (Release
    // there, Acquire here).
    unsafe { LINKED.load(Ordering::Acquire).as_ref() }
}

/// Records the variant that the process was linked with.
pub(crate) fn linked_with(variant: &'static Variant) {
    if variant.fits() {
        LINKED.store(std::ptr::from_ref(variant).cast_mut(), Ordering::Release);
    }
}

export! {
    /// The library of a conduit calls it before `main`.
    fn argonet_linked_with(variant: *const Variant) {
        // SAFETY: the variant's library passes a static of its own.
        if let Some(variant) = unsafe { variant.as_ref() } {
            linked_with(variant);
        }
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(struct argonet_variant)", size_of::<Variant>()),
    (
        "offsetof(struct argonet_variant, mode)",
        offset_of!(Variant, mode),
    ),
    (
        "offsetof(struct argonet_variant, debug)",
        offset_of!(Variant, debug),
    ),
    (
        "offsetof(struct argonet_variant, segment)",
        offset_of!(Variant, segment),
    ),
    (
        "offsetof(struct argonet_variant, conduit)",
        offset_of!(Variant, conduit),
    ),
    (
        "offsetof(struct argonet_variant, errors)",
        offset_of!(Variant, errors),
    ),
];
