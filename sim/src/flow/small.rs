//! Small jobs with random sizes, limits and faults, one a seed: rules that hold in every run.
//!
//! Messages take any time, so they overtake each other; system messages are also lost and repeated;
//! handlers end in any order in some seeds, which credits do not cover; and in some, ranks believe
//! to hold credits that no peer has lent, as if a reply had come twice. Requests and replies
//! themselves are lost by no conduit. When faults have stopped, all must be done.

use crate::random::Random;
use argonet_am::credit::{
    Attempt, Bank, Costs, Debt, Form, Mends, Peer, Plan, PushedBack, Rules, Space, Tag, Wishes,
};
use argonet_am::lid_cache::{LidCache, Lids};
use argonet_am::recycling::{Chain, Place};
use argonet_am::system_queue::{Answer, Frame, Heard, Question, Slot, SystemQueue};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// Violations at the end of a seed, and counts of its events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Empty if all is well.
    pub violations: Vec<String>,
    /// Requests handled.
    pub handled: u64,
    /// Requests pushed back.
    pub pushed_back: u64,
    /// Of them those that found no buffer.
    pub overflows: u64,
    /// Credits lent in addition and given back.
    pub moved: u64,
    /// System messages that were repeated.
    pub resent: u64,
    /// Longs whose data came first.
    pub data_first: u64,
}

#[derive(Clone, Copy)]
struct Request {
    id: usize,
    to: usize,
    cost: u16,
    long: bool,
}

#[derive(Clone, Copy)]
struct Header {
    from: usize,
    id: usize,
    tag: Tag,
    place: Option<Place>,
}

#[derive(Clone, Copy)]
enum Message {
    Request { id: usize, bits: u64 },
    Header { id: usize, bits: u64, lid: u32 },
    Data { lid: u32 },
    Reply { id: usize, bits: u64 },
    Back { id: usize, back: PushedBack },
    System(Frame),
}

struct Node {
    bank: Bank,
    peers: Vec<Option<(Peer, Slot)>>,
    system: SystemQueue,
    chain: Chain,
    halves: LidCache<Header, ()>,
    lids: Lids,
    inbox: VecDeque<(Header, Debt)>,
    queue: VecDeque<(Request, Attempt)>,
    outstanding: usize,
    tickets: usize,
    any_order: bool,
    /// How often it handles a request, in a million us.
    speed: u32,
}

struct Job {
    now: u64,
    sent: u64,
    random: Random,
    rules: Rules,
    nodes: Vec<Node>,
    wire: BTreeMap<(u64, u64), (usize, usize, Message)>,
    requests: Vec<Request>,
    handled: Vec<u32>,
    completed: usize,
    faults: bool,
    phantoms: bool,
    report: Report,
}

/// Runs a seed.
#[must_use]
pub fn run_seed(seed: u64) -> Report {
    let mut job = Job::draw(seed);
    job.run();
    job.check_end();
    job.report
}

const RESEND_US: u64 = 200;

