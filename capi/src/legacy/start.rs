//! How a program of GASNet-1 begins.

use core::ffi::{c_char, c_int};
use core::mem::offset_of;

use crate::am::{Entry, Refusal};
use crate::context::communicating;
use crate::export::export;
use crate::job::{
    BAD_ARG, Client, Endpoint, NOT_INIT, OK, PEER_LOST, RESOURCE, Segment, Start, Team,
    USES_GASNET1, Variant, attach, check_size, find, given, is_second, job, not_attached, refuse,
    start,
};
use crate::legacy::Permit;
use argonet_segment::PageKind;

/// `gasnet_handlerentry_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HandlerEntry {
    index: u8,
    function: Option<unsafe extern "C" fn()>,
}

const ATTACH: &str = "gasnet_attach";

/// The handlers of a table, or why they cannot be read.
///
/// # Safety
/// Null, or a table of `count` entries that is the caller's to write.
unsafe fn table<'a>(
    table: *mut HandlerEntry,
    count: c_int,
) -> Result<&'a mut [HandlerEntry], String> {
    let Ok(count) = usize::try_from(count) else {
        return Err(format!("numentries is {count}"));
    };
    match count {
        0 => Ok(&mut []),
        _ if table.is_null() => Err(format!("table is null, and numentries {count}")),
        // SAFETY: this function's contract.
        _ => Ok(unsafe { core::slice::from_raw_parts_mut(table, count) }),
    }
}

/// Registers handlers, and writes indices back where the table has 0.
fn register(table: &mut [HandlerEntry]) -> Result<(), Refusal> {
    let untyped = |entry: &HandlerEntry| Entry::of_anything(entry.index, entry.function);
    let mut entries: Vec<Entry> = table.iter().map(untyped).collect();
    job(ATTACH).handlers.add_untyped(&mut entries)?;
    for (to, from) in table.iter_mut().zip(&entries) {
        // A table without zeros may be read-only.
        if to.index == 0 {
            to.index = from.index;
        }
    }
    Ok(())
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

export! {
    /// Behind `gasnet_init`, with the variant that the program was linked with.
    fn argonet_legacy_init(variant: *const Variant, tm: *mut *const Team, argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
        const FUNCTION: &str = "gasnet_init";
        if let Some(code) = is_second(FUNCTION) {
            return code;
        }
        // SAFETY: the variant's library passes its own.
        let variant: &'static Variant = unsafe { given(variant, FUNCTION, "variant") };
        let how = Start { function: FUNCTION, variant, name: c"GASNET1", flags: USES_GASNET1, gasnet1: Permit::after_attach() };
        match start(how, argc, argv) {
            Ok(job) => {
                // SAFETY: the variant's library gives a place.
                unsafe { write(tm, job.world.handle()) };
                OK
            }
            Err(code) => code,
        }
    }

    /// Registers handlers and attaches the segment.
    ///
    /// The last argument is of times when heaps grew toward segments.
    fn gasnet_attach(handlers: *mut HandlerEntry, count: c_int, size: usize, _min_heap_offset: usize) -> c_int {
        let Some(job) = find() else {
            return refuse(ATTACH, NOT_INIT, "called before gasnet_init");
        };
        if !job.gasnet1.waits_for_attach() {
            return refuse(ATTACH, NOT_INIT, "called a second time, or in a job that gex_Client_Init started; that attaches by gex_Segment_Attach");
        }
        // GASNet-1 allows segments of no bytes; here a segment has a page at least.
        let size = if size == 0 { PageKind::Normal.page_bytes() as usize } else { size };
        if let Err(why) = check_size(job, size) {
            return refuse(ATTACH, BAD_ARG, &why);
        }
        // SAFETY: the caller's table, as the header asks.
        let handlers = match unsafe { table(handlers, count) } {
            Ok(handlers) => handlers,
            Err(why) => return refuse(ATTACH, BAD_ARG, &why),
        };
        communicating(ATTACH, |job, ctx| {
            // Before the barrier of the attach, after which others may send.
            match register(handlers) {
                Ok(()) => {}
                Err(Refusal::Bad(why)) => return refuse(ATTACH, BAD_ARG, &why),
                Err(Refusal::Full(why)) => return refuse(ATTACH, RESOURCE, &why),
            }
            match attach(job, ctx, size) {
                Ok(_) => {
                    job.gasnet1.give();
                    OK
                }
                Err(why) => {
                    let code = not_attached(job, ATTACH, &why);
                    if code == PEER_LOST {
                        // The others go on, and its handlers are there.
                        job.gasnet1.give();
                    }
                    code
                }
            }
        })
    }

    fn gasnet_QueryGexObjects(client: *mut *const Client, ep: *mut *const Endpoint, tm: *mut *const Team, segment: *mut *const Segment) {
        let job = job("gasnet_QueryGexObjects");
        let bound = job.world.endpoint().segment();
        // SAFETY: null, or the caller's to write, as the header asks.
        unsafe {
            write(client, &raw const job.client);
            write(ep, job.world.endpoint());
            write(tm, job.world.handle());
            write(segment, bound.map_or(core::ptr::null(), core::ptr::from_ref));
        }
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(gasnet_handlerentry_t)", size_of::<HandlerEntry>()),
    (
        "offsetof(gasnet_handlerentry_t, index)",
        offset_of!(HandlerEntry, index),
    ),
    (
        "offsetof(gasnet_handlerentry_t, fnptr)",
        offset_of!(HandlerEntry, function),
    ),
];
