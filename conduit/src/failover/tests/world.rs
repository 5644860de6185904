//! Two machines that are joined by links of members with faults, in virtual time, and the little
//! that drives each: what `rails` does with their steps, and a channel that adopts carriers, loses
//! them and asks for others.

use super::super::succession::{Act, PATIENCE_NS, Succession};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1000 * MS;

/// Silence of members that last after which a peer is given up.
const LIMIT: u64 = 3600 * S;

/// A rail that does not last, and that one end has closed, is found to have ended.
const KEEPALIVE: u64 = 30 * S;

/// How the network between both ranks is for a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Good,
    /// Nothing passes, and no rail can be made, as is found at once.
    Refuses,
    /// Nothing passes.
    Silent,
}

/// A generation, as a channel has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Carried {
    pub(super) generation: u64,
    pub(super) member: usize,
    link: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Want {
        end: usize,
    },
    /// The timer of the machine.
    Tick {
        end: usize,
        at_ns: u64,
    },
    /// A member makes a rail that was asked for.
    Makes {
        end: usize,
        member: usize,
    },
    Made {
        end: usize,
        link: usize,
    },
    Refused {
        end: usize,
        member: usize,
    },
    /// An offer, or the end, is next at an end.
    Arrives {
        end: usize,
        link: usize,
    },
    /// The channel takes what was made.
    Adopts {
        end: usize,
    },
    /// The channel reads its carrier, and finds that it has ended.
    Reads {
        end: usize,
        generation: u64,
    },
    /// The channel finds that nothing comes.
    Silence {
        end: usize,
        generation: u64,
    },
    Turns {
        member: usize,
    },
    /// The host at an end finds that the other one has no such rail any more, or is not there.
    Fails {
        link: usize,
    },
    Breaks {
        member: usize,
    },
    Stops {
        end: usize,
    },
    GoesOn {
        end: usize,
    },
    FaultsEnd,
}

