//! Services that the engine needs from the starter of the job.

use std::time::Duration;

use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert;

use crate::board::Board;
use crate::error::BootError;
use crate::exit_mark::ExitMark;
use crate::losses::Losses;

/// The longest value that [`Bootstrap::publish`] takes, in bytes.
pub const MAX_VALUE_BYTES: usize = 240;
const_assert!(argonet_settings::CARD_BYTES <= MAX_VALUE_BYTES);

/// The keys under which a rank publishes a value.
///
/// Each layer owns its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
#[non_exhaustive]
pub enum Key {
    /// Hash of the table of registered handlers and functions.
    HandlerTable = 0,
    /// The settings that must be the same on every rank, as the user gave them: argonet_settings
    /// has the format.
    Settings = 1,
    /// The neighbors and the limit of their segments, as the first neighbor publishes it.
    Segment = 2,
    /// Whether the rank could register for expedited membarriers.
    Membarrier = 3,
    /// Address of the rank's conduit.
    Address = 4,
    /// The name of the rank's host, for messages.
    Host = 5,
    /// Free for the client.
    User = 6,
    /// Free for tests and tools.
    Tool = 7,
    /// The processors that the rank may run on, one bit each.
    Processors = 8,
    /// Bytes of segment that the rank asks for at the start.
    Request = 9,
    /// When rank 0 began to join, by the host's monotonic clock: traces count from there.
    Epoch = 10,
    /// Settings by which the rank chooses algorithms of collective operations; they must be the
    /// same on every rank.
    Tuning = 11,
    /// Address at which the rank's segment begins, or will begin, in its process.
    Span = 12,
    /// Ranks to which datagrams do not pass, or from which none come, as far as the rank knows.
    Paths = 13,
}

/// Number of keys.
pub(crate) const KEYS: usize = 14;

/// Identity, key store and fence of a job, and the two words that a rank owes its starter:
/// [`Self::started`] and [`Self::finalized`].
///
/// [`LocalJob`](crate::LocalJob) implements it for the ranks of one host. Implementations over ssh
/// trees or a job manager's key store fit below the same trait: publications become visible to
/// other ranks with the next fence, not earlier, and a value is small.
pub trait Bootstrap: Send + Sync {
    /// The rank of this process in the job.
    fn rank(&self) -> JobRank;

    /// The number of ranks in the job, at least 1.
    fn size(&self) -> u32;

    /// A random number that is the same on all ranks of this job and on no other.
    fn job_id(&self) -> u64;

    /// Publishes `value` under `key` for the other ranks, which find it after the next
    /// [`Self::fence`].
    ///
    /// Once per key.
    ///
    /// # Errors
    /// [`BootError::ValueTooLong`] over [`MAX_VALUE_BYTES`]; [`BootError::PublishedTwice`].
    fn publish(&self, key: Key, value: &[u8]) -> Result<(), BootError>;

    /// Waits until every rank of the job has entered its fence as often as this one.
    ///
    /// Values that a rank published before are visible to all after. Collective; blocks, giving the
    /// processor away; one thread of a rank at a time.
    ///
    /// # Errors
    /// While starting up (before [`Self::started`]) [`BootError::FenceTimeout`] after
    /// `ARGONET_START_TIMEOUT` seconds (default 60); [`BootError::FenceDeserted`] and
    /// [`BootError::JobEnding`] when ranks cannot come any more. After an error no fence of this
    /// job completes: the rank has nothing left but to report it and end.
    fn fence(&self) -> Result<(), BootError>;

    /// The value that `rank` published under `key` before a fence that this rank has completed.
    ///
    /// Does not block on a single host.
    ///
    /// # Errors
    /// [`BootError::NotPublished`], [`BootError::NoSuchRank`].
    fn lookup(&self, rank: JobRank, key: Key) -> Result<Vec<u8>, BootError>;

    /// Records that this rank has started up: from now on a fence waits for slow ranks without a
    /// limit.
    fn started(&self);

    /// Records that this rank does not need the others any more: from now on its end does not end
    /// the job, except that an exit code other than 0 remains a failure of the job.
    ///
    /// Local; any number of times.
    fn finalized(&self);

    /// Records that this program never finalizes, as programs in C do not: leaving by `exit` or by
    /// return from `main` is [`exit`](crate::exit()) from now on, unless `GASNET_CATCH_EXIT` is 0,
    /// and a rank that another makes end runs no exit handlers.
    ///
    /// Local; any number of times.
    fn leaves_by_exit(&self) {}

