//! The system calls that rustix does not wrap, and operations that a process may do between fork
//! and exec or in a signal handler.
//!
//! Each function keeps its argument for safety to itself, so that the rest of the crate needs none.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::{fmt, mem, ptr};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::board::Fixed;
use crate::streams;
use rustix::process::{Pid, Signal, kill_process_group};

/// Number of threads of this process.
pub(crate) fn thread_count() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

/// Forks.
///
/// `None` in the child, the child's id in the parent.
///
/// # Errors
/// The system's; also when the process has a second thread, because the child could then find any
/// lock held forever.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    if thread_count()? != 1 {
        return Err(io::Error::other("the process has more than one thread"));
    }
    // SAFETY: checked above, this process has this thread only, so the child is a full copy in
    // which no lock is held by a thread that does not exist there; all code is allowed in the
    // child.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(pid))
}

/// Ends this process without running exit handlers, with a code that is not 0 if its output has
/// been lost.
///
/// Async-signal-safe.
pub(crate) fn exit_now(code: u8) -> ! {
    let code = streams::code_after_loss(code);
    // SAFETY: `_exit` has no precondition.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Writes a line on standard error in one piece, so that lines of several ranks do not run into
/// each other.
pub(crate) fn say(line: &str) {
    // Nothing can be done where standard error is closed.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A line that is made and written without allocating; text that does not fit is cut.
pub(crate) type Line = Fixed<512>;

/// Writes a line on standard error in one piece.
///
/// Async-signal-safe.
pub(crate) fn say_line(line: &Line) {
    // Nothing can be done where standard error is closed.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.text());
}

/// [`streams::flush`], then [`exit_now`].
pub(crate) fn flush_and_exit_now(code: u8) -> ! {
    streams::flush();
    exit_now(code)
}

/// Closes every descriptor of this process except those given.
///
/// Only for a process that was just forked and whose code uses nothing but `keep`.
pub(crate) fn close_all_except(keep: &[BorrowedFd<'_>]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut from = 0;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > from {
            // SAFETY: closing is the purpose; the caller uses no other descriptor afterwards (this
            // function's contract).
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd.saturating_add(1);
    }
}

/// `PIDFD_SIGNAL_PROCESS_GROUP`, since Linux 6.9.
const PIDFD_SIGNAL_PROCESS_GROUP: c_int = 1 << 2;

/// Sends `signal` to the process group that the process behind `pidfd` leads or led.
///
/// The descriptor pins the identity, so that a recycled process id is never hit; on kernels before
/// 6.9 the group is named by `id`, if there is one that cannot be another's. Async-signal-safe.
pub(crate) fn signal_group(pidfd: BorrowedFd<'_>, id: Option<Pid>, signal: Signal) {
    let raw = pidfd.as_raw_fd();
    // SAFETY: a live descriptor, a signal number and no siginfo: the kernel checks all of them.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            raw,
            signal.as_raw(),
            ptr::null::<c_void>(),
            PIDFD_SIGNAL_PROCESS_GROUP,
        )
    };
    let is_unknown = sent != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    if let Some(id) = id.filter(|_| is_unknown) {
        // A group without members is no error.
        let _ = kill_process_group(id, signal);
    }
}

