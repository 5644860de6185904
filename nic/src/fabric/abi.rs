//! Types and constants of the library's interface in C, of version 1.11 of its API.
//!
//! Facts of the library's headers. Later versions only add members behind those here: structures
//! that the library allocates are read up to there, those that it reads or fills have
//! [`Later`] behind them.

use core::ffi::{c_char, c_int, c_void};

/// A version as the library writes it.
pub(super) const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The version of the API that is asked for, and the oldest library that is used.
pub(super) const API: u32 = version(1, 11);

pub(crate) const EAGAIN: isize = 11;
pub(super) const ENOSYS: c_int = 38;
pub(crate) const ENODATA: c_int = 61;
/// An error waits in a completion queue.
pub(crate) const EAVAIL: isize = 259;

// Flags and capabilities.
pub(crate) const MSG: u64 = 1 << 1;
pub(crate) const RECV: u64 = 1 << 10;
pub(crate) const SEND: u64 = 1 << 11;
pub(super) const SOURCE: u64 = 1 << 57;
pub(super) const NUMERICHOST: u64 = 1 << 55;

// Modes: demands of a provider on its client.
pub(crate) const CONTEXT: u64 = 1 << 59;
pub(crate) const MSG_PREFIX: u64 = 1 << 58;
pub(crate) const CONTEXT2: u64 = 1 << 52;

// Demands on memory.
pub(crate) const MR_LOCAL: c_int = 1 << 2;
pub(crate) const MR_VIRT_ADDR: c_int = 1 << 4;
pub(crate) const MR_ALLOCATED: c_int = 1 << 5;
pub(crate) const MR_PROV_KEY: c_int = 1 << 6;

pub(crate) const EP_DGRAM: u32 = 2;
pub(crate) const EP_RDM: u32 = 3;

/// Sends to one peer arrive in their order.
pub(crate) const ORDER_SAS: u64 = 1 << 8;

/// All calls of a domain's objects come one after the other.
pub(crate) const THREAD_DOMAIN: u32 = 3;
/// Whether the provider sees to it that none of its queues overflows.
pub(crate) const RM_UNSPEC: u32 = 0;
pub(crate) const RM_DISABLED: u32 = 1;
pub(crate) const RM_ENABLED: u32 = 2;
/// Data moves only while the client calls.
pub(crate) const PROGRESS_MANUAL: u32 = 2;

pub(super) const AV_UNSPEC: u32 = 0;
pub(super) const AV_MAP: u32 = 1;
/// The address of a peer that could not be inserted.
pub(super) const ADDR_NOTAVAIL: u64 = u64::MAX;

// Formats of addresses that are those of the Internet.
pub(super) const SOCKADDR: u32 = 1;
pub(super) const SOCKADDR_IN: u32 = 2;
pub(super) const SOCKADDR_IN6: u32 = 3;
pub(super) const ADDR_STR: u32 = 9;

pub(super) const CQ_FORMAT_MSG: u32 = 2;
pub(super) const WAIT_NONE: u32 = 0;
pub(super) const WAIT_FD: u32 = 3;

// Commands of `control`.
pub(super) const GETWAIT: c_int = 5;
pub(super) const ENABLE: c_int = 6;

/// Members that later versions have behind those of this one, as zeros.
pub(super) type Later = [u64; 8];

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) tclass: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) total_buffered_recv: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct EpAttr {
    pub(crate) endpoint: u32,
    pub(crate) protocol: u32,
    pub(crate) protocol_version: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) msg_prefix_size: usize,
    pub(crate) max_order_raw_size: usize,
    pub(crate) max_order_war_size: usize,
    pub(crate) max_order_waw_size: usize,
    pub(crate) mem_tag_format: u64,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) auth_key: *mut u8,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct DomainAttr {
    pub(crate) domain: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) threading: u32,
    pub(crate) control_progress: u32,
    pub(crate) data_progress: u32,
    pub(crate) resource_mgmt: u32,
    pub(crate) av_type: u32,
    pub(crate) mr_mode: c_int,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) cq_cnt: usize,
    pub(crate) ep_cnt: usize,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) max_ep_tx_ctx: usize,
    pub(crate) max_ep_rx_ctx: usize,
    pub(crate) max_ep_stx_ctx: usize,
    pub(crate) max_ep_srx_ctx: usize,
    pub(crate) cntr_cnt: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) auth_key: *mut u8,
    pub(crate) auth_key_size: usize,
    pub(crate) max_err_data: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) tclass: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FabricAttr {
    pub(crate) fabric: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) prov_name: *mut c_char,
    pub(crate) prov_version: u32,
    pub(crate) api_version: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Info {
    pub(crate) next: *mut Info,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) addr_format: u32,
    pub(crate) src_addrlen: usize,
    pub(crate) dest_addrlen: usize,
    pub(crate) src_addr: *mut c_void,
    pub(crate) dest_addr: *mut c_void,
    pub(crate) handle: *mut c_void,
    pub(crate) tx_attr: *mut TxAttr,
    pub(crate) rx_attr: *mut RxAttr,
    pub(crate) ep_attr: *mut EpAttr,
    pub(crate) domain_attr: *mut DomainAttr,
    pub(crate) fabric_attr: *mut FabricAttr,
    pub(crate) nic: *mut c_void,
}

