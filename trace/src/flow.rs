//! Finds the message that a handler runs for: messages between two ranks arrive in order, so both
//! sides count.

use std::sync::{Mutex, PoisonError};

/// Requests and replies are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A request.
    Request,
    /// A reply.
    Reply,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its sender.
    pub from: u32,
    /// Its receiver.
    pub to: u32,
    /// Request or reply.
    pub way: Way,
    /// How many came before it, from this sender to this receiver.
    pub number: u64,
}

impl Flow {
    /// A number that no other message of the job is likely to have: viewers know messages by it.
    #[must_use]
    pub fn id(&self) -> u64 {
        let way = u64::from(self.way == Way::Reply);
        let ranks = u64::from(self.from) << 32 | u64::from(self.to);
        mixed(mixed(ranks) ^ (self.number << 1 | way))
    }
}

/// A bijection that leaves no pattern (the finalizer of splitmix64).
const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Counts of messages sent to and received from one peer, requests and replies apart.
#[derive(Default)]
pub(crate) struct Passed {
    sent: [Mutex<u64>; 2],
    received: [Mutex<u64>; 2],
}

impl Passed {
    /// Sends by `send`; the number of the message, if it was sent.
    ///
    /// Threads take turns, so that numbers are in the order of the messages.
    pub(crate) fn send<R, E>(
        &self,
        way: Way,
        send: impl FnOnce() -> Result<R, E>,
    ) -> Result<(R, u64), E> {
        let mut next = self.sent[way as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sent = send()?;
        let number = *next;
        *next += 1;
        Ok((sent, number))
    }

    /// The number of a message that has come.
    pub(crate) fn receive(&self, way: Way) -> u64 {
        let mut next = self.received[way as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let number = *next;
        *next += 1;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsent_messages_are_not_counted() {
        let passed = Passed::default();
        assert_eq!(passed.send(Way::Request, || Ok::<_, ()>('a')), Ok(('a', 0)));
        assert_eq!(
            passed.send(Way::Request, || Err::<(), _>("full")),
            Err("full")
        );
        assert_eq!(passed.send(Way::Request, || Ok::<_, ()>('b')), Ok(('b', 1)));
        assert_eq!(passed.send(Way::Reply, || Ok::<_, ()>('c')), Ok(('c', 0)));
        assert_eq!(
            [passed.receive(Way::Reply), passed.receive(Way::Reply)],
            [0, 1]
        );
        assert_eq!(passed.receive(Way::Request), 0);
    }

    #[test]
    fn ids_differ() {
        let mut seen = std::collections::BTreeSet::new();
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1 << 31, 7)] {
            for way in [Way::Request, Way::Reply] {
                for number in 0..1000 {
                    let flow = Flow {
                        from,
                        to,
                        way,
                        number,
                    };
                    assert!(seen.insert(flow.id()), "{flow:?}");
                }
            }
        }
    }
}
