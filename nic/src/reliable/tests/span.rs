//! Windows of thousands of datagrams, over the end of numbers.

use super::{FROM, TO, endpoint};
use crate::reliable::{Channel, Endpoint, ReliableConfig};
use argonet_base::JobRank;
use core::time::Duration;

const CONFIG: ReliableConfig = ReliableConfig {
    // A short datagram counts 768 bytes.
    window_bytes: 4096 * 768 + 1000,
    ..super::CONFIG
};

struct Pair {
    from: Endpoint,
    to: Endpoint,
    now: Duration,
    submitted: u64,
    /// Records that have come, each of which is its number.
    came: u64,
}

impl Pair {
    /// Numbers of the first one's stream begin with `first`.
    fn new(first: u32) -> Self {
        let incarnation = 1 << 32 | u64::from(first ^ 1);
        let end = |rank, own, peer: JobRank, other| {
            let mut end = Endpoint::new(CONFIG, rank, own, None, 2).unwrap();
            end.know(peer, other).unwrap();
            end
        };
        Self {
            from: end(FROM, incarnation, TO, 7),
            to: end(TO, 7, FROM, incarnation),
            now: Duration::ZERO,
            submitted: 0,
            came: 0,
        }
    }

    fn came(&mut self, record: &[u8]) {
        assert_eq!(record, self.came.to_le_bytes());
        self.came += 1;
    }

    /// Sends what is due, without the datagrams that are to be lost; how many were sent, how many
    /// lost.
    fn transmit(&mut self, is_lost: impl Fn(usize) -> bool) -> (usize, usize) {
        let (mut sent, mut lost) = (0, 0);
        while let Some(transmit) = self.from.poll_transmit(self.now) {
            sent += 1;
            if is_lost(sent - 1) {
                lost += 1;
                continue;
            }
            let mut bytes = transmit.bytes.to_vec();
            let arrived = self.to.handle_recv(self.now, &mut bytes, |_, _| true);
            if let Some(record) = arrived.expect("good").record {
                self.came(&bytes[record]);
            }
            while let Some(record) = self.to.take(self.now, FROM, Channel::Data) {
                self.came(record.bytes());
                self.to.recycle(record);
            }
        }
        (sent, lost)
    }

    /// Fills the window and sends it as above.
    fn flight(&mut self, is_lost: impl Fn(usize) -> bool) -> (usize, usize) {
        let (mut sent, mut lost) = (0, 0);
        while self.from.room(TO, Channel::Data) {
            while self.from.room(TO, Channel::Data) {
                let number = self.submitted.to_le_bytes();
                let fill = |place: &mut [u8]| place.copy_from_slice(&number);
                self.from
                    .submit(self.now, TO, Channel::Data, 8, fill)
                    .unwrap();
                self.submitted += 1;
            }
            let more = self.transmit(|at| is_lost(sent + at));
            (sent, lost) = (sent + more.0, lost + more.1);
        }
        (sent, lost)
    }

    /// The next datagram of the other one arrives, if it has any.
    fn answer(&mut self) -> bool {
        let transmit = self.to.poll_transmit(self.now);
        let Some(mut bytes) = transmit.map(|transmit| transmit.bytes.to_vec()) else {
            return false;
        };
        self.now += Duration::from_micros(100);
        let arrived = self.from.handle_recv(self.now, &mut bytes, |_, _| true);
        arrived.expect("good");
        true
    }

    fn acknowledge(&mut self) {
        self.to.flush();
        while self.answer() {}
    }

    /// One whose congestion window has grown to the whole window.
    fn grown(first: u32) -> Self {
        let mut pair = Self::new(first);
        for _ in 0..20 {
            let (sent, _) = pair.flight(|_| false);
            pair.acknowledge();
            if sent == 4096 {
                assert!(pair.from.is_drained());
                return pair;
            }
        }
        panic!("the window has not grown");
    }
}

/// spec U4: whatever is lost of a full window is sent again, once, and nothing else is.
#[test]
fn losses_of_a_full_window_are_named_one_by_one_over_the_end_of_numbers() {
    let before = Pair::grown(0).submitted as u32;
    let patterns: [fn(usize) -> bool; 4] = [
        |at| at == 0,
        |at| at % 3 == 0 || (1000..2000).contains(&at),
        |at| (100..3000).contains(&at),
        |at| at % 2 == 1,
    ];
    for (n, pattern) in patterns.into_iter().enumerate() {
        // The end lies within the window.
        let mut pair = Pair::grown(0_u32.wrapping_sub(before + 2100));
        // Without the last ones, whose loss only a timer finds.
        let (sent, lost) = pair.flight(|at| at < 4090 && pattern(at));
        assert_eq!(sent, 4096);
        // A command that goes back does not name what was kept of data: so nothing is judged.
        let empty = pair.to.submit(pair.now, FROM, Channel::Command, 0, |_| {});
        empty.unwrap();
        assert!(pair.answer());
        assert_eq!(pair.transmit(|_| false), (0, 0), "pattern {n}");
        for _ in 0..100 {
            pair.acknowledge();
            pair.transmit(|_| false);
        }
        assert_eq!(pair.came, pair.submitted, "pattern {n}");
        let [from, to] = [pair.from.counts(), pair.to.counts()];
        assert_eq!(from.sent_again, lost as u64, "pattern {n}");
        assert_eq!((to.repeated, to.no_room, to.impossible), (0, 0, 0));
        assert!(pair.from.is_drained());
    }
}

/// Sizes whose acknowledgements have no room for 4,096 bits.
#[test]
fn windows_of_short_datagrams_are_as_long_as_acknowledgements_name() {
    let config = ReliableConfig {
        datagram_bytes: 344,
        window_bytes: 4 << 20,
        ..CONFIG
    };
    let mut end = endpoint(config, 0, 2, None);
    let mut other = endpoint(config, 1, 2, None);
    let mut now = Duration::ZERO;
    let mut is_grown = false;
    for _ in 0..20 {
        let mut sent = 0;
        while end.room(TO, Channel::Data) {
            end.submit(now, TO, Channel::Data, 8, |_| {}).unwrap();
            sent += 1;
            let bytes = end.poll_transmit(now).unwrap().bytes.to_vec();
            // The first one is lost at last, so that all others are kept.
            if sent > 1 || !is_grown {
                other.handle_recv(now, &mut bytes.clone(), |_, _| true);
            }
        }
        let acknowledgement = other.poll_transmit(now).unwrap().bytes.to_vec();
        assert!(acknowledgement.len() <= 344, "{sent}");
        end.handle_recv(now, &mut acknowledgement.clone(), |_, _| true);
        while !end.is_drained() {
            now += Duration::from_millis(1);
            while let Some(transmit) = end.poll_transmit(now) {
                other.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
            }
            while other.take(now, FROM, Channel::Data).is_some() {}
            other.flush();
            while let Some(transmit) = other.poll_transmit(now) {
                end.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
            }
        }
        if is_grown {
            assert_eq!((sent, end.counts().sent_again), (2048, 1));
            return;
        }
        is_grown = sent == 2048;
    }
    panic!("the window has not grown");
}
