//! Becoming a rank of a job: by `argonet run`, by forking the others, or alone.

use std::env;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use argonet_base::{JobRank, random};
use argonet_settings::{
    HUGE_PAGES, HugePages, PMIX_LIBRARY, PSHM_NODES, QUIET, Reach, START_TIMEOUT,
    SUPERNODE_MAXSIZE, Settings, TCP_CONNECTIONS,
};
use rustix::fs::fcntl_get_seals;
use rustix::net::sockopt;
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::{Signal, getpgrp, getpid, getppid, set_parent_process_death_signal};

use crate::bootstrap::Bootstrap;
use crate::error::BootError;
use crate::exit_options::ExitOptions;
use crate::file_limit::make_room_for_connections;
use crate::files::SharedFiles;
use crate::foreign::{self, Found, Member, Way};
use crate::line::Line;
use crate::local::LocalJob;
use crate::page::{Control, HostPart, JobIdentity, MAX_JOB_RANKS, MAX_LOCAL_RANKS};
use crate::pmix::Library;
use crate::process::Ways;
use crate::secret::Secret;
use crate::{guardian, line, process, rendezvous, selfspawn, sys};

/// The variable in which a launcher describes the job to a rank:
/// `2:rank:size:control:rings:segments:interfaces:guardian:line:job`, the six in the middle being
/// descriptors and the last the job's identity in hexadecimal.
pub(crate) const BOOT_VARIABLE: &str = "ARGONET_BOOT";
const BOOT_FORMAT: &str = "2";

/// Options of a program that attaches.
#[derive(Debug, Clone, Default)]
pub struct AttachOptions {
    ranks: Option<u32>,
}

impl AttachOptions {
    /// Nothing special: the settings decide.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a program that was started alone become `ranks` ranks, for any value of
    /// `GASNET_PSHM_NODES`; 0 is 1.
    ///
    /// A program that `argonet run`, or another launcher, started has as many ranks as that was
    /// asked for.
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = Some(ranks);
        self
    }
}

/// Makes this process a rank of its job, forking the other ranks if it was started alone and asked
/// for several, or finding them if another launcher, such as srun or mpirun, started them.
///
/// Call it at the start of the program, before there is a second thread: with several ranks to
/// fork, this is required. In a job that starts itself the call returns in every rank, rank 0 being
/// the calling process; the others have `/dev/null` as standard input. The exit code of rank 0's
/// process is the job's: an exit handler waits for the other ranks and replaces the code if one of
/// them failed. Where there is no controlling terminal, rank 0 moves to a process group of its own,
/// so that processes which it starts end with the job, even if it is killed. With a terminal its
/// group is left alone, because the terminal's signals go to it and a shell may have put other
/// programs into it; processes that rank 0 starts are not killed then.
///
/// Under another launcher it waits until all ranks have come: for the first one of the host for
/// `ARGONET_START_TIMEOUT` at most, and for the others as long again; twice as long where there are
/// several hosts. The first rank of a host must have one thread then, and so must each rank where
/// hosts find each other by PMIx. Another rank that has more leaves no mark to programs that it
/// starts, and says so: they would take themselves for ranks.
/// Otherwise the call blocks only for the system calls.
///
/// # Errors
/// A job description that cannot be used, a second thread, processes of another launcher that
/// cannot become one job or do not come, and errors of the system: see [`BootError`].
pub fn attach(options: AttachOptions, settings: &Settings) -> Result<LocalJob, BootError> {
    let (job, link, is_judged_by_launcher) = find_job(options, settings)?;
    let others = job.size() - job.neighborhood().len() as u32;
    if others > 0 {
        make_room_for_connections(others, settings.get(&TCP_CONNECTIONS));
    }
    let line = (job.line.try_clone())
        .map_err(|e| BootError::system("keeping the line to the host's agent", e))?;
    let ways = Ways {
        link,
        line,
        is_judged_by_launcher,
    };
    process::install(&job.control, job.rank, ways, ExitOptions::new(settings))?;
    selfspawn::watch_guardian();
    rendezvous::watch_guardian();
    Ok(job)
}