/// Exit status, as wait(2) has it, of the process behind `pidfd`, which need not be a child and has
/// the id `pid`; `None` while it is not known: before it has ended, or, on kernels before 6.15,
/// once it has been reaped.
///
/// Async-signal-safe.
pub(crate) fn end_of_process(pidfd: BorrowedFd<'_>, pid: u32) -> Option<c_int> {
    /// `struct pidfd_info` in its first version.
    #[repr(C)]
    struct PidfdInfo {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    // _IOWR(0xff, 11, struct pidfd_info)
    const PIDFD_GET_INFO: u32 =
        3 << 30 | (mem::size_of::<PidfdInfo>() as u32) << 16 | 0xff << 8 | 11;
    let of_reaped = || {
        let mut info = PidfdInfo {
            mask: PIDFD_INFO_EXIT,
            cgroup: 0,
            ids: [0; 11],
            exit_code: 0,
        };
        // SAFETY: a live descriptor, and a struct of the size that the request names, which the
        // kernel reads and writes.
        let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
        (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
    };
    // It may be reaped between the two looks.
    of_reaped()
        .or_else(|| status_of_zombie(pid))
        .or_else(of_reaped)
}

/// The exit status of a process that has ended and has not been reaped.
///
/// Async-signal-safe.
fn status_of_zombie(pid: u32) -> Option<c_int> {
    let mut path = Fixed::<32>::default();
    fmt::Write::write_fmt(&mut path, format_args!("/proc/{pid}/stat")).ok()?;
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path.text(), flags, rustix::fs::Mode::empty()).ok()?;
    let mut bytes = [0; 1024];
    let len = rustix::io::read(&file, &mut bytes[..]).ok()?;
    let text = core::str::from_utf8(bytes.get(..len)?).ok()?;
    // The name, in brackets, may hold anything; the state follows, and the status is the last
    // field.
    let (_, fields) = text.rsplit_once(") ")?;
    let ended = fields.starts_with(['Z', 'X']);
    fields
        .trim_end()
        .rsplit(' ')
        .next()?
        .parse()
        .ok()
        .filter(|_| ended)
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of these signals.
    pub(crate) fn of(signals: &[c_int]) -> Self {
        let mut set = mem::MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initializes the set, the calls after it get an initialized one; a
        // bad number is refused.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in signals {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            Self(set.assume_init())
        }
    }

    /// The set of all signals.
    pub(crate) fn full() -> Self {
        let mut set = mem::MaybeUninit::uninit();
        // SAFETY: `sigfillset` initializes the set.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    /// Blocks these signals in this thread, in addition to those blocked; returns the set blocked
    /// before.
    pub(crate) fn block(&self) -> Self {
        self.mask(libc::SIG_BLOCK)
    }

    /// Makes this the set of signals blocked in this thread.
    ///
    /// Async-signal-safe.
    pub(crate) fn restore(&self) {
        self.mask(libc::SIG_SETMASK);
    }

    /// Unblocks these signals in this thread.
    ///
    /// Async-signal-safe.
    pub(crate) fn unblock(&self) {
        self.mask(libc::SIG_UNBLOCK);
    }

    /// Signals that this thread blocks.
    ///
    /// Async-signal-safe.
    pub(crate) fn blocked() -> Self {
        Self::of(&[]).mask(libc::SIG_BLOCK)
    }

    /// Its members.
    pub(crate) fn numbers(self) -> impl Iterator<Item = c_int> {
        (1..=libc::SIGRTMAX()).filter(move |&signal| {
            // SAFETY: the set is initialized; a bad number is refused.
            unsafe { libc::sigismember(&self.0, signal) == 1 }
        })
    }

    fn mask(&self, how: c_int) -> Self {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are initialized; `how` is one of the two valid constants above.
        unsafe { libc::pthread_sigmask(how, &self.0, &mut before.0) };
        before
    }

    /// A descriptor from which these signals, once blocked, can be read.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is initialized; -1 asks for a new descriptor, which no other code owns.
        unsafe {
            match libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(OwnedFd::from_raw_fd(fd)),
            }
        }
    }
}

/// The size of a record that is read from a signal descriptor; the first four bytes are the
/// signal's number.
pub(crate) const SIGNAL_RECORD_BYTES: usize = mem::size_of::<libc::signalfd_siginfo>();

/// The signal by which the guardian reports to a rank that the job is ending; a rank's own timer
/// and the end of the guardian send it, too.
///
/// A real-time signal near the top, where other libraries do not look for one.
pub(crate) fn job_signal() -> c_int {
    libc::SIGRTMAX() - 3
}

/// Sends [`job_signal`].
pub(crate) fn send_job_signal(pidfd: BorrowedFd<'_>) {
    // SAFETY: a live descriptor, a signal number and no siginfo: the kernel checks all of them.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            job_signal(),
            ptr::null::<c_void>(),
            0,
        );
    }
}

/// The C function that gives [`on_exit`] the exit code; without it the handler gets 0.
#[cfg(target_env = "gnu")]
mod exit_hook {
    use core::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    /// Registers `handler`; whether that worked.
    pub(super) fn register(handler: extern "C" fn(c_int, *mut c_void)) -> bool {
        // SAFETY: the handler ignores its argument and is a function of this crate, which lives as
        // long as the process.
        unsafe { on_exit(handler, core::ptr::null_mut()) == 0 }
    }
}

