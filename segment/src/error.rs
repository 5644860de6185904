//! Errors of segments.

use std::io;
use std::path::PathBuf;

use argonet_base::size::HumanSize;
use argonet_base::{JobRank, SegmentOffset};
use thiserror::Error;

use crate::bulk::OutOfRange;

/// An operation on segments that failed.
///
/// Messages name the request, the obstacle, and the setting to change.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The host has less memory than its ranks ask for together.
    #[error(
        "the {ranks} ranks of this host ask for {} ({needed} bytes) of segment memory, and {} ({available} bytes) can \
         be had, limited by {limited_by}; {hint}",
        HumanSize(*needed),
        HumanSize(*available)
    )]
    NotEnoughMemory {
        /// Bytes that all ranks of the host ask for together.
        needed: u64,
        /// Bytes that can be had.
        available: u64,
        /// The file or group that sets the limit.
        limited_by: String,
        /// Ranks on this host.
        ranks: u32,
        /// The setting to change.
        hint: String,
    },
    /// The kernel refused to reserve addresses for the segments of this host.
    #[error(
        "cannot reserve {} of addresses for {ranks} segments of up to {} each: {source}; addresses cost no memory, but \
         {limit} may limit them; lower GASNET_MAX_SEGSIZE (ARGONET_SEGMENT) or lift that limit",
        HumanSize(*total_bytes),
        HumanSize(*stride_bytes)
    )]
    CannotReserve {
        /// Ranks on this host.
        ranks: u32,
        /// Address space for each.
        stride_bytes: u64,
        /// Address space for all.
        total_bytes: u64,
        /// The limits that apply, with their present values.
        limit: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The segments of this host do not fit a file or an address space at all.
    #[error(
        "{ranks} segments of up to {} each exceed what a process can address; lower GASNET_MAX_SEGSIZE \
         (ARGONET_SEGMENT) or run fewer ranks on this host",
        HumanSize(*stride_bytes)
    )]
    SpanTooLarge {
        /// Ranks on this host.
        ranks: u32,
        /// Address space for each.
        stride_bytes: u64,
    },
    /// There are no, or too few, huge pages of the size asked for.
    #[error(
        "huge pages of {}: {wanted_pages} are wanted and {free_pages} are free; write the number wanted to {} (for the \
         default size also /proc/sys/vm/nr_hugepages), or choose transparent huge pages",
        HumanSize(*page_bytes),
        pool_file.display()
    )]
    NoHugePages {
        /// Size of one page.
        page_bytes: u64,
        /// Pages that the operation needs.
        wanted_pages: u64,
        /// Pages that the pool has left.
        free_pages: u64,
        /// The file that sets the size of the pool.
        pool_file: PathBuf,
    },
    /// The kernel has no pages of that size.
    #[error("the kernel has no huge pages of {page_bytes} bytes; it has {available}")]
    UnsupportedPageSize {
        /// The size asked for.
        page_bytes: u64,
        /// The sizes that it has.
        available: String,
    },
    /// A descriptor that should be the job's segment file is something else.
    #[error(
        "descriptor is not the segment file of {ranks} ranks with {stride_bytes} bytes each: {reason}"
    )]
    WrongFile {
        /// Ranks that it should hold.
        ranks: u32,
        /// Span that each should have.
        stride_bytes: u64,
        /// The difference.
        reason: String,
    },
    /// A rank that this host does not have.
    #[error("{rank} is not one of the {ranks} ranks of this host")]
    NoSuchRank {
        /// The rank named.
        rank: JobRank,
        /// Ranks on this host.
        ranks: u32,
    },
    /// A segment would be longer than the span that was set aside for it at start.
    #[error(
        "a segment of {} for {rank} exceeds the limit of {} that was fixed at start; raise GASNET_MAX_SEGSIZE \
         (ARGONET_SEGMENT)",
        HumanSize(*wanted_bytes),
        HumanSize(*stride_bytes)
    )]
    BeyondSpan {
        /// The rank that has the segment.
        rank: JobRank,
        /// The length asked for or published.
        wanted_bytes: u64,
        /// The limit.
        stride_bytes: u64,
    },
    /// A segment of no bytes.
    #[error("the segment of {rank} cannot have a length of 0")]
    Empty {
        /// The rank that has the segment.
        rank: JobRank,
    },
    /// A segment can only grow.
    #[error("the segment of {rank} has {attached_bytes} bytes and cannot shrink to {wanted_bytes}")]
    CannotShrink {
        /// The rank that has the segment.
        rank: JobRank,
        /// Its length.
        attached_bytes: u64,
        /// The length asked for.
        wanted_bytes: u64,
    },
    /// This process has attached its segment already.
    #[error("the segment of {rank} is attached already")]
    AlreadyAttached {
        /// The rank that has the segment.
        rank: JobRank,
    },
    /// An access outside the attached part of a segment.
    #[error(
        "{len_bytes} bytes at {offset} are outside the segment of {rank}, which has {attached_bytes} bytes"
    )]
    OutOfSegment {
        /// The rank that has the segment.
        rank: JobRank,
        /// Where the access should have begun.
        offset: SegmentOffset,
        /// How long it should have been.
        len_bytes: usize,
        /// Length of the segment as published.
        attached_bytes: u64,
    },
    /// An access outside a view.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A file of /proc that must exist cannot be read or understood.
    #[error("cannot learn how much memory this host has from {}: {reason}", path.display())]
    Probe {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// A call to the kernel that failed for another reason.
    #[error("cannot {action}: {source}")]
    Os {
        /// The action that failed.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl SegmentError {
    /// For `map_err`: wraps the kernel's answer to `action`.
    pub(crate) fn os(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::Os {
            action,
            source: errno.into(),
        }
    }
}
