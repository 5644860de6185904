//! The agents that this process has started, and its connections to them.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use argonet_base::JobRank;

use crate::error::BootError;
use crate::exit::{ProcessEnd, signal_name};
use crate::hosts::child::{AgentProcess, Child, FAREWELL, Stage, end_in_words};
use crate::hosts::description::Description;
use crate::hosts::edge::Edge;
use crate::hosts::list::Host;
use crate::hosts::message::{LostHosts, Message, Trouble};
use crate::hosts::node::DESERTED_CODE;
use crate::hosts::pipe::{receive, unblock, writable};
use crate::hosts::start::{Started, start};
use crate::hosts::tree;
use crate::output::Streams;
use crate::secret::Secret;
use crate::sys::SignalSet;

/// An event at one of the children.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChildEvent {
    Readable(usize),
    Writable(usize),
    /// It is writable, which was not asked for: the reader has gone.
    Broken(usize),
    Ended(usize),
}

/// A message of a child, or its end.
#[derive(Debug)]
pub(crate) enum Heard {
    Message(usize, Message),
    /// This child is lost, with its subtree.
    Lost(usize, LostHosts),
}

pub(crate) struct Children<'a> {
    job: &'a Description,
    key: &'a Secret,
    list: Vec<Child>,
    /// When this process last looked at them.
    looked: Instant,
    /// The last time that this process did not run for so long that agents may have given it up:
    /// when it ran again, and after how long.
    paused: Option<(Instant, Duration)>,
}

impl<'a> Children<'a> {
    /// Starts the agents for `hosts`, each with its part of the tree.
    ///
    /// Their standard error, and that of the commands that start them, goes to `streams`. Also
    /// returns the trouble of agents that could not be started.
    pub(crate) fn start(
        job: &'a Description,
        hosts: &[Host],
        key: &'a Secret,
        mask: SignalSet,
        streams: &mut Streams,
    ) -> (Self, Vec<(Trouble, BootError)>) {
        let mut children = Self::none(job, key);
        let mut failed = Vec::new();
        for part in tree::parts(hosts.len(), job.degree) {
            let hosts = hosts[part].to_vec();
            let rank = JobRank(hosts[0].first);
            if let Err(error) = children.add(hosts, mask, streams) {
                let trouble = Trouble {
                    rank,
                    code: error.exit_code(),
                    text: error.to_string(),
                };
                failed.push((trouble, error));
            }
        }
        (children, failed)
    }

    /// No agents yet.
    pub(crate) fn none(job: &'a Description, key: &'a Secret) -> Self {
        Self {
            job,
            key,
            list: Vec::new(),
            looked: Instant::now(),
            paused: None,
        }
    }

    /// Adds the agent of `host`, which has connected by this socket and greeted.
    ///
    /// What came behind the greeting is in `edge`.
    pub(crate) fn add_connected(
        &mut self,
        host: Host,
        socket: OwnedFd,
        edge: Edge,
    ) -> Result<(), BootError> {
        let (output, now) = (socket.try_clone(), Instant::now());
        let output =
            output.map_err(|e| BootError::system("preparing the connection to an agent", e))?;
        self.list.push(Child {
            hosts: vec![host],
            process: None,
            input: Some(socket),
            output: Some(output),
            born: now,
            greeted: Some(now),
            edge,
            stage: Stage::Working,
            held: Vec::new(),
            interrupted: None,
            kill_at: None,
        });
        Ok(())
    }

    fn add(
        &mut self,
        hosts: Vec<Host>,
        mask: SignalSet,
        streams: &mut Streams,
    ) -> Result<(), BootError> {
        let failed = |what: &str, e: std::io::Error| {
            BootError::system(format!("{what} of the agent on host {}", hosts[0].name), e)
        };
        let Started {
            process,
            input,
            output,
            notes,
        } = start(self.job, &hosts[0], mask)?;
        let pidfd = Pid::from_child(&process);
        let pidfd = pidfd_open(pidfd, PidfdFlags::empty());
        let pidfd = pidfd.map_err(|e| failed("watching the process", e.into()))?;
        let prepared = unblock(&input).and_then(|()| unblock(&output));
        prepared.map_err(|e| failed("preparing the connection", e.into()))?;
        let tag = self.job.tag(&hosts[0].name);
        let noted = streams.add_notes(notes, &tag);
        noted.map_err(|e| failed("preparing the standard error", e))?;
        let agent = AgentProcess {
            process,
            pidfd,
            ended: None,
        };
        self.list.push(Child {
            hosts,
            process: Some(agent),
            input: Some(input),
            output: Some(output),
            born: Instant::now(),
            greeted: None,
            edge: Edge::above(Instant::now(), self.silence()),
            stage: Stage::Starting,
            held: Vec::new(),
            interrupted: None,
            kill_at: None,
        });
        Ok(())
    }

