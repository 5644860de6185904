//! One thread that drives all endpoints of a job, and the account of messages that must have
//! arrived.

use crate::log::{Entry, Log, registered};
use crate::mail::Mail;
use crate::rig::{Buffers, Job, Promises, Rig, Setup};
use crate::watchdog::{Board, Watchdog};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Completion, Conduit, SendError, ThreadMode};
use argonet_segment::SharedBytes;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes of a segment where a case does not say.
pub(crate) const SEGMENT: u64 = 1 << 18;

/// Rounds in which nothing moved.
#[derive(Default)]
pub(crate) struct Idle {
    rounds: u32,
    since: Option<Instant>,
}

impl Idle {
    /// One more round.
    pub(crate) fn round(&mut self, moved: bool) {
        if moved {
            *self = Self::default();
        } else {
            self.rounds += 1;
        }
    }

    /// Whether nothing will move any more.
    pub(crate) fn is_stuck(&mut self, promises: &Promises) -> bool {
        self.rounds > promises.idle_rounds
            && self.since.get_or_insert_with(Instant::now).elapsed() >= promises.patience
    }
}

/// A job, its logs, and the account.
pub(crate) struct Bench<R: Rig> {
    pub(crate) job: R::Job,
    pub(crate) logs: Vec<Log>,
    pub(crate) promises: Promises,
    pub(crate) board: Arc<Board>,
    /// Entries that each rank's log must come to hold: by target, then by source.
    requests: Vec<Vec<Vec<Entry>>>,
    replies: Vec<Vec<Vec<Entry>>>,
    ended: Vec<bool>,
    turn: usize,
    _watchdog: Watchdog,
}

/// How a case wants its job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) ranks: u32,
    pub(crate) segment_bytes: u64,
    pub(crate) buffers: Buffers,
    pub(crate) calm: bool,
}

impl Want {
    /// So many endpoints, all else as usual.
    pub(crate) fn ranks(ranks: u32) -> Self {
        Self {
            ranks,
            segment_bytes: SEGMENT,
            buffers: Buffers::Default,
            calm: false,
        }
    }

    /// All buffers at their minimum.
    pub(crate) fn cramped(self) -> Self {
        Self {
            buffers: Buffers::Minimum,
            ..self
        }
    }

    /// No faults of the wire.
    pub(crate) fn calm(self) -> Self {
        Self { calm: true, ..self }
    }

    /// Segments of so many bytes.
    pub(crate) fn segments(self, segment_bytes: u64) -> Self {
        Self {
            segment_bytes,
            ..self
        }
    }
}

impl<R: Rig> Bench<R> {
    /// Starts a job.
    ///
    /// The place of the call names it in reports.
    #[track_caller]
    pub(crate) fn new(rig: &R, want: Want) -> Self {
        let n = want.ranks as usize;
        let job = rig.start(&Setup {
            ranks: want.ranks,
            segment_bytes: want.segment_bytes,
            buffers: want.buffers,
            calm: want.calm,
            registered: registered(),
        });
        let board = Board::new(
            format!("{} at {}", rig.name(), Location::caller()),
            want.ranks,
        );
        let limits = job.endpoint(JobRank(0)).limits();
        let promises = rig.promises();
        Self {
            logs: (0..n)
                .map(|rank| Log::new(rank, n, limits, &promises, Arc::clone(&board)))
                .collect(),
            promises,
            requests: vec![vec![Vec::new(); n]; n],
            replies: vec![vec![Vec::new(); n]; n],
            ended: vec![false; n],
            turn: 0,
            _watchdog: Watchdog::new(Arc::clone(&board)),
            board,
            job,
        }
    }

    /// All ranks.
    pub(crate) fn ranks(&self) -> std::ops::Range<u32> {
        0..self.logs.len() as u32
    }

    /// An endpoint.
    pub(crate) fn at(&self, rank: u32) -> &<R::Job as Job>::Conduit {
        self.job.endpoint(JobRank(rank))
    }

    /// A log for another thread.
    pub(crate) fn new_log(&self, rank: u32) -> Log {
        let limits = self.at(rank).limits();
        let (ranks, board) = (self.logs.len(), Arc::clone(&self.board));
        Log::new(rank as usize, ranks, limits, &self.promises, board)
    }

    /// Ends the case.
    pub(crate) fn fail(&self, what: &str) -> ! {
        panic!("{what}; {}", self.board.report());
    }

