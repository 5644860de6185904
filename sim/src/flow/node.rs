//! One rank: its program, arrived messages, and the machine.

use super::figures::Sample;
use super::pattern::{Pattern, Script, Step};
use super::peers::Peers;
use super::wheel::{Event, Wheel};
use super::world::Setup;
use argonet_am::credit::{Attempt, Bank};
use argonet_am::recycling::{Chain, Place};
use argonet_am::system_queue::{Answer, Frame, Heard, Question, SystemQueue};
use core::time::Duration;
use std::collections::VecDeque;

/// Time of a message under way.
const WIRE_NS: u64 = 5_000;
/// Time that a rank takes for sending a request, handling one and replying, handling a reply, a
/// system message.
const SEND_NS: u64 = 1_000;
const HANDLE_NS: u64 = 1_000;
const REPLY_NS: u64 = 200;
const SYSTEM_NS: u64 = 200;
/// Requests handled in one poll at most.
const POLL: usize = 8;

enum State {
    /// Does nothing else until a wake-up.
    Busy,
    /// Polls, and nothing is there.
    Idle,
}

struct Arrived {
    from: u32,
    bits: u64,
    place: Option<Place>,
}

pub(super) struct Node {
    rank: u32,
    pattern: Pattern,
    script: Script,
    step: Option<Step>,
    state: State,
    pub(super) bank: Bank,
    pub(super) peers: Peers,
    system: SystemQueue,
    chain: Chain,
    requests: VecDeque<Arrived>,
    replies: VecDeque<(u32, u64)>,
    systems: VecDeque<(u32, u64)>,
    attempt: Attempt,
    stalled_at: u64,
    outstanding: u64,
    received: u64,
    /// Credits of requests that have arrived and were not handled.
    used: u64,
    pub(super) fullest: u64,
    pub(super) overflows: u64,
    pub(super) sums: Sample,
    pub(super) violation: Option<String>,
}

impl Node {
    pub(super) fn new(rank: u32, setup: &Setup) -> Self {
        let bank = Bank::new(rank, setup.plan, setup.rules);
        Self {
            rank,
            pattern: setup.pattern,
            script: Script::new(rank, setup.ranks(), setup.seed),
            step: None,
            state: State::Busy,
            chain: Chain::new(bank.plan().space()),
            peers: Peers::new(setup.ranks()),
            bank,
            // This network loses nothing.
            system: SystemQueue::new(Duration::ZERO),
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            systems: VecDeque::new(),
            attempt: Attempt::default(),
            stalled_at: 0,
            outstanding: 0,
            received: 0,
            used: 0,
            fullest: 0,
            overflows: 0,
            sums: Sample::default(),
            violation: None,
        }
    }

    /// Something has arrived, in any state of the rank.
    pub(super) fn arrive(&mut self, event: Event, wheel: &mut Wheel) {
        match event {
            Event::Request { from, bits, .. } => {
                let rules = self.bank.rules();
                let count = rules.form.unpack(bits).map_or(0, |tag| tag.count);
                let bytes = u32::from(count) * rules.costs.granularity;
                let place = self.chain.place(bytes).ok().map(|(place, _)| place);
                self.overflows += u64::from(place.is_none());
                self.used += u64::from(count);
                self.fullest = self.fullest.max(self.used);
                self.requests.push_back(Arrived { from, bits, place });
            }
            Event::Reply { from, bits, .. } => self.replies.push_back((from, bits)),
            Event::System { from, word, .. } => self.systems.push_back((from, word)),
            Event::Wake { .. } => {}
        }
        if matches!(self.state, State::Idle) {
            self.state = State::Busy;
            wheel.plan(wheel.now(), Event::Wake { rank: self.rank });
        }
    }

    /// The rank goes on: polls, and runs its program until that takes time.
    pub(super) fn wake(&mut self, wheel: &mut Wheel) {
        let begun = wheel.now();
        let mut time = begun;
        let pattern = self.pattern;
        let step = *self.step.get_or_insert_with(|| self.script.next(pattern));
        // As in the text, a rank polls when it waits for something, and not otherwise.
        let waits = !matches!(step, Step::Compute(_) | Step::Send { .. });
        if (waits || self.attempt.has_stalled())
            && let Err(error) = self.poll(&mut time, wheel)
        {
            self.violation
                .get_or_insert(format!("rank {}: {error}", self.rank));
        }
        let done = match step {
            Step::Compute(ns) => {
                time += ns;
                true
            }
            Step::Send { to, cost } => self.send(to, cost, &mut time, wheel),
            Step::Poll => true,
            Step::Replies => self.outstanding == 0,
            Step::Received(count) => self.received >= count,
        };
        if done {
            self.step = None;
        }
        let more = done || time > begun || self.has_arrivals();
        if more {
            wheel.plan(time, Event::Wake { rank: self.rank });
        } else {
            self.state = State::Idle;
        }
    }

    fn has_arrivals(&self) -> bool {
        !(self.requests.is_empty() && self.replies.is_empty() && self.systems.is_empty())
    }

