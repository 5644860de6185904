//! Endpoints.

use core::ffi::{c_int, c_void};
use core::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use argonet_am::ENDPOINTS;
use argonet_base::gasnet::number32;

use crate::am::{Entry, Handlers};
use crate::export::export;
use crate::job::state::Job;
use crate::job::{BAD_ARG, CData, Client, OK, RESOURCE, Segment, Team, fatal, given, job, refuse};

// `gex_EP_Index_t` holds every index of one.
const _: () = assert!(ENDPOINTS <= 1 << u16::BITS);

/// `GEX_EP_CAPABILITY_AM`, and all capabilities.
const AM: u32 = number32("GEX_EP_CAPABILITY_AM");
const ALL: u32 = number32("GEX_EP_CAPABILITY_ALL");

/// `GEX_FLAG_HINT_ACCEL_ALL`.
const HINTS: u32 = number32("GEX_FLAG_HINT_ACCEL_ALL");

/// `gex_EP_Location_t`.
#[repr(C)]
pub(crate) struct Location {
    pub(crate) rank: u32,
    pub(crate) endpoint: u16,
}

/// Target of a `gex_EP_t`.
///
/// Lives as long as the process: the interface has no way to destroy one.
pub(crate) struct Endpoint {
    index: u32,
    flags: u32,
    /// Its handlers, if it can have messages.
    handlers: Option<&'static Handlers>,
    /// Null until a segment is bound.
    segment: AtomicPtr<Segment>,
    pairs: [OnceLock<Box<Team>>; ENDPOINTS as usize],
    cdata: CData,
}

impl Endpoint {
    pub(crate) fn primordial(handlers: &'static Handlers) -> Self {
        Self::new(0, 0, Some(handlers))
    }

    fn new(index: u32, flags: u32, handlers: Option<&'static Handlers>) -> Self {
        Self {
            index,
            flags,
            handlers,
            segment: AtomicPtr::default(),
            pairs: [const { OnceLock::new() }; ENDPOINTS as usize],
            cdata: CData::default(),
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Handlers that the client has registered with it; `None` if it cannot have messages.
    pub(crate) fn handlers(&self) -> Option<&'static Handlers> {
        self.handlers
    }

    /// The handler of a message that has come here.
    pub(crate) fn entry(&self, job: &Job, index: u8) -> Option<&'static Entry> {
        match self.handlers {
            Some(own) => own.entry_or(job.handlers, index),
            // The primordial endpoint's handler learns of a put there.
            None => job.handlers.entry(index),
        }
    }

