//! The trace of this process, and the calling thread's part of it: functions that the engine and
//! the C API call.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use argonet_settings::{Letter, Letters};
use rustix::time::{ClockId, clock_gettime};

use crate::event::{Event, What};
use crate::flow::{Flow, Way};
use crate::kind::Kind;
use crate::lane::Lane;
use crate::options::{Options, TraceError};
use crate::tracer::{self, Part, Tracer};

/// Whether anything is traced or counted: stored once, before this rank communicates.
static ON: AtomicBool = AtomicBool::new(false);
static TRACER: OnceLock<Tracer> = OnceLock::new();
/// Adds the library's lines to the statistics.
static LIBRARY: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();
/// Adds the client's lines to the statistics.
static CLIENT: OnceLock<fn()> = OnceLock::new();

thread_local! {
    /// The lane of this thread, once it has written something.
    static LANE: Cell<Option<&'static Lane>> = const { Cell::new(None) };
    /// Whether this thread uses its lane: a signal handler that runs on top of that is not traced.
    static BUSY: Cell<bool> = const { Cell::new(false) };
    static RETURN: Return = const { Return };
}

/// Dropped when its thread ends: gives the lane back.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        if let (Some(lane), Some(tracer)) = (LANE.take(), TRACER.get()) {
            tracer.flush(lane);
            lane.owned.store(false, Ordering::Release);
        }
    }
}

/// Which of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The trace.
    Trace,
    /// The statistics.
    Statistics,
}

/// Nanoseconds of the host's monotonic clock, which all its ranks share.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Makes the files that ranks share, if this is rank 0.
///
/// Before any rank calls [`start`].
///
/// # Errors
/// A file cannot be made.
pub fn begin_epoch(options: &Options) -> Result<u64, TraceError> {
    tracer::make_shared(options)?;
    Ok(now_ns())
}

/// Starts tracing and counting, if this rank does either.
///
/// Times count from `epoch_ns`. Once a process.
///
/// # Errors
/// A file cannot be opened.
pub fn start(options: Options, epoch_ns: u64, job: u64) -> Result<(), TraceError> {
    if !options.is_on() {
        return Ok(());
    }
    let tracer = Tracer::open(options, epoch_ns, now_ns())?;
    if TRACER.set(tracer).is_ok() {
        with(|tracer, lane| head(tracer, lane, job));
        ON.store(true, Ordering::Release);
    }
    Ok(())
}

/// Heads the trace with its writer, and with hints for reading it.
fn head(tracer: &Tracer, lane: &Lane, job: u64) {
    let (rank, size, pid) = (tracer.options.rank, tracer.options.size, std::process::id());
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let program = std::env::current_exe().unwrap_or_default();
    tracer.named(
        lane,
        "process_name",
        &format!("rank {rank} (pid {pid} on {host})"),
    );
    let command: Vec<_> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let program = program.display();
    tracer.heading(
        lane,
        format_args!("Program {program} (pid={pid}) starting on {host}"),
    );
    tracer.heading(lane, format_args!("Command-line: {}", command.join(" ")));
    let letters = tracer.options.trace_letters;
    tracer.heading(lane, format_args!("GASNET_TRACEMASK: {letters}"));
    let local = u8::from(tracer.options.local);
    tracer.heading(lane, format_args!("GASNET_TRACELOCAL: {local}"));
    // Summarizing tools look for this line before anything else: it says which thread is whose.
    tracer.note(
        lane,
        now_ns(),
        Letter::Always,
        &format!(
            "GASNET_TRACE_MAGIC: I am thread {rank} of {size} on node {rank} of {size} in job <argonet:{job:016x}>"
        ),
    );
    let letters = tracer.options.stats_letters;
    tracer.count_text(format_args!("Program {program} (pid={pid}) on {host}"));
    tracer.count_text(format_args!("GASNET_STATSMASK: {letters}"));
}

/// Calls `f` with the tracer of this process and this thread's lane; not where the thread is inside
/// such a call.
fn with(f: impl FnOnce(&'static Tracer, &'static Lane)) {
    let Some(tracer) = TRACER.get() else { return };
    if BUSY.replace(true) {
        return;
    }
    let lane = LANE.get().unwrap_or_else(|| own_lane(tracer));
    f(tracer, lane);
    BUSY.set(false);
}

