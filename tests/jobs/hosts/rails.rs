//! Hosts with two networks between them: large transfers use both, and go on over one when the
//! other fails.

use std::time::{Duration, Instant};

use argonet::{Reduction, SharedArray, World};

use super::over;
use super::storm::{goes_on, rounds, until_input_ends};
use crate::network::Network;
use crate::support::{Done, Pattern, Talk};

/// Bytes that a rank puts to its peer in a round, and gets back.
const BYTES: usize = 4 << 20;

/// So many bytes over a network are payload, not other traffic.
const MUCH: u64 = 2 << 20;

/// Rounds until rank 0's standard input ends: every rank puts to the next one, overwrites the
/// source, and counts there.
pub(super) fn rails() -> Done {
    let world = World::init()?;
    let (me, next) = (u64::from(world.rank().0), world.rank_offset(1));
    let ends = until_input_ends(&world);
    let pattern = Pattern::new();
    let part = SharedArray::<u8>::alloc(&world, BYTES)?;
    let counts = SharedArray::<u64>::alloc(&world, 1)?;
    let content = |round: u64, rank: u64| {
        let piece = pattern.piece(round * 10 + rank, Pattern::LONGEST);
        piece.repeat(BYTES / Pattern::LONGEST)
    };
    world.barrier()?;
    for round in 0u64.. {
        let begun = Instant::now();
        if !goes_on(&world, &ends)? {
            break;
        }
        let mut source = content(round, me);
        world.put_from(part.on(next), &source)?;
        // It is this program's again.
        source.fill(0xee);
        world.fetch_add(counts.ptr(next, 0), 1)?;
        let back = world.get(part.on(next))?.wait()?;
        assert!(*back == *content(round, me), "round {round}");
        world.barrier()?;
        assert_eq!(counts.read(&world, 0), round + 1);
        let mut sum = [round];
        world.reduce_all(Reduction::Sum, &mut sum)?;
        assert_eq!(sum, [round * u64::from(world.size())]);
        if me == 0 {
            eprintln!("round {round} took {} us", begun.elapsed().as_micros());
        }
    }
    Ok(world.finalize()?)
}

/// Bytes that have come to a host over one of its networks.
pub(super) fn come(network: &Network, host: &str, card: &str) -> u64 {
    let file = format!("cat /sys/class/net/{card}/statistics/rx_bytes");
    let text = network.on(host, &file);
    text.trim().parse().expect("a number of bytes")
}

/// Goes on until much has come over both networks; the test's watchdog bounds it.
fn until_both_are_used(network: &Network, talk: &mut Talk<'_>) {
    for card in ["eth0", "eth1"] {
        let before = come(network, "b", card);
        while come(network, "b", card) < before + MUCH {
            rounds(talk, 1);
        }
    }
}

pub(super) fn one_of_two_fails() {
    let network = Network::of(&["a", "b"], 2);
    // So slow that two are faster than one, under any load of the machine.
    for (host, card) in [("a", "eth0"), ("a", "eth1"), ("b", "eth0"), ("b", "eth1")] {
        network.limit(host, card, "500mbit");
    }
    let job = over(&network, 2, "a,b", "rails");
    let outcome = job.run_with(|talk| {
        rounds(talk, 2);
        until_both_are_used(&network, talk);
        // Lost connections are made anew over the network that is left, in the second round the one
        // that was healed.
        for (cut, left) in [("eth1", "eth0"), ("eth0", "eth1")] {
            let rule = format!("iifname \"{cut}\" meta l4proto tcp counter reject with tcp reset");
            let (begun, before) = (Instant::now(), come(&network, "b", left));
            network.filter("b", &rule);
            network.wait_until_struck("b", 2);
            let broken = begun.elapsed();
            let mut longest = Duration::ZERO;
            // The watchdog bounds it.
            while come(&network, "b", left) < before + MUCH {
                longest = longest.max(rounds(talk, 1));
            }
            rounds(talk, 3);
            network.heal("b");
            eprintln!("{cut} cut: hit after {broken:?}, the longest round took {longest:?}");
        }
    });
    outcome.ended_well();
}
