//! `argonet run` for a job over several hosts: the top of the tree.
//!
//! The root of a job that another launcher started does the same for agents that have connected
//! ([`serve`]).

mod losses;

use std::time::Instant;

use argonet_base::JobRank;
use argonet_settings::{SPAWN_VERBOSE, Settings};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::error::{BootError, Missing};
use crate::file_limit::{FILES_OF_AGENT, SPARE_FILES, raise_file_limit};
use crate::hosts::accusations::Accusations;
use crate::hosts::children::{ChildEvent, Children, Heard};
use crate::hosts::choose::Hosts;
use crate::hosts::describe::describe;
use crate::hosts::description::{Description, Task};
use crate::hosts::exchange::{Action, Exchange};
use crate::hosts::frame::Garbled;
use crate::hosts::list::Host;
use crate::hosts::message::{Gone, Message, Trouble};
use crate::hosts::survival::Register;
use crate::hosts::values::pieces;
use crate::judgment::Obstacle;
use crate::launch::{
    LaunchOptions, Overdue, TIMEOUT_CODE, TimeLimit, canceled, fired, say, second_signal,
    stop_this_process,
};
use crate::outcome::{Fate, settle};
use crate::output::{Source, TaggedOutput, To, code_without_output};
use crate::page::{ExitKind, ExitWord};
use crate::secret::Secret;
use crate::signals::{LauncherSignals, REPORT, asks_to_end};
use crate::sys::{self, SignalSet};
use crate::tally::Tally;

/// Runs a job over the hosts chosen, as [`launch`](crate::launch()) says.
pub(crate) fn launch(
    options: &LaunchOptions,
    conduit: &str,
    goes_on: bool,
    hosts: Hosts,
    settings: &Settings,
) -> Result<u8, BootError> {
    let job = Description {
        goes_on,
        ..describe(Task::Run, options, conduit, hosts, settings)?
    };
    let key = Secret::new()?;
    let signals = LauncherSignals::collect()
        .map_err(|e| BootError::system("preparing to pass on signals", e))?;
    // In the background, reading from the terminal is an error, and does not stop this process.
    SignalSet::of(&[libc::SIGTTIN]).block();
    raise_file_limit(job.hosts.len() as u64 * FILES_OF_AGENT + SPARE_FILES);
    let verbose = settings.get(&SPAWN_VERBOSE);
    if verbose {
        let hosts: Vec<String> = job.hosts.iter().map(Host::in_words).collect();
        let size = job.size;
        say(&format!(
            "{size} ranks are started by agents on {}",
            hosts.join(", ")
        ));
    }
    let mut output = TaggedOutput::new();
    let streams = &mut output.streams;
    let (children, mut failed) =
        Children::start(&job, &job.hosts, &key, signals.mask_before(), streams);
    if !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let mut root = Root {
        signals: Some(&signals),
        output,
        input: Input::Open,
        limit: options
            .timeout
            .map(|time| TimeLimit::new(time, "--timeout")),
        verbose,
        ..Root::new(&job, children)
    };
    while !root.children.all_finished() {
        root.step();
    }
    let (code, reason) = root.finish();
    if verbose {
        say(&format!("the job has ended with code {code}"));
    }
    drop(signals);
    if let Some(reason) = reason {
        say(&reason);
    }
    Ok(code)
}

/// Serves agents that have connected until all ranks, which another launcher has started, have
/// ended; says on standard error why the job ended.
pub(crate) fn serve(job: &Description, children: Children<'_>) {
    let mut root = Root::new(job, children);
    // Messages that came together with a greeting; `poll` would not report them.
    let mut heard = Vec::new();
    for child in 0..root.children.len() {
        let event = ChildEvent::Readable(child);
        root.children.serve(event, &mut heard);
    }
    root.hear(heard);
    let say = |reason: &str| sys::say(&format!("argonet: {reason}"));
    let mut said = false;
    while !root.children.all_finished() {
        root.step();
        // A launcher may kill this process when the last rank has ended.
        if let Some(reason) = root.failure().filter(|_| !said) {
            say(&reason);
            said = true;
        }
    }
    let (_, reason) = root.finish();
    if let Some(reason) = reason.filter(|_| !said) {
        say(&reason);
    }
}