/// The first member of every object.
#[repr(C)]
pub(crate) struct Fid {
    pub(crate) class: usize,
    pub(crate) context: *mut c_void,
    pub(crate) ops: *const Ops,
}

/// A function of a table; a provider may leave it out.
pub(crate) type Call<F> = Option<F>;

type Object = *mut Fid;
type Bind = unsafe extern "C" fn(Object, Object, u64) -> c_int;
type Control = unsafe extern "C" fn(Object, c_int, *mut c_void) -> c_int;

/// The first members of a table of functions: `size` says up to where the provider has it.
#[repr(C)]
pub(crate) struct Ops {
    pub(crate) size: usize,
    pub(crate) close: Call<unsafe extern "C" fn(Object) -> c_int>,
    pub(crate) bind: Call<Bind>,
    pub(crate) control: Call<Control>,
}

/// Opens an object of a parent, as most calls do that make one.
pub(super) type Open<A> =
    unsafe extern "C" fn(Object, *mut A, *mut *mut c_void, *mut c_void) -> c_int;
pub(super) type TryWait = unsafe extern "C" fn(Object, *mut Object, c_int) -> c_int;

#[repr(C)]
pub(crate) struct FabricOps {
    pub(crate) size: usize,
    pub(crate) domain: Call<Open<Info>>,
    pub(crate) passive_ep: *const c_void,
    pub(crate) eq_open: *const c_void,
    pub(crate) wait_open: *const c_void,
    pub(crate) trywait: Call<TryWait>,
}

#[repr(C)]
pub(crate) struct FidFabric {
    pub(crate) fid: Fid,
    pub(crate) ops: *const FabricOps,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct DomainOps {
    pub(crate) size: usize,
    pub(crate) av_open: Call<Open<AvAttr>>,
    pub(crate) cq_open: Call<Open<CqAttr>>,
    pub(crate) endpoint: Call<Open<Info>>,
}

pub(super) type Register = unsafe extern "C" fn(
    Object,
    *const c_void,
    usize,
    u64,
    u64,
    u64,
    u64,
    *mut *mut c_void,
    *mut c_void,
) -> c_int;

#[repr(C)]
pub(crate) struct MrOps {
    pub(crate) size: usize,
    pub(crate) reg: Call<Register>,
}

#[repr(C)]
pub(crate) struct FidDomain {
    pub(crate) fid: Fid,
    pub(crate) ops: *const DomainOps,
    pub(crate) mr: *const MrOps,
}

#[repr(C)]
pub(crate) struct FidMr {
    pub(crate) fid: Fid,
    pub(crate) mem_desc: *mut c_void,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct AvAttr {
    pub(crate) kind: u32,
    pub(crate) rx_ctx_bits: c_int,
    pub(crate) count: usize,
    pub(crate) ep_per_node: usize,
    pub(crate) name: *const c_char,
    pub(crate) map_addr: *mut c_void,
    pub(crate) flags: u64,
    pub(super) later: Later,
}

pub(super) type Insert =
    unsafe extern "C" fn(Object, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int;

#[repr(C)]
pub(crate) struct AvOps {
    pub(crate) size: usize,
    pub(crate) insert: Call<Insert>,
}

#[repr(C)]
pub(crate) struct FidAv {
    pub(crate) fid: Fid,
    pub(crate) ops: *const AvOps,
}

#[repr(C)]
pub(crate) struct CqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) format: u32,
    pub(crate) wait_obj: u32,
    pub(crate) signaling_vector: c_int,
    pub(crate) wait_cond: u32,
    pub(crate) wait_set: *mut c_void,
    pub(super) later: Later,
}

/// A completion.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CqEntry {
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
}

/// An operation that failed.
#[repr(C)]
pub(crate) struct CqError {
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: *mut c_void,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    pub(crate) olen: usize,
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) err_data: *mut c_void,
    pub(crate) err_data_size: usize,
    pub(super) later: Later,
}

