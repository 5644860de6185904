//! Jobs over several hosts whose ranks another launcher has started: the processes that serve them.
//!
//! ```text
//!                       root             forked by rank 0; says why the job ended
//!                     /      \           TCP, codes on all frames (`door`, `seal`)
//!              agent of a    agent of b  forked by the first rank of each host
//!               |      |      |      |
//!             rank 0 rank 1 rank 2 rank 3   started by mpiexec, srun ...
//! ```
//!
//! They do what root and agents of `argonet run` do (`root`, `node`), but start no process, carry
//! neither output nor input, and leave signals and the exit code to the launcher: all signals are
//! blocked, as in the guardian, since some launchers send them to all processes of a job.

use std::mem::take;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use argonet_settings::{AGENT_TIMEOUT, START_TIMEOUT, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use crate::detached;
use crate::error::BootError;
use crate::file_limit::{FILES_OF_AGENT, SPARE_FILES, raise_file_limit};
use crate::guardian::Link;
use crate::hosts::child::FAREWELL;
use crate::hosts::children::Children;
use crate::hosts::description::{Description, Task, Way};
pub(crate) use crate::hosts::door::{Door, addresses};
use crate::hosts::door::{MAX_ADDRESSES, SPARE_CONNECTIONS, connect};
use crate::hosts::edge::Edge;
use crate::hosts::here::Here;
pub(crate) use crate::hosts::list::Host;
use crate::hosts::list::is_host_name;
use crate::hosts::node::Node;
use crate::hosts::root;
use crate::hosts::words::{Reader, put_text, put_u32};
use crate::launch::NO_CONDUIT;
use crate::output::Streams;
use crate::page::{Control, MAX_JOB_RANKS, MAX_LOCAL_RANKS};
use crate::secret::{SECRET_BYTES, Secret, wipe};
use crate::sys;

/// The begin of what is said to the hosts, which changes when that does.
const FORMAT: u32 = u32::from_le_bytes(*b"aRs1");

/// The longest name of a host.
const MAX_NAME_BYTES: usize = 255;

/// What all hosts of such a job know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) job_id: u64,
    pub(crate) size: u32,
    /// The job's key.
    pub(crate) key: Secret,
    /// That of the connections between agents and root.
    pub(crate) secret: Secret,
    /// Where the root listens.
    pub(crate) places: Vec<SocketAddr>,
}