/// The job, the way to its guardian if it has one, and whether another launcher judges how this
/// process ends.
fn find_job(
    options: AttachOptions,
    settings: &Settings,
) -> Result<(LocalJob, Option<OwnedFd>, bool), BootError> {
    let start_timeout = settings.get(&START_TIMEOUT);
    if let Some(value) = env::var_os(BOOT_VARIABLE) {
        let value = value.to_string_lossy().into_owned();
        let (job, link) = attach_launched(&value, start_timeout)?;
        sys::remove_variable(BOOT_VARIABLE);
        return Ok((job, Some(link), false));
    }
    // A user who gives a number of ranks below another launcher wants jobs of so many.
    let found = match settings.given(&PSHM_NODES) {
        Some(_) => Found::Alone(None),
        None => foreign::find(),
    };
    if let Found::Member(member) = &found {
        let (job, link) = rendezvous::join(member, settings)?;
        if let Err(reason) = foreign::mark_children(member)
            && !settings.get(&QUIET)
        {
            sys::say(&format!("argonet: warning: {reason}"));
        }
        return Ok((job, Some(link), true));
    }
    let ranks = match options.ranks {
        Some(ranks) => check_count(u64::from(ranks.max(1)))?,
        None => check_count(settings.get(&PSHM_NODES).max(1))?,
    };
    if ranks > 1 {
        if let Some(warning) = foreign::warning("a program that starts its other ranks itself") {
            sys::say(&format!("argonet: {warning}"));
        }
        let (job, link) = selfspawn::spawn(ranks, settings)?;
        return Ok((job, Some(link), false));
    }
    match found {
        Found::Refused(error) => Err(error),
        _ => Ok((alone(settings)?, None, false)),
    }
}

/// What another launcher makes of a program that is started here by itself, for people, and whether
/// it would start.
#[must_use]
pub fn launcher_here(settings: &Settings) -> (String, bool) {
    if env::var_os(BOOT_VARIABLE).is_some() {
        return ("`argonet run` has started this process".into(), true);
    }
    let found = foreign::find();
    let alone = settings.given(&PSHM_NODES).map(|_| {
        let ranks = settings.get(&PSHM_NODES);
        format!("GASNET_PSHM_NODES={ranks} makes a job of each of its processes")
    });
    match (found, alone) {
        (Found::Alone(None), _) => (
            "none: there are no variables of Slurm's steps, Open MPI, PMI or PMIx. A program becomes one rank, or those that \
             GASNET_PSHM_NODES asks for"
                .into(),
            true,
        ),
        (Found::OfRank(launcher), _) => (
            format!(
                "a rank that {launcher} started has started this process: a program becomes one rank, or those that \
                 GASNET_PSHM_NODES asks for"
            ),
            true,
        ),
        (Found::Alone(Some(launcher)), _) => (
            format!("{launcher}, which has started one process: a program becomes one rank"),
            true,
        ),
        (Found::Member(member), Some(reason)) => (format!("{}, but {reason}", member.launcher), true),
        (Found::Refused(error), Some(reason)) => (format!("{error}; but {reason}"), true),
        (Found::Refused(error), None) => (error.to_string(), false),
        (Found::Member(member), None) => {
            let (with_whom, starts) = neighbors_in_words(&member, settings);
            let losses = rendezvous::refuse_losses(&member, settings);
            let starts = starts && losses.is_ok();
            let losses = losses.map_or_else(
                |error| error.to_string(),
                |()| "it ends all ranks when one has died".into(),
            );
            let words = format!(
                "{}: a program becomes rank {} of {}, {with_whom}; rank {} listens at the socket @{}, whose name follows from \"{}\"; {losses}",
                member.launcher,
                member.rank,
                member.size,
                member.first(),
                rendezvous::place_of(&member),
                foreign::printable(&member.identity)
            );
            (words, starts)
        }
    }
}

/// Which ranks a member shares memory with, and how it finds the others; whether it would.
fn neighbors_in_words(member: &Member, settings: &Settings) -> (String, bool) {
    let Some(spread) = member.spread else {
        return ("which share memory".into(), true);
    };
    let (way, starts) = match spread.way {
        Way::Pmi(fd) => (format!("by PMI-1, at the descriptor {fd} (PMI_FD)"), true),
        Way::Pmix => match Library::open(settings.get(&PMIX_LIBRARY).as_deref()) {
            Ok(library) => (format!("by PMIx, through {}", library.describe()), true),
            Err(reason) => (format!("by PMIx only, and {reason}"), false),
        },
    };
    let words = format!(
        "of which {} on this host, from rank {} on, share memory; the hosts find each other {way}",
        spread.here, spread.first
    );
    (words, starts)
}

