//! A call by messages: executes its schedule as far as it goes without waiting.
#![allow(unsafe_code)]

use super::call::Call;
use super::label::Label;
use super::mailbox::{Coming, Slot};
use super::mismatch_check::MismatchCheck;
use super::posted::Place;
use super::pull::Lies;
use super::schedule::{Area, Range, Schedule, Step};
use super::scratch::Scratch;
use super::started::Started;
use super::teams::Member;
use super::wire::{Form, Header};
use crate::background::Steps;
use crate::client::ClientCode;
use crate::core::Engine;
use crate::thread::ThreadCtx;
use argonet_am::{Message, Payload};
use argonet_conduit::Conduit;
use argonet_segment::SharedBytes;
use core::ptr::NonNull;
use std::sync::Arc;

/// The state of a message of the current round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A send that has not begun, a receive that is not posted.
    Begins,
    /// A send that has been offered, a receive that waits for a message.
    Waits,
    /// A send whose receiver waits for its pieces, from this offset on.
    Flows(usize),
    /// A receive that has been offered, to be answered.
    Answers(Lies),
    /// A receive whose bytes this member has read where they lay; the sender has yet to hear of it.
    Pulled,
    /// Complete.
    Over,
}

/// How far a member has come in the schedule of a call by messages.
pub(super) struct Execution {
    pub(super) call: Call,
    pub(super) schedule: Schedule,
    scratch: Scratch,
    pub(super) round: usize,
    /// States of the messages of the round; empty before it begins.
    pub(super) states: Vec<State>,
    /// Messages of the round that are not over.
    open: usize,
    pub(super) check: MismatchCheck,
}

/// What the messages of a call have in common.
pub(super) struct Envelope {
    pub(super) member: Arc<Member>,
    /// Its number among those by messages.
    number: u32,
    pub(super) label: Label,
    /// Number of the next call by cells, where the team has some.
    pub(super) next_by_cells: Option<u64>,
}

/// A call by messages.
pub(super) struct MessageCall {
    pub(super) envelope: Envelope,
    execution: Execution,
}

// SAFETY: scratch and call are touched only by the thread that goes on with the call, one at a
// time, and by handlers under the mailbox's lock where a receive has been posted, which no other
// thread reads before it is complete.
unsafe impl Send for MessageCall {}

impl MessageCall {
    /// A call that has its number, and its schedule.
    pub(super) fn new(
        member: &Arc<Member>,
        number: u32,
        call: Call,
        schedule: Schedule,
        next_by_cells: Option<u64>,
    ) -> Self {
        let scratch = member.spare.take(schedule.scratch_bytes());
        Self {
            envelope: Envelope {
                member: Arc::clone(member),
                number,
                label: call.label(),
                next_by_cells,
            },
            execution: Execution {
                call,
                schedule,
                scratch,
                round: 0,
                states: Vec::new(),
                open: 0,
                check: MismatchCheck::None,
            },
        }
    }
}

impl Drop for MessageCall {
    fn drop(&mut self) {
        let scratch = core::mem::take(&mut self.execution.scratch);
        self.envelope.member.spare.give(scratch);
    }
}

impl Envelope {
    pub(super) fn header(&self, to: u32, tag: u32, form: Form) -> Header {
        let team = &self.member.team;
        Header {
            key: team.key,
            number: self.number,
            from: team.rank,
            to,
            tag,
            form,
            label: self.label,
            at: 0,
            len: 0,
        }
    }

    fn slot(&self, from: u32, tag: u32, answer: bool) -> Slot {
        Slot {
            number: self.number,
            from,
            tag,
            answer,
        }
    }
}

impl Execution {
    /// Where a range lies.
    fn place(&self, range: Range) -> *mut u8 {
        let base = match range.area {
            Area::Source => self.call.src.cast_mut(),
            Area::Target => self.call.dst,
            Area::Scratch => self.scratch.as_ptr(),
        };
        base.wrapping_add(range.at)
    }