/// Calls `handler` with the exit code when the process exits by `exit` or by returning from main.
///
/// The handler gets 0 if the C library does not pass the code.
pub(crate) fn on_exit(handler: fn(c_int)) -> io::Result<()> {
    static HANDLER: std::sync::OnceLock<fn(c_int)> = std::sync::OnceLock::new();
    HANDLER
        .set(handler)
        .map_err(|_| io::Error::other("an exit handler has been registered already"))?;
    #[cfg(target_env = "gnu")]
    let registered = {
        extern "C" fn call(code: c_int, _argument: *mut c_void) {
            if let Some(handler) = HANDLER.get() {
                handler(code);
            }
        }
        exit_hook::register(call)
    };
    #[cfg(not(target_env = "gnu"))]
    let registered = {
        extern "C" fn call() {
            if let Some(handler) = HANDLER.get() {
                handler(0);
            }
        }
        // SAFETY: the handler lives as long as the process.
        unsafe { libc::atexit(call) == 0 }
    };
    if registered {
        Ok(())
    } else {
        Err(io::Error::other(
            "the C library has no room for an exit handler",
        ))
    }
}

/// The descriptor with this number, for examining it, if it is open.
pub(crate) fn examine_fd(raw: RawFd) -> Option<BorrowedFd<'static>> {
    if raw < 0 {
        return None;
    }
    // SAFETY: F_GETFD takes any number and only reports.
    if unsafe { libc::fcntl(raw, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, as checked above, and it stays open while start-up examines it: start-up
    // runs before the program closes descriptors that it does not know.
    Some(unsafe { BorrowedFd::borrow_raw(raw) })
}

/// A descriptor of the parent, in the child between fork and exec.
pub(crate) fn inherited_fd(raw: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the parent holds the descriptor open for as long as it starts ranks, and the child
    // has a copy of the parent's table and lives up to its exec only.
    unsafe { BorrowedFd::borrow_raw(raw) }
}

/// Takes possession of a descriptor that was inherited for this purpose, and makes it
/// close-on-exec.
pub(crate) fn adopt_fd(examined: BorrowedFd<'static>) -> io::Result<OwnedFd> {
    rustix::io::fcntl_setfd(examined, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: the launcher passed this descriptor to this rank for it to own: the file behind it
    // was found to be the job's, and the rank was taken by compare-and-exchange before, so it is
    // adopted once.
    Ok(unsafe { OwnedFd::from_raw_fd(examined.as_raw_fd()) })
}

/// Removes a variable from the environment, if that is safe: with a second thread, which could be
/// reading the environment, it is left in place.
pub(crate) fn remove_variable(name: &str) {
    if matches!(thread_count(), Ok(1)) {
        // SAFETY: there is no other thread that could read the environment meanwhile.
        unsafe { std::env::remove_var(name) };
    }
}

/// Sets a variable of the environment, if that is safe, as in [`remove_variable`]; whether it was.
pub(crate) fn set_variable(name: &str, value: &str) -> bool {
    let is_safe = matches!(thread_count(), Ok(1));
    if is_safe {
        // SAFETY: there is no other thread that could read the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
    is_safe
}

/// The process at the other end of a local socket: the one that connected, listened or made the
/// pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 where it has no id in this process's namespace.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// Who is at the other end of a local socket, as the kernel noted it then.
pub(crate) fn peer_of(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut bytes = mem::size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a live descriptor; the kernel writes at most `bytes` bytes to `peer`, whose fields
    // are integers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut bytes,
        )
    };
    match result {
        0 => Ok(Peer {
            pid: u32::try_from(peer.pid).unwrap_or(0),
            uid: peer.uid,
        }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `before_exec` in the child between fork and exec.
///
/// It must be async-signal-safe and must not allocate.
pub(crate) fn before_exec(
    command: &mut Command,
    before_exec: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: async-signal-safe by this function's contract; its callers (`spawn`, `test_job`) make
    // plain system calls.
    unsafe { command.pre_exec(before_exec) };
}

/// Lets an inherited descriptor survive the coming exec.
///
/// Async-signal-safe.
pub(crate) fn keep_over_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: F_SETFD takes any number and changes a flag of the descriptor only.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Makes `fd` the standard input.
pub(crate) fn become_stdin(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(fd.as_fd())?)
}