/// The launcher's standard input, which rank 0 gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// A terminal that this process, in the background, may not read.
    Background,
    Ended,
}

enum Event {
    Signal,
    Child(ChildEvent),
    Output(Source),
    Input,
}

struct Root<'a> {
    children: Children<'a>,
    exchange: Exchange,
    register: Register,
    accusations: Accusations,
    /// End of the hearing of accusations, while there is one.
    hearing_ends: Option<Instant>,
    /// Whether output of ranks is lost with their host.
    output_lost: bool,
    /// Whether the job goes on without ranks that are lost.
    goes_on: bool,
    /// `None` if another launcher signals the ranks itself.
    signals: Option<&'a LauncherSignals>,
    output: TaggedOutput,
    input: Input,
    /// Why the job ends: the first reason that arrived counts.
    word: Option<ExitWord>,
    late_failure: Option<JobRank>,
    fates: Vec<Option<Fate>>,
    /// What kept the job from going on without the rank that ended it, if it was to.
    obstacle: Option<Obstacle>,
    /// Ranks that enter no more fences, until the agents learn of them.
    gone: Vec<Gone>,
    /// The outputs that cannot be written any more.
    deaf: Vec<To>,
    limit: Option<TimeLimit>,
    /// Number of signals that have asked for the end.
    interrupts: u32,
    /// The code and reason of a job that was not ended by its ranks.
    canceled: Option<(u8, String)>,
    verbose: bool,
}

impl<'a> Root<'a> {
    /// The root of ranks that another launcher signals.
    fn new(job: &Description, children: Children<'a>) -> Self {
        Self {
            exchange: Exchange::new(job.size, true, children.ranks()),
            register: Register::new(children.len()),
            accusations: Accusations::new(job.size as usize),
            hearing_ends: None,
            output_lost: false,
            goes_on: job.goes_on,
            children,
            signals: None,
            output: TaggedOutput::new(),
            input: Input::Ended,
            word: None,
            late_failure: None,
            fates: vec![None; job.size as usize],
            obstacle: None,
            gone: Vec::new(),
            deaf: Vec::new(),
            limit: None,
            interrupts: 0,
            canceled: None,
            verbose: false,
        }
    }

    /// Waits for events and acts on them.
    fn step(&mut self) {
        let mut heard = Vec::new();
        for event in self.wait() {
            match event {
                Event::Signal => {
                    while let Some(signal) = self.signals.and_then(LauncherSignals::next) {
                        self.signal(signal);
                    }
                }
                Event::Child(event) => self.children.serve(event, &mut heard),
                Event::Output(source) => self.output.serve(source),
                Event::Input => self.read_input(),
            }
        }
        // Messages that have come are looked at before any child is found silent.
        self.children.look(&mut heard);
        self.hear(heard);
        self.end_hearing();
        self.care_for_output();
        if self.canceled.is_none() {
            match self.limit.as_mut().and_then(TimeLimit::act) {
                Some(Overdue::Reports) => self.children.send_all(&Message::Report),
                Some(Overdue::Ends(how_long)) => self.end_for_time(&how_long),
                None => {}
            }
        }
        self.children.push();
    }

    fn end_for_time(&mut self, how_long: &str) {
        let left = (0..).map(JobRank).zip(&self.fates);
        let left = left.filter(|(_, fate)| fate.is_none()).map(|(r, _)| r);
        let left = Missing(left.collect());
        let starting = self.children.starting_in_words();
        let reason = format!(
            "the job did not end within {how_long}; {left} still ran and were ended{starting}"
        );
        self.cancel(TIMEOUT_CODE, reason, ExitKind::Canceled);
    }

