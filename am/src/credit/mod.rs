//! Flow control of requests by credits, without I/O: how much each rank may send to each other, and
//! how credits move to the ranks that need them.
//!
//! A credit is [`Costs::granularity`] bytes of a rank's receive space. The rank that owns the space
//! is the *lender*; a rank that may send into it is a *borrower* and pays each request with
//! credits, which come back with the reply. Replies cost nothing, as the requester keeps room for
//! them. docs/flow-control.md explains the machine and shows it at work.
//!
//! * [`Space`] is the receive space, [`Plan`] how its credits are dealt out at the start.
//! * [`Bank`] is what all streams of a rank share: credits that are not lent, the epoch, and the
//!   peers that may be asked to give back. Its counts are atomic.
//! * [`Peer`] is what the rank keeps about one other, as lender and as borrower; it belongs to the
//!   peer's stream and its lock.
//! * [`Tag`] travels with requests and replies, as one byte or in wider fields ([`Form`]);
//!   [`Revoke`] and [`Return`] travel in the [system queue](crate::system_queue).
//! * [`Rules`] holds every limit, and which rules of the Portals text are mended.
//!
//! Credits of the lender are [`Credits`], a type that can be neither copied nor made: they are
//! split off, moved and joined, and the first are made by [`Bank::new`] from the space. So no
//! sequence of calls lends more than the space holds. A borrower has got the number of its credits
//! over a wire; where that is too large, the lender refuses the request ([`PushedBack`]) and says
//! what it has lent.
// spec P9: credits, costs, shares and the bank.
// spec P10: loans that follow demand.

mod bank;
mod borrower;
mod cost;
mod error;
mod form;
mod lender;
mod peer;
mod plan;
mod purse;
mod rules;
mod scavenge;
mod space;
mod stream;

#[cfg(test)]
mod tests;

pub use bank::{Bank, Moved};
pub use borrower::Attempt;
pub use cost::Costs;
pub use error::{CreditError, PlanError};
pub use form::{Form, Tag};
pub use lender::{Debt, PushedBack};
pub use peer::{Figures, Peer};
pub use plan::{Plan, Wishes};
pub use purse::Credits;
pub use rules::{Mends, Rules};
pub use scavenge::{Return, Revoke};
pub use space::Space;
