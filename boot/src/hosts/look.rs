//! An agent that runs no ranks: it answers questions about its host.

use std::io::{PipeWriter, Write, pipe};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use argonet_base::JobRank;
use argonet_settings::Settings;
use rustix::event::{PollFd, PollFlags};

use crate::hosts::agent::merged;
use crate::hosts::description::Description;
use crate::hosts::edge::Edge;
use crate::hosts::message::{Message, Trouble};
use crate::hosts::pipe::{receive, transmit};
use crate::launch::fired;
use crate::secret::Secret;

/// The place of an agent that answers questions.
#[derive(Debug)]
pub struct Post {
    /// The name of its host in the list of hosts.
    pub host: String,
    /// The ranks that a job would have here.
    pub ranks: Range<u32>,
    /// The ranks that it would have in all.
    pub size: u32,
    /// A key that all agents have which are asked at the same time.
    pub key: Secret,
    /// The settings that ranks would have here.
    pub settings: Settings,
}

/// Makes, on a host, the function that answers there.
///
/// It runs in a thread of its own, so that it may take its time.
pub type Look = fn(Post) -> Answers;

/// Answers a question.
pub type Answers = Box<dyn FnMut(&[u8]) -> Vec<u8> + Send>;

/// Work to do.
#[derive(Clone, Copy)]
enum Event {
    FromAbove,
    ToAbove,
    Answered,
}

/// Answers until the other end asks no more; the exit code.
pub(crate) fn answer(job: &Description, key: &Secret, up: Edge, look: Look) -> u8 {
    let host = &job.hosts[0];
    let mut desk = Desk { up, job };
    let settings = match Settings::from_pairs(merged(job)) {
        Ok(settings) => settings,
        Err(error) => return desk.give_up(2, &error.to_string()),
    };
    settings.keep_quiet();
    let post = Post {
        host: host.name.clone(),
        ranks: host.first..host.first + host.ranks,
        size: job.size,
        key: key.clone(),
        settings,
    };
    let (wakeup, wake) = match pipe() {
        Ok(ends) => ends,
        Err(error) => return desk.give_up(1, &format!("making a pipe: {error}")),
    };
    let (ask, asked) = channel();
    let (give, given) = channel();
    std::thread::spawn(move || work(look(post), &asked, &give, wake));
    desk.serve(&ask, &given, wakeup)
}

/// Work of the thread that answers.
///
/// When it ends, for any reason, the wakeup ends, too.
fn work(
    mut answer: Answers,
    asked: &Receiver<Vec<u8>>,
    give: &Sender<Vec<u8>>,
    mut wake: PipeWriter,
) {
    while let Ok(question) = asked.recv() {
        let given = give.send(answer(&question));
        if given.is_err() || wake.write_all(&[1]).is_err() {
            return;
        }
    }
}

/// The connection upwards, on standard input and output.
struct Desk<'a> {
    up: Edge,
    job: &'a Description,
}

impl Desk<'_> {
    fn serve(&mut self, ask: &Sender<Vec<u8>>, given: &Receiver<Vec<u8>>, wakeup: impl AsFd) -> u8 {
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        loop {
            // Messages that were read with the description come first.
            if let Err(why) = self.listen(ask) {
                return self.give_up(1, &why);
            }
            let mut fds = vec![
                PollFd::from_borrowed_fd(stdin, PollFlags::IN),
                PollFd::new(&wakeup, PollFlags::IN),
            ];
            let mut events = vec![Event::FromAbove, Event::Answered];
            if !self.up.to_send().is_empty() {
                fds.push(PollFd::from_borrowed_fd(stdout, PollFlags::OUT));
                events.push(Event::ToAbove);
            }
            for event in fired(&mut fds, events, self.up.deadline()) {
                match event {
                    Event::ToAbove => {}
                    Event::Answered => match rustix::io::read(&wakeup, &mut [0; 1]) {
                        Ok(1) => {
                            let answers = given.try_iter().map(Message::Answer);
                            answers.for_each(|answer| self.up.send(Instant::now(), &answer));
                        }
                        _ => return self.give_up(1, "its agent failed while it was asked"),
                    },
                    Event::FromAbove => {
                        // The end of the input is the end of the questions.
                        if !receive(&mut self.up, stdin, Instant::now()) {
                            return 0;
                        }
                    }
                }
            }
            if self.up.is_silent(Instant::now()) || !transmit(&mut self.up, stdout) {
                return 1;
            }
        }
    }

    fn listen(&mut self, ask: &Sender<Vec<u8>>) -> Result<(), String> {
        while let Some(message) = self.up.next().map_err(|garbled| garbled.to_string())? {
            match message {
                // If this fails, the thread has ended, and has written the reason.
                Message::Ask(question) => drop(ask.send(question)),
                other => return Err(format!("a {:?} for an agent without ranks", other.kind())),
            }
        }
        Ok(())
    }

    /// Reports, as far as that goes, why there are no answers.
    fn give_up(&mut self, code: u8, why: &str) -> u8 {
        let host = &self.job.hosts[0];
        let trouble = Trouble {
            rank: JobRank(host.first),
            code,
            text: format!("{}: {why}", host.in_words()),
        };
        self.up.send(Instant::now(), &Message::Trouble(trouble));
        let stdout = rustix::stdio::stdout();
        while !self.up.to_send().is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
            fired(&mut fds, vec![()], self.up.deadline());
            if self.up.is_silent(Instant::now()) || !transmit(&mut self.up, stdout) {
                break;
            }
        }
        1
    }
}
