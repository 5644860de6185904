//! Traces and statistics of a process: events that the engine and the C API report here, with their
//! times and durations.
//!
//! Switched on at start by the settings `GASNET_TRACEFILE` and `GASNET_STATSFILE`; where they are
//! not given, nothing of this crate runs but [`is_on`], which is one load.
//!
//! A record is made and written in this order:
//!
//! ```text
//! Event --- mask ---> Form (text or trace events) --> Lane of the thread --> Sink (file, stdout, stderr)
//!      \--- mask ---> Counters (by Kind)          --> summary when the process ends
//! ```
//!
//! A thread's lane holds 64 KiB of whole records. Its thread writes it out when little room is
//! left, when its oldest record is a quarter of a second old, when the thread is about to sleep,
//! and when it ends; the end of the process writes all lanes, in a signal handler too. So nothing
//! is dropped while the process runs, memory is bounded, and a SIGKILL can take no more than the
//! lanes hold; with `GASNET_TRACEFLUSH` they hold nothing.
//!
//! State here is process-wide because a trace is: one file, threads that come and go, and an end
//! that signal handlers bring about.

mod counter;
mod event;
mod flow;
mod form;
mod json;
mod kind;
mod lane;
mod lanes;
mod options;
mod process;
mod sink;
mod source;
mod summary;
mod text;
mod tracer;

pub use event::{Event, Peer, What};
pub use flow::{Flow, Way};
pub use form::Form;
pub use kind::{Kind, Unit};
pub use options::{Options, Target, TraceError};
pub use process::{
    Timed, Which, begin_epoch, close, count_text, dump_statistics, end, event, flows, is_on,
    letters, local, note, note_with, now_ns, on_summary, on_summary_of_library, received, rest,
    sent_in_order, set_letters, set_local, start, timed, wants,
};
pub use source::{freeze_source, set_source, source, thaw_source};
