//! Executes the schedules of all members against each other, in memory.

use super::{Hoods, Range, Schedule, Situation, Task, Tuning, plan};
use crate::collective::schedule::Step;
use std::collections::{HashMap, VecDeque};

/// One member.
struct Machine {
    schedule: Schedule,
    areas: [Vec<u8>; 3],
    round: usize,
    /// Messages of the round that are not complete.
    open: Vec<usize>,
    /// Messages between neighborhoods on the longest way to here.
    depth: u32,
    /// Messages between neighborhoods that it has sent, and their bytes.
    sent: u32,
    sent_bytes: usize,
    /// The members from which something has come here, directly or over others, as bits; itself,
    /// too.
    heard: Vec<u64>,
}

/// A message that has left and not arrived.
struct InFlightMessage {
    bytes: Vec<u8>,
    depth: u32,
    heard: Vec<u64>,
}

impl Machine {
    fn bytes(&mut self, range: Range) -> &mut [u8] {
        let area = &mut self.areas[range.area as usize];
        &mut area[range.at..range.at + range.len]
    }

    fn is_over(&self) -> bool {
        self.round == self.schedule.rounds()
    }

    fn begin(&mut self) {
        if !self.is_over() {
            let messages = self.schedule.messages(self.round);
            self.open = (0..messages.len()).collect();
            check_overlaps(messages);
        }
    }

    /// Ends the round, and those that have no messages.
    fn local(&mut self, fold: &dyn Fn(&[u8], &mut [u8])) {
        for step in self.schedule.local(self.round).to_vec() {
            match step {
                Step::Copy { from, into } => {
                    let bytes = self.bytes(from).to_vec();
                    self.bytes(into).copy_from_slice(&bytes);
                }
                Step::Fold { left, right } => {
                    let left = self.bytes(left).to_vec();
                    fold(&left, self.bytes(right));
                }
                _ => panic!("no local step"),
            }
        }
        self.round += 1;
        self.begin();
    }
}

/// Checks that no other message of a round uses the memory that it receives into.
fn check_overlaps(messages: &[Step]) {
    let range = |step: &Step| match *step {
        Step::Send { from, .. } => (from, false),
        Step::Receive { into, .. } => (into, true),
        _ => panic!("no message"),
    };
    if messages.len() > 64 {
        return;
    }
    for (at, one) in messages.iter().enumerate() {
        for other in &messages[at + 1..] {
            let ((a, receives), (b, also)) = (range(one), range(other));
            let apart = a.area != b.area || a.at + a.len <= b.at || b.at + b.len <= a.at;
            assert!(
                apart || !(receives || also) || a.len == 0 || b.len == 0,
                "{one:?} and {other:?}"
            );
        }
    }
}

/// Sends are complete at once, or when the receiver has come to them, as MPI's synchronous ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sends {
    Eager,
    Synchronous,
}

/// The result of an execution: the targets, the depth in messages between neighborhoods, the most
/// of them that a member has sent, and the bytes of all of them.
pub(super) struct Outcome {
    pub(super) targets: Vec<Vec<u8>>,
    pub(super) depth: u32,
    pub(super) most_sent: u32,
    pub(super) far_bytes: usize,
    /// The most that a member needs.
    pub(super) most_scratch: usize,
    /// Whether every member has heard of every other.
    pub(super) all_synchronized: bool,
}

/// Executes the schedules of all members in a call.
pub(super) fn execute(
    hoods: &Hoods,
    tuning: &Tuning,
    task: &Task,
    sources: Vec<Vec<u8>>,
    targets: Vec<Vec<u8>>,
    sends: Sends,
    fold: &dyn Fn(&[u8], &mut [u8]),
) -> Outcome {
    let plan = |rank, schedule: &mut Schedule| {
        let situation = Situation {
            rank,
            hoods,
            tuning,
        };
        plan(&situation, task, schedule);
    };
    execute_planned(task, hoods, &plan, (sources, targets), sends, fold)
}

