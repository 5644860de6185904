//! Domains of remote atomic operations.

use core::ffi::c_void;
use core::mem::offset_of;

use argonet_engine::{DataType, Operation};

use crate::context::communicating;
use crate::export::export;
use crate::job::{CData, Team, fatal, given, team};
use crate::ratomic::checks;

/// Target of a `gex_AD_t`: a team, a type, and the operations that are allowed on it.
#[repr(C)]
pub(crate) struct Domain {
    /// The handle that the client gave.
    ///
    /// Headers use it without a call.
    team: *const Team,
    /// 1 if ranks of the team are those of the job.
    ///
    /// Headers use it.
    is_world: u64,
    pub(super) dt: DataType,
    /// Bits of `gex_OP_t`.
    pub(super) operations: u32,
    /// As the client gave them.
    flags: u32,
    cdata: CData,
}

impl Domain {
    pub(super) fn team(&self) -> &Team {
        // SAFETY: checked when the domain was made; `gex_TM_Destroy` refuses a team that has
        // domains.
        unsafe { &*self.team }
    }
}

/// The domain of a handle.
///
/// # Safety
/// Null, or of a domain that has not been destroyed.
pub(super) unsafe fn domain<'a>(handle: *const Domain, function: &str) -> &'a Domain {
    // SAFETY: this function's contract.
    unsafe { given(handle, function, "ad") }
}

/// The type that atomic operations have of that number.
fn data_type(dt: u32, function: &str) -> DataType {
    match DataType::try_from(dt) {
        Ok(known) if known.atomics() != 0 => known,
        _ => fatal(
            function,
            &format!(
                "dt is {dt:#x}; give one of GEX_DT_I32, U32, I64, U64, FLT and DBL, not several"
            ),
        ),
    }
}

/// Ends the job unless all operations exist on the type.
fn check_operations(dt: DataType, ops: u32, function: &str) {
    if ops == 0 {
        fatal(function, "ops are 0; give at least one of GEX_OP_*");
    }
    let wrong = ops & !dt.atomics();
    if wrong != 0 {
        let names: Vec<_> = Operation::all()
            .filter(|op| wrong & op.bit() != 0)
            .map(Operation::name)
            .collect();
        let which = match names.is_empty() {
            true => format!("{wrong:#x}"),
            false => names.join(", "),
        };
        fatal(
            function,
            &format!(
                "ops are {ops:#x}: {which} is no atomic operation on {}; leave it out, or take another type",
                dt.name()
            ),
        );
    }
}

export! {
    fn gex_AD_Create(ad_p: *mut *const Domain, tm: *const Team, dt: u32, ops: u32, flags: u32) {
        const FUNCTION: &str = "gex_AD_Create";
        if ad_p.is_null() {
            fatal(FUNCTION, "ad_p is null; pass where the domain goes");
        }
        // SAFETY: a team of ours, or null.
        let of = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        let dt = data_type(dt, FUNCTION);
        check_operations(dt, ops, FUNCTION);
        communicating(FUNCTION, |job, ctx| {
            if job.debug {
                checks::creation(job, ctx, of, [dt.into(), ops, flags], FUNCTION);
            }
        });
        of.add_domain();
        let made = Box::new(Domain {
            team: tm,
            is_world: of.as_made().is_none().into(),
            dt,
            operations: ops,
            flags,
            cdata: CData::default(),
        });
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe { ad_p.write(Box::into_raw(made)) };
    }

    fn gex_AD_Destroy(ad: *const Domain) {
        const FUNCTION: &str = "gex_AD_Destroy";
        // SAFETY: as the header asks.
        let given = unsafe { domain(ad, FUNCTION) };
        communicating(FUNCTION, |_, _| ());
        given.team().remove_domain();
        // SAFETY: leaked by `gex_AD_Create`, and the client says that it does not use it any more.
        // Operations that are under way do not refer to it.
        drop(unsafe { Box::from_raw(ad.cast_mut()) });
    }

    fn gex_AD_QueryTM(ad: *const Domain) -> *const Team {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_QueryTM") }.team
    }

    fn gex_AD_QueryDT(ad: *const Domain) -> u32 {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_QueryDT") }.dt.into()
    }

    fn gex_AD_QueryOps(ad: *const Domain) -> u32 {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_QueryOps") }.operations
    }

    fn gex_AD_QueryFlags(ad: *const Domain) -> u32 {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_QueryFlags") }.flags
    }

    fn gex_AD_SetCData(ad: *const Domain, value: *const c_void) {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_SetCData") }.cdata.set(value);
    }

    fn gex_AD_QueryCData(ad: *const Domain) -> *mut c_void {
        // SAFETY: as the header asks.
        unsafe { domain(ad, "gex_AD_QueryCData") }.cdata.get()
    }
}

pub(super) const LAYOUT: &[(&str, usize)] = &[
    (
        "offsetof(struct argonet_domain_s, team)",
        offset_of!(Domain, team),
    ),
    (
        "offsetof(struct argonet_domain_s, is_world)",
        offset_of!(Domain, is_world),
    ),
];
