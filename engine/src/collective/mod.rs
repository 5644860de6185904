//! Collective operations of teams, which go on while their callers do something else.
//!
//! Every operation is a [`Schedule`], made by a pure function ([`plan`]) of its kind, its lengths,
//! the member's place and the neighborhoods: rounds of messages and of local steps. One machine
//! executes them all (`flight`), driven by polls, since handlers cannot send. Handlers put bytes
//! that come where they belong, or keep them (`mailbox`).
//!
//! Messages carry (team key, number of the call on that team, sender, receiver, tag), and the label
//! of the call, which must be the same at all members. A rank that differs from another ends the
//! job with a message that names both; where nothing comes for long, a rank asks the ranks that it
//! waits for.
//!
//! Short calls of a team that has a slot of cells go without messages (`shared_team`, `cell_round`;
//! [`shared_memory`](super::shared_memory)).
//!
//! Short sends go at once. Longer ones are offered, and go when the receiver has come to them.

mod call;
mod cell_round;
mod flight;
mod label;
mod mailbox;
mod mismatch_check;
mod plan;
mod pool;
mod posted;
mod pull;
mod schedule;
mod scratch;
mod shared_calls;
mod shared_team;
mod slots;
mod start;
mod teams;
mod wire;

pub use call::{Call, FoldFn, Folding, Kind, Meets};
pub use label::Signature;
pub(super) use label::{History, Label};
pub use mailbox::Count;
pub use plan::TREES;
pub use plan::{Hoods, Situation, Task, Tuning, plan, radix_of, tree_of};
pub use schedule::{Area, Range, Schedule, Step};
pub(super) use shared_team::{SharedTeam, SharedTeams};
pub(super) use slots::{Offer, Offered};
pub use teams::HoodOf;
pub(super) use teams::{Collectives, register};
