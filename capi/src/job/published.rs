//! Segments as they are bound to endpoints, and as other ranks find them.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::selector::Selector;
use argonet_engine::{BarrierKind, BoundMemory, Engine, Injection, OpError};
use argonet_event::Event;

use crate::context::{communicating, done};
use crate::export::export;
use crate::flags::IMMEDIATE;
use crate::job::{
    BAD_ARG, Endpoint, Job, OK, PEER_LOST, Segment, Team, fatal, given, job, known, refuse, team,
    with_job,
};

/// A bound segment, as a query returns it.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Where it lies in its owner's process.
    owner: usize,
    /// Where it lies here; 0 if it cannot be reached by loads and stores.
    local: usize,
    bytes: usize,
}

impl Found {
    fn of(segment: &Segment) -> Self {
        Self {
            owner: segment.base().addr(),
            local: segment.base().addr(),
            bytes: segment.bytes(),
        }
    }

    fn attached(engine: &Engine<Selector>, rank: JobRank) -> Option<Self> {
        let (base, len) = engine.published_segment(rank);
        let base = base as usize;
        let is_mapped = engine.directory().is_mapped(rank);
        (len > 0).then(|| Self {
            owner: base,
            local: match is_mapped {
                true => base.wrapping_add_signed(engine.segment_delta(rank)),
                false => 0,
            },
            bytes: len as usize,
        })
    }

    fn bound(answer: BoundMemory) -> Self {
        Self {
            owner: answer.address as usize,
            local: 0,
            bytes: answer.len as usize,
        }
    }

    /// Writes it to the places that the caller gives.
    ///
    /// # Safety
    /// Each place is null, or the caller's to write.
    unsafe fn write(self, owner: *mut *mut c_void, local: *mut *mut c_void, bytes: *mut usize) {
        let address = |at: usize| match at {
            0 => null_mut(),
            at => core::ptr::with_exposed_provenance_mut(at),
        };
        // SAFETY: this function's contract.
        unsafe {
            if !owner.is_null() {
                *owner = address(self.owner);
            }
            if !local.is_null() {
                *local = address(self.local);
            }
            if !bytes.is_null() {
                *bytes = self.bytes;
            }
        }
    }
}

/// The segment bound at an endpoint of a rank; as an error the process that has to be asked, and
/// for which endpoint.
fn find(job: &Job, team: &Team, rank: u32, function: &str) -> Result<Found, (JobRank, u32)> {
    let engine = &job.joined.engine;
    let (to, index) = (known(team, rank, function), team.remote_endpoint(rank));
    let rank = JobRank(to);
    if rank == engine.rank() {
        let endpoints = job.endpoints.lock();
        let endpoint = endpoints.get(index as usize).copied();
        if let Some(segment) = endpoint.and_then(Endpoint::segment) {
            return Ok(Found::of(segment));
        }
        if index > 0 {
            return Ok(Found::default());
        }
        // Others are past the attach, and their handlers may ask while this rank is in it.
        return Ok(Found::attached(engine, rank).unwrap_or_default());
    }
    if index == 0
        && let Some(found) = Found::attached(engine, rank)
    {
        return Ok(found);
    }
    let known = engine.bound_known(rank, index).map(Found::bound);
    known.ok_or((rank, index))
}

