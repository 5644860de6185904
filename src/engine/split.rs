//! Split barriers: entered by one call, complete when an event says so, any number at once.
//!
//! Dissemination, as the blocking barrier does it, but of barriers that are told apart by counting
//! alone: in round r of barrier n a rank tells the one 2^r further on that it and the 2^r - 1
//! before it have entered barrier n. Whoever has told so of barrier n has told so of all before,
//! so messages of one round need no number and may come in any order.

use super::background::{Background, Steps, kind};
use super::core::{Engine, Outlook};
use super::events::OpError;
use super::limits::internal;
use super::thread::ThreadCtx;
use super::tree::ROUNDS;
use super::watch::span;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_conduit::Conduit;
use argonet_event::{Event, Parts};
use argonet_trace::Kind;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// State of the split barriers.
#[derive(Default)]
pub(super) struct Split {
    /// Messages of each round. Handlers add (Release), whoever advances reads (Acquire).
    arrived: [AtomicU64; ROUNDS],
    progress: Mutex<Progress>,
    pub(super) stuck: AtomicBool,
}

#[derive(Default)]
struct Progress {
    /// Barriers that this rank has entered.
    started: u64,
    /// Messages of each round that this rank has sent.
    sent: [u64; ROUNDS],
    /// Barriers that all ranks have entered.
    complete: u64,
    /// The events of those between.
    events: VecDeque<Event>,
}

pub(super) fn register(
    background: &Arc<Background>,
    handlers: &mut HandlerTable,
) -> Result<(), AmError> {
    let this = Arc::clone(background);
    let run = move |delivery: &mut Delivery<'_>| {
        let round = delivery.arg(0) as usize % ROUNDS;
        this.split.arrived[round].fetch_add(1, Ordering::Release);
    };
    handlers.register_internal(internal::SPLIT, "argonet::split", Box::new(run))
}

impl<C: Conduit> Engine<C> {
    /// Enters a split barrier and returns the event that completes when all ranks have entered as
    /// many. Collective; does not wait, but for a free handle. Counts for no other kind of
    /// barrier. Events may be waited for in any order.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn barrier_start(&self, ctx: &ThreadCtx) -> Result<Event, OpError> {
        ctx.permit("a barrier", self.rank)?;
        let _span = span(ctx, Kind::BarrierStart);
        if self.size == 1 {
            return Ok(Event::DONE);
        }
        let event = self.handle(ctx, Parts::REMOTE, Outlook::Wait)?;
        {
            let mut progress = self.background.split.progress.lock();
            progress.started += 1;
            progress.events.push_back(event);
            self.background.begin(kind::SPLIT);
        }
        self.advance_split();
        Ok(event)
    }

    /// Sends what has become possible and completes what all ranks have entered.
    pub(super) fn advance_split(&self) -> usize {
        let split = &self.background.split;
        let mut guard = split.progress.lock();
        let progress = &mut *guard;
        let mut steps = Steps::default();
        // Barriers of which this rank knows so far that all who matter have entered.
        let mut known = progress.started;
        // Barriers for which this rank has nothing more to send: until then it goes on polling.
        let mut told = known;
        for (round, sent) in progress.sent.iter_mut().enumerate().take(self.rounds()) {
            let message = Message {
                handler: internal::SPLIT,
                args: &[round as u32],
                payload: Payload::None,
            };
            while *sent < known && self.send_now(self.told_in(round), &message, &mut steps) {
                *sent += 1;
            }
            told = told.min(*sent);
            known = known.min(split.arrived[round].load(Ordering::Acquire));
        }
        while progress.complete < known.min(told)
            && let Some(event) = progress.events.pop_front()
        {
            progress.complete += 1;
            self.finish(event, &mut steps);
        }
        let taken = steps.publish(&self.background, &split.stuck);
        if progress.events.is_empty() {
            self.background.end(kind::SPLIT);
        }
        taken
    }
}
