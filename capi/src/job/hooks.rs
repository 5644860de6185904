//! Variables of the library's that a program may define or set.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use argonet_settings::SegmentLimit;

use crate::job::fatal;

// The variables are in the small library of the conduit and mode, or the program's own. These are
// weak references, so that the shared library finds what the program has, which it could not if it
// had variables of these names itself.
global_asm!(
    ".pushsection .data.rel.argonet_hooks,\"aw\",%progbits",
    ".balign 8",
    ".globl argonet_hooks_at",
    ".hidden argonet_hooks_at",
    ".type argonet_hooks_at,%object",
    ".size argonet_hooks_at,24",
    "argonet_hooks_at:",
    ".irp name, gasnet_max_segsize_str, gasnet_max_segsize, gasnet_client_attach_hook",
    ".weak \\name",
    ".quad \\name",
    ".endr",
    ".popsection",
);

/// Where the variables are, or null.
#[repr(C)]
struct HooksAt {
    segment_text: *const AtomicPtr<c_char>,
    segment_bytes: *const AtomicU64,
    attached: *const AtomicPtr<c_void>,
}

// SAFETY: the pointers are written by the linker alone, and their targets are atomic.
unsafe impl Sync for HooksAt {}

unsafe extern "C" {
    safe static argonet_hooks_at: HooksAt;
}

type Hook = unsafe extern "C" fn(*mut c_void, usize);

/// The program's limit for segments, where the user sets none.
pub(crate) fn segment_limit() -> Option<SegmentLimit> {
    // SAFETY: null, or a variable that lives as long as the program.
    let text = unsafe { argonet_hooks_at.segment_text.as_ref() };
    let text = text.map_or(null_mut(), |text| text.load(Ordering::Relaxed));
    if text.is_null() {
        // SAFETY: as above.
        let bytes = unsafe { argonet_hooks_at.segment_bytes.as_ref() }?.load(Ordering::Relaxed);
        return (bytes != 0).then(|| limit("gasnet_max_segsize", &format!("{bytes}/P")));
    }
    // SAFETY: the program's string, which ends with 0.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    Some(limit("gasnet_max_segsize_str", &text))
}

fn limit(variable: &str, text: &str) -> SegmentLimit {
    match SegmentLimit::parse(text) {
        Ok(limit) => limit,
        Err(error) => fatal(
            "gex_Client_Init",
            &format!(
                "the program's {variable} is \"{}\": {error}",
                text.escape_debug()
            ),
        ),
    }
}

/// Passes the base and the bytes of the attached segment to the program's hook.
pub(crate) fn segment_is_there(base: *mut c_void, bytes: usize) {
    // SAFETY: null, or a variable that lives as long as the program.
    let hook = unsafe { argonet_hooks_at.attached.as_ref() };
    let hook = hook.map_or(null_mut(), |hook| hook.load(Ordering::Acquire));
    if hook.is_null() {
        return;
    }
    // SAFETY: the program's function of this type, as the header declares the variable.
    let hook: Hook = unsafe { core::mem::transmute(hook) };
    // SAFETY: as above; the memory is mapped.
    unsafe { hook(base, bytes) };
}
