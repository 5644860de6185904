//! Types and constants of the library's interface in C, as facts of the reference implementation's
//! header.

use core::ffi::{c_int, c_uint, c_void};

pub(super) const OK: c_int = 0;
pub(super) const EQ_DROPPED: c_int = 3;
pub(super) const EQ_EMPTY: c_int = 4;
pub(super) const ARG_INVALID: c_int = 1;
pub(super) const IGNORED: c_int = 6;
pub(super) const IN_USE: c_int = 7;
pub(super) const LIST_TOO_LONG: c_int = 8;
pub(super) const NO_SPACE: c_int = 10;
pub(super) const PT_FULL: c_int = 12;
pub(super) const PT_IN_USE: c_int = 14;

/// Names of the calls' answers, by number.
pub(super) const ANSWERS: [&str; 16] = [
    "PTL_OK",
    "PTL_ARG_INVALID",
    "PTL_CT_NONE_REACHED",
    "PTL_EQ_DROPPED",
    "PTL_EQ_EMPTY",
    "PTL_FAIL",
    "PTL_IGNORED",
    "PTL_IN_USE",
    "PTL_LIST_TOO_LONG",
    "PTL_NO_INIT",
    "PTL_NO_SPACE",
    "PTL_PID_IN_USE",
    "PTL_PT_FULL",
    "PTL_PT_EQ_NEEDED",
    "PTL_PT_IN_USE",
    "PTL_ABORTED",
];

pub(super) type Handle = u32;

pub(super) const INTERFACE_DEFAULT: c_uint = u32::MAX;
pub(super) const PID_ANY: u32 = 0xffff;
pub(super) const PORTAL_ANY: u32 = u32::MAX;
pub(super) const RANK_ANY: u32 = u32::MAX;
pub(super) const NO_QUEUE: Handle = 0x3fff_ffff;
pub(super) const NO_COUNTER: Handle = 0x5fff_ffff;

pub(super) const NI_MATCHING: c_uint = 1;
pub(super) const NI_LOGICAL: c_uint = 4;

pub(super) const PT_FLOW_CONTROL: c_uint = 2;

pub(super) const MD_COUNT_REPLY: c_uint = 1 << 2;
pub(super) const MD_COUNT_ACK: c_uint = 1 << 3;
pub(super) const MD_SEND_DISABLE: c_uint = 1 << 7;
pub(super) const MD_COUNT_BYTES: c_uint = 1 << 14;

pub(super) const ME_PUT: c_uint = 1 << 1;
pub(super) const ME_GET: c_uint = 1 << 2;
pub(super) const ME_USE_ONCE: c_uint = 1 << 3;
pub(super) const ME_LINK_DISABLE: c_uint = 1 << 6;
pub(super) const ME_COMM_DISABLE: c_uint = 1 << 7;
pub(super) const ME_UNLINK_DISABLE: c_uint = 1 << 11;
pub(super) const ME_COUNT_COMM: c_uint = 1 << 12;
pub(super) const ME_COUNT_BYTES: c_uint = 1 << 14;
pub(super) const ME_MANAGE_LOCAL: c_uint = 1 << 15;
pub(super) const ME_NO_TRUNCATE: c_uint = 1 << 16;

pub(super) const PRIORITY_LIST: u8 = 0;

pub(super) const ACK_NONE: u8 = 0;
pub(super) const ACK_EVENT: u8 = 1;
pub(super) const ACK_COUNT: u8 = 2;

pub(super) const EVENT_GET: u8 = 0;
pub(super) const EVENT_PUT: u8 = 2;
pub(super) const EVENT_ATOMIC: u8 = 4;
pub(super) const EVENT_FETCH_ATOMIC: u8 = 6;
pub(super) const EVENT_REPLY: u8 = 8;
pub(super) const EVENT_SEND: u8 = 9;
pub(super) const EVENT_ACK: u8 = 10;
pub(super) const EVENT_DISABLED: u8 = 11;
pub(super) const EVENT_AUTO_UNLINK: u8 = 13;

pub(super) const FAIL_NONE: u8 = 0;
pub(super) const FAIL_UNDELIVERABLE: u8 = 1;
pub(super) const FAIL_DROPPED: u8 = 2;
pub(super) const FAIL_DISABLED: u8 = 3;
pub(super) const FAIL_PERMISSION: u8 = 4;
pub(super) const FAIL_OPERATION: u8 = 5;
pub(super) const FAIL_NO_MATCH: u8 = 6;

pub(super) const OP_SUM: u8 = 2;
pub(super) const OP_SWAP: u8 = 10;
pub(super) const OP_COMPARE_SWAP: u8 = 11;
pub(super) const TYPE_U64: u8 = 8;

