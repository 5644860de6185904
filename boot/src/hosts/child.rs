//! One agent that this process has started.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::process::{Child as Process, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::exit::{ProcessEnd, signal_name};
use crate::hosts::description::{Description, Way};
use crate::hosts::edge::Edge;
use crate::hosts::list::Host;
use crate::hosts::pipe::transmit;

/// How long the process of an agent may take to end once its connection has.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// How far an agent has come.
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

pub(crate) struct Child {
    /// Its host, and those below.
    pub(crate) hosts: Vec<Host>,
    pub(crate) process: Process,
    pub(crate) pidfd: OwnedFd,
    pub(crate) ended: Option<ExitStatus>,
    /// `None` once closed.
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Option<OwnedFd>,
    pub(crate) born: Instant,
    /// When it greeted.
    pub(crate) greeted: Option<Instant>,
    pub(crate) edge: Edge,
    pub(crate) stage: Stage,
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

    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Over | Stage::Lost)
    }

    /// When to look whether it lives at the latest.
    pub(crate) fn deadline(&self, silence: Duration) -> Option<Instant> {
        let greeting = (self.stage == Stage::Starting).then(|| self.born + silence);
        greeting.into_iter().chain(self.edge.deadline()).min()
    }

    /// Writes what can be written at once; false if nobody reads any more.
    pub(crate) fn transmit(&mut self) -> bool {
        let input = self.input.as_ref();
        input.is_none_or(|input| transmit(&mut self.edge, input))
    }

    /// It reads nothing any more. What it has said before is read yet.
    pub(crate) fn broken(&mut self) {
        self.input = None;
        self.kill_at = Some(Instant::now() + FAREWELL);
    }

    /// Kills the process, and what it started on this host.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none()
            && let Some(pid) = Pid::from_raw(self.process.id() as i32)
        {
            // Not reaped yet, so the id is still the child's.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// The exit code for an agent that ended before it greeted, and why it did.
    pub(crate) fn why_not_started(&self, job: &Description, end: ProcessEnd) -> (u8, String) {
        let (name, agent) = (&self.host().name, job.agent[0].to_string_lossy());
        let noise = String::from_utf8_lossy(self.edge.noise());
        let noise = noise.lines().rfind(|line| !line.trim().is_empty());
        let noise = noise.map_or(String::new(), |line| format!(" (it wrote \"{line}\")"));
        match (end, &job.way) {
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
                    "\"{command}\" could not get there (exit code 255; what it said is above){noise}; is the name right, and \
                     does `{command} {name} true` work without a question?"
                ),
            ),
            (end, _) => (
                1,
                format!(
                    "the way to its agent {} before the agent answered{noise}",
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
