//! `argonet doctor`: whether a job over these hosts would work, and what to change where it would
//! not.
//!
//! An agent on each host reports the facts of the host ([`facts`]) and listens as the ranks of a
//! job would; then all agents connect to all others ([`connect`]), and send each other datagrams
//! ([`datagrams`]). The results are judged here
//! ([`judge`]), without any system call, and printed ([`finding`]).

mod command;
mod connect;
mod datagrams;
mod facts;
mod finding;
mod judge;
mod look;
mod network;
mod paths;

pub(crate) use command::Doctor;
pub(crate) use look::look;