export! {
    fn gex_EP_BindSegment(ep: *const Endpoint, segment: *const Segment, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_EP_BindSegment";
        // SAFETY: null, or an endpoint and a segment of ours, as the header asks.
        let (Some(endpoint), Some(given)) = (unsafe { ep.as_ref() }, unsafe { segment.as_ref() }) else {
            return refuse(FUNCTION, BAD_ARG, "endpoint and segment must not be null");
        };
        if flags != 0 {
            return refuse(FUNCTION, BAD_ARG, &format!("flags are {flags:#x}; they must be 0"));
        }
        let regions = job(FUNCTION).joined.engine.regions();
        if !endpoint.bind(segment) {
            return refuse(FUNCTION, BAD_ARG, "the endpoint has a segment already");
        }
        // SAFETY: the client leaves the memory to communication as long as the segment is bound, as
        // the specification says.
        match unsafe { regions.bind(endpoint.index(), given.base(), given.bytes()) } {
            Ok(()) => OK,
            Err(error) => {
                endpoint.unbind(segment);
                refuse(FUNCTION, BAD_ARG, &error.to_string())
            }
        }
    }

    fn gex_EP_PublishBoundSegment(tm: *const Team, eps: *const *const Endpoint, count: usize, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_EP_PublishBoundSegment";
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        if flags != 0 {
            return refuse(FUNCTION, BAD_ARG, &format!("flags are {flags:#x}; they must be 0"));
        }
        if eps.is_null() && count > 0 {
            return refuse(FUNCTION, BAD_ARG, &format!("the endpoints are null, and there are {count}"));
        }
        for place in 0..count {
            // SAFETY: the caller says that there are `count` endpoints; each is one of ours, or
            // null.
            unsafe { given(*eps.add(place), FUNCTION, "one of the endpoints") };
        }
        // A rank that uses a bound segment asks the owner, which knows it since it was bound. This
        // call only makes sure that all ranks have bound theirs, and forgets what was bound before.
        with_job(FUNCTION, |job, ctx| {
            let engine = &job.joined.engine;
            // Before, for the handlers of ranks that are past it; after, for answers that other
            // threads have got meanwhile.
            engine.bound_forget();
            let met = match team.as_made() {
                None => engine.barrier(ctx, BarrierKind::Segments).map_err(OpError::from),
                Some(made) => engine.team_barrier(ctx, &made.team),
            };
            engine.bound_forget();
            match met {
                Ok(()) => OK,
                Err(OpError::Am(AmError::PeerLost { .. })) => PEER_LOST,
                Err(error) => fatal(FUNCTION, &error.to_string()),
            }
        })
    }

    fn gex_EP_QueryBoundSegmentNB(tm: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, bytes: *mut usize, flags: u32) -> Event {
        const FUNCTION: &str = "gex_EP_QueryBoundSegmentNB";
        if flags & !IMMEDIATE != 0 {
            fatal(FUNCTION, &format!("flags are {flags:#x}; only GEX_FLAG_IMMEDIATE is known"));
        }
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) };
        let job = job(FUNCTION);
        let (rank, index) = match find(job, team, rank, FUNCTION) {
            Ok(found) => {
                // SAFETY: null or the caller's, as the header asks.
                unsafe { found.write(owner, local, bytes) };
                return Event::DONE;
            }
            Err(_) if flags & IMMEDIATE != 0 => return Event::NO_OP,
            Err(asked) => asked,
        };
        communicating(FUNCTION, |job, ctx| {
            // SAFETY: null or the caller's until the event is complete, as the header asks;
            // pointers and sizes have 64 bits, as is checked below.
            unsafe {
                // A segment that has to be asked for is not mapped here; there is none if its rank
                // is lost.
                Found::default().write(owner, local, bytes);
                let engine = &job.joined.engine;
                let asked = engine.bound_query_parts(ctx, rank, index, owner.cast(), bytes.cast(), Injection::Blocking);
                done(FUNCTION, asked)
            }
        })
    }

    fn gex_Segment_QueryBound(tm: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, bytes: *mut usize) -> c_int {
        const FUNCTION: &str = "gex_Segment_QueryBound";
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) };
        let job = job(FUNCTION);
        let found = find(job, team, rank, FUNCTION).unwrap_or_else(|(rank, index)| {
            communicating(FUNCTION, |job, ctx| {
                let bound = job.joined.engine.bound_memory(ctx, rank, index);
                Found::bound(done(FUNCTION, bound))
            })
        });
        if found.bytes == 0 {
            // The places stay as they are. Not said aloud: asking is how clients find out.
            return BAD_ARG.number();
        }
        // SAFETY: null or the caller's, as the header asks.
        unsafe { found.write(owner, local, bytes) };
        OK
    }
}

const _: () =
    assert!(size_of::<*mut c_void>() == size_of::<u64>() && size_of::<usize>() == size_of::<u64>());
