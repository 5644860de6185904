//! An agent at work: between the ranks of its host, the agents below and whoever is above.

use std::time::Instant;

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::board::Board;
use crate::exit::LostGuardian;
use crate::hosts::children::{ChildEvent, Children, Heard};
use crate::hosts::description::Description;
use crate::hosts::edge::Edge;
use crate::hosts::exchange::{Action, Exchange};
use crate::hosts::frame::Garbled;
use crate::hosts::here::{Here, Input};
use crate::hosts::message::{BULK_BYTES, Message, Trouble};
use crate::hosts::pipe::{pour, receive, transmit, unblock};
use crate::hosts::values::pieces;
use crate::launch::fired;
use crate::output::{Lines, Streams, To};
use crate::page::{ExitKind, ExitWord};
use crate::ranks::RankEvent;
use crate::signals::{LauncherSignals, REPORT};
use crate::spawn::Spawner;

#[derive(Debug, Clone, Copy)]
enum Event {
    Signal,
    FromAbove,
    ToAbove,
    Rank(RankEvent),
    Child(ChildEvent),
    Stream(usize),
    Input,
}

pub(crate) struct Node<'a> {
    job: &'a Description,
    /// The connection upwards, on standard input and output.
    up: Edge,
    /// Whether whoever is above has gone, or does not answer.
    deserted: bool,
    children: Children<'a>,
    exchange: Exchange,
    /// The ranks of this host; `None` if they could not be started.
    here: Option<Here<'a>>,
    signals: &'a LauncherSignals,
    streams: Streams,
    /// Lines that wait to go up.
    lines: Lines,
    /// What nobody takes any more.
    deaf: Vec<To>,
    input: Input,
    /// Whether the launcher is to be told of processes.
    verbose: bool,
    told_over: bool,
}

