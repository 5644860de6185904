//! Questions of a process about its job and host.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::mem::offset_of;

use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_settings::{MAX_THREADS, Settings};

use crate::export::export;
use crate::job::threads::most_threads;
use crate::job::{BAD_ARG, Client, Job, OK, RESOURCE, Variant, find, given, job, linked, refuse};

/// `gex_ProgressThreadInfo_t`.
#[repr(C)]
pub(crate) struct ProgressThread {
    devices: *const c_char,
    roles: c_uint,
    function: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    argument: *mut c_void,
}

/// `gasnet_nodeinfo_t`.
#[repr(C)]
pub(crate) struct Node {
    host: u32,
    neighborhood: u32,
    offset: usize,
    reserved: usize,
}

/// Writes `value` to `to`, unless that is null.
///
/// # Safety
/// `to` is null, or the caller's to write.
unsafe fn write<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: this function's contract.
        unsafe { *to = value };
    }
}

/// Writes out some ranks, their number, and the index of this rank among them.
///
/// # Safety
/// Each is null, or the caller's to write.
unsafe fn write_ranks(
    job: &Job,
    ranks: &'static [u32],
    info: *mut *const u32,
    count: *mut u32,
    index: *mut u32,
) {
    let own = job.joined.engine.rank().0;
    let place = ranks.iter().position(|rank| *rank == own);
    // SAFETY: this function's contract.
    unsafe {
        write(info, ranks.as_ptr());
        write(count, ranks.len() as u32);
        write(index, place.unwrap_or(0) as u32);
    }
}

/// How many neighborhoods there are, and which is that of a rank.
fn neighborhood(job: &Job, rank: u32) -> (u32, u32) {
    match job.is_everything() {
        true => (job.joined.engine.size(), rank),
        false => {
            let placement = &job.joined.placement;
            (
                placement.neighborhoods(),
                placement.neighborhood(JobRank(rank)),
            )
        }
    }
}

export! {
    fn gex_System_QueryJobRank() -> u32 {
        job("gex_System_QueryJobRank").joined.engine.rank().0
    }

    fn gex_System_QueryJobSize() -> u32 {
        job("gex_System_QueryJobSize").joined.engine.size()
    }

    fn gex_System_QueryMaxThreads() -> u64 {
        if let Some(job) = find() {
            return job.threads.most();
        }
        // Before there is a job: the number that it will have. A bad environment is reported when
        // the job starts.
        let mode = linked().and_then(Variant::mode).unwrap_or(ThreadMode::Par);
        let settings = Settings::from_environment().unwrap_or_default();
        most_threads(mode, settings.get(&MAX_THREADS))
    }

    fn gex_System_QueryNbrhdInfo(info: *mut *const u32, count: *mut u32, index: *mut u32) {
        let job = job("gex_System_QueryNbrhdInfo");
        // SAFETY: null or the caller's, as the header asks.
        unsafe { write_ranks(job, &job.neighbors, info, count, index) };
    }

    fn gex_System_QueryHostInfo(info: *mut *const u32, count: *mut u32, index: *mut u32) {
        let job = job("gex_System_QueryHostInfo");
        // SAFETY: null or the caller's, as the header asks.
        unsafe { write_ranks(job, &job.ranks, info, count, index) };
    }

    fn gex_System_QueryMyPosition(nbrhd_size: *mut u32, nbrhd_rank: *mut u32, host_size: *mut u32, host_rank: *mut u32) {
        let job = job("gex_System_QueryMyPosition");
        let rank = job.joined.engine.rank();
        let (neighborhoods, own) = neighborhood(job, rank.0);
        // SAFETY: null or the caller's, as the header asks.
        unsafe {
            write(nbrhd_size, neighborhoods);
            write(nbrhd_rank, own);
            write(host_size, job.joined.placement.hosts());
            write(host_rank, job.joined.placement.host(rank));
        }
    }

    fn gex_System_QueryHiddenAMConcurrencyLevel() -> c_int {
        job("gex_System_QueryHiddenAMConcurrencyLevel");
        // No thread of the library's runs handlers.
        0
    }

    fn gex_System_QueryProgressThreads(client: *const Client, count: *mut c_uint, info: *mut *const ProgressThread, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_System_QueryProgressThreads";
        // SAFETY: a client of ours, or null.
        let client = unsafe { given(client, FUNCTION, "client") };
        if count.is_null() || info.is_null() || flags != 0 {
            return refuse(FUNCTION, BAD_ARG, "the places for count and threads must not be null, and flags must be 0");
        }
        if !client.may_ask_for_threads() {
            return refuse(FUNCTION, RESOURCE, "the client was initialized without GEX_FLAG_DEFER_THREADS, or has asked before");
        }
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe {
            // The conduit needs no threads.
            *count = 0;
            *info = core::ptr::null();
        }
        OK
    }

    fn gasnet_getenv(name: *const c_char) -> *mut c_char {
        if name.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: a string, as the header asks. All ranks inherit one environment.
        unsafe { libc::getenv(name) }
    }

    fn gasnet_getNodeInfo(table: *mut Node, count: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_getNodeInfo";
        let Ok(count) = u32::try_from(count) else {
            return refuse(FUNCTION, BAD_ARG, &format!("the count is {count}"));
        };
        if table.is_null() && count > 0 {
            return refuse(FUNCTION, BAD_ARG, "the table must not be null");
        }
        let job = job(FUNCTION);
        let engine = &job.joined.engine;
        for rank in 0..engine.size().min(count) {
            let (_, neighborhood) = neighborhood(job, rank);
            let host = job.joined.placement.host(JobRank(rank));
            // Where there is no way to the memory, no distance either.
            let offset = match job.neighbors.binary_search(&rank).is_ok() && !job.is_everything() {
                true => engine.segment_delta(JobRank(rank)) as usize,
                false => 0,
            };
            let node = Node { host, neighborhood, offset, reserved: 0 };
            // SAFETY: the caller says that the table has `count` entries.
            unsafe { *table.add(rank as usize) = node };
        }
        OK
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    (
        "sizeof(gex_ProgressThreadInfo_t)",
        size_of::<ProgressThread>(),
    ),
    (
        "offsetof(gex_ProgressThreadInfo_t, gex_progress_fn)",
        offset_of!(ProgressThread, function),
    ),
    (
        "offsetof(gex_ProgressThreadInfo_t, gex_progress_arg)",
        offset_of!(ProgressThread, argument),
    ),
    ("sizeof(gasnet_nodeinfo_t)", size_of::<Node>()),
    (
        "offsetof(gasnet_nodeinfo_t, supernode)",
        offset_of!(Node, neighborhood),
    ),
    (
        "offsetof(gasnet_nodeinfo_t, offset)",
        offset_of!(Node, offset),
    ),
    ("sizeof(gex_RankInfo_t)", size_of::<u32>()),
];
