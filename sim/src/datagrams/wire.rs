//! Interfaces that send datagrams one after the other, and the wire between them.

use super::shape::WireShape;
use crate::random::Random;
use argonet_nic::reliable::Channel;
use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

/// A datagram and the rank that it goes to.
type Sent = (u32, Vec<u8>);

/// The interface of a rank.
#[derive(Default)]
struct Interface {
    /// What waits to be sent, by channel.
    queues: [VecDeque<Sent>; 2],
    /// Until when it sends what it has begun.
    busy_until: Option<Duration>,
}

impl Interface {
    fn next(&mut self) -> Option<Sent> {
        let [command, data] = &mut self.queues;
        command.pop_front().or_else(|| data.pop_front())
    }
}

/// When a datagram arrives, its number, its target, its bytes.
type OnItsWay = (Duration, u64, u32, Vec<u8>);

/// All interfaces, and datagrams on their way.
pub(super) struct Wire {
    shape: WireShape,
    random: Random,
    interfaces: Vec<Interface>,
    on_its_way: BinaryHeap<Reverse<OnItsWay>>,
    count: u64,
}

impl Wire {
    pub(super) fn new(shape: WireShape, ranks: u32, seed: u64) -> Self {
        Self {
            shape,
            random: Random::fork(seed, 1),
            interfaces: (0..ranks).map(|_| Interface::default()).collect(),
            on_its_way: BinaryHeap::new(),
            count: 0,
        }
    }

    /// No faults from now on.
    pub(super) fn mend(&mut self) {
        self.shape = WireShape {
            delay: 0,
            drop: 0,
            duplicate: 0,
            corrupt: 0,
            mtus: &[],
            ..self.shape
        };
    }

    /// A rank gives its interface a datagram.
    pub(super) fn send(&mut self, now: Duration, from: u32, queue: Channel, to: Sent) {
        let queue = match self.shape.has_two_queues {
            true => queue,
            false => Channel::Data,
        };
        if let Some(interface) = self.interfaces.get_mut(from as usize) {
            interface.queues[queue.index()].push_back(to);
        }
        self.go_on(now, from);
    }

    /// An interface begins with its next datagram, if it has ended with the one before.
    fn go_on(&mut self, now: Duration, from: u32) {
        let Some(interface) = self.interfaces.get_mut(from as usize) else {
            return;
        };
        if interface.busy_until.is_some_and(|until| until > now) {
            return;
        }
        let Some((to, bytes)) = interface.next() else {
            return;
        };
        let each = self.shape.ns_per_kilobyte * bytes.len() as u64 / 1000;
        let sent = now + Duration::from_nanos(each.max(1));
        interface.busy_until = Some(sent);
        self.pass(sent, to, bytes);
    }

    /// A datagram passes the wire, or does not.
    fn pass(&mut self, sent: Duration, to: u32, bytes: Vec<u8>) {
        let shape = self.shape;
        let copies = 1 + u32::from(self.random.chance(shape.duplicate));
        for _ in 0..copies {
            if bytes.len() > shape.mtu_at(sent) || self.random.chance(shape.drop) {
                continue;
            }
            let mut bytes = bytes.clone();
            if self.random.chance(shape.corrupt) {
                let bit = self.random.index(8 * bytes.len());
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            let late_ns = match self.random.chance(shape.delay) {
                true => self.random.range(0, shape.late.as_nanos() as u64),
                false => 0,
            };
            self.count += 1;
            let arrives = sent + shape.trip + Duration::from_nanos(late_ns);
            let arrival = (arrives, self.count, to, bytes);
            self.on_its_way.push(Reverse(arrival));
        }
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<Duration> {
        let arrives = self.on_its_way.peek().map(|Reverse((at, ..))| *at);
        let waits = |interface: &&Interface| interface.queues.iter().any(|queue| !queue.is_empty());
        let interfaces = self.interfaces.iter().filter(waits);
        let ends = interfaces.filter_map(|interface| interface.busy_until);
        arrives.into_iter().chain(ends).min()
    }

    /// Interfaces go on to a time; the next datagram that has arrived by then.
    pub(super) fn arrived(&mut self, now: Duration) -> Option<Sent> {
        for from in 0..self.interfaces.len() as u32 {
            self.go_on(now, from);
        }
        let Reverse((at, ..)) = self.on_its_way.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((_, _, to, bytes)) = self.on_its_way.pop()?;
        Some((to, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two copies of a datagram each has a change of its own, or none.
    #[test]
    fn a_copy_of_a_datagram_has_one_changed_bit_at_most() {
        let shape = WireShape {
            duplicate: 1_000_000,
            corrupt: 500_000,
            ..WireShape::GOOD
        };
        let mut wire = Wire::new(shape, 2, 1);
        (0..100).for_each(|_| wire.send(Duration::ZERO, 0, Channel::Data, (1, vec![0; 100])));
        let mut changed = [0; 2];
        while let Some(now) = wire.next() {
            while let Some((_, bytes)) = wire.arrived(now) {
                let bits: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
                assert!(bits <= 1, "{bits} bits are changed");
                changed[bits as usize] += 1;
            }
        }
        assert_eq!(changed.iter().sum::<u32>(), 200);
        assert!(changed.iter().all(|count| *count > 50), "{changed:?}");
    }
}
