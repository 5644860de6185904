//! State of the process for calls: the context of the calling thread, the caller of the remote
//! procedure that runs on it, the one job, and its exit.
#![allow(unsafe_code)]

use crate::error::Result;
use argonet_am::HandlerTable;
use argonet_base::Rank;
use argonet_engine::{Outgoing, ThreadCtx};
use argonet_start::{Joined, Joining, StartError};
use core::cell::Cell;

thread_local! {
    static CALLER: Cell<Option<Rank>> = const { Cell::new(None) };
}

/// Calls `f` with the calling thread's context.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&ThreadCtx) -> R) -> R {
    // SAFETY: this crate keeps the contract of the engine. It gives the context to calls of its
    // world's engine, and to clients nowhere.
    unsafe { argonet_start::with_thread(f) }
}

/// Joins the job; `register` puts the client's handlers into the table.
///
/// A process joins once.
///
/// # Errors
/// The job cannot start.
pub(crate) fn join(
    how: Joining<'_>,
    register: impl FnOnce(&mut HandlerTable, Outgoing) -> Result<(), StartError>,
) -> Result<Joined> {
    // SAFETY: a world keeps the contract of the engine, as it gives the engine to no caller without
    // `unsafe`.
    Ok(unsafe { argonet_start::join(how, register) }?)
}

/// Runs `f` with `rank` as the caller of the remote procedure that it runs.
pub(crate) fn called_by<R>(rank: Rank, f: impl FnOnce() -> R) -> R {
    let before = CALLER.replace(Some(rank));
    let result = f();
    CALLER.set(before);
    result
}

/// The rank that called the remote procedure that runs on this thread.
pub(crate) fn caller() -> Option<Rank> {
    CALLER.get()
}

/// Ends the job with `code`, of which the system keeps the lowest eight bits: 0 is allowed, and a
/// job that ends so has ended well.
///
/// Any rank may call it at any time, from any thread, before it has a world or after, inside a
/// handler, in a signal handler.
///
/// Where all ranks call it at about the same time, or have finalized, the job just ends. Otherwise
/// the ranks that have not called it are made to end within `GASNET_EXITTIMEOUT` seconds (1.1 to 5
/// by default, more with more ranks), as soon as they wait in a call of this library; and one line
/// on standard error says which rank it was. Of several codes the first counts.
///
/// Exit handlers run and standard output is flushed on every rank that calls this or waits in this
/// library, but no destructor is run. In a signal handler no exit handler runs either, and
/// only C's streams are flushed.
///
/// In a process that is not a rank it is [`std::process::exit`].
///
/// ```
/// let world = argonet::World::init().unwrap();
/// if world.rank().0 == 0 {
///     argonet::exit(0);
/// }
/// ```
pub fn exit(code: i32) -> ! {
    argonet_boot::exit(code)
}
