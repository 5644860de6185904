//! Interface of a conduit to the suite.

use argonet_am::Registered;
use argonet_base::JobRank;
use argonet_conduit::{Capabilities, Conduit, ThreadMode};
use argonet_segment::OwnSegment;
use std::time::Duration;

/// One way to set a conduit up: settings, thread mode, faults of the wire, seed.
pub trait Rig: Send + Sync + 'static {
    /// The jobs that it makes.
    type Job: Job;

    /// Names conduit and set-up, as in `smp par`; without `::`.
    fn name(&self) -> String;

    /// The promises of the conduit in this set-up.
    ///
    /// Cases that ask for more are left out.
    fn promises(&self) -> Promises;

    /// Starts a job, connected and with its segments attached, all zero.
    ///
    /// # Panics
    /// If that fails.
    fn start(&self, setup: &Setup) -> Self::Job;
}

/// A job of connected endpoints in one process.
pub trait Job: Send + Sync {
    /// The conduit.
    type Conduit: Conduit;

    /// The endpoint of a rank that has not ended.
    fn endpoint(&self, rank: JobRank) -> &Self::Conduit;

    /// Ends a rank without notice: drops its endpoint.
    fn end(&mut self, rank: JobRank);

    /// The segment of a rank, as the rank itself reaches it.
    fn segment(&self, rank: JobRank) -> &OwnSegment;

    /// Lets time pass or the wire work; called when polls of all endpoints have found nothing.
    fn advance(&self);

    /// Lets garbage reach `reader` as if `writer` had sent it, where the conduit has yet carried
    /// nothing.
    ///
    /// `kind` is less than [`Promises::garbage`].
    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        unreachable!("kind {kind} of garbage from {writer} to {reader}, of none that are promised");
    }
}

/// Sizes of a conduit's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffers {
    /// As users have them.
    Default,
    /// All as small as the conduit allows.
    Minimum,
}

/// The needs of a case.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Endpoints.
    pub ranks: u32,
    /// Bytes of each segment, a multiple of 64 KiB.
    pub segment_bytes: u64,
    /// Sizes of buffers.
    pub buffers: Buffers,
    /// No faults of the wire, even if the rig has some: for cases in which a sender does nothing
    /// more.
    pub calm: bool,
    /// Handlers that a reply may name.
    pub registered: Registered,
}

/// Promises of a conduit, and figures that the suite needs to judge it.
#[derive(Clone, Debug)]
pub struct Promises {
    /// The result of [`Conduit::capabilities`].
    pub capabilities: Capabilities,
    /// There are puts and gets, with the target's help or without.
    pub remote: bool,
    /// The sender knows all segments: a range outside is refused when it is sent, not by its
    /// target.
    pub knows_segments: bool,
    /// Bytes of payload that arrive although their sender does nothing more once it has handed them
    /// over, if nothing else is under way and buffers have their default size.
    ///
    /// `usize::MAX`: every accepted message arrives, in any case.
    pub alone_bytes: usize,
    /// Messages of one class from one rank to another arrive in the order in which they were sent.
    pub ordered: bool,
    /// The targets of a quiescent rank have handled all that it sent.
    ///
    /// Elsewhere it may be that they only see it.
    pub quiescent_is_handled: bool,
    /// Threads that may call.
    pub threads: ThreadMode,
    /// [`Conduit::sleep`] blocks the thread in real time, and an arrival ends that.
    pub sleeps: bool,
    /// Messages that a rank had sent when it ended still arrive, if all else is well.
    pub outlives_sender: bool,
    /// Kinds of garbage that [`Job::corrupt`] has.
    ///
    /// Each is reported as broken and used for nothing.
    pub garbage: usize,
    /// Most endpoints of a job.
    pub most_ranks: u32,
    /// Most messages and completions that one poll takes, for each peer.
    pub poll_per_peer: usize,
    /// Sizes at which something changes: units, lines, pages, largest records, protocols.
    pub thresholds: Vec<usize>,
    /// After so many rounds in which every endpoint is polled, takes nothing, and time is let pass,
    /// all messages have arrived.
    pub idle_rounds: u32,
    /// And after so long, where another thread of the conduit may hold what a poll wants, and wait
    /// for its processor.
    pub patience: Duration,
}
