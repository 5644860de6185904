//! Whether those that a member waits for call the same.

use super::call::Kind;
use super::flight::{Flight, State, Work};
use super::schedule::Step;
use super::wire::Form;
use crate::engine::background::Steps;
use crate::engine::core::Engine;
use argonet_am::Payload;
use argonet_conduit::Conduit;
use core::time::Duration;

/// How long a member waits in a round to which nothing comes before it asks those that it waits for whether they call the
/// same. A call that goes well costs no message for it unless somebody is as late as this.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a member to which nothing comes thinks of it.
#[derive(Clone, Copy)]
pub(super) enum Doubt {
    /// It has not looked twice.
    None,
    /// It looks again at this time, and asks then if it has not yet.
    Looks { at: Duration, asked: bool },
}

impl<C: Conduit> Engine<C> {
    /// Asks those that this member waits for whether they call the same, if nothing comes for long, and looks from time to time
    /// what members of the neighbourhood have called.
    pub(super) fn ask_in_doubt(&self, flight: &Flight, work: &mut Work, steps: &mut Steps) {
        // Whoever is late in one of the library's own is late in another, too.
        if work.call.kind == Kind::Window {
            return;
        }
        let now = (self.clock)();
        let asked = match work.doubt {
            Doubt::Looks { at, .. } if now < at => return,
            Doubt::Looks { asked, .. } => {
                if !asked {
                    self.ask(flight, work, steps);
                }
                if let Some(standing) = &flight.standing {
                    self.doubt_standing(work.call.label(), standing);
                }
                true
            }
            Doubt::None => false,
        };
        work.doubt = Doubt::Looks {
            at: now + PATIENCE,
            asked,
        };
    }

    fn ask(&self, flight: &Flight, work: &Work, steps: &mut Steps) {
        let messages = work.schedule.messages(work.round).iter();
        for (step, state) in messages.zip(&work.states) {
            let (Step::Send { to: other, tag, .. }
            | Step::Receive {
                from: other, tag, ..
            }) = *step
            else {
                continue;
            };
            if *state == State::Waits {
                let header = flight.header(other, tag, Form::Question);
                // Whom there is no room for is not asked.
                self.tell(flight, &header, Payload::None, steps);
            }
        }
    }
}
