//! Backtraces of a process that may be in any state.
//!
//! The process copies itself by a bare fork, and the copy prints the backtrace or becomes a
//! debugger that looks at the original. The original waits [`LIMIT`] for the copy and no longer,
//! also if that finds a lock held or memory broken.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use std::fmt::Write as _;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use argonet_settings::BacktraceType;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::process::{self, RankProcess};
use crate::sys::{self, Line};

/// Time limit of a backtrace, in seconds.
const LIMIT_S: i64 = 10;
/// The most frames that are shown.
const MAX_FRAMES: usize = 100;

/// Prints a backtrace of this process on standard error, by the mechanisms of
/// `GASNET_BACKTRACE_TYPE`, and goes on.
///
/// May be called in a signal handler. Does nothing in a process that is not a rank.
pub fn print_backtrace() {
    if let Some(rank) = process::this() {
        print(rank, "asked for");
    }
}

/// Prints a backtrace by the first mechanism that works.
///
/// Async-signal-safe.
pub(crate) fn print(rank: &RankProcess, reason: &str) {
    let say = |text: &str| {
        let mut line = Line::default();
        let (rank, pid) = (rank.rank, std::process::id());
        // A line that is too long is cut.
        let _ = writeln!(line, "argonet: rank {rank} (pid {pid}): {text}");
        sys::say_line(&line);
    };
    let mut heading = Line::default();
    let _ = write!(heading, "backtrace ({reason}):");
    say(std::str::from_utf8(heading.text()).unwrap_or_default());
    let shown = rank
        .options
        .backtrace_types
        .iter()
        .any(|kind| print_by(*kind, rustix::stdio::stderr()));
    if !shown {
        say("no mechanism of GASNET_BACKTRACE_TYPE could show a backtrace");
    }
}

/// Prints a backtrace of this process, a rank or not, into `to` by one mechanism; whether it
/// worked.
///
/// Async-signal-safe.
#[must_use]
pub fn print_by(kind: BacktraceType, to: BorrowedFd<'_>) -> bool {
    let Some(tool) = Tool::of(kind) else {
        return false;
    };
    let mut pidfd: c_int = -1;
    // SAFETY: prctl takes numbers. A clone without flags that share anything is a fork; the kernel
    // writes the descriptor into `pidfd`, which lives. The copy runs `Tool::run` alone, which never
    // returns.
    let pid = unsafe {
        // The copy may look into this process where only ancestors may otherwise.
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY);
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(libc::CLONE_PIDFD),
            ptr::null::<c_void>(),
            &raw mut pidfd,
            ptr::null::<c_void>(),
            ptr::null::<c_void>(),
        )
    };
    match pid {
        0 => tool.run(to),
        1.. => {}
        _ => return false,
    }
    // SAFETY: the kernel made this descriptor for this call, and no other code owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let limit = Timespec {
        tv_sec: LIMIT_S,
        tv_nsec: 0,
    };
    let mut end = [PollFd::new(&pidfd, PollFlags::IN)];
    loop {
        match poll(&mut end, Some(&limit)) {
            Err(Errno::INTR) => {}
            Ok(1..) => break,
            _ => {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                break;
            }
        }
    }
    // SAFETY: zero is a valid `siginfo_t`, which lives; the copy is waited for once.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let id = pidfd.as_raw_fd() as libc::id_t;
        let options = libc::WEXITED | libc::__WALL;
        let waited = libc::waitid(libc::P_PIDFD, id, &mut info, options);
        waited == 0 && info.si_code == libc::CLD_EXITED && info.si_status() == 0
    }
}

/// Programs that a copy runs.
enum Tool {
    OwnStack,
    Program(&'static [&'static CStr]),
}