/// Checks a number of ranks.
pub(crate) fn check_count(given: u64) -> Result<u32, BootError> {
    u32::try_from(given)
        .ok()
        .filter(|n| (1..=MAX_LOCAL_RANKS).contains(n))
        .ok_or(BootError::BadRankCount { given })
}

/// A random number to distinguish this job from others.
pub(crate) fn new_job_id() -> Result<u64, BootError> {
    random::number()
        .map_err(|e| BootError::system("getting random bytes for the job's identity", e))
}

/// Most ranks that share memory: all of a host, unless the conduit can do without and the user
/// limits them.
pub(crate) fn neighborhood_limit(conduit: &str, settings: &Settings) -> u32 {
    let limit = settings.get(&SUPERNODE_MAXSIZE);
    match u32::try_from(limit) {
        Ok(limit) if limit > 0 && Reach::of(conduit, settings).neighborhoods => limit,
        _ => u32::MAX,
    }
}

/// Makes the shared files of a job that is on this host, whose launcher is this process and whose
/// ranks share memory.
#[cfg(test)]
pub(crate) fn make_job(
    size: u32,
    settings: &Settings,
) -> Result<(SharedFiles, Control), BootError> {
    make_part(new_job_id()?, size, HostPart::whole(size), settings)
}

/// Makes the shared files of this host's part of a job of `size` ranks; the agent or launcher is
/// this process.
pub(crate) fn make_part(
    job_id: u64,
    size: u32,
    part: HostPart,
    settings: &Settings,
) -> Result<(SharedFiles, Control), BootError> {
    let files = SharedFiles::create(size, settings.get(&HUGE_PAGES))?;
    let identity = JobIdentity {
        job_id,
        size,
        huge_pages: files.huge_pages.map_or(0, u32::from),
        launcher_pid: std::process::id(),
        part,
    };
    let control = Control::create(&files.control, identity)?;
    let timeout = ExitOptions::new(settings).timeout_for(size);
    control.job().set_exit_timeout(timeout);
    Ok((files, control))
}

fn alone(settings: &Settings) -> Result<LocalJob, BootError> {
    let (files, control) = make_part(new_job_id()?, 1, HostPart::whole(1), settings)?;
    let rank = JobRank(0);
    control.rank_page(rank).join(std::process::id());
    Ok(LocalJob {
        control: Arc::new(control),
        files,
        rank,
        start_timeout: settings.get(&START_TIMEOUT),
        launched: false,
        line: Line::default(),
        key: Secret::new()?,
        turn: Mutex::default(),
    })
}

/// The value that describes the job to `rank`.
pub(crate) fn boot_value(control: &Control, rank: JobRank, fds: [RawFd; 6]) -> String {
    let (size, id) = (control.size(), control.job().job_id());
    let [control, rings, segments, interfaces, guardian, line] = fds;
    format!(
        "{BOOT_FORMAT}:{rank}:{size}:{control}:{rings}:{segments}:{interfaces}:{guardian}:{line}:{id:016x}"
    )
}

struct BootValue {
    rank: JobRank,
    size: u32,
    fds: [RawFd; 6],
    job_id: u64,
}

fn parse_boot_value(value: &str) -> Result<BootValue, String> {
    let fields: Vec<&str> = value.split(':').collect();
    let &[
        format,
        rank,
        size,
        control,
        rings,
        segments,
        interfaces,
        guardian,
        line,
        job_id,
    ] = fields.as_slice()
    else {
        return Err(format!("it has {} fields instead of 10", fields.len()));
    };
    if format != BOOT_FORMAT {
        return Err(format!(
            "its format is \"{format}\", and this program knows \"{BOOT_FORMAT}\""
        ));
    }
    let number = |text: &str, what: &str| -> Result<u32, String> {
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|_| plain)
            .ok_or_else(|| format!("its {what} \"{text}\" is not a number in range"))
    };
    let (rank, size) = (number(rank, "rank")?, number(size, "number of ranks")?);
    if !(1..=MAX_JOB_RANKS).contains(&size) {
        return Err(format!(
            "its number of ranks is {size}, and a job has 1 to {MAX_JOB_RANKS}"
        ));
    }
    if rank >= size {
        return Err(format!(
            "its rank {rank} is not below its number of ranks {size}"
        ));
    }
    let fd = |text, what: &str| -> Result<RawFd, String> {
        let what = format!("descriptor of the {what}");
        RawFd::try_from(number(text, &what)?)
            .ok()
            .filter(|fd| *fd > 2)
            .ok_or_else(|| format!("its {what} is {text}"))
    };
    let fds = [
        fd(control, "control file")?,
        fd(rings, "rings file")?,
        fd(segments, "segments file")?,
        fd(interfaces, "interfaces file")?,
        fd(guardian, "guardian")?,
        fd(line, "line to the agent")?,
    ];
    if (1..6).any(|i| fds[..i].contains(&fds[i])) {
        return Err("it names one descriptor twice".into());
    }
    let job_id = u64::from_str_radix(job_id, 16)
        .map_err(|_| format!("its job identity \"{job_id}\" is not one"))?;
    Ok(BootValue {
        rank: JobRank(rank),
        size,
        fds,
        job_id,
    })
}

