//! An agent at work: between the ranks of its host, the agents below and the launcher or agent
//! above.

mod flow;
mod messages;

use std::os::fd::OwnedFd;
use std::time::Instant;

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::board::Board;
use crate::hosts::children::{ChildEvent, Children, Heard};
use crate::hosts::description::Description;
use crate::hosts::edge::Edge;
use crate::hosts::exchange::Exchange;
use crate::hosts::here::{Here, Input};
use crate::hosts::message::{Message, Trouble};
use crate::hosts::pipe::{receive, transmit, unblock, writable};
use crate::hosts::survival::Tallies;
use crate::launch::fired;
use crate::output::{Lines, Streams, To};
use crate::page::{ExitKind, ExitWord};
use crate::ranks::RankEvent;
use crate::signals::{LauncherSignals, REPORT};
use crate::spawn::Spawner;

/// The exit code of an agent whose connection upwards has ended, or is silent: a temporary failure
/// (`EX_TEMPFAIL`), and none that the way to it has of its own.
pub(crate) const DESERTED_CODE: u8 = 75;

#[derive(Debug, Clone, Copy)]
enum Event {
    Signal,
    FromAbove,
    ToAbove,
    /// The reader above has gone.
    Broken,
    Rank(RankEvent),
    Child(ChildEvent),
    Stream(usize),
    Input,
    /// The other launcher's process on this host has ended.
    Launcher,
}

pub(crate) struct Node<'a> {
    job: &'a Description,
    /// The connection upwards, on standard input and output.
    up: Edge,
    /// Whether the launcher or agent above has gone, or does not answer.
    deserted: bool,
    children: Children<'a>,
    exchange: Exchange,
    tallies: Tallies,
    /// The ranks of this host; `None` if they could not be started.
    here: Option<Here<'a>>,
    /// `None` if another launcher signals the ranks itself.
    signals: Option<&'a LauncherSignals>,
    streams: Streams,
    /// Lines that wait to go up.
    lines: Lines,
    /// The outputs of which the launcher takes no more.
    deaf: Vec<To>,
    input: Input,
    /// Whether processes are to be reported to the launcher.
    verbose: bool,
    /// The process of another launcher that has started the ranks of this host, while it lives.
    launcher: Option<OwnedFd>,
    sent_over: bool,
}

impl<'a> Node<'a> {
    pub(crate) fn new(
        job: &'a Description,
        children: Children<'a>,
        up: Edge,
        signals: Option<&'a LauncherSignals>,
        streams: Streams,
        verbose: bool,
    ) -> Self {
        let host = &job.hosts[0];
        let mut sources = children.ranks();
        sources.push(host.first..host.first + host.ranks);
        Self {
            job,
            up,
            deserted: false,
            tallies: Tallies::new(sources.len()),
            exchange: Exchange::new(job.size, false, sources),
            children,
            here: None,
            signals,
            streams,
            lines: Lines::default(),
            deaf: Vec::new(),
            input: Input::default(),
            verbose,
            launcher: None,
            sent_over: false,
        }
    }

    /// Serves ranks that another launcher has started, whose process here is `launcher` if it is
    /// known.
    pub(crate) fn serve(&mut self, here: Here<'a>, launcher: Option<OwnedFd>) {
        self.here = Some(here);
        self.launcher = launcher;
    }

    /// Sends upwards.
    pub(crate) fn send(&mut self, message: &Message) {
        self.up.send(Instant::now(), message);
    }

    /// Reports upwards that this host cannot go on.
    pub(crate) fn trouble(&mut self, code: u8, text: &str) {
        let host = &self.job.hosts[0];
        let trouble = Trouble {
            rank: JobRank(host.first),
            code,
            text: format!("{}: {text}", host.in_words()),
        };
        self.send(&Message::Trouble(trouble));
    }

    /// A line for the user.
    fn note(&mut self, what: &str) {
        let tag = self.job.tag(&self.job.hosts[0].name);
        let line = format!("{tag}{what}\n");
        self.lines.err.extend_from_slice(line.as_bytes());
    }