impl Event {
    /// The rank that does something then.
    fn end(self) -> Option<usize> {
        match self {
            Self::Want { end }
            | Self::Tick { end, .. }
            | Self::Made { end, .. }
            | Self::Arrives { end, .. }
            | Self::Adopts { end }
            | Self::Reads { end, .. }
            | Self::Silence { end, .. } => Some(end),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Sent {
    Offer(u64),
    Probe,
    End,
}

#[derive(Default, Debug)]
struct Link {
    member: usize,
    lasts: bool,
    /// When each end learns of it.
    made_ns: [u64; 2],
    /// To each end: what is under way, and since when.
    sent: [VecDeque<(u64, Sent)>; 2],
    /// The last of it is there then.
    last_ns: [u64; 2],
    /// Each end has given it up.
    closed: [bool; 2],
    /// Each end reads and writes the stream alone.
    raw: [bool; 2],
    broken: bool,
}

struct End {
    machine: Succession,
    links: Vec<Option<usize>>,
    /// Its last one, for the order in which they are made.
    carrier: Option<Carried>,
    ended: BTreeSet<u64>,
    asked: BTreeSet<usize>,
    /// Members that make a rail.
    making: BTreeSet<usize>,
    made: VecDeque<Carried>,
    wire: Option<Carried>,
    adopted: u64,
    tick_ns: Option<u64>,
    stopped_ns: u64,
    /// What has happened to it meanwhile.
    put_off: VecDeque<Event>,
    /// Members that could not be made since the stream was carried last.
    unreachable: BTreeSet<usize>,
    generation: u64,
}

/// What is to hold, if it holds for all of the time.
pub(super) struct World {
    pub(super) now_ns: u64,
    ends: [End; 2],
    links: Vec<Link>,
    lasts: Vec<bool>,
    ways: Vec<Way>,
    pub(super) finally: Vec<Way>,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Xoshiro256PlusPlus,
    /// The member of each generation.
    generations: BTreeMap<u64, usize>,
    /// The position that each end has said with a generation, none of which it says twice.
    positions: [BTreeMap<u64, u64>; 2],
    last_position: u64,
    faults: bool,
    pub(super) acts: u64,
    pub(super) give_ups: u64,
    /// Offers whose answer was not there when they were given up, and such of which both were made
    /// at once.
    pub(super) crossings: u64,
}

impl World {
    pub(super) fn new(seed: u64, lasts: Vec<bool>, faults: bool) -> Self {
        let members = lasts.len();
        let end = |is_lower| End {
            machine: Succession::new(
                is_lower,
                lasts.iter().copied(),
                LIMIT,
                seed.wrapping_mul(2) + u64::from(is_lower),
            ),
            links: vec![None; members],
            carrier: None,
            ended: BTreeSet::new(),
            asked: BTreeSet::new(),
            making: BTreeSet::new(),
            made: VecDeque::new(),
            wire: None,
            adopted: 0,
            tick_ns: None,
            stopped_ns: 0,
            put_off: VecDeque::new(),
            unreachable: BTreeSet::new(),
            generation: 0,
        };
        Self {
            now_ns: 0,
            ends: [end(true), end(false)],
            links: Vec::new(),
            ways: vec![Way::Good; members],
            finally: vec![Way::Good; members],
            lasts,
            heap: BinaryHeap::new(),
            order: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            generations: BTreeMap::new(),
            positions: [const { BTreeMap::new() }; 2],
            last_position: 0,
            faults,
            acts: 0,
            give_ups: 0,
            crossings: 0,
        }
    }

    /// A number below `below`.
    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random(count) == 0
    }

    fn push(&mut self, at_ns: u64, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((at_ns, self.order, event)));
    }

    /// Mostly short, sometimes long.
    fn delay(&mut self) -> u64 {
        let most = match self.random(8) {
            0 if self.faults => 2 * S,
            1..3 if self.faults => 100 * MS,
            _ => 2 * MS,
        };
        1000 + self.random(most)
    }

    fn later(&mut self, event: Event) {
        let at_ns = self.now_ns + self.delay();
        self.push(at_ns, event);
    }

    /// A rank's stream needs a carrier, about then.
    pub(super) fn want(&mut self, end: usize, within_ns: u64) {
        let at_ns = self.now_ns + self.random(within_ns);
        self.push(at_ns, Event::Want { end });
    }

    /// Faults until then, from now on; behind them each way is as `finally` says.
    pub(super) fn faults_until(&mut self, until_ns: u64, turns: u64, breaks: u64, stops: u64) {
        for fault in 0..turns + breaks {
            let member = self.random(self.lasts.len() as u64) as usize;
            let at_ns = self.random(until_ns);
            let event = match fault < turns {
                true => Event::Turns { member },
                false => Event::Breaks { member },
            };
            self.push(at_ns, event);
        }
        for _ in 0..stops {
            let (end, at_ns) = (self.random(2) as usize, self.random(until_ns));
            self.push(at_ns, Event::Stops { end });
        }
        self.push(until_ns, Event::FaultsEnd);
    }

    /// A member's way is like this from now on.
    pub(super) fn turn(&mut self, member: usize, way: Way) {
        self.ways[member] = way;
        for link in 0..self.links.len() {
            if self.links[link].member == member {
                match way {
                    Way::Good => self.send_on(link),
                    _ if !self.lasts[member] && self.one_in(2) => self.break_link(link),
                    _ => {}
                }
            }
        }
        for end in 0..2 {
            self.watch(end);
        }
    }

    /// The channel may find that nothing comes.
    fn watch(&mut self, end: usize) {
        if let Some(wire) = self.ends[end].wire
            && self.ways[wire.member] != Way::Good
        {
            let at_ns = self.now_ns + 200 * MS + self.random(2 * S);
            let generation = wire.generation;
            self.push(at_ns, Event::Silence { end, generation });
        }
    }

    /// What is under way arrives once the way is good.
    fn send_on(&mut self, link: usize) {
        for end in 0..2 {
            for _ in 0..self.links[link].sent[end].len() {
                self.arrives(link, end);
            }
        }
    }

    fn arrives(&mut self, link: usize, end: usize) {
        let delay = self.delay();
        let its = &mut self.links[link];
        let at_ns = (self.now_ns + delay)
            .max(its.last_ns[end])
            .max(its.made_ns[end]);
        its.last_ns[end] = at_ns;
        self.push(at_ns, Event::Arrives { end, link });
    }

    fn send(&mut self, link: usize, to: usize, sent: Sent) {
        let now_ns = self.now_ns;
        self.links[link].sent[to].push_back((now_ns, sent));
        if self.ways[self.links[link].member] == Way::Good {
            self.arrives(link, to);
        }
    }

    /// Both ends find the end of a rail that does not last, behind what was sent or not.
    fn break_link(&mut self, link: usize) {
        if core::mem::replace(&mut self.links[link].broken, true) {
            return;
        }
        for to in 0..2 {
            if self.one_in(2) {
                self.links[link].sent[to].clear();
            }
            let now_ns = self.now_ns;
            self.links[link].sent[to].push_back((now_ns, Sent::End));
            self.arrives(link, to);
        }
    }

    /// An end gives a rail up.
    fn close(&mut self, end: usize, link: usize) {
        self.links[link].closed[end] = true;
        if !self.links[link].lasts {
            self.send(link, 1 - end, Sent::End);
            self.push(self.now_ns + KEEPALIVE, Event::Fails { link });
        }
    }

    fn answers(
        ways: &[Way],
        links: &[Link],
        end: usize,
        link: Option<usize>,
        owed_ns: u64,
    ) -> bool {
        link.is_some_and(|link| {
            let link = &links[link];
            let owes = |(at_ns, _): &(u64, Sent)| *at_ns < owed_ns;
            let silent = link.sent[1 - end].front().is_some_and(owes);
            ways[link.member] == Way::Good || !silent
        })
    }

    /// Goes on until then.
    pub(super) fn run_until(&mut self, until_ns: u64) {
        while let Some(Reverse((at_ns, ..))) = self.heap.peek()
            && *at_ns <= until_ns
        {
            self.step();
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    fn step(&mut self) {
        let Some(Reverse((at_ns, _, event))) = self.heap.pop() else {
            return;
        };
        self.now_ns = at_ns.max(self.now_ns);
        match event.end() {
            Some(end) if self.ends[end].stopped_ns > self.now_ns => {
                self.ends[end].put_off.push_back(event);
            }
            _ => self.happens(event),
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Want { end } => {
                if self.ends[end].wire.is_none() {
                    self.ends[end].machine.want(self.now_ns);
                    self.drive(end);
                }
            }
            Event::Tick { end, at_ns } => {
                if self.ends[end].tick_ns == Some(at_ns) {
                    self.drive(end);
                }
            }
            Event::Makes { end, member } => self.makes(end, member),
            Event::Made { end, link } => self.made(end, link),
            Event::Refused { end, member } => {
                if self.ends[end].links[member].is_none() {
                    self.ends[end].unreachable.insert(member);
                    self.ends[end].machine.unreachable(member, self.now_ns);
                    self.drive(end);
                }
            }
            Event::Arrives { end, link } => self.arrived(end, link),
            Event::Adopts { end } => self.adopts(end),
            Event::Reads { end, generation } => {
                if self.ends[end]
                    .wire
                    .is_some_and(|wire| wire.generation == generation)
                {
                    self.loses(end);
                }
            }
            Event::Silence { end, generation } => {
                if let Some(wire) = self.ends[end].wire
                    && wire.generation == generation
                    && self.ways[wire.member] != Way::Good
                {
                    self.loses(end);
                }
            }
            Event::Turns { member } => {
                let ways = [Way::Good, Way::Refuses, Way::Silent];
                let way = ways[self.random(3) as usize];
                self.turn(member, way);
            }
            Event::Fails { link } => self.break_link(link),
            Event::Breaks { member } => {
                for link in 0..self.links.len() {
                    if self.links[link].member == member && !self.lasts[member] {
                        self.break_link(link);
                    }
                }
            }
            Event::Stops { end } => {
                let until_ns = self.now_ns + self.random(3 * S);
                let stopped_ns = until_ns.max(self.ends[end].stopped_ns);
                self.ends[end].stopped_ns = stopped_ns;
                self.push(stopped_ns, Event::GoesOn { end });
            }
            Event::GoesOn { end } => {
                while self.ends[end].stopped_ns <= self.now_ns
                    && let Some(event) = self.ends[end].put_off.pop_front()
                {
                    self.happens(event);
                }
            }
            Event::FaultsEnd => {
                self.faults = false;
                for member in 0..self.lasts.len() {
                    self.turn(member, self.finally[member]);
                }
            }
        }
    }

    /// A member makes a rail, or finds that it cannot.
    fn makes(&mut self, end: usize, member: usize) {
        self.ends[end].making.remove(&member);
        match self.ways[member] {
            Way::Good => {
                let has = |link: &Link| link.member == member && !link.closed[end] && !link.broken;
                if self.links.iter().any(has) {
                    return;
                }
                let link = self.links.len();
                let made_ns = [0, 1].map(|_| self.now_ns + self.delay());
                self.links.push(Link {
                    member,
                    lasts: self.lasts[member],
                    made_ns,
                    last_ns: made_ns,
                    ..Link::default()
                });
                for (end, made_ns) in made_ns.into_iter().enumerate() {
                    self.push(made_ns, Event::Made { end, link });
                }
            }
            Way::Refuses => self.later(Event::Refused { end, member }),
            // As if it had been asked for again.
            Way::Silent => {
                self.ends[end].making.insert(member);
                let at_ns = self.now_ns + 500 * MS;
                match self.one_in(4) {
                    true => self.push(at_ns, Event::Refused { end, member }),
                    false => self.push(at_ns, Event::Makes { end, member }),
                }
                if self
                    .heap
                    .iter()
                    .any(|Reverse((.., event))| *event == (Event::Refused { end, member }))
                {
                    self.ends[end].making.remove(&member);
                }
            }
        }
    }

    fn made(&mut self, end: usize, link: usize) {
        let member = self.links[link].member;
        if self.ends[end].links[member].is_some_and(|has| has >= link) {
            return self.close(end, link);
        }
        self.end_link(end, member);
        self.ends[end].links[member] = Some(link);
        self.ends[end].unreachable.remove(&member);
        self.ends[end].machine.made(member, self.now_ns);
        self.drive(end);
    }

    fn arrived(&mut self, end: usize, link: usize) {
        let Some((_, sent)) = self.links[link].sent[end].front().copied() else {
            return;
        };
        let member = self.links[link].member;
        if self.ways[member] != Way::Good && !self.links[link].broken {
            // It is sent on.
            return;
        }
        if self.ends[end].links[member] != Some(link) || self.links[link].closed[end] {
            self.links[link].sent[end].pop_front();
            return;
        }
        let carries = |carried: Option<Carried>| carried.is_some_and(|its| its.link == link);
        match sent {
            Sent::Offer(generation) => {
                self.links[link].sent[end].pop_front();
                assert!(
                    !self.links[link].raw[end],
                    "an offer of {generation} is read as bytes of the stream"
                );
                self.ends[end].asked.remove(&member);
                let position = self.positions[1 - end][&generation];
                let (its, now_ns) = (&mut self.ends[end].machine, self.now_ns);
                its.heard(member, generation, position, now_ns);
                self.drive(end);
            }
            Sent::Probe => _ = self.links[link].sent[end].pop_front(),
            Sent::End if carries(self.ends[end].carrier) && !carries(self.ends[end].wire) => {
                // The channel reads it, once it has it.
                self.arrives(link, end);
            }
            Sent::End => {
                self.links[link].sent[end].pop_front();
                if carries(self.ends[end].wire) && carries(self.ends[end].carrier) {
                    self.loses(end);
                } else {
                    self.end_link(end, member);
                    self.drive(end);
                }
            }
        }
    }

    /// As `Shared::end_link`.
    fn end_link(&mut self, end: usize, member: usize) {
        let Some(link) = self.ends[end].links[member].take() else {
            return;
        };
        self.close(end, link);
        if let Some(carrier) = self.ends[end]
            .carrier
            .filter(|carrier| carrier.link == link)
        {
            self.end_carrier(end, carrier);
        }
        self.ends[end].machine.ended(member, self.now_ns);
    }

    /// As `Shared::close_idle_link`.
    fn close_idle_link(&mut self, end: usize, member: usize) {
        if self.lasts[member] {
            return;
        }
        if let Some(link) = self.ends[end].links[member].take() {
            self.close(end, link);
            self.ends[end].machine.closed(member);
        }
    }

    fn end_carrier(&mut self, end: usize, carrier: Carried) {
        let generation = carrier.generation;
        if self.ends[end].ended.insert(generation) {
            self.later(Event::Reads { end, generation });
        }
    }

    /// The channel's carrier has ended.
    fn loses(&mut self, end: usize) {
        if let Some(wire) = self.ends[end].wire.take() {
            self.close_stream(end, wire);
            self.later(Event::Want { end });
            self.drive(end);
        }
    }

    /// As `Shared::close_stream`.
    fn close_stream(&mut self, end: usize, carrier: Carried) {
        let Carried {
            generation,
            member,
            link,
        } = carrier;
        self.ends[end].ended.insert(generation);
        let is_its = self.ends[end].links[member] == Some(link);
        if self.ends[end].carrier == Some(carrier) {
            self.ends[end].carrier = None;
            if self.lasts[member] {
                self.ends[end].machine.lost(generation, self.now_ns);
            } else if is_its {
                self.end_link(end, member);
            }
        } else if is_its {
            self.close_idle_link(end, member);
        }
    }

    /// As the channel's `adopt`.
    fn adopts(&mut self, end: usize) {
        let Some(next) = self.ends[end].made.pop_front() else {
            return;
        };
        if let Some(wire) = self.ends[end].wire.replace(next) {
            self.close_stream(end, wire);
        }
        self.ends[end].adopted = next.generation;
        if self.ends[end].ended.contains(&next.generation) {
            let generation = next.generation;
            self.later(Event::Reads { end, generation });
        }
        self.watch(end);
        self.drive(end);
    }

    /// As `Shared::drive`.
    fn drive(&mut self, end: usize) {
        let now_ns = self.now_ns;
        for member in self.ends[end].asked.clone() {
            let link = self.ends[end].links[member];
            // What is under way to a peer that can be reached will be acknowledged.
            let owes = |link: usize| !self.links[link].sent[1 - end].is_empty();
            let is_good = self.ways[member] == Way::Good;
            if link.is_some_and(|link| is_good || !owes(link)) {
                self.ends[end].asked.remove(&member);
                self.ends[end].machine.made(member, now_ns);
            }
        }
        let links = self.ends[end].links.clone();
        let owed_ns = now_ns.saturating_sub(PATIENCE_NS);
        let (ways, every) = (&self.ways, &self.links);
        self.ends[end].machine.tick(now_ns, |member| {
            Self::answers(ways, every, end, links[member], owed_ns)
        });
        while let Some(act) = self.ends[end].machine.poll_act() {
            self.acts += 1;
            self.act(end, act);
        }
        let timeout = self.ends[end].machine.poll_timeout();
        assert!(
            timeout.is_none_or(|at_ns| at_ns > now_ns),
            "what is due was not done: {:?}",
            self.ends[end].machine
        );
        let look = (!self.ends[end].asked.is_empty()).then_some(now_ns + 20 * MS);
        self.ends[end].tick_ns = [timeout, look].into_iter().flatten().min();
        if let Some(at_ns) = self.ends[end].tick_ns {
            let late_ns = self.random(MS);
            self.push(at_ns + late_ns, Event::Tick { end, at_ns });
        }
    }

    fn act(&mut self, end: usize, act: Act) {
        match act {
            Act::Ask(member) if self.ends[end].links[member].is_some() => {
                if let Some(link) = self.ends[end].links[member]
                    && self.lasts[member]
                    && self.links[link].sent[1 - end].is_empty()
                {
                    self.send(link, 1 - end, Sent::Probe);
                }
                self.ends[end].asked.insert(member);
            }
            Act::Ask(member) => {
                if self.ends[end].making.insert(member) {
                    self.later(Event::Makes { end, member });
                }
            }
            Act::Drop(member) => {
                self.crossings += 1;
                self.close_idle_link(end, member);
            }
            Act::Offer(member, generation) => self.offers(end, member, generation),
            Act::Carry(member, generation, position) => {
                let said = self.positions[1 - end].get(&generation);
                assert_eq!(
                    said,
                    Some(&position),
                    "as the peer has said with {generation}"
                );
                self.carries(end, member, generation);
            }
            Act::GiveUp => {
                assert_eq!(
                    self.ends[end].unreachable.len(),
                    self.lasts.len(),
                    "a member could be made, or was not asked"
                );
                self.give_ups += 1;
                // A client that bears it tries again.
                let at_ns = self.now_ns + S;
                self.push(at_ns, Event::Want { end });
            }
        }
    }

    fn offers(&mut self, end: usize, member: usize, generation: u64) {
        let Some(link) = self.ends[end].links[member] else {
            return self.ends[end].machine.ended(member, self.now_ns);
        };
        if let Some(carrier) = self.ends[end]
            .carrier
            .filter(|carrier| carrier.link == link)
        {
            self.end_carrier(end, carrier);
        }
        if self.links[link].raw[end] || (self.links[link].broken && self.one_in(2)) {
            // It refuses.
            return self.end_link(end, member);
        }
        self.last_position += 1;
        let before = self.positions[end].insert(generation, self.last_position);
        assert_eq!(before, None, "one position is said with {generation}");
        self.send(link, 1 - end, Sent::Offer(generation));
    }

    fn carries(&mut self, end: usize, member: usize, generation: u64) {
        assert!(self.ends[end].generation < generation, "generations grow");
        self.ends[end].generation = generation;
        let of_both = *self.generations.entry(generation).or_insert(member);
        assert_eq!(of_both, member, "both ranks carry {generation} alike");
        let Some(link) = self.ends[end].links[member] else {
            self.ends[end].machine.want(self.now_ns);
            return;
        };
        self.ends[end].unreachable.clear();
        self.links[link].raw[end] = !self.lasts[member];
        let carried = Carried {
            generation,
            member,
            link,
        };
        if let Some(before) = self.ends[end].carrier.replace(carried) {
            self.end_carrier(end, before);
        }
        self.ends[end].made.push_back(carried);
        self.later(Event::Adopts { end });
    }

    /// What both channels use, if that is the same.
    pub(super) fn agreement(&self) -> Option<(usize, u64)> {
        let [here, there] = self.ends.each_ref().map(|end| {
            let lives = |wire: &Carried| !end.ended.contains(&wire.generation);
            end.wire
                .filter(lives)
                .map(|wire| (wire.member, wire.generation))
        });
        here.filter(|_| here == there)
    }

    /// For a report.
    pub(super) fn shown(&self) -> String {
        let each = self.ends.iter().map(|end| {
            let (machine, wire, links) = (&end.machine, &end.wire, &end.links);
            format!("{machine:?}\n  wire {wire:?} links {links:?}")
        });
        format!(
            "at {} ms, ways {:?}, lasting {:?}\n{}",
            self.now_ns / MS,
            self.ways,
            self.lasts,
            each.collect::<Vec<_>>().join("\n") + &format!("{:?}", self.links)
        )
    }
}