/// Whether a launcher's description of the job can be understood; otherwise the reason.
///
/// For tests of hostile values: the descriptors that it names are not looked at.
#[doc(hidden)]
pub fn check_job_description(value: &str) -> Result<(), String> {
    parse_boot_value(value).map(drop)
}

/// The shared files and the ways to guardian and agent behind the descriptors named, once they have
/// been found to be open memory files and sockets.
fn examine(fds: [RawFd; 6]) -> Result<[BorrowedFd<'static>; 6], String> {
    let names = [
        "control",
        "rings",
        "segments",
        "interfaces",
        "guardian",
        "line",
    ];
    let mut files = Vec::with_capacity(6);
    for (raw, name) in fds.into_iter().zip(names) {
        let fd = sys::examine_fd(raw).ok_or_else(|| {
            format!(
                "descriptor {raw} ({name}) is not open. Was it closed by a program between the launcher and this one (Python's \
                 subprocess does so without close_fds=False), or was this program started by a rank?"
            )
        })?;
        check_kind(fd, name).map_err(|reason| format!("descriptor {raw} {reason}"))?;
        files.push(fd);
    }
    <[BorrowedFd<'static>; 6]>::try_from(files).map_err(|_| "it names too few descriptors".into())
}

/// Whether what a launcher gave a rank under this name is of the kind that it has to be.
pub(crate) fn check_kind(fd: BorrowedFd<'_>, name: &str) -> Result<(), String> {
    match name {
        "guardian" | "line" => sockopt::socket_type(fd)
            .map(drop)
            .map_err(|_| format!("({name}) is not a socket")),
        "life" => fcntl_getpipe_size(fd)
            .map(drop)
            .map_err(|_| format!("({name}) is not a pipe")),
        _ => fcntl_get_seals(fd)
            .map(drop)
            .map_err(|_| format!("({name}) is not a shared memory file")),
    }
}

/// The page size of the segments, as the maker of the job has noted it.
pub(crate) fn huge_pages_of(control: &Control) -> Result<Option<HugePages>, String> {
    match control.job().huge_pages() {
        0 => Ok(None),
        code => HugePages::try_from(code)
            .map(Some)
            .map_err(|_| format!("its page size {code} is unknown")),
    }
}

/// Has this process killed when its parent dies; `too_late` is the error if that has died already.
///
/// The second net, for a rank that a script started.
pub(crate) fn die_with_parent(too_late: impl FnOnce() -> BootError) -> Result<(), BootError> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|e| BootError::system("asking to be killed with the parent process", e))?;
    match getppid() == parent {
        true => Ok(()),
        false => Err(too_late()),
    }
}

/// Makes this process the rank, which no other process may be.
pub(crate) fn take_rank(control: &Control, rank: JobRank) -> Result<(), BootError> {
    let page = control.rank_page(rank);
    match page.join(std::process::id()) {
        true => Ok(()),
        false => Err(BootError::RankTaken {
            rank,
            pid: page.pid(),
            state: page.state().words(),
        }),
    }
}

