//! Connections that are closed as nothing passes, over wires that are clean or break, while ranks
//! begin to send again at any time.
//!
//! `ARGONET_SIM_SEEDS` is how many seeds each wire is run with.
#![forbid(unsafe_code)]

use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Completion, Conduit, OpToken, Sink};
use argonet_sim::{Cluster, FaultPlan, Node, Quality, Random, SimConfig, Simulated as _};
use std::time::Duration;

const NOTE: HandlerIndex = HandlerIndex(128);
const RANKS: u32 = 3;
const ROUNDS: u32 = 6;

/// After which time connections are closed.
const IDLE: Duration = Duration::from_millis(1);

/// Numbers that have come, by source.
#[derive(Default)]
struct Log([Vec<u32>; RANKS as usize]);

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.0[delivery.source().index()].push(delivery.arg(0));
    }

    fn completed(&mut self, _: OpToken, _: Completion) {}

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

struct Run {
    cluster: Cluster,
    nodes: Vec<Node>,
    logs: Vec<Log>,
    /// Messages of each rank to each.
    sent: [[u32; RANKS as usize]; RANKS as usize],
    random: Random,
}

impl Run {
    fn new(seed: u64, quality: Quality) -> Self {
        let mut config = SimConfig::new(RANKS, seed);
        config.sizes.channel.idle_rails = IDLE;
        config.sizes.channel.idle_buffers = IDLE / 2;
        config.faults = FaultPlan {
            healed: quality,
            ..FaultPlan::none()
        };
        let cluster = Cluster::new(config);
        let mut handlers = HandlerTable::default();
        handlers
            .register_at(NOTE, "note", Box::new(|_| {}))
            .unwrap();
        Self {
            nodes: cluster.nodes(handlers.registered()).unwrap(),
            cluster,
            logs: (0..RANKS).map(|_| Log::default()).collect(),
            sent: Default::default(),
            random: Random::fork(seed, 7000),
        }
    }

    fn send(&mut self, from: usize, to: usize) {
        let number = &mut self.sent[from][to];
        let message = Message {
            handler: NOTE,
            args: &[*number],
            payload: Payload::None,
        };
        let sent = self.nodes[from]
            .conduit
            .request(JobRank(to as u32), &message);
        sent.expect("few are under way");
        *number += 1;
    }

    /// Some time passes, in which all ranks poll.
    fn pass(&mut self) {
        for (node, log) in self.nodes.iter().zip(&mut self.logs) {
            let micros = self.random.range(1, 300);
            node.conduit.compute(Duration::from_micros(micros));
            node.conduit.poll(log);
        }
        self.cluster.step();
        assert!(self.cluster.now().as_secs() < 100, "it takes forever");
    }

    fn connections(&self) -> u32 {
        let connected = |node: &Node| node.conduit.connections().unwrap().connected;
        self.nodes.iter().map(connected).sum()
    }

    /// Whether all that was sent has come; that it has once, and in order.
    fn has_come(&self) -> bool {
        for (to, log) in self.logs.iter().enumerate() {
            for (from, numbers) in log.0.iter().enumerate() {
                assert!(numbers.iter().copied().eq(0..numbers.len() as u32));
                if numbers.len() as u32 != self.sent[from][to] {
                    return false;
                }
            }
        }
        self.nodes.iter().all(|node| node.conduit.is_quiescent())
    }
}

/// Connections that were made.
fn run(seed: u64, quality: Quality) -> u64 {
    let mut run = Run::new(seed, quality);
    for _ in 0..ROUNDS {
        for from in 0..RANKS as usize {
            (0..RANKS as usize).for_each(|to| run.send(from, to));
        }
        while !run.has_come() {
            run.pass();
        }
        // Ranks send while others close, too.
        let mut left = run.random.range(0, 20);
        while run.connections() > 0 {
            if left > 0 && run.random.chance(100_000) {
                left -= 1;
                let from = run.random.index(RANKS as usize);
                let to = (from + 1 + run.random.index(RANKS as usize - 1)) % RANKS as usize;
                run.send(from, to);
            }
            run.pass();
        }
        while !run.has_come() {
            run.pass();
        }
    }
    run.cluster.connections().0
}

fn runs(quality: Quality) {
    let seeds = std::env::var("ARGONET_SIM_SEEDS");
    let seeds = seeds.map_or(20, |text| {
        text.parse().expect("ARGONET_SIM_SEEDS is a number")
    });
    for seed in 0..seeds {
        let made = run(seed, quality);
        // One for each pair, and again after each time in which nothing passed.
        let least = u64::from(ROUNDS * RANKS * (RANKS - 1) / 2);
        assert!(made >= least, "seed {seed}: {made} connections");
    }
}

#[test]
fn nothing_goes_wrong() {
    runs(Quality::CLEAN);
}

/// A message is often on its way when its connection is closed.
#[test]
fn messages_come_late() {
    runs(Quality {
        delay_ns: 100_000,
        jitter_ns: 300_000,
        ..Quality::CLEAN
    });
}

#[test]
fn connections_break_as_well() {
    runs(Quality {
        jitter_ns: 50_000,
        hold_ppm: 100_000,
        hold_ns: 500_000,
        break_ppm: 50_000,
        short_ppm: 300_000,
        ..Quality::CLEAN
    });
}
