//! The tasks of one rank, and whether any rank has tasks left; it sends nothing itself.

use std::collections::{BTreeSet, VecDeque};

/// Tasks of one message, at most.
const MOST_A_MESSAGE: usize = 4096;

/// Bytes of one message, about.
const BYTES_A_MESSAGE: usize = 1 << 16;

/// Tasks for one rank that are held back, at most.
const MOST_HELD: usize = 256;

/// A rank asks all that are at most so far ahead of it: in small jobs, all others.
const NEAR: u32 = 32;

/// The tasks of one rank, those that it has to send, and the ranks that wait for some.
pub(super) struct Worker<T> {
    rank: u32,
    ranks: u32,
    /// Tasks that only this rank runs.
    pinned: VecDeque<T>,
    /// Tasks that any rank may run, the newest at the back.
    free: VecDeque<T>,
    /// By rank: tasks that only that rank runs.
    held: Vec<Vec<T>>,
    /// The ranks for which tasks are held, in the order of the first of them; also some whose tasks
    /// have been sent since.
    held_for: VecDeque<u32>,
    /// Tasks that fit a message, by the bytes of the last one.
    most: usize,
    /// The ranks that have asked for tasks, in the order of their questions.
    askers: VecDeque<u32>,
    /// The ranks that this one has asked, and that have not answered.
    asked: BTreeSet<u32>,
    /// The last rank that was asked although it is no partner.
    other: u32,
    /// Whether tasks have come since that rank was chosen.
    has_got: bool,
    /// Whether this rank has failed: it runs no tasks any more.
    has_failed: bool,
    /// Messages with tasks that this rank has sent, and those whose tasks it has taken.
    sent: u64,
    taken: u64,
    /// The sums over all ranks, a round ago.
    last: Option<Report>,
}

/// What a rank adds to a round: messages with tasks that it has sent, and taken, and whether it has
/// failed.
pub(super) type Report = [u64; 3];

/// What a round has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Some rank may have tasks.
    Tasks,
    /// No rank has any.
    End,
    /// A rank has failed.
    Failure,
}

/// Tasks for another rank: one message.
pub(super) struct Parcel<T> {
    pub(super) to: u32,
    /// Whether only that rank may run them.
    pub(super) is_pinned: bool,
    pub(super) tasks: Vec<T>,
}

impl<T> Worker<T> {
    pub(super) fn new(rank: u32, ranks: u32) -> Self {
        Self {
            rank,
            ranks,
            pinned: VecDeque::new(),
            free: VecDeque::new(),
            held: Vec::new(),
            held_for: VecDeque::new(),
            most: 1,
            askers: VecDeque::new(),
            asked: BTreeSet::new(),
            other: rank,
            has_got: true,
            has_failed: false,
            sent: 0,
            taken: 0,
            last: None,
        }
    }

    /// Adds a task that any rank may run.
    pub(super) fn push(&mut self, task: T) {
        if !self.has_failed {
            self.free.push_back(task);
        }
    }

    /// Adds a task that only `to` runs; whether enough are held for it to send them.
    pub(super) fn push_to(&mut self, to: u32, task: T) -> bool {
        if self.has_failed {
            return false;
        }
        if to == self.rank {
            self.pinned.push_back(task);
            return false;
        }
        if self.held.len() <= to as usize {
            self.held.resize_with(to as usize + 1, Vec::new);
        }
        let held = &mut self.held[to as usize];
        if held.is_empty() {
            self.held_for.push_back(to);
        }
        held.push(task);
        held.len() >= MOST_HELD.min(self.most)
    }

    /// The next task to run: the oldest one that only this rank runs, or else the newest one.
    pub(super) fn next(&mut self) -> Option<T> {
        self.pinned.pop_front().or_else(|| self.free.pop_back())
    }

    /// Takes the tasks of a message.
    pub(super) fn take(&mut self, from: u32, is_pinned: bool, tasks: Vec<T>) {
        self.taken += 1;
        self.has_got = true;
        match is_pinned {
            true => self.pinned.extend(tasks),
            false => {
                self.asked.remove(&from);
                // Older than those of this rank.
                tasks
                    .into_iter()
                    .rev()
                    .for_each(|task| self.free.push_front(task));
            }
        }
        if self.has_failed {
            self.drop_tasks();
        }
    }