fn attach_launched(value: &str, start_timeout: Duration) -> Result<(LocalJob, OwnedFd), BootError> {
    let bad = |reason| BootError::BadBootEnvironment {
        value: value.to_string(),
        reason,
    };
    let BootValue {
        rank,
        size,
        fds,
        job_id,
    } = parse_boot_value(value).map_err(bad)?;
    let [
        control_fd,
        rings,
        segments,
        interfaces,
        guardian_fd,
        line_fd,
    ] = examine(fds).map_err(bad)?;
    let control = Control::open(control_fd, size, job_id).map_err(bad)?;
    if !control.part().all().contains(&rank.0) {
        return Err(bad(format!("its rank {rank} is not one of this host")));
    }
    let huge_pages = huge_pages_of(&control).map_err(bad)?;
    // Armed here too, since a rank that a script started dies with its own parent only.
    die_with_parent(|| bad("the process that started this rank has ended meanwhile".into()))?;
    take_rank(&control, rank)?;
    let adopt = |fd| {
        sys::adopt_fd(fd).map_err(|e| BootError::system("taking over an inherited descriptor", e))
    };
    let files = SharedFiles {
        control: adopt(control_fd)?,
        rings: adopt(rings)?,
        segments: adopt(segments)?,
        interfaces: adopt(interfaces)?,
        huge_pages,
    };
    let link = adopt(guardian_fd)?;
    let line_socket = adopt(line_fd)?;
    let key = line::take_key(line_socket.as_fd())
        .ok_or_else(|| bad("the job's key is not on the line of this rank (any more)".into()))?;
    let line = Line::new(line_socket, !control.is_whole_job());
    if getpgrp() != getpid() {
        guardian::announce_attached(link.as_fd(), rank);
    }
    let job = LocalJob {
        control: Arc::new(control),
        files,
        rank,
        start_timeout,
        launched: true,
        line,
        key,
        turn: Mutex::default(),
    };
    Ok((job, link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_description_is_read_back() {
        let (_files, control) = make_job(9, &Settings::default()).unwrap();
        let value = boot_value(&control, JobRank(8), [100, 101, 102, 103, 104, 105]);
        let BootValue {
            rank,
            size,
            fds,
            job_id,
        } = parse_boot_value(&value).unwrap();
        assert_eq!(
            (rank, size, fds, job_id),
            (
                JobRank(8),
                9,
                [100, 101, 102, 103, 104, 105],
                control.job().job_id()
            )
        );
    }

    #[test]
    fn forged_job_descriptions_are_refused_with_the_reason() {
        for (value, reason) in [
            ("", "1 fields"),
            ("1:0:1:5:6:7:8:9:10:0", "format"),
            ("2:0:1:5:6:7:8:9:0", "9 fields"),
            ("2:x:1:5:6:7:8:9:10:0", "rank \"x\""),
            ("2:+1:4:5:6:7:8:9:10:0", "rank \"+1\""),
            ("2:4:4:5:6:7:8:9:10:0", "not below"),
            ("2:0:0:5:6:7:8:9:10:0", "number of ranks is 0"),
            ("2:0:99999:5:6:7:8:9:10:0", "99999"),
            ("2:0:1:2:6:7:8:9:10:0", "control file is 2"),
            ("2:0:1:5:4294967295:7:8:9:10:0", "rings file is 4294967295"),
            ("2:0:1:99999999999999:6:7:8:9:10:0", "not a number in range"),
            ("2:0:1:5:5:7:8:9:10:0", "twice"),
            ("2:0:1:5:6:7:6:9:10:0", "twice"),
            ("2:0:1:5:6:7:8:9:9:0", "twice"),
            ("2:0:1:5:6:7:8:9:10:zz", "job identity"),
        ] {
            let error = parse_boot_value(value).err().expect(value);
            assert!(error.contains(reason), "{value}: {error}");
        }
    }

    #[test]
    fn a_job_of_one_needs_no_launcher() {
        use crate::bootstrap::{Bootstrap, Key, MAX_VALUE_BYTES};
        let job = alone(&Settings::default()).unwrap();
        let longest: Vec<u8> = (0..MAX_VALUE_BYTES as u8).collect();
        job.publish(Key::User, &longest).unwrap();
        job.publish(Key::Tool, b"").unwrap();
        job.fence().unwrap();
        assert_eq!(job.lookup(JobRank(0), Key::User).unwrap(), longest);
        assert_eq!(job.lookup(JobRank(0), Key::Tool).unwrap(), b"");
        assert!(matches!(
            job.publish(Key::Tool, b"2"),
            Err(BootError::PublishedTwice { .. })
        ));
        const TOO_MANY: usize = MAX_VALUE_BYTES + 1;
        assert!(matches!(
            job.publish(Key::Host, &[0; TOO_MANY]),
            Err(BootError::ValueTooLong {
                bytes: TOO_MANY,
                ..
            })
        ));
        assert!(matches!(
            job.lookup(JobRank(0), Key::Host),
            Err(BootError::NotPublished { .. })
        ));
        assert!(matches!(
            job.lookup(JobRank(1), Key::User),
            Err(BootError::NoSuchRank { .. })
        ));
    }
}