impl Job {
    fn draw(seed: u64) -> Self {
        let mut random = Random::fork(seed, 0xf10e);
        let ranks = random.range(2, 5) as usize;
        let mut rules;
        let plan = loop {
            let chunk_bytes = 256 * random.range(1, 8) as u32;
            let costs = Costs {
                chunk_bytes,
                ..Costs::OF_TEXT
            };
            let mut coin = || random.chance(500_000);
            let mends = Mends {
                on_demand: coin(),
                as_many_as_needed: coin(),
                in_part: coin(),
                ask_ahead: coin(),
                patience: coin(),
                one_epoch: coin(),
                one_question: coin(),
                one_burst: coin(),
            };
            let least = costs.largest() as u16 + random.pick(&[0, 0, 1, 5]);
            rules = Rules {
                costs,
                form: random.pick(&[
                    Form::BYTE,
                    Form::WIDE,
                    Form::new(1, 5).expect("1 and 5 bits"),
                ]),
                dynamic: random.chance(900_000),
                least,
                most: least + random.pick(&[0, 1, 20, 400]),
                epoch_requests: random.pick(&[1, 2, 8, 64]),
                decay_shift: random.range(1, 3) as u32,
                lend_limit: random.pick(&[1, 8, 256]),
                revoke_limit: random.pick(&[1, 8, 256]),
                low: random.pick(&[0, 10, 400]),
                ask_times: random.range(1, 8) as u16,
                patience: random.range(1, 8) as u8,
                walk_targets: random.range(1, 4) as u32,
                walk_looks: random.range(4, 8) as u32,
                mends,
            };
            let wishes = Wishes {
                share: Some(u32::from(least) + random.range(0, (rules.most - least).into()) as u32),
                bank: Some(random.pick(&[0, 3, 40, 300])),
                space_bytes: None,
            };
            if let Ok(plan) = Plan::new(ranks as u32, &rules, wishes) {
                break plan;
            }
        };
        let any_order = random.chance(300_000);
        // The usual buffers, or as few as there can be, good for as many credits.
        let per_chunk = u64::from(rules.costs.chunk_bytes / rules.costs.granularity);
        let few = Space {
            buffers: 2,
            chunks: plan.total().div_ceil(per_chunk) as u32 + 1,
            ..*plan.space()
        };
        let space = random.pick(&[*plan.space(), few]);
        let nodes = (0..ranks as u32).map(|me| Node {
            bank: Bank::new(me, plan, rules),
            peers: (0..ranks).map(|_| None).collect(),
            system: SystemQueue::new(Duration::from_micros(RESEND_US)),
            chain: Chain::new(&space),
            halves: LidCache::new(4096, 2048),
            lids: Lids::new(16).expect("16 bits"),
            inbox: VecDeque::new(),
            queue: VecDeque::new(),
            outstanding: 0,
            tickets: random.pick(&[1, 2, 16, 1000]),
            any_order,
            speed: random.pick(&[500_000, 100_000, 20_000]),
        });
        let nodes = nodes.collect();
        let mut job = Self {
            now: 0,
            sent: 0,
            rules,
            nodes,
            wire: BTreeMap::new(),
            requests: Vec::new(),
            handled: Vec::new(),
            completed: 0,
            faults: random.chance(700_000),
            phantoms: random.chance(300_000),
            random,
            report: Report::default(),
        };
        job.draw_requests();
        job
    }

