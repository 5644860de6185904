//! Where payloads come from and go to.

use core::ffi::c_void;
use core::ptr::NonNull;

use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::SharedBytes;

use crate::am::arguments::failed;
use crate::am::limits::longest;
use crate::flags::{PEER_OFFSET, SELF_OFFSET};
use crate::job::{Endpoint, Job, Receiver, fatal, job};

/// The payload that a caller names.
///
/// # Safety
/// Unless the flags say that `source` is an offset, `bytes` bytes there are readable until the
/// result is gone.
#[inline]
pub(crate) unsafe fn source<'a>(
    endpoint: &Endpoint,
    source: *const c_void,
    bytes: usize,
    flags: u32,
    function: &str,
) -> SharedBytes<'a> {
    if bytes == 0 {
        return SharedBytes::from_slice(&[]);
    }
    let start = if flags & SELF_OFFSET == 0 {
        source.cast_mut().cast()
    } else {
        in_own_segment(endpoint, source.addr(), bytes, function)
    };
    let Some(start) = NonNull::new(start) else {
        fatal(
            function,
            &format!("source_addr is null, and nbytes {bytes}"),
        );
    };
    // SAFETY: this function's contract, or checked against the segment, which stays.
    unsafe { SharedBytes::from_raw(start, bytes) }
}

/// The address of an offset in the segment of an endpoint.
fn in_own_segment(endpoint: &Endpoint, offset: usize, bytes: usize, function: &str) -> *mut u8 {
    let Some(segment) = endpoint.segment() else {
        if job(function).is_everything() && endpoint.index() == 0 {
            // All memory is bound, from address 0.
            return core::ptr::with_exposed_provenance_mut(offset);
        }
        fatal(
            function,
            "source_addr is an offset (GEX_FLAG_SELF_SEG_OFFSET), but the endpoint has no segment",
        );
    };
    let end = offset.checked_add(bytes);
    if end.is_none_or(|end| end > segment.bytes()) {
        let size = segment.bytes();
        fatal(
            function,
            &format!(
                "source_addr is offset {offset} of the segment, which has {size} bytes; {bytes} bytes there go beyond its end"
            ),
        );
    }
    segment.base().wrapping_add(offset)
}

/// Where a long goes: an offset in the attached segment of its target, or beyond it where it is an
/// address of no segment.
///
/// The engine refuses those unless there are no bytes: see [`far`](crate::am::far).
#[inline]
pub(crate) fn destination(
    job: &Job,
    to: JobRank,
    address: *mut c_void,
    bytes: usize,
    flags: u32,
    function: &str,
) -> SegmentOffset {
    if bytes > longest(job) {
        let most = longest(job);
        fatal(
            function,
            &format!(
                "nbytes is {bytes}; a long message (this one is to rank {to}) has {most} at most"
            ),
        );
    }
    let engine = &job.joined.engine;
    if to.0 >= engine.size() {
        let (from, size) = (engine.rank(), engine.size());
        failed(function, &AmError::NoSuchRank { to, size, from });
    }
    if flags & PEER_OFFSET != 0 {
        // The segment begins where its rank's span does.
        return SegmentOffset(address.addr() as u64);
    }
    engine.offset_of(to, address.addr() as u64)
}

/// The same for an endpoint of the target.
///
/// Only the target knows the segment of a further one, so the caller's address stays as it is.
#[inline]
pub(crate) fn destination_at(
    job: &Job,
    to: Receiver,
    address: *mut c_void,
    bytes: usize,
    flags: u32,
    function: &str,
) -> SegmentOffset {
    let offset = destination(job, to.rank, address, bytes, flags, function);
    match to.ends.to {
        0 => offset,
        _ => SegmentOffset(address.addr() as u64),
    }
}

/// Ends the job for a message that cannot be sent.
#[cold]
pub(crate) fn refused(job: &Job, error: &AmError, function: &str) -> ! {
    let AmError::OutsideSegment {
        offset,
        len,
        from,
        to,
        ..
    } = *error
    else {
        failed(function, error);
    };
    let engine = &job.joined.engine;
    let base = 0u64.wrapping_sub(engine.offset_of(to, 0).0);
    let address = base.wrapping_add(offset);
    let (start, bytes) = engine.published_segment(to);
    fatal(
        function,
        &format!(
            "dest_addr is {address:#x}; {len} bytes there, from rank {from}, are not in the segment of rank {to}, which lies at {start:#x} and has {bytes} bytes"
        ),
    )
}

/// In debug builds, ends the job if payload and destination of a long overlap.
#[inline]
pub(crate) fn check_overlap(
    job: &Job,
    receiver: Receiver,
    offset: SegmentOffset,
    payload: SharedBytes<'_>,
    function: &str,
) {
    if !job.debug || payload.is_empty() || receiver.ends.to != 0 {
        return;
    }
    let to = receiver.rank;
    let engine = &job.joined.engine;
    let Some(span) = engine.directory().span_base(to) else {
        return;
    };
    if to != engine.rank() && engine.published_segment(to).1 == 0 {
        // Memory that is not mapped here.
        return;
    }
    let (from, bytes) = (payload.as_ptr().addr(), payload.len());
    let there = span.as_ptr().addr().wrapping_add(offset.0 as usize);
    if there < from.wrapping_add(bytes) && from < there.wrapping_add(bytes) {
        fatal(
            function,
            &format!("the {bytes} bytes of the payload overlap their destination at rank {to}"),
        );
    }
}
