//! Fatal errors, backtraces, stopping for a debugger.
//!
//! The code that prints and that waits is in `argonet_boot`.

use core::arch::global_asm;
use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicI32, Ordering};

use argonet_boot::{abort_reported, freeze_while, print_backtrace_by, shows_backtraces};
use argonet_settings::{BACKTRACE, BacktraceType, FREEZE_ON_ERROR, Kind, Value};

use crate::export::export;
use crate::tools::environment::settings_of;
use crate::tools::{state, text};

/// `gasnett_backtrace_type_t`.
#[repr(C)]
pub(crate) struct UserMechanism {
    name: *const c_char,
    function: Option<extern "C" fn(c_int) -> c_int>,
    /// Whether it can show several threads; not read, as every mechanism here may be asked.
    #[allow(dead_code)]
    threads: c_int,
}

// The program may define `gasnett_backtrace_user`: a weak reference is null where it does not, in
// the static library and in the shared one.
global_asm!(
    ".weak gasnett_backtrace_user",
    ".section .data.rel.argonett_backtrace_user,\"aw\",%progbits",
    ".balign 8",
    ".globl argonett_backtrace_user_at",
    ".hidden argonett_backtrace_user_at",
    ".type argonett_backtrace_user_at,%object",
    ".size argonett_backtrace_user_at,8",
    "argonett_backtrace_user_at:",
    ".quad gasnett_backtrace_user",
    ".text",
);

unsafe extern "C" {
    /// Where the program's mechanism is, or null.
    safe static argonett_backtrace_user_at: UserAt;
}

#[repr(transparent)]
struct UserAt(*const UserMechanism);

// SAFETY: the pointer is written by the linker alone. Its target is the program's, which sets it
// before it asks for a backtrace (the header's contract).
unsafe impl Sync for UserAt {}

/// A mechanism that prints a backtrace.
#[derive(Clone, Copy)]
pub(crate) enum Mechanism {
    /// The program's function.
    User(extern "C" fn(c_int) -> c_int),
    Own(BacktraceType),
}

impl Mechanism {
    /// Whether it worked.
    fn print(self, fd: c_int) -> bool {
        match self {
            Self::User(function) => function(fd) == 0,
            Self::Own(kind) => {
                if fd < 0 {
                    return false;
                }
                // SAFETY: the caller of the C function says that the descriptor is open; it is used
                // during this call only.
                print_backtrace_by(kind, unsafe { BorrowedFd::borrow_raw(fd) })
            }
        }
    }
}

/// The program's mechanism: its name and function.
fn user() -> Option<(String, extern "C" fn(c_int) -> c_int)> {
    // SAFETY: null, or the program's variable of this type.
    let user = unsafe { argonett_backtrace_user_at.0.as_ref() }?;
    // SAFETY: the name is null or a string.
    let name = unsafe { text(user.name) };
    Some((name.into_owned(), user.function?))
}

/// The mechanisms of `GASNET_BACKTRACE_TYPE`, or all that there are, the program's first.
fn choose() -> Vec<Mechanism> {
    let user = user();
    let name = "GASNET_BACKTRACE_TYPE";
    // SAFETY: null or the environment's string, copied at once.
    let given = unsafe { text(libc::getenv(c"GASNET_BACKTRACE_TYPE".as_ptr())) }.into_owned();
    let known = Kind::Choices(BacktraceType::WORDS);
    if given.trim().is_empty() {
        let all = [BacktraceType::Execinfo, BacktraceType::Gdb].map(Mechanism::Own);
        let user = user.map(|(_, function)| Mechanism::User(function));
        return user.into_iter().chain(all).collect();
    }
    let mut chosen = Vec::new();
    for word in given.split(',').map(str::trim) {
        let of_user = user
            .as_ref()
            .filter(|(own, _)| own.eq_ignore_ascii_case(word));
        if let Some((_, function)) = of_user {
            chosen.push(Mechanism::User(*function));
            continue;
        }
        match known.parse(word) {
            Ok(Value::Choices(words)) => chosen.extend(
                words
                    .iter()
                    .filter_map(|word| BacktraceType::from_word(word))
                    .map(Mechanism::Own),
            ),
            _ => warn(&format!(
                "the environment variable {name} has \"{}\"; allowed: {}{}",
                word.escape_debug(),
                known.allowed(),
                user.as_ref()
                    .map_or_else(String::new, |(own, _)| format!(", {own}")),
            )),
        }
    }
    chosen
}

