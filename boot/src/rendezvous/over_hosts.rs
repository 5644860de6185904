//! The ranks of a job that another launcher started on several hosts become one job
//! (docs/adr/0053, docs/adr/0055).
//!
//! ```text
//! first rank of the job       first rank of another host     every other rank
//!   | gathers the ranks of its host, as on one host            | hello
//!   | opens a port
//!   | put root: port, keys
//!   | put host-0: name, ranks   | put host-2: name, ranks
//!   | ======== fence of the launcher, which counts all processes ========== |
//!   | get host-2, ...           | get root
//!   | forks the root
//!   | forks the agent           | forks the agent
//!   |        agent: connects to the root, makes memory and guardian
//!   | <----- welcome            | <----- welcome                | <----- welcome
//! ```
//!
//! The launcher's store carries no more than that. All else goes through the tree of `hosts`: the
//! ranks' addresses, fences, and why the job ends. The launcher still waits for the ranks, and
//! takes their exit codes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, PMIX_LIBRARY, Settings};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use super::guest::welcomed;
use super::leader::{Guest, Made, Plan, make, own_pidfd, refuse, send_parts};
use super::socket::is_over;
use super::{Joined, LAST_MOMENT, Wait};
use crate::ancestry::starter_of;
use crate::attach::{neighborhood_limit, new_job_id};
use crate::detached;
use crate::error::BootError;
use crate::foreign::{CONSECUTIVE, Spread, Way};
use crate::hosts::serve::{
    Agent, Door, Host, Ranks, Served, Shared, addresses, decode_host, encode_host,
    make_room_for_files, name_of_host,
};
use crate::line;
use crate::page::HostPart;
use crate::pmi::Pmi;
use crate::pmix::Pmix;
use crate::secret::Secret;
use crate::store::{Client, Store, Watched};
use crate::sys;

/// The key under which the first rank of the job puts where the root is.
const ROOT: &str = "root";

/// The key under which the first rank of a host puts its host.
fn key_of_host(first: u32) -> String {
    format!("host-{first}")
}

/// Greets the launcher.
fn greet<'a>(
    wait: &Wait<'_>,
    settings: &Settings,
    spread: Spread,
    limit: Duration,
    watched: Watched<'a>,
) -> Result<Box<dyn Store + 'a>, BootError> {
    let client = Client {
        rank: wait.rank(),
        size: wait.member.size,
        launcher: wait.member.launcher,
        limit,
        // hydra loses what processes have said that end while it answers them, and ends all itself.
        aborts: !spread.ends_all,
    };
    let fd = match spread.way {
        Way::Pmi(fd) => fd,
        Way::Pmix => {
            let library = settings.get(&PMIX_LIBRARY);
            return Ok(Box::new(Pmix::new(client, library.as_deref(), watched)?));
        }
    };
    let socket =
        sys::examine_fd(fd).ok_or_else(|| wait.failed("PMI_FD names no open socket any more"))?;
    // The program's own descriptor stays as it is.
    let socket = rustix::io::fcntl_dupfd_cloexec(socket, 3)
        .map_err(|e| BootError::system("keeping the socket to the launcher", e))?;
    Ok(Box::new(Pmi::new(client, socket, watched)?))
}

/// Takes part in the fence, as a rank that is not the first of its host and has come to that one.
pub(super) fn follow(
    wait: &Wait<'_>,
    settings: &Settings,
    spread: Spread,
    socket: &OwnedFd,
) -> Result<(), BootError> {
    let watched = Watched {
        fds: vec![socket.as_fd()],
        is_over: Box::new(|| is_over(socket)),
    };
    // Others of this host may come as late as that allows, and so may those of other hosts.
    let limit = 2 * wait.limit + LAST_MOMENT;
    let mut store = greet(wait, settings, spread, limit, watched)?;
    store.fence()?;
    store.finish()
}

