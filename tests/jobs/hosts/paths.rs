//! Networks that carry no datagrams, some in one direction only, or no long ones: the job ends soon
//! with an error that names both ends.

use std::time::{Duration, Instant};

use argonet::{SharedArray, World};

use crate::network::Network;
use crate::support::{Done, Job, Outcome};

/// A peer that does not acknowledge a record ends a job after 20 s.
const SOON: Duration = Duration::from_secs(19);

const UDP: &str = "meta l4proto udp";

/// What a rank prints that has started.
const STARTED: &str = "started";

/// Each rank counts at all others.
pub(super) fn pairs() -> Done {
    let world = World::init()?;
    eprintln!("{STARTED}");
    let counts = SharedArray::<u64>::alloc(&world, 1)?;
    world.barrier()?;
    for to in world.ranks() {
        world.fetch_add(counts.ptr(to, 0), 1)?;
    }
    world.barrier()?;
    assert_eq!(counts.read(&world, 0), u64::from(world.size()));
    Ok(world.finalize()?)
}

fn over(network: &Network, ranks: u32, hosts: &str) -> Job {
    let job = Job::over_conduit("usnic", ranks, hosts, "pairs");
    job.env("GASNET_CSPAWN_CMD", &network.template())
}

/// A job that cannot start, on hosts a and b.
fn fails(network: &Network, parts: &[&str]) {
    let begun = Instant::now();
    // A path may be silent for a second then.
    let job = over(network, 2, "a,b").env("ARGONET_START_TIMEOUT", "12");
    let outcome = job.run();
    assert!(
        begun.elapsed() < SOON,
        "{:?}: {outcome:#?}",
        begun.elapsed()
    );
    assert!(!outcome.err.contains(STARTED), "{outcome:#?}");
    let ends = [
        "the conduit usnic cannot be set up",
        "(UDP 10.71.0.1:",
        "(UDP 10.71.0.2:",
    ];
    outcome.failed(&ends).says(parts);
}

/// spec U10
pub(super) fn at_the_start() {
    let network = Network::new(&["a", "b"]);
    let firewall = "let UDP pass the firewalls of both hosts";
    network.filter("b", &format!("{UDP} drop"));
    fails(
        &network,
        &[
            "the path is one-way",
            "rank 0 on ",
            "cannot reach rank 1 on ",
            firewall,
        ],
    );
    network.filter("a", &format!("{UDP} drop"));
    fails(
        &network,
        &["no datagram passes, either way, within 1.0 s", firewall],
    );
    network.heal("a");
    network.heal("b");
    // Rank 1 may report it first, which hears nothing of its network.
    network.filter("a", &format!("{UDP} reject"));
    network.filter("b", &format!("{UDP} reject"));
    fails(
        &network,
        &["answered by \"Connection refused", "ARGONET_TCP_INTERFACES"],
    );
    network.heal("a");
    network.heal("b");
    let too_short = [
        "short datagrams arrive there, and none of 1232 bytes does",
        "MTU to 1280",
    ];
    network.set_mtu_between(1000);
    fails(&network, &too_short);
    network.set_mtu(1000);
    fails(&network, &too_short);
    network.set_mtu(1280);
    network.set_mtu_between(1280);
    over(&network, 2, "a,b").run().ended_well();
}

/// Ranks 0 and 3 of 6 are no partners.
pub(super) fn at_the_first_use() {
    let network = Network::new(&["a", "b", "c", "d", "e", "f"]);
    // A peer that was never heard may be silent for 3 s then.
    let job = || over(&network, 6, "a,b,c,d,e,f").env("ARGONET_START_TIMEOUT", "18");
    let run = || -> Outcome {
        let begun = Instant::now();
        let outcome = job().run();
        assert!(
            begun.elapsed() < SOON,
            "{:?}: {outcome:#?}",
            begun.elapsed()
        );
        assert!(outcome.err.contains(STARTED), "{outcome:#?}");
        outcome.failed(&[
            "(UDP 10.71.0.1:",
            "(UDP 10.71.0.4:",
            "ARGONET_TCP_INTERFACES",
        ])
    };
    let from = |host, verdict| {
        let address = network.address(host, 0);
        format!("ip saddr {address} {UDP} {verdict}")
    };
    // Rank 3 hears nothing, and rank 0 hears that.
    network.filter("d", &from("a", "drop"));
    run().says(&[
        "rank 0 on ",
        "cannot reach rank 3 on ",
        "the path is one-way",
    ]);
    network.heal("d");
    // The network says so.
    network.filter("a", &from("d", "reject"));
    network.filter("d", &from("a", "reject"));
    run().says(&[
        "no datagram of it has come within ",
        "answered by \"Connection refused",
    ]);
    network.heal("a");
    network.heal("d");
    // Nothing comes, no refusal either: the other rank may be stopped.
    network.filter("a", &from("d", "drop"));
    network.filter("d", &from("a", "drop"));
    let outcome = job().run_with(|talk| {
        let warning = talk.line_with("argonet: warning: rank ");
        for wanted in [
            "(UDP 10.71.0.1:",
            "(UDP 10.71.0.4:",
            "no datagram of it has come within ",
            "let UDP pass the firewalls of both hosts",
        ] {
            assert!(warning.contains(wanted), "{wanted}: {warning}");
        }
        network.heal("a");
        network.heal("d");
    });
    outcome.ended_well();
}

/// The same ports as those of tcp, so that a firewall can let them pass.
pub(super) fn ports() {
    let network = Network::new(&["a", "b"]);
    network.filter("b", &format!("{UDP} udp dport != 4000-4001 drop"));
    let job = |ports| {
        let job = over(&network, 3, "a:2,b").env("GASNET_SUPERNODE_MAXSIZE", "1");
        job.env("ARGONET_TCP_PORTS", ports)
    };
    job("4000-4001").run().ended_well();
    let taken = job("4001-4001").run();
    taken.failed(&[
        "the conduit usnic cannot be set up",
        "all UDP ports from 4001 to 4001 of 10.71.0.1 are in use; widen ARGONET_TCP_PORTS",
    ]);
}
