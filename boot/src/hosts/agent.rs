//! The agent of a host: `argonet agent`.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use argonet_settings::{AGENT_TIMEOUT, CONDUIT, Reach, SPAWN_VERBOSE, Settings, environment};
use rustix::event::{PollFd, PollFlags};
use rustix::termios::isatty;

use crate::attach::{make_part, neighborhood_limit};
use crate::binding::allowed_cores;
use crate::error::BootError;
use crate::file_limit::{FILES_OF_AGENT, SPARE_FILES, raise_file_limit};
use crate::files::SharedFiles;
use crate::foreign::{self, JOINED, describes_process};
use crate::guardian::{self, Link};
use crate::hosts::children::Children;
use crate::hosts::description::{Description, Task};
use crate::hosts::edge::Edge;
use crate::hosts::hello::Hello;
use crate::hosts::here::Here;
use crate::hosts::look::{Look, answer};
use crate::hosts::message::Message;
use crate::hosts::node::{DESERTED_CODE, Node};
use crate::hosts::pipe::{receive, transmit, unblock};
use crate::launch::{NO_CONDUIT, fired};
use crate::output::Streams;
use crate::page::{Control, HostPart};
use crate::secret::Secret;
use crate::signals::LauncherSignals;
use crate::spawn::{Environment, Spawner};

/// Descriptors of each rank: process, line, standard output and standard error.
const FILES_OF_RANK: u64 = 4;

/// Runs the agent of this host for the launcher, or the agent, at the other end of standard input
/// and output, and returns the exit code of this process: 0 once all ranks here and below have
/// ended and the other end knows, or 75 if that end has gone.
///
/// An agent that is only asked about its host ([`visit`](crate::visit())) leaves the answers to
/// `look`.
///
/// The calling process must have one thread. When this returns, the ranks of this host and their
/// process groups have ended.
///
/// # Errors
/// [`BootError::NoLauncher`] if this process was not started as an agent. Everything else is
/// reported to the launcher.
pub fn agent(look: Look) -> Result<u8, BootError> {
    let no_launcher = |reason: &str| BootError::NoLauncher {
        reason: reason.into(),
    };
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    if isatty(stdin) || isatty(stdout) {
        return Err(no_launcher("its standard input or output is a terminal"));
    }
    unblock(stdin)
        .and_then(|()| unblock(stdout))
        .map_err(|e| BootError::system("preparing the connection to the launcher", e))?;
    let mut edge = Edge::agent(Instant::now(), patience());
    edge.send(Instant::now(), &Message::Hello(Hello::own()));
    let job = match expect(&mut edge)? {
        Next::Message(Message::Job(job)) => job,
        Next::Message(_) => return Err(no_launcher("its first message is not a job")),
        Next::End => return Err(no_launcher("no job came from the launcher")),
        Next::Silence => return Ok(DESERTED_CODE),
    };
    let key = match expect(&mut edge)? {
        Next::Message(Message::Key(key)) => key,
        Next::Message(_) | Next::End => return Err(no_launcher("no key came with the job")),
        Next::Silence => return Ok(DESERTED_CODE),
    };
    edge.allow_silence(Duration::from_millis(job.silence_ms.into()));
    if job.task == Task::Look {
        return Ok(answer(&job, &key, edge, look));
    }
    foreign::keep_socket_from_children();
    let signals = LauncherSignals::collect()
        .map_err(|e| BootError::system("preparing to pass on signals", e))?;
    Ok(run(&job, &key, edge, &signals))
}

/// How long an agent waits for its first messages; the first of them has the launcher's limit.
fn patience() -> Duration {
    let variables = environment::variables().into_iter();
    let own = variables.filter(|(name, _)| name == AGENT_TIMEOUT.name());
    let settings = Settings::from_pairs(own).unwrap_or_default();
    settings.keep_quiet();
    settings.get(&AGENT_TIMEOUT)
}

/// What comes from the other end.
enum Next {
    Message(Message),
    /// The connection has ended.
    End,
    /// It did not give a sign of life for too long.
    Silence,
}