impl Shared {
    /// Calls `use_it` with the bytes, of which no copy is left here.
    pub(crate) fn encoded<T>(&self, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let mut bytes = Vec::with_capacity(512);
        put_u32(&mut bytes, FORMAT);
        bytes.extend_from_slice(&self.job_id.to_le_bytes());
        put_u32(&mut bytes, self.size);
        bytes.extend_from_slice(self.key.bytes());
        bytes.extend_from_slice(self.secret.bytes());
        put_u32(&mut bytes, self.places.len() as u32);
        for place in &self.places {
            let v6 = match place.ip() {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            bytes.extend_from_slice(&v6.octets());
            bytes.extend_from_slice(&place.port().to_le_bytes());
        }
        let used = use_it(&bytes);
        wipe(&mut bytes);
        used
    }

    /// The same from its bytes; `None` if they are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut body = Reader::new(bytes);
        let format = body.u32()?;
        let shared = Self {
            job_id: body.u64()?,
            size: body.u32()?,
            key: Secret::from_bytes(body.array::<SECRET_BYTES>()?),
            secret: Secret::from_bytes(body.array::<SECRET_BYTES>()?),
            places: body.list(MAX_ADDRESSES as u32, |body| {
                let v6 = Ipv6Addr::from(body.array::<16>()?);
                let ip = v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4);
                let port = u16::from_le_bytes(body.array()?);
                Some(SocketAddr::new(ip, port))
            })?,
        };
        let is_sound = format == FORMAT
            && body.is_empty()
            && (2..=MAX_JOB_RANKS).contains(&shared.size)
            && !shared.places.is_empty();
        is_sound.then_some(shared)
    }

    /// Starts the root in a process of its own, for these hosts.
    ///
    /// It has `ARGONET_START_TIMEOUT` to find their agents, and ends if this process does before.
    pub(crate) fn start_root(
        &self,
        hosts: Vec<Host>,
        door: Door,
        settings: &Settings,
    ) -> Result<(), BootError> {
        let silence = settings.get(&AGENT_TIMEOUT);
        let limit = settings.get(&START_TIMEOUT);
        let starter = pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|e| BootError::system("opening a pidfd (Linux 5.3 or newer)", e))?;
        let keep = [
            door.listener.as_fd(),
            starter.as_fd(),
            rustix::stdio::stderr(),
        ];
        let run = || {
            if let Err(reason) = self.run_root(hosts, &door, silence, limit, &starter) {
                sys::say(&format!("argonet: {reason}"));
            }
        };
        detached::start("the root of the job", c"argonet-root", &keep, run)
    }

    fn run_root(
        &self,
        hosts: Vec<Host>,
        door: &Door,
        silence: Duration,
        limit: Duration,
        starter: &OwnedFd,
    ) -> Result<(), String> {
        let spare = SPARE_FILES + SPARE_CONNECTIONS as u64;
        raise_file_limit(hosts.len() as u64 * FILES_OF_AGENT + spare);
        let come = door.gather(&self.secret, &hosts, silence, limit, starter)?;
        let Some(come) = come else {
            // Rank 0, or its launcher, says why.
            return Ok(());
        };
        let job = self.description(hosts, silence);
        let mut children = Children::none(&job, &self.key);
        for (host, (socket, edge)) in job.hosts.iter().zip(come) {
            let added = children.add_connected(host.clone(), socket.into(), edge);
            added.map_err(|error| error.to_string())?;
        }
        root::serve(&job, children);
        Ok(())
    }

    /// The description of the job for what serves `hosts`.
    fn description(&self, hosts: Vec<Host>, silence: Duration) -> Description {
        Description {
            task: Task::Serve,
            job_id: self.job_id,
            size: self.size,
            hosts,
            way: Way::Local,
            agent: Vec::new(),
            program: "".into(),
            args: Vec::new(),
            directory: "".into(),
            environment: Vec::new(),
            conduit: NO_CONDUIT.into(),
            tag_output: false,
            goes_on: false,
            bind: false,
            degree: 0,
            silence_ms: u32::try_from(silence.as_millis()).unwrap_or(u32::MAX),
        }
    }
}

/// A host as it describes itself to the root.
pub(crate) fn encode_host(host: &Host) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [FORMAT, host.first, host.ranks] {
        put_u32(&mut bytes, number);
    }
    put_text(&mut bytes, &host.name);
    bytes
}

/// The host from its bytes; `None` if they are none.
pub(crate) fn decode_host(bytes: &[u8]) -> Option<Host> {
    let mut body = Reader::new(bytes);
    let format = body.u32()?;
    let host = Host {
        first: body.u32()?,
        ranks: body.u32()?,
        name: body.text(MAX_NAME_BYTES)?,
    };
    let is_sound = format == FORMAT
        && body.is_empty()
        && (1..=MAX_LOCAL_RANKS).contains(&host.ranks)
        && host.first < MAX_JOB_RANKS
        && is_host_name(&host.name);
    is_sound.then_some(host)
}

/// The name of this host, for people.
pub(crate) fn name_of_host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    match is_host_name(&name) && name.len() <= MAX_NAME_BYTES {
        true => name,
        false => "localhost".into(),
    }
}

/// Descriptors of an agent for each rank: its first connection, the process for this one and for
/// the guardian, and, while it is welcomed, both ends of its line.
const FILES_OF_RANK: u64 = 5;

/// Makes room for the files of the agent of so many ranks.
pub(crate) fn make_room_for_files(ranks: u32) {
    raise_file_limit(u64::from(ranks) * FILES_OF_RANK + SPARE_FILES);
}

/// A rank of this host, as its agent watches it.
pub(crate) struct Served {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    /// Whether it leads a process group of its own.
    pub(crate) group: bool,
    pub(crate) line: OwnedFd,
}

/// The ranks of this host.
pub(crate) struct Ranks {
    pub(crate) control: Arc<Control>,
    pub(crate) link: Link,
    /// In the order of their numbers.
    pub(crate) all: Vec<Served>,
    /// The launcher's process here, if it is known.
    pub(crate) launcher: Option<OwnedFd>,
}

/// The agent of a host, connected to the root.
pub(crate) struct Agent {
    job: Description,
    key: Secret,
    socket: OwnedFd,
    up: Edge,
}