    /// Polls an endpoint once, by both ways in turn.
    pub(crate) fn poll(&mut self, rank: u32) -> usize {
        self.turn += 1;
        let (endpoint, log) = (
            self.job.endpoint(JobRank(rank)),
            &mut self.logs[rank as usize],
        );
        let (before, epoch) = (log.count(), endpoint.epoch());
        let taken = if self.turn.is_multiple_of(2) {
            endpoint.poll(log)
        } else {
            endpoint.poll_with(log)
        };
        self.board
            .counts(rank as usize)
            .polls
            .fetch_add(1, Ordering::Relaxed);
        let (now, faults) = (log.count() - before, log.faults.join("\n"));
        if !faults.is_empty() {
            self.fail(&faults);
        }
        if now > taken {
            self.fail(&format!(
                "a poll of rank {rank} took {now} and says {taken}"
            ));
        }
        if taken > self.promises.poll_per_peer * self.logs.len() {
            self.fail(&format!(
                "a poll of rank {rank} took {taken}: it is not bounded"
            ));
        }
        let counts = self.promises.threads == ThreadMode::Par && now > 0;
        if counts && self.at(rank).epoch() == epoch {
            self.fail(&format!(
                "a poll of rank {rank} took {now} and the epoch is the same"
            ));
        }
        taken
    }

    /// Polls those of `who` once each, another first each time; time passes if none took anything.
    ///
    /// Says how much was taken.
    pub(crate) fn round(&mut self, who: &[u32]) -> usize {
        let first = self.turn;
        let mut taken = 0;
        for i in 0..who.len() {
            let rank = who[(first + i) % who.len()];
            if !self.ended[rank as usize] {
                taken += self.poll(rank);
            }
        }
        if taken == 0 {
            self.job.advance();
        }
        taken
    }

    /// Rounds among `who` until something is so.
    ///
    /// Fails when nothing moves any more.
    pub(crate) fn until_among(
        &mut self,
        who: &[u32],
        what: &str,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        self.board.phase(what);
        let mut idle = Idle::default();
        while !done(self) {
            idle.round(self.round(who) > 0);
            if idle.is_stuck(&self.promises) {
                self.fail(&format!("nothing moves, and this has not happened: {what}"));
            }
        }
    }

    /// [`until_among`](Self::until_among) all.
    pub(crate) fn until(&mut self, what: &str, done: impl FnMut(&mut Self) -> bool) {
        let all: Vec<u32> = self.ranks().collect();
        self.until_among(&all, what, done);
    }

    /// Rounds among `who` until nothing moves for as long as a message may take.
    pub(crate) fn quiet_among(&mut self, who: &[u32]) {
        self.board.phase("until nothing moves");
        let mut idle = 0;
        while idle <= self.promises.idle_rounds {
            idle = if self.round(who) > 0 { 0 } else { idle + 1 };
        }
    }

    /// Tries to send; a message that went out is in the account.
    pub(crate) fn try_send(&mut self, from: u32, to: u32, mail: Mail) -> Result<(), SendError> {
        let sent = mail.try_send(self.at(from), JobRank(to));
        let counts = self.board.counts(from as usize);
        match sent {
            Ok(()) => {
                counts.sent.fetch_add(1, Ordering::Relaxed);
                self.owe(from, to, mail);
            }
            Err(_) => {
                counts.full.fetch_add(1, Ordering::Relaxed);
            }
        }
        sent
    }

    /// Puts a message that went out into the account.
    pub(crate) fn owe(&mut self, from: u32, to: u32, mail: Mail) {
        let (source, target) = (from as usize, to as usize);
        self.requests[target][source].push(mail.entry());
        self.replies[source][target].extend(mail.reply_entry());
    }

    /// Sends, with all polling while there is no room.
    pub(crate) fn send(&mut self, from: u32, to: u32, mail: Mail) {
        let what = format!("room at {from} for {to}: {mail:?}");
        self.until(&what, |bench| match bench.try_send(from, to, mail) {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(error) => bench.fail(&format!("{mail:?} is refused: {error}")),
        });
    }

    /// Sends without polling any endpoint until there is no room; says how many went out.
    pub(crate) fn fill(&mut self, from: u32, to: u32, mail: impl Fn(u32) -> Mail) -> u32 {
        const ENDLESS: u32 = 1 << 20;
        for n in 0..ENDLESS {
            match self.try_send(from, to, mail(n)) {
                Ok(()) => {}
                Err(SendError::Full) => return n,
                Err(error) => self.fail(&format!("message {n} is refused: {error}")),
            }
        }
        self.fail("a peer that never polls takes forever: no limit")
    }

