//! `argonet perf`: how fast this machine lets the library be, and how fast it is.
//!
//! Every figure stands beside the *raw limit* of the same machine: the least that hardware and
//! kernel ask for the same work, measured by the same two processes in chunks that alternate with
//! ours. What counts is the ratio of the two, which survives a change of machine and, up to a
//! point, a busy one.
//!
//! * [`command`] — the command line and the order of things
//! * [`metric`] — what a metric is; [`table`] — all of them
//! * [`pair`] — the two ranks that measure, their memory, and the alternation of chunks
//! * [`messages`], [`memory`], [`collectives`] — our side of the metrics
//! * [`limits`] — the raw side
//! * [`startup`] — whole jobs and resident memory
//! * [`stats`], [`report`] — from chunks to figures to text

mod collectives;
mod command;
mod error;
mod limits;
mod memory;
mod messages;
mod metric;
mod pair;
mod report;
mod startup;
mod stats;
mod table;

pub(crate) use command::Perf;
