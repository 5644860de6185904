//! Asking the hosts of a list, by agents without ranks.

use std::ops::Range;
use std::time::{Duration, Instant};

use argonet_settings::Settings;
use rustix::event::{PollFd, PollFlags};

use crate::error::BootError;
use crate::file_limit::{FILES_OF_AGENT, SPARE_FILES, raise_file_limit};
use crate::hosts::children::{ChildEvent, Children, Heard};
use crate::hosts::choose::{HostOptions, choose};
use crate::hosts::describe::describe;
use crate::hosts::description::{Description, Task, Way};
use crate::hosts::list::room;
use crate::hosts::message::{LostHosts, Message, Trouble};
use crate::launch::{LaunchOptions, NO_CONDUIT, fired};
use crate::output::{Lines, Streams};
use crate::secret::Secret;
use crate::sys::SignalSet;

/// Number of lines kept of the standard error of a host's agent command; the last ones have the
/// reason of a failure.
const KEPT_LINES: usize = 20;

/// The hosts to visit, and the job.
#[derive(Debug, Clone, Default)]
pub struct VisitOptions {
    /// The hosts, and how to get there.
    pub hosts: HostOptions,
    /// The number of ranks that the job would have; as many as the list has room for, if it is
    /// `None`.
    pub ranks: Option<u64>,
}

/// A host of the list, and its progress.
#[derive(Debug, Clone)]
pub struct Visited {
    /// Its name.
    pub name: String,
    /// The ranks that the job would have there.
    pub ranks: Range<u32>,
    /// Time until its agent answered, from the start of the command.
    pub greeted: Option<Duration>,
    /// Why it cannot be asked, or no more.
    pub lost: Option<String>,
    /// The last lines that the command to its agent has written on standard error.
    pub stderr: Vec<String>,
}

/// Hosts with agents that wait for questions.
pub struct Visits<'a> {
    hosts: Vec<Visited>,
    /// For each host its agent; none if it could not be started.
    child_of: Vec<Option<usize>>,
    children: Children<'a>,
    streams: Streams,
    lines: Lines,
    /// For each host its answers that have not been taken yet.
    answers: Vec<Vec<Vec<u8>>>,
    way: String,
}

impl core::fmt::Debug for Visits<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Visits")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

enum Event {
    Child(ChildEvent),
    Stream(usize),
}

