//! Number of open files of the processes of a job.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The descriptors that a guardian, launcher or agent needs beside those that count per rank.
pub(crate) const SPARE_FILES: u64 = 32;

/// Descriptors that a launcher or agent has of each agent below: input, output, standard error and
/// the process.
pub(crate) const FILES_OF_AGENT: u64 = 4;

/// Open files of a rank of a job over several hosts, beside its connections: those that it was
/// started with, listening sockets, and up to 64 connections that have not authenticated yet.
const FILES_OF_RANK: u64 = 128;

/// The files that a rank needs which shares memory with all but `others` ranks: as many connections
/// to each of those as a large transfer may use (`ARGONET_TCP_CONNECTIONS`).
#[must_use]
pub fn files_of_rank(others: u32, connections: u64) -> u64 {
    u64::from(others) * connections.max(1) + FILES_OF_RANK
}

/// Lets this process, a rank, have so many connections to each of `others` ranks, if the hard limit
/// does.
pub(crate) fn make_room_for_connections(others: u32, connections: u64) {
    raise_file_limit(files_of_rank(others, connections));
}

/// Raises the soft limit of open files to `need`, or to the hard limit if that is lower; the limit
/// before.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_to_each_other_rank_is_a_file() {
        let alone = files_of_rank(0, 2);
        assert_eq!(files_of_rank(63, 1) - alone, 63);
        assert_eq!(files_of_rank(63, 16) - alone, 63 * 16);
        // One file for the stream itself, even if 0 connections are allowed.
        assert_eq!(files_of_rank(63, 0), files_of_rank(63, 1));
    }
}
