//! Backtraces of a process that may be in any state.
//!
//! The process copies itself by a bare fork, and the copy prints the backtrace or becomes a
//! debugger that looks at the original. The original waits [`LIMIT`] for the copy and no longer,
//! also if that finds a lock held or memory broken.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use std::backtrace::Backtrace;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use argonet_settings::BacktraceType;
use object::elf::{ET_DYN, FileHeader64, SHT_SYMTAB, STT_FUNC, Sym64};
use object::read::elf::{FileHeader as _, Sym as _};
use object::{NativeEndian, ReadCache};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::process::{self, RankProcess};
use crate::sys::{self, Line};

/// Time limit of a backtrace, in seconds.
const LIMIT_S: i64 = 10;
/// The most lines of a stack that are looked at: two for each function.
const MAX_LINES: usize = 200;
/// The name of a function that has none.
const UNKNOWN: &str = "<unknown>";

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
    let stack = Backtrace::force_capture();
    // Names take more stack than an alternate one may have.
    let named = std::thread::Builder::new().spawn(move || frames(&format!("{stack:#}")));
    let text = named.ok().and_then(|thread| thread.join().ok());
    match text {
        Some(text) => {
            let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
            sys::exit_now(0)
        }
        None => sys::exit_now(1),
    }
}

/// One line for each function of a stack as the standard library shows it, from the first one that
/// is none of ours.
///
/// That has a line with number, address and name for each frame, one with a name for each function
/// that is inlined there, and behind each, if it is known, one that begins with `at`.
fn frames(stack: &str) -> String {
    let mut text = String::new();
    let (mut own, mut frame) = (true, 0);
    let mut lines = stack.lines().map(str::trim).take(MAX_LINES).peekable();
    while let Some(line) = lines.next() {
        let (place, name) = line
            .split_once(" - ")
            .unwrap_or(("", line.trim_start_matches("- ")));
        let (number, address) = place.split_once(':').unwrap_or_default();
        frame = number.parse().unwrap_or(frame);
        let at = lines.next_if(|line| line.starts_with("at "));
        // The frames of this module and of the handler that called it come first.
        own = own && is_own(name);
        if own {
            continue;
        }
        let name = if name == UNKNOWN {
            address.trim()
        } else {
            name
        };
        let _ = write!(text, "  {frame:3}: {name}");
        if let Some(at) = at {
            // Without the column.
            let _ = write!(text, " {}", at.rsplit_once(':').map_or(at, |(at, _)| at));
        }
        text.push('\n');
    }
    text
}

fn is_own(name: &str) -> bool {
    let parts = [
        "std::backtrace",
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
    let name = symbol(address);
    // As compilers write it into a name, of which it is a part.
    name.is_some_and(|name| name.contains("14stack_overflow"))
}

/// The name of the function at `address`, as its file has it; `None` if that has no symbols.
fn symbol(address: usize) -> Option<String> {
    let (begin, path) = object_of(address)?;
    // SAFETY: no precondition.
    let header = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    let is_program = object_of(header).is_some_and(|(of, _)| of == begin);
    // The program may have been moved, or named from another directory.
    let path = if is_program {
        Path::new("/proc/self/exe")
    } else {
        &path
    };
    let cache = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<NativeEndian>::parse(&cache).ok()?;
    let is_moved = header.e_type(NativeEndian) == ET_DYN;
    let at = address - if is_moved { begin } else { 0 };
    let sections = header.sections(NativeEndian, &cache).ok()?;
    let symbols = sections.symbols(NativeEndian, &cache, SHT_SYMTAB).ok()?;
    let is_there = |one: &&Sym64<NativeEndian>| {
        let offset = (at as u64).checked_sub(one.st_value(NativeEndian));
        one.st_type() == STT_FUNC
            && offset.is_some_and(|offset| offset < one.st_size(NativeEndian).max(1))
    };
    let found = symbols.iter().find(is_there)?;
    let name = found.name(NativeEndian, symbols.strings()).ok()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The file that was loaded where `address` is, and where it begins.
fn object_of(address: usize) -> Option<(usize, PathBuf)> {
    // SAFETY: zero is a valid value of it; the linker fills it, or says that there is none. What
    // the name points to stays as long as the object, in which the caller's function is.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname).to_bytes();
        Some((
            info.dli_fbase.addr(),
            PathBuf::from(OsStr::from_bytes(name)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sigact::Action;

    #[test]
    fn the_handler_of_the_standard_library_is_known_by_its_symbol() {
        let handler = Action::of(libc::SIGSEGV)
            .function()
            .expect("a handler in every program");
        assert!(is_of_std(handler), "{:?}", symbol(handler));
        let own = frames as fn(&str) -> String as usize;
        let name = symbol(own).unwrap();
        assert!(name.contains("frames") && !is_of_std(own), "{name}");
        assert_eq!(symbol(8), None);
    }

    #[test]
    fn a_stack_is_shown_from_the_first_function_that_is_not_ours() {
        let stack = "   0:     0x55d0 - std::backtrace::Backtrace::create
                               at /rustc/1/library/std/src/backtrace.rs:331:13
   1:     0x55d1 - argonet_boot::backtrace::own_stack
                               at /src/boot/src/backtrace.rs:9:1
                     - argonet_boot::backtrace::inlined
   2:     0x55d2 - inner
                               at /src/my prog.c:12
                     - outer
                               at /src/my prog.c:20:5
   3:     0x55d3 - <unknown>
   4:     0x55d4 - core::fmt";
        let shown = "    2: inner at /src/my prog.c
    2: outer at /src/my prog.c:20
    3: 0x55d3
    4: core::fmt
";
        assert_eq!(frames(stack), shown);
    }
}
