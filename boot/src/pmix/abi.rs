//! Structures and numbers of libpmix that are used here, as its headers `pmix_common.h` and
//! `pmix.h` have them: 2.2, 3.1, 3.2, 4.2, 5.0 and 6.1 alike, but for what is said at [`Data`].

use core::ffi::{CStr, c_int, c_void};
use core::mem::offset_of;

use static_assertions::const_assert;

/// `PMIX_SUCCESS`.
pub(super) const SUCCESS: c_int = 0;
/// `PMIX_ERR_NOT_FOUND`.
pub(super) const NOT_FOUND: c_int = -46;

/// `PMIX_RANK_WILDCARD`, all processes of a namespace.
pub(super) const ALL_RANKS: u32 = u32::MAX - 1;

/// `PMIX_GLOBAL`, for the processes of all hosts.
pub(super) const GLOBAL: u8 = 3;

/// `PMIX_BOOL`.
pub(super) const BOOL: u16 = 1;
/// `PMIX_UINT32`.
pub(super) const UINT32: u16 = 14;
/// `PMIX_BYTE_OBJECT`.
pub(super) const BYTE_OBJECT: u16 = 27;

/// `PMIX_JOB_SIZE`, as a C string like all keys.
pub(super) const JOB_SIZE: &CStr = c"pmix.job.size";
/// `PMIX_COLLECT_DATA`: a fence brings all values to all hosts.
pub(super) const COLLECT_DATA: &CStr = c"pmix.collect";
/// `PMIX_IMMEDIATE`: a value that has not come is an error, and not waited for.
pub(super) const IMMEDIATE: &CStr = c"pmix.immediate";

/// `PMIX_MAX_NSLEN`, and the end of the text.
pub(super) const NAMESPACE_BYTES: usize = 256;
/// `PMIX_MAX_KEYLEN`, and the end of the text.
pub(super) const KEY_BYTES: usize = 512;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) namespace: [u8; NAMESPACE_BYTES],
    pub(super) rank: u32,
}

/// `pmix_byte_object_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ByteObject {
    pub(super) bytes: *mut c_void,
    pub(super) size: usize,
}

/// The union in `pmix_value_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union Data {
    pub(super) flag: bool,
    pub(super) uint32: u32,
    pub(super) object: ByteObject,
    /// As long as the longest part, `pmix_envar_t`.
    ///
    /// Version 2 has none longer than a byte object: the library's own values may end there, and
    /// arrays of [`Info`] differ.
    pub(super) all: [u64; 3],
}

/// `pmix_value_t`.
#[repr(C)]
pub(super) struct Value {
    pub(super) kind: u16,
    pub(super) data: Data,
}

/// `pmix_info_t`.
#[repr(C)]
pub(super) struct Info {
    pub(super) key: [u8; KEY_BYTES],
    pub(super) flags: u32,
    pub(super) value: Value,
}

const_assert!(size_of::<Process>() == 260 && offset_of!(Process, rank) == 256);
const_assert!(size_of::<ByteObject>() == 16 && offset_of!(ByteObject, size) == 8);
const_assert!(size_of::<Value>() == 32 && offset_of!(Value, data) == 8);
const_assert!(size_of::<Info>() == 552 && offset_of!(Info, flags) == 512);
const_assert!(offset_of!(Info, value) == 520);