    fn send(&mut self, to: u32, cost: u16, time: &mut u64, wheel: &mut Wheel) -> bool {
        let peer = &mut self.peers.of(to, &self.bank).credits;
        let had_stalled = self.attempt.has_stalled();
        let Some(tag) = peer.request(cost, &mut self.attempt, &self.bank) else {
            if !had_stalled {
                self.sums.stalls += 1;
                self.stalled_at = *time;
            }
            return false;
        };
        if had_stalled {
            self.sums.stalled_ns += *time - self.stalled_at;
        }
        self.attempt = Attempt::default();
        self.sums.requests += 1;
        self.outstanding += 1;
        *time += SEND_NS;
        let (from, bits) = (self.rank, self.bank.rules().form.pack(tag));
        wheel.plan(*time + WIRE_NS, Event::Request { from, to, bits });
        true
    }

    fn poll(&mut self, time: &mut u64, wheel: &mut Wheel) -> Result<(), String> {
        // spec P12: the system queue is emptied first.
        while let Some((from, word)) = self.systems.pop_front() {
            *time += SYSTEM_NS;
            self.system_message(from, Frame(word), *time, wheel)?;
        }
        while let Some((from, bits)) = self.replies.pop_front() {
            *time += REPLY_NS;
            let tag = self
                .bank
                .rules()
                .form
                .unpack(bits)
                .map_err(|e| e.to_string())?;
            let peer = &mut self.peers.of(from, &self.bank).credits;
            peer.replied(tag, &self.bank).map_err(|e| e.to_string())?;
            self.outstanding -= 1;
        }
        for _ in 0..POLL {
            let Some(request) = self.requests.pop_front() else {
                break;
            };
            *time += HANDLE_NS;
            self.handle(request, *time, wheel)?;
        }
        Ok(())
    }

    fn handle(&mut self, request: Arrived, time: u64, wheel: &mut Wheel) -> Result<(), String> {
        let form = self.bank.rules().form;
        let tag = form.unpack(request.bits).map_err(|e| e.to_string())?;
        let peer = &mut self.peers.of(request.from, &self.bank).credits;
        let debt = peer
            .arrived(tag, &self.bank)
            .map_err(|back| format!("rank {} was pushed back: {back:?}", request.from))?;
        let reply = peer.reply(debt, request.from, &self.bank);
        if let Some(place) = request.place {
            self.chain.handled(place);
        }
        self.used -= u64::from(tag.count);
        self.received += 1;
        let (from, to, bits) = (self.rank, request.from, form.pack(reply));
        wheel.plan(time + WIRE_NS, Event::Reply { from, to, bits });
        self.scavenge(time, wheel);
        Ok(())
    }

    fn scavenge(&mut self, time: u64, wheel: &mut Wheel) {
        let (bank, peers) = (&self.bank, &mut self.peers);
        let mut asked = Vec::new();
        bank.scavenge(
            |rank, look| {
                let both = peers.of(rank, bank);
                if !both.system.is_busy() {
                    look(&mut both.credits);
                }
            },
            |rank, revoke| asked.push((rank, revoke)),
        );
        for (to, revoke) in asked {
            let slot = &mut self.peers.of(to, &self.bank).system;
            let now = Duration::from_nanos(time);
            if let Some(frame) = self.system.ask(now, to, slot, Question::Revoke(revoke)) {
                self.send_system(to, frame, time, wheel);
            }
        }
    }

    fn send_system(&mut self, to: u32, frame: Frame, time: u64, wheel: &mut Wheel) {
        self.sums.system += 1;
        let (from, word) = (self.rank, frame.0);
        wheel.plan(time + WIRE_NS, Event::System { from, to, word });
    }

    fn system_message(
        &mut self,
        from: u32,
        frame: Frame,
        time: u64,
        wheel: &mut Wheel,
    ) -> Result<(), String> {
        let both = self.peers.of(from, &self.bank);
        let now = Duration::from_nanos(time);
        let heard = self.system.handle_recv(now, from, &mut both.system, frame);
        match heard.map_err(|e| e.to_string())? {
            Heard::Question(Question::Revoke(revoke)) => {
                let back = both.credits.revoke(revoke, &self.bank);
                let answer = SystemQueue::answer(&mut both.system, Answer::Return(back));
                self.send_system(from, answer, time, wheel);
            }
            Heard::Answered(Answer::Return(back)) => {
                both.credits
                    .returned(back, &self.bank)
                    .map_err(|e| e.to_string())?;
            }
            other => return Err(format!("{other:?} from rank {from}")),
        }
        Ok(())
    }

    /// Credits lent and given back so far.
    pub(super) fn moved(&self) -> u64 {
        let moved = self.bank.moved();
        moved.lent + moved.returned
    }

    /// Whether all credits are somewhere.
    pub(super) fn check(&mut self) {
        let lent: u64 = self
            .peers
            .used()
            .map(|both| u64::from(both.credits.figures().loan))
            .sum();
        let sum = lent + self.bank.untouched() + u64::from(self.bank.banked());
        let total = self.bank.plan().space().credits();
        if sum != total {
            self.violation.get_or_insert(format!(
                "rank {}: {sum} credits, its space holds {total}",
                self.rank
            ));
        }
    }
}