    /// This rank runs no tasks any more; those that it has, or gets, are dropped.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
        self.drop_tasks();
    }

    fn drop_tasks(&mut self) {
        self.pinned.clear();
        self.free.clear();
        self.held.clear();
        self.held_for.clear();
    }

    /// Keeps the question of a rank without tasks until there are some for it.
    pub(super) fn be_asked(&mut self, by: u32) {
        if !self.askers.contains(&by) {
            self.askers.push_back(by);
        }
    }

    /// Notes how many bytes the tasks of a message are.
    ///
    /// The next one has twice as many tasks at most, as they may be longer.
    pub(super) fn note_size(&mut self, tasks: usize, bytes: usize) {
        let fit = (BYTES_A_MESSAGE * tasks).checked_div(bytes);
        let most = MOST_A_MESSAGE.min(2 * self.most);
        self.most = fit.unwrap_or(most).clamp(1, most);
    }

    /// The oldest tasks, from which most others come, for a rank that has asked.
    ///
    /// The shares of all that have asked, and that of this rank, are equal. Between tasks this rank
    /// keeps one for itself.
    pub(super) fn gift(&mut self, is_between: bool) -> Option<Parcel<T>> {
        if self.free.len() <= usize::from(is_between) {
            return None;
        }
        let to = self.askers.pop_front()?;
        let shares = self.askers.len() + 2;
        let share = (self.free.len() / shares).clamp(1, self.most);
        let tasks = self.free.drain(..share).collect();
        Some(self.parcel(to, false, tasks))
    }

    /// The tasks that are held for `to`.
    pub(super) fn held_for(&mut self, to: u32) -> Option<Parcel<T>> {
        let held = self.held.get_mut(to as usize)?;
        let tasks = core::mem::take(held);
        if tasks.is_empty() {
            return None;
        }
        Some(self.parcel(to, true, tasks))
    }

    /// The tasks that are held for a rank, if there are any.
    pub(super) fn any_held(&mut self) -> Option<Parcel<T>> {
        while let Some(to) = self.held_for.pop_front() {
            let parcel = self.held_for(to);
            if parcel.is_some() {
                return parcel;
            }
        }
        None
    }

    fn parcel(&mut self, to: u32, is_pinned: bool, tasks: Vec<T>) -> Parcel<T> {
        self.sent += 1;
        Parcel {
            to,
            is_pinned,
            tasks,
        }
    }

    /// The next rank to ask for tasks, until all have been asked that this rank may ask now.
    ///
    /// Its partners are near, or at distances of powers of two, so tasks of any rank reach all
    /// others over few ranks. Another rank is asked each time that tasks have come and run out.
    pub(super) fn ask(&mut self) -> Option<u32> {
        let far = (NEAR.ilog2() + 1..u32::BITS).map(|bit| 1u32 << bit);
        let mut partners = (1..=NEAR)
            .chain(far)
            .take_while(|distance| *distance < self.ranks)
            .map(|distance| self.at(self.rank, distance));
        let partner = partners.find(|rank| !self.asked.contains(rank));
        let rank = match partner {
            Some(partner) => partner,
            None => self.other()?,
        };
        self.asked.insert(rank);
        Some(rank)
    }

    fn other(&mut self) -> Option<u32> {
        if !core::mem::take(&mut self.has_got) {
            return None;
        }
        self.other = self.at(self.other, 1);
        let is_new = self.other != self.rank && !self.asked.contains(&self.other);
        is_new.then_some(self.other)
    }

    fn at(&self, rank: u32, distance: u32) -> u32 {
        ((u64::from(rank) + u64::from(distance)) % u64::from(self.ranks)) as u32
    }

    /// Only a rank without any task takes part.
    pub(super) fn report(&self) -> Report {
        let is_idle = self.pinned.is_empty() && self.free.is_empty() && self.held_for.is_empty();
        assert!(is_idle, "a rank with tasks left takes part in a round");
        [self.sent, self.taken, self.has_failed.into()]
    }

    /// What the sums of a round say, the same on all ranks.
    ///
    /// No rank has tasks if two rounds in a row have the same sums, and all that was sent had been
    /// taken: between a rank's two reports it has sent and taken nothing, and nothing was under way
    /// (the four counters of Mattern, "Algorithms for distributed termination detection", 1987).
    /// More messages taken than sent in two such rounds are not ours.
    pub(super) fn found(&mut self, sums: Report) -> Found {
        let before = self.last.replace(sums);
        let [sent, taken, failed] = sums;
        match before == Some(sums) {
            _ if failed > 0 => Found::Failure,
            true if sent == taken => Found::End,
            true if sent < taken => Found::Failure,
            _ => Found::Tasks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A task: how many levels of tasks it adds, and by which rank alone it may be run.
    #[derive(Clone, Copy, Debug)]
    struct Node {
        levels: u32,
        only: Option<u32>,
    }

    enum Message {
        Tasks(u32, Parcel<Node>),
        Question { by: u32, to: u32 },
    }

    /// Ranks, the messages under way, and the round of each rank.
    struct Job {
        workers: Vec<Worker<Node>>,
        under_way: Vec<Message>,
        /// Of each rank in each round.
        reports: Vec<Vec<Report>>,
        /// Rounds whose sums each rank has taken.
        rounds: Vec<usize>,
        /// By rank.
        ended: Vec<bool>,
        added: u64,
        ran: u64,
        chance: u64,
    }

    impl Job {
        fn new(ranks: u32, chance: u64) -> Self {
            Self {
                workers: (0..ranks).map(|rank| Worker::new(rank, ranks)).collect(),
                under_way: Vec::new(),
                reports: vec![Vec::new(); ranks as usize],
                rounds: vec![0; ranks as usize],
                ended: vec![false; ranks as usize],
                added: 0,
                ran: 0,
                chance: chance | 1,
            }
        }

        fn below(&mut self, end: usize) -> usize {
            self.chance ^= self.chance << 13;
            self.chance ^= self.chance >> 7;
            self.chance ^= self.chance << 17;
            (self.chance >> 11) as usize % end
        }

        fn add(&mut self, at: usize, node: Node) {
            self.added += 1;
            match node.only {
                None => self.workers[at].push(node),
                Some(to) => {
                    if self.workers[at].push_to(to, node) {
                        let parcel = self.workers[at].held_for(to).unwrap();
                        assert!(parcel.tasks.len() <= MOST_HELD);
                        self.under_way.push(Message::Tasks(at as u32, parcel));
                    }
                }
            }
        }

        fn run_one(&mut self, at: usize) -> bool {
            let Some(node) = self.workers[at].next() else {
                return false;
            };
            assert!(node.only.is_none_or(|only| only as usize == at));
            self.ran += 1;
            if node.levels > 0 {
                for _ in 0..self.below(4) {
                    let only = match self.below(3) {
                        0 => Some(self.below(self.workers.len()) as u32),
                        _ => None,
                    };
                    let levels = node.levels - 1;
                    self.add(at, Node { levels, only });
                }
            }
            true
        }

        fn send(&mut self, at: usize) {
            let is_between = self.below(2) == 0;
            while let Some(parcel) = self.workers[at].gift(is_between) {
                assert!(!parcel.tasks.is_empty() && parcel.to as usize != at);
                let most = self.below(20);
                self.workers[at].note_size(1, BYTES_A_MESSAGE / (most + 1));
                self.under_way.push(Message::Tasks(at as u32, parcel));
            }
        }

        /// A rank without tasks sends what it holds, asks, and waits in a round, or takes its sums.
        fn idle(&mut self, at: usize) {
            while let Some(parcel) = self.workers[at].any_held() {
                self.under_way.push(Message::Tasks(at as u32, parcel));
            }
            while let Some(to) = self.workers[at].ask() {
                assert_ne!(to as usize, at);
                self.under_way.push(Message::Question { by: at as u32, to });
            }
            let round = self.rounds[at];
            if self.reports[at].len() == round {
                let report = self.workers[at].report();
                self.reports[at].push(report);
            }
            let reports: Option<Vec<&Report>> = self.reports.iter().map(|r| r.get(round)).collect();
            if let Some(reports) = reports {
                self.rounds[at] += 1;
                let sums = reports.iter().fold([0; 3], |sums, report| {
                    [
                        sums[0] + report[0],
                        sums[1] + report[1],
                        sums[2] + report[2],
                    ]
                });
                match self.workers[at].found(sums) {
                    Found::Tasks => {}
                    Found::End => self.end(at),
                    Found::Failure => panic!("a failure was found: {sums:?}"),
                }
            }
        }

        fn end(&mut self, at: usize) {
            let tasks = |message: &Message| matches!(message, Message::Tasks(..));
            assert!(!self.under_way.iter().any(tasks), "tasks are under way");
            assert_eq!(self.ran, self.added, "tasks are left");
            self.ended[at] = true;
        }

        fn deliver(&mut self) {
            let which = self.below(self.under_way.len());
            match self.under_way.swap_remove(which) {
                Message::Question { by, to } => self.workers[to as usize].be_asked(by),
                Message::Tasks(
                    from,
                    Parcel {
                        to,
                        is_pinned,
                        tasks,
                    },
                ) => {
                    self.workers[to as usize].take(from, is_pinned, tasks);
                }
            }
        }

        /// Steps in an order by chance, until all ranks have found the end.
        fn run(&mut self, most_steps: u64) {
            for _ in 0..most_steps {
                let at = self.below(self.workers.len());
                match self.below(3) {
                    0 if !self.under_way.is_empty() => self.deliver(),
                    1 => self.send(at),
                    _ if self.ended[at] => {}
                    _ => {
                        if !self.run_one(at) {
                            self.idle(at);
                        }
                    }
                }
                if self.ended.iter().all(|ended| *ended) {
                    let rounds = self.rounds[0];
                    assert!(self.rounds.iter().all(|r| *r == rounds), "ranks disagree");
                    return;
                }
            }
            panic!("no end after {most_steps} steps");
        }
    }

    proptest! {
        #[test]
        fn all_tasks_run_once_before_the_end_is_found(
            ranks in 1u32..9,
            first in prop::collection::vec((0u32..9, 0u32..6), 0..40),
            chance: u64,
        ) {
            let mut job = Job::new(ranks, chance);
            for (at, levels) in first {
                job.add((at % ranks) as usize, Node { levels, only: None });
            }
            job.run(1_000_000);
        }
    }

    #[test]
    fn shares_are_equal_and_the_oldest_tasks() {
        let mut worker = Worker::new(0, 4);
        (0..4).for_each(|_| worker.note_size(1, 1));
        (0..12).for_each(|task| worker.push(task));
        (1..4).for_each(|by| worker.be_asked(by));
        let mut shares = Vec::new();
        while let Some(parcel) = worker.gift(true) {
            shares.push((parcel.to, parcel.tasks));
        }
        let expected = [(1, vec![0, 1, 2]), (2, vec![3, 4, 5]), (3, vec![6, 7, 8])];
        assert_eq!(shares, expected);
        assert_eq!(worker.next(), Some(11));
    }

    #[test]
    fn one_task_is_kept() {
        let mut worker = Worker::new(0, 2);
        worker.push(7);
        worker.be_asked(1);
        assert!(worker.gift(true).is_none());
        // Unless it runs another one.
        assert!(worker.gift(false).is_some());
        worker.be_asked(1);
        worker.push(7);
        worker.push(8);
        assert_eq!(worker.gift(true).map(|parcel| parcel.tasks), Some(vec![7]));
        // The question is answered.
        worker.push(9);
        assert!(worker.gift(true).is_none());
    }

    fn asked<T>(worker: &mut Worker<T>) -> Vec<u32> {
        core::iter::from_fn(|| worker.ask()).collect()
    }

    #[test]
    fn each_rank_is_asked_once_until_it_answers() {
        let mut worker = Worker::<u32>::new(90, 100);
        // Partners; the other one would be the first of them.
        let partners: Vec<u32> = (91..100).chain(0..=22).chain([54]).collect();
        assert_eq!(asked(&mut worker), partners);
        assert_eq!(asked(&mut worker), []);
        worker.take(7, false, vec![1]);
        worker.next();
        // Again one that has answered; the other one would be the second partner.
        assert_eq!(asked(&mut worker), [7]);
        // Tasks that were sent here for this rank are no answer, but it may ask another one.
        worker.other = 50;
        worker.take(91, true, vec![1]);
        worker.next();
        assert_eq!(asked(&mut worker), [51]);
        assert_eq!(asked(&mut worker), []);
    }

    #[test]
    fn any_rank_is_asked_in_the_end() {
        for ranks in [1, 2, 3, 34, 120] {
            let mut worker = Worker::new(1 % ranks, ranks);
            let mut all_asked = BTreeSet::new();
            for _ in 0..ranks {
                worker.take(0, true, vec![()]);
                worker.next();
                all_asked.extend(asked(&mut worker));
            }
            let all: BTreeSet<u32> = (0..ranks).filter(|rank| *rank != 1 % ranks).collect();
            assert_eq!(all_asked, all);
        }
    }

    #[test]
    fn one_round_is_no_end() {
        let mut worker = Worker::<u32>::new(0, 2);
        let sums = [[0, 0, 0], [2, 1, 0], [2, 1, 0], [2, 2, 0], [2, 2, 0]];
        let found = sums.map(|sums| worker.found(sums));
        assert_eq!(
            found,
            [
                Found::Tasks,
                Found::Tasks,
                Found::Tasks,
                Found::Tasks,
                Found::End
            ]
        );
        // In one round a message may be counted where it was taken alone, but not in two.
        let found = [[2, 3, 0], [2, 3, 0]].map(|sums| worker.found(sums));
        assert_eq!(found, [Found::Tasks, Found::Failure]);
        assert_eq!(worker.found([4, 4, 1]), Found::Failure);
    }

    #[test]
    fn a_rank_that_has_failed_drops_its_tasks() {
        let mut worker = Worker::new(0, 2);
        worker.push(1);
        worker.push_to(0, 2);
        worker.push_to(1, 3);
        worker.fail();
        assert_eq!((worker.next(), worker.any_held().is_none()), (None, true));
        worker.take(1, false, vec![4]);
        worker.take(1, true, vec![5]);
        worker.push(6);
        assert!(!worker.push_to(0, 7) && !worker.push_to(1, 8));
        assert_eq!((worker.next(), worker.any_held().is_none()), (None, true));
        assert_eq!(worker.report(), [0, 2, 1]);
    }

    #[test]
    fn tasks_of_a_message_follow_their_size() {
        let mut worker = Worker::new(0, 2);
        // The first one shows how long they are.
        assert!(worker.push_to(1, 7));
        assert_eq!(worker.held_for(1).map(|parcel| parcel.tasks.len()), Some(1));
        let sizes = [(1, 3), (2, 6), (4, 12), (1, 1 << 14), (1, 1 << 20), (1, 0)];
        let most = sizes.map(|(tasks, bytes)| {
            worker.note_size(tasks, bytes);
            worker.most
        });
        assert_eq!(most, [2, 4, 8, 4, 1, 2]);
        (0..20).for_each(|_| worker.note_size(1, 0));
        (0..9000).for_each(|task| worker.push(task));
        worker.be_asked(1);
        assert_eq!(
            worker.gift(true).map(|parcel| parcel.tasks.len()),
            Some(MOST_A_MESSAGE)
        );
    }

    #[test]
    fn tasks_that_come_go_behind_those_of_this_rank() {
        let mut worker = Worker::new(0, 2);
        worker.push(10);
        worker.take(1, false, vec![1, 2]);
        let order: Vec<u32> = core::iter::from_fn(|| worker.next()).collect();
        assert_eq!(order, [10, 2, 1]);
    }

    #[test]
    fn a_second_question_is_no_second_share() {
        let mut worker = Worker::new(0, 2);
        (0..4).for_each(|task| worker.push(task));
        worker.be_asked(1);
        worker.be_asked(1);
        assert!(worker.gift(true).is_some() && worker.gift(true).is_none());
    }
}
