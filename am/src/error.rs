//! Errors of the active-message engine.

use crate::limits::{CLIENT_BASE, HANDLERS, MAX_ARGS};
use crate::message::Category;
use crate::record::RecordError;
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};

/// Errors of registering, sending or delivering a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AmError {
    /// The index is taken.
    #[error("handler index {index} is taken by `{holder}` and cannot be given to `{name}`")]
    Taken {
        /// The index asked for.
        index: HandlerIndex,
        /// The handler that wants it.
        name: String,
        /// The handler that has it.
        holder: String,
    },
    /// Another handler has the name.
    #[error(
        "the name `{name}` is taken by the handler at index {index}{}; give the handler another name",
        if *index < CLIENT_BASE { ", which is the library's own" } else { "" }
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Where its handler stands.
        index: HandlerIndex,
    },
    /// The index belongs to the library.
    #[error("handler index {index} of `{name}` is not a client's: clients have {first} to {last}", last = HANDLERS - 1)]
    NotClients {
        /// The index asked for.
        index: HandlerIndex,
        /// The handler that wants it.
        name: String,
        /// First client index.
        first: HandlerIndex,
    },
    /// All client indices are taken.
    #[error("no handler index is left for `{name}`: all {count} of the client's range are taken")]
    TableFull {
        /// The handler that wants an index.
        name: String,
        /// Size of the range.
        count: usize,
    },
    /// No handler stands at the index.
    ///
    /// Found by the sender, as all ranks have the same table.
    #[error("handler index {index} is not registered (message from rank {from} to rank {to})")]
    Unregistered {
        /// The index.
        index: HandlerIndex,
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// A client's message for one of the library's own handlers.
    #[error(
        "handler index {index} is the library's own: clients have {CLIENT_BASE} to {last} (message from rank {from} to rank {to})",
        last = HANDLERS - 1
    )]
    NotForClients {
        /// The index.
        index: HandlerIndex,
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// An endpoint that does not take or send active messages, or does not exist.
    #[error(
        "rank {rank} has no endpoint {endpoint} for active messages ({operation}); create it there with GEX_EP_CAPABILITY_AM before any message is sent from it or to it"
    )]
    NoEndpoint {
        /// Its index.
        endpoint: u32,
        /// The process.
        rank: JobRank,
        /// The operation, with its caller.
        operation: String,
    },
    /// An endpoint that cannot be opened.
    #[error("endpoint {endpoint} of rank {rank} cannot be opened for active messages: {why}")]
    NotOpened {
        /// Its index.
        endpoint: u32,
        /// The process.
        rank: JobRank,
        /// The reason.
        why: &'static str,
    },
    /// No handler has the name.
    #[error(
        "no active message is registered under the name `{name}`; was it made with another world's builder?"
    )]
    UnknownName {
        /// The name.
        name: String,
    },
    /// The rank does not exist.
    #[error("rank {to} does not exist: the job has {size} ranks (seen by rank {from})")]
    NoSuchRank {
        /// The rank asked for.
        to: JobRank,
        /// Ranks of the job.
        size: u32,
        /// The rank that asked.
        from: JobRank,
    },
    /// More than 16 arguments.
    #[error("{count} arguments, at most {MAX_ARGS} are allowed (rank {from} to rank {to})")]
    TooManyArgs {
        /// Arguments given.
        count: usize,
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// The payload exceeds the category's limit.
    #[error(
        "{} payload of {len} bytes, at most {max} are allowed (rank {from} to rank {to}); split it or use a put",
        category.name()
    )]
    TooLong {
        /// Category.
        category: Category,
        /// Bytes given.
        len: usize,
        /// Limit.
        max: usize,
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// A destination outside the target's segment.
    #[error(
        "{len} bytes at offset {offset} do not lie in the segment of rank {to}, which has {segment} bytes (seen by rank {from})"
    )]
    OutsideSegment {
        /// Offset asked for.
        offset: u64,
        /// Length asked for.
        len: usize,
        /// Attached bytes of the target's segment.
        segment: u64,
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// A request, a put, a get or a poll from inside a handler, a remote procedure, or a function
    /// that combines values in a reduction.
    #[error(
        "{operation} is not allowed inside an active-message handler, a remote procedure or the combination of a reduction (rank {rank}): a handler may only reply, once"
    )]
    Restricted {
        /// The operation.
        operation: &'static str,
        /// Where.
        rank: JobRank,
    },
    /// The first call of a thread while as many others as may are live.
    #[error(
        "{operation} is the first call of thread {} of rank {rank}, where {limit} live threads may call; have fewer, or set GASNET_MAX_THREADS to more",
        limit.saturating_add(1)
    )]
    TooManyThreads {
        /// The operation.
        operation: &'static str,
        /// Threads that may.
        limit: u64,
        /// Where.
        rank: JobRank,
    },
    /// A collective call in a remote procedure with a context.
    #[error(
        "{operation} is not allowed inside a remote procedure (rank {rank}), which may run in another collective call: call it outside"
    )]
    Deferred {
        /// The operation.
        operation: &'static str,
        /// Where.
        rank: JobRank,
    },
    /// A collective call inside a task that ranks share.
    #[error(
        "{operation} is not allowed inside a task (rank {rank}), as other ranks may wait for the end of all tasks: call it outside"
    )]
    InTask {
        /// The operation.
        operation: &'static str,
        /// Where.
        rank: JobRank,
    },
    /// A second communication while a negotiated payload is being filled.
    #[error(
        "{operation} is not allowed between prepare and commit of a negotiated payload (rank {rank})"
    )]
    Preparing {
        /// The operation.
        operation: &'static str,
        /// Where.
        rank: JobRank,
    },
    /// The second reply to one request.
    #[error(
        "rank {rank} replied twice to one request of rank {to}: a request handler may reply once"
    )]
    RepliedTwice {
        /// The replier.
        rank: JobRank,
        /// The requester.
        to: JobRank,
    },
    /// A reply to a reply.
    #[error("rank {rank} tried to reply to a reply of rank {to}: only request handlers may reply")]
    ReplyToReply {
        /// The rank that tried.
        rank: JobRank,
        /// The replier.
        to: JobRank,
    },
    /// The other side has no room now.
    #[error("no room for a message to rank {to} now (rank {from}); poll and try again")]
    Full {
        /// Sender.
        from: JobRank,
        /// Target.
        to: JobRank,
    },
    /// Nothing has been heard of a peer for longer than it may be silent.
    #[error(
        "rank {at} has heard nothing of rank {peer} for {silent_ms} ms: rank {peer} is taken for dead"
    )]
    PeerDead {
        /// The rank that noticed.
        at: JobRank,
        /// The rank that is silent.
        peer: JobRank,
        /// For how long.
        silent_ms: u64,
    },
    /// The job has lost a rank and goes on without it.
    #[error(
        "rank {peer} is lost: its process has ended, and the job goes on without it (seen by rank {at}); leave it out, as in a team of survivors"
    )]
    PeerLost {
        /// The rank that reports it.
        at: JobRank,
        /// The rank that is lost.
        peer: JobRank,
    },
    /// There is no connection with a peer, and none could be made.
    #[error("{why}")]
    Unreachable {
        /// The rank that wants one.
        at: JobRank,
        /// The peer.
        peer: JobRank,
        /// The attempts, with names and addresses, and a way out.
        why: String,
    },
    /// A record that a peer wrote does not parse.
    #[error(
        "rank {at} got a broken record from rank {from}: {cause}; memory of that rank is damaged or its version differs"
    )]
    Broken {
        /// The reader.
        at: JobRank,
        /// The writer.
        from: JobRank,
        /// The error.
        cause: RecordError,
    },
}

