//! libpmix: loading it, and its calls as functions that are safe.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int};
use core::{ptr, slice};
use std::ffi::CString;
use std::path::Path;

use argonet_base::library_functions;
use argonet_base::shared_library::SharedLibrary;

use super::abi::{
    ALL_RANKS, BOOL, BYTE_OBJECT, ByteObject, COLLECT_DATA, Data, GLOBAL, IMMEDIATE, Info,
    JOB_SIZE, KEY_BYTES, NAMESPACE_BYTES, NOT_FOUND, Process, SUCCESS, UINT32, Value,
};
use super::message::{Answer, MAX_VALUE_BYTES};
use crate::foreign::printable;

/// The library as the loader finds it.
const NAME: &str = "libpmix.so.2";

library_functions! {
    version = c"PMIx_Get_version" () -> *const c_char;
    error = c"PMIx_Error_string" (c_int) -> *const c_char;
    init = c"PMIx_Init" (*mut Process, *mut Info, usize) -> c_int;
    put = c"PMIx_Put" (u8, *const c_char, *mut Value) -> c_int;
    commit = c"PMIx_Commit" () -> c_int;
    fence = c"PMIx_Fence" (*const Process, usize, *const Info, usize) -> c_int;
    get = c"PMIx_Get" (*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
    abort = c"PMIx_Abort" (c_int, *const c_char, *mut Process, usize) -> c_int;
    finalize = c"PMIx_Finalize" (*const Info, usize) -> c_int;
}

/// libpmix, loaded.
pub(crate) struct Library {
    call: Functions,
    name: String,
    /// This process, as the server knows it.
    own: Process,
}

impl Library {
    /// Loads the library at `path`; without one what the loader finds as `libpmix.so.2`.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, String> {
        let (library, name) = SharedLibrary::first_of(&[path.unwrap_or(Path::new(NAME))]).map_err(
            |reason| {
                format!(
                    "no libpmix could be loaded: {reason}; install it (Debian has it as libpmix2), and name libpmix.so.2 by \
                     ARGONET_PMIX_LIBRARY or its directory by LD_LIBRARY_PATH where the loader does not find it"
                )
            },
        )?;
        // SAFETY: a library whose file is called libpmix.so.2, or that the user names as such, has
        // functions of these types under these names.
        match unsafe { Functions::find(|symbol| library.find(symbol)) } {
            Ok(call) => Ok(Self::with(call, name)),
            Err(function) => Err(format!(
                "{name} is no libpmix: it has no function {function}; name another one by ARGONET_PMIX_LIBRARY"
            )),
        }
    }

    /// A library of these functions.
    fn with(call: Functions, name: String) -> Self {
        let (namespace, rank) = ([0; NAMESPACE_BYTES], 0);
        let own = Process { namespace, rank };
        Self { call, name, own }
    }

    /// Its version in its own words, and the name that it was loaded by.
    pub(crate) fn describe(&self) -> String {
        // SAFETY: the function has no arguments and no conditions.
        let version = unsafe { text((self.call.version)()) };
        format!("{version} ({})", self.name)
    }

    /// Connects to the launcher's server, which variables of the environment name; before all that
    /// follows.
    ///
    /// The library has threads from then on, and each thread may call it.
    pub(super) fn init(&mut self) -> Answer {
        // SAFETY: room for a process, and no array of hints.
        let code = unsafe { (self.call.init)(&raw mut self.own, ptr::null_mut(), 0) };
        self.check(code).map_err(|reason| {
            format!(
                "the launcher's server, which PMIX_SERVER_URI2 and the like name, cannot be used: {reason}; has it ended, or \
                 does it not know this process (in a container, of another user)?"
            )
        })
    }

    /// The rank of this process, and how many the job has.
    pub(super) fn place(&self) -> Result<(u32, u32), String> {
        let size = self.value(ALL_RANKS, JOB_SIZE, UINT32)?;
        let size = size.ok_or("the server does not know the job's size")?;
        // SAFETY: `value` gives a pointer to data of the kind that is asked for.
        Ok((self.own.rank, unsafe { (*size).uint32 }))
    }

    /// Puts a value that all hosts see after the fence.
    pub(super) fn put(&self, key: &str, value: &[u8]) -> Answer {
        let key = CString::new(key).map_err(|e| e.to_string())?;
        let (bytes, size) = (value.as_ptr().cast_mut().cast(), value.len());
        let object = ByteObject { bytes, size };
        let (kind, data) = (BYTE_OBJECT, Data { object });
        let mut value = Value { kind, data };
        // SAFETY: a C string, and a value of the kind that it says, which the library copies.
        let code = unsafe { (self.call.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        self.check(code)?;
        // SAFETY: the function has no arguments, and the library is initialized.
        self.check(unsafe { (self.call.commit)() })
    }

    /// Waits until all processes of the job have called this.
    pub(super) fn fence(&self) -> Answer {
        let all = self.process(ALL_RANKS);
        let collect = flag(COLLECT_DATA);
        // SAFETY: one process and one hint, each of the length that is said.
        let code = unsafe { (self.call.fence)(&raw const all, 1, &raw const collect, 1) };
        self.check(code)
    }

    /// The value that `owner` has put before the fence; `None` if it has not.
    pub(super) fn get(&self, owner: u32, key: &str) -> Answer {
        let key = CString::new(key).map_err(|e| e.to_string())?;
        let Some(data) = self.value(owner, &key, BYTE_OBJECT)? else {
            return Ok(None);
        };
        // SAFETY: `value` gives a pointer to data of the kind that is asked for.
        let object = unsafe { (*data).object };
        match object.size {
            0 => Ok(Some(Vec::new())),
            size if size > MAX_VALUE_BYTES || object.bytes.is_null() => Err(format!(
                "the value has {size} bytes, and at most {MAX_VALUE_BYTES} can be right"
            )),
            // SAFETY: not null, so as many bytes of the library's as it says.
            size => Ok(Some(
                unsafe { slice::from_raw_parts(object.bytes.cast(), size) }.to_vec(),
            )),
        }
    }

    /// Has the launcher end all processes of the job.
    pub(super) fn abort(&self, code: u32) -> Answer {
        let (code, words) = (code as c_int, c"argonet: the job could not start");
        // SAFETY: a C string; no array of processes stands for all.
        let code = unsafe { (self.call.abort)(code, words.as_ptr(), ptr::null_mut(), 0) };
        self.check(code)
    }

    /// This process needs the server no more; nothing may be called afterwards.
    pub(super) fn finish(&self) -> Answer {
        // SAFETY: no array of hints.
        let code = unsafe { (self.call.finalize)(ptr::null(), 0) };
        self.check(code)
    }

    fn process(&self, rank: u32) -> Process {
        Process { rank, ..self.own }
    }

    /// The data of a value that has to be of this kind.
    ///
    /// They stay, since this process ends soon.
    fn value(&self, owner: u32, key: &CStr, kind: u16) -> Result<Option<*const Data>, String> {
        let (owner, hint) = (self.process(owner), flag(IMMEDIATE));
        let (owner, hint) = (&raw const owner, &raw const hint);
        let mut value = ptr::null_mut();
        // SAFETY: a process, a C string, one hint, and room for a pointer.
        let code = unsafe { (self.call.get)(owner, key.as_ptr(), hint, 1, &raw mut value) };
        if code == NOT_FOUND {
            return Ok(None);
        }
        self.check(code)?;
        if value.is_null() {
            return Err("there is no value".into());
        }
        // SAFETY: not null, so a value of the library's, which has a kind.
        match unsafe { (*value).kind } {
            // SAFETY: the place of its data, of which nothing is read here.
            found if found == kind => Ok(Some(unsafe { &raw const (*value).data })),
            found => Err(format!("the value is of type {found}, not {kind}")),
        }
    }

    /// The library's words for what a function has returned, unless it is success.
    fn check(&self, code: c_int) -> Answer {
        if code == SUCCESS {
            return Ok(None);
        }
        // SAFETY: any number may be asked for.
        let words = unsafe { text((self.call.error)(code)) };
        Err(format!("{words} ({code})"))
    }
}

/// A hint that is set.
fn flag(key: &CStr) -> Info {
    let mut name = [0; KEY_BYTES];
    let key = key.to_bytes();
    name[..key.len()].copy_from_slice(key);
    let data = Data { flag: true };
    Info {
        key: name,
        flags: 0,
        value: Value { kind: BOOL, data },
    }
}

/// A text of the library; empty if there is none.
///
/// # Safety
/// It is null, or a C string that stays for the time of the call.
unsafe fn text(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a C string, as the caller says.
    let text = unsafe { CStr::from_ptr(at) };
    printable(&text.to_string_lossy())
}

#[cfg(test)]
mod tests;