    /// The bytes of a range that is sent.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands.
    unsafe fn bytes(&self, range: Range) -> SharedBytes<'static> {
        let start = NonNull::new(self.place(range)).unwrap_or(NonNull::dangling());
        // SAFETY: the schedule's ranges lie in the areas, which are the call's until it is
        // complete; the view is gone before that.
        unsafe { SharedBytes::from_raw(start, range.len) }
    }

    /// Copies and folds.
    fn do_local(&mut self) {
        for at in 0..self.schedule.local(self.round).len() {
            match self.schedule.local(self.round)[at] {
                Step::Copy { from, into } => {
                    let (from, to, len) = (self.place(from), self.place(into), into.len);
                    if from != to {
                        // SAFETY: both lie in areas of the call, the second writable; source and
                        // target of the client may be the same memory.
                        unsafe { core::ptr::copy(from, to, len) };
                    }
                }
                Step::Fold { left, right } => {
                    let Some(folding) = self.call.folding else {
                        continue;
                    };
                    let count = right.len / self.call.unit.max(1);
                    let (left, right) = (self.place(left), self.place(right));
                    // SAFETY: as many whole elements lie at both, which do not overlap; the
                    // function and its context are usable until the call is complete.
                    unsafe { (folding.function)(folding.context, left, right, count) };
                }
                Step::Send { .. } | Step::Receive { .. } => {}
            }
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Goes on with a call as far as it goes; whether it is complete.
    pub(super) fn advance_messages(
        &self,
        ctx: &ThreadCtx,
        started: &Started,
        MessageCall {
            envelope,
            execution,
        }: &mut MessageCall,
        steps: &mut Steps,
    ) -> bool {
        if !envelope.member.mailbox.lock().may_begin(envelope.number) {
            return false;
        }
        while execution.round < execution.schedule.rounds() {
            if execution.states.is_empty() {
                execution.open = execution.schedule.messages(execution.round).len();
                execution.states.resize(execution.open, State::Begins);
                execution.check = MismatchCheck::None;
            }
            for at in 0..execution.states.len() {
                if execution.states[at] != State::Over {
                    self.go_on(envelope, execution, at, steps);
                    execution.open -= usize::from(execution.states[at] == State::Over);
                }
            }
            if execution.open > 0 {
                self.ask_for_mismatch(started, envelope, execution, steps);
                return false;
            }
            if !execution.schedule.local(execution.round).is_empty() {
                self.call_client(ctx, ClientCode::Combination, || execution.do_local());
            }
            execution.round += 1;
            execution.states.clear();
        }
        envelope.member.mailbox.lock().end(envelope.number);
        true
    }

    /// Goes on with a message of the round.
    fn go_on(&self, envelope: &Envelope, execution: &mut Execution, at: usize, steps: &mut Steps) {
        let before = execution.states[at];
        let after = match execution.schedule.messages(execution.round)[at] {
            Step::Send { to, from, tag } => {
                self.go_on_sending(envelope, execution, (to, from, tag), before, steps)
            }
            Step::Receive { from, into, tag } => {
                self.go_on_receiving(envelope, execution, (from, into, tag), before, steps)
            }
            Step::Copy { .. } | Step::Fold { .. } => State::Over,
        };
        if after != before {
            execution.states[at] = after;
            execution.check = MismatchCheck::None;
        }
    }

    /// Sends a message if there is room; says whether it has.
    pub(super) fn send_header(
        &self,
        envelope: &Envelope,
        header: &Header,
        payload: Payload<'_>,
        steps: &mut Steps,
    ) -> bool {
        let args = header.args();
        let message = Message {
            handler: crate::internal::COLLECTIVE,
            args: args.as_slice(),
            payload,
        };
        self.send_now(envelope.member.team.job_rank(header.to), &message, steps)
    }

    fn go_on_sending(
        &self,
        envelope: &Envelope,
        execution: &mut Execution,
        (to, from, tag): (u32, Range, u32),
        mut state: State,
        steps: &mut Steps,
    ) -> State {
        let medium = self.conduit.limits().medium_request;
        if state == State::Begins {
            let eager = envelope.member.eager_bytes(medium);
            let mut header = envelope.header(to, tag, Form::Whole);
            // SAFETY: a range of the schedule.
            let mut payload = unsafe { execution.bytes(from) };
            if from.len > eager {
                (header.form, header.at) = self.lies(payload.as_ptr(), from.len).to_wire();
                header.len = from.len as u64;
                payload = SharedBytes::from_slice(&[]);
            }
            let payload = match payload.is_empty() {
                true => Payload::None,
                false => Payload::Medium(payload),
            };
            if !self.send_header(envelope, &header, payload, steps) {
                return state;
            }
            if header.form == Form::Whole {
                return State::Over;
            }
            state = State::Waits;
        }
        if state == State::Waits {
            match envelope
                .member
                .mailbox
                .lock()
                .answer(envelope.slot(to, tag, true))
            {
                Some(Form::Done) => return State::Over,
                Some(_) => state = State::Flows(0),
                None => {}
            }
        }
        while let State::Flows(offset) = state {
            let len = medium.max(1).min(from.len - offset);
            let mut header = envelope.header(to, tag, Form::Piece);
            header.at = offset as u64;
            // SAFETY: a range of the schedule.
            let payload = unsafe { execution.bytes(from.part(offset, len)) };
            if !self.send_header(envelope, &header, Payload::Medium(payload), steps) {
                return state;
            }
            state = match offset + len {
                end if end == from.len => State::Over,
                end => State::Flows(end),
            };
        }
        state
    }

    fn go_on_receiving(
        &self,
        envelope: &Envelope,
        execution: &mut Execution,
        (from, into, tag): (u32, Range, u32),
        mut state: State,
        steps: &mut Steps,
    ) -> State {
        let slot = envelope.slot(from, tag, false);
        let place = execution.place(into);
        let coming = match state {
            State::Begins => Some(envelope.member.mailbox.lock().post(
                slot,
                Place(place),
                into.len,
            )),
            State::Waits => Some(envelope.member.mailbox.lock().look(slot)),
            _ => None,
        };
        match coming {
            Some(Err(message)) => self.fatal(&message),
            Some(Ok(Coming::Waits)) => return State::Waits,
            Some(Ok(Coming::Complete)) => return State::Over,
            Some(Ok(Coming::Offer(lies))) => state = State::Answers(lies),
            None => {}
        }
        if let State::Answers(lies) = state {
            let source = envelope.member.team.job_rank(from);
            // SAFETY: the range is writable, and the sender has offered its bytes.
            if unsafe { self.pull(source, lies, place, into.len) } {
                envelope.member.mailbox.lock().pulled(slot);
                state = State::Pulled;
            } else {
                let header = envelope.header(from, tag, Form::Ready);
                let ready = self.send_header(envelope, &header, Payload::None, steps);
                return if ready { State::Waits } else { state };
            }
        }
        if state == State::Pulled {
            let header = envelope.header(from, tag, Form::Done);
            if self.send_header(envelope, &header, Payload::None, steps) {
                return State::Over;
            }
        }
        state
    }
}