    /// The segment that is bound to it.
    pub(crate) fn segment(&self) -> Option<&'static Segment> {
        // SAFETY: null, or a segment that lives as long as it is bound.
        unsafe { self.segment.load(Ordering::Acquire).as_ref() }
    }

    /// The address of an offset in what is bound to it.
    ///
    /// Ends the job if not all of `bytes` bytes lie there.
    pub(crate) fn own_offset(&self, offset: usize, bytes: usize, function: &str) -> *mut u8 {
        let Some(segment) = self.segment() else {
            if job(function).is_everything() && self.index == 0 {
                // All memory is bound, from address 0.
                return core::ptr::with_exposed_provenance_mut(offset);
            }
            fatal(
                function,
                "GEX_FLAG_SELF_SEG_OFFSET is given, but the endpoint has no segment",
            )
        };
        let length = segment.bytes();
        if offset > length || bytes > length - offset {
            fatal(
                function,
                &format!(
                    "{bytes} bytes at offset {offset} of the own segment go beyond its end; it has {length} bytes"
                ),
            );
        }
        segment.base().wrapping_add(offset)
    }

    /// Binds a segment; false if one is bound already.
    pub(crate) fn bind(&self, segment: *const Segment) -> bool {
        let (none, new) = (null::<Segment>().cast_mut(), segment.cast_mut());
        self.segment
            .compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Undoes [`bind`](Self::bind), if that bound this segment; whether it did.
    pub(crate) fn unbind(&self, segment: *const Segment) -> bool {
        let (old, none) = (segment.cast_mut(), null::<Segment>().cast_mut());
        self.segment
            .compare_exchange(old, none, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The result of `gex_TM_Pair`: always the same for the same indices.
    pub(crate) fn pair(&'static self, remote: u32, job: &Job) -> Option<&'static Team> {
        let engine = &job.joined.engine;
        let make = || Box::new(Team::pair(self, remote, engine.rank().0, engine.size()));
        Some(&**self.pairs.get(remote as usize)?.get_or_init(make))
    }
}

export! {
    fn gex_EP_Create(ep: *mut *const Endpoint, client: *const Client, capabilities: u32, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_EP_Create";
        if ep.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the place for the endpoint must not be null");
        }
        // SAFETY: a client of ours, or null.
        unsafe { given(client, FUNCTION, "client") };
        if capabilities == 0 || capabilities & !ALL != 0 {
            return refuse(FUNCTION, BAD_ARG, &format!("capabilities are {capabilities:#x}; give at least one of GEX_EP_CAPABILITY_*"));
        }
        if flags & !HINTS != 0 {
            return refuse(FUNCTION, BAD_ARG, &format!("flags are {flags:#x}; only GEX_FLAG_HINT_ACCEL_* are known"));
        }
        let job = job(FUNCTION);
        let mut endpoints = job.endpoints.lock();
        let index = endpoints.len() as u32;
        if index >= ENDPOINTS {
            return refuse(FUNCTION, RESOURCE, &format!("there are {ENDPOINTS} endpoints already, which is GASNET_MAXEPS"));
        }
        let mut handlers = None;
        if capabilities & AM != 0 {
            let own: &'static Handlers = Box::leak(Box::default());
            // A handler that runs at once and asks which endpoint this is waits for the lock, and
            // so for the code below.
            if let Err(error) = own.open(job, index) {
                return refuse(FUNCTION, RESOURCE, &error.to_string());
            }
            handlers = Some(own);
        } else {
            job.joined.engine.mute_endpoint(index);
        }
        let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::new(index, flags, handlers)));
        endpoints.push(endpoint);
        argonet_trace::note_with(argonet_settings::Letter::Object, || format!("{FUNCTION}: index {index}"));
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe { *ep = endpoint };
        OK
    }

    fn gex_EP_QueryClient(ep: *const Endpoint) -> *const Client {
        // SAFETY: an endpoint of ours, or null.
        unsafe { given(ep, "gex_EP_QueryClient", "ep") };
        &raw const job("gex_EP_QueryClient").client
    }

    fn gex_EP_QueryFlags(ep: *const Endpoint) -> u32 {
        // SAFETY: an endpoint of ours, or null.
        unsafe { given(ep, "gex_EP_QueryFlags", "ep") }.flags
    }

    fn gex_EP_QuerySegment(ep: *const Endpoint) -> *const Segment {
        // SAFETY: an endpoint of ours, or null.
        let endpoint = unsafe { given(ep, "gex_EP_QuerySegment", "ep") };
        endpoint.segment().map_or(null(), std::ptr::from_ref)
    }

    fn gex_EP_QueryIndex(ep: *const Endpoint) -> u16 {
        // SAFETY: an endpoint of ours, or null.
        unsafe { given(ep, "gex_EP_QueryIndex", "ep") }.index as u16
    }

    fn gex_EP_SetCData(ep: *const Endpoint, value: *const c_void) {
        // SAFETY: an endpoint of ours, or null.
        unsafe { given(ep, "gex_EP_SetCData", "ep") }.cdata.set(value);
    }

    fn gex_EP_QueryCData(ep: *const Endpoint) -> *mut c_void {
        // SAFETY: an endpoint of ours, or null.
        unsafe { given(ep, "gex_EP_QueryCData", "ep") }.cdata.get()
    }
}
