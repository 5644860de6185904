//! How two ranks come to have a connection: a hello, an answer, and both report the bytes that they
//! have taken.

use super::faults::FaultPlan;
use super::streams::{End, Later, Streams};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::channel::rail::RailId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Until the first attempt is made again, as a multiple of the shortest delay; then twice as long
/// each time.
const FIRST_RETRY_DELAYS: u64 = 10;

/// Between two attempts, at most.
const LONGEST_RETRY_NS: u64 = 20_000_000;

/// A rank asks for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    from: u32,
    number: u16,
    attempt: u64,
    incarnation: u64,
    received: u64,
}

impl Hello {
    /// The rail, as the rank that is asked names it.
    pub(crate) fn id(&self) -> RailId {
        RailId {
            peer: JobRank(self.from),
            number: self.number,
        }
    }
}

/// A message between two ranks before they have a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Hello(Hello),
    /// The connection was made; with the attempt that it answers and the end of the rank that
    /// asked.
    Answer(Hello, End),
}

/// A rank's end of a connection that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Joined {
    pub(crate) id: RailId,
    pub(crate) end: End,
    pub(crate) incarnation: u64,
    pub(crate) received: u64,
}

/// A task of a rank for its connections.
#[derive(Debug)]
pub(crate) enum Task {
    /// Ask for one.
    Ask(RailId),
    /// Answer a rank that asks.
    Answer(Hello),
    /// Use one.
    Use(Joined),
    /// Nothing answers.
    GiveUp(RailId, AmError),
}

#[derive(Debug)]
struct Attempt {
    serial: u64,
    begun_ns: u64,
    /// Until it is made again.
    patience_ns: u64,
    is_due: bool,
}

#[derive(Debug, Default)]
struct Rank {
    /// By the word of the rail.
    attempts: BTreeMap<u64, Attempt>,
    incarnations: BTreeMap<u64, u64>,
    calls: VecDeque<Call>,
    given_up: VecDeque<(RailId, AmError)>,
    /// Connections that were there from the beginning.
    given: VecDeque<Joined>,
    known: BTreeSet<u32>,
    has_ended: bool,
}

/// State of ranks that make connections.
#[derive(Debug)]
pub(crate) struct Joining {
    ranks: Vec<Rank>,
    next_attempt: u64,
    dead_after_ns: u64,
}

impl Joining {
    pub(super) fn new(ranks: u32, dead_after_ns: u64) -> Self {
        Self {
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            next_attempt: 1,
            dead_after_ns,
        }
    }

    /// Attempts that nothing answers are given up after this time.
    pub(super) fn dead_after_ns(&self) -> u64 {
        self.dead_after_ns
    }

    pub(super) fn knows(&self, rank: u32, peer: u32) -> bool {
        self.ranks[rank as usize].known.contains(&peer)
    }

    pub(super) fn has_task(&self, rank: u32) -> bool {
        let rank = &self.ranks[rank as usize];
        !rank.calls.is_empty()
            || !rank.given.is_empty()
            || !rank.given_up.is_empty()
            || rank.attempts.values().any(|attempt| attempt.is_due)
    }

    pub(super) fn end(&mut self, rank: u32) {
        self.ranks[rank as usize] = Rank {
            has_ended: true,
            ..Rank::default()
        };
    }

    /// A call has come; whether the rank is to look at it.
    ///
    /// Of several hellos for one rail the last is the one that its rank waits for.
    pub(super) fn hear(&mut self, rank: u32, call: Call) -> bool {
        let rank = &mut self.ranks[rank as usize];
        if rank.has_ended {
            return false;
        }
        if let Call::Hello(new) = call {
            let of_same = |old: &Call| match old {
                Call::Hello(old) if old.id() == new.id() => Some(old.attempt),
                _ => None,
            };
            if rank
                .calls
                .iter()
                .filter_map(of_same)
                .any(|old| old > new.attempt)
            {
                return true;
            }
            rank.calls.retain(|old| of_same(old).is_none());
        }
        rank.calls.push_back(call);
        true
    }

    /// An attempt has had its time; whether the rank is to go on with it.
    pub(super) fn retry(&mut self, now_ns: u64, rank: u32, id: RailId, serial: u64) -> bool {
        let state = &mut self.ranks[rank as usize];
        let Some(attempt) = state.attempts.get_mut(&id.to_word()) else {
            return false;
        };
        if attempt.serial != serial {
            return false;
        }
        let silent_ns = now_ns - attempt.begun_ns;
        if silent_ns < self.dead_after_ns {
            attempt.is_due = true;
        } else {
            state.attempts.remove(&id.to_word());
            let error = AmError::PeerDead {
                at: JobRank(rank),
                peer: id.peer,
                silent_ms: silent_ns / 1_000_000,
            };
            state.given_up.push_back((id, error));
        }
        true
    }
}

impl Streams {
    /// Each rank has a connection with each other from the beginning.
    pub(crate) fn join_all(&mut self, now_ns: u64) {
        let ranks = self.joining.ranks.len() as u32;
        for pair in (0..ranks).flat_map(|a| (0..a).map(move |b| [b, a])) {
            let ends = self.connect(now_ns, pair, 0);
            for (end, [rank, peer]) in ends.into_iter().zip([pair, [pair[1], pair[0]]]) {
                let id = RailId {
                    peer: JobRank(peer),
                    number: 0,
                };
                let state = &mut self.joining.ranks[rank as usize];
                state.known.insert(peer);
                state.incarnations.insert(id.to_word(), 1);
                state.given.push_back(Joined {
                    id,
                    end,
                    incarnation: 1,
                    received: 0,
                });
            }
        }
    }

