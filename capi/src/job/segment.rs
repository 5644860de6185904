//! Segments: the one that a rank attaches, and those that a client makes.

use core::ffi::{c_int, c_void};
use core::ptr::null;
use core::sync::atomic::Ordering;
use std::alloc::{Layout, alloc_zeroed, dealloc};

use argonet_base::gasnet::number32;
use argonet_engine::ThreadCtx;
use argonet_segment::PageKind;
use argonet_settings::Letter;
use argonet_trace::note_with;

use crate::context::communicating;
use crate::export::export;
use crate::job::everything;
use crate::job::team::team;
use crate::job::{
    BAD_ARG, CData, Client, Job, OK, PEER_LOST, RESOURCE, Team, given, hooks, job, refuse,
};

/// Target of a `gex_Segment_t`.
pub(crate) struct Segment {
    base: *mut u8,
    bytes: usize,
    memory: Memory,
    cdata: CData,
}

/// The owner of a segment's memory.
enum Memory {
    /// The rank's span of the job's segments.
    Attached,
    /// Allocated for this segment.
    Own(Layout),
    /// The client's.
    Client,
}

// SAFETY: the pointer names memory that any thread may use; nothing else here changes.
unsafe impl Send for Segment {}
// SAFETY: as for Send.
unsafe impl Sync for Segment {}

impl Segment {
    fn new(base: *mut u8, bytes: usize, memory: Memory) -> Self {
        Self {
            base,
            bytes,
            memory,
            cdata: CData::default(),
        }
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.memory, Memory::Attached)
    }
}

fn page() -> usize {
    PageKind::Normal.page_bytes() as usize
}

/// Allocates for a segment; `None` if there is not so much memory.
fn allocate(bytes: usize) -> Option<Segment> {
    let layout = Layout::from_size_align(bytes, page()).ok()?;
    // SAFETY: the size is not 0, as the caller has checked.
    let base = unsafe { alloc_zeroed(layout) };
    (!base.is_null()).then(|| Segment::new(base, bytes, Memory::Own(layout)))
}

/// Checks the arguments of `gex_Segment_Create`.
fn check_create(address: *mut c_void, bytes: usize, kind: usize, flags: u32) -> Result<(), String> {
    if flags != 0 {
        return Err(format!("flags are {flags:#x}; they must be 0"));
    }
    if kind != KIND_HOST {
        return Err("the kind is not GEX_MK_HOST, the only one that this library has".into());
    }
    if bytes == 0 {
        return Err("the length is 0".into());
    }
    if address.is_null() && bytes as u64 > job("gex_Segment_Create").joined.largest_segment() {
        return Err(format!(
            "the length is {bytes}; {} can be allocated",
            job("gex_Segment_Create").joined.largest_segment()
        ));
    }
    if address.addr().checked_add(bytes).is_none() {
        return Err(format!(
            "{bytes} bytes at {address:p} go beyond the end of memory"
        ));
    }
    Ok(())
}

/// `GEX_MK_HOST`.
const KIND_HOST: usize = number32("GEX_MK_HOST") as usize;

/// Checks the size of an attached segment.
///
/// Where all memory is reached, any size is allowed.
pub(crate) fn check_size(job: &Job, size: usize) -> Result<(), String> {
    if job.is_everything() {
        return Ok(());
    }
    let most = job.joined.largest_segment();
    if size == 0 || !size.is_multiple_of(page()) {
        return Err(format!(
            "the size is {size}; it must be a multiple of GASNET_PAGESIZE, which is {}, and not 0",
            page()
        ));
    }
    if size as u64 > most {
        return Err(format!(
            "the size is {size}; gasnet_getMaxLocalSegmentSize is {most} (GASNET_MAX_SEGSIZE, or memory of the host)"
        ));
    }
    Ok(())
}

/// Attaches the segment of the primordial endpoint, with all other ranks; a barrier.
///
/// Gives null where all memory is reached, and nothing is attached.
pub(crate) fn attach(
    job: &'static Job,
    ctx: &ThreadCtx,
    size: usize,
) -> Result<*const Segment, String> {
    if job.is_everything() {
        return everything::attach(job, ctx).map(|()| null());
    }
    let text = |error: argonet_start::StartError| error.to_string();
    let own = job.joined.attach(ctx, size as u64).map_err(text)?;
    let deltas = job
        .joined
        .engine
        .mapped_deltas()
        .map_err(|error| error.to_string())?;
    let (base, bytes) = (own.base().as_ptr(), own.len() as usize);
    let made = || (own, Segment::new(base, bytes, Memory::Attached));
    let (_, made) = job.attached.get_or_init(made);
    job.world.endpoint().bind(made);
    job.world.set_deltas(&deltas);
    job.teams.set_deltas(deltas);
    hooks::segment_is_there(base.cast(), bytes);
    note_with(Letter::Object, || {
        format!("segment attached: {bytes} bytes at {base:p}")
    });
    Ok(made)
}

/// What an attach that fails gives to C.
pub(crate) fn not_attached(job: &Job, function: &str, why: &str) -> c_int {
    match job.joined.engine.unless_any_lost() {
        Ok(()) => refuse(function, RESOURCE, why),
        Err(_) => PEER_LOST,
    }
}

/// The most bytes of a segment.
fn largest(function: &str) -> usize {
    let job = job(function);
    match job.is_everything() {
        true => usize::MAX,
        false => job.joined.largest_segment() as usize,
    }
}