impl Agent {
    /// Connects within `limit`; else why not.
    pub(crate) fn connect(
        shared: &Shared,
        host: Host,
        settings: &Settings,
        limit: Duration,
    ) -> Result<Self, String> {
        let silence = settings.get(&AGENT_TIMEOUT);
        let (socket, up) = connect(&shared.places, &shared.secret, host.first, silence, limit)?;
        Ok(Self {
            job: shared.description(vec![host], silence),
            key: shared.key.clone(),
            socket,
            up,
        })
    }

    /// Serves the ranks of this host until they have ended, or says to the root why there are none.
    pub(crate) fn run(self, mut ranks: Result<Ranks, BootError>) -> Result<(), BootError> {
        let Self {
            job,
            key,
            socket,
            up,
        } = self;
        let failed = |e: Errno| BootError::system("preparing the agent of this host", e);
        // A node has its upper connection there.
        rustix::stdio::dup2_stdin(&socket)
            .and_then(|()| rustix::stdio::dup2_stdout(&socket))
            .map_err(failed)?;
        let (all, launcher) = match &mut ranks {
            Ok(ranks) => (take(&mut ranks.all), ranks.launcher.take()),
            Err(_) => (Vec::new(), None),
        };
        let children = Children::none(&job, &key);
        let mut node = Node::new(&job, children, up, None, Streams::new(), false);
        match &ranks {
            Ok(Ranks { control, link, .. }) => {
                let mut here = Here::new(control, link);
                for rank in all {
                    here.ranks
                        .adopt(rank.pid, rank.pidfd, rank.group, rank.line);
                }
                node.serve(here, launcher);
            }
            Err(error) => node.trouble(error.exit_code(), &error.to_string()),
        }
        node.run();
        farewell(&socket);
        Ok(())
    }
}

/// Lets the root take all that has been sent: a connection that is closed with unread bytes drops
/// what is on its way.
fn farewell(socket: &OwnedFd) {
    let until = Instant::now() + FAREWELL;
    let _ = shutdown(socket, Shutdown::Write);
    let mut rest = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut end = [PollFd::new(socket, PollFlags::IN)];
        let _ = poll(&mut end, Timespec::try_from(left).ok().as_ref());
        match rustix::io::read(socket, &mut rest[..]) {
            Ok(1..) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if !left.is_zero() => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shared() -> Shared {
        Shared {
            job_id: 7,
            size: 9,
            key: Secret::from_bytes([1; SECRET_BYTES]),
            secret: Secret::from_bytes([2; SECRET_BYTES]),
            places: ["10.0.0.1:77", "[fd00::7]:77", "127.0.0.1:77"]
                .map(|place| place.parse().unwrap())
                .into(),
        }
    }

    #[test]
    fn what_is_said_to_hosts_is_read_back_and_nothing_else_is() {
        let shared = shared();
        shared.encoded(|bytes| {
            assert_eq!(Shared::decode(bytes).as_ref(), Some(&shared));
            for len in 0..bytes.len() {
                assert_eq!(Shared::decode(&bytes[..len]), None, "{len}");
            }
            assert_eq!(Shared::decode(&[bytes, &[0]].concat()), None);
            let mut other = bytes.to_vec();
            other[0] ^= 1;
            assert_eq!(Shared::decode(&other), None, "another format");
        });
        for (size, places) in [(1, shared.places.clone()), (9, Vec::new())] {
            let unsound = Shared {
                size,
                places,
                ..shared.clone()
            };
            assert_eq!(unsound.encoded(Shared::decode), None);
        }
    }

    #[test]
    fn hosts_are_read_back_and_bad_ones_refused() {
        let host = |name: &str, first, ranks| Host {
            name: name.into(),
            first,
            ranks,
        };
        let good = host(&name_of_host(), 4, 2);
        assert_eq!(decode_host(&encode_host(&good)), Some(good));
        for bad in [
            host("-x", 4, 2),
            host("a\u{1b}[2J", 4, 2),
            host("a", 4, 0),
            host("a", 4, MAX_LOCAL_RANKS + 1),
            host("a", MAX_JOB_RANKS, 1),
        ] {
            assert_eq!(decode_host(&encode_host(&bad)), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let begun = [&FORMAT.to_le_bytes()[..], &bytes].concat();
            let _ = (decode_host(&begun), Shared::decode(&begun));
        }
    }
}