pub(super) type Read = unsafe extern "C" fn(Object, *mut CqEntry, usize) -> isize;
pub(super) type ReadError = unsafe extern "C" fn(Object, *mut CqError, u64) -> isize;
pub(super) type ErrorText =
    unsafe extern "C" fn(Object, c_int, *const c_void, *mut c_char, usize) -> *const c_char;

#[repr(C)]
pub(crate) struct CqOps {
    pub(crate) size: usize,
    pub(crate) read: Call<Read>,
    pub(crate) readfrom: *const c_void,
    pub(crate) readerr: Call<ReadError>,
    pub(crate) sread: *const c_void,
    pub(crate) sreadfrom: *const c_void,
    pub(crate) signal: *const c_void,
    pub(crate) strerror: Call<ErrorText>,
}

#[repr(C)]
pub(crate) struct FidCq {
    pub(crate) fid: Fid,
    pub(crate) ops: *const CqOps,
}

pub(super) type GetName = unsafe extern "C" fn(Object, *mut c_void, *mut usize) -> c_int;

#[repr(C)]
pub(crate) struct CmOps {
    pub(crate) size: usize,
    pub(crate) setname: *const c_void,
    pub(crate) getname: Call<GetName>,
}

/// Sends or receives: the endpoint, a buffer and its length, the buffer's descriptor, the peer, and
/// the context of the operation.
pub(super) type Transfer =
    unsafe extern "C" fn(Object, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize;
pub(super) type Inject = unsafe extern "C" fn(Object, *const c_void, usize, u64) -> isize;

#[repr(C)]
pub(crate) struct MsgOps {
    pub(crate) size: usize,
    pub(crate) recv: Call<Transfer>,
    pub(crate) recvv: *const c_void,
    pub(crate) recvmsg: *const c_void,
    pub(crate) send: Call<Transfer>,
    pub(crate) sendv: *const c_void,
    pub(crate) sendmsg: *const c_void,
    pub(crate) inject: Call<Inject>,
}

#[repr(C)]
pub(crate) struct FidEp {
    pub(crate) fid: Fid,
    pub(crate) ops: *const c_void,
    pub(crate) cm: *const CmOps,
    pub(crate) msg: *const MsgOps,
    pub(crate) rma: *const c_void,
    pub(crate) tagged: *const c_void,
    pub(crate) atomic: *const c_void,
    pub(crate) collective: *const c_void,
}

macro_rules! layout {
    ($($of:ty: $bytes:literal $(, $member:ident $at:literal)*;)*) => {
        $(
            static_assertions::const_assert_eq!(size_of::<$of>(), $bytes);
            $(static_assertions::const_assert_eq!(core::mem::offset_of!($of, $member), $at);)*
        )*
    };
}

layout! {
    TxAttr: 80, mode 8, inject_size 40, size 48, tclass 72;
    RxAttr: 64, mode 8, total_buffered_recv 40, size 48;
    EpAttr: 96, protocol 4, max_msg_size 16, msg_prefix_size 24, mem_tag_format 56, auth_key 88;
    DomainAttr: 192, threading 16, data_progress 24, av_type 32, mr_mode 36, mr_key_size 40, caps 136, mr_cnt 176, tclass 184;
    FabricAttr: 32, prov_name 16, prov_version 24, api_version 28;
    Info: 120, mode 16, addr_format 24, src_addrlen 32, src_addr 48, tx_attr 72, ep_attr 88, fabric_attr 104, nic 112;
    Fid: 24, ops 16;
    Ops: 32, close 8, bind 16, control 24;
    FabricOps: 48, domain 8, trywait 40;
    FidFabric: 40, ops 24;
    DomainOps: 32, av_open 8, cq_open 16, endpoint 24;
    MrOps: 16, reg 8;
    FidDomain: 40, ops 24, mr 32;
    FidMr: 40, mem_desc 24, key 32;
    AvAttr: 112, count 8, flags 40, later 48;
    AvOps: 16, insert 8;
    FidAv: 32, ops 24;
    CqAttr: 104, format 16, wait_obj 20, wait_cond 28, wait_set 32, later 40;
    CqEntry: 24, flags 8, len 16;
    CqError: 144, olen 48, err 56, prov_errno 60, err_data 64, later 80;
    CqOps: 64, read 8, readerr 24, strerror 56;
    FidCq: 32, ops 24;
    CmOps: 24, getname 16;
    MsgOps: 64, recv 8, send 32, inject 56;
    FidEp: 80, cm 32, msg 40, collective 72;
}
