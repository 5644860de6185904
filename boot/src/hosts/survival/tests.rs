//! A tree of hosts whose ranks agree, acknowledge and die, and that are lost themselves.
//!
//! Messages of different connections are delivered in any order.

use std::collections::VecDeque;

use argonet_base::JobRank;

use super::*;
use crate::hosts::tree::parts;
use crate::numbers::Numbers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    Finalized,
    Dead,
}

#[derive(Debug, Clone, Copy)]
struct Rank {
    life: Life,
    /// The last round that it has entered.
    entered: u32,
    acknowledged: u32,
}

/// What a host has heard from above.
#[derive(Debug, Default)]
struct Heard {
    lost: Vec<JobRank>,
    /// The last round and its result.
    agreed: (u32, u32),
    all_acknowledged: u32,
    all_accept: bool,
}

struct Host {
    first: u32,
    ranks: Vec<Rank>,
    /// The host above; `None` below the root.
    parent: Option<usize>,
    /// The source that it is above, and its children, in the order of its sources.
    source: usize,
    children: Vec<usize>,
    tallies: Tallies,
    heard: Heard,
    up: VecDeque<Message>,
    down: VecDeque<Message>,
    /// Whether it is lost: its ranks live, and nothing goes between it and the others.
    is_lost: bool,
}

/// A loss on its way up.
fn ended(rank: JobRank) -> Message {
    // The root takes nothing but the rank from it.
    Message::Exit(crate::page::ExitWord {
        kind: crate::page::ExitKind::Died,
        rank,
        code: 1,
    })
}

struct Net {
    register: Register,
    tops: Vec<usize>,
    hosts: Vec<Host>,
    rounds: u32,
    /// The result of each round that a host has heard.
    results: Vec<Option<u32>>,
    /// Losses that a host had declared when a rank entered a round, at least.
    declared: Vec<u32>,
    /// Ranks that are lost, as the root knows.
    over: Vec<JobRank>,
    /// The losses in their order, as the first host to hear of each has heard it.
    order: Vec<JobRank>,
}

impl Net {
    fn new(ranks: &[u32], degree: u32, rounds: u32) -> Self {
        let mut net = Self {
            register: Register::new(0),
            tops: Vec::new(),
            hosts: Vec::new(),
            rounds,
            results: vec![None; rounds as usize + 1],
            declared: vec![0; rounds as usize + 1],
            over: Vec::new(),
            order: Vec::new(),
        };
        let mut first = 0;
        for &count in ranks {
            let rank = Rank {
                life: Life::Running,
                entered: 0,
                acknowledged: 0,
            };
            net.hosts.push(Host {
                first,
                ranks: vec![rank; count as usize],
                parent: None,
                source: 0,
                children: Vec::new(),
                tallies: Tallies::new(0),
                heard: Heard::default(),
                up: VecDeque::new(),
                down: VecDeque::new(),
                is_lost: false,
            });
            first += count;
        }
        net.tops = net.hang(None, 0..ranks.len(), degree);
        net.register = Register::new(net.tops.len());
        for at in 0..net.hosts.len() {
            net.report(at);
        }
        net
    }

    /// Hangs these hosts below `parent`; those next to it.
    fn hang(
        &mut self,
        parent: Option<usize>,
        below: std::ops::Range<usize>,
        degree: u32,
    ) -> Vec<usize> {
        let mut heads = Vec::new();
        for (source, part) in parts(below.len(), degree).into_iter().enumerate() {
            let head = below.start + part.start;
            let rest = head + 1..below.start + part.end;
            let children = self.hang(Some(head), rest, degree);
            let host = &mut self.hosts[head];
            host.parent = parent;
            host.source = source;
            host.tallies = Tallies::new(children.len() + 1);
            host.children = children;
            heads.push(head);
        }
        heads
    }

    /// The host's own tally, as its agent finds it.
    fn report(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let left = (host.first..).map(JobRank).zip(&host.ranks);
        let left = left.filter(|(_, rank)| rank.life == Life::Running);
        let tally = left.fold(Tally::OF_NO_RANKS, |tally, (number, rank)| {
            tally.with(Tally {
                accepts: true,
                entered: rank.entered,
                acknowledged: rank.acknowledged,
                furthest: (rank.acknowledged, number),
            })
        });
        let own = host.children.len();
        let all = host.tallies.take(own, tally).unwrap();
        if !host.is_lost {
            host.up.extend(all.map(Message::Tally));
        }
    }

