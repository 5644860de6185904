//! The state of one connection of a pair.

use super::super::handshake::{Refused, Verdict};
use super::error::Failure;
use super::peer::{Action, Attempt, Decision, Pair};
use super::{DialConfig, Peer};

/// A rank that looks so much later than there is something to do was away, ns.
const ABSENT_NS: u64 = 250_000_000;

/// Attempts at one address, by its index.
#[derive(Clone, Copy, Default)]
pub(super) struct Tries {
    pub(super) count: u32,
    pub(super) last: Option<Failure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was not asked for.
    Closed,
    /// The next attempt is due then.
    Due {
        at_ns: u64,
    },
    /// An attempt waits for the peer's kernel.
    Connecting {
        deadline_ns: u64,
    },
    /// An attempt waits for the peer's answers.
    Proving {
        since_ns: u64,
        deadline_ns: u64,
    },
    Up,
    /// Given up.
    Failed,
}

/// See the module's introduction.
pub(super) struct Connection {
    number: u16,
    state: State,
    /// The highest incarnation that is known to have been tried or used.
    highest: u64,
    /// The last one that was used; 0 before the first.
    used: u64,
    /// Number of the last attempt.
    attempt: u32,
    /// An attempt that is not wanted any more.
    abandoned: Option<u32>,
    /// For each address.
    tries: Vec<Tries>,
    /// The address of the attempt, or of the next one.
    address: usize,
    /// Addresses tried since the last pause.
    in_round: usize,
    /// Pauses since it was last up.
    rounds: u32,
    /// The peer takes no connection of this number.
    declined: bool,
    /// Since when it has failed, not counting the time without a look.
    failing_ns: Option<u64>,
    /// The time of the last look.
    looked_ns: u64,
    /// Where the chance comes from.
    random: u64,
}

impl Connection {
    pub(super) fn new(pair: &Pair, number: u16) -> Self {
        let count = usize::from(pair.addresses);
        Self {
            number,
            state: State::Closed,
            highest: 0,
            used: 0,
            attempt: 0,
            abandoned: None,
            tries: vec![Tries::default(); count],
            // Further connections begin at further addresses, so that they use other interfaces.
            address: usize::from(number) % count.max(1),
            in_round: 0,
            rounds: 0,
            declined: false,
            failing_ns: None,
            looked_ns: 0,
            random: pair.seed ^ u64::from(number) << 48,
        }
    }

    pub(super) fn ask(&mut self, now_ns: u64) {
        if self.state == State::Closed {
            self.state = State::Due { at_ns: now_ns };
        }
    }

    /// The peer has another address of this index, which may be one more.
    pub(super) fn replace(&mut self, address: usize) {
        if self.tries.len() <= address {
            self.tries.resize(address + 1, Tries::default());
        }
        self.tries[address] = Tries::default();
    }