fn print(fd: c_int) -> bool {
    let found = |mechanisms: &[Mechanism]| mechanisms.iter().any(|mechanism| mechanism.print(fd));
    match state::mechanisms() {
        Some(chosen) => found(chosen),
        None => found(&choose()),
    }
}

/// Prints a backtrace if the user wants them.
pub(crate) extern "C" fn print_if_enabled(fd: c_int) -> c_int {
    let wanted =
        shows_backtraces().unwrap_or_else(|| settings_of(&["GASNET_BACKTRACE"]).get(&BACKTRACE));
    if !wanted {
        return 1;
    }
    c_int::from(!print(fd))
}

/// Warns the user of `what`; the program goes on.
pub(crate) fn warn(what: &str) {
    eprintln!("argonet: {what}");
}

/// Prints what is wrong, stops for a debugger and prints a backtrace as the user wants, and aborts.
///
/// A job ends with that.
pub(crate) fn fatal(at: &str, what: &str) -> ! {
    let who = crate::job::rank().map_or_else(
        || format!("pid {}", std::process::id()),
        |rank| format!("proc {rank}"),
    );
    let colon = if at.is_empty() { "" } else { ": " };
    eprintln!("*** FATAL ERROR ({who}): {at}{colon}{what}");
    // A bad setting of these is a fatal error too, but one that must not ask for them again.
    if !what.contains("GASNET_FREEZE") && !what.contains("GASNET_BACKTRACE") {
        freeze_on_error();
        state::backtrace_function()(2);
    }
    abort_reported()
}

fn freeze_on_error() {
    if settings_of(&["GASNET_FREEZE_ON_ERROR"]).get(&FREEZE_ON_ERROR) {
        freeze_while("argonet_frozen", &|| true);
    }
}

/// A place in the program, as messages name it.
///
/// # Safety
/// Both texts are strings or null.
unsafe fn place(function: *const c_char, file: *const c_char, line: c_int) -> String {
    // SAFETY: this function's contract.
    let (function, file) = unsafe { (text(function), text(file)) };
    match (function.is_empty(), file.is_empty()) {
        (_, true) => function.into_owned(),
        (true, false) => format!("{file}:{line}"),
        (false, false) => format!("{function} at {file}:{line}"),
    }
}

export! {
    /// Ends the program with a message.
    ///
    /// Without a file the message names the function alone.
    fn argonett_fatal(function: *const c_char, file: *const c_char, line: c_int, message: *const c_char) {
        // SAFETY: strings or null, as the header says.
        let (place, message) = unsafe { (place(function, file, line), text(message)) };
        fatal(&place, &message)
    }

    /// A place in words, in memory that the caller frees.
    fn argonett_location(function: *const c_char, file: *const c_char, line: c_int) -> *mut c_char {
        // SAFETY: strings or null, as the header says.
        let place = CString::new(unsafe { place(function, file, line) }).unwrap_or_default();
        // SAFETY: a string that ends with 0.
        unsafe { libc::strdup(place.as_ptr()) }
    }

    /// Waits for a debugger, until it makes the flag 0 or a SIGCONT comes.
    fn argonett_freeze(flag: *const AtomicI32, symbol: *const c_char) {
        // SAFETY: the header asks for an int that lives; a null pointer is none. The symbol is a
        // string or null.
        let (flag, symbol) = unsafe { (flag.as_ref(), text(symbol)) };
        match flag {
            Some(flag) => {
                flag.store(1, Ordering::Release);
                freeze_while(&symbol, &|| flag.load(Ordering::Acquire) != 0);
                flag.store(0, Ordering::Release);
            }
            None => freeze_while("argonet_frozen", &|| true),
        }
    }

    /// The same if the user wants it at errors.
    fn argonett_freeze_on_error() {
        freeze_on_error();
    }

    /// Finds the mechanisms for backtraces by the environment as it is now.
    ///
    /// The program's name is not needed.
    fn argonett_backtrace_init(_program: *const c_char) {
        state::keep_mechanisms(choose());
    }

    /// Prints a backtrace by the first mechanism that works; 0 if one did.
    fn argonett_print_backtrace(fd: c_int) -> c_int {
        c_int::from(!print(fd))
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    (
        "sizeof(gasnett_backtrace_type_t)",
        size_of::<UserMechanism>(),
    ),
    (
        "offsetof(gasnett_backtrace_type_t, name)",
        offset_of!(UserMechanism, name),
    ),
    (
        "offsetof(gasnett_backtrace_type_t, fnp)",
        offset_of!(UserMechanism, function),
    ),
    (
        "offsetof(gasnett_backtrace_type_t, threadsupport)",
        offset_of!(UserMechanism, threads),
    ),
];
