//! Memory of the process's own.

use core::ffi::c_void;
use core::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::export::export;
use crate::job::fatal;

export! {
    /// Memory of the process's own, which begins with a page.
    fn argonet_map_memory(bytes: usize) -> *mut c_void {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever there is room.
        match unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) } {
            Ok(memory) => memory,
            Err(error) => fatal("gasnett_mmap", &format!("{bytes} bytes could not be mapped: {error}")),
        }
    }
}