    /// The next attempt is at that address; one that is under way goes on.
    pub(super) fn try_next(&mut self, address: usize) {
        let under_way = matches!(self.state, State::Proving { .. } | State::Connecting { .. });
        if !under_way && address < self.tries.len() {
            self.address = address;
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// The incarnation that is up.
    pub(super) fn incarnation(&self) -> Option<u64> {
        self.is_up().then_some(self.used)
    }

    pub(super) fn tries(&self) -> &[Tries] {
        &self.tries
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        if self.abandoned.is_some() {
            return Some(0);
        }
        match self.state {
            State::Due { at_ns } => Some(at_ns),
            State::Connecting { deadline_ns } | State::Proving { deadline_ns, .. } => {
                Some(deadline_ns)
            }
            State::Closed | State::Up | State::Failed => None,
        }
    }

    /// Notes that the rank looks.
    ///
    /// Time for which it did not, although there was something to do, is no time in which the peer
    /// was out of reach: a program that computes for a minute learns of events in the first seconds
    /// of it.
    fn look(&mut self, now_ns: u64) {
        let due_ns = match self.state {
            State::Due { at_ns } => at_ns,
            State::Connecting { deadline_ns } | State::Proving { deadline_ns, .. } => deadline_ns,
            State::Closed | State::Up | State::Failed => return,
        };
        if let Some(since_ns) = &mut self.failing_ns {
            let absent_ns = now_ns.saturating_sub(due_ns.max(self.looked_ns));
            if absent_ns >= ABSENT_NS {
                *since_ns = (*since_ns + absent_ns).min(now_ns);
            }
        }
        self.looked_ns = now_ns;
    }

    pub(super) fn poll_action(&mut self, config: &DialConfig, now_ns: u64) -> Option<Action> {
        self.look(now_ns);
        if let Some(number) = self.abandoned.take() {
            return Some(Action::Abandon(self.name(number)));
        }
        match self.state {
            State::Due { at_ns } if at_ns <= now_ns => Some(self.begin(config, now_ns)),
            State::Connecting { deadline_ns } if deadline_ns <= now_ns => {
                self.note(config, now_ns, Failure::TimedOut);
                Some(Action::Abandon(self.name(self.attempt)))
            }
            State::Proving { deadline_ns, .. } if deadline_ns <= now_ns => {
                self.note(config, now_ns, Failure::Silent);
                Some(Action::Abandon(self.name(self.attempt)))
            }
            _ => None,
        }
    }

    /// Begins the attempt that is due, or gives up.
    fn begin(&mut self, config: &DialConfig, now_ns: u64) -> Action {
        let since_ns = *self.failing_ns.get_or_insert(now_ns);
        let for_ns = now_ns.saturating_sub(since_ns);
        let may = |tries: &Tries| tries.count < config.tries_per_address.max(1);
        let count = self.tries.len();
        let next = (0..count)
            .map(|step| (self.address + step) % count)
            .find(|i| may(&self.tries[*i]));
        let Some(next) = next.filter(|_| for_ns < config.unreachable_ns && !self.declined) else {
            self.state = State::Failed;
            return Action::GiveUp {
                connection: self.number,
                for_ns,
            };
        };
        self.address = next;
        self.tries[next].count += 1;
        self.attempt = self.attempt.wrapping_add(1);
        // Every attempt has its own: one whose fate is unknown here may be up at the peer.
        self.highest = self.highest.saturating_add(1);
        self.state = State::Connecting {
            deadline_ns: (now_ns + config.connect_ns).min(since_ns + config.unreachable_ns),
        };
        Action::Connect {
            attempt: self.name(self.attempt),
            address: next,
            incarnation: self.highest,
        }
    }

    /// The peer's kernel has taken the attempt.
    pub(super) fn reached(&mut self, config: &DialConfig, now_ns: u64, attempt: u32) {
        if self.attempt == attempt && matches!(self.state, State::Connecting { .. }) {
            self.look(now_ns);
            self.state = State::Proving {
                since_ns: now_ns,
                deadline_ns: now_ns + config.answer_ns,
            };
        }
    }

    /// The peer has taken the attempt.
    ///
    /// False if it is not wanted any more.
    pub(super) fn joined(&mut self, attempt: u32, incarnation: u64) -> bool {
        let under_way = matches!(self.state, State::Proving { .. } | State::Connecting { .. });
        if self.attempt != attempt || !under_way {
            return false;
        }
        self.up(incarnation);
        true
    }

    fn up(&mut self, incarnation: u64) {
        self.state = State::Up;
        self.highest = self.highest.max(incarnation);
        self.used = incarnation;
        self.forget_failures();
    }

    /// The next attempts have all tries and time.
    fn forget_failures(&mut self) {
        self.tries.fill(Tries::default());
        (self.in_round, self.rounds) = (0, 0);
        (self.failing_ns, self.declined) = (None, false);
    }

    pub(super) fn failed(&mut self, config: &DialConfig, now_ns: u64, attempt: u32, why: Failure) {
        let under_way = matches!(self.state, State::Proving { .. } | State::Connecting { .. });
        if self.attempt == attempt && under_way {
            self.look(now_ns);
            self.note(config, now_ns, why);
        }
    }

    /// The attempt under way has failed.
    fn note(&mut self, config: &DialConfig, now_ns: u64, why: Failure) {
        let tries = &mut self.tries[self.address];
        if let Failure::Refused(Refused::ByPeer {
            verdict,
            incarnation,
        }) = why
        {
            // The peer is there: this is no failure to reach it.
            tries.count = tries.count.saturating_sub(1);
            self.highest = self.highest.max(incarnation);
            self.failing_ns = None;
            self.state = match verdict {
                Verdict::Limit => {
                    tries.last = Some(why);
                    self.declined = true;
                    State::Due { at_ns: now_ns }
                }
                Verdict::Crossing => State::Due {
                    at_ns: now_ns + self.jittered(config.courtesy_ns),
                },
                Verdict::Stale | Verdict::Accepted => State::Due {
                    at_ns: now_ns + self.jittered(config.first_pause_ns),
                },
            };
            return;
        }
        tries.last = Some(why);
        if why == Failure::Silent {
            tries.count = tries.count.saturating_sub(1);
            self.failing_ns = None;
        }
        let count = self.tries.len();
        self.address = (self.address + 1) % count;
        self.in_round += 1;
        let mut at_ns = now_ns;
        if self.in_round >= count {
            self.in_round = 0;
            let pause_ns = config.first_pause_ns << self.rounds.min(30);
            at_ns += self.jittered(pause_ns.min(config.longest_pause_ns));
            self.rounds += 1;
        }
        // The end comes when it is due, not after the pause.
        if let Some(since_ns) = self.failing_ns {
            at_ns = at_ns.min((since_ns + config.unreachable_ns).max(now_ns));
        }
        self.state = State::Due { at_ns };
    }

    /// The peer has connected and proved who it is.
    pub(super) fn incoming(
        &mut self,
        config: &DialConfig,
        now_ns: u64,
        pair: &Pair,
        incarnation: u64,
    ) -> Decision {
        if incarnation <= self.used {
            return Decision::Refuse {
                verdict: Verdict::Stale,
                incarnation: self.highest,
            };
        }
        if let State::Proving { since_ns, .. } = self.state
            && pair.me > pair.peer
            && now_ns < since_ns + config.courtesy_ns
        {
            return Decision::Refuse {
                verdict: Verdict::Crossing,
                incarnation: self.highest,
            };
        }
        self.drop_attempt();
        let replaces = self.incarnation();
        // Above all that either has tried, so that every one of those that still arrives is stale.
        self.up(self.highest.max(incarnation));
        Decision::Accept {
            incarnation: self.used,
            replaces,
        }
    }

    /// Whether this incarnation was the one in use.
    pub(super) fn lost(
        &mut self,
        config: &DialConfig,
        now_ns: u64,
        pair: &Pair,
        incarnation: u64,
    ) -> bool {
        if self.incarnation() != Some(incarnation) {
            return false;
        }
        self.failing_ns = Some(now_ns);
        // Both ends have lost it, as a rule; only one need connect.
        let wait_ns = if pair.me > pair.peer {
            0
        } else {
            self.jittered(config.courtesy_ns / 8)
        };
        self.state = State::Due {
            at_ns: now_ns + wait_ns,
        };
        true
    }

    pub(super) fn close(&mut self) {
        self.drop_attempt();
        self.forget_failures();
        self.state = State::Closed;
    }

    fn drop_attempt(&mut self) {
        if matches!(self.state, State::Connecting { .. } | State::Proving { .. }) {
            self.abandoned = Some(self.attempt);
        }
    }

    /// From half of it to all of it.
    fn jittered(&mut self, ns: u64) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let half = ns / 2;
        half + ((u128::from(z) * u128::from(ns - half + 1)) >> 64) as u64
    }

    fn name(&self, number: u32) -> Attempt {
        Attempt {
            connection: self.number,
            number,
        }
    }
}

// A peer that was never used: one word of the 64 bytes that all layers have together.
static_assertions::const_assert_eq!(size_of::<Peer>(), 8);
