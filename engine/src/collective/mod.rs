//! Collective operations of teams, which go on while their callers do something else.
//!
//! A call that is not complete at once stands in one list (`started`) until polls have completed
//! it. One of two back ends moves its data:
//!
//! * Messages (`message_call`). The call is a [`Schedule`], made by a pure function ([`plan`]) of
//!   its kind, its lengths, the member's place and the neighborhoods: rounds of messages and of
//!   local steps. Polls send, since handlers cannot. Handlers put bytes that come where they
//!   belong, or keep them (`mailbox`). Short sends go at once. Longer ones are offered: a receiver
//!   that reaches the bytes reads them where they lie (`pull`), another asks for them in pieces.
//! * Shared memory (`cell_call`), for short calls and longer reductions of a team that has a slot
//!   of cells (`shared_team`, `cell_round`, `pool`; [`shared_memory`](super::shared_memory)).
//!
//! Messages carry (team key, number of the call on that team, sender, receiver, tag), and the label
//! of the call, which must be the same at all members. A rank that differs from another ends the
//! job with a message that names both; where nothing comes for long, a rank asks the ranks that it
//! waits for.

mod call;
mod cell_call;
mod cell_round;
mod label;
mod mailbox;
mod message_call;
mod mismatch_check;
mod plan;
mod pool;
mod posted;
mod pull;
mod schedule;
mod scratch;
mod shared_team;
mod slots;
mod start;
mod started;
mod teams;
mod wire;

pub use call::{AllSync, BlockRanges, Call, FoldFn, Folding, Kind};
pub use label::Signature;
pub(super) use label::{History, Label};
pub use mailbox::Count;
pub use plan::TREES;
pub use plan::{Hoods, Situation, Task, Tuning, plan, radix_of, tree_of};
pub use schedule::{Area, Range, Schedule, Step};
pub(super) use shared_team::SharedTeam;
pub(super) use slots::{Offer, Offered};
pub use teams::HoodOf;
pub(super) use teams::{Collectives, register};
