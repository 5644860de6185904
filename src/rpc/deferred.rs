//! Calls of functions that may communicate: kept by the handler, run by a later poll.

use super::calls::{Arrived, ONE_WAY};
use super::{RpcContext, Status};
use crate::process;
use crate::world::{Inner, World};
use argonet_am::AmError;
use argonet_base::{JobRank, Rank};
use argonet_engine::DeferredMark;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Calls that one poll runs at most.
const MOST_A_POLL: usize = 64;

/// A call that has come.
pub(super) struct Kept {
    pub(super) source: JobRank,
    /// The function's place in the table.
    pub(super) function: usize,
    pub(super) ticket: u64,
    pub(super) object: u64,
    pub(super) arguments: Vec<u8>,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Kept>,
    /// The engine's, once there is one.
    mark: Option<DeferredMark>,
}

/// The calls that wait to run here, and the numbers by which ranks find that none is left.
#[derive(Default)]
pub(crate) struct DeferredCalls {
    queue: Mutex<Queue>,
    /// Calls that this rank has sent, and that it has run to their end.
    ///
    /// A call that a function sends is counted before that function's own end, so that the sums
    /// over all ranks are equal only when none is left.
    sent: AtomicU64,
    ran: AtomicU64,
}

impl DeferredCalls {
    /// For a handler.
    pub(super) fn keep(&self, call: Kept) {
        let mut queue = self.queue.lock();
        queue.calls.push_back(call);
        if let Some(mark) = &queue.mark {
            mark.set();
        }
    }

    /// The engine runs calls from now on, those that have come before, too.
    pub(crate) fn begin(&self, mark: DeferredMark) {
        let mut queue = self.queue.lock();
        if !queue.calls.is_empty() {
            mark.set();
        }
        queue.mark = Some(mark);
    }

    fn take(&self) -> Option<Kept> {
        let mut queue = self.queue.lock();
        let call = queue.calls.pop_front();
        if let (true, Some(mark)) = (queue.calls.is_empty(), &queue.mark) {
            mark.clear();
        }
        call
    }

    /// Counts a call that is about to be sent; the result is dropped if it is not.
    pub(super) fn sending(&self) -> Sending<'_> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        Sending(self)
    }

    /// How many calls this rank has sent, and how many it has run: the first is read last, so that
    /// the two are not equal because a function that ends has not been counted as a sender.
    pub(crate) fn counts(&self) -> [u64; 2] {
        let ran = self.ran.load(Ordering::Acquire);
        [self.sent.load(Ordering::Relaxed), ran]
    }
}

/// A call that is about to be sent.
pub(super) struct Sending<'d>(&'d DeferredCalls);

impl Sending<'_> {
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.sent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs some of the calls that have come; returns how many.
///
/// The calling thread polls or waits, and may communicate.
pub(crate) fn run(inner: &Arc<Inner>) -> usize {
    // A view, which leaves nothing when it is dropped.
    let world = World::view(Arc::clone(inner));
    let calls = &inner.calls;
    for ran in 0..MOST_A_POLL {
        let Some(call) = calls.deferred.take() else {
            return ran;
        };
        run_one(&world, call);
        // Release: who sees that it has ended sees what it has sent.
        calls.deferred.ran.fetch_add(1, Ordering::Release);
    }
    MOST_A_POLL
}

fn run_one(world: &World, call: Kept) {
    let calls = &world.inner.calls;
    let function = calls.functions.get(call.function);
    let caller = Rank(call.source.0);
    let outcome = match function {
        Some((_, super::Run::Deferred(run))) => {
            let arrived = Arrived {
                arguments: &call.arguments,
                instance: calls.instances.find(call.object),
                is_awaited: call.ticket != ONE_WAY,
            };
            let context = RpcContext::new(world, caller);
            process::called_by(caller, || run(context, call.object, &arrived))
        }
        _ => Err(Status::UnknownFunction),
    };
    if call.ticket == ONE_WAY {
        calls.one_way_ended(call.function, call.source, outcome);
        return;
    }
    match world.send_result(call.source, call.ticket, outcome) {
        // Nothing waits for it any more.
        Ok(()) | Err(AmError::PeerLost { .. }) => {}
        Err(error) => {
            let name = function.map_or("a function", |(name, _)| name);
            panic!("the result of `{name}`, called by rank {caller}, cannot be sent: {error}");
        }
    }
}