/// Starts an agent on each host that a job of `conduit` would run on, all from here, calls `talk`
/// when each has answered or is lost, and ends them.
///
/// `None` if no hosts are named, neither in the options nor in the settings.
///
/// # Errors
/// Errors of the list or the settings. A host that cannot be reached is no error: [`Visited::lost`]
/// says so.
pub fn visit<T>(
    options: &VisitOptions,
    conduit: &str,
    settings: &Settings,
    talk: impl FnOnce(&mut Visits<'_>) -> T,
) -> Result<Option<T>, BootError> {
    let Some(hosts) = choose(&options.hosts, conduit, settings)? else {
        return Ok(None);
    };
    let launch = LaunchOptions {
        ranks: options.ranks.unwrap_or_else(|| room(&hosts.entries)),
        program: "true".into(),
        args: Vec::new(),
        conduit: None,
        bind: false,
        tag_output: false,
        timeout: None,
        on_rank_lost: None,
        hosts: options.hosts.clone(),
    };
    let job = Description {
        // Each by itself: one that cannot be reached hides no other.
        degree: 0,
        // There are no ranks that would have one.
        conduit: NO_CONDUIT.into(),
        ..describe(Task::Look, &launch, conduit, hosts, settings)?
    };
    let key = Secret::new()?;
    raise_file_limit(job.hosts.len() as u64 * FILES_OF_AGENT + SPARE_FILES);
    let mut visits = Visits::begin(&job, &key);
    while visits.children.any_starting() {
        visits.step(None);
    }
    visits.step_until_nothing_comes();
    Ok(Some(talk(&mut visits)))
}

impl<'a> Visits<'a> {
    fn begin(job: &'a Description, key: &'a Secret) -> Self {
        let mut streams = Streams::new();
        let mask = SignalSet::blocked();
        let (children, failed) = Children::start(job, &job.hosts, key, mask, &mut streams);
        let visited = |host: &crate::hosts::list::Host| Visited {
            name: host.name.clone(),
            ranks: host.first..host.first + host.ranks,
            greeted: None,
            lost: None,
            stderr: Vec::new(),
        };
        let hosts: Vec<Visited> = job.hosts.iter().map(visited).collect();
        let ranks = children.ranks();
        let child = |host: &Visited| ranks.iter().position(|r| r.start == host.ranks.start);
        let mut this = Self {
            child_of: hosts.iter().map(child).collect(),
            answers: vec![Vec::new(); hosts.len()],
            hosts,
            children,
            streams,
            lines: Lines::default(),
            way: match &job.way {
                Way::Local => "as a process of this host".into(),
                Way::Shell { command, .. } => format!("by {command}"),
                Way::Template(template) => format!("by `{template}`"),
            },
        };
        for (trouble, _) in failed {
            this.lose(trouble);
        }
        this
    }

    /// The hosts, in the order of their ranks.
    #[must_use]
    pub fn hosts(&self) -> &[Visited] {
        &self.hosts
    }

    /// The way to reach them, in words.
    #[must_use]
    pub fn way(&self) -> &str {
        &self.way
    }

    /// Asks the hosts that `question` has a question for, and waits until all have answered or are
    /// lost, at most for `limit`.
    ///
    /// The answers, by host; a host that has not answered in time is lost.
    pub fn ask(
        &mut self,
        mut question: impl FnMut(usize) -> Option<Vec<u8>>,
        limit: Duration,
    ) -> Vec<Option<Vec<u8>>> {
        let until = Instant::now() + limit;
        let mut waited = vec![false; self.hosts.len()];
        for (i, waited) in waited.iter_mut().enumerate() {
            if let (Some(child), None) = (self.child_of[i], &self.hosts[i].lost)
                && let Some(question) = question(i)
            {
                self.children.send(child, &Message::Ask(question));
                *waited = true;
            }
        }
        loop {
            let answers = &self.answers;
            let left: Vec<usize> = (0..waited.len())
                .filter(|&i| waited[i] && answers[i].is_empty() && self.hosts[i].lost.is_none())
                .collect();
            if left.is_empty() {
                break;
            }
            if Instant::now() >= until {
                for i in left {
                    let seconds = limit.as_secs_f64();
                    self.hosts[i].lost =
                        Some(format!("its agent gave no answer within {seconds} s"));
                }
                break;
            }
            self.step(Some(until));
        }
        let take = |answers: &mut Vec<Vec<u8>>| (!answers.is_empty()).then(|| answers.remove(0));
        self.answers.iter_mut().map(take).collect()
    }

    /// Waits for the next event, at most until then; whether something came.
    fn step(&mut self, until: Option<Instant>) -> bool {
        self.children.push();
        let (mut fds, mut events) = (Vec::<PollFd<'_>>::new(), Vec::new());
        let mut about_children = Vec::new();
        self.children.poll_fds(&mut fds, &mut about_children);
        events.extend(about_children.into_iter().map(Event::Child));
        self.streams
            .poll_fds(&mut fds, |_| false, |i| events.push(Event::Stream(i)));
        debug_assert!(fds.iter().all(|fd| fd.revents() == PollFlags::empty()));
        let next = until.into_iter().chain(self.children.deadline()).min();
        let fired = fired(&mut fds, events, next);
        let came = !fired.is_empty();
        let mut heard = Vec::new();
        for event in fired {
            match event {
                Event::Child(event) => self.children.serve(event, &mut heard),
                Event::Stream(i) => {
                    let lines = &mut self.lines;
                    self.streams.read(i, |to| lines.to(to));
                }
            }
        }
        self.children.look(&mut heard);
        self.keep_lines();
        for heard in heard {
            match heard {
                Heard::Message(child, Message::Answer(answer)) => {
                    if let Some(i) = self.child_of.iter().position(|c| *c == Some(child)) {
                        self.answers[i].push(answer);
                    }
                }
                Heard::Message(_, Message::Trouble(trouble))
                | Heard::Lost(_, LostHosts { trouble, .. }) => {
                    self.lose(trouble);
                }
                Heard::Message(child, other) => {
                    let text = format!("a {:?} from an agent without ranks", other.kind());
                    if let Some(i) = self.child_of.iter().position(|c| *c == Some(child)) {
                        self.hosts[i].lost.get_or_insert(text);
                    }
                }
            }
        }
        for (host, child) in self.hosts.iter_mut().zip(&self.child_of) {
            host.greeted = child.and_then(|child| self.children.greeted_after(child));
        }
        came
    }

    /// Reads all bytes that are in the pipes, also of writers that have ended.
    fn step_until_nothing_comes(&mut self) {
        while self.step(Some(Instant::now())) {}
    }

    fn lose(&mut self, trouble: Trouble) {
        let host = self
            .hosts
            .iter_mut()
            .find(|host| host.ranks.start == trouble.rank.0);
        if let Some(host) = host {
            // The first reason is the cause of all others.
            host.lost.get_or_insert(trouble.text);
        }
    }

    fn keep_lines(&mut self) {
        for line in String::from_utf8_lossy(&self.lines.err).lines() {
            let is_named = |host: &&mut Visited| {
                line.strip_prefix(host.name.as_str())
                    .is_some_and(|rest| rest.starts_with(": "))
            };
            if let Some(host) = self.hosts.iter_mut().find(is_named) {
                host.stderr.push(line[host.name.len() + 2..].to_owned());
                let surplus = host.stderr.len().saturating_sub(KEPT_LINES);
                host.stderr.drain(..surplus);
            }
        }
        self.lines.err.clear();
    }
}
