//! Loading the library.

use super::abi::{self, FabricAttr, FidFabric, Info};
use super::error::{FabricError, Version};
use argonet_base::library_functions;
use argonet_base::shared_library::SharedLibrary;
use argonet_settings::{FABRIC_LIBRARY, Settings};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use std::path::Path;
use std::sync::Arc;

/// The library as the loader finds it.
const NAME: &str = "libfabric.so.1";

/// Versions of functions whose types are those here, the latest first.
///
/// Later versions of a function take structures that are longer, and a library keeps the earlier
/// ones.
const VERSIONS: [&CStr; 3] = [c"FABRIC_1.3", c"FABRIC_1.1", c"FABRIC_1.0"];

library_functions! {
    version = c"fi_version" () -> u32;
    strerror = c"fi_strerror" (c_int) -> *const c_char;
    getinfo = c"fi_getinfo" (u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
    freeinfo = c"fi_freeinfo" (*mut Info);
    dupinfo = c"fi_dupinfo" (*const Info) -> *mut Info;
    fabric = c"fi_fabric" (*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int;
}

/// libfabric, loaded.
#[derive(Clone)]
pub struct Library {
    pub(super) call: Functions,
    name: Arc<str>,
    version: Version,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, .. } = self;
        write!(f, "libfabric {version} ({name})")
    }
}

impl Library {
    /// Loads the library that `ARGONET_FABRIC_LIBRARY` names, or the one that the loader finds.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_settings(settings: &Settings) -> Result<Self, FabricError> {
        Self::open(settings.get(&FABRIC_LIBRARY).as_deref())
    }

    /// Loads the library at `path`; without one what the loader finds as `libfabric.so.1`.
    ///
    /// # Errors
    /// [`FabricError::NoLibrary`] where there is none; [`FabricError::WrongLibrary`] if it lacks a
    /// function; [`FabricError::TooOld`] if its API is older than 1.11.
    pub fn open(path: Option<&Path>) -> Result<Self, FabricError> {
        let (library, name) = SharedLibrary::first_of(&[path.unwrap_or(Path::new(NAME))])
            .map_err(|reason| FabricError::NoLibrary { reason })?;
        let find = |symbol: &CStr| -> Option<NonNull<c_void>> {
            let mut versions = VERSIONS.iter();
            versions
                .find_map(|version| library.find_version(symbol, version))
                .or_else(|| library.find(symbol))
        };
        // SAFETY: a library whose file is called libfabric, or that the user names as such, has
        // functions of the types of these versions under these names.
        match unsafe { Functions::find(find) } {
            Ok(call) => Self::with(call, &name),
            Err(function) => Err(FabricError::WrongLibrary {
                library: name,
                function,
            }),
        }
    }

    /// A library of these functions, if it is new enough.
    pub(super) fn with(call: Functions, name: &str) -> Result<Self, FabricError> {
        // SAFETY: the function has no arguments and no conditions.
        let version = Version(unsafe { (call.version)() });
        let least = Version(abi::API);
        if version < least {
            return Err(FabricError::TooOld {
                library: name.to_owned(),
                found: version,
                least,
            });
        }
        Ok(Self {
            call,
            name: name.into(),
            version,
        })
    }

    /// The name that it was loaded by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The library's words for an error, which may be negative as calls return it.
    pub(crate) fn text(&self, code: i64) -> String {
        let code = c_int::try_from(code.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: any number may be asked for.
        unsafe { text((self.call.strerror)(code)) }
    }
}

/// A text of the library; empty if there is none.
///
/// # Safety
/// It is null, or a C string that stays for the time of the call.
pub(super) unsafe fn text(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a C string, as the caller says.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_string_lossy().into_owned()
}