    /// Bursts to favorites that change, and some to others.
    fn draw_requests(&mut self) {
        let ranks = self.nodes.len();
        for _ in 0..self.random.range(1, 6) {
            for me in 0..ranks {
                let other = |random: &mut Random| (me + 1 + random.index(ranks - 1)) % ranks;
                let favorite = other(&mut self.random);
                for _ in 0..self.random.range(0, 30) {
                    let to = if self.random.chance(800_000) {
                        favorite
                    } else {
                        other(&mut self.random)
                    };
                    let long = self.random.chance(200_000);
                    let largest = u64::from(self.rules.costs.chunk_bytes / 256);
                    let cost = if long {
                        self.rules.costs.long()
                    } else {
                        self.random.range(1, largest) as u16
                    };
                    let id = self.requests.len();
                    let request = Request { id, to, cost, long };
                    self.requests.push(request);
                    self.handled.push(0);
                    self.nodes[me]
                        .queue
                        .push_back((request, Attempt::default()));
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        let delay = 1 + self.random.around(20);
        self.sent += 1;
        let system = matches!(message, Message::System(_));
        if system && self.faults && self.random.chance(150_000) {
            return;
        }
        self.wire
            .insert((self.now + delay, self.sent), (from, to, message));
        if system && self.faults && self.random.chance(150_000) {
            self.sent += 1;
            let late = self.now + delay + self.random.around(300);
            self.wire.insert((late, self.sent), (from, to, message));
        }
    }

    fn run(&mut self) {
        let stop_faults = 2_000;
        while self.completed < self.requests.len() {
            if self.now > 2_000_000 {
                let (done, all) = (self.completed, self.requests.len());
                self.violation(format!("{done} of {all} requests were done after 2 s"));
                return;
            }
            self.now += 1;
            if self.now >= stop_faults {
                (self.faults, self.phantoms) = (false, false);
            }
            while let Some(entry) = self.wire.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (from, to, message) = entry.remove();
                if let Err(error) = self.deliver(from, to, message) {
                    self.violation(error);
                }
            }
            for me in 0..self.nodes.len() {
                self.act(me);
            }
            if self.now.is_multiple_of(16) {
                self.check_sums();
            }
            if !self.report.violations.is_empty() {
                return;
            }
        }
    }

    fn violation(&mut self, text: String) {
        self.report
            .violations
            .push(format!("at {} us: {text}", self.now));
    }

    /// Polls, sends and repeats.
    fn act(&mut self, me: usize) {
        if self.random.chance(self.nodes[me].speed) {
            self.handle_one(me);
        }
        if self.phantoms && self.random.chance(30_000) {
            let other = (me + 1) % self.nodes.len();
            let extra = self.random.range(1, 9) as u16;
            let Node { bank, peers, .. } = &mut self.nodes[me];
            let phantom = Tag {
                extra,
                ..Tag::default()
            };
            let _ = open(peers, other, bank).0.replied(phantom, bank);
        }
        for _ in 0..self.random.range(0, 3) {
            self.send_one(me);
        }
        let now = Duration::from_micros(self.now);
        let mut again = Vec::new();
        self.nodes[me]
            .system
            .handle_timeout(now, |to, frame| again.push((to, frame)));
        for (to, frame) in again {
            self.send(me, to as usize, Message::System(frame));
        }
    }

    fn send_one(&mut self, me: usize) {
        let Node {
            bank,
            peers,
            queue,
            outstanding,
            tickets,
            lids,
            ..
        } = &mut self.nodes[me];
        if outstanding == tickets {
            return;
        }
        let Some((request, attempt)) = queue.front_mut() else {
            return;
        };
        let peer = &mut open(peers, request.to, bank).0;
        let Some(tag) = peer.request(request.cost, attempt, bank) else {
            return;
        };
        let bits = bank.rules().form.pack(tag);
        let request = *request;
        queue.pop_front();
        *outstanding += 1;
        let (id, to) = (request.id, request.to);
        if request.long {
            let lid = lids.draw();
            self.send(me, to, Message::Header { id, bits, lid });
            self.send(me, to, Message::Data { lid });
        } else {
            self.send(me, to, Message::Request { id, bits });
        }
    }

    fn deliver(&mut self, from: usize, me: usize, message: Message) -> Result<(), String> {
        let form = self.rules.form;
        let now = Duration::from_micros(self.now);
        let node = &mut self.nodes[me];
        match message {
            Message::Request { id, bits } => {
                let tag = form.unpack(bits).map_err(|e| e.to_string())?;
                let bytes = u32::from(tag.count) * self.rules.costs.granularity;
                let place = node.chain.place(bytes).ok().map(|(place, _)| place);
                let header = Header {
                    from,
                    id,
                    tag,
                    place,
                };
                self.arrive(me, header);
            }
            Message::Header { id, bits, lid } => {
                let tag = form.unpack(bits).map_err(|e| e.to_string())?;
                // The header takes one credit of space; the other is for the event of the data.
                let bytes = self.rules.costs.granularity;
                let place = node.chain.place(bytes).ok().map(|(place, _)| place);
                let header = Header {
                    from,
                    id,
                    tag,
                    place,
                };
                let both = node.halves.header(from as u32, lid, header);
                if let Some((header, ())) = both.map_err(|e| e.to_string())? {
                    self.report.data_first += 1;
                    self.arrive(me, header);
                }
            }
            Message::Data { lid } => {
                let both = node.halves.data(from as u32, lid, ());
                if let Some((header, ())) = both.map_err(|e| e.to_string())? {
                    self.arrive(me, header);
                }
            }
            Message::Reply { id, bits } => {
                let tag = form.unpack(bits).map_err(|e| e.to_string())?;
                let Node { bank, peers, .. } = node;
                let peer = &mut open(peers, from, bank).0;
                peer.replied(tag, bank).map_err(|e| e.to_string())?;
                node.outstanding -= 1;
                self.completed += 1;
                if self.handled[id] != 1 {
                    return Err(format!(
                        "request {id} was handled {} times",
                        self.handled[id]
                    ));
                }
            }
            Message::Back { id, back } => {
                let Node { bank, peers, .. } = node;
                let peer = &mut open(peers, from, bank).0;
                peer.pushed_back(back).map_err(|e| e.to_string())?;
                node.outstanding -= 1;
                node.queue
                    .push_front((self.requests[id], Attempt::default()));
            }
            Message::System(frame) => {
                let Node {
                    bank,
                    peers,
                    system,
                    ..
                } = node;
                let (peer, slot) = open(peers, from, bank);
                let heard = system.handle_recv(now, from as u32, slot, frame);
                match heard.map_err(|e| e.to_string())? {
                    Heard::Question(Question::Revoke(revoke)) => {
                        let back = peer.revoke(revoke, bank);
                        let answer = SystemQueue::answer(slot, Answer::Return(back));
                        self.send(me, from, Message::System(answer));
                    }
                    Heard::Repeated(answer) => self.send(me, from, Message::System(answer)),
                    Heard::Answered(Answer::Return(back)) => {
                        peer.returned(back, bank).map_err(|e| e.to_string())?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Handles one request that has come, the first or any.
    fn handle_one(&mut self, me: usize) {
        let Node {
            bank,
            peers,
            inbox,
            chain,
            any_order,
            ..
        } = &mut self.nodes[me];
        if inbox.is_empty() {
            return;
        }
        let at = if *any_order {
            self.random.index(inbox.len())
        } else {
            0
        };
        let Some((header, debt)) = inbox.remove(at) else {
            return;
        };
        let peer = &mut open(peers, header.from, bank).0;
        if let Some(place) = header.place {
            chain.handled(place);
        }
        let (id, tag) = (header.id, peer.reply(debt, header.from as u32, bank));
        self.handled[id] += 1;
        self.report.handled += 1;
        let bits = self.rules.form.pack(tag);
        self.send(me, header.from, Message::Reply { id, bits });
        self.scavenge(me);
    }

    /// A request is there with all its parts: it is taken, or pushed back.
    fn arrive(&mut self, me: usize, header: Header) {
        let Node {
            bank,
            peers,
            inbox,
            chain,
            ..
        } = &mut self.nodes[me];
        let peer = &mut open(peers, header.from, bank).0;
        let refused = match (peer.arrived(header.tag, bank), header.place) {
            (Ok(debt), Some(_)) => {
                inbox.push_back((header, debt));
                return;
            }
            // It fell beside the buffers.
            (Ok(debt), None) => {
                self.report.overflows += 1;
                peer.overflowed(debt)
            }
            (Err(back), place) => {
                place.map(|place| chain.handled(place));
                back
            }
        };
        self.report.pushed_back += 1;
        let (id, back) = (header.id, refused);
        self.send(me, header.from, Message::Back { id, back });
    }

    fn scavenge(&mut self, me: usize) {
        let now = Duration::from_micros(self.now);
        let Node {
            bank,
            peers,
            system,
            ..
        } = &mut self.nodes[me];
        let mut asked = Vec::new();
        bank.scavenge(
            |rank, look| {
                let (peer, slot) = open(peers, rank as usize, bank);
                if !slot.is_busy() {
                    look(peer);
                }
            },
            |rank, revoke| asked.push((rank, revoke)),
        );
        let mut frames = Vec::new();
        for (rank, revoke) in asked {
            let slot = &mut open(peers, rank as usize, bank).1;
            let frame = system.ask(now, rank, slot, Question::Revoke(revoke));
            frames.extend(frame.map(|frame| (rank as usize, frame)));
        }
        for (to, frame) in frames {
            self.send(me, to, Message::System(frame));
        }
    }

    fn check_sums(&mut self) {
        for me in 0..self.nodes.len() {
            let node = &self.nodes[me];
            let loans = node.peers.iter().flatten();
            let lent: u64 = loans.map(|(peer, _)| u64::from(peer.figures().loan)).sum();
            let sum = lent + node.bank.untouched() + u64::from(node.bank.banked());
            let holds = node.bank.plan().space().credits();
            if sum != holds {
                self.violation(format!(
                    "rank {me} has {sum} credits for a space of {holds}"
                ));
            }
        }
    }

    fn check_end(&mut self) {
        self.check_sums();
        for me in 0..self.nodes.len() {
            let node = &self.nodes[me];
            let moved = node.bank.moved();
            self.report.moved += moved.lent + moved.returned;
            self.report.resent += node.system.resent();
            if !(node.halves.is_empty() && node.inbox.is_empty() && node.chain.waiting() == 0)
                && self.report.violations.is_empty()
            {
                self.violation(format!(
                    "rank {me} keeps something of requests that are done"
                ));
            }
        }
    }
}

/// The peer, made at its first use.
fn open<'a>(
    peers: &'a mut [Option<(Peer, Slot)>],
    rank: usize,
    bank: &Bank,
) -> &'a mut (Peer, Slot) {
    peers[rank].get_or_insert_with(|| {
        let peer = Peer::new(bank).expect("a share for every other rank");
        (peer, Slot::default())
    })
}
