//! Hosts with two networks and a rail over each, of the same kind or of two: messages go on over
//! the one that is left, and go back to the better one.
//!
//! The programs compare every byte.

use std::time::{Duration, Instant};

use super::over;
use super::rails::come;
use super::storm::rounds;
use crate::network::Network;
use crate::support::Talk;

/// So many bytes over a network are messages of the job, not other traffic.
const MUCH: u64 = 200_000;

/// How a network fails for host b, and how that ends.
struct Fault {
    name: &'static str,
    begins: fn(&Network),
    ends: fn(&Network),
}

/// All that comes over the first network is dropped, without a word.
const BLACK_HOLE: Fault = Fault {
    name: "black hole",
    begins: |network| network.filter("b", "iifname \"eth0\" counter drop"),
    ends: |network| network.heal("b"),
};

/// The first network is pulled out.
const DOWN: Fault = Fault {
    name: "link down",
    begins: |network| _ = network.on("b", "ip link set eth0 down"),
    ends: |network| _ = network.on("b", "ip link set eth0 up"),
};

/// Connections of the first network end with an error.
const RESET: Fault = Fault {
    name: "reset",
    begins: |network| {
        let rule = "iifname \"eth0\" meta l4proto tcp counter reject with tcp reset";
        network.filter("b", rule);
    },
    ends: |network| network.heal("b"),
};

/// Goes on until much has come over a network; the test's watchdog bounds it.
fn until_used(network: &Network, talk: &mut Talk<'_>, card: &str) {
    let before = come(network, "b", card);
    while come(network, "b", card) < before + MUCH {
        rounds(talk, 1);
    }
}

/// Breaks the first network several times under a program that compares every byte.
fn under(rails: &str, program: &str, faults: &[Fault]) {
    let network = Network::of(&["a", "b"], 2);
    let job = over(&network, 2, "a,b", program).env("ARGONET_RAILS", rails);
    let outcome = job.run_with(|talk| {
        until_used(&network, talk, "eth0");
        for fault in faults {
            let begun = Instant::now();
            (fault.begins)(&network);
            until_used(&network, talk, "eth1");
            let broken = begun.elapsed();
            // Rounds that were reported before, and the one that was hit.
            let mut longest = Duration::ZERO;
            while longest < Duration::from_millis(20) && longest < broken / 4 {
                longest = longest.max(rounds(talk, 1));
            }
            rounds(talk, 3);
            (fault.ends)(&network);
            let healed = Instant::now();
            until_used(&network, talk, "eth0");
            eprintln!(
                "{rails}, {}: goes on {broken:?} after it began, the longest round took {longest:?}; back {:?} after it ended",
                fault.name,
                healed.elapsed()
            );
        }
    });
    outcome.ended_well();
}

pub(super) fn of_connections() {
    under("tcp:eth0,tcp:eth1", "stress", &[RESET, BLACK_HOLE, DOWN]);
}

pub(super) fn of_two_kinds() {
    under("usnic:eth0,tcp:eth1", "stress", &[BLACK_HOLE, DOWN]);
    under(
        "tcp:10.71.0.0/24,usnic:10.71.1.0/24",
        "storm-over-hosts",
        &[RESET, DOWN],
    );
}

pub(super) fn of_datagrams() {
    under(
        "usnic:eth0,usnic:eth1",
        "storm-over-hosts",
        &[BLACK_HOLE, DOWN],
    );
}