    /// A rank does the next thing, or dies.
    fn live(&mut self, at: usize, i: usize, numbers: &mut Numbers, may_die: bool) {
        let known = self.hosts[at].heard.lost.len() as u32;
        let (round, _) = self.hosts[at].heard.agreed;
        let number = JobRank(self.hosts[at].first + i as u32);
        let rank = &mut self.hosts[at].ranks[i];
        if rank.life != Life::Running {
            return;
        }
        match numbers.below(12) {
            0 if may_die => {
                rank.life = Life::Dead;
                if !self.hosts[at].is_lost {
                    self.hosts[at].up.push_back(ended(number));
                }
            }
            1..=4 => rank.acknowledged = known,
            _ if rank.entered == round && round == self.rounds => rank.life = Life::Finalized,
            _ if rank.entered == round => {
                rank.entered += 1;
                let round = rank.entered as usize;
                let most = self.hosts.iter().map(|host| host.heard.lost.len());
                let most = most.max().unwrap_or(0) as u32;
                // One of a lost host is no survivor.
                if !self.hosts[at].is_lost {
                    self.declared[round] = self.declared[round].max(most);
                }
            }
            _ => {}
        }
        self.report(at);
    }

    /// A host and those below it.
    fn subtree(&self, at: usize) -> Vec<usize> {
        let below = self.hosts[at].children.iter();
        let below = below.flat_map(|child| self.subtree(*child));
        std::iter::once(at).chain(below).collect()
    }

    /// A host does not answer any more, with those below it.
    fn lose(&mut self, at: usize) {
        if self.hosts[at].is_lost {
            return;
        }
        let (source, parent) = (self.hosts[at].source, self.hosts[at].parent);
        // What it had sent has come before: its parent reads that first.
        while !self.hosts[at].up.is_empty() {
            self.rise(at);
        }
        let mut ranks = Vec::new();
        for below in self.subtree(at) {
            let host = &mut self.hosts[below];
            host.is_lost = true;
            host.up.clear();
            host.down.clear();
            let count = host.ranks.len() as u32;
            ranks.extend((host.first..host.first + count).map(JobRank));
        }
        let ends: Vec<Message> = ranks.into_iter().map(ended).collect();
        if let Some(parent) = parent {
            let parent = &mut self.hosts[parent];
            parent.up.extend(ends);
            let all = parent.tallies.take(source, Tally::OF_NO_RANKS).unwrap();
            parent.up.extend(all.map(Message::Tally));
        } else {
            ends.into_iter()
                .for_each(|end| self.reach_root(source, end));
            self.reach_root(source, Message::Tally(Tally::OF_NO_RANKS));
        }
    }

    /// A message arrives one step further up.
    fn rise(&mut self, at: usize) {
        let Some(message) = self.hosts[at].up.pop_front() else {
            return;
        };
        let (source, parent) = (self.hosts[at].source, self.hosts[at].parent);
        if let Some(parent) = parent {
            let parent = &mut self.hosts[parent];
            match message {
                Message::Tally(tally) => {
                    let all = parent.tallies.take(source, tally).unwrap();
                    parent.up.extend(all.map(Message::Tally));
                }
                message => parent.up.push_back(message),
            }
            return;
        }
        self.reach_root(source, message);
    }

    fn reach_root(&mut self, source: usize, message: Message) {
        let messages = match message {
            // The root knows of each rank how it has ended.
            Message::Exit(word) if self.over.contains(&word.rank) => Vec::new(),
            Message::Tally(tally) => self.register.tally(source, tally).unwrap(),
            Message::Exit(word) => {
                self.over.push(word.rank);
                let order = self.register.lose();
                vec![Message::Lost(word.rank, order)]
            }
            other => panic!("{other:?}"),
        };
        for top in self.tops.clone() {
            if !self.hosts[top].is_lost {
                self.hosts[top].down.extend(messages.iter().cloned());
            }
        }
    }

