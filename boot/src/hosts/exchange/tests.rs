//! A whole tree of exchanges, whose messages move in any order.

use super::*;
use crate::hosts::tree::parts;
use crate::hosts::values::Value;
use argonet_base::JobRank;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

fn value_of(rank: u32, key: usize) -> Vec<u8> {
    let mut encoded = Vec::new();
    let bytes = format!("{rank}.{key}").into_bytes();
    Value {
        rank: JobRank(rank),
        key,
        bytes: &bytes,
    }
    .encode(&mut encoded);
    encoded
}

/// A whole tree; messages wait in queues, and the test says which queue moves.
struct Net {
    nodes: Vec<Exchange>,
    /// Of a node that is no root: its parent and which source of the parent it is.
    parents: Vec<Option<(usize, usize)>>,
    /// Of each node: its children, in the order of the first sources; then its own ranks, if it has
    /// any.
    children: Vec<Vec<usize>>,
    own: Vec<Range<u32>>,
    up: Vec<VecDeque<Action>>,
    down: Vec<VecDeque<Action>>,
    /// Values that each host's ranks know.
    known: Vec<BTreeMap<(u32, usize), Vec<u8>>>,
    /// Fences that each host's ranks have been let go from.
    passed: Vec<u32>,
}

impl Net {
    fn new(ranks: &[u32], degree: u32) -> Self {
        let mut net = Net {
            nodes: Vec::new(),
            parents: Vec::new(),
            children: Vec::new(),
            own: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
            known: Vec::new(),
            passed: Vec::new(),
        };
        let mut first = 0;
        let hosts: Vec<Range<u32>> = ranks
            .iter()
            .map(|n| {
                first += n;
                first - n..first
            })
            .collect();
        net.add(None, 0..0, &hosts, degree, first);
        net
    }

    fn add(
        &mut self,
        parent: Option<(usize, usize)>,
        own: Range<u32>,
        below: &[Range<u32>],
        degree: u32,
        size: u32,
    ) {
        let index = self.nodes.len();
        let parts = parts(below.len(), degree);
        let mut sources: Vec<Range<u32>> = parts
            .iter()
            .map(|part| below[part.start].start..below[part.end - 1].end)
            .collect();
        if !own.is_empty() {
            sources.push(own.clone());
        }
        self.nodes
            .push(Exchange::new(size, parent.is_none(), sources));
        self.parents.push(parent);
        self.children.push(Vec::new());
        self.own.push(own);
        self.up.push(VecDeque::new());
        self.down.push(VecDeque::new());
        self.known.push(BTreeMap::new());
        self.passed.push(0);
        for (source, part) in parts.into_iter().enumerate() {
            let child = self.nodes.len();
            self.children[index].push(child);
            let (own, below) = (below[part.start].clone(), &below[part.start + 1..part.end]);
            self.add(Some((index, source)), own, below, degree, size);
        }
    }

    fn act(&mut self, node: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Down {
                    source,
                    values,
                    fence,
                } => match self.children[node].get(source) {
                    Some(&child) => self.down[child].push_back(Action::Down {
                        source,
                        values,
                        fence,
                    }),
                    None => {
                        for value in values::parse(&values).unwrap() {
                            let place = (value.rank.0, value.key);
                            let old = self.known[node].insert(place, value.bytes.to_vec());
                            assert_eq!(old, None, "a value came twice");
                        }
                        self.passed[node] += 1;
                        assert_eq!(self.passed[node], fence);
                    }
                },
                up => self.up[node].push_back(up),
            }
        }
    }

    fn enter(&mut self, node: usize, fence: u32, keys: &[usize]) {
        let source = self.children[node].len();
        for rank in self.own[node].clone() {
            for &key in keys {
                let value = value_of(rank, key);
                self.nodes[node].values(source, &value).unwrap();
                self.known[node].insert((rank, key), format!("{rank}.{key}").into_bytes());
            }
        }
        let actions = self.nodes[node].arrived(source, fence).unwrap();
        self.act(node, actions);
    }

    /// Moves one message at `node`; false if there is none.
    fn carry(&mut self, node: usize) -> bool {
        if let Some(action) = self.up[node].pop_front() {
            let (parent, source) = self.parents[node].expect("no root sends up");
            let receiver = &mut self.nodes[parent];
            let actions = match action {
                Action::Waits(fence) => receiver.waits(fence),
                Action::Up { values, fence } => {
                    receiver.values(source, &values).unwrap();
                    receiver.arrived(source, fence)
                }
                Action::Down { .. } => unreachable!(),
            };
            self.act(parent, actions.unwrap());
            return true;
        }
        if let Some(Action::Down { values, fence, .. }) = self.down[node].pop_front() {
            self.nodes[node].above(&values).unwrap();
            let actions = self.nodes[node].done(fence).unwrap();
            self.act(node, actions);
            return true;
        }
        false
    }
}

