//! Calls of functions that may communicate: kept by the handler, run after the handlers of a poll.

use super::calls::{Arrived, Called, ONE_WAY};
use super::{RpcContext, Status};
use crate::process;
use crate::world::{Inner, World};
use argonet_am::AmError;
use argonet_base::Rank;
use argonet_engine::{DeferredMark, Injection};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Calls that one poll runs at most.
const MOST_A_POLL: usize = 64;

/// A call that has come.
pub(super) struct Kept {
    pub(super) call: Called,
    pub(super) arguments: Vec<u8>,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Kept>,
    /// The engine's, once there is one.
    mark: Option<DeferredMark>,
}

/// The calls that wait to run here.
#[derive(Default)]
pub(crate) struct DeferredCalls {
    queue: Mutex<Queue>,
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

    /// The world has ended: no call runs any more.
    pub(crate) fn end(&self) {
        let mut queue = self.queue.lock();
        if let Some(mark) = queue.mark.take() {
            mark.clear();
        }
    }

    fn take(&self) -> Option<Kept> {
        let mut queue = self.queue.lock();
        let call = queue.calls.pop_front();
        if let (true, Some(mark)) = (queue.calls.is_empty(), &queue.mark) {
            mark.clear();
        }
        call
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
    }
    MOST_A_POLL
}

fn run_one(world: &World, kept: Kept) {
    let Kept { call, arguments } = kept;
    let calls = &world.inner.calls;
    let caller = Rank(call.source.0);
    let outcome = match calls.functions.get(call.function) {
        Some((name, super::Run::Deferred(run))) => {
            let arrived = Arrived {
                arguments: &arguments,
                instance: calls.instances.find(call.object),
                is_awaited: call.ticket != ONE_WAY,
            };
            let context = RpcContext::new(world, caller);
            let outcome = process::called_by(caller, || run(context, call.object, &arrived));
            if process::with(|ctx| ctx.is_preparing()) {
                // A call around this one would be refused in its midst.
                panic!("`{name}`, called by rank {caller}, left a negotiated payload prepared");
            }
            outcome
        }
        _ => Err(Status::UnknownFunction),
    };
    calls.end(call, outcome, |result| {
        let engine = world.engine();
        let sent =
            process::with(|ctx| engine.request(ctx, call.source, result, Injection::Blocking));
        match sent {
            // Nothing waits for it any more.
            Ok(()) | Err(AmError::PeerLost { .. }) => {}
            Err(error) => {
                let name = calls.name(call.function);
                panic!("the result of `{name}`, called by rank {caller}, cannot be sent: {error}");
            }
        }
    });
}
