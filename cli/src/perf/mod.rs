//! `argonet perf`: how fast this machine lets the library be, and how fast it is.
//!
//! Every figure stands beside the *raw limit* of the same machine: the least that hardware and
//! kernel ask for the same work, measured by the same two processes in chunks that alternate with
//! ours. The ratio of the two counts; it survives a change of machine and, up to a point, a busy
//! one.
//!
//! * [`command`] — the command line and the order of things
//! * [`metric`] — what a metric is; [`table`] — all of them; [`sizes`] — those by size
//! * [`pair`] — the two ranks that measure, their memory, and the alternation of chunks
//! * [`messages`], [`memory`], [`collectives`] — our side of the metrics
//! * [`limits`], [`mock_ring`] — the raw side in memory; [`sockets`], [`datagrams`] — over a
//!   network
//! * [`over`] — the conduits whose speed is measured
//! * [`engines`] — engines beside the job's own; [`modes`], [`threads`] — what is measured with
//!   them
//! * [`jobs`] — whole jobs: start-up, resident memory, waiting, more ranks than cores
//! * [`mesh`] — many ranks over tcp: open files, memory, messages from all to all
//! * [`stats`], [`report`], [`document`], [`plot`] — from chunks to figures to tables, JSON and
//!   curves
//! * [`tune`] — which settings of collective operations are fastest, as a file
//! * [`machine`] — where the figures hold

mod collectives;
mod command;
mod datagrams;
mod document;
mod engines;
mod error;
mod halo;
mod jobs;
mod limits;
mod machine;
mod memory;
mod mesh;
mod messages;
mod metric;
mod mock_ring;
mod modes;
mod over;
mod pair;
mod plot;
mod report;
mod sizes;
mod sockets;
mod stats;
mod table;
mod threads;
mod tune;

pub(crate) use command::Perf;