proptest! {
    #[test]
    fn all_hosts_have_all_values_after_a_fence_and_none_passes_early(
        ranks in vec(1u32..4, 1..12),
        degree in 0u32..4,
        order in vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let mut net = Net::new(&ranks, degree);
        let agents: Vec<usize> = (1..net.nodes.len()).collect();
        let size: u32 = ranks.iter().sum();
        let mut turn = order.iter().cycle();
        for (fence, keys) in [(1, &[0, 5][..]), (2, &[]), (3, &[10])] {
            let mut late = agents.clone();
            while let Some(last) = late.len().checked_sub(1) {
                let i = turn.next().unwrap().index(late.len()).min(last);
                let node = late.swap_remove(i);
                net.enter(node, fence, keys);
                // Some messages move meanwhile, others do not.
                for _ in 0..turn.next().unwrap().index(8) {
                    net.carry(agents[turn.next().unwrap().index(agents.len())]);
                }
                if !late.is_empty() {
                    prop_assert!(net.passed.iter().all(|&passed| passed < fence));
                }
            }
            while agents.iter().any(|&node| net.carry(node)) {}
            prop_assert!(agents.iter().all(|&node| net.passed[node] == fence));
            prop_assert_eq!(net.nodes[0].waited(), fence);
        }
        for &node in &agents {
            prop_assert_eq!(net.known[node].len(), 3 * size as usize);
            for (&(rank, key), bytes) in &net.known[node] {
                prop_assert_eq!(bytes, &format!("{rank}.{key}").into_bytes());
            }
        }
    }
}

#[test]
fn a_fence_takes_two_messages_an_edge_and_one_more_where_an_agent_waits() {
    // The launcher; two agents below it, each with one below.
    let mut net = Net::new(&[1, 1, 1, 1], 2);
    let mut sent = 0;
    for node in 1..=4 {
        net.enter(node, 1, &[0]);
    }
    for node in [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 3, 2, 4] {
        sent += u32::from(net.carry(node));
    }
    assert!((1..=4).all(|node| net.passed[node] == 1 && !net.carry(node)));
    // Four edges, and the two inner agents waited for those below.
    assert_eq!(sent, 2 * 4 + 2);
}

#[test]
fn bad_values_and_fences_are_refused() {
    let mut node = Exchange::new(4, false, vec![0..2, 2..3]);
    assert!(node.values(0, &value_of(2, 0)).is_err(), "another source's");
    assert!(node.values(0, &value_of(4, 0)).is_err(), "no rank");
    assert!(
        node.above(&value_of(1, 0)).is_err(),
        "from above, and of below"
    );
    node.values(0, &value_of(1, 0)).unwrap();
    assert!(node.values(0, &value_of(1, 0)).is_err(), "twice");
    assert!(node.arrived(0, 2).is_err(), "a fence is left out");
    assert!(node.done(1).is_err(), "no host has arrived");
    assert_eq!(node.arrived(0, 1).unwrap(), [Action::Waits(1)]);
    assert!(node.arrived(0, 1).is_err(), "twice");
    let up = node.arrived(1, 1).unwrap();
    assert!(matches!(&up[..], [Action::Up { fence: 1, .. }]));
    assert!(node.waits(1).is_err(), "all are there");
    node.above(&value_of(3, 0)).unwrap();
    assert_eq!(node.done(1).unwrap().len(), 2);
    assert!(node.done(1).is_err(), "twice");
}