    /// A message arrives at a host from above.
    fn sink(&mut self, at: usize) {
        let Some(message) = self.hosts[at].down.pop_front() else {
            return;
        };
        for child in self.hosts[at].children.clone() {
            if !self.hosts[child].is_lost {
                self.hosts[child].down.push_back(message.clone());
            }
        }
        let heard = &mut self.hosts[at].heard;
        match message {
            Message::Lost(rank, order) => {
                heard.lost.push(rank);
                assert_eq!(heard.lost.len() as u32, order);
                match self.order.get(order as usize - 1) {
                    Some(first) => assert_eq!(*first, rank),
                    None => self.order.push(rank),
                }
            }
            Message::Agreed { round, losses } => {
                assert_eq!(heard.agreed.0 + 1, round);
                assert!(losses as usize <= heard.lost.len());
                heard.agreed = (round, losses);
                let round = round as usize;
                assert_eq!(*self.results[round].get_or_insert(losses), losses);
                assert!(losses >= self.declared[round], "round {round}");
            }
            Message::Tally(tally) => {
                assert!(tally.acknowledged >= heard.all_acknowledged);
                heard.all_acknowledged = tally.acknowledged;
                heard.all_accept = tally.accepts;
                let hosts = self.hosts.iter().filter(|host| !host.is_lost);
                let ranks = hosts.flat_map(|host| &host.ranks);
                let mut left = ranks.filter(|rank| rank.life == Life::Running);
                assert!(left.all(|rank| rank.acknowledged >= tally.acknowledged));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn run(seed: u64) {
    let mut numbers = Numbers::new(seed);
    let hosts = 1 + numbers.below(7);
    let ranks: Vec<u32> = (0..hosts).map(|_| 1 + numbers.below(3) as u32).collect();
    let degree = numbers.below(4) as u32;
    let rounds = 6;
    let mut net = Net::new(&ranks, degree, rounds);
    let left = |net: &Net| {
        let hosts = net.hosts.iter().filter(|host| !host.is_lost);
        let ranks = hosts.flat_map(|host| &host.ranks);
        ranks.filter(|rank| rank.life != Life::Dead).count()
    };
    for step in 0.. {
        assert!(step < 200_000, "seed {seed}: it does not end");
        let at = numbers.below(hosts);
        match numbers.below(300) {
            0 => {
                let before = left(&net);
                let mut dying = 0;
                for below in net.subtree(at) {
                    let host = &net.hosts[below];
                    let lives = host.ranks.iter().filter(|rank| rank.life != Life::Dead);
                    dying += if host.is_lost { 0 } else { lives.count() };
                }
                if before > dying {
                    net.lose(at);
                }
            }
            1..100 => net.rise(at),
            100..200 => net.sink(at),
            _ => {
                let i = numbers.below(ranks[at] as usize);
                let may_die = left(&net) > 1;
                net.live(at, i, &mut numbers, may_die);
            }
        }
        let hosts = net.hosts.iter().filter(|host| !host.is_lost);
        let mut all = hosts.flat_map(|host| &host.ranks);
        if all.all(|rank| rank.life != Life::Running) {
            break;
        }
    }
    // Some rank has come to its end, so each round has a result.
    assert!(net.results[1..].iter().all(Option::is_some), "seed {seed}");
}

#[test]
fn all_hosts_hear_the_same_losses_and_results_wherever_ranks_die() {
    for seed in 1..=10_000 {
        run(seed);
    }
}

const LEFT: Tally = Tally {
    accepts: true,
    ..Tally::UNKNOWN
};

#[test]
fn a_tally_that_takes_something_back_is_refused() {
    let mut tallies = Tallies::new(2);
    let further = Tally {
        entered: 1,
        acknowledged: 2,
        ..LEFT
    };
    assert_eq!(
        tallies.take(0, further).unwrap(),
        None,
        "the other is not there"
    );
    assert_eq!(tallies.take(1, LEFT).unwrap(), Some(LEFT));
    for back in [
        Tally {
            entered: 0,
            ..further
        },
        Tally {
            acknowledged: 1,
            ..further
        },
        Tally {
            accepts: false,
            ..further
        },
    ] {
        assert!(tallies.take(0, back).is_err());
    }
    // A rank that had acknowledged most may have ended.
    let ahead = Tally {
        furthest: (7, JobRank(3)),
        ..further
    };
    assert!(
        tallies
            .take(0, ahead)
            .unwrap()
            .is_some_and(|all| all.furthest == (7, JobRank(3)))
    );
    assert!(
        tallies
            .take(0, further)
            .unwrap()
            .is_some_and(|all| all == LEFT)
    );
    assert_eq!(tallies.take(1, Tally::OF_NO_RANKS).unwrap(), Some(further));
}

#[test]
fn a_round_that_cannot_come_is_refused() {
    let mut register = Register::new(1);
    let round = |entered| Tally { entered, ..LEFT };
    assert!(register.tally(0, round(2)).is_err());
    let mut register = Register::new(1);
    assert_eq!(register.lose(), 1);
    let messages = register.tally(0, round(1)).unwrap();
    let agreed = Message::Agreed {
        round: 1,
        losses: 1,
    };
    assert_eq!(messages, [Message::Tally(round(1)), agreed]);
    let none = register.tally(0, Tally::OF_NO_RANKS).unwrap();
    assert_eq!(none, [Message::Tally(Tally::OF_NO_RANKS)]);
}
