//! The tracer: traces and counts of a process.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use argonet_settings::{Letter, Letters};
use rustix::process::{Pid, getpid};

use crate::counter::Counters;
use crate::event::{Event, What};
use crate::flow::Passed;
use crate::form::{Form, Who};
use crate::lane::{Cursor, Kept, Lane};
use crate::lanes::Lanes;
use crate::options::{Options, TraceError};
use crate::sink::{self, Sink};
use crate::{json, source, summary};

pub(crate) const TRACE: &str = "GASNET_TRACEFILE";
pub(crate) const STATS: &str = "GASNET_STATSFILE";

pub(crate) struct Tracer {
    pub(crate) options: Options,
    trace: Option<Sink>,
    stats: Option<Sink>,
    /// Letters, which the client may change at any time.
    pub(crate) trace_letters: AtomicU16,
    pub(crate) stats_letters: AtomicU16,
    /// Whether puts and gets of a rank to itself are traced.
    pub(crate) local: AtomicBool,
    pub(crate) lanes: Lanes,
    counters: Counters,
    pub(crate) passed: Box<[Passed]>,
    /// When the job began.
    epoch_ns: u64,
    /// Whether the end has been written.
    ended: AtomicBool,
    /// Whether the statistics have been written at the end.
    counted: AtomicBool,
    started_ns: AtomicU64,
    /// This process; a copy that it forks writes nothing.
    owner: Pid,
}

/// How an event is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Its begin.
    Begin,
    /// Its end.
    End,
}

/// Makes the files that all ranks write to.
///
/// By rank 0, whether it traces or not, before the others start.
pub(crate) fn make_shared(options: &Options) -> Result<(), TraceError> {
    if options.rank != 0 {
        return Ok(());
    }
    if let Some(target) = &options.trace {
        sink::make_shared(options, TRACE, target, options.form.opening())?;
    }
    match &options.stats {
        // One file for both would be neither.
        Some(target) if options.trace.as_ref() != Some(target) => {
            sink::make_shared(options, STATS, target, b"")
        }
        _ => Ok(()),
    }
}

impl Tracer {
    pub(crate) fn open(options: Options, epoch_ns: u64, now_ns: u64) -> Result<Self, TraceError> {
        let (trace, stats) = (options.trace.as_ref(), options.stats.as_ref());
        let trace = trace
            .filter(|_| options.traces)
            .map(|target| Sink::open(&options, TRACE, target, options.form.opening()))
            .transpose()?;
        let stats = stats
            .filter(|_| options.counts)
            .map(|target| Sink::open(&options, STATS, target, b""))
            .transpose()?;
        Ok(Self {
            trace_letters: AtomicU16::new(options.trace_letters.bits()),
            stats_letters: AtomicU16::new(options.stats_letters.bits()),
            local: AtomicBool::new(options.local),
            trace,
            stats,
            lanes: Lanes::new(),
            counters: Counters::new(),
            passed: (0..options.size).map(|_| Passed::default()).collect(),
            epoch_ns,
            ended: AtomicBool::new(false),
            counted: AtomicBool::new(false),
            started_ns: AtomicU64::new(now_ns),
            owner: getpid(),
            options,
        })
    }

    pub(crate) fn traces(&self, letter: Letter) -> bool {
        let letters = Letters::from_bits(self.trace_letters.load(Ordering::Relaxed));
        self.trace.is_some() && letters.contains(letter)
    }

    pub(crate) fn counts(&self, letter: Letter) -> bool {
        let letters = Letters::from_bits(self.stats_letters.load(Ordering::Relaxed));
        self.stats.is_some() && letters.contains(letter)
    }

