//! The job of this process, and the objects that `gasnetex.h` has: clients, endpoints, segments,
//! teams.

mod client;
mod ctypes;
mod endpoint;
mod error;
mod everything;
mod hooks;
mod linked;
mod losses;
mod object;
mod placed;
mod published;
mod segment;
mod state;
mod system;
mod team;
mod teams;
mod threads;

pub(crate) use client::{Client, Start, USES_GASNET1, is_second, start};
pub(crate) use endpoint::Endpoint;
pub(crate) use error::{
    BAD_ARG, BARRIER_MISMATCH, NOT_INIT, NOT_READY, OK, PEER_LOST, RESOURCE, fatal, refuse,
};
pub(crate) use everything::SegmentMode;
pub(crate) use linked::{Variant, linked};
pub(crate) use object::{CData, given};
pub(crate) use placed::Placed;
pub(crate) use segment::{Kind, Segment, attach, check_size, not_attached};
pub(crate) use state::{Job, find, job, rank, with_job};
pub(crate) use team::{Receiver, Team, known, known_as, member, team};
pub(crate) use teams::Teams;

use crate::Prototype;

/// All functions that `argonet/job.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [
        client::PROTOTYPES,
        endpoint::PROTOTYPES,
        error::PROTOTYPES,
        linked::PROTOTYPES,
        losses::PROTOTYPES,
        published::PROTOTYPES,
        segment::PROTOTYPES,
        system::PROTOTYPES,
        &team::prototypes(),
    ]
    .concat()
}

/// Sizes and places in structs that C declares too, as C would ask for them.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    [linked::LAYOUT, system::LAYOUT, team::LAYOUT].concat()
}
