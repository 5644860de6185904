//! Hosts with two networks and a rail over each, of the same kind or of two: messages go on over
//! the one that is left, and go back to the better one.
//!
//! The programs compare every byte.

use std::time::{Duration, Instant};

use super::over;
use super::rails::come;
use super::storm::rounds;
use crate::connections::info_of;
use crate::network::Network;
use crate::support::{self, Job, Random, Talk};
use rustix::process::{Pid, Signal, kill_process};

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

/// Counts of a rank's first rail in a report of rails: peers, beginnings, and losses by an end, by
/// silence, by an address.
fn of_first(report: &str, rank: u32) -> [u64; 5] {
    let begin = format!("rank {rank} of 2: ");
    let line = report.lines().find_map(|line| line.split_once(&begin));
    let first = line.and_then(|(_, rails)| rails.split("; ").next());
    let counts = first.and_then(|first| first.split_once(" carries "));
    let (_, counts) = counts.unwrap_or_else(|| panic!("no {begin:?} in {report}"));
    let numbers = counts.split(|letter: char| !letter.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{report}"))
}

/// The report has the losses by these faults, and that messages are back.
fn check_report(report: &str, rails: &str, faults: &[Fault]) {
    for rail in rails.split(',') {
        let name = format!("{rail} carries ");
        assert_eq!(report.matches(&name).count(), 2, "{name:?} in {report}");
    }
    let [here, there] = [0, 1].map(|rank| of_first(report, rank));
    let most = faults.len() as u64;
    let mut lost = 0;
    for [peers, begun, ended, silent, address] in [here, there] {
        assert!(peers == 1 && begun > most, "{report}");
        lost += ended + silent + address;
    }
    assert!(lost >= most, "{report}");
    // The host that loses its interface knows at once.
    let downs = faults.iter().filter(|fault| fault.name == DOWN.name);
    assert_eq!([here[4], there[4]], [0, downs.count() as u64], "{report}");
}

/// Breaks the first network several times under a program that compares every byte.
fn under(rails: &str, program: &str, faults: &[Fault]) {
    let network = Network::of(&["a", "b"], 2);
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_str().expect("a name").to_owned();
    let job = over(&network, 2, "a,b", program)
        .env("ARGONET_RAILS", rails)
        .env("GASNET_STATSFILE", &path("statistics-%"))
        .env("GASNET_TRACEFILE", &path("trace-%"))
        .env("GASNET_TRACEMASK", "C");
    let outcome = job.run_with(|talk| {
        until_used(&network, talk, "eth0");
        for fault in faults {
            let begun = Instant::now();
            (fault.begins)(&network);
            let begins = begun.elapsed();
            until_used(&network, talk, "eth1");
            let broken = begun.elapsed();
            rounds(talk, 3);
            let healed = Instant::now();
            (fault.ends)(&network);
            until_used(&network, talk, "eth0");
            eprintln!(
                "{rails}, {}: goes on {broken:?} after it began, which took {begins:?}; back {:?} after it ended",
                fault.name,
                healed.elapsed()
            );
        }
        let pid = talk.pid.as_raw_nonzero().to_string();
        check_report(&info_of("--rails", &pid), rails, faults);
    });
    outcome.ended_well();
    let statistics = std::fs::read_to_string(path("statistics-1")).expect("statistics");
    assert!(
        statistics.contains("rails of rank 1 of 2: "),
        "{statistics}"
    );
    let trace = std::fs::read_to_string(path("trace-1")).expect("a trace");
    for rail in rails.split(',') {
        for note in [
            format!("messages to rank 0 go over {rail}"),
            format!("the rail {rail} to rank 0 is lost: "),
        ] {
            let is_lost = note.contains("lost");
            let is_first = rails.starts_with(rail);
            assert!(
                trace.contains(&note) || (is_lost && !is_first),
                "{note:?} in {trace}"
            );
        }
    }
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

/// How a card of a host fails, and what ends that.
type Trouble = (
    &'static str,
    fn(&Network, &str, usize),
    fn(&Network, &str, usize),
);

const TROUBLES: [Trouble; 5] = [
    (
        "drops what comes",
        |network, host, card| network.filter(host, &format!("iifname \"eth{card}\" counter drop")),
        |network, host, _| network.heal(host),
    ),
    (
        "resets connections",
        |network, host, card| {
            let of_tcp = format!("iifname \"eth{card}\" meta l4proto tcp");
            network.filter(host, &format!("{of_tcp} counter reject with tcp reset"));
        },
        |network, host, _| network.heal(host),
    ),
    (
        "is down",
        |network, host, card| _ = network.on(host, &format!("ip link set eth{card} down")),
        |network, host, card| _ = network.on(host, &format!("ip link set eth{card} up")),
    ),
    ("is not there", Network::leave, Network::join),
    (
        "is slow",
        |network, host, card| network.limit(host, &format!("eth{card}"), "2mbit"),
        |network, host, card| _ = network.on(host, &format!("tc qdisc del dev eth{card} root")),
    ),
];

/// All to all, byte by byte, while every 2 s some card of some host fails in some way.
pub(super) fn again_and_again() {
    let faults = support::faults();
    let mut random = Random::new(u64::from(faults));
    // A run of few takes the first of them alone.
    let mixes = [
        "usnic:eth0,tcp:eth1",
        "tcp:eth0,tcp:eth1",
        "usnic:eth0,usnic:eth1",
    ];
    let mixes = &mixes[..if faults < 30 { 1 } else { 3 }];
    for rails in mixes {
        let network = Network::of(&["a", "b", "c"], 2);
        let job = over(&network, 4, "a:2,b,c", "stress")
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("ARGONET_RAILS", rails);
        let mut longest = Duration::ZERO;
        let outcome = job.run_with(|talk| {
            rounds(talk, 2);
            for fault in 0..faults / mixes.len() as u32 {
                let host = ["a", "b", "c"][random.below(3)];
                let card = random.below(2);
                let (name, begin, end) = TROUBLES[random.below(TROUBLES.len())];
                let lasts = Duration::from_millis(200 + random.below(1500) as u64);
                eprintln!("{rails}, fault {fault}: eth{card} of {host} {name} for {lasts:?}");
                let begun = Instant::now();
                begin(&network, host, card);
                while begun.elapsed() < lasts {
                    longest = longest.max(rounds(talk, 1));
                }
                end(&network, host, card);
                while begun.elapsed() < Duration::from_secs(2) {
                    longest = longest.max(rounds(talk, 1));
                }
            }
            rounds(talk, 2);
        });
        outcome.ended_well();
        eprintln!("{rails}: the longest round took {longest:?}");
    }
}

/// A host gets another address in a network, as from a server of addresses.
fn readdress(network: &Network, host: &str, card: usize, last: u8) {
    let address = format!("10.71.{card}.{last}/24");
    network.on(
        host,
        &format!("ip addr flush dev eth{card}; ip addr add {address} dev eth{card}"),
    );
}

/// One host after the other gets another address in the better network, which is used again, or in
/// the only one.
pub(super) fn of_another_address() {
    for rails in ["tcp:eth0,tcp:eth1", "tcp:eth0"] {
        let network = Network::of(&["a", "b"], 2);
        let job = over(&network, 2, "a,b", "stress").env("ARGONET_RAILS", rails);
        let outcome = job.run_with(|talk| {
            until_used(&network, talk, "eth0");
            for (host, last) in [("b", 77), ("a", 78), ("b", 79)] {
                let begun = Instant::now();
                readdress(&network, host, 0, last);
                // More than was on its way to the old address.
                for _ in 0..10 {
                    until_used(&network, talk, "eth0");
                }
                let used = begun.elapsed();
                eprintln!("{rails}: the network of {host}'s other address is used after {used:?}");
            }
        });
        outcome.ended_well();
    }
}

/// A stopped rank is waited for, over whichever rail: nothing says that it is gone.
pub(super) fn of_a_stopped_rank() {
    for rails in ["usnic,tcp", "tcp,usnic", "usnic,usnic"] {
        let job = Job::launched(6, "stopped-stranger")
            .env("ARGONET_CONDUIT", "tcp")
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("ARGONET_RAILS", rails);
        let outcome = job.run_with(|talk| {
            let process = talk.line_with("stopped ");
            let process = process.rsplit(' ').next().and_then(|pid| pid.parse().ok());
            let process = process.and_then(Pid::from_raw).expect("a process");
            // Longer than a rail may be silent.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1500) {
                std::thread::yield_now();
            }
            kill_process(process, Signal::CONT).expect("the rank that is stopped");
        });
        outcome.ended_well();
    }
}

/// No rail is left: the job ends, and the error has the reason of each.
pub(super) fn of_all_rails() {
    let network = Network::of(&["a", "b"], 2);
    let job = over(&network, 2, "a,b", "storm-over-hosts")
        .env("ARGONET_RAILS", "tcp:eth0,tcp:eth1")
        .env("ARGONET_TCP_UNREACHABLE_TIMEOUT", "1");
    let outcome = job.run_with(|talk| {
        rounds(talk, 2);
        let rule = "iifname \"eth*\" meta l4proto tcp counter reject with tcp reset";
        network.filter("b", rule);
        let error = talk.line_with("argonet: rank ");
        for part in ["cannot reach rank ", "tcp:eth0: ", "tcp:eth1: "] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    });
    assert_eq!(outcome.code(), Some(1), "{outcome:?}");
}

/// Lists that cannot be are errors that name what to change.
pub(super) fn refused() {
    let of = |ranks: u32, rails: &str| {
        Job::launched(ranks, "replies")
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("ARGONET_RAILS", rails)
    };
    let tcp = |rails: &str| of(2, rails).env("ARGONET_CONDUIT", "tcp");
    tcp("tcp,ib0").run().failed(&[
        "the conduit tcp cannot be set up",
        "ARGONET_RAILS=\"tcp,ib0\": \"ib0\" is not a rail: write tcp or usnic",
    ]);
    tcp("tcp:nowhere7")
        .run()
        .failed(&["rail tcp:nowhere7: ", "nowhere7"]);
    tcp("tcp,usnic")
        .env("ARGONET_USNIC_NIC", "fabric")
        .run()
        .failed(&["rail usnic: ARGONET_USNIC_NIC=fabric"]);
    tcp("tcp")
        .env("ARGONET_TCP_PROGRESS", "1")
        .run()
        .failed(&["ARGONET_TCP_PROGRESS=1"]);
    of(2, "tcp")
        .env("ARGONET_CONDUIT", "portals")
        .run()
        .failed(&["ARGONET_RAILS is for ARGONET_CONDUIT=tcp or usnic, not for portals"]);
}