/// Waits for the next message.
fn expect(edge: &mut Edge) -> Result<Next, BootError> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    loop {
        let next = edge.next().map_err(|garbled| BootError::NoLauncher {
            reason: garbled.to_string(),
        })?;
        if let Some(message) = next {
            return Ok(Next::Message(message));
        }
        let mut fds = vec![PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
        if !edge.to_send().is_empty() {
            fds.push(PollFd::from_borrowed_fd(stdout, PollFlags::OUT));
        }
        let events = vec![false, true];
        for is_output in fired(&mut fds, events, edge.deadline()) {
            if is_output {
                if !transmit(edge, stdout) {
                    return Ok(Next::End);
                }
            } else if !receive(edge, stdin, Instant::now()) {
                return Ok(Next::End);
            }
        }
        if edge.is_silent(Instant::now()) {
            return Ok(Next::Silence);
        }
    }
}

/// The variables that ranks get: this host's, with those of the launcher that it has not, or that
/// must win.
pub(crate) fn merged(job: &Description) -> Vec<(OsString, OsString)> {
    let mut pairs = environment::variables();
    for variable in &job.environment {
        let known = pairs.iter_mut().find(|(name, _)| *name == variable.name);
        match known {
            Some((_, value)) if variable.wins => *value = variable.value.clone(),
            Some(_) => {}
            None => pairs.push((variable.name.clone(), variable.value.clone())),
        }
    }
    let is_own = |name: &OsString| name == CONDUIT.name() || name == JOINED;
    pairs.retain(|(name, _)| !is_own(name) && !describes_process(name));
    if job.conduit != NO_CONDUIT {
        pairs.push((CONDUIT.name().into(), job.conduit.clone().into()));
    }
    pairs
}

/// Makes the memory that the ranks of this host share, and its guardian.
fn prepare(
    job: &Description,
    settings: &Settings,
) -> Result<(SharedFiles, Control, Link), BootError> {
    std::env::set_current_dir(&job.directory).map_err(|source| BootError::System {
        what: format!("entering the directory {}", job.directory.to_string_lossy()),
        source,
        remedy: "; name one that is there on every host with GASNET_SSH_REMOTE_PATH",
    })?;
    let host = &job.hosts[0];
    let part = HostPart {
        first: host.first,
        ranks: host.ranks,
        neighborhood: neighborhood_limit(&job.conduit, settings),
    };
    let (files, control) = make_part(job.job_id, job.size, part, settings)?;
    control.job().set_goes_on(job.goes_on);
    let link = guardian::start(&control, guardian::Maker::Launcher)?;
    Ok((files, control, link))
}

fn run(job: &Description, key: &Secret, up: Edge, signals: &LauncherSignals) -> u8 {
    let host = &job.hosts[0];
    let mut streams = Streams::new();
    let below = &job.hosts[1..];
    let file_limit = raise_file_limit(
        u64::from(host.ranks) * FILES_OF_RANK + below.len() as u64 * FILES_OF_AGENT + SPARE_FILES,
    );
    let pairs = merged(job);
    // Before the ranks: other hosts take longest to come.
    let (children, failed) = Children::start(job, below, key, signals.mask_before(), &mut streams);
    let given = Settings::from_pairs(pairs.iter().cloned());
    let (settings, wrong) = match given {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::default(), Some(error)),
    };
    settings.keep_quiet();
    let (files, shared) = match prepare(job, &settings) {
        Ok((files, control, link)) => (Some(files), Ok((control, link))),
        Err(error) => (None, Err(error)),
    };
    let mut node = Node::new(
        job,
        children,
        up,
        Some(signals),
        streams,
        settings.get(&SPAWN_VERBOSE),
    );
    for (trouble, _) in failed {
        node.send(&Message::Trouble(trouble));
    }
    if let Some(error) = wrong {
        node.trouble(2, &error.to_string());
        return node.run();
    }
    let cores = match job.bind.then(allowed_cores).transpose() {
        Ok(cores) => cores,
        Err(error) => {
            node.trouble(error.exit_code(), &error.to_string());
            None
        }
    };
    match (&shared, files) {
        (Ok((control, link)), Some(files)) => {
            let spawner = Spawner {
                program: &job.program,
                args: &job.args,
                environment: Environment::Given(&pairs),
                cores,
                control,
                files,
                reaches_segments: Reach::of(&job.conduit, &settings).segments,
                link: link.as_fd(),
                key,
                input: None,
                mask: signals.mask_before(),
                file_limit,
            };
            node.start(Here::new(control, link), spawner);
        }
        (Err(error), _) => node.trouble(error.exit_code(), &error.to_string()),
        (Ok(_), None) => {}
    }
    node.run()
}