    /// Starts the ranks of this host.
    pub(crate) fn start(&mut self, mut here: Here<'a>, mut spawner: Spawner<'_>) {
        if here.control.part().first == 0 {
            match pipe_with(PipeFlags::CLOEXEC).and_then(|(theirs, ours)| {
                unblock(&ours)?;
                Ok((theirs, ours))
            }) {
                Ok((theirs, ours)) => {
                    spawner.input = Some(theirs);
                    self.input.pipe = Some(ours);
                }
                Err(error) => {
                    let error = std::io::Error::from(error);
                    self.trouble(1, &format!("making a pipe for standard input: {error}"));
                }
            }
        }
        let mut processes = Vec::new();
        let tagged = self.job.tag_output;
        let started = here.start(&mut spawner, &mut self.streams, tagged, |rank, pid| {
            processes.push(format!("rank {rank} is process {pid}"));
        });
        if self.verbose {
            let guardian = here.control.job().guardian_pid().unwrap_or(0);
            let agent = std::process::id();
            self.note(&format!(
                "the agent is process {agent}, the guardian is process {guardian}"
            ));
            processes.iter().for_each(|line| self.note(line));
        }
        if let Err(error) = started {
            here.ranks.kill_all();
            self.trouble(error.exit_code(), &error.to_string());
        }
        self.here = Some(here);
    }

    /// Works until all ranks here and below have ended and that has been sent; the exit code of the
    /// agent.
    pub(crate) fn run(mut self) -> u8 {
        // Messages that came together with the job are in memory already; `poll` would not report
        // them.
        self.take_received();
        while !self.is_over() {
            self.step();
        }
        if let Some(here) = &self.here {
            here.ranks.reap();
            here.farewell();
        }
        if self.deserted { DESERTED_CODE } else { 0 }
    }

    fn is_over(&mut self) -> bool {
        let here_ended = self.here.as_ref().is_none_or(|here| here.ranks.all_ended());
        if !here_ended {
            return false;
        }
        if self.deserted {
            self.end_groups();
            return true;
        }
        if !self.children.all_finished() {
            return false;
        }
        self.end_groups();
        if !self.sent_over && self.drain() {
            self.sent_over = true;
            self.send(&Message::Over);
        }
        self.sent_over && self.up.to_send().is_empty() && self.children.all_ended()
    }

    /// Ends processes in the groups of ranks that have ended.
    fn end_groups(&mut self) {
        if let Some(here) = &mut self.here {
            here.ranks.kill_all();
        }
    }

    /// Forwards the output so far; whether that is all.
    fn drain(&mut self) -> bool {
        for i in 0..self.streams.len() {
            let Some(to) = self.streams.to(i) else {
                continue;
            };
            loop {
                if self.lines.is_full(to) {
                    self.send_lines();
                    if self.lines.is_full(to) {
                        return false;
                    }
                }
                let lines = &mut self.lines;
                if !self.streams.read(i, |to| lines.to(to)) {
                    break;
                }
            }
            let lines = &mut self.lines;
            self.streams.end(i, |to| lines.to(to));
        }
        self.send_lines();
        self.lines.out.is_empty() && self.lines.err.is_empty()
    }

    fn step(&mut self) {
        let mut heard = Vec::new();
        for event in self.wait() {
            match event {
                Event::Signal => {
                    while let Some(signal) = self.signals.and_then(LauncherSignals::next) {
                        self.signal(signal);
                    }
                }
                Event::FromAbove => self.listen(),
                Event::ToAbove => {
                    if !transmit(&mut self.up, rustix::stdio::stdout()) {
                        self.desert();
                    }
                }
                Event::Broken => self.desert(),
                Event::Rank(event) => self.look_at_rank(event),
                Event::Child(event) => self.children.serve(event, &mut heard),
                Event::Stream(i) => {
                    let lines = &mut self.lines;
                    self.streams.read(i, |to| lines.to(to));
                }
                Event::Input => self.pour_input(),
                Event::Launcher => self.launcher_ended(),
            }
        }
        // Messages that have come are looked at before any child is found silent.
        self.children.look(&mut heard);
        for heard in heard {
            let taken = match heard {
                Heard::Message(child, message) => self.take_from_below(child, message),
                Heard::Lost(child, lost) => self.lose_hosts(child, lost),
            };
            if let Err(garbled) = taken {
                self.trouble(1, &garbled.to_string());
            }
        }
        let now = Instant::now();
        if !self.deserted && self.up.is_silent(now) {
            self.desert();
        }
        if let Some(here) = &mut self.here {
            here.ranks.look_at_exit_word(now);
        }
        self.send_lines();
        self.children.push();
        if !self.deserted && !transmit(&mut self.up, rustix::stdio::stdout()) {
            self.desert();
        }
    }

