//! Small collective operations of ranks that share memory: each writes a cell, and reads those of
//! others.
//!
//! A [`Group`] is a team that has a slot of cells to itself (`argonet_conduit::SharedCells`). Its
//! calls are numbered. A member *enters* a call by writing the operation and its contribution into
//! its own cell; it has *finished* the call when it has read the cells of others that it needs.
//! Then it stores how many calls it has finished, which others load only when a cell has no room.
//! So a call costs one transfer of a cell between each writer and each reader, and all of them go
//! on at once. Each reader folds the contributions to a reduction in the order of ranks, so results
//! are the same everywhere to the last bit.
//!
//! * [`wait`] — calls that wait
//! * [`named`] — the barrier with names
//! * [`world`] — calls of all ranks, as the Rust API has them

mod group;
mod named;
mod wait;
mod world;

pub(super) use group::{Group, Groups, KEPT_SLOTS, MOST_MEMBERS, WORLD_SLOT};
pub(super) use named::NamedCall;
pub(super) use wait::{CellMembers, CellPlace, LOOKS_AT_OTHERS};
