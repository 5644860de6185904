//! State that a process has once, because C asks for it by functions without an object.

use core::ffi::{CStr, c_char, c_int};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::tools::errors::{self, Mechanism};
use crate::tools::rwlock::Held;
use crate::tools::ticks::{Rate, Reading};
use crate::tools::trace::{Callback, Line};

/// Headers of this version refer to it.
#[unsafe(no_mangle)]
static argonett_version_1: c_char = 1;

/// The function that fatal errors call for a backtrace; C programs may store another.
///
/// Any thread reads it.
#[unsafe(no_mangle)]
static gasnett_print_backtrace_ifenabled: AtomicPtr<()> =
    AtomicPtr::new(errors::print_if_enabled as *mut ());

/// The function that fatal errors call for a backtrace.
pub(crate) fn backtrace_function() -> extern "C" fn(c_int) -> c_int {
    let stored = gasnett_print_backtrace_ifenabled.load(Ordering::Acquire);
    if stored.is_null() {
        return errors::print_if_enabled;
    }
    // SAFETY: the header declares the variable as a pointer to a function of this type, so C stores
    // nothing else.
    unsafe { std::mem::transmute::<*mut (), extern "C" fn(c_int) -> c_int>(stored) }
}

/// The mechanisms that `gasnett_backtrace_init` has found; null before.
///
/// Stored whole and never changed.
static MECHANISMS: AtomicPtr<Vec<Mechanism>> = AtomicPtr::new(std::ptr::null_mut());

/// Keeps `chosen` for the rest of the process, as signal handlers may be reading what was before.
pub(crate) fn keep_mechanisms(chosen: Vec<Mechanism>) {
    MECHANISMS.store(Box::into_raw(Box::new(chosen)), Ordering::Release);
}

pub(crate) fn mechanisms() -> Option<&'static [Mechanism]> {
    // SAFETY: null, or what `keep_mechanisms` leaked, which no thread changes; the Acquire pairs
    // with its Release.
    unsafe { MECHANISMS.load(Ordering::Acquire).as_ref() }.map(Vec::as_slice)
}

/// Counter and clock as they were when this was first called: before `main`.
pub(crate) fn begin_reading() -> Reading {
    static BEGIN: OnceLock<Reading> = OnceLock::new();
    *BEGIN.get_or_init(Reading::now)
}

/// The rate of the tick counter, once it has been found.
pub(crate) fn rate() -> &'static OnceLock<Rate> {
    static RATE: OnceLock<Rate> = OnceLock::new();
    &RATE
}

/// A rate that is never above it, for intervals that end before it can be found.
pub(crate) fn coarse_rate() -> &'static OnceLock<Rate> {
    static COARSE: OnceLock<Rate> = OnceLock::new();
    &COARSE
}

/// The name of this host, for as long as the process lives.
pub(crate) fn hostname(find: fn() -> CString) -> &'static CStr {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(find)
}

/// The path of this program, likewise.
pub(crate) fn exe_name(find: fn() -> CString) -> &'static CStr {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(find)
}

/// Whether a variable is shown for the first time.
pub(crate) fn first_shown(name: &str) -> bool {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    shown.insert(name.to_owned())
}

/// The client's addition to statistics.
pub(crate) fn stats_callback() -> &'static OnceLock<(Callback, Line)> {
    static CALLBACK: OnceLock<(Callback, Line)> = OnceLock::new();
    &CALLBACK
}

thread_local! {
    static LETTERS: RefCell<CString> = RefCell::default();
}

/// Keeps a text until this thread asks again.
pub(crate) fn keep_letters(letters: String) -> *const c_char {
    LETTERS.with_borrow_mut(|kept| {
        *kept = CString::new(letters).unwrap_or_default();
        kept.as_ptr()
    })
}

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// The checked locks that this thread holds.
pub(crate) fn with_held<T>(work: impl FnOnce(&mut Vec<Held>) -> T) -> T {
    HELD.with(|held| work(&mut held.borrow_mut()))
}