    /// A rank wants a rail.
    pub(crate) fn want(&mut self, now_ns: u64, rank: u32, id: RailId) {
        let state = &mut self.joining.ranks[rank as usize];
        state.known.insert(id.peer.0);
        state.attempts.entry(id.to_word()).or_insert(Attempt {
            serial: 0,
            begun_ns: now_ns,
            patience_ns: 0,
            is_due: true,
        });
        self.woken.push(rank);
    }

    /// The next task of a rank for its connections.
    pub(crate) fn next_task(&mut self, plan: &FaultPlan, now_ns: u64, rank: u32) -> Option<Task> {
        loop {
            let state = &mut self.joining.ranks[rank as usize];
            if let Some(joined) = state.given.pop_front() {
                return Some(Task::Use(joined));
            }
            if let Some((id, error)) = state.given_up.pop_front() {
                return Some(Task::GiveUp(id, error));
            }
            let Some(call) = state.calls.pop_front() else {
                break;
            };
            match call {
                Call::Hello(hello) => {
                    state.known.insert(hello.from);
                    // Where both ask, the one with the lower number is answered.
                    let own = state.attempts.contains_key(&hello.id().to_word());
                    if !own || hello.from < rank {
                        return Some(Task::Answer(hello));
                    }
                }
                Call::Answer(answer, end) => {
                    let word = answer.id().to_word();
                    let attempt = state.attempts.get(&word);
                    if attempt.is_some_and(|attempt| attempt.serial == answer.attempt) {
                        state.attempts.remove(&word);
                        state.incarnations.insert(word, answer.incarnation);
                        return Some(Task::Use(Joined {
                            id: answer.id(),
                            end,
                            incarnation: answer.incarnation,
                            received: answer.received,
                        }));
                    }
                    self.shut(plan, now_ns, end);
                }
            }
        }
        let attempts = self.joining.ranks[rank as usize].attempts.iter();
        let due = attempts.filter(|(_, attempt)| attempt.is_due);
        due.map(|(word, _)| Task::Ask(RailId::from_word(*word)))
            .next()
    }

    /// Asks for a connection; `received` is the part of the peer's stream that the rank has taken.
    pub(crate) fn ask(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        rank: u32,
        id: RailId,
        received: u64,
    ) {
        let first_ns = FIRST_RETRY_DELAYS * plan.quality(now_ns).delay_ns;
        let serial = self.joining.next_attempt;
        self.joining.next_attempt += 1;
        let state = &mut self.joining.ranks[rank as usize];
        let incarnation = state.incarnations.get(&id.to_word());
        let incarnation = incarnation.copied().unwrap_or(0) + 1;
        let Some(attempt) = state.attempts.get_mut(&id.to_word()) else {
            return;
        };
        attempt.is_due = false;
        attempt.serial = serial;
        attempt.patience_ns =
            (2 * attempt.patience_ns).clamp(first_ns, LONGEST_RETRY_NS.max(first_ns));
        let over_ns = now_ns + attempt.patience_ns;
        self.later.push((over_ns, Later::Retry(rank, id, serial)));
        let hello = Hello {
            from: rank,
            number: id.number,
            attempt: serial,
            incarnation,
            received,
        };
        self.call(plan, now_ns, [rank, id.peer.0], Call::Hello(hello));
    }

    /// Answers a rank that asks; `received` is the part of its stream that this one has taken.
    pub(crate) fn answer(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        rank: u32,
        hello: &Hello,
        received: u64,
    ) -> Joined {
        let id = hello.id();
        let [own, end] = self.connect(now_ns, [rank, hello.from], hello.number);
        let state = &mut self.joining.ranks[rank as usize];
        state.attempts.remove(&id.to_word());
        let last = state.incarnations.entry(id.to_word()).or_insert(0);
        *last = hello.incarnation.max(*last + 1);
        let incarnation = *last;
        let answer = Hello {
            from: rank,
            incarnation,
            received,
            ..*hello
        };
        let ranks = [rank, hello.from];
        if !self.call(plan, now_ns, ranks, Call::Answer(answer, end)) {
            // This end finds out when it has waited for a word in vain.
            let at_ns = now_ns + FIRST_RETRY_DELAYS * plan.quality(now_ns).delay_ns;
            self.later.push((at_ns, Later::Close(own)));
        }
        Joined {
            id,
            end: own,
            incarnation,
            received: hello.received,
        }
    }

    /// Sends a call, unless a cut or a death swallows it; whether it will come.
    fn call(&mut self, plan: &FaultPlan, now_ns: u64, ranks: [u32; 2], call: Call) -> bool {
        let [from, to] = ranks;
        if plan.is_cut(from, to, now_ns) || plan.is_dead(to, now_ns) {
            return false;
        }
        let at_ns = self.arrival(plan, now_ns, ranks, 64);
        self.later.push((at_ns, Later::Call(to, call)));
        true
    }
}
