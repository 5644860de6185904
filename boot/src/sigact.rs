//! Signal handlers, the timer that backs them, and operations that are allowed in one.
//!
//! Each function keeps its argument for safety to itself. All of them may be called in a signal
//! handler, except [`Timer::create`] and [`give_alternate_stack`].
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::{mem, ptr};
use std::io;
use std::time::Duration;

use crate::sys;

/// A signal as it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) signal: c_int,
    /// Its sender: `SI_TIMER`, `SI_USER`, a band code of a descriptor, ...
    pub(crate) code: c_int,
}

/// A handler of signals; `handle` must be async-signal-safe.
pub(crate) trait Handle {
    fn handle(arrival: Arrival);
}

extern "C" fn enter<H: Handle>(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the calling thread's errno; the interrupted code must find it as it was.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; `info` is the kernel's, which calls this with SA_SIGINFO.
    let (before, code) = unsafe { (*errno, (*info).si_code) };
    H::handle(Arrival { signal, code });
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Action of a signal.
#[derive(Clone, Copy)]
pub(crate) struct Action(libc::sigaction);

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Action({:#x})", self.0.sa_sigaction)
    }
}

impl Action {
    /// The present action of `signal`.
    pub(crate) fn of(signal: c_int) -> Self {
        // SAFETY: zero is a valid `sigaction`; the pointers are to live objects or null.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut action);
            Self(action)
        }
    }

    /// The default.
    pub(crate) fn default_one() -> Self {
        // SAFETY: zero is a valid `sigaction`: the default action and an empty mask.
        Self(unsafe { mem::zeroed() })
    }

    /// Nothing.
    pub(crate) fn ignoring() -> Self {
        let mut action = Self::default_one();
        action.0.sa_sigaction = libc::SIG_IGN;
        action
    }

    /// Interrupted calls go on where they can, the alternate stack is used, and no other signal is
    /// held back.
    pub(crate) fn calling<H: Handle>() -> Self {
        let mut action = Self::default_one();
        action.0.sa_sigaction = Self::entry::<H>();
        action.0.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        action
    }

    /// On the thread's own stack: for a handler that formats much text, because an alternate one
    /// may be as small as 8 KiB.
    pub(crate) fn on_own_stack(mut self) -> Self {
        self.0.sa_flags &= !libc::SA_ONSTACK;
        self
    }

    fn entry<H: Handle>() -> usize {
        enter::<H> as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
    }

    pub(crate) fn calls<H: Handle>(&self) -> bool {
        self.0.sa_sigaction == Self::entry::<H>()
    }

    pub(crate) fn is_default(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_DFL
    }

    /// The handler's address, if a function is called.
    pub(crate) fn function(&self) -> Option<usize> {
        let address = self.0.sa_sigaction;
        (address != libc::SIG_DFL && address != libc::SIG_IGN).then_some(address)
    }

    /// Makes `signal` do this, and returns its action before.
    pub(crate) fn install(&self, signal: c_int) -> Self {
        let mut before = Self::default_one();
        // SAFETY: both point to live `sigaction`s; the function in `self`, if any, is `enter` of a
        // `Handle`, which is async-signal-safe by that trait's contract, or was this signal's
        // handler before.
        unsafe { libc::sigaction(signal, &self.0, &mut before.0) };
        before
    }
}

/// Sends `signal` to this thread, which takes it at once unless it blocks it.
pub(crate) fn raise(signal: c_int) {
    // SAFETY: takes a number and touches no memory.
    unsafe { libc::raise(signal) };
}

/// Ends this process by `signal` as if it were not caught.
pub(crate) fn die_by(signal: c_int) -> ! {
    Action::default_one().install(signal);
    sys::SignalSet::of(&[signal]).unblock();
    raise(signal);
    // The default of this signal was not to end the process.
    sys::exit_now(128 + (signal & 0x7f) as u8)
}

/// Whether this thread seems to run one of the program's own signal handlers: it is on its
/// alternate stack, or it blocks a signal for which a handler is installed that `is_ours` does not
/// know.
///
/// (A thread that blocks such a signal for good looks the same; a handler installed with
/// `SA_NODEFER` on the normal stack is not seen.)
pub(crate) fn in_signal_handler(is_ours: impl Fn(&Action) -> bool) -> bool {
    // SAFETY: zero is a valid `stack_t`; asks only.
    let on_alternate_stack = unsafe {
        let mut stack: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut stack) == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
    };
    on_alternate_stack
        || sys::SignalSet::blocked().numbers().any(|signal| {
            let action = Action::of(signal);
            action.function().is_some() && !is_ours(&action)
        })
}

/// Gives this thread an alternate stack with room for some handlers on top of each other, unless it
/// has one.
///
/// It stays for good. The stack of Rust's standard library has room for one.
pub(crate) fn give_alternate_stack() {
    const BYTES: usize = 256 << 10;
    // SAFETY: zero is a valid `stack_t`; the memory mapped is this call's alone, of the length
    // given, and never unmapped.
    unsafe {
        let mut stack: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut stack);
        let none = stack.ss_flags & libc::SS_DISABLE != 0;
        let used = stack.ss_flags & libc::SS_ONSTACK != 0;
        if used || (!none && stack.ss_size >= BYTES) {
            return;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return; // As without one.
        }
        stack.ss_sp = memory;
        stack.ss_size = BYTES;
        stack.ss_flags = 0;
        libc::sigaltstack(&stack, ptr::null_mut());
    }
}

/// A timer of this process that sends it a signal once.
#[derive(Debug)]
pub(crate) struct Timer(usize);

impl Timer {
    pub(crate) fn create(signal: c_int) -> io::Result<Self> {
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: zero is a valid `sigevent`; the pointers are to live objects.
        let made = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = signal;
            libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer)
        };
        match made {
            0 => Ok(Self(timer as usize)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets it off `after` now, in place of any earlier setting.
    pub(crate) fn arm(&self, after: Duration) {
        let after = after.max(Duration::from_millis(1));
        let value = libc::timespec {
            tv_sec: after.as_secs() as libc::time_t,
            tv_nsec: i64::from(after.subsec_nanos()),
        };
        // SAFETY: the timer was created by this process, which never deletes it; zero is a valid
        // interval (none).
        unsafe {
            let mut spec: libc::itimerspec = mem::zeroed();
            spec.it_value = value;
            libc::timer_settime(self.0 as libc::timer_t, 0, &spec, ptr::null_mut());
        }
    }
}

/// Makes the kernel send `signal` to this process when the other end of `socket` has gone.
pub(crate) fn signal_on_hang_up(socket: std::os::fd::BorrowedFd<'_>, signal: c_int) {
    use std::os::fd::AsRawFd;
    /// Linux's number on all processors; the libc crate has none.
    const F_SETSIG: c_int = 10;
    let raw = socket.as_raw_fd();
    // SAFETY: flags and owner of a live descriptor; numbers only.
    unsafe {
        libc::fcntl(raw, libc::F_SETOWN, libc::getpid());
        libc::fcntl(raw, F_SETSIG, signal);
        let flags = libc::fcntl(raw, libc::F_GETFL);
        libc::fcntl(raw, libc::F_SETFL, flags | libc::O_ASYNC);
    }
}

/// Writes all file systems' buffers.
pub(crate) fn sync_file_systems() {
    // SAFETY: no precondition.
    unsafe { libc::sync() };
}
