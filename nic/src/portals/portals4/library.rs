//! Loading the library.

use super::abi::{CtEvent, Handle, Md, Me, NiLimits, Process};
use crate::portals::NicError;
use argonet_base::library_functions;
use argonet_base::shared_library::SharedLibrary;
use argonet_settings::{PORTALS_LIBRARY, Settings};
use core::ffi::{c_int, c_uint, c_void};
use core::fmt;
use std::path::Path;

/// Where a library is looked for that no setting names: by the loader, the name with its version
/// first.
const NAMES: [&str; 2] = ["libportals.so.4", "libportals.so"];

library_functions! {
    init = c"PtlInit" () -> c_int;
    fini = c"PtlFini" ();
    ni_init = c"PtlNIInit" (c_uint, c_uint, u32, *const NiLimits, *mut NiLimits, *mut Handle) -> c_int;
    ni_fini = c"PtlNIFini" (Handle) -> c_int;
    ni_status = c"PtlNIStatus" (Handle, c_uint, *mut c_int) -> c_int;
    set_map = c"PtlSetMap" (Handle, u64, *const Process) -> c_int;
    get_map = c"PtlGetMap" (Handle, u64, *mut Process, *mut u64) -> c_int;
    get_uid = c"PtlGetUid" (Handle, *mut u32) -> c_int;
    get_phys_id = c"PtlGetPhysId" (Handle, *mut Process) -> c_int;
    pt_alloc = c"PtlPTAlloc" (Handle, c_uint, Handle, u32, *mut u32) -> c_int;
    pt_free = c"PtlPTFree" (Handle, u32) -> c_int;
    pt_enable = c"PtlPTEnable" (Handle, u32) -> c_int;
    pt_disable = c"PtlPTDisable" (Handle, u32) -> c_int;
    me_append = c"PtlMEAppend" (Handle, u32, *const Me, u8, *mut c_void, *mut Handle) -> c_int;
    me_unlink = c"PtlMEUnlink" (Handle) -> c_int;
    md_bind = c"PtlMDBind" (Handle, *const Md, *mut Handle) -> c_int;
    md_release = c"PtlMDRelease" (Handle) -> c_int;
    eq_alloc = c"PtlEQAlloc" (Handle, u64, *mut Handle) -> c_int;
    eq_free = c"PtlEQFree" (Handle) -> c_int;
    eq_get = c"PtlEQGet" (Handle, *mut c_void) -> c_int;
    ct_alloc = c"PtlCTAlloc" (Handle, *mut Handle) -> c_int;
    ct_free = c"PtlCTFree" (Handle) -> c_int;
    ct_get = c"PtlCTGet" (Handle, *mut CtEvent) -> c_int;
    ct_set = c"PtlCTSet" (Handle, CtEvent) -> c_int;
    put = c"PtlPut" (Handle, u64, u64, u8, Process, u32, u64, u64, *mut c_void, u64) -> c_int;
    get = c"PtlGet" (Handle, u64, u64, Process, u32, u64, u64, *mut c_void) -> c_int;
    atomic = c"PtlAtomic" (Handle, u64, u64, u8, Process, u32, u64, u64, *mut c_void, u64, u8, u8) -> c_int;
    fetch_atomic = c"PtlFetchAtomic" (Handle, u64, Handle, u64, u64, Process, u32, u64, u64, *mut c_void, u64, u8, u8) -> c_int;
    swap = c"PtlSwap" (Handle, u64, Handle, u64, u64, Process, u32, u64, u64, *mut c_void, u64, *const c_void, u8, u8) -> c_int;
}

/// A library of Portals 4, loaded.
///
/// It is never unloaded: it may have threads.
#[derive(Clone)]
pub struct Library {
    pub(super) call: Functions,
    name: String,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &self.name).finish()
    }
}

impl Library {
    /// Loads the library that `ARGONET_PORTALS_LIBRARY` names, or the one that the loader finds.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_settings(settings: &Settings) -> Result<Self, NicError> {
        Self::open(settings.get(&PORTALS_LIBRARY).as_deref())
    }

    /// Loads the library at `path`; without one the library that the loader finds as
    /// `libportals.so.4` or `libportals.so`.
    ///
    /// # Errors
    /// [`NicError::NoLibrary`] where there is none; [`NicError::WrongLibrary`] if it lacks a
    /// function of Portals 4, as libraries of Portals 3.3 do.
    pub fn open(path: Option<&Path>) -> Result<Self, NicError> {
        let candidates = match path {
            Some(path) => vec![path],
            None => NAMES.map(Path::new).to_vec(),
        };
        let (library, name) = SharedLibrary::first_of(&candidates)
            .map_err(|reason| NicError::NoLibrary { reason })?;
        // SAFETY: a library whose file is called libportals, or that the user names as such, has
        // functions of the specification's types under the specification's names; `probe.rs`
        // compares their results.
        let found = unsafe { Functions::find(|symbol| library.find(symbol)) };
        match found {
            Ok(call) => Ok(Self { call, name }),
            Err(symbol) => Err(NicError::WrongLibrary {
                library: name,
                what: format!("it has no function {symbol}"),
            }),
        }
    }

    /// The name that it was loaded by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