/// Becomes the first rank of this host, whose others have come unless `may_meet` is an error.
pub(super) fn lead(
    wait: &Wait<'_>,
    settings: &Settings,
    spread: Spread,
    may_meet: Result<(), BootError>,
    guests: &[Guest],
) -> Result<Joined, BootError> {
    // One that has ended is known.
    let watches = may_meet.is_ok();
    let sockets = guests.iter().map(|guest| guest.socket.as_fd());
    let watched = Watched {
        fds: sockets.filter(|_| watches).collect(),
        // They say nothing after their hello.
        is_over: Box::new(|| true),
    };
    let may_meet = match may_meet {
        Err(error) if spread.ends_all => return Err(error),
        other => other,
    };
    // From now: the ranks of this host have had theirs.
    let mut store = match greet(wait, settings, spread, wait.limit, watched) {
        Ok(store) => store,
        Err(error) => return Err(may_meet.err().unwrap_or(error)),
    };
    let started = may_meet.and_then(|()| {
        let (shared, root) = meet(wait, spread, &mut *store)?;
        if let Some((door, hosts)) = root {
            shared.start_root(hosts, door, settings)?;
        }
        let agent = start_agent(wait, settings, spread, shared, guests)?;
        store.finish()?;
        Ok(agent)
    });
    match started {
        Ok(agent) => welcomed(wait, &agent),
        Err(error) => {
            // The launcher may kill this process before the program can say it.
            sys::say(&format!("argonet: {error}"));
            store.abort(error.exit_code());
            Err(error)
        }
    }
}

/// What the first rank of the job knows more than the others: the root's port, and all hosts.
type OfRoot = (Door, Vec<Host>);

/// Lets the hosts find each other.
fn meet(
    wait: &Wait<'_>,
    spread: Spread,
    store: &mut dyn Store,
) -> Result<(Shared, Option<OfRoot>), BootError> {
    let host = Host {
        name: name_of_host(),
        first: spread.first,
        ranks: spread.here,
    };
    store.put(&key_of_host(host.first), &encode_host(&host))?;
    if spread.first != 0 {
        store.fence()?;
        let shared = store.get(JobRank(0), ROOT)?;
        let shared = shared.as_deref().and_then(Shared::decode);
        let shared = shared.filter(|shared| shared.size == wait.member.size);
        let shared = shared.ok_or_else(|| {
            wait.failed(
                "what the first rank of the job has left for the other hosts is missing, or of another version of argonet; build \
                 the programs of all hosts from one version",
            )
        })?;
        return Ok((shared, None));
    }
    let door = Door::open()?;
    let port = door.port()?;
    let places = addresses()?.into_iter().map(|ip| (ip, port).into());
    let shared = Shared {
        job_id: new_job_id()?,
        size: wait.member.size,
        key: Secret::new()?,
        secret: Secret::new()?,
        places: places.collect(),
    };
    shared.encoded(|bytes| store.put(ROOT, bytes))?;
    store.fence()?;
    let hosts = hosts(wait, store)?;
    Ok((shared, Some((door, hosts))))
}

/// All hosts of the job, each of which has put its own.
fn hosts(wait: &Wait<'_>, store: &mut dyn Store) -> Result<Vec<Host>, BootError> {
    let mut hosts = Vec::new();
    let mut next = 0;
    while next < wait.member.size {
        let found = store.get(JobRank(next), &key_of_host(next))?;
        let found = found.as_deref().and_then(decode_host);
        let found = found.filter(|host| {
            let end = host.first.checked_add(host.ranks);
            host.first == next && end.is_some_and(|end| end <= wait.member.size)
        });
        let host = found.ok_or_else(|| {
            wait.failed(format!(
                "rank {next} is the first of no host. {CONSECUTIVE}"
            ))
        })?;
        next = host.first + host.ranks;
        hosts.push(host);
    }
    Ok(hosts)
}

