//! One agent that this process has started.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child as Process, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, kill_process_group};

use crate::exit::{ProcessEnd, signal_name};
use crate::hosts::description::{Description, Way};
use crate::hosts::edge::Edge;
use crate::hosts::list::Host;
use crate::hosts::message::Message;
use crate::hosts::pipe::transmit;
use crate::signals::ends_by_default;

/// Time that the process of an agent may take to end once its connection has.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// Progress of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not greeted.
    Starting,
    Working,
    /// All of its subtree has ended.
    Over,
    /// It ended, or was given up, before that.
    Lost,
}

/// The process by which an agent was started.
pub(crate) struct AgentProcess {
    pub(crate) process: Process,
    pub(crate) pidfd: OwnedFd,
    pub(crate) ended: Option<ExitStatus>,
}

impl AgentProcess {
    /// How it ended; `None` while it runs.
    pub(crate) fn end(&self) -> Option<ProcessEnd> {
        let status = self.ended.map(ExitStatusExt::into_raw);
        status.map(ProcessEnd::from_raw_status)
    }
}

pub(crate) struct Child {
    /// Its host, and those below.
    pub(crate) hosts: Vec<Host>,
    /// `None` of an agent that was not started from here, and has connected.
    pub(crate) process: Option<AgentProcess>,
    /// `None` once closed.
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Option<OwnedFd>,
    pub(crate) born: Instant,
    /// When it greeted.
    pub(crate) greeted: Option<Instant>,
    pub(crate) edge: Edge,
    pub(crate) stage: Stage,
    /// Messages to send once it has greeted, beside its job: at most one for each rank, and two
    /// more.
    pub(crate) held: Vec<Message>,
    /// The signal that asked for the end of the job before it greeted.
    pub(crate) interrupted: Option<u8>,
    /// When the process is killed that has closed its connection.
    pub(crate) kill_at: Option<Instant>,
}

impl Child {
    pub(crate) fn host(&self) -> &Host {
        &self.hosts[0]
    }

    pub(crate) fn ranks(&self) -> Range<u32> {
        let end = self.hosts.last().map_or(0, |host| host.first + host.ranks);
        self.host().first..end
    }

    /// The process, while it has not ended.
    pub(crate) fn running(&self) -> Option<&AgentProcess> {
        self.process.as_ref().filter(|agent| agent.ended.is_none())
    }

    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Over | Stage::Lost)
    }

    /// When to look whether it lives at the latest.
    pub(crate) fn deadline(&self, silence: Duration) -> Option<Instant> {
        let greeting = (self.stage == Stage::Starting).then(|| self.born + silence);
        greeting.into_iter().chain(self.edge.deadline()).min()
    }

    /// Writes what can be written at once; false if the reader has gone.
    pub(crate) fn transmit(&mut self) -> bool {
        let input = self.input.as_ref();
        input.is_none_or(|input| transmit(&mut self.edge, input))
    }

    /// It reads nothing any more.
    ///
    /// Messages that it sent before are still read.
    pub(crate) fn broken(&mut self) {
        self.input = None;
        self.kill_at = Some(Instant::now() + FAREWELL);
    }

    /// Acts on a message for an agent that has not greeted.
    pub(crate) fn hold(&mut self, message: &Message) {
        match message {
            // No rank runs there that would need time to end. An agent that starts later finds its
            // connection closed.
            Message::Exit(_) => self.give_up(),
            Message::Signal(number)
                if Signal::from_named_raw((*number).into()).is_some_and(ends_by_default) =>
            {
                self.interrupted = Some(*number);
            }
            Message::Gone(_) | Message::Deaf(_) => self.held.push(message.clone()),
            // It finds this when it has greeted, and waits for its job.
            Message::Pause => self.edge.send(Instant::now(), message),
            _ => {}
        }
    }

    /// Closes the connection, which ends an agent and its ranks.
    ///
    /// A way to an agent that has not greeted may not notice, so it is asked to end; remaining
    /// processes are killed after [`FAREWELL`].
    pub(crate) fn give_up(&mut self) {
        (self.input, self.output) = (None, None);
        if self.stage == Stage::Starting {
            self.signal(Signal::TERM);
        }
        self.stage = Stage::Lost;
        self.kill_at = Some(Instant::now() + FAREWELL);
    }

    /// Whether the process has ended badly, has not been reaped, and no agent has greeted.
    pub(crate) fn failed_to_start(&self) -> bool {
        let Some(agent) = self.running().filter(|_| self.stage == Stage::Starting) else {
            return false;
        };
        ProcessEnd::wait(WaitId::PidFd(agent.pidfd.as_fd()), false) != ProcessEnd::Code(0)
    }

    /// Kills the process, and its descendants on this host.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let agent = self.running();
        if let Some(pid) = agent.and_then(|agent| Pid::from_raw(agent.process.id() as i32)) {
            // Not reaped yet, so the id is still the child's.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// The exit code for an agent that ended before it greeted, and why it did.
    pub(crate) fn why_not_started(&self, job: &Description, end: ProcessEnd) -> (u8, String) {
        let (name, agent) = (&self.host().name, job.agent[0].to_string_lossy());
        let noise = String::from_utf8_lossy(self.edge.noise());
        let noise = noise.lines().rfind(|line| !line.trim().is_empty());
        let noise = noise.map_or(String::new(), |line| format!(" (it wrote \"{line}\")"));
        match (end, &job.way) {
            (ProcessEnd::Code(code @ (126 | 127)), Way::Template(_)) => (
                code,
                format!(
                    "\"{agent}\", or a command of GASNET_CSPAWN_CMD that starts it, could not be run (exit code \
                     {code}){noise}; correct the command, or install argonet at that path on the host, or name another with \
                     ARGONET_AGENT"
                ),
            ),
            (ProcessEnd::Code(code @ (126 | 127)), _) => (
                code,
                format!(
                    "\"{agent}\" could not be run there (exit code {code}){noise}; install argonet at that path, or name \
                     another with ARGONET_AGENT"
                ),
            ),
            (ProcessEnd::Code(255), Way::Shell { command, .. }) => (
                1,
                format!(
                    "\"{command}\" could not get there (exit code 255; see above what it wrote, if anything){noise}; is the name right, and \
                     does `{command} {name} true` work without a question?"
                ),
            ),
            (end, _) => (
                1,
                format!(
                    "the command to start its agent {} before the agent answered{noise}",
                    end_in_words(end)
                ),
            ),
        }
    }
}

pub(crate) fn end_in_words(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Code(code) => format!("exited with code {code}"),
        ProcessEnd::Signal(signal) => {
            format!(
                "was killed by signal {signal} ({})",
                signal_name(i32::from(signal))
            )
        }
        ProcessEnd::Unknown => "ended".into(),
    }
}
