//! Whether the members that a member waits for call the same.

use super::call::Kind;
use super::message_call::{Envelope, Execution, State};
use super::schedule::Step;
use super::started::Started;
use super::wire::Form;
use crate::background::Steps;
use crate::core::Engine;
use crate::mismatch::PATIENCE;
use argonet_am::Payload;
use argonet_conduit::Conduit;
use core::time::Duration;

/// When a member looks at those of its neighborhood for the first time.
const EARLIER: Duration = Duration::from_millis(50);

/// The state of a member that waits and gets no message.
#[derive(Clone, Copy)]
pub(super) enum MismatchCheck {
    /// It has not looked twice.
    None,
    /// It looks at members of the neighborhood at this time: sooner than they give up waiting for
    /// it, since it can name both calls.
    Neighbors(Duration),
    /// It looks again at this time, and asks then if it has not yet.
    Looks { at: Duration, asked: bool },
}

impl<C: Conduit> Engine<C> {
    /// If nothing comes in a round for [`PATIENCE`], asks the members that this one waits for
    /// whether they call the same.
    ///
    /// From time to time also compares the calls of members of the neighborhood, and the calls that
    /// other ranks report.
    pub(super) fn ask_for_mismatch(
        &self,
        started: &Started,
        envelope: &Envelope,
        execution: &mut Execution,
        steps: &mut Steps,
    ) {
        // A member that is late in one of the library's own calls is late in another, too.
        if execution.call.kind == Kind::Window {
            return;
        }
        let now = (self.clock)();
        let asked = match execution.check {
            MismatchCheck::Looks { at, .. } if now < at => return,
            MismatchCheck::Looks { asked, .. } => {
                if !asked {
                    self.ask(started, envelope, execution, steps);
                }
                if let Some(next) = envelope.next_by_cells {
                    self.check_calls_by_cells(started, next);
                }
                if started.blocks {
                    self.look_at_heard(&started.called);
                }
                true
            }
            MismatchCheck::Neighbors(at) if now < at => return,
            MismatchCheck::Neighbors(_) => {
                if let Some(next) = envelope.next_by_cells {
                    self.check_calls_by_cells(started, next);
                }
                let (at, asked) = (now + PATIENCE - EARLIER, false);
                execution.check = MismatchCheck::Looks { at, asked };
                return;
            }
            MismatchCheck::None if envelope.next_by_cells.is_some() => {
                execution.check = MismatchCheck::Neighbors(now + EARLIER);
                return;
            }
            MismatchCheck::None => false,
        };
        execution.check = MismatchCheck::Looks {
            at: now + PATIENCE,
            asked,
        };
    }

    fn ask(
        &self,
        started: &Started,
        envelope: &Envelope,
        execution: &Execution,
        steps: &mut Steps,
    ) {
        let messages = execution.schedule.messages(execution.round).iter();
        for (step, state) in messages.zip(&execution.states) {
            let (Step::Send { to: other, tag, .. }
            | Step::Receive {
                from: other, tag, ..
            }) = *step
            else {
                continue;
            };
            if *state == State::Waits {
                let header = envelope.header(other, tag, Form::Question);
                // A member is not asked while there is no room for the question.
                self.send_header(envelope, &header, Payload::None, steps);
                if started.blocks {
                    self.question(&started.called, started.team.job_rank(other));
                }
            }
        }
    }
}
