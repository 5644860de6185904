//! Types of the job's functions under C's names.

use core::ffi::{c_char, c_int, c_void};

use crate::export::names;
use crate::job::endpoint::Location;
use crate::job::segment::{Info, Kind};
use crate::job::system::{Node, ProgressThread};
use crate::job::{Client, Endpoint, Segment, Team, Variant};

names! {
    u16 = "gex_EP_Index_t",
    u32 = "uint32_t",
    *const Variant = "const struct argonet_variant *",
    *const Client = "gex_Client_t",
    *mut *const Client = "gex_Client_t *",
    *const Endpoint = "gex_EP_t",
    *const *const Endpoint = "gex_EP_t *",
    *mut *const Endpoint = "gex_EP_t *",
    *const Segment = "gex_Segment_t",
    *mut *const Segment = "gex_Segment_t *",
    *const Team = "gex_TM_t",
    *mut *const Team = "gex_TM_t *",
    *const Kind = "gex_MK_t",
    *mut *const Kind = "gex_MK_t *",
    Location = "gex_EP_Location_t",
    *mut Location = "gex_EP_Location_t *",
    *mut Info = "gasnet_seginfo_t *",
    *mut Node = "gasnet_nodeinfo_t *",
    *mut u32 = "uint32_t *",
    *mut c_int = "int *",
    *mut usize = "size_t *",
    *mut *mut c_void = "void **",
    *mut *mut *mut c_char = "char ***",
    *mut *const u32 = "gex_RankInfo_t **",
    *mut *const ProgressThread = "const gex_ProgressThreadInfo_t **",
}
