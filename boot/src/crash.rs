//! Crashes of ranks: the user gets a backtrace or may attach a debugger, the exit word records the
//! crash, and then the signal takes its former effect.

use core::ffi::c_int;
use std::fmt::{Arguments, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use argonet_base::JobRank;
use rustix::thread::gettid;

use crate::backtrace;
use crate::exit::signal_name;
use crate::exit_options::ExitOptions;
use crate::process::{self, RankProcess};
use crate::sigact::{self, Action, Arrival, Handle};
use crate::sys::{self, Line};

/// Signals that a fault of the program raises.
const FAULTS: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
];

/// Earlier actions of the fault signals; they run after this module has had its turn.
static BEFORE: OnceLock<[Option<Action>; FAULTS.len()]> = OnceLock::new();
/// The thread that crashes; 0 before.
static CRASHING: AtomicI32 = AtomicI32::new(0);
/// The thread whose crash has been reported to the user; 0 before.
static REPORTED: AtomicI32 = AtomicI32::new(0);
/// Whether a rank that waits for a debugger goes on waiting.
///
/// Known to debuggers by this name.
#[unsafe(no_mangle)]
#[allow(unsafe_code, non_upper_case_globals)]
static argonet_frozen: AtomicBool = AtomicBool::new(false);

struct Fault;
struct ShowBacktrace;
struct Freeze;
struct Thaw;

/// Catches faults and the signals for backtrace and freezing that the user has chosen.
///
/// A fault for which the program has a handler is left alone. The handler that Rust's standard
/// library has for overflows of the stack is not the program's: where the user wants a backtrace or
/// a debugger, it runs after this module's.
pub(crate) fn install(rank: JobRank, options: &ExitOptions) {
    sigact::give_alternate_stack();
    let wanted = options.backtrace(rank) || options.freeze_on_error;
    let mut before = [None; FAULTS.len()];
    for (signal, before) in FAULTS.into_iter().zip(&mut before) {
        let action = Action::of(signal);
        let of_std = || wanted && action.function().is_some_and(backtrace::is_of_std);
        if !options.catches(signal) || !(action.is_default() || of_std()) {
            continue;
        }
        *before = (!action.is_default()).then_some(action);
    }
    // Known before the first handler can run.
    if BEFORE.set(before).is_err() {
        return;
    }
    for (signal, before) in FAULTS.into_iter().zip(before) {
        if before.is_some() || catches(signal, options) {
            Action::calling::<Fault>().install(signal);
        }
    }
    if let Some(signal) = options.backtrace_signal {
        Action::calling::<ShowBacktrace>().install(signal);
    }
    if let Some(signal) = options.freeze_signal {
        Action::calling::<Freeze>().install(signal);
    }
}

fn catches(signal: c_int, options: &ExitOptions) -> bool {
    Action::of(signal).is_default() && options.catches(signal)
}

pub(crate) fn is_ours(action: &Action) -> bool {
    action.calls::<Fault>() || action.calls::<ShowBacktrace>() || action.calls::<Freeze>()
}

impl Handle for Fault {
    fn handle(arrival: Arrival) {
        match process::this() {
            Some(rank) => fault(rank, arrival),
            None => sigact::die_by(arrival.signal),
        }
    }
}

impl Handle for ShowBacktrace {
    fn handle(arrival: Arrival) {
        if let Some(rank) = process::this() {
            backtrace::print(rank, signal_name(arrival.signal));
        }
    }
}

impl Handle for Freeze {
    fn handle(arrival: Arrival) {
        if let Some(rank) = process::this() {
            freeze(rank, signal_name(arrival.signal));
        }
    }
}

impl Handle for Thaw {
    fn handle(_arrival: Arrival) {
        argonet_frozen.store(false, Ordering::Release);
    }
}

