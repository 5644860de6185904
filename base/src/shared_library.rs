//! Libraries that are loaded when they are wanted, never linked.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A library that was loaded.
///
/// It is never unloaded: it may have threads.
#[derive(Debug, Clone, Copy)]
pub struct SharedLibrary(NonNull<c_void>);

impl SharedLibrary {
    /// Loads the first of these files that can be, as the loader finds them, and says which.
    ///
    /// # Errors
    /// Why none can be loaded.
    pub fn first_of(names: &[&Path]) -> Result<(Self, String), String> {
        let mut reasons = Vec::new();
        for name in names {
            match load(name) {
                Ok(library) => return Ok((Self(library), name.display().to_string())),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }

    /// The address of a function.
    #[must_use]
    pub fn find(self, symbol: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the library is loaded and stays so; the name is a C string.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), symbol.as_ptr()) })
    }

    /// The address of a function as this version of the library's interface has it.
    #[cfg(target_env = "gnu")]
    #[must_use]
    pub fn find_version(self, symbol: &CStr, version: &CStr) -> Option<NonNull<c_void>> {
        let (symbol, version) = (symbol.as_ptr(), version.as_ptr());
        // SAFETY: as in `find`.
        NonNull::new(unsafe { libc::dlvsym(self.0.as_ptr(), symbol, version) })
    }

    /// Loaders of other C libraries have no versions.
    #[cfg(not(target_env = "gnu"))]
    #[must_use]
    pub fn find_version(self, _symbol: &CStr, _version: &CStr) -> Option<NonNull<c_void>> {
        None
    }
}

fn load(name: &Path) -> Result<NonNull<c_void>, String> {
    let Ok(c_name) = CString::new(name.as_os_str().as_bytes()) else {
        return Err(format!("{} is no file name", name.display()));
    };
    // SAFETY: loading runs the library's own initializers, as its user wants.
    let library = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if let Some(library) = NonNull::new(library) {
        return Ok(library);
    }
    // SAFETY: called right behind the failure, on the thread that had it.
    let reason = unsafe { libc::dlerror() };
    if reason.is_null() {
        return Err(format!("{} cannot be loaded", name.display()));
    }
    // SAFETY: not null, so a C string, which stays until the thread's next call.
    let reason = unsafe { CStr::from_ptr(reason) };
    Err(reason.to_string_lossy().into_owned())
}

/// Defines `Functions`, the functions of a library that are called, and how they are found by name.
#[macro_export]
macro_rules! library_functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of a library.
        #[derive(Clone, Copy)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Functions {
            /// Finds all, or names the first that is missing.
            ///
            /// # Safety
            /// `find` gives the address of the C function of each name, or `None`.
            unsafe fn find(
                find: impl Fn(&core::ffi::CStr) -> Option<core::ptr::NonNull<core::ffi::c_void>>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let symbol: &'static core::ffi::CStr = $symbol;
                        let address = find(symbol)
                            .ok_or(symbol.to_str().unwrap_or("a function"))?;
                        // SAFETY: the caller says that it is the function of this name, whose type
                        // the specification gives.
                        unsafe {
                            core::mem::transmute::<
                                core::ptr::NonNull<core::ffi::c_void>,
                                unsafe extern "C" fn($($argument),*) $(-> $answer)?,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}