impl AmError {
    /// Whether `len` bytes at `offset` lie in a segment of `segment` bytes, which rank `to` has;
    /// none lie everywhere.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`], as rank `from` sees it.
    pub fn unless_inside(
        from: JobRank,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
        segment: u64,
    ) -> Result<(), Self> {
        let end = offset.0.checked_add(len as u64);
        if len == 0 || end.is_some_and(|end| end <= segment) {
            return Ok(());
        }
        Err(Self::OutsideSegment {
            offset: offset.0,
            len,
            segment,
            from,
            to,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_in_a_segment_or_are_refused_with_where_they_are() {
        let (from, to) = (JobRank(3), JobRank(4));
        let inside =
            |offset, len| AmError::unless_inside(from, to, SegmentOffset(offset), len, 100);
        for (offset, len) in [(0, 1), (0, 100), (99, 1), (60, 40)] {
            assert_eq!(inside(offset, len), Ok(()), "{len} at {offset}");
        }
        // No bytes lie everywhere.
        assert_eq!(inside(101, 0), Ok(()));
        assert_eq!(inside(u64::MAX, 0), Ok(()));
        for (offset, len) in [(0, 101), (100, 1), (60, 41), (u64::MAX, 1)] {
            let expected = AmError::OutsideSegment {
                offset,
                len,
                segment: 100,
                from,
                to,
            };
            assert_eq!(inside(offset, len), Err(expected));
        }
    }
}
