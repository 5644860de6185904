//! The operations, one function for each type and way of completion.

use core::ffi::{c_int, c_void};

use argonet_event::Event;

use crate::export::export;
use crate::ratomic::domain::Domain;
use crate::ratomic::operation::Operation;

macro_rules! operations {
    ($($type:ty: $nb:ident = $nb_name:literal, $nbi:ident = $nbi_name:literal;)*) => {
        export! {$(
            fn $nb(ad: *const Domain, result: *mut $type, rank: u32, addr: *mut c_void, op: u32, op1: $type, op2: $type, flags: u32) -> Event {
                // SAFETY: as the header asks.
                unsafe { Operation::new($nb_name, ad, rank, addr, op, flags) }.explicit(result, op1, op2)
            }

            fn $nbi(ad: *const Domain, result: *mut $type, rank: u32, addr: *mut c_void, op: u32, op1: $type, op2: $type, flags: u32) -> c_int {
                // SAFETY: as the header asks.
                let operation = unsafe { Operation::new($nbi_name, ad, rank, addr, op, flags) };
                c_int::from(!operation.implicit(result, op1, op2))
            }
        )*}
    };
}

operations! {
    i32: argonet_ad_nb_I32 = "gex_AD_OpNB_I32", argonet_ad_nbi_I32 = "gex_AD_OpNBI_I32";
    u32: argonet_ad_nb_U32 = "gex_AD_OpNB_U32", argonet_ad_nbi_U32 = "gex_AD_OpNBI_U32";
    i64: argonet_ad_nb_I64 = "gex_AD_OpNB_I64", argonet_ad_nbi_I64 = "gex_AD_OpNBI_I64";
    u64: argonet_ad_nb_U64 = "gex_AD_OpNB_U64", argonet_ad_nbi_U64 = "gex_AD_OpNBI_U64";
    f32: argonet_ad_nb_FLT = "gex_AD_OpNB_FLT", argonet_ad_nbi_FLT = "gex_AD_OpNBI_FLT";
    f64: argonet_ad_nb_DBL = "gex_AD_OpNB_DBL", argonet_ad_nbi_DBL = "gex_AD_OpNBI_DBL";
}