/// Async-signal-safe.
fn fault(rank: &RankProcess, arrival: Arrival) {
    let signal = arrival.signal;
    let own = gettid().as_raw_nonzero().get();
    match CRASHING.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // A fault while this handled one.
        Err(thread) if thread == own => sigact::die_by(signal),
        // Another thread's crash ends the process.
        Err(_) => loop {
            pause();
        },
    }
    process::about_to_end(false);
    if REPORTED.load(Ordering::Relaxed) != own {
        if process::reports_as_gasnet() {
            let mut line = Line::default();
            let (rank, name) = (rank.rank, signal_name(signal));
            let _ = writeln!(
                line,
                "*** Caught a fatal signal (proc {rank}): {name}({signal})"
            );
            sys::say_line(&line);
        }
        on_error(rank, signal_name(signal));
    }
    let at = FAULTS.iter().position(|&fault| fault == signal);
    let before = at.and_then(|at| BEFORE.get()?[at]);
    match before {
        Some(before) => {
            before.install(signal);
            // A fault happens again when this returns; a signal that was sent does not.
            if arrival.code <= 0 {
                sigact::raise(signal);
            }
        }
        None => {
            // What has been reported is no crash of this rank alone.
            if REPORTED.load(Ordering::Relaxed) == own || !rank.may_be_lost() {
                rank.crashed(signal);
            }
            sigact::die_by(signal)
        }
    }
}

/// Aborts, which ends the job as a crash of a rank does.
///
/// The caller has reported the reason to the user, and has stopped for a debugger and shown a
/// backtrace where that is wanted: neither is done again.
pub fn abort_reported() -> ! {
    REPORTED.store(gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    if let Some(rank) = process::this().filter(|rank| rank.may_be_lost()) {
        // Also where the signal is left alone.
        rank.crashed(libc::SIGABRT);
    }
    std::process::abort()
}

/// Whether this rank shows backtraces of fatal errors; `None` in a process that is not a rank.
#[must_use]
pub fn shows_backtraces() -> Option<bool> {
    process::this().map(|rank| rank.options.backtrace(rank.rank))
}

/// Shows a fatal error as the user wants it: with a backtrace, or with a pause for a debugger.
///
/// Async-signal-safe.
pub(crate) fn on_error(rank: &RankProcess, reason: &str) {
    if rank.options.freeze_on_error {
        freeze(rank, reason);
    }
    if rank.options.backtrace(rank.rank) {
        backtrace::print(rank, reason);
    }
}

fn pause() {
    let _ = rustix::event::poll(&mut [], None);
}

/// Waits until a debugger or a SIGCONT lets this rank go on.
///
/// Async-signal-safe.
pub(crate) fn freeze(rank: &RankProcess, reason: &str) {
    let who = format_args!("rank {} ", rank.rank);
    wait_frozen(who, reason, "argonet_frozen", &|| true);
}

/// Waits for a debugger, in a process that is a rank or not: until the debugger lets it go on by
/// making `frozen` false, which looks at the variable named `symbol`, or until a SIGCONT comes.
///
/// Says so on standard error. Async-signal-safe if `frozen` is.
pub fn freeze_while(symbol: &str, frozen: &dyn Fn() -> bool) {
    wait_frozen(format_args!("process "), "asked for", symbol, frozen);
}

fn wait_frozen(who: Arguments<'_>, reason: &str, symbol: &str, frozen: &dyn Fn() -> bool) {
    argonet_frozen.store(true, Ordering::Release);
    let before = Action::calling::<Thaw>().install(libc::SIGCONT);
    let mut line = Line::default();
    let system = rustix::system::uname();
    let host = system.nodename().to_str().unwrap_or("this host");
    let pid = std::process::id();
    // A line that is too long is cut.
    let _ = writeln!(
        line,
        "argonet: {who}(pid {pid}) on {host} waits for a debugger: {reason}. Attach with `gdb -p {pid}`; it goes on \
         after `set var {symbol} = 0`, or `kill -CONT {pid}`"
    );
    sys::say_line(&line);
    let nap = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: Duration::from_millis(100).subsec_nanos().into(),
    };
    while argonet_frozen.load(Ordering::Acquire) && frozen() {
        let _ = rustix::event::poll(&mut [], Some(&nap));
    }
    before.install(libc::SIGCONT);
}
