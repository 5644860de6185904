//! Datagrams between two endpoints of the reliable layer, on a wire that the input steers.
//!
//! They are not sealed: an input of invented bytes could not get further otherwise.

use argonet_base::JobRank;
use argonet_nic::reliable::{Channel, Endpoint, ReliableConfig};
use core::time::Duration;

const CONFIG: ReliableConfig = ReliableConfig {
    datagram_bytes: 400,
    longer_datagrams: &[600],
    window_bytes: 8 * 600,
    first_rto: Duration::from_millis(10),
    least_rto: Duration::from_millis(5),
    most_rto: Duration::from_millis(100),
    ack_delay: Duration::from_millis(2),
    probe_after: Duration::from_millis(50),
    give_up_after: Duration::from_secs(1),
    unheard_after: Duration::from_secs(1),
    stopped_for: Duration::from_secs(3),
    is_patient: false,
};

struct Pair {
    ends: [Endpoint; 2],
    now: Duration,
    accept: bool,
}

impl Pair {
    fn new() -> Self {
        let end = |rank: u32| {
            let end = Endpoint::new(CONFIG, JobRank(rank), u64::from(rank) + 1, None, 2);
            let mut end = end.expect("an endpoint of these sizes");
            let peer = 1 - rank;
            let known = end.know(JobRank(peer), u64::from(peer) + 1);
            known.expect("a peer");
            end
        };
        Self {
            ends: [end(0), end(1)],
            now: Duration::ZERO,
            accept: true,
        }
    }

    /// The next datagram of an end.
    fn sent(&mut self, end: usize) -> Option<Vec<u8>> {
        let transmit = self.ends[end].poll_transmit(self.now)?;
        assert!(transmit.bytes.len() <= 600);
        assert_eq!(transmit.peer, JobRank(1 - end as u32));
        Some(transmit.bytes.to_vec())
    }

    fn arrives(&mut self, end: usize, bytes: &mut [u8]) {
        let accept = self.accept;
        let arrived = self.ends[end].handle_recv(self.now, bytes, |_, _| accept);
        let Some(arrived) = arrived else { return };
        assert_eq!(arrived.peer, JobRank(1 - end as u32));
        if let Some(record) = arrived.record {
            assert!(accept && record.end <= bytes.len());
        }
    }
}

/// The next event, with two numbers; then the rest.
pub(crate) fn run(data: &[u8]) {
    let mut pair = Pair::new();
    let mut left = data;
    while let [what, a, b, rest @ ..] = left {
        left = rest;
        let end = usize::from(what & 1);
        let peer = JobRank(1 - end as u32);
        let channel = Channel::BOTH[usize::from(what >> 4 & 1)];
        match what >> 1 & 7 {
            0 => {
                let len = usize::from(*a) + usize::from(*b);
                let at = &mut pair.ends[end];
                let room = at.room(peer, channel) && len <= CONFIG.most_record_bytes(false);
                let done = at.submit(pair.now, peer, channel, len, |place| place.fill(*a));
                assert_eq!(done.is_ok(), room, "{done:?}");
            }
            1 => {
                if let Some(mut bytes) = pair.sent(end) {
                    pair.arrives(1 - end, &mut bytes);
                }
            }
            2 => {
                if let Some(mut bytes) = pair.sent(end) {
                    let at = usize::from(*a) % bytes.len();
                    bytes[at] ^= b;
                    pair.arrives(1 - end, &mut bytes);
                }
            }
            3 => drop(pair.sent(end)),
            4 => {
                pair.now += Duration::from_millis(u64::from(*a) * u64::from(*b));
                pair.ends[end].handle_timeout(pair.now);
                if let Some(doubt) = pair.ends[end].poll_doubt() {
                    assert_eq!(doubt.peer, peer);
                }
                if let Some(lost) = pair.ends[end].poll_event() {
                    assert_eq!(lost.peer, peer);
                }
            }
            5 => {
                let (bytes, behind) = left.split_at(usize::from(*a).min(left.len()));
                left = behind;
                pair.arrives(end, &mut bytes.to_vec());
            }
            6 => {
                if let Some(record) = pair.ends[end].take(pair.now, peer, channel) {
                    assert!(record.bytes().len() <= CONFIG.record_bytes(false));
                    pair.ends[end].recycle(record);
                }
            }
            _ => {
                pair.accept = a & 1 == 0;
                pair.ends[end].watch(pair.now, peer, b & 1 == 0);
                match b >> 1 & 3 {
                    0 => {}
                    1 => pair.ends[end].end_asking(peer),
                    full => pair.ends[end].ask(pair.now, peer, full == 3),
                }
                if b >> 3 & 1 == 1 {
                    pair.ends[end].refuse(pair.now, peer);
                }
            }
        }
    }
    for end in 0..2 {
        while pair.sent(end).is_some() {}
    }
}
