//! Errors while a job starts, waits at a fence, or is launched.

use std::fmt;
use std::io;
use std::time::Duration;

use argonet_base::JobRank;

use crate::bootstrap::{Key, MAX_VALUE_BYTES};
use crate::hosts::HostListError;
use crate::page::{ExitWord, MAX_JOB_RANKS, MAX_LOCAL_RANKS};

/// An error of the bootstrap.
///
/// Each message names the rank or setting, the cause and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootError {
    /// The number of ranks asked for is outside of what one host can run.
    #[error("{given} ranks were asked for; a job on one host has 1 to {MAX_LOCAL_RANKS} ranks")]
    BadRankCount {
        /// The number asked for.
        given: u64,
    },
    /// The job's description that the launcher leaves in the environment cannot be used.
    #[error(
        "the job description in the environment variable ARGONET_BOOT (\"{value}\") cannot be used: {reason}. \
         `argonet run` sets it for the ranks that it starts; if this program is not such a rank, remove the variable"
    )]
    BadBootEnvironment {
        /// Value of the variable.
        value: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A process tried to become a rank that another process is, or was.
    #[error(
        "job rank {rank} has been taken by process {pid} already ({state}): one process attaches as a rank, once. \
         Does the program that `argonet run` started start two argonet programs, or initialize twice?"
    )]
    RankTaken {
        /// The rank.
        rank: JobRank,
        /// The process that has it.
        pid: u32,
        /// State of that process.
        state: &'static str,
    },
    /// A process that has more than one thread cannot fork the other ranks.
    #[error(
        "this process has {threads} threads and cannot fork {what}: initialize argonet before the first thread is \
         started, or start the ranks with `argonet run -n N`"
    )]
    SecondThread {
        /// Number of threads.
        threads: usize,
        /// The process that was to be forked.
        what: &'static str,
    },
    /// Another launcher has started several processes that cannot become the ranks of one job, so
    /// that this one would be rank 0 of 1.
    #[error(
        "{variable} says that {launcher} started {} processes, which cannot become one job: {reason}. Start one process of \
         `argonet run -n {} program` instead, or set GASNET_PSHM_NODES=1 if jobs of one rank are what you want",
        .size.map_or("several".into(), |size| size.to_string()),
        .size.map_or("N".into(), |size| size.to_string())
    )]
    ForeignLauncher {
        /// The environment variable that gives it away.
        variable: &'static str,
        /// The launcher that sets that variable.
        launcher: &'static str,
        /// The number of processes, if it says that.
        size: Option<u64>,
        /// Why they cannot become one job.
        reason: String,
    },
    /// A variable by which another launcher describes its processes cannot be used.
    #[error(
        "the environment variable {variable}, by which launchers describe their processes, is \"{value}\", which is not what a \
         launcher sets. If no launcher started this program, remove the variable; else set GASNET_PSHM_NODES=1 for jobs of one \
         rank"
    )]
    BadLauncherVariable {
        /// Its name.
        variable: &'static str,
        /// Its value, or the beginning of it.
        value: String,
    },
    /// Processes that another launcher started did not all come to become one job.
    #[error(
        "rank {rank} of {size}, started by {launcher}, waited {} s at the socket @{place} for {missing}{hint}; do all processes run \
         the same program, in one network namespace? If they are only slow, raise ARGONET_START_TIMEOUT (seconds); set \
         GASNET_PSHM_NODES=1 if this program is to be a job of its own, as where a rank has started it",
        waited.as_secs()
    )]
    RendezvousTimeout {
        /// The rank that waited.
        rank: JobRank,
        /// Number of ranks.
        size: u32,
        /// The launcher.
        launcher: &'static str,
        /// Abstract name of the socket.
        place: Box<str>,
        /// Ranks that did not come.
        missing: Missing,
        /// Time that it waited.
        waited: Duration,
        /// What else is known, beginning with a separator; may be empty.
        hint: Box<str>,
    },
    /// Another process has the name at which the ranks of a host find each other.
    #[error(
        "rank {rank}: the socket @{place}, at which processes of {launcher} become one job, belongs to {owner}, not to rank \
         {leader} of this job. No job can start here until that process has ended"
    )]
    RendezvousTaken {
        /// The rank that reports it.
        rank: JobRank,
        /// The launcher.
        launcher: &'static str,
        /// Abstract name of the socket.
        place: String,
        /// The process that has it.
        owner: String,
        /// The rank that should have it.
        leader: JobRank,
    },
    /// Processes that another launcher started could not become one job.
    #[error("rank {rank}, started by {launcher}, could not join its job: {reason}")]
    RendezvousFailed {
        /// The rank that reports it.
        rank: JobRank,
        /// The launcher.
        launcher: &'static str,
        /// Why.
        reason: String,
    },
    /// The store by which another launcher lets its processes exchange values cannot be used.
    #[error(
        "rank {rank}: the store of {launcher} ({store}) failed at \"{command}\": {reason}. `argonet run` with a list of \
         hosts does without it"
    )]
    LauncherStore {
        /// The rank that reports it.
        rank: JobRank,
        /// The launcher.
        launcher: &'static str,
        /// The interface to it.
        store: &'static str,
        /// The command.
        command: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// A system call failed.
    #[error("{what} failed: {source}{remedy}")]
    System {
        /// The step that failed.
        what: String,
        /// The system's reason.
        source: io::Error,
        /// Remedy, beginning with a separator; may be empty.
        remedy: &'static str,
    },
    /// A process could not be made because a limit is too low.
    #[error(
        "rank {rank} of {size} could not be started: the system has no room for another process. Limits to look at: \
         RLIMIT_NPROC (`ulimit -u`, now {nproc}), the control group's pids.max, kernel.pid_max; or start fewer ranks"
    )]
    NoProcess {
        /// The rank that could not be started.
        rank: JobRank,
        /// Number of ranks of the job.
        size: u32,
        /// The soft limit of processes of this user.
        nproc: String,
    },
    /// The limit of open files is too low for the number of ranks.
    #[error(
        "a job of {size} ranks needs {need} open files in {who}, but RLIMIT_NOFILE (`ulimit -n`) allows {limit} even \
         at its hard limit; raise it or start fewer ranks"
    )]
    NoFiles {
        /// Number of ranks of the job.
        size: u32,
        /// Number of files that it takes.
        need: u64,
        /// The hard limit.
        limit: u64,
        /// The process that needs them.
        who: &'static str,
    },
    /// The guardian process could not be started.
    #[error("the guardian process of the job could not be started: {reason}")]
    NoGuardian {
        /// Why.
        reason: String,
    },
    /// A variable that ranks are to get is not set.
    #[error("the environment variable {name} (-E) is not set here{}", nearest.as_ref().map_or(String::new(), |n| format!("; is {n} meant?")))]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The name most like it of a variable that is set.
        nearest: Option<String>,
    },
    /// The program to run does not exist.
    #[error("cannot run \"{program}\": there is no such program{hint}")]
    NoSuchProgram {
        /// The program as given.
        program: String,
        /// Hint about the places that were searched.
        hint: &'static str,
    },
    /// The program to run exists, but cannot be executed.
    #[error("cannot run \"{program}\": {source}")]
    NotExecutable {
        /// The program as given.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The conduit's name is unknown.
    #[error("unknown conduit \"{given}\"; known: {known}")]
    UnknownConduit {
        /// The name given.
        given: String,
        /// The names that there are.
        known: String,
    },
    /// The ranks of the job do not share memory, and the conduit needs that.
    #[error(
        "rank {rank}: the conduit {conduit} joins ranks that share memory only, and of the {size} ranks of this job {near} do \
         so with this one; start it on one host, or with a conduit that spans hosts"
    )]
    NotTogether {
        /// The rank.
        rank: JobRank,
        /// The conduit.
        conduit: &'static str,
        /// Number of ranks that share memory with this one, itself counted.
        near: usize,
        /// Number of ranks.
        size: u32,
    },
    /// The number of ranks asked for is more than a job over several hosts can have.
    #[error(
        "{given} ranks were asked for; a job over several hosts has 1 to {MAX_JOB_RANKS} ranks"
    )]
    TooManyRanks {
        /// The number asked for.
        given: u64,
    },
    /// A list of hosts cannot be used.
    #[error("the list of hosts ({list}) cannot be used: {error}")]
    BadHostList {
        /// Source of the list.
        list: String,
        /// Error.
        error: HostListError,
    },
    /// A job is to be spread, and it is not known over which hosts.
    #[error(
        "GASNET_SPAWNFN is {letter}, and no hosts are named: use -H or --hostfile, or set GASNET_SSH_NODEFILE, \
         GASNET_SSH_SERVERS, GASNET_NODEFILE or, for C, GASNET_CSPAWN_SERVERS"
    )]
    NoHosts {
        /// Letter of the way to reach the hosts.
        letter: &'static str,
    },
    /// A program that starts its own ranks was not given their number.
    #[error(
        "the number of ranks is {given}: with the conduit {conduit} this program starts its ranks itself, and their number is \
         the first argument, as in `{program} 4 ARGUMENTS`; or use `argonet run -n 4 {program} ARGUMENTS`"
    )]
    NoRankCount {
        /// The program's name.
        program: String,
        /// Argument in its place.
        given: String,
        /// The conduit.
        conduit: String,
    },
    /// A launcher script has given a number of ranks that is none.
    #[error(
        "ARGONET_LAUNCH_RANKS is \"{given}\", which is no number of ranks: set it to 1 or more, or unset it and give the \
         number as the first argument, as in `{program} 4 ARGUMENTS`"
    )]
    BadLaunchRanks {
        /// The program's name.
        program: String,
        /// The value of the variable.
        given: String,
    },
    /// The command that starts agents is missing.
    #[error(
        "GASNET_SPAWNFN is C, and GASNET_CSPAWN_CMD is not set: set it to the command that starts %C on host %M, such as \
         `srun -n %N -w %M %C`"
    )]
    NoTemplate,
    /// The command that starts agents cannot be used.
    #[error("the command in GASNET_CSPAWN_CMD (\"{template}\") cannot be used: {reason}")]
    BadTemplate {
        /// The command.
        template: String,
        /// Error.
        reason: String,
    },
    /// The options of the remote shell cannot be cut into words.
    #[error("GASNET_SSH_OPTIONS (\"{text}\") cannot be used: a quote is not closed")]
    OpenQuote {
        /// The options.
        text: String,
    },
    /// The process that is the way to another host cannot be started.
    #[error("cannot run \"{command}\" to reach host {host}: {source}; {remedy}")]
    NoWay {
        /// The host.
        host: String,
        /// Command that was to be run.
        command: String,
        /// The system's reason.
        source: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// The conduit does not reach beyond a host.
    #[error(
        "the conduit {conduit} joins ranks of one host, and this job would be on {hosts} hosts: run it on one, or choose a \
         conduit that spans hosts with --conduit or ARGONET_CONDUIT ({spanning})"
    )]
    OneHostConduit {
        /// The conduit.
        conduit: String,
        /// Number of hosts.
        hosts: usize,
        /// The conduits that would do.
        spanning: String,
    },
    /// The job cannot go on without ranks that are lost, and was to.
    #[error(
        "this job cannot go on without ranks that are lost, as --on-rank-lost or ARGONET_ON_RANK_LOST asks for: {reason}. Use \
         `end` instead of `continue`, or start the job with `argonet run`"
    )]
    NoLosses {
        /// Why.
        reason: String,
    },
    /// The job's description does not fit a message.
    #[error(
        "arguments and environment take {bytes} bytes, and a job message holds at most {most}; remove large variables from the \
         environment"
    )]
    TooMuchToSend {
        /// Size of the description.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// This process was not started as an agent.
    #[error(
        "this command is started by `argonet run` on each host of a job, not by hand: {reason}"
    )]
    NoLauncher {
        /// Reason.
        reason: String,
    },
    /// A fence did not complete in the time allowed for starting up.
    #[error(
        "rank {rank} waited {} s in start-up for {missing}; if they are only slow, raise ARGONET_START_TIMEOUT (seconds)",
        waited.as_secs()
    )]
    FenceTimeout {
        /// The rank that waited.
        rank: JobRank,
        /// Ranks that did not come.
        missing: Missing,
        /// Time that it waited.
        waited: Duration,
    },
    /// A fence cannot complete because ranks that it needs have ended or finalized.
    #[error(
        "rank {rank} waits at a fence that cannot complete: {missing} ended or finalized without entering it"
    )]
    FenceDeserted {
        /// The rank that waits.
        rank: JobRank,
        /// Ranks that will not come.
        missing: Missing,
    },
    /// The job is being ended because of a failure elsewhere.
    #[error("rank {rank}: the job is ending: {cause}{}", .missing.during())]
    JobEnding {
        /// The rank that reports it.
        rank: JobRank,
        /// The first failure.
        cause: ExitWord,
        /// Ranks that had not entered the fence, if this is a fence.
        missing: Missing,
    },
    /// A value is too long for the key store.
    #[error(
        "rank {rank}: a value of {bytes} bytes for key {key:?} is over the key store's limit of {MAX_VALUE_BYTES} bytes"
    )]
    ValueTooLong {
        /// The rank that publishes.
        rank: JobRank,
        /// The key.
        key: Key,
        /// The value's length.
        bytes: usize,
    },
    /// A key was published twice.
    #[error("rank {rank} has published key {key:?} already; a key is published once in a job")]
    PublishedTwice {
        /// The rank that publishes.
        rank: JobRank,
        /// The key.
        key: Key,
    },
    /// A key was looked up that its rank has not published.
    #[error(
        "rank {rank} has not published key {key:?}; a lookup comes after a fence that comes after the publication"
    )]
    NotPublished {
        /// The rank whose value was looked up.
        rank: JobRank,
        /// The key.
        key: Key,
    },
    /// A rank was named that does not exist.
    #[error("there is no job rank {rank}: the job has ranks 0 to {}", size.saturating_sub(1))]
    NoSuchRank {
        /// The rank named.
        rank: JobRank,
        /// The number of ranks.
        size: u32,
    },
}

