//! Broadcasts that go on in the background, any number at once, matched by the order of calls.
//!
//! The root's bytes go down a binomial tree in pieces. A handler puts a piece where it belongs, or
//! keeps it if this rank has not called yet; polls send it on to the children.
//!
//! Each piece tells which root its sender has named, so ranks that differ find out; but where nobody
//! takes itself for the root there are no pieces. So a rank to which nothing has come for
//! [`PATIENCE`] asks the one that it waits for, once, and that one compares.
#![allow(unsafe_code)]

mod inbox;

use super::background::{Background, Steps, kind};
use super::core::{Engine, Outlook};
use super::events::OpError;
use super::limits::internal;
use super::thread::ThreadCtx;
use super::tree::CHUNK;
use super::watch::span;
use argonet_am::{AmError, Category, Delivery, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_event::{Event, Parts};
use argonet_segment::SharedBytes;
use argonet_trace::{Kind, What};
use core::ptr::NonNull;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use inbox::{Arrival, Call, Inbox, Piece, Place};
use parking_lot::Mutex;
use std::sync::Arc;

/// How long a rank waits for a root's first piece before it asks whether that is the root. A broadcast
/// that goes well costs no message for it unless its root is as late as this.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a rank to which nothing has come thinks of it.
enum Doubt {
    /// It has not looked twice.
    None,
    /// It asks at this time.
    Asks(Duration),
    Asked,
}

/// A call that is not complete.
struct Flight {
    number: u64,
    event: Event,
    call: Call,
    /// Where the pieces lie that go to the children.
    bytes: Place,
    /// Those that have come, all of them at the root.
    pieces: Vec<Piece>,
    /// Each with the number of pieces that it has been sent.
    children: Vec<(JobRank, usize)>,
    doubt: Doubt,
}

/// State of the broadcasts.
#[derive(Default)]
pub(super) struct Broadcasts {
    /// Calls in their order. Whoever sends holds this lock, so handlers never take it.
    flights: Mutex<Vec<Flight>>,
    /// Taken for moments, inside the other lock or alone.
    inbox: Mutex<Inbox>,
    pub(super) stuck: AtomicBool,
}

#[cfg(test)]
impl Broadcasts {
    /// Questions about calls to come.
    pub(super) fn questions(&self) -> usize {
        self.inbox.lock().questions()
    }
}

pub(super) fn register(
    background: &Arc<Background>,
    handlers: &mut HandlerTable,
) -> Result<(), AmError> {
    let this = Arc::clone(background);
    let run = move |delivery: &mut Delivery<'_>| {
        let mut inbox = this.broadcasts.inbox.lock();
        let arrived = match delivery.category() {
            Category::Short => inbox.asked(delivery),
            _ => inbox.arrive(delivery),
        };
        if let Err(message) = arrived {
            this.complain(message);
        }
    };
    handlers.register_internal(internal::BROADCAST, "argonet::broadcast", Box::new(run))
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Flight {
    /// Takes over what has come; whether that is everything.
    fn has_come(&mut self, inbox: &mut Inbox) -> bool {
        if let Some(Arrival::Called { missing, fresh, .. }) = inbox.open.get_mut(&self.number) {
            self.pieces.append(fresh);
            // No bytes come as one piece, too.
            return *missing == 0 && !self.pieces.is_empty();
        }
        false
    }
}

impl<C: Conduit> Engine<C> {
    /// Starts a broadcast of the root's `len` bytes at `src` to all ranks' `dst` and returns the
    /// event of its completion here. Collective; the n-th call of a rank goes with the n-th of the
    /// others, which name the same root and length, or the job ends. Does not wait, but for a free
    /// handle. Events may be waited for in any order.
    ///
    /// # Safety
    /// Until the event is complete `dst` is writable for `len` bytes and nobody else touches them;
    /// at the root `src` is readable for `len` bytes, does not change, and is the same as `dst` or
    /// does not overlap it. `src` is not looked at elsewhere.
    ///
    /// # Errors
    /// [`AmError::NoSuchRank`] for the root; [`AmError::Restricted`] inside a handler.
    pub unsafe fn broadcast_start(
        &self,
        ctx: &ThreadCtx,
        root: JobRank,
        dst: *mut u8,
        src: *const u8,
        len: usize,
    ) -> Result<Event, OpError> {
        ctx.permit("a broadcast", self.rank)?;
        let mut span = span(ctx, Kind::Broadcast);
        if let Some(span) = &mut span {
            span.tell(What::Bytes(len as u64));
        }
        if root.0 >= self.size {
            return Err(AmError::NoSuchRank {
                to: root,
                size: self.size,
                from: self.rank,
            }
            .into());
        }
        let is_root = root == self.rank;
        if is_root && len > 0 && !core::ptr::eq(dst, src) {
            // SAFETY: the caller's promise.
            unsafe { core::ptr::copy(src, dst, len) };
        }
        if self.size == 1 {
            return Ok(Event::DONE);
        }
        let event = self.handle(ctx, Parts::REMOTE, Outlook::Wait)?;
        let call = Call {
            root: root.0,
            len: len as u64,
        };
        let (bytes, missing, fresh) = if is_root {
            (Place(src.cast_mut()), 0, self.pieces(len))
        } else {
            (Place(dst), len, Vec::new())
        };
        let called = Arrival::Called {
            call,
            dst: Place(dst),
            missing,
            fresh,
        };
        // The largest subtree first.
        let mut children: Vec<_> = self.children(root).map(|(_, rank)| (rank, 0)).collect();
        children.reverse();
        {
            let mut flights = self.background.broadcasts.flights.lock();
            let outcome = self
                .background
                .broadcasts
                .inbox
                .lock()
                .call(called, call, self.rank);
            let number = outcome.unwrap_or_else(|message| self.fatal(&message));
            flights.push(Flight {
                number,
                event,
                call,
                bytes,
                pieces: Vec::new(),
                children,
                doubt: Doubt::None,
            });
            self.background.begin(kind::BROADCAST);
        }
        self.advance_broadcasts();
        Ok(event)
    }

    /// What the root sends: at least one piece, so that all hear of a broadcast of no bytes.
    fn pieces(&self, len: usize) -> Vec<Piece> {
        let chunk = CHUNK.min(self.conduit.limits().medium_request).max(1);
        let piece = |offset| Piece {
            offset,
            len: chunk.min(len - offset),
        };
        (0..len.max(1)).step_by(chunk).map(piece).collect()
    }

    /// Sends on what has come and completes what is there and has been sent on.
    pub(super) fn advance_broadcasts(&self) -> usize {
        let broadcasts = &self.background.broadcasts;
        let mut flights = broadcasts.flights.lock();
        let mut steps = Steps::default();
        flights.retain_mut(|flight| {
            let all = flight.has_come(&mut broadcasts.inbox.lock());
            self.send_on(flight, &mut steps);
            if flight.pieces.is_empty() {
                self.doubt(flight, &mut steps);
            }
            let sent = |(_, sent): &(JobRank, usize)| *sent == flight.pieces.len();
            let over = all && flight.children.iter().all(sent);
            if over {
                broadcasts.inbox.lock().open.remove(&flight.number);
                self.finish(flight.event, &mut steps);
            }
            !over
        });
        let taken = steps.publish(&self.background, &broadcasts.stuck);
        if flights.is_empty() {
            self.background.end(kind::BROADCAST);
        }
        taken
    }

    /// Sends the children what this rank has, as far as there is room.
    fn send_on(&self, flight: &mut Flight, steps: &mut Steps) {
        let [number, len] = [flight.number, flight.call.len].map(halves);
        for (child, sent) in &mut flight.children {
            while let Some(piece) = flight.pieces.get(*sent) {
                let [low, high] = halves(piece.offset as u64);
                let at = flight.bytes.0.wrapping_add(piece.offset);
                let start = NonNull::new(at).unwrap_or(NonNull::dangling());
                // SAFETY: the piece lies inside the caller's bytes: `start` has made it up or
                // `place` has checked it. They are readable until the event is complete, and this
                // rank has written the piece already; null stands for no bytes.
                let bytes = unsafe { SharedBytes::from_raw(start, piece.len) };
                let message = Message {
                    handler: internal::BROADCAST,
                    args: &[
                        number[0],
                        number[1],
                        flight.call.root,
                        len[0],
                        len[1],
                        low,
                        high,
                    ],
                    payload: Payload::Medium(bytes),
                };
                if !self.send_now(*child, &message, steps) {
                    break;
                }
                *sent += 1;
            }
        }
    }

    /// Asks the root whether it is the root, if nothing comes from it for long.
    fn doubt(&self, flight: &mut Flight, steps: &mut Steps) {
        match flight.doubt {
            Doubt::None => flight.doubt = Doubt::Asks((self.clock)() + PATIENCE),
            Doubt::Asks(at) if (self.clock)() >= at => {
                let [number, len] = [flight.number, flight.call.len].map(halves);
                let question = Message {
                    handler: internal::BROADCAST,
                    args: &[number[0], number[1], len[0], len[1]],
                    payload: Payload::None,
                };
                if self.send_now(JobRank(flight.call.root), &question, steps) {
                    flight.doubt = Doubt::Asked;
                }
            }
            Doubt::Asks(_) | Doubt::Asked => {}
        }
    }
}