    /// Whether all logs hold as many entries as they must.
    pub(crate) fn all_here(&self) -> bool {
        let same = |log: &[Vec<Entry>], due: &[Vec<Entry>]| {
            log.iter().zip(due).all(|(log, due)| log.len() >= due.len())
        };
        let requests = self.logs.iter().zip(&self.requests);
        let mut replies = self.logs.iter().zip(&self.replies);
        requests
            .into_iter()
            .all(|(log, due)| same(&log.requests, due))
            && replies.all(|(log, due)| same(&log.replies, due))
    }

    /// Whether all requests of a rank have been handled.
    pub(crate) fn handled_of(&self, source: u32) -> bool {
        let source = source as usize;
        let mut targets = self.logs.iter().zip(&self.requests);
        targets.all(|(log, due)| log.requests[source].len() >= due[source].len())
    }

    /// All that was sent arrives, once, in the order that is promised, and nothing else.
    pub(crate) fn account(&mut self) {
        self.until("all that was sent has arrived", |bench| bench.all_here());
        let all: Vec<u32> = self.ranks().collect();
        self.quiet_among(&all);
        self.compare();
    }

    /// Checks that the logs hold the entries of the account.
    pub(crate) fn compare(&self) {
        for target in 0..self.logs.len() {
            let log = &self.logs[target];
            for source in 0..self.logs.len() {
                let (due, got) = (&self.requests[target][source], &log.requests[source]);
                self.same(&format!("requests of {source} at {target}"), due, got);
                let (due, got) = (&self.replies[target][source], &log.replies[source]);
                self.same(&format!("replies of {source} at {target}"), due, got);
            }
            if let Some(error) = log.broken.first() {
                self.fail(&error.to_string());
            }
        }
    }

    fn same(&self, what: &str, due: &[Entry], got: &[Entry]) {
        let (mut due, mut got) = (due.to_vec(), got.to_vec());
        if !self.promises.ordered {
            due.sort_unstable();
            got.sort_unstable();
        }
        if due != got {
            let at = due.iter().zip(&got).position(|(due, got)| due != got);
            let at = at.unwrap_or(due.len().min(got.len()));
            self.fail(&format!(
                "{what}: {} are due and {} came; entry {at} should be {:?} and is {:?}",
                due.len(),
                got.len(),
                due.get(at),
                got.get(at),
            ));
        }
    }

    /// Forgets compared entries, in logs and account.
    pub(crate) fn forget(&mut self) {
        for class in [&mut self.requests, &mut self.replies] {
            class.iter_mut().flatten().for_each(Vec::clear);
        }
        for log in &mut self.logs {
            log.requests.iter_mut().for_each(Vec::clear);
            log.replies.iter_mut().for_each(Vec::clear);
        }
    }

    /// Adds the entries of another thread's sink.
    pub(crate) fn merge(&mut self, rank: u32, other: Log) {
        let log = &mut self.logs[rank as usize];
        for (mine, its) in log.requests.iter_mut().zip(other.requests) {
            mine.extend(its);
        }
        for (mine, its) in log.replies.iter_mut().zip(other.replies) {
            mine.extend(its);
        }
        log.completed.extend(other.completed);
        log.broken.extend(other.broken);
        if !other.faults.is_empty() {
            self.fail(&other.faults.join("\n"));
        }
    }

    /// Ends a rank without notice.
    pub(crate) fn end(&mut self, rank: u32) {
        self.ended[rank as usize] = true;
        self.job.end(JobRank(rank));
    }

    /// How often a completion of an operation of `rank` was reported.
    pub(crate) fn reported(&self, rank: u32, handle: u64, completion: Completion) -> usize {
        let completed = &self.logs[rank as usize].completed;
        completed
            .iter()
            .filter(|&&c| c == (handle, completion))
            .count()
    }

    /// Bytes of a segment.
    pub(crate) fn read(&self, rank: u32, offset: u64, len: usize) -> Vec<u8> {
        self.place(rank, offset, len).to_vec()
    }

    /// Where bytes of a segment lie.
    pub(crate) fn place(&self, rank: u32, offset: u64, len: usize) -> SharedBytes<'_> {
        let segment = self.job.segment(JobRank(rank));
        segment.bytes(SegmentOffset(offset), len).expect("inside")
    }

    /// Stores bytes into a segment.
    pub(crate) fn write(&self, rank: u32, offset: u64, bytes: &[u8]) {
        let segment = self.job.segment(JobRank(rank));
        let view = segment.bytes_mut(SegmentOffset(offset), bytes.len());
        view.expect("inside").copy_from(0, bytes).expect("inside");
    }
}
