//! Small collective operations of ranks that share memory: each writes a line, and reads those of
//! others.
//!
//! A [`Circle`] is a team that has a slot of lines to itself (`argonet_conduit::Lines`). Its
//! calls are numbered. A member *enters* a call by writing the operation and its contribution into
//! its own line; it has *finished* the call when it has read the lines of others that it needs.
//! Nothing else is written, so a call costs one transfer of a line between each writer and each
//! reader, and all of them go on at once. Results of reductions are folded by each reader in the
//! order of ranks, so they are the same everywhere to the last bit.
//!
//! * [`meet`] — calls that wait
//! * [`named`] — the barrier with names
//! * [`world`] — calls of all ranks, as the Rust API has them

mod circle;
mod meet;
mod named;
mod world;

pub(super) use circle::{Circle, Circles, KEPT_SLOTS, MOST_MEMBERS, WORLD_SLOT};
pub(super) use meet::{LOOKS_AT_OTHERS, Place};
pub(super) use named::Seat;