/// Starts this host's agent, in a process of its own; the connection over which it welcomes this
/// rank.
fn start_agent(
    wait: &Wait<'_>,
    settings: &Settings,
    spread: Spread,
    shared: Shared,
    guests: &[Guest],
) -> Result<OwnedFd, BootError> {
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    );
    let (ours, theirs) = pair.map_err(|e| BootError::system("making a way to the agent", e))?;
    let own = Guest {
        socket: theirs,
        pid: std::process::id(),
        pidfd: own_pidfd()?,
    };
    let ranks: Vec<&Guest> = std::iter::once(&own).chain(guests).collect();
    let keep = ranks
        .iter()
        .flat_map(|rank| [rank.socket.as_fd(), rank.pidfd.as_fd()]);
    let keep: Vec<BorrowedFd<'_>> = keep.collect();
    let run = || serve(wait, settings, spread, &shared, &ranks);
    detached::start("the agent of this host", c"argonet-agent", &keep, run)?;
    Ok(ours)
}

/// The agent of this host.
fn serve(wait: &Wait<'_>, settings: &Settings, spread: Spread, shared: &Shared, ranks: &[&Guest]) {
    let give_up = |error: &BootError| {
        for rank in ranks {
            // Those that have been welcomed look at it no more.
            refuse(
                &rank.socket,
                &format!("the agent of this host gave up: {error}"),
            );
        }
    };
    make_room_for_files(spread.here);
    let host = Host {
        name: name_of_host(),
        first: spread.first,
        ranks: spread.here,
    };
    let agent = match Agent::connect(shared, host, settings, wait.limit) {
        Ok(agent) => agent,
        Err(reason) => return give_up(&wait.failed(reason)),
    };
    let made = welcome(wait, settings, spread, shared, ranks);
    if let Err(error) = &made {
        give_up(error);
    }
    // No one is there to whom an error could be said.
    let _ = agent.run(made);
}

/// Makes what the ranks of this host share, lets the guardian know them, and sends each its part.
fn welcome(
    wait: &Wait<'_>,
    settings: &Settings,
    spread: Spread,
    shared: &Shared,
    ranks: &[&Guest],
) -> Result<Ranks, BootError> {
    let processes: Vec<(u32, BorrowedFd<'_>)> = ranks
        .iter()
        .map(|rank| (rank.pid, rank.pidfd.as_fd()))
        .collect();
    let pids: Vec<u32> = ranks.iter().map(|rank| rank.pid).collect();
    let launcher = starter_of(&pids);
    let plan = Plan {
        job_id: shared.job_id,
        part: HostPart {
            first: spread.first,
            ranks: spread.here,
            neighborhood: neighborhood_limit(settings.peek(&CONDUIT), settings),
        },
        processes,
        starter: launcher.as_ref().map(|(pid, _)| *pid),
        // This process watches the launcher.
        watched: Some(own_pidfd()?),
        // The root says why the job ended.
        stderr: None,
    };
    let starter = plan.starter;
    let made = make(wait, settings, plan)?;
    if let Some(pid) = starter {
        made.control.job().set_launcher_pid(pid);
    }
    let (all, lines) = served(spread, &made, ranks).inspect_err(|_| {
        // It would take the ranks that end now for a failure of the job.
        made.link.dismiss();
    })?;
    let sockets: Vec<&OwnedFd> = ranks.iter().map(|rank| &rank.socket).collect();
    send_parts(wait, settings, &made, &shared.key, &sockets, Some(&lines))?;
    Ok(Ranks {
        control: made.control,
        link: made.link,
        all,
        launcher: launcher.map(|(_, pidfd)| pidfd),
    })
}

/// What the agent keeps of each rank of its host, and the rank's end of the line to it.
fn served(
    spread: Spread,
    made: &Made,
    ranks: &[&Guest],
) -> Result<(Vec<Served>, Vec<OwnedFd>), BootError> {
    let (mut all, mut lines) = (Vec::new(), Vec::new());
    for (i, (rank, &group)) in ranks.iter().zip(&made.groups).enumerate() {
        let [line, of_rank] = line::without_key()?;
        let failed = |e| {
            let rank = JobRank(spread.first + i as u32);
            BootError::system(format!("watching rank {rank}"), e)
        };
        let pid = i32::try_from(rank.pid).ok().and_then(Pid::from_raw);
        all.push(Served {
            pid: pid.ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?,
            pidfd: rank.pidfd.try_clone().map_err(failed)?,
            group,
            line,
        });
        lines.push(of_rank);
    }
    Ok((all, lines))
}