    /// Ends this process if another rank, or a signal, has ended the job and it is time for it;
    /// else returns whether the job is ending.
    ///
    /// For a thread that waits and is about to rest, and for polls that find nothing and see
    /// [`exit_mark`](Self::exit_mark); not for every poll: it costs a load and a call.
    fn attend(&self) -> bool {
        false
    }

    /// Longest time that this process, which ends, may wait until others have all that they need of
    /// it: without a limit while the job is not ending, else so that it is not killed while it
    /// waits.
    ///
    /// Lock-free.
    fn exit_grace(&self) -> Duration {
        Duration::MAX
    }

    /// The mark by which polls see that the job's end has been reported to the ranks; never set in
    /// jobs without such reports.
    fn exit_mark(&self) -> ExitMark {
        ExitMark::default()
    }

    /// Records that this rank's client goes on when the job loses others.
    ///
    /// A rank that dies is lost, and doesn't end the job, only where all ranks have recorded this
    /// and [`goes_on`](Self::goes_on). Before [`started`](Self::started); any number of times.
    fn accept_losses(&self) {}

    /// Whether the user has asked, by `ARGONET_ON_RANK_LOST` or an option of the launcher, that the
    /// job goes on without ranks that are lost.
    fn goes_on(&self) -> bool {
        false
    }

    /// The ranks that the job has lost, as polls read them.
    fn losses(&self) -> Losses {
        Losses::default()
    }

    /// Records that this rank has done all that follows from the first `losses` losses.
    fn acknowledge_losses(&self, losses: u32) {
        let _ = losses;
    }

    /// Whether all ranks that are neither lost nor finalized have acknowledged so many losses.
    fn have_acknowledged(&self, losses: u32) -> bool {
        let _ = losses;
        true
    }

    /// A rank that is neither lost nor finalized and has acknowledged so many losses.
    fn acknowledged_by(&self, losses: u32) -> Option<JobRank> {
        let _ = losses;
        None
    }

    /// Takes part in an agreement: enters `round`, and returns how many losses all survivors agree
    /// on, once that is decided.
    ///
    /// Rounds are counted from 1, and a rank enters one once it has the result of the one before;
    /// to enter it again changes nothing. All that get a result of a round get the same one, and it
    /// covers every loss that was declared before the last of them entered. The first so many ranks
    /// in the order of [`losses`](Self::losses) are those agreed on. Doesn't block; one thread of a
    /// rank at a time; not once this rank is [`finalized`](Self::finalized), which then is not
    /// waited for.
    fn agree(&self, round: u32) -> Option<u32> {
        let _ = round;
        Some(0)
    }

    /// Reports that this rank can't reach `peer` any more over any network.
    ///
    /// True if the guardian, or the root of a job over several hosts, sees to it: `peer` or this
    /// rank is killed, and declared lost. False where that can't be, and the job has to end.
    fn unreachable(&self, peer: JobRank) -> bool {
        let _ = peer;
        false
    }

    /// Records that another rank has reported, over the network, that it ends the job with `code`:
    /// this is the job's end for the ranks of this host, unless they know of one already, and ranks
    /// that wait come to their end soon.
    ///
    /// Lock-free.
    fn heard_exit(&self, from: JobRank, code: u8) {
        let _ = (from, code);
    }

    /// Prints the lines for the user on standard error, in one piece.
    fn say(&self, lines: &str) {
        let _ = lines;
    }

    /// The board on which the ranks publish their waits; `None` if no process could read it.
    fn board(&self) -> Option<Board<'_>> {
        None
    }

    /// Whether a thread of this process other than the calling one, and those of the library, may
    /// do anything before another thread wakes it.
    ///
    /// For a rank that looks whether it can go on; takes a look at each thread.
    fn other_threads_may_act(&self) -> bool {
        true
    }

    /// Whether this rank is the first of its host that asks, so that it reports what several ranks
    /// find at about the same time.
    ///
    /// True where ranks of a host know nothing of each other.
    fn claim_report(&self) -> bool {
        true
    }

    /// Whether this process has threads beside the calling one and the library's own.
    ///
    /// True where that is not known.
    fn has_other_threads(&self) -> bool {
        true
    }

    /// Ends the job as failed: stores the failure for the other ranks and the starter of the job,
    /// prints one line with the rank and `message` on standard error, and ends this process.
    ///
    /// The other ranks are killed. `code` is the job's exit code; 0 becomes 1, since a job that was
    /// aborted did not succeed.
    fn abort(&self, code: u8, message: &str) -> !;
}