    fn wait(&self) -> Vec<Event> {
        let (mut events, mut fds) = (Vec::new(), Vec::new());
        if let Some(signals) = self.signals {
            fds.push(PollFd::new(signals, PollFlags::IN));
            events.push(Event::Signal);
        }
        if !self.deserted {
            fds.push(PollFd::from_borrowed_fd(
                rustix::stdio::stdin(),
                PollFlags::IN,
            ));
            events.push(Event::FromAbove);
            let stdout = rustix::stdio::stdout();
            fds.push(PollFd::from_borrowed_fd(stdout, writable(&self.up)));
            events.push(match self.up.to_send().is_empty() {
                true => Event::Broken,
                false => Event::ToAbove,
            });
        }
        if let Some(here) = &self.here {
            let mut about_ranks = Vec::new();
            here.ranks.poll_fds(&mut fds, &mut about_ranks);
            events.extend(about_ranks.into_iter().map(Event::Rank));
        }
        let mut about_children = Vec::new();
        self.children.poll_fds(&mut fds, &mut about_children);
        events.extend(about_children.into_iter().map(Event::Child));
        let is_full = |to| self.lines.is_full(to);
        self.streams
            .poll_fds(&mut fds, is_full, |i| events.push(Event::Stream(i)));
        if let Some(pipe) = &self.input.pipe
            && !self.input.waiting.is_empty()
        {
            fds.push(PollFd::new(pipe, PollFlags::OUT));
            events.push(Event::Input);
        }
        // Last: ranks that ended before it are looked at before it is.
        if let Some(launcher) = &self.launcher {
            fds.push(PollFd::new(launcher, PollFlags::IN));
            events.push(Event::Launcher);
        }
        let up = self.up.deadline().filter(|_| !self.deserted);
        let ranks = self.here.as_ref().and_then(|here| here.ranks.deadline());
        let next = [up, ranks, self.children.deadline()];
        fired(&mut fds, events, next.into_iter().flatten().min())
    }

    /// The other launcher's process here has ended: no one waits for the ranks here any more.
    fn launcher_ended(&mut self) {
        self.launcher = None;
        let Some(here) = self.here.as_mut().filter(|here| !here.ranks.have_ended()) else {
            return;
        };
        here.ranks.kill_all();
        self.trouble(
            1,
            "the launcher's process there ended before the ranks that it had started",
        );
    }

    /// The launcher or agent above has gone: the ranks here end, and so do those below, whose
    /// connections are closed.
    fn desert(&mut self) {
        if std::mem::replace(&mut self.deserted, true) {
            return;
        }
        self.children.hang_up();
        if let Some(here) = &mut self.here {
            here.ranks.cancel(ExitWord {
                kind: ExitKind::Lost,
                rank: JobRank(self.job.hosts[0].first),
                code: 1,
            });
        }
    }

    fn listen(&mut self) {
        if !receive(&mut self.up, rustix::stdio::stdin(), Instant::now()) {
            self.desert();
            return;
        }
        self.take_received();
    }

    /// Acts on the messages from above that have been received whole.
    fn take_received(&mut self) {
        loop {
            let taken = match self.up.next() {
                Ok(Some(message)) => self.take_from_above(message),
                Ok(None) => return,
                Err(garbled) => Err(garbled),
            };
            if let Err(garbled) = taken {
                self.trouble(1, &garbled.to_string());
                let _ = transmit(&mut self.up, rustix::stdio::stdout());
                self.desert();
                return;
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        if signal == REPORT {
            self.report();
        } else if let Some(here) = &self.here {
            here.ranks.signal(signal);
        }
    }

    /// Prints the waits of the ranks here, and asks the ranks for more.
    fn report(&mut self) {
        let Some(here) = &self.here else { return };
        let board = Board::new(here.control);
        let text = format!("all ranks here:\n{}", board.to_string().trim_end());
        board.ask_for_reports(board.reports_asked());
        self.note(&text);
    }
}
