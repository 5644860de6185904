//! How many files processes of a job have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The descriptors that a guardian, launcher or agent needs beside those that count per rank.
pub(crate) const SPARE_FILES: u64 = 32;

/// Descriptors that a launcher or agent has of each agent below: input, output, standard error and the process.
pub(crate) const FILES_OF_AGENT: u64 = 4;

/// What a rank of a job over several hosts has open beside its connections: what it was started with, what it listens at, and up to
/// 64 connections that have not proved anything yet.
const FILES_OF_RANK: u64 = 128;

/// Connections to a peer, if both ends want as many as there can be.
const CONNECTIONS: u64 = 16;

/// The files that a rank needs which has `others` ranks on other hosts: a connection to each.
#[must_use]
pub fn files_of_rank(others: u32) -> u64 {
    u64::from(others) + FILES_OF_RANK
}

/// Lets this process, a rank, have as many connections to `others` ranks as it may want, if the hard limit does.
pub(crate) fn make_room_for_connections(others: u32) {
    raise_file_limit(u64::from(others) * CONNECTIONS + FILES_OF_RANK);
}

/// Raises the soft limit of open files to `need`, or to the hard limit if that is lower; the limit before.
pub(crate) fn raise_file_limit(need: u64) -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    if before.current.is_some_and(|now| now < need) {
        let current = Some(before.maximum.map_or(need, |most| most.min(need)));
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current,
                maximum: before.maximum,
            },
        );
    }
    before
}