export! {
    fn gex_Segment_Attach(segment: *mut *const Segment, tm: *const Team, size: usize) -> c_int {
        const FUNCTION: &str = "gex_Segment_Attach";
        if segment.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the place for the segment must not be null");
        }
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        if let Err(why) = check_size(job(FUNCTION), size) {
            return refuse(FUNCTION, BAD_ARG, &why);
        }
        if !team.is_all_of(job(FUNCTION).joined.engine.size()) {
            return refuse(FUNCTION, BAD_ARG, "tm has not all ranks of the job, which attach together; pass the primordial team");
        }
        communicating(FUNCTION, |job, ctx| {
            if team.endpoint().segment().is_some() || job.was_attached.load(Ordering::Relaxed) {
                return refuse(FUNCTION, BAD_ARG, "the endpoint of tm has a segment already");
            }
            match attach(job, ctx, size) {
                Ok(made) => {
                    // SAFETY: not null, and the caller's to write, as the header asks.
                    unsafe { *segment = made };
                    OK
                }
                Err(why) => not_attached(job, FUNCTION, &why),
            }
        })
    }

    fn gex_Segment_Create(segment: *mut *const Segment, client: *const Client, address: *mut c_void, size: usize, kind: *const Kind, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_Segment_Create";
        if segment.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the place for the segment must not be null");
        }
        // SAFETY: a client of ours, or null.
        unsafe { given(client, FUNCTION, "client") };
        if let Err(why) = check_create(address, size, kind.addr(), flags) {
            return refuse(FUNCTION, BAD_ARG, &why);
        }
        let made = if address.is_null() {
            match allocate(size) {
                Some(made) => made,
                None => return refuse(FUNCTION, RESOURCE, &format!("there is no memory for {size} bytes")),
            }
        } else {
            Segment::new(address.cast(), size, Memory::Client)
        };
        note_with(Letter::Object, || format!("{FUNCTION}: {size} bytes at {:p}", made.base));
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe { *segment = Box::into_raw(Box::new(made)) };
        OK
    }

    fn gex_Segment_Destroy(segment: *const Segment, flags: u32) {
        const FUNCTION: &str = "gex_Segment_Destroy";
        // SAFETY: a segment of ours, or null.
        let given = unsafe { given(segment, FUNCTION, "segment") };
        if flags != 0 {
            crate::job::fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
        }
        if given.is_attached() {
            crate::job::fatal(FUNCTION, "the segment was attached; only those that gex_Segment_Create made can be destroyed");
        }
        for endpoint in job(FUNCTION).endpoints.lock().iter() {
            if endpoint.unbind(segment) {
                job(FUNCTION).joined.engine.regions().unbind(endpoint.index());
            }
        }
        // SAFETY: `gex_Segment_Create` made it by `into_raw`; the client says that it does not use
        // it any more.
        let gone = unsafe { Box::from_raw(segment.cast_mut()) };
        note_with(Letter::Object, || format!("{FUNCTION}: {} bytes at {:p}", gone.bytes, gone.base));
        if let Memory::Own(layout) = gone.memory {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(gone.base, layout) };
        }
    }

    fn gex_Segment_QueryClient(segment: *const Segment) -> *const Client {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_QueryClient", "segment") };
        &raw const job("gex_Segment_QueryClient").client
    }

    fn gex_Segment_QueryFlags(segment: *const Segment) -> u32 {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_QueryFlags", "segment") };
        // No segment is made with any.
        0
    }

    fn gex_Segment_QueryAddr(segment: *const Segment) -> *mut c_void {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_QueryAddr", "segment") }.base.cast()
    }

    fn gex_Segment_QuerySize(segment: *const Segment) -> usize {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_QuerySize", "segment") }.bytes
    }

    fn gex_Segment_SetCData(segment: *const Segment, value: *const c_void) {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_SetCData", "segment") }.cdata.set(value);
    }

    fn gex_Segment_QueryCData(segment: *const Segment) -> *mut c_void {
        // SAFETY: a segment of ours, or null.
        unsafe { given(segment, "gex_Segment_QueryCData", "segment") }.cdata.get()
    }

    fn gasnet_getMaxLocalSegmentSize() -> usize {
        largest("gasnet_getMaxLocalSegmentSize")
    }

    fn gasnet_getMaxGlobalSegmentSize() -> usize {
        // All ranks of a host have the same.
        largest("gasnet_getMaxGlobalSegmentSize")
    }

    fn gasnet_getSegmentInfo(table: *mut Info, count: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_getSegmentInfo";
        let Ok(count) = usize::try_from(count) else {
            return refuse(FUNCTION, BAD_ARG, &format!("the count is {count}"));
        };
        if table.is_null() && count > 0 {
            return refuse(FUNCTION, BAD_ARG, "the table must not be null");
        }
        let engine = &job(FUNCTION).joined.engine;
        for rank in 0..engine.size().min(u32::try_from(count).unwrap_or(u32::MAX)) {
            let (base, size) = match job(FUNCTION).is_everything() {
                true => (0, u64::MAX),
                false => engine.published_segment(argonet_base::JobRank(rank)),
            };
            // SAFETY: the caller says that the table has `count` entries.
            unsafe { *table.add(rank as usize) = Info { address: base as *mut c_void, size: size as usize } };
        }
        OK
    }
}

/// `gasnet_seginfo_t`.
#[repr(C)]
pub(crate) struct Info {
    address: *mut c_void,
    size: usize,
}

/// Target of a `gex_MK_t`; the one kind that there is has nothing but its handle.
pub(crate) struct Kind(());