impl<'a> Node<'a> {
    pub(crate) fn new(
        job: &'a Description,
        children: Children<'a>,
        up: Edge,
        signals: &'a LauncherSignals,
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
            exchange: Exchange::new(job.size, false, sources),
            children,
            here: None,
            signals,
            streams,
            lines: Lines::default(),
            deaf: Vec::new(),
            input: Input::default(),
            verbose,
            told_over: false,
        }
    }

    /// Sends upwards.
    pub(crate) fn tell(&mut self, message: &Message) {
        self.up.send(Instant::now(), message);
    }

    /// Tells that this host cannot go on.
    pub(crate) fn trouble(&mut self, code: u8, text: &str) {
        let host = &self.job.hosts[0];
        let trouble = Trouble {
            rank: JobRank(host.first),
            code,
            text: format!("{}: {text}", host.in_words()),
        };
        self.tell(&Message::Trouble(trouble));
    }

    /// A line for the user.
    fn note(&mut self, what: &str) {
        let name = &self.job.hosts[0].name;
        let line = format!("argonet run: host {name}: {what}\n");
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

    /// Works until all ranks here and below have ended and that has been told; the exit code of the agent.
    pub(crate) fn run(mut self) -> u8 {
        while !self.is_over() {
            self.step();
        }
        if let Some(here) = &self.here {
            here.ranks.reap();
            here.farewell();
        }
        u8::from(self.deserted)
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
        if !self.told_over && self.drain() {
            self.told_over = true;
            self.tell(&Message::Over);
        }
        self.told_over && self.up.to_send().is_empty() && self.children.all_ended()
    }

    /// Ends what ranks that have ended left behind in their groups.
    fn end_groups(&mut self) {
        if let Some(here) = &mut self.here {
            here.ranks.kill_all();
        }
    }

    /// Passes on what has been written so far; whether that is all.
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
                    while let Some(signal) = self.signals.next() {
                        self.signal(signal);
                    }
                }
                Event::FromAbove => self.listen(),
                Event::ToAbove => transmit(&mut self.up, rustix::stdio::stdout()),
                Event::Rank(event) => self.look_at_rank(event),
                Event::Child(event) => self.children.serve(event, &mut heard),
                Event::Stream(i) => {
                    let lines = &mut self.lines;
                    self.streams.read(i, |to| lines.to(to));
                }
                Event::Input => self.pour_input(),
            }
        }
        // What has come is looked at before anybody is found silent.
        self.children.look(&mut heard);
        for heard in heard {
            let taken = match heard {
                Heard::Message(child, message) => self.take_from_below(child, message),
                Heard::Lost(trouble) => {
                    self.tell(&Message::Trouble(trouble));
                    Ok(())
                }
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
        if !self.deserted {
            transmit(&mut self.up, rustix::stdio::stdout());
        }
    }

    fn wait(&self) -> Vec<Event> {
        let mut events = vec![Event::Signal];
        let mut fds = vec![PollFd::new(self.signals, PollFlags::IN)];
        if !self.deserted {
            fds.push(PollFd::from_borrowed_fd(
                rustix::stdio::stdin(),
                PollFlags::IN,
            ));
            events.push(Event::FromAbove);
            if !self.up.to_send().is_empty() {
                fds.push(PollFd::from_borrowed_fd(
                    rustix::stdio::stdout(),
                    PollFlags::OUT,
                ));
                events.push(Event::ToAbove);
            }
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
        let up = self.up.deadline().filter(|_| !self.deserted);
        let ranks = self.here.as_ref().and_then(|here| here.ranks.deadline());
        let next = [up, ranks, self.children.deadline()];
        fired(&mut fds, events, next.into_iter().flatten().min())
    }

    /// Nobody is above any more: the ranks here end, and so do those below, whose connections are closed.
    fn desert(&mut self) {
        self.deserted = true;
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
        loop {
            let taken = match self.up.next() {
                Ok(Some(message)) => self.take_from_above(message),
                Ok(None) => return,
                Err(garbled) => Err(garbled),
            };
            if let Err(garbled) = taken {
                self.trouble(1, &garbled.to_string());
                transmit(&mut self.up, rustix::stdio::stdout());
                self.desert();
                return;
            }
        }
    }

    fn take_from_above(&mut self, message: Message) -> Result<(), Garbled> {
        match message {
            Message::Values(values) => return self.exchange.above(&values),
            Message::Done(fence) => {
                let actions = self.exchange.done(fence)?;
                return self.act(actions);
            }
            Message::Input(bytes) => self.input.waiting.extend_from_slice(&bytes),
            Message::InputEnd => self.input.ended = true,
            Message::Exit(word) => {
                if let Some(here) = &mut self.here {
                    here.end(word);
                }
                self.children.send_all(&message);
            }
            Message::Gone(gone) => {
                if let Some(here) = &self.here {
                    here.note_gone(gone);
                }
                self.children.send_all(&message);
            }
            Message::Signal(number) => {
                if let (Some(here), Some(signal)) =
                    (&self.here, Signal::from_named_raw(number.into()))
                {
                    here.ranks.signal(signal);
                }
                self.children.send_all(&message);
            }
            Message::Report => {
                self.report();
                self.children.send_all(&message);
            }
            Message::Deaf(to) => {
                self.deaf.push(to);
                self.streams.close_all(to);
                self.children.send_all(&message);
            }
            other => return Err(Garbled(format!("a {:?} from above", other.kind()))),
        }
        self.pour_input();
        Ok(())
    }

    fn take_from_below(&mut self, child: usize, message: Message) -> Result<(), Garbled> {
        match message {
            Message::Values(values) => self.exchange.values(child, &values)?,
            Message::Waits(fence) => {
                let actions = self.exchange.waits(fence)?;
                self.act(actions)?;
            }
            Message::Arrived(fence) => {
                let actions = self.exchange.arrived(child, fence)?;
                self.act(actions)?;
            }
            Message::Output(to, lines) => self.lines.to(to).extend_from_slice(&lines),
            Message::Gone(_) | Message::Exit(_) | Message::Ended(..) | Message::Trouble(_) => {
                self.tell(&message);
            }
            other => return Err(Garbled(format!("a {:?} from below", other.kind()))),
        }
        Ok(())
    }

    fn act(&mut self, actions: Vec<Action>) -> Result<(), Garbled> {
        for action in actions {
            match action {
                Action::Waits(fence) => self.tell(&Message::Waits(fence)),
                Action::Up { values, fence } => {
                    for piece in pieces(&values) {
                        self.tell(&Message::Values(piece.to_vec()));
                    }
                    self.tell(&Message::Arrived(fence));
                }
                Action::Down {
                    source,
                    values,
                    fence,
                } if source < self.children.len() => {
                    for piece in pieces(&values) {
                        self.children.send(source, &Message::Values(piece.to_vec()));
                    }
                    self.children.send(source, &Message::Done(fence));
                }
                Action::Down { values, fence, .. } => {
                    if let Some(here) = &self.here {
                        here.pass_fence(&values, fence)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn look_at_rank(&mut self, event: RankEvent) {
        let Some(here) = &mut self.here else { return };
        match event {
            RankEvent::Guardian => {
                let (pid, end) = here.ranks.guardian_ended();
                let warning = LostGuardian(pid, end).warning();
                self.note(&warning);
            }
            RankEvent::Rung(i) => {
                here.ranks.answer(i);
                self.look_around(i);
            }
            RankEvent::Ended(i) => {
                let rank = here.ranks.rank(i);
                let fate = here.ranks.rank_ended(i);
                if rank == JobRank(0) {
                    // Nobody reads it any more.
                    self.input.pipe = None;
                    self.pour_input();
                }
                self.look_around(i);
                self.tell(&Message::Ended(rank, fate, fate.is_late_failure()));
            }
        }
    }

    /// Tells the other hosts what they do not know of the ranks here; rank `i` has rung, or ended.
    fn look_around(&mut self, i: usize) {
        let Some(here) = &mut self.here else { return };
        let word = here.exit_to_tell().map(Message::Exit);
        let gone = here.gone_to_tell(i);
        let fence = here.fence_to_tell();
        word.iter()
            .chain(&gone)
            .for_each(|message| self.tell(message));
        if let Some((published, number)) = fence {
            let source = self.children.len();
            let told = self.exchange.values(source, &published);
            let actions = told.and_then(|()| self.exchange.arrived(source, number));
            if let Err(garbled) = actions.and_then(|actions| self.act(actions)) {
                self.trouble(
                    1,
                    &format!("ranks have written where they must not ({garbled})"),
                );
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

    /// Says what the ranks here wait for, and asks them for more.
    fn report(&mut self) {
        let Some(here) = &self.here else { return };
        let board = Board::new(here.control);
        let text = format!("all ranks here:\n{}", board.to_string().trim_end());
        board.ask_for_reports(board.reports_asked());
        self.note(&text);
    }

    /// Sends as many whole lines as the window has room for, and lets those below send more where there is room.
    fn send_lines(&mut self) {
        for to in [To::Out, To::Err] {
            if self.deaf.contains(&to) {
                self.lines.to(to).clear();
            }
            loop {
                let queue = self.lines.to(to);
                let n = whole_lines(queue, self.up.room());
                if n == 0 {
                    break;
                }
                let piece = queue.drain(..n).collect();
                self.tell(&Message::Output(to, piece));
            }
        }
        if !self.lines.is_full(To::Out) && !self.lines.is_full(To::Err) {
            self.children.passed_on();
        }
    }

    /// Gives rank 0 what has come for it.
    fn pour_input(&mut self) {
        let input = &mut self.input;
        let poured = match &input.pipe {
            Some(_) if input.waiting.is_empty() => Some(0),
            Some(pipe) => pour(&mut input.waiting, pipe),
            None => None,
        };
        if let Some(poured) = poured {
            self.up.passed_on_part(Instant::now(), poured);
        } else {
            // The rank does not read; what comes is passed on to nobody.
            self.up.passed_on(Instant::now());
            (input.pipe, input.waiting) = (None, Vec::new());
        }
        if input.ended && input.waiting.is_empty() {
            input.pipe = None;
        }
    }
}

/// How many bytes of `queue` go in one message of at most `room` bytes: whole lines, or as much as a message holds of one that
/// is longer.
fn whole_lines(queue: &[u8], room: usize) -> usize {
    let most = &queue[..queue.len().min(room)];
    match most.iter().rposition(|&b| b == b'\n') {
        Some(end) => end + 1,
        None if most.len() == BULK_BYTES => BULK_BYTES,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_unless_they_fit_no_message() {
        assert_eq!(whole_lines(b"one\ntwo\nth", 100), 8);
        assert_eq!(whole_lines(b"one\ntwo\n", 7), 4);
        assert_eq!(whole_lines(b"one\n", 3), 0);
        assert_eq!(whole_lines(b"", 100), 0);
        assert_eq!(
            whole_lines(&vec![b'x'; 3 * BULK_BYTES], BULK_BYTES),
            BULK_BYTES
        );
    }
}