    fn who(&self, lane: &Lane) -> Who<'static> {
        Who {
            rank: self.options.rank,
            thread: lane.thread.load(Ordering::Relaxed),
            epoch_ns: self.epoch_ns,
            source: if self.traces(Letter::Line) {
                source::recorded()
            } else {
                None
            },
        }
    }

    /// Counts and writes an event.
    pub(crate) fn event(&self, lane: &Lane, event: &Event<'_>, part: Part) {
        let letter = event.kind.letter();
        if part != Part::Begin && self.counts(letter) {
            let took = event.end_ns.saturating_sub(event.begin_ns);
            self.counters.add(event.kind, event.what.value(), took);
        }
        let to_self = matches!(event.what, What::Transfer { peer, .. } if peer.is_self);
        if !self.traces(letter) || (to_self && !self.local.load(Ordering::Relaxed)) {
            return;
        }
        let (form, who, details) = (
            self.options.form,
            self.who(lane),
            self.traces(Letter::Detail),
        );
        self.append(lane, event.end_ns, |to| match part {
            Part::Whole => form.event(to, &who, event, details),
            Part::Begin => form.begins(to, &who, event, details),
            Part::End => form.ends(to, &who, event),
        });
    }

    /// Writes a message.
    pub(crate) fn note(&self, lane: &Lane, now_ns: u64, letter: Letter, message: &str) {
        let who = self.who(lane);
        self.append(lane, now_ns, |to| {
            self.options.form.note(to, &who, now_ns, letter, message)
        });
    }

    /// Writes a line that has no letter, at the beginning of a trace.
    pub(crate) fn heading(&self, lane: &Lane, line: fmt::Arguments<'_>) {
        let rank = self.options.rank;
        if self.options.form == Form::Text {
            self.append(lane, self.epoch_ns, |to| writeln!(to, "{rank}> {line}"));
        }
    }

    /// Names a process or a thread.
    pub(crate) fn named(&self, lane: &Lane, what: &str, name: &str) {
        if self.options.form == Form::Json {
            let who = self.who(lane);
            self.append(lane, self.epoch_ns, |to| json::named(to, &who, what, name));
        }
    }

    fn append(&self, lane: &Lane, at_ns: u64, write: impl FnOnce(&mut Cursor<'_>) -> fmt::Result) {
        let Some(sink) = &self.trace else { return };
        if self.ended.load(Ordering::Acquire) && self.options.form == Form::Json {
            // The array is closed, or the process is in its last moments.
            return;
        }
        let at_once = self.options.flush || self.ended.load(Ordering::Relaxed);
        if lane.append(sink, at_ns, at_once, write) == Kept::TooLong {
            sink.lose();
        }
    }

    pub(crate) fn flush(&self, lane: &Lane) {
        if let Some(sink) = &self.trace {
            lane.flush(sink);
        }
    }

    /// Writes a line into the statistics.
    pub(crate) fn count_text(&self, line: fmt::Arguments<'_>) {
        self.count_line::<{ 4096 + 64 }>(line);
    }

    /// One of at most `BYTES` bytes.
    fn count_line<const BYTES: usize>(&self, line: fmt::Arguments<'_>) {
        let Some(sink) = &self.stats else { return };
        let mut room = [0; BYTES];
        let mut text = Cursor::new(&mut room);
        let rank = self.options.rank;
        match writeln!(text, "{rank}> {line}") {
            Ok(()) => sink.write(text.bytes()),
            Err(_) => sink.lose(),
        }
    }

    /// Writes the statistics.
    ///
    /// Async-signal-safe.
    pub(crate) fn summarize(&self, now_ns: u64) {
        let letters = Letters::from_bits(self.stats_letters.load(Ordering::Relaxed));
        let run = now_ns.saturating_sub(self.started_ns.load(Ordering::Relaxed));
        // The stack of a signal handler is small.
        summary::write(&self.counters, letters, run, |line| {
            self.count_line::<512>(line)
        });
    }

    /// Counts from 0 again.
    pub(crate) fn reset(&self) {
        self.counters.reset();
    }

    /// Whether the statistics of the end are still to be written; true once.
    pub(crate) fn counts_finally(&self) -> bool {
        self.owner == getpid() && self.stats.is_some() && !self.counted.swap(true, Ordering::AcqRel)
    }

    /// Writes everything that threads still hold; `own` is the calling thread's lane if it was
    /// interrupted while it used it.
    ///
    /// Once; async-signal-safe.
    pub(crate) fn end(&self, own: Option<&Lane>) {
        if self.owner != getpid() || self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(sink) = &self.trace {
            for lane in self.lanes.iter() {
                let is_own = own.is_some_and(|own| core::ptr::eq(own, lane));
                lane.flush_finally(sink, is_own);
            }
            if !sink.is_shared() {
                sink.write(self.options.form.closing());
            }
            sink.report_loss(self.options.rank, TRACE);
        }
        if let Some(sink) = &self.stats {
            sink.report_loss(self.options.rank, STATS);
        }
    }

    /// Closes a file that ranks share, when all have ended.
    pub(crate) fn close(&self) {
        if let Some(sink) = self.trace.as_ref().filter(|sink| sink.is_shared())
            && self.options.rank == 0
            && self.owner == getpid()
        {
            sink.write(self.options.form.closing());
        }
    }
}
