//! Where payloads come from and go to.

use core::ffi::c_void;
use core::ptr::NonNull;

use argonet_am::{AmError, Category, MessageClass, Payload};
use argonet_base::HandlerIndex;
use argonet_engine::{OpError, PeerAddress, Target};
use argonet_segment::SharedBytes;

use crate::am::arguments::check_handler;
use crate::am::limits::longest;
use crate::context;
use crate::flags::{PEER_OFFSET, SELF_OFFSET};
use crate::job::{Endpoint, Job, Receiver, fatal};

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
        endpoint.own_offset(source.addr(), bytes, function)
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

/// A message as C gives it.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) handler: HandlerIndex,
    pub(crate) args: &'a [u32],
    pub(crate) payload: Given<'a>,
}

/// A payload as C gives it.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// None, or that of a medium.
    Plain(Payload<'a>),
    /// That of a long, and where it goes.
    Long(SharedBytes<'a>, PeerAddress),
}

impl Outgoing<'_> {
    /// Ends the job if a message cannot be for its handler at an endpoint.
    #[inline]
    pub(crate) fn check(&self, job: &Job, endpoint: u8, class: MessageClass, function: &str) {
        let category = match &self.payload {
            Given::Plain(payload) => payload.category(),
            Given::Long(..) => Category::Long,
        };
        let nargs = self.args.len();
        check_handler(
            job,
            (endpoint, self.handler),
            category,
            class,
            nargs,
            function,
        );
    }
}

/// Where a long goes.
#[inline]
pub(crate) fn destination(
    job: &Job,
    to: Receiver,
    address: *mut c_void,
    bytes: usize,
    flags: u32,
    function: &str,
) -> PeerAddress {
    let most = longest(job);
    let Receiver { rank, ends } = to;
    if bytes > most {
        fatal(
            function,
            &format!(
                "nbytes is {bytes}; a long message (this one is to rank {rank}) has {most} at most"
            ),
        );
    }
    PeerAddress {
        rank,
        endpoint: ends.to.into(),
        address: address.addr() as u64,
        is_offset: flags & PEER_OFFSET != 0,
    }
}

/// Ends the job for a message that cannot be sent.
#[cold]
pub(crate) fn refused(job: &Job, error: &OpError, function: &str) -> ! {
    let OpError::Am(AmError::OutsideSegment {
        offset,
        len,
        from,
        to,
        ..
    }) = *error
    else {
        context::refused(function, error);
    };
    let (start, bytes) = job.joined.engine.published_segment(to);
    let address = start.wrapping_add(offset);
    fatal(
        function,
        &format!(
            "dest_addr is {address:#x}; {len} bytes there, from rank {from}, are not in the segment of rank {to}, which lies at {start:#x} and has {bytes} bytes"
        ),
    )
}

/// In debug builds, ends the job if payload and destination of a long overlap.
#[inline]
pub(crate) fn check_overlap(job: &Job, target: Target, payload: SharedBytes<'_>, function: &str) {
    if !job.debug {
        return;
    }
    let (from, bytes) = (payload.as_ptr().addr(), payload.len());
    let there = job.joined.engine.address_here(target, bytes);
    if there.is_some_and(|there| there.abs_diff(from) < bytes) {
        let to = target.rank();
        fatal(
            function,
            &format!("the {bytes} bytes of the payload overlap their destination at rank {to}"),
        );
    }
}