/// The ranks that a fence waits for; its `Display` names at most [`Missing::NAMED`] of them.
///
/// None are ranks of other hosts, of which it is not known which.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missing(pub Vec<JobRank>);

impl Missing {
    /// Number of ranks that are named; the rest is only counted.
    pub const NAMED: usize = 8;

    fn during(&self) -> String {
        if self.0.is_empty() {
            String::new()
        } else {
            format!(" (at a fence, waiting for {self})")
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("ranks of other hosts");
        }
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        for (i, rank) in self.0.iter().take(Self::NAMED).enumerate() {
            write!(f, "{}{rank}", if i == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(Self::NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl BootError {
    /// The exit code with which a launcher ends on this error: 127 and 126 as shells use them, 2
    /// for a command that cannot be meant, 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoSuchProgram { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::BadRankCount { .. }
            | Self::TooManyRanks { .. }
            | Self::UnknownConduit { .. }
            | Self::BadHostList { .. }
            | Self::NoHosts { .. }
            | Self::NoTemplate
            | Self::UnknownVariable { .. }
            | Self::NoRankCount { .. }
            | Self::BadLaunchRanks { .. }
            | Self::BadTemplate { .. }
            | Self::OpenQuote { .. }
            | Self::OneHostConduit { .. }
            | Self::NoLosses { .. }
            | Self::NoLauncher { .. } => 2,
            Self::NoWay { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            _ => 1,
        }
    }

    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source: io::Error = source.into();
        let remedy = match source.raw_os_error() {
            Some(libc::EMFILE) => "; raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)",
            Some(libc::ENFILE) => "; the system has too many open files (fs.file-max)",
            Some(libc::EFBIG) => {
                "; raise the limit of the size of files (RLIMIT_FSIZE, `ulimit -f`)"
            }
            _ => "",
        };
        Self::System {
            what: what.into(),
            source,
            remedy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_named_up_to_a_limit() {
        assert_eq!(Missing(vec![JobRank(3)]).to_string(), "rank 3");
        let many = Missing((0..20).map(JobRank).collect());
        assert_eq!(many.to_string(), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
    }

    #[test]
    fn limits_of_files_are_named_where_they_are_the_cause() {
        for (errno, limit) in [
            (libc::EMFILE, "RLIMIT_NOFILE"),
            (libc::ENFILE, "fs.file-max"),
            (libc::EFBIG, "RLIMIT_FSIZE"),
        ] {
            let source = io::Error::from_raw_os_error(errno);
            let text = BootError::system("sharing memory", source).to_string();
            assert!(text.contains(limit), "{text}");
        }
    }

    #[test]
    fn exit_codes_follow_the_shell() {
        let missing = BootError::NoSuchProgram {
            program: "x".into(),
            hint: "",
        };
        assert_eq!(missing.exit_code(), 127);
        assert_eq!(BootError::BadRankCount { given: 0 }.exit_code(), 2);
    }
}
