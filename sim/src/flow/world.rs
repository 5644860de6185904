//! The ranks of a run, and its time.

use super::figures::{Figures, Sample};
use super::node::Node;
use super::pattern::Pattern;
use super::wheel::{Event, Wheel};
use argonet_am::credit::{Plan, PlanError, Rules, Wishes};

/// Virtual time after which a run without progress ends, in ns: longer than any computing.
const STUCK_NS: u64 = 1_000_000_000;

/// Setup of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The pattern.
    pub pattern: Pattern,
    /// Limits; the length of an epoch.
    pub rules: Rules,
    /// Shares and receive space.
    pub plan: Plan,
    /// Epochs, of ranks on average.
    pub epochs: u32,
    /// The seed of draws: how long ranks compute, to which ranks they send.
    pub seed: u64,
}

impl Setup {
    /// A job with the derived plan.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(
        ranks: u32,
        pattern: Pattern,
        rules: Rules,
        wishes: Wishes,
    ) -> Result<Self, PlanError> {
        Ok(Self {
            pattern,
            rules,
            plan: Plan::new(ranks, &rules, wishes)?,
            epochs: 100,
            seed: 1,
        })
    }

    /// The same with all of the space shared out and nothing moving.
    #[must_use]
    pub fn fixed(self) -> Self {
        let rules = Rules {
            dynamic: false,
            ..self.rules
        };
        Self {
            rules,
            plan: self.plan.all_shared(&rules),
            ..self
        }
    }

    /// Ranks of the job.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.plan.nodes()
    }
}

/// Runs it.
#[must_use]
pub fn run(setup: &Setup) -> Figures {
    let mut wheel = Wheel::new();
    let mut nodes: Vec<Node> = (0..setup.ranks()).map(|r| Node::new(r, setup)).collect();
    for rank in 0..setup.ranks() {
        wheel.plan(0, Event::Wake { rank });
    }
    let epoch = u64::from(setup.rules.epoch_requests) * setup.pattern.receivers(setup.ranks());
    let mut figures = Figures {
        ranks: setup.ranks(),
        credits: setup.plan.total(),
        ..Figures::default()
    };
    let (mut handled, mut before) = (0, Sample::default());
    let (mut events, mut progress_at) = (Vec::new(), 0);
    // Messages to one hot rank are an epoch soon; all ranks should have sent some.
    let least = u64::from(setup.ranks()) * 20;
    let wanted = (epoch * u64::from(setup.epochs)).max(least);
    while handled < wanted && wheel.next(&mut events) {
        for &event in &events {
            let (Event::Wake { rank }
            | Event::Request { to: rank, .. }
            | Event::Reply { to: rank, .. }
            | Event::System { to: rank, .. }) = event;
            let node = &mut nodes[rank as usize];
            match event {
                Event::Wake { .. } => node.wake(&mut wheel),
                _ => node.arrive(event, &mut wheel),
            }
            if let Event::Reply { .. } = event {
                handled += 1;
                progress_at = wheel.now();
                if handled % epoch == 0 {
                    let sums = sums(&nodes);
                    figures.epochs.push(sums.since(&before));
                    before = sums;
                }
            }
        }
        if wheel.now() - progress_at > STUCK_NS {
            figures
                .violations
                .push(format!("no reply for 1 s, {handled} of {wanted} have come"));
            break;
        }
    }
    if handled < wanted && figures.violations.is_empty() {
        figures
            .violations
            .push(format!("all wait, {handled} of {wanted} replies have come"));
    }
    figures.total = sums(&nodes);
    figures.took_ns = wheel.now();
    for node in &mut nodes {
        node.check();
        figures.fullest = figures.fullest.max(node.fullest);
        figures.overflows += node.overflows;
        figures.state_bytes += node.peers.bytes() as u64;
        figures.peers_used += node.peers.used().count() as u64;
        figures.violations.extend(node.violation.take());
    }
    figures
}

fn sums(nodes: &[Node]) -> Sample {
    let mut all = Sample::default();
    for node in nodes {
        all.requests += node.sums.requests;
        all.stalls += node.sums.stalls;
        all.stalled_ns += node.sums.stalled_ns;
        all.system += node.sums.system;
        all.moved += node.moved();
    }
    all
}