    /// Acts on what has come from agents.
    fn hear(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            let (child, message) = match heard {
                Heard::Message(child, message) => (child, message),
                Heard::Lost(child, lost) => {
                    self.lose_hosts(&lost);
                    if !self.goes_on {
                        continue;
                    }
                    (child, Message::Tally(Tally::OF_NO_RANKS))
                }
            };
            if let Err(garbled) = self.take(child, message) {
                self.cancel(1, garbled.to_string(), ExitKind::Canceled);
            }
        }
    }

    /// Why the job ends, once that is known of a failure while others still end.
    fn failure(&self) -> Option<String> {
        if let Some((_, reason)) = &self.canceled {
            return Some(reason.clone());
        }
        let word = self.word.filter(|word| !word.kind.leaves_time())?;
        self.fates.get(word.rank.index())?.as_ref()?;
        settle(Some(word), self.late_failure, &self.fates, self.obstacle).1
    }

    fn wait(&self) -> Vec<Event> {
        let (mut events, mut fds) = (Vec::new(), Vec::new());
        if let Some(signals) = self.signals {
            fds.push(PollFd::new(signals, PollFlags::IN));
            events.push(Event::Signal);
        }
        let mut about_children = Vec::new();
        self.children.poll_fds(&mut fds, &mut about_children);
        events.extend(about_children.into_iter().map(Event::Child));
        let mut sources = Vec::new();
        self.output.poll_fds(&mut fds, &mut sources);
        events.extend(sources.into_iter().map(Event::Output));
        let stdin = rustix::stdio::stdin();
        if self.input == Input::Open && self.children.input_room() > 0 {
            fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
            events.push(Event::Input);
        }
        let limit = self.limit.as_ref().filter(|_| self.canceled.is_none());
        let limit = limit.and_then(TimeLimit::next);
        let next = limit.into_iter().chain(self.children.deadline());
        let next = next.chain(self.hearing_ends).min();
        fired(&mut fds, events, next)
    }

    fn read_input(&mut self) {
        let mut bytes = vec![0; self.children.input_room()];
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes[..]) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::IO) => self.input = Input::Background,
            Ok(0) | Err(_) => {
                self.input = Input::Ended;
                self.children.send(0, &Message::InputEnd);
            }
            Ok(n) => {
                bytes.truncate(n);
                self.children.send(0, &Message::Input(bytes));
            }
        }
    }

    fn take(&mut self, child: usize, message: Message) -> Result<(), Garbled> {
        match message {
            Message::Values(values) => self.exchange.values(child, &values)?,
            Message::Waits(fence) => {
                self.exchange.waits(fence)?;
                self.report_deserters();
            }
            Message::Arrived(fence) => {
                let actions = self.exchange.arrived(child, fence)?;
                self.act(actions);
                self.report_deserters();
            }
            Message::Gone(gone) => {
                self.gone.push(gone);
                self.report_deserters();
            }
            Message::Exit(word) => self.end(word),
            Message::Ended(ended) => self.rank_ended(&ended)?,
            Message::Tally(tally) if self.goes_on => {
                for message in self.register.tally(child, tally)? {
                    self.children.send_all(&message);
                }
            }
            Message::LostHosts(lost) if self.goes_on => self.lose_hosts(&lost),
            Message::Accusation(accuser, accused) if self.goes_on => {
                if accused.index() >= self.fates.len() {
                    return Err(Garbled(format!("there is no rank {accused}")));
                }
                self.hear_accusation(accuser, accused);
            }
            Message::Trouble(trouble) => self.trouble(trouble),
            Message::Output(to, lines) => {
                let sink = self.output.sink(to);
                if !sink.is_closed() {
                    sink.queue().extend_from_slice(&lines);
                }
            }
            other => return Err(Garbled(format!("a {:?} from below", other.kind()))),
        }
        Ok(())
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            // At the top nothing goes up.
            if let Action::Down {
                source,
                values,
                fence,
            } = action
            {
                for piece in pieces(&values) {
                    self.children.send(source, &Message::Values(piece.to_vec()));
                }
                self.children.send(source, &Message::Done(fence));
            }
        }
    }

    /// Reports ranks that will not come to ranks that wait for them.
    fn report_deserters(&mut self) {
        let waited = self.exchange.waited();
        let deserters = self.gone.extract_if(.., |gone| gone.fences < waited);
        let deserters: Vec<Gone> = deserters.collect();
        for gone in deserters {
            self.children.send_all(&Message::Gone(gone));
        }
    }

    /// The job ends, unless it does so already.
    fn end(&mut self, word: ExitWord) {
        if self.word.is_none() {
            self.word = Some(word);
            self.children.send_all(&Message::Exit(word));
        }
    }

    fn trouble(&mut self, trouble: Trouble) {
        let Trouble { rank, code, text } = trouble;
        if self.word.is_some_and(|word| !word.kind.leaves_time()) {
            return; // What follows from the end is no reason for it.
        }
        self.canceled.get_or_insert((code, text));
        let kind = ExitKind::Lost;
        let word = ExitWord { kind, rank, code };
        self.word = None;
        self.end(word);
    }

    fn cancel(&mut self, code: u8, reason: String, kind: ExitKind) {
        self.canceled.get_or_insert((code, reason));
        self.word = None;
        let word = canceled(code);
        self.end(ExitWord { kind, ..word });
    }

    fn signal(&mut self, signal: Signal) {
        if signal == REPORT {
            self.children.send_all(&Message::Report);
            return;
        }
        if asks_to_end(signal) {
            self.interrupts += 1;
            if self.interrupts > 1 {
                let (code, reason) = second_signal(signal);
                self.cancel(code, reason, ExitKind::Canceled);
            }
            if self.interrupts > 2 {
                // Agents that do not answer are left to themselves.
                self.children.hang_up();
            }
            if self.interrupts > 1 {
                return;
            }
        }
        if signal == Signal::CONT && self.input == Input::Background {
            self.input = Input::Open;
        }
        self.children
            .send_all(&Message::Signal(signal.as_raw() as u8));
        if signal == Signal::TSTP {
            self.children.send_all(&Message::Pause);
            self.children.push();
            stop_this_process();
        }
    }

    /// Lets agents send more output where there is room, and none where it cannot be written.
    fn care_for_output(&mut self) {
        for to in [To::Out, To::Err] {
            if self.output.sink(to).is_closed() && !self.deaf.contains(&to) {
                self.deaf.push(to);
                self.children.send_all(&Message::Deaf(to));
            }
        }
        if [To::Out, To::Err]
            .iter()
            .all(|&to| !self.output.sink(to).is_full())
        {
            self.children.passed_on();
        }
    }

    fn note(&mut self, what: &str) {
        let line = format!("argonet run: {what}\n");
        self.output
            .sink(To::Err)
            .queue()
            .extend_from_slice(line.as_bytes());
    }

    /// All ranks have ended, or their hosts are lost: settles the code and its reason.
    fn finish(mut self) -> (u8, Option<String>) {
        // The job has ended in time, even if remaining commands of agents take long.
        let limit = self.limit.take();
        while !self.children.all_ended() {
            self.step();
        }
        let (mut code, reason) = match self.canceled.take() {
            Some((code, reason)) => (code, Some(reason)),
            None => {
                let ended = settle(self.word, self.late_failure, &self.fates, self.obstacle);
                match limit {
                    Some(limit) => limit.settle(ended),
                    None => ended,
                }
            }
        };
        // An interrupt must end a launcher whose output is not taken.
        if let Some(signals) = self.signals {
            signals.mask_before().restore();
        }
        for lost in self.output.finish() {
            say(&lost);
            code = code_without_output(code);
        }
        if self.output_lost {
            code = code_without_output(code);
        }
        (code, reason)
    }
}