#[cold]
fn own_lane(tracer: &'static Tracer) -> &'static Lane {
    let thread = rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .cast_unsigned();
    let lane = tracer.lanes.take(thread);
    LANE.set(Some(lane));
    // Not where the thread is about to end.
    let _ = RETURN.try_with(|_| {});
    let name = std::thread::current().name().map(str::to_owned);
    let name = name.unwrap_or_else(|| format!("thread {thread}"));
    tracer.named(lane, "thread_name", &name);
    lane
}

/// Whether this process traces or counts anything at all.
#[inline(always)]
#[must_use]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether a record of that letter goes anywhere.
#[must_use]
pub fn wants(which: Which, letter: Letter) -> bool {
    TRACER.get().is_some_and(|tracer| match which {
        Which::Trace => tracer.traces(letter),
        Which::Statistics => tracer.counts(letter),
    })
}

/// Reports something that happened.
pub fn event(event: &Event<'_>) {
    with(|tracer, lane| tracer.event(lane, event, Part::Whole));
}

/// Reports the handler that `event` describes, and runs it.
///
/// It ends at the time that `event` gets after `run`.
pub fn received(event: &Event<'_>, run: impl FnOnce()) {
    with(|tracer, lane| tracer.event(lane, event, Part::Begin));
    run();
    let ended = Event {
        end_ns: now_ns(),
        ..*event
    };
    with(|tracer, lane| tracer.event(lane, &ended, Part::End));
}

/// Writes a message of the library or the client into the trace, if it has that letter.
pub fn note(letter: Letter, message: &str) {
    if wants(Which::Trace, letter) {
        with(|tracer, lane| tracer.note(lane, now_ns(), letter, message));
    }
}

/// [`note`], of a message that is only made if it goes somewhere.
pub fn note_with(letter: Letter, message: impl FnOnce() -> String) {
    if wants(Which::Trace, letter) {
        note(letter, &message());
    }
}

/// Something that begins now and ends when the result is dropped.
#[must_use]
pub fn timed(kind: Kind) -> Option<Timed> {
    is_on().then(|| Timed {
        kind,
        begin_ns: now_ns(),
    })
}

/// See [`timed`].
pub struct Timed {
    kind: Kind,
    begin_ns: u64,
}

impl Drop for Timed {
    fn drop(&mut self) {
        event(&Event {
            kind: self.kind,
            begin_ns: self.begin_ns,
            end_ns: now_ns(),
            what: What::Time,
            flow: None,
        });
    }
}

/// Writes a line into the statistics, if they have that letter.
pub fn count_text(letter: Letter, message: &str) {
    if let Some(tracer) = TRACER.get().filter(|tracer| tracer.counts(letter)) {
        for line in message.trim_end_matches('\n').split('\n') {
            tracer.count_text(format_args!("({}) {line}", letter.letter()));
        }
    }
}

/// Sends a message by `send`, which does not wait.
///
/// Also returns which message it is, if it was sent.
///
/// # Errors
/// That of `send`.
pub fn sent_in_order<R, E>(
    peer: u32,
    way: Way,
    send: impl FnOnce() -> Result<R, E>,
) -> Result<(R, Option<Flow>), E> {
    let tracer = TRACER.get();
    let Some((tracer, passed)) = tracer.and_then(|t| Some((t, t.passed.get(peer as usize)?)))
    else {
        return Ok((send()?, None));
    };
    let (sent, number) = passed.send(way, send)?;
    let flow = Flow {
        from: tracer.options.rank,
        to: peer,
        way,
        number,
    };
    Ok((sent, Some(flow)))
}

/// The message that has come from `peer`.
///
/// Called once for each, in their order.
#[must_use]
pub fn flows(peer: u32, way: Way) -> Option<Flow> {
    let tracer = TRACER.get()?;
    let number = tracer.passed.get(peer as usize)?.receive(way);
    Some(Flow {
        from: peer,
        to: tracer.options.rank,
        way,
        number,
    })
}

/// The letters that are traced or counted now; none where that is off.
#[must_use]
pub fn letters(which: Which) -> Option<Letters> {
    let tracer = TRACER.get()?;
    let bits = match which {
        Which::Trace => &tracer.trace_letters,
        Which::Statistics => &tracer.stats_letters,
    };
    Some(Letters::from_bits(bits.load(Ordering::Relaxed)))
}

/// Traces or counts other letters from now on.
pub fn set_letters(which: Which, letters: Letters) {
    if let Some(tracer) = TRACER.get() {
        let bits = match which {
            Which::Trace => &tracer.trace_letters,
            Which::Statistics => &tracer.stats_letters,
        };
        bits.store(letters.bits(), Ordering::Relaxed);
    }
}

/// Whether puts and gets of a rank to itself are traced.
#[must_use]
pub fn local() -> bool {
    TRACER
        .get()
        .is_some_and(|t| t.local.load(Ordering::Relaxed))
}

/// Has them traced, or not.
pub fn set_local(local: bool) {
    if let Some(tracer) = TRACER.get() {
        tracer.local.store(local, Ordering::Relaxed);
    }
}

/// Writes the records that the calling thread holds, as it is about to sleep.
pub fn rest() {
    if is_on() {
        with(|tracer, lane| tracer.flush(lane));
    }
}

/// Writes the statistics as they are now, and counts from 0 again if that is wanted.
pub fn dump_statistics(reset: bool) {
    if let Some(tracer) = TRACER.get() {
        summarize(tracer, true);
        if reset {
            tracer.reset();
        }
    }
}

/// Registers `add_lines`, which is called when statistics are written and adds the client's lines
/// by [`count_text`].
///
/// It is not called where the process ends in a signal handler or by a fatal error. Only the first
/// call of this function has an effect.
pub fn on_summary(add_lines: fn()) {
    let _ = CLIENT.set(add_lines);
}

/// [`on_summary`] for the library itself, whose lines stand before the client's.
pub fn on_summary_of_library(add_lines: Box<dyn Fn() + Send + Sync>) {
    let _ = LIBRARY.set(add_lines);
}

/// The process ends: writes the remaining records.
///
/// Async-signal-safe unless `orderly`; only the first call does anything.
pub fn end(orderly: bool) {
    let Some(tracer) = TRACER.get() else { return };
    if tracer.counts_finally() {
        summarize(tracer, orderly);
    }
    tracer.end(if BUSY.get() { LANE.get() } else { None });
}

/// Every rank has ended its trace: rank 0 closes the file that they share.
pub fn close() {
    if let Some(tracer) = TRACER.get() {
        tracer.close();
    }
}

fn summarize(tracer: &Tracer, orderly: bool) {
    if orderly {
        LIBRARY.get().inspect(|add_lines| add_lines());
        CLIENT.get().inspect(|add_lines| add_lines());
    }
    tracer.summarize(now_ns());
}