impl Tool {
    fn of(kind: BacktraceType) -> Option<Self> {
        let words: &'static [&'static CStr] = match kind {
            BacktraceType::Execinfo => return Some(Self::OwnStack),
            BacktraceType::Dbx | BacktraceType::Printstack => return None,
            BacktraceType::Gdb => &[
                c"gdb",
                c"-nx",
                c"-batch",
                c"-ex",
                c"thread apply all bt",
                c"-p",
            ],
            BacktraceType::Lldb => &[c"lldb", c"-b", c"-o", c"bt all", c"-p"],
            BacktraceType::Gstack => &[c"gstack"],
            BacktraceType::Pstack => &[c"pstack"],
        };
        Some(Self::Program(words))
    }

    /// In the copy.
    fn run(self, to: BorrowedFd<'_>) -> ! {
        if rustix::stdio::dup2_stderr(to).is_err() {
            sys::exit_now(1);
        }
        match self {
            Self::OwnStack => own_stack(),
            Self::Program(words) => {
                let mut pid = Line::default();
                // SAFETY: no precondition.
                let _ = write!(pid, "{}\0", unsafe { libc::getppid() });
                let mut argv = [ptr::null(); 8];
                for (place, word) in argv.iter_mut().zip(words) {
                    *place = word.as_ptr();
                }
                argv[words.len()] = pid.text().as_ptr().cast();
                // SAFETY: `argv` holds strings that end with 0, fewer than it has places, so that a
                // null pointer ends it. The program's output belongs to standard error.
                unsafe {
                    libc::dup2(2, 1);
                    libc::execvp(argv[0], argv.as_ptr());
                }
                sys::exit_now(1)
            }
        }
    }
}

/// Prints the stack that the copy has from its original.
fn own_stack() -> ! {
    let mut frames = [ptr::null_mut::<c_void>(); MAX_FRAMES];
    let mut count = 0;
    // SAFETY: the copy has one thread.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            frames[count] = frame.ip();
            count += 1;
            count < MAX_FRAMES
        });
    }
    let frames: Vec<usize> = frames[..count].iter().map(|ip| *ip as usize).collect();
    // Names take more stack than an alternate one may have.
    let named = std::thread::Builder::new().spawn(move || names(&frames));
    let text = named.ok().and_then(|thread| thread.join().ok());
    match text {
        Some(text) => {
            let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
            sys::exit_now(0)
        }
        None => sys::exit_now(1),
    }
}

/// One line for each function of the stack.
fn names(frames: &[usize]) -> String {
    let mut text = String::new();
    let mut own = true;
    for (i, ip) in frames.iter().enumerate() {
        let mut found = false;
        backtrace::resolve(*ip as *mut c_void, |symbol| {
            found = true;
            let name = symbol.name().map(|name| name.to_string());
            // The frames of this module and of the handler that called it come first.
            own = own && name.as_deref().is_some_and(is_own);
            if own {
                return;
            }
            let _ = write!(text, "  {i:3}: ");
            let _ = match name {
                Some(name) => write!(text, "{name}"),
                None => write!(text, "{ip:#x}"),
            };
            if let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) {
                let _ = write!(text, " at {}:{line}", file.display());
            }
            text.push('\n');
        });
        if !found {
            let _ = writeln!(text, "  {i:3}: {ip:#x}");
        }
    }
    text
}

fn is_own(name: &str) -> bool {
    let parts = [
        "backtrace::",
        "argonet_boot::",
        "argonet_capi::",
        "argonett_",
        "core::",
    ];
    let name = name.trim_start_matches('<');
    parts.iter().any(|part| name.starts_with(part))
}

/// Whether the signal handler at `address` is the one with which Rust's standard library reports
/// overflows of the stack.
pub(crate) fn is_of_std(address: usize) -> bool {
    let mut is = false;
    // Addresses are taken for return addresses, which may be the first after a function.
    backtrace::resolve((address + 1) as *mut c_void, |symbol| {
        is |= symbol
            .name()
            .is_some_and(|name| name.to_string().contains("stack_overflow"));
    });
    is
}