/// `ptl_sr_index_t`.
pub(super) const REGISTER_DROPS: c_uint = 0;
pub(super) const REGISTER_PERMISSIONS: c_uint = 1;
pub(super) const REGISTER_OPERATIONS: c_uint = 2;

/// `ptl_process_t`, a union of a rank and the pair of node and process.
///
/// A rank is in the first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(super) struct Process {
    pub(super) nid_or_rank: u32,
    pub(super) pid: u32,
}

/// `ptl_ni_limits_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct NiLimits {
    pub(super) entries: c_int,
    pub(super) unexpected_headers: c_int,
    pub(super) descriptors: c_int,
    pub(super) counters: c_int,
    pub(super) queues: c_int,
    pub(super) last_portal: c_int,
    pub(super) iovecs: c_int,
    pub(super) list: c_int,
    pub(super) triggered: c_int,
    pub(super) message_bytes: u64,
    pub(super) atomic_bytes: u64,
    pub(super) fetch_atomic_bytes: u64,
    pub(super) waw_ordered_bytes: u64,
    pub(super) war_ordered_bytes: u64,
    pub(super) volatile_bytes: u64,
    pub(super) features: c_uint,
}

/// `ptl_md_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Md {
    pub(super) start: *mut c_void,
    pub(super) length: u64,
    pub(super) options: c_uint,
    pub(super) queue: Handle,
    pub(super) counter: Handle,
}

/// `ptl_me_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Me {
    pub(super) start: *mut c_void,
    pub(super) length: u64,
    pub(super) counter: Handle,
    pub(super) uid: u32,
    pub(super) options: c_uint,
    pub(super) source: Process,
    pub(super) match_bits: u64,
    pub(super) ignore_bits: u64,
    pub(super) min_free: u64,
}

/// `ptl_ct_event_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(super) struct CtEvent {
    pub(super) success: u64,
    pub(super) failure: u64,
}

/// `ptl_event_t`.
///
/// Which members are set depends on the kind; at the initiator it is `user`, `kind`, `fail`, the
/// moved length and offset.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RawEvent {
    pub(super) start: u64,
    pub(super) user: u64,
    pub(super) header: u64,
    pub(super) match_bits: u64,
    pub(super) requested: u64,
    pub(super) moved: u64,
    pub(super) remote_offset: u64,
    pub(super) initiator: Process,
    pub(super) uid: u32,
    pub(super) portal: u32,
    pub(super) kind: u8,
    pub(super) list: u8,
    pub(super) fail: u8,
    pub(super) atomic_op: u8,
    pub(super) atomic_type: u8,
}

static_assertions::const_assert_eq!(size_of::<Process>(), 8);
static_assertions::const_assert_eq!(size_of::<NiLimits>(), 96);
static_assertions::const_assert_eq!(size_of::<Md>(), 32);
static_assertions::const_assert_eq!(size_of::<Me>(), 64);
static_assertions::const_assert_eq!(size_of::<CtEvent>(), 16);
static_assertions::const_assert_eq!(size_of::<RawEvent>(), 80);
static_assertions::const_assert_eq!(core::mem::offset_of!(RawEvent, kind), 72);
static_assertions::const_assert_eq!(core::mem::offset_of!(NiLimits, message_bytes), 40);

/// A place that a library fills which may think it larger than it is here: `T`, and 256 bytes
/// behind it that show by a pattern whether they were written.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Guarded<T> {
    pub(super) value: T,
    behind: [u8; 256],
}

impl<T> Guarded<T> {
    const PATTERN: u8 = 0xa5;

    pub(super) fn new(value: T) -> Self {
        Self {
            value,
            behind: [Self::PATTERN; 256],
        }
    }

    /// Whether nothing behind the value was written.
    pub(super) fn is_whole(&self) -> bool {
        self.behind.iter().all(|byte| *byte == Self::PATTERN)
    }
}

impl RawEvent {
    /// All bits set, as no event is.
    pub(super) const UNSET: Self = Self {
        start: u64::MAX,
        user: u64::MAX,
        header: u64::MAX,
        match_bits: u64::MAX,
        requested: u64::MAX,
        moved: u64::MAX,
        remote_offset: u64::MAX,
        initiator: Process {
            nid_or_rank: u32::MAX,
            pid: u32::MAX,
        },
        uid: u32::MAX,
        portal: u32::MAX,
        kind: u8::MAX,
        list: u8::MAX,
        fail: u8::MAX,
        atomic_op: u8::MAX,
        atomic_type: u8::MAX,
    };
}
