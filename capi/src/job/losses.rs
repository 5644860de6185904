//! Jobs that go on without ranks that have died: the client's handler, and the list of them.

use core::ffi::{c_int, c_void};

use argonet_base::{JobRank, Rank};
use argonet_start::{Joined, StartError};
use parking_lot::Mutex;

use crate::export::{export, names};
use crate::job::{BAD_ARG, NOT_INIT, OK, fatal, find, job, refuse};

/// What a client has called when a rank is lost.
type PeerLostFn = extern "C" fn(jobrank: u32, context: *mut c_void);

names! {
    Option<PeerLostFn> = "argonet_PeerLostFn_t",
}

/// A client's handler, and what it is to be called with.
struct Handler {
    act: PeerLostFn,
    /// Address of the client's own; the library never looks there.
    context: usize,
}

/// The handler of the job to come.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Calls the client with each rank that is lost, if it has asked for that.
///
/// Before the rank has started.
///
/// # Errors
/// [`StartError::CannotGoOn`].
pub(super) fn go_on(joined: &Joined) -> Result<(), StartError> {
    let Some(Handler { act, context }) = HANDLER.lock().take() else {
        return Ok(());
    };
    let call = move |rank: JobRank| act(rank.0, core::ptr::with_exposed_provenance_mut(context));
    let rank = joined.engine.rank();
    let on_loss = joined.engine.on_loss(Box::new(call));
    on_loss.map_err(|conduit| StartError::CannotGoOn {
        rank: Rank(rank.0),
        conduit,
    })
}

export! {
    fn argonet_SetPeerLostHandler(handler: Option<PeerLostFn>, context: *mut c_void) -> c_int {
        const FUNCTION: &str = "argonet_SetPeerLostHandler";
        if find().is_some() {
            return refuse(FUNCTION, NOT_INIT, "call it before gex_Client_Init or gasnet_init");
        }
        let Some(act) = handler else {
            return refuse(FUNCTION, BAD_ARG, "handler must not be null");
        };
        *HANDLER.lock() = Some(Handler { act, context: context.expose_provenance() });
        OK
    }

    fn argonet_QueryLostPeers(jobranks: *mut u32, room: usize) -> usize {
        const FUNCTION: &str = "argonet_QueryLostPeers";
        if jobranks.is_null() && room > 0 {
            fatal(FUNCTION, &format!("jobranks is null, and there is room for {room}"));
        }
        let lost = job(FUNCTION).joined.engine.declared_lost();
        for (place, rank) in lost.iter().take(room).enumerate() {
            // SAFETY: the caller's to write, as the header asks; `place` is below its room.
            unsafe { *jobranks.add(place) = rank.0 };
        }
        lost.len()
    }
}
