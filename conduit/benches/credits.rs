//! The cost of flow control by credits for a short round trip over tcp: two pairs of ranks, with
//! and without, in alternating chunks.
//!
//! One thread plays both sides of a pair, so nothing depends on when another thread runs. With `on`
//! or `off` and a number of round trips it does that alone, for counting instructions: `valgrind
//! --tool=callgrind` of it with two numbers, and the difference.
//!
//! `cargo bench -p argonet-conduit --bench credits -- [on|off ROUNDS]`

mod support;

use argonet_am::record::Short;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_conduit::channel::ChannelSizes;
use argonet_conduit::tcp::Tcp;
use std::time::Instant;
use support::{ASK, Count, NOTE, ranks};

const CHUNKS: usize = 101;
const ROUNDS: u64 = 2000;
const BURST: u64 = 200;

struct Pair {
    ranks: [Tcp; 2],
    sinks: [Count; 2],
}

impl Pair {
    fn new(sizes: ChannelSizes) -> Self {
        // The benchmark touches no segment.
        let (ranks, _) = ranks(sizes);
        Self {
            ranks,
            sinks: Default::default(),
        }
    }

    fn poll(&mut self) {
        for (rank, sink) in self.ranks.iter().zip(&mut self.sinks) {
            rank.poll_with(sink);
        }
    }

    fn round_trips(&mut self, count: u64) {
        let ask = Short::pack(ASK, &[]).expect("a short");
        for _ in 0..count {
            let due = self.sinks[0].messages + 1;
            assert!(self.ranks[0].request_short(JobRank(1), ask));
            while self.sinks[0].messages < due {
                self.poll();
            }
        }
    }

    /// Shorts without replies, in bursts.
    fn flood(&mut self, count: u64) {
        let note = Short::pack(NOTE, &[]).expect("a short");
        for _ in 0..count / BURST {
            let due = self.sinks[1].messages + BURST;
            for _ in 0..BURST {
                while !self.ranks[0].request_short(JobRank(1), note) {
                    self.poll();
                }
            }
            while self.sinks[1].messages < due {
                self.poll();
            }
        }
    }
}

/// A case: its name, its operation, and its number of rounds.
type Case = (&'static str, fn(&mut Pair, u64), u64);

fn main() {
    let without = ChannelSizes {
        credits: None,
        ..ChannelSizes::default()
    };
    let both = [ChannelSizes::default(), without];
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    if let [which, rounds] = &given[..] {
        let rounds = rounds.parse().expect("a number of round trips");
        Pair::new(both[usize::from(which == "off")]).round_trips(rounds);
        return;
    }
    let mut pairs = both.map(Pair::new);
    let what: [Case; 2] = [
        ("short round trip", Pair::round_trips, ROUNDS),
        ("short, bursts of 200", Pair::flood, 10 * ROUNDS),
    ];
    for (name, act, count) in what {
        let mut times = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for chunk in 0..CHUNKS {
            let mut now = [0.0; 2];
            // The pairs go first in turn.
            for which in [chunk % 2, 1 - chunk % 2] {
                let begun = Instant::now();
                act(&mut pairs[which], count);
                now[which] = begun.elapsed().as_nanos() as f64 / count as f64;
                times[which].push(now[which]);
            }
            ratios.push(now[0] / now[1]);
        }
        let [on, off] = times.map(middle);
        let ratio = middle(ratios);
        println!("{name}: {on:.0} ns with credits, {off:.0} ns without, ratio {ratio:.3}");
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
