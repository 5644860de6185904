//! Endpoints in virtual time, over wires of every kind.

mod acks;
mod channels;
mod hostile;
mod mtu;
mod paths;
mod span;
mod times;
mod wire;
mod worst;

use super::{Endpoint, ReliableConfig, Seal};
use argonet_base::JobRank;
use core::time::Duration;

/// The nth rank's incarnation; the streams of rank 0 begin just before the end of numbers.
const INCARNATIONS: [u64; 3] = [0xffff_fff0, 0x1234_5678_0000_0001, 77];

/// Short datagrams, and times that a test sees through.
const CONFIG: ReliableConfig = ReliableConfig {
    datagram_bytes: 1000,
    longer_datagrams: &[],
    window_bytes: 40_000,
    first_rto: Duration::from_millis(100),
    least_rto: Duration::from_millis(10),
    most_rto: Duration::from_secs(1),
    ack_delay: Duration::from_millis(2),
    probe_after: Duration::from_secs(1),
    give_up_after: Duration::from_secs(5),
    unheard_after: Duration::from_secs(5),
    stopped_for: Duration::ZERO,
    is_patient: false,
};

const FROM: JobRank = JobRank(0);
const TO: JobRank = JobRank(1);

fn endpoint(config: ReliableConfig, rank: u32, ranks: u32, seal: Option<&Seal>) -> Endpoint {
    let incarnation = INCARNATIONS[rank as usize];
    let mut endpoint =
        Endpoint::new(config, JobRank(rank), incarnation, seal.cloned(), ranks).unwrap();
    for peer in (0..ranks).filter(|peer| *peer != rank) {
        let incarnation = INCARNATIONS[peer as usize];
        endpoint.know(JobRank(peer), incarnation).unwrap();
    }
    endpoint
}
