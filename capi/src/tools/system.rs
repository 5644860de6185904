//! The host, the process and its limits.

use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;

use crate::export::export;
use crate::tools::errors::fatal;
use crate::tools::{environment, state, text};

fn hostname() -> CString {
    rustix::system::uname().nodename().to_owned()
}

fn exe_name() -> CString {
    let path = std::env::current_exe().unwrap_or_default();
    CString::new(path.into_os_string().into_vec()).unwrap_or_default()
}

fn cpu_count() -> c_int {
    // SAFETY: takes a number.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    c_int::try_from(count).unwrap_or(0).max(0)
}

/// Whether the limit is as high as it may be, unless the user has forbidden it.
fn maximize(resource: c_int, description: &str) -> bool {
    let name = format!("GASNET_MAXIMIZE_{description}");
    if !environment::yes_or(&name, true) {
        return true;
    }
    let Ok(resource) = u32::try_from(resource) else {
        return false;
    };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives; a bad number is refused.
    unsafe {
        if libc::getrlimit(resource as _, &mut limit) != 0 {
            return false;
        }
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(resource as _, &limit) == 0
    }
}

export! {
    /// The name of this host.
    fn argonett_hostname() -> *const c_char {
        state::hostname(hostname).as_ptr()
    }

    /// The full path of this program, empty if unknown.
    fn argonett_exe_name() -> *const c_char {
        state::exe_name(exe_name).as_ptr()
    }

    /// The processors of this host that run; 0 if unknown.
    fn argonett_cpu_count() -> c_int {
        cpu_count()
    }

    /// The bytes of memory of this host.
    ///
    /// If that is unknown, ends the program where `fatal_if_unknown`, else 0.
    fn argonett_physical_memory(fatal_if_unknown: c_int) -> u64 {
        // SAFETY: takes numbers.
        let (pages, bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        if pages > 0 && bytes > 0 {
            return pages as u64 * bytes as u64;
        }
        if fatal_if_unknown != 0 {
            fatal("gasnett_getPhysMemSz", "the size of the memory is unknown");
        }
        0
    }

    /// Binds this thread to one processor, counted around; 0 if that worked.
    fn argonett_set_affinity(rank: c_int) -> c_int {
        let Some(cpu) = rank.checked_rem_euclid(cpu_count()) else {
            return 1;
        };
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        c_int::from(rustix::thread::sched_setaffinity(None, &set).is_err())
    }

    /// Lets other threads run.
    fn argonett_sched_yield() {
        std::thread::yield_now();
    }

    /// Writes what C's and Rust's streams hold.
    fn argonett_flush_streams() {
        // The call has no result to report a stream by that cannot be written, or is closed.
        let _ = std::io::stdout().flush();
        // SAFETY: null means all output streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }

    /// Ends the process with no exit handler.
    fn argonett_exit_now(code: c_int) {
        // SAFETY: no precondition.
        unsafe { libc::_exit(code) }
    }

    /// Raises a limit of this process as far as it may; whether that worked.
    fn argonett_maximize_rlimit(resource: c_int, description: *const c_char) -> c_int {
        // SAFETY: a string or null, as the header says.
        c_int::from(maximize(resource, &unsafe { text(description) }))
    }

    /// The same for time and memory; whether all worked.
    fn argonett_maximize_rlimits() -> c_int {
        let limits = [
            (libc::RLIMIT_CPU as c_int, "RLIMIT_CPU"),
            (libc::RLIMIT_DATA as c_int, "RLIMIT_DATA"),
            (libc::RLIMIT_STACK as c_int, "RLIMIT_STACK"),
            (libc::RLIMIT_RSS as c_int, "RLIMIT_RSS"),
            (libc::RLIMIT_AS as c_int, "RLIMIT_AS"),
        ];
        let done = limits.map(|(resource, name)| maximize(resource, name));
        c_int::from(done.iter().all(|done| *done))
    }

    /// Handles a signal by another function; the one before.
    fn argonett_reghandler(signal: c_int, handler: Option<extern "C" fn(c_int)>) -> Option<extern "C" fn(c_int)> {
        // SAFETY: no handler is SIG_DFL, and SIG_IGN is a value that the C library knows and that
        // is not called here.
        let before = unsafe {
            libc::signal(signal, std::mem::transmute::<Option<extern "C" fn(c_int)>, libc::sighandler_t>(handler))
        };
        if before == libc::SIG_ERR {
            fatal("gasnett_reghandler", &format!("signal {signal} cannot be handled"));
        }
        // SAFETY: the C library keeps SIG_DFL, which is no handler, SIG_IGN, or a function of this
        // type.
        unsafe { std::mem::transmute::<libc::sighandler_t, Option<extern "C" fn(c_int)>>(before) }
    }
}
