//! Jobs over several hosts, which are network namespaces, by the conduit tcp where a test names no
//! other.

mod ending;
mod failover;
mod links;
mod losses;
mod mtu;
mod paths;
mod rails;
mod replayed;
mod storm;
mod strangers;
mod stress;

use crate::network::Network;
use crate::support::{Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[
    ("hosts_programs_of_all_kinds_over_two_to_four", programs),
    ("hosts_storm_over_connections_that_are_cut", storm::cut),
    ("hosts_storm_over_a_network_that_swallows", storm::swallowed),
    ("hosts_killed_rank_agent_and_launcher", ending::killed),
    (
        "hosts_strangers_at_the_doors_of_a_job",
        strangers::at_the_doors,
    ),
    (
        "hosts_strangers_with_an_old_handshake",
        replayed::said_again,
    ),
    (
        "hosts_large_puts_over_each_of_two_networks_and_both",
        links::of_one_rate,
    ),
    (
        "hosts_large_puts_over_networks_of_two_rates",
        links::of_two_rates,
    ),
    ("hosts_datagrams_follow_the_mtu", mtu::followed),
    (
        "hosts_paths_of_datagrams_are_checked_at_the_start",
        paths::at_the_start,
    ),
    (
        "hosts_paths_of_datagrams_are_checked_at_the_first_use",
        paths::at_the_first_use,
    ),
    ("hosts_datagrams_come_to_ports_of_the_setting", paths::ports),
    ("hosts_one_of_two_networks_fails", rails::one_of_two_fails),
    (
        "hosts_failover_between_connections",
        failover::of_connections,
    ),
    ("hosts_failover_between_two_kinds", failover::of_two_kinds),
    ("hosts_failover_between_datagrams", failover::of_datagrams),
    ("hosts_failover_again_and_again", failover::again_and_again),
    (
        "hosts_failover_to_another_address",
        failover::of_another_address,
    ),
    (
        "hosts_failover_of_a_stopped_rank",
        failover::of_a_stopped_rank,
    ),
    ("hosts_failover_of_all_rails", failover::of_all_rails),
    ("hosts_lost_ranks", losses::of_ranks),
    ("hosts_lost_host", losses::of_a_host),
    (
        "hosts_lost_host_without_network",
        losses::of_a_host_without_network,
    ),
    (
        "hosts_failover_over_rails_that_cannot_be",
        failover::refused,
    ),
    (
        "hosts_stress_with_connections_cut_at_random",
        stress::cut_at_random,
    ),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("storm-over-hosts", storm::storm),
    ("strangers", strangers::strangers),
    ("eavesdropper", replayed::eavesdropper),
    ("links", links::links),
    ("pairs", paths::pairs),
    ("rails", rails::rails),
    ("stress", stress::stress),
];

/// A program over hosts of a network, such as `a:2,b:2`.
fn over(network: &Network, ranks: u32, hosts: &str, program: &str) -> Job {
    let job = Job::over(ranks, hosts, program);
    job.env("GASNET_CSPAWN_CMD", &network.template())
}

/// Programs that other tests run on one host.
fn programs() {
    let network = Network::new(&["a", "b", "c", "d"]);
    for (ranks, hosts) in [(2, "a,b"), (4, "a,b,c,d")] {
        over(&network, ranks, hosts, "replies").run().well();
    }
    // Every message goes over the wire.
    let job = over(&network, 3, "a:2,b", "combine").env("GASNET_SUPERNODE_MAXSIZE", "1");
    job.run().well();
}