    fn silence(&self) -> Duration {
        Duration::from_millis(self.job.silence_ms.into())
    }

    /// Number of agents.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The ranks below each.
    pub(crate) fn ranks(&self) -> Vec<Range<u32>> {
        self.list.iter().map(Child::ranks).collect()
    }

    /// Time that child `i` took to greet; nothing as long as it has not.
    pub(crate) fn greeted_after(&self, i: usize) -> Option<Duration> {
        let child = &self.list[i];
        child.greeted.map(|at| at.duration_since(child.born))
    }

    /// Whether some have neither greeted nor been lost.
    pub(crate) fn any_starting(&self) -> bool {
        self.list.iter().any(|child| child.stage == Stage::Starting)
    }

    /// Whether every subtree has ended, or is lost.
    pub(crate) fn all_finished(&self) -> bool {
        self.list.iter().all(Child::is_finished)
    }

    /// The hosts whose agents have neither greeted nor been lost, for the end of a sentence.
    pub(crate) fn starting_in_words(&self) -> String {
        let starting = self.list.iter().filter(|c| c.stage == Stage::Starting);
        let words: Vec<String> = starting.map(|child| child.host().in_words()).collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("; the agent of {} had not answered", words.join(", ")),
        }
    }

    /// Sends to one of them.
    ///
    /// An agent that has not greeted has no ranks: the end of the job ends it; other messages wait
    /// for its greeting or do not concern it.
    pub(crate) fn send(&mut self, child: usize, message: &Message) {
        let child = &mut self.list[child];
        match child.stage {
            Stage::Starting => child.hold(message),
            Stage::Working => child.edge.send(Instant::now(), message),
            Stage::Over | Stage::Lost => {}
        }
    }

    /// Sends to all of them.
    pub(crate) fn send_all(&mut self, message: &Message) {
        (0..self.len()).for_each(|child| self.send(child, message));
    }

    /// Bytes of input that the first one takes now.
    pub(crate) fn input_room(&self) -> usize {
        let first = self.list.first().filter(|c| c.stage == Stage::Working);
        first.map_or(0, |child| child.edge.room())
    }

    /// The output that has come so far has been passed on.
    pub(crate) fn passed_on(&mut self) {
        let now = Instant::now();
        for child in self.list.iter_mut().filter(|c| c.stage == Stage::Working) {
            child.edge.passed_on(now);
        }
    }

    /// Adds the descriptors to wait for to `fds`, and their events to `events`.
    pub(crate) fn poll_fds<'p>(&'p self, fds: &mut Vec<PollFd<'p>>, events: &mut Vec<ChildEvent>) {
        for (i, child) in self.list.iter().enumerate() {
            if let Some(output) = &child.output {
                fds.push(PollFd::new(output, PollFlags::IN));
                events.push(ChildEvent::Readable(i));
            }
            if let Some(input) = &child.input {
                fds.push(PollFd::new(input, writable(&child.edge)));
                events.push(match child.edge.to_send().is_empty() {
                    true => ChildEvent::Broken(i),
                    false => ChildEvent::Writable(i),
                });
            }
            if let Some(agent) = child.running() {
                fds.push(PollFd::new(&agent.pidfd, PollFlags::IN));
                events.push(ChildEvent::Ended(i));
            }
        }
    }

    /// When [`look`](Self::look) is to be called at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of = |child: &Child| match child.is_finished() {
            true => child.kill_at.filter(|_| child.running().is_some()),
            false => child.kill_at.or_else(|| child.deadline(self.silence())),
        };
        self.list.iter().filter_map(of).min()
    }

    /// Acts on an event; appends the messages that came to `heard`.
    pub(crate) fn serve(&mut self, event: ChildEvent, heard: &mut Vec<Heard>) {
        self.note_pause(Instant::now());
        match event {
            ChildEvent::Readable(i) => self.read(i, heard),
            ChildEvent::Writable(i) => {
                if !self.list[i].transmit() {
                    self.list[i].broken();
                }
            }
            ChildEvent::Broken(i) => self.list[i].broken(),
            ChildEvent::Ended(i) => {
                if self.list[i].failed_to_start() {
                    // Its children may hold the connection open, and are no agents.
                    self.list[i].kill();
                    self.read(i, heard);
                    let child = &mut self.list[i];
                    if child.stage == Stage::Starting {
                        (child.input, child.output) = (None, None);
                    }
                }
                if let Some(agent) = &mut self.list[i].process {
                    agent.ended = agent.process.try_wait().ok().flatten();
                }
                self.look_at_end(i, heard);
            }
        }
    }

    /// Notes whether this process has not run for a long time.
    ///
    /// While it does, a heartbeat is due more often.
    fn note_pause(&mut self, now: Instant) {
        let pause = now.duration_since(self.looked);
        if pause > self.silence() / 2 {
            self.paused = Some((now, pause));
        }
        self.looked = now;
    }

    /// Why an agent has ended by itself while the job needed it.
    fn why_ended(&self, end: ProcessEnd) -> String {
        let (now, silence) = (Instant::now(), self.silence());
        match self.paused {
            Some((at, pause)) if end == ProcessEnd::Code(DESERTED_CODE) && now < at + silence => {
                format!(
                    "its agent gave up this process (pid {}), which did not run for {:.1} s; was it stopped? Agents wait for {} s \
                 (ARGONET_AGENT_TIMEOUT)",
                    std::process::id(),
                    pause.as_secs_f64(),
                    silence.as_secs_f64()
                )
            }
            _ => format!("its agent {} while the job needed it", end_in_words(end)),
        }
    }

    fn read(&mut self, i: usize, heard: &mut Vec<Heard>) {
        let now = Instant::now();
        let child = &mut self.list[i];
        let Some(output) = &child.output else { return };
        if !receive(&mut child.edge, output.as_fd(), now) {
            child.output = None;
            child.input = None;
            child.kill_at = Some(now + FAREWELL);
            self.look_at_end(i, heard);
            return;
        }
        loop {
            let child = &mut self.list[i];
            match child.edge.next() {
                Ok(None) => return,
                Ok(Some(message)) => {
                    if let Err(why) = self.take(i, message, heard) {
                        self.lose(i, 1, &why, heard);
                        return;
                    }
                }
                Err(garbled) => {
                    self.lose(i, 1, &garbled.to_string(), heard);
                    return;
                }
            }
        }
    }

    /// Takes a message; or says why the agent cannot be worked with.
    fn take(&mut self, i: usize, message: Message, heard: &mut Vec<Heard>) -> Result<(), String> {
        let child = &mut self.list[i];
        let now = Instant::now();
        match (child.stage, message) {
            (Stage::Starting, Message::Hello(hello)) => {
                hello.check().map_err(|differ| {
                    let agent = self.job.agent[0].to_string_lossy();
                    format!(
                        "{differ}; install the same version as {agent} there, or name its path with ARGONET_AGENT"
                    )
                })?;
                if child.interrupted.is_some() {
                    // The signal came first, and would find no ranks there: nothing is started, and
                    // `look` gives the agent up.
                    return Ok(());
                }
                child.stage = Stage::Working;
                child.greeted = Some(now);
                let description = Box::new(self.job.for_hosts(&child.hosts));
                child.edge.send(now, &Message::Job(description));
                child.edge.send(now, &Message::Key(self.key.clone()));
                for message in child.held.drain(..) {
                    child.edge.send(now, &message);
                }
            }
            (Stage::Working, Message::Over) => {
                child.stage = Stage::Over;
                // The agent ends when it sees this.
                child.input = None;
                if child.process.is_none() {
                    child.output = None;
                }
                child.kill_at = Some(now + FAREWELL);
            }
            (Stage::Working, message) => {
                let ranks = child.ranks();
                let one = |rank: JobRank| Some(rank.0..rank.0.saturating_add(1));
                let about = match &message {
                    Message::Gone(gone) => one(gone.rank),
                    Message::Ended(ended) => one(ended.rank),
                    Message::Accusation(accuser, _) => one(*accuser),
                    Message::Trouble(trouble) => one(trouble.rank),
                    Message::LostHosts(lost) => Some(lost.ranks()),
                    Message::Hello(_) | Message::Job(_) | Message::Key(_) => {
                        return Err("it began anew".into());
                    }
                    _ => None,
                };
                let are_its =
                    |about: Range<u32>| ranks.start <= about.start && about.end <= ranks.end;
                if !about.is_none_or(are_its) {
                    return Err("it reported ranks of other hosts".into());
                }
                heard.push(Heard::Message(i, message));
            }
            (Stage::Starting, _) => return Err("it did not greet".into()),
            (Stage::Over | Stage::Lost, _) => {}
        }
        Ok(())
    }

    /// The process or the connection has ended.
    fn look_at_end(&mut self, i: usize, heard: &mut Vec<Heard>) {
        let child = &self.list[i];
        if child.is_finished() || child.output.is_some() {
            return; // What is left in the connection comes first.
        }
        let (code, why) = match (child.stage, &child.process) {
            (_, None) => (
                1,
                "its agent, or the connection to it, ended while the job needed it".into(),
            ),
            (stage, Some(agent)) => match (stage, agent.end()) {
                (_, None) => return,
                (Stage::Starting, Some(end)) => child.why_not_started(self.job, end),
                (_, Some(end)) => (1, self.why_ended(end)),
            },
        };
        self.lose(i, code, &why, heard);
    }

    fn lose(&mut self, i: usize, code: u8, why: &str, heard: &mut Vec<Heard>) {
        let child = &mut self.list[i];
        // An agent that has been given up is asked to end first.
        if !child.is_finished() {
            child.stage = Stage::Lost;
            (child.input, child.output) = (None, None);
            child.kill();
        }
        let trouble = Trouble {
            rank: JobRank(child.host().first),
            code,
            text: format!("{}: {why}", child.host().in_words()),
        };
        let count = child.ranks().len() as u32;
        heard.push(Heard::Lost(i, LostHosts { trouble, count }));
    }

    /// Does the work that is due.
    pub(crate) fn look(&mut self, heard: &mut Vec<Heard>) {
        let now = Instant::now();
        self.note_pause(now);
        for i in 0..self.len() {
            let silence = self.silence();
            let child = &mut self.list[i];
            if child.kill_at.is_some_and(|at| now >= at) {
                child.kill_at = None;
                child.kill();
            }
            if child.stage == Stage::Starting
                && let Some(signal) = child.interrupted
            {
                child.give_up();
                let name = signal_name(i32::from(signal));
                let why = format!("signal {signal} ({name}) came before its agent answered");
                self.lose(i, 128 + signal, &why, heard);
                continue;
            }
            if child.is_finished() || child.output.is_none() {
                continue;
            }
            // Noise is no sign of an agent.
            let greets = child.stage != Stage::Starting || now < child.born + silence;
            if child.edge.is_silent(now) || !greets {
                let seconds = silence.as_secs_f64();
                let why = format!(
                    "its agent gave no sign of life for {seconds} s (ARGONET_AGENT_TIMEOUT); is the host, or the network, down?"
                );
                self.lose(i, 1, &why, heard);
            }
        }
    }

    /// Writes as much as can be written at once.
    pub(crate) fn push(&mut self) {
        for child in &mut self.list {
            // A connection that is broken fires.
            let _ = child.transmit();
        }
    }

    /// Closes all connections: an agent that lives ends its ranks.
    pub(crate) fn hang_up(&mut self) {
        for child in self.list.iter_mut().filter(|c| !c.is_finished()) {
            child.give_up();
        }
    }

    /// Whether all processes have ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.list.iter().all(|child| child.running().is_none())
    }
}

impl Drop for Children<'_> {
    /// Nothing is left on this host.
    fn drop(&mut self) {
        for child in self.list.iter_mut().filter(|c| c.running().is_some()) {
            child.kill();
            if let Some(agent) = &mut child.process {
                let _ = agent.process.wait();
            }
        }
    }
}
