//! Exactly once and in order, over a wire with any faults.
//!
//! Many seeds:
//! `PROPTEST_CASES=100000 cargo test -p argonet-nic --release --lib reliable::tests::worst`.

use super::wire::{Faults, World, record};
use crate::reliable::{Channel, PeerUnreachable, ReliableConfig, Seal};
use argonet_base::JobRank;
use core::time::Duration;
use proptest::prelude::*;

/// How long faults last, and how long everything may take behind them.
const FAULTS_LAST: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(60);

fn config(datagram_bytes: usize, windows: usize) -> ReliableConfig {
    ReliableConfig {
        datagram_bytes,
        longer_datagrams: &[1500, 2000],
        window_bytes: datagram_bytes * windows,
        // Faults as above are no reason to give up.
        give_up_after: Duration::from_secs(30),
        unheard_after: Duration::from_secs(30),
        stopped_for: Duration::ZERO,
        is_patient: false,
        ..ReliableConfig::default()
    }
}

/// Every rank sends `records` on each channel to every other, as room and chance permit.
fn run(mut world: World, records: u64, sealed: bool, config: &ReliableConfig) {
    let ranks = world.ends.len();
    let most = match world.faults.mtu {
        0 => config.record_bytes(sealed),
        _ => config.most_record_bytes(sealed),
    };
    let mut sent = vec![vec![[0; 2]; ranks]; ranks];
    let pairs: Vec<_> = (0..ranks)
        .flat_map(|a| (0..ranks).map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
        .collect();
    let both = |pair| Channel::BOTH.map(|channel| (pair, channel));
    let streams: Vec<_> = pairs.iter().copied().flat_map(both).collect();
    loop {
        for ((from, to), channel) in streams.iter().copied() {
            let peer = JobRank(to as u32);
            let n = &mut sent[from][to][channel.index()];
            let mut burst = world.random(6);
            while *n < records && burst > 0 && world.ends[from].room(peer, channel) {
                let bytes = record((from, to), channel, *n, most);
                let now = world.now;
                let fill = |place: &mut [u8]| place.copy_from_slice(&bytes);
                let end = &mut world.ends[from];
                let submitted = end.submit(now, peer, channel, bytes.len(), fill);
                submitted.expect("there is room");
                *n += 1;
                burst -= 1;
            }
        }
        // The path changes.
        if world.faults.mtu != 0 && world.random(50) == 0 {
            world.faults.mtu = config.datagram_bytes + world.random(8000) as usize;
        }
        // A rank that does not take records for a while.
        let slow = world.random(ranks as u64) as usize;
        world.accepts[slow] = world.random(4) != 0;
        for peer in 0..ranks {
            world.take(slow, peer);
        }
        if world.now > FAULTS_LAST {
            world.faults = Faults::default();
            world.accepts.fill(true);
            for (to, from) in pairs.iter().copied() {
                world.take(to, from);
            }
        }
        let got: usize = world.got.iter().flatten().flatten().map(Vec::len).sum();
        if got as u64 == records * streams.len() as u64 && world.ends.iter().all(|e| e.is_drained())
        {
            break;
        }
        let until = world.now + Duration::from_millis(1);
        world.step(until);
        if world.now < until && world.random(3) == 0 {
            world.run(until);
        }
        assert!(
            world.now < LIMIT,
            "{got} records, and no more come: {sent:?}"
        );
    }
    for (pair, channel) in streams {
        let got = &world.got[pair.1][pair.0][channel.index()];
        assert_eq!(got.len() as u64, records, "{pair:?} {channel:?}");
        for (n, bytes) in got.iter().enumerate() {
            assert_eq!(*bytes, record(pair, channel, n as u64, most), "record {n}");
        }
    }
    let lost: Vec<PeerUnreachable> = world
        .ends
        .iter_mut()
        .filter_map(|e| e.poll_event())
        .collect();
    assert_eq!(lost, []);
}

proptest! {
    /// spec U4: numbers and acknowledgements.
    #[test]
    fn every_record_arrives_once_and_in_order(
        seed: u64,
        ranks in 2_u32..=3,
        sealed in 0_usize..3,
        datagram_bytes in 344_usize..1500,
        windows in 1_usize..40,
        records in 1_u64..200,
        drop in 0_u64..400,
        duplicate in 0_u64..300,
        corrupt in 0_u64..100,
        jitter_us in 0_u64..20_000,
        changes: bool,
    ) {
        let config = config(datagram_bytes, windows);
        let seals = [Seal::from_secret, Seal::encrypting];
        let seal = sealed.checked_sub(1).map(|kind| seals[kind](b"of this job"));
        // Ciphers are slow where they are not optimized, and the rest of the work is the same.
        let records = if sealed == 2 { records.div_ceil(4) } else { records };
        let sealed = seal.is_some();
        let mut world = World::new(config, ranks, seal.as_ref(), seed);
        // Without a code, a changed bit is not found.
        let corrupt = if sealed { corrupt } else { 0 };
        let mtu = if changes { datagram_bytes } else { 0 };
        world.faults = Faults { drop, duplicate, corrupt, jitter_us, mtu };
        run(world, records, sealed, &config);
    }
}

/// Numbers pass the end of 32 bits early in the streams of rank 0; here they do so by many windows.
#[test]
fn streams_are_longer_than_windows_and_numbers_wrap() {
    let config = config(400, 64);
    let mut world = World::new(config, 2, None, 1);
    world.faults = Faults {
        drop: 20,
        duplicate: 20,
        jitter_us: 200,
        ..Faults::default()
    };
    run(world, 3000, false, &config);
}