/// Executes the schedules that `plan` makes of all members; `what` is named where that fails.
pub(super) fn execute_planned(
    what: &dyn core::fmt::Debug,
    hoods: &Hoods,
    plan: &dyn Fn(u32, &mut Schedule),
    (sources, targets): (Vec<Vec<u8>>, Vec<Vec<u8>>),
    sends: Sends,
    fold: &dyn Fn(&[u8], &mut [u8]),
) -> Outcome {
    let mut machines: Vec<Machine> = (0..)
        .zip(sources.into_iter().zip(targets))
        .map(|(rank, (source, target))| {
            let mut schedule = Schedule::default();
            plan(rank, &mut schedule);
            let scratch = vec![0xaa; schedule.scratch_bytes()];
            let mut machine = Machine {
                schedule,
                areas: [source, target, scratch],
                round: 0,
                open: Vec::new(),
                depth: 0,
                sent: 0,
                sent_bytes: 0,
                heard: vec![0; hoods.size().div_ceil(64) as usize],
            };
            machine.heard[rank as usize / 64] |= 1 << (rank % 64);
            machine.begin();
            machine
        })
        .collect();
    let mut in_flight: HashMap<(u32, u32, u32), InFlightMessage> = HashMap::new();
    let mut work: VecDeque<u32> = (0..machines.len() as u32).collect();
    let mut idle = 0;
    while let Some(rank) = work.pop_front() {
        if machines[rank as usize].is_over() {
            continue;
        }
        assert!(
            idle <= 4 * machines.len(),
            "{what:?} of {} members never ends",
            machines.len()
        );
        let mut moved = false;
        // Sends first, so that their bytes are those of the round's beginning.
        for sending in [true, false] {
            let mut open = std::mem::take(&mut machines[rank as usize].open);
            open.retain(|at| {
                let me = &mut machines[rank as usize];
                match me.schedule.messages(me.round)[*at] {
                    Step::Send { to, from, tag } if sending => {
                        let far = hoods.of(to) != hoods.of(rank);
                        let depth = me.depth + u32::from(far);
                        let bytes = me.bytes(from).to_vec();
                        if sends == Sends::Synchronous && !awaits(&machines[to as usize], rank, tag)
                        {
                            return true;
                        }
                        let me = &mut machines[rank as usize];
                        me.sent += u32::from(far);
                        me.sent_bytes += if far { bytes.len() } else { 0 };
                        let heard = me.heard.clone();
                        let sent = InFlightMessage {
                            bytes,
                            depth,
                            heard,
                        };
                        in_flight.insert((rank, to, tag), sent);
                    }
                    Step::Receive { from, into, tag } if !sending => {
                        let Some(come) = in_flight.remove(&(from, rank, tag)) else {
                            return true;
                        };
                        me.depth = me.depth.max(come.depth);
                        me.bytes(into).copy_from_slice(&come.bytes);
                        for (mine, theirs) in me.heard.iter_mut().zip(come.heard) {
                            *mine |= theirs;
                        }
                    }
                    _ => return true,
                }
                moved = true;
                false
            });
            machines[rank as usize].open = open;
        }
        while !machines[rank as usize].is_over() && machines[rank as usize].open.is_empty() {
            machines[rank as usize].local(fold);
            moved = true;
        }
        idle = if moved { 0 } else { idle + 1 };
        work.push_back(rank);
    }
    assert!(
        in_flight.is_empty(),
        "{what:?}: a rank sent a message without a receiver"
    );
    Outcome {
        depth: machines
            .iter()
            .map(|machine| machine.depth)
            .max()
            .unwrap_or(0),
        most_sent: machines
            .iter()
            .map(|machine| machine.sent)
            .max()
            .unwrap_or(0),
        all_synchronized: machines.iter().all(|machine| {
            let heard: u32 = machine.heard.iter().map(|bits| bits.count_ones()).sum();
            heard == hoods.size()
        }),
        far_bytes: machines.iter().map(|machine| machine.sent_bytes).sum(),
        most_scratch: machines
            .iter()
            .map(|machine| machine.schedule.scratch_bytes())
            .max()
            .unwrap_or(0),
        targets: machines
            .into_iter()
            .map(|machine| machine.areas[1].clone())
            .collect(),
    }
}

/// Whether a member has come to a receive.
fn awaits(machine: &Machine, sender: u32, number: u32) -> bool {
    machine.open.iter().any(|at| {
        let step = machine.schedule.messages(machine.round)[*at];
        matches!(step, Step::Receive { from, tag, .. } if from == sender && tag == number)
    })
}
