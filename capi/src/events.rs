//! Events, and implicit operations.

use core::ffi::c_int;

use argonet_am::AmError;
use argonet_base::gasnet::number32;
use argonet_conduit::selector::Selector;
use argonet_engine::{Engine, OpError, ThreadCtx};
use argonet_event::{Category, CategoryMask, Event};

use crate::Prototype;
use crate::context::{AfterLoss, communicating, done, waiting};
use crate::export::{export, names};
use crate::job::{Job, NOT_READY, OK, fatal};

names! {
    Event = "gex_Event_t",
    *mut Event = "gex_Event_t *",
}

/// All functions that `argonet/events.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    PROTOTYPES.to_vec()
}

/// A call on several events.
type Several<R> = fn(&Engine<Selector>, &ThreadCtx, &mut [Event]) -> Result<R, OpError>;

/// Does `call` with the array of events that C gave; `over` is what it gives if all are over
/// already.
///
/// # Safety
/// Null, or `count` events that no other thread uses meanwhile.
pub(crate) unsafe fn several<R: AfterLoss>(
    function: &str,
    events: *mut Event,
    count: usize,
    flags: u32,
    call: Several<R>,
    over: R,
) -> R {
    no_flags(function, flags);
    let events = match count {
        0 => &mut [],
        _ if events.is_null() => fatal(function, &format!("pevent is null, and numevents {count}")),
        // SAFETY: this function's contract.
        _ => unsafe { core::slice::from_raw_parts_mut(events, count) },
    };
    let is_over = events.iter().all(|event| event.is_done());
    waiting(
        function,
        over,
        |_, _| is_over,
        |job, ctx| done(function, call(&job.joined.engine, ctx, events)),
    )
}

/// Says whether all events are complete, without a poll.
///
/// # Errors
/// As [`Engine::peek_all`], but for a loss: that it has ended one operation says nothing about the
/// others.
pub(crate) fn peek_all(
    engine: &Engine<Selector>,
    ctx: &ThreadCtx,
    events: &mut [Event],
) -> Result<bool, OpError> {
    match engine.peek_all(ctx, events) {
        Err(OpError::Am(AmError::PeerLost { .. })) => {
            Ok(events.iter().all(|event| event.is_done()))
        }
        outcome => outcome,
    }
}

fn no_flags(function: &str, flags: u32) {
    if flags != 0 {
        fatal(function, &format!("flags are {flags:#x}; they must be 0"));
    }
}

pub(crate) fn code(is_done: bool) -> c_int {
    if is_done { OK } else { NOT_READY.number() }
}

/// `GEX_EC_*`.
///
/// A put has a bit of its own and that of local completion; that of messages is nothing else.
const GET: u32 = number32("GEX_EC_GET");
const PUT: u32 = number32("GEX_EC_PUT");
const LC: u32 = number32("GEX_EC_LC");
const RMW: u32 = number32("GEX_EC_RMW");
const ALL: u32 = number32("GEX_EC_ALL");

const _: () = assert!(number32("GEX_EC_AM") == LC && PUT & LC == LC && PUT != LC);

/// The categories of `gex_EC_t`.
fn categories(function: &str, mask: u32) -> CategoryMask {
    if mask == ALL {
        return CategoryMask::ALL;
    }
    if mask == 0 || mask & !(GET | PUT | LC | RMW) != 0 {
        fatal(
            function,
            &format!("event_mask is {mask:#x}; give at least one of GEX_EC_*"),
        );
    }
    let all = [
        (GET, Category::Get.mask()),
        (PUT & !LC, Category::Put.mask()),
        (LC, Category::Lc.mask() | Category::Am.mask()),
        (RMW, Category::Rmw.mask()),
    ];
    let named = all.into_iter().filter(|(bit, _)| mask & bit != 0);
    named.fold(CategoryMask::NONE, |set, (_, category)| set | category)
}

fn category(function: &str, category: u32) -> Category {
    match category {
        GET => Category::Get,
        PUT => Category::Put,
        LC => Category::Lc,
        RMW => Category::Rmw,
        _ => fatal(
            function,
            &format!("event_category is {category:#x}; give one of GEX_EC_*, not several"),
        ),
    }
}

/// Waits for the thread's implicit operations.
pub(crate) fn wait_implicit(function: &str, mask: CategoryMask) {
    let is_over = |job: &Job, ctx: &ThreadCtx| job.joined.engine.is_idle(ctx, mask);
    waiting(function, (), is_over, |job, ctx| {
        done(function, job.joined.engine.wait_implicit(ctx, mask))
    });
}

export! {
    fn argonet_event_test(event: Event) -> c_int {
        const FUNCTION: &str = "gex_Event_Test";
        communicating(FUNCTION, |job, ctx| code(done(FUNCTION, job.joined.engine.peek(ctx, event))))
    }

    fn argonet_event_wait(event: Event) {
        const FUNCTION: &str = "gex_Event_Wait";
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.wait(ctx, event)));
    }

    fn argonet_event_leaf(root: Event, which: u32) -> Event {
        const FUNCTION: &str = "gex_Event_QueryLeaf";
        let which = category(FUNCTION, which);
        communicating(FUNCTION, |job, _| done(FUNCTION, job.joined.engine.leaf(root, which).map_err(OpError::from)))
    }

    fn gex_Event_TestSome(events: *mut Event, count: usize, flags: u32) -> c_int {
        // SAFETY: as the header asks.
        code(unsafe { several("gex_Event_TestSome", events, count, flags, Engine::peek_some, true) })
    }

    fn gex_Event_TestAll(events: *mut Event, count: usize, flags: u32) -> c_int {
        // SAFETY: as the header asks.
        code(unsafe { several("gex_Event_TestAll", events, count, flags, peek_all, true) })
    }

    fn gex_Event_WaitSome(events: *mut Event, count: usize, flags: u32) {
        // SAFETY: as the header asks.
        unsafe { several("gex_Event_WaitSome", events, count, flags, Engine::wait_some, ()) };
    }

    fn gex_Event_WaitAll(events: *mut Event, count: usize, flags: u32) {
        // SAFETY: as the header asks.
        unsafe { several("gex_Event_WaitAll", events, count, flags, Engine::wait_all, ()) };
    }

    fn gex_NBI_Test(mask: u32, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_NBI_Test";
        no_flags(FUNCTION, flags);
        let mask = categories(FUNCTION, mask);
        let is_over = |job: &Job, ctx: &ThreadCtx| job.joined.engine.is_idle(ctx, mask);
        code(waiting(FUNCTION, true, is_over, |job, ctx| done(FUNCTION, job.joined.engine.peek_implicit(ctx, mask))))
    }

    fn gex_NBI_Wait(mask: u32, flags: u32) {
        const FUNCTION: &str = "gex_NBI_Wait";
        no_flags(FUNCTION, flags);
        let mask = categories(FUNCTION, mask);
        wait_implicit(FUNCTION, mask);
    }

    fn gex_NBI_BeginAccessRegion(flags: u32) {
        const FUNCTION: &str = "gex_NBI_BeginAccessRegion";
        no_flags(FUNCTION, flags);
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.begin_region(ctx)));
    }

    fn gex_NBI_EndAccessRegion(flags: u32) -> Event {
        const FUNCTION: &str = "gex_NBI_EndAccessRegion";
        no_flags(FUNCTION, flags);
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.end_region(ctx)))
    }
}
