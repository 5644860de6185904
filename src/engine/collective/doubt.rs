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
    /// It asks at this time.
    Asks(Duration),
    Asked,
}

impl<C: Conduit> Engine<C> {
    /// Asks those that this member waits for whether they call the same, if nothing comes for long.
    pub(super) fn ask_in_doubt(&self, flight: &Flight, work: &mut Work, steps: &mut Steps) {
        // Whoever is late in one of the library's own is late in another, too.
        if work.call.kind == Kind::Window {
            return;
        }
        match work.doubt {
            Doubt::None => work.doubt = Doubt::Asks((self.clock)() + PATIENCE),
            Doubt::Asks(at) if (self.clock)() >= at => {
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
                work.doubt = Doubt::Asked;
            }
            Doubt::Asks(_) | Doubt::Asked => {}
        }
    }
}
