//! Meaning of the attempts to connect: hosts that cannot talk, and the cause.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::time::Duration;

use super::connect::{Outcome, Probe};
use super::finding::{Finding, Level};
use super::judge::{Seen, in_words};

/// The attempts of one host, by its name.
type Tried = (String, Vec<Probe>);

/// A range that a user may choose, for examples.
const EXAMPLE_PORTS: &str = "40000-40999";

/// Judges every direction between two hosts.
pub(super) fn judge(seen: &[Seen], tried: &[Tried], wait: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut well, mut slowest) = (0, 0);
    let mut at: Option<(&str, &str)> = None;
    for (from, probes) in tried {
        for to in seen.iter().filter(|to| to.name != *from) {
            let probes: Vec<&Probe> = probes.iter().filter(|p| p.host == to.name).collect();
            if probes.is_empty() {
                continue; // It has reported why it does not listen.
            }
            let (direction, time) = direction(from, to, &probes, wait);
            if direction
                .iter()
                .all(|finding| finding.level < Level::Problem)
            {
                well += 1;
                if time >= slowest {
                    slowest = time;
                    at = Some((from, &to.name));
                }
            }
            findings.extend(direction);
        }
    }
    if let Some((from, to)) = at {
        let hosts = in_words(tried.iter().map(|(name, _)| name.as_str()));
        let found = format!(
            "{well} directions between {hosts} work; the slowest round trip is {:.2} ms ({from} to {to})",
            slowest as f64 / 1e6
        );
        findings.insert(0, Finding::ok("network", found));
    }
    findings
}

/// Problems from a host to another one, and the slowest of the round trips that work, ns.
fn direction(from: &str, to: &Seen, probes: &[&Probe], wait: Duration) -> (Vec<Finding>, u64) {
    // Ranks that have no address which works.
    let mut ranks: BTreeMap<u32, bool> = BTreeMap::new();
    let mut slowest = 0;
    let mut failed: BTreeMap<(IpAddr, String), (Vec<u16>, &Outcome)> = BTreeMap::new();
    for probe in probes {
        let works = ranks.entry(probe.rank).or_default();
        match &probe.outcome {
            Outcome::Well { round_trip_ns } => {
                *works = true;
                slowest = slowest.max(*round_trip_ns);
            }
            other => {
                let key = (probe.address.ip(), format!("{other:?}"));
                let entry = failed.entry(key).or_insert((Vec::new(), other));
                entry.0.push(probe.address.port());
            }
        }
    }
    let level = match ranks.values().all(|works| *works) {
        true => Level::Warning,
        false => Level::Problem,
    };
    let finding = |((address, _), (ports, outcome)): ((IpAddr, String), (Vec<u16>, &Outcome))| {
        let target = target(address, &ports);
        let (found, remedy) = in_words_of(outcome, from, to, address, wait);
        let need = match level {
            Level::Warning => format!("nothing: {} can be reached at another address", to.name),
            _ => format!("TCP from {from} to {target} of {}", to.name),
        };
        Finding {
            level,
            check: "network",
            hosts: vec![from.to_owned(), to.name.clone()],
            found: format!("{from} to {} at {target}: {found}", to.name),
            need: Some(need),
            remedy: Some(remedy),
        }
    };
    (failed.into_iter().map(finding).collect(), slowest)
}

/// An address with ports.
fn target(address: IpAddr, ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let word = if ports.len() == 1 { "port" } else { "ports" };
    format!("{address} {word} {}", ports.join(", "))
}

/// The outcome in words, and a remedy.
fn in_words_of(
    outcome: &Outcome,
    from: &str,
    to: &Seen,
    address: IpAddr,
    wait: Duration,
) -> (String, String) {
    let other_interface = "choose a network that all hosts share with ARGONET_TCP_INTERFACES";
    match outcome {
        Outcome::Well { .. } => (String::new(), String::new()),
        Outcome::Refused => (
            "refused, though it listens there: a firewall rejects it, or another host has this address".into(),
            format!("{}; or {other_interface}", open(to)),
        ),
        Outcome::Silent => (
            format!(
                "no answer within {} s: packets are dropped on the way there or back, as a firewall does",
                wait.as_secs_f64()
            ),
            format!("{}; or {other_interface}", open(to)),
        ),
        Outcome::NoWay(why) => (
            format!("{from} has no way there ({why})"),
            format!("give {from} a route to {address}; or {other_interface}"),
        ),
        Outcome::Stranger(why) => (
            format!("a connection, but not with {}: {why}", to.name),
            format!("see which host or program has {address} for {from}; or {other_interface}"),
        ),
        Outcome::LongLost => (
            "short messages pass, and 64 KiB in one piece do not: packets that are too long for a part of the way vanish".into(),
            format!(
                "let messages of ICMP about too long packets pass, or lower the MTU of the interfaces at both ends, such as `ip \
                 link set dev {} mtu 1400`",
                interface(to, address)
            ),
        ),
    }
}

fn interface(host: &Seen, address: IpAddr) -> &str {
    let card = host.facts.cards.iter().find(|card| card.address == address);
    card.map_or("eth0", |card| &card.name)
}

/// The ports to open on a host.
fn open(to: &Seen) -> String {
    let ranks = to.ranks.len();
    match (to.facts.ports, to.facts.system_ports) {
        (Some((first, last)), _) => format!(
            "let TCP to ports {first}-{last} (ARGONET_TCP_PORTS) pass the firewall of {}",
            to.name
        ),
        (None, system) => {
            let any = match system {
                Some((first, last)) => format!("any of {first}-{last}"),
                None => "any".into(),
            };
            format!(
                "set ARGONET_TCP_PORTS, such as ARGONET_TCP_PORTS={EXAMPLE_PORTS} (now ranks listen at {any}; {} needs {ranks}), \
                 and let TCP to these ports pass the firewall of {}",
                to.name, to.name
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::judge::tests::host;

    fn probe(to: &Seen, port: u16, outcome: Outcome) -> Probe {
        let mut address = to.facts.doors[0].addresses[0];
        address.set_port(port);
        Probe {
            host: to.name.clone(),
            rank: to.ranks.start,
            address,
            outcome,
        }
    }

    const WELL: Outcome = Outcome::Well {
        round_trip_ns: 1_500_000,
    };

    #[test]
    fn both_directions_count() {
        let seen = [host("a", 0), host("b", 1)];
        let tried = |there, back| {
            vec![
                ("a".to_owned(), vec![probe(&seen[1], 4000, there)]),
                ("b".to_owned(), vec![probe(&seen[0], 4000, back)]),
            ]
        };
        let judge = |tried: &[Tried]| judge(&seen, tried, Duration::from_secs(3));
        let well = judge(&tried(WELL, WELL));
        assert_eq!(well.len(), 1);
        assert!(well[0].found.starts_with("2 directions between a, b work"));
        assert!(well[0].found.contains("1.50 ms"), "{}", well[0].found);
        let half = judge(&tried(WELL, Outcome::Silent));
        assert!(half[0].found.starts_with("1 directions"));
        assert_eq!(half[1].level, Level::Problem);
        let found = "b to a at 10.1.0.0 port 4000: no answer within 3 s";
        assert!(half[1].found.starts_with(found), "{}", half[1].found);
        let none = judge(&tried(Outcome::Refused, Outcome::Silent));
        assert!(none.iter().all(|finding| finding.level == Level::Problem));
    }

    #[test]
    fn an_address_that_fails_beside_one_that_works_is_no_problem() {
        let seen = [host("a", 0), host("b", 1)];
        let (fails, works) = (
            probe(&seen[1], 1, Outcome::Refused),
            probe(&seen[1], 2, WELL),
        );
        let tried = [("a".to_owned(), vec![fails.clone(), works])];
        let found = judge(&seen, &tried, Duration::from_secs(1));
        assert_eq!((found.len(), found[1].level), (2, Level::Warning));
        // Another rank's address is no help.
        let other = Probe {
            rank: 77,
            ..probe(&seen[1], 2, WELL)
        };
        let found = judge(
            &seen,
            &[("a".into(), vec![fails, other])],
            Duration::from_secs(1),
        );
        assert_eq!(found[0].level, Level::Problem);
    }

    #[test]
    fn the_ports_to_open_are_those_of_the_setting() {
        let mut to = host("b", 1);
        let remedy = |to: &Seen| {
            in_words_of(
                &Outcome::Silent,
                "a",
                to,
                [10, 1, 0, 1].into(),
                Duration::from_secs(1),
            )
            .1
        };
        assert!(remedy(&to).contains(
            "ARGONET_TCP_PORTS=40000-40999 (now ranks listen at any of 32768-60999; b needs 1)"
        ));
        to.facts.ports = Some((5000, 5009));
        assert!(
            remedy(&to).starts_with(
                "let TCP to ports 5000-5009 (ARGONET_TCP_PORTS) pass the firewall of b"
            )
        );
    }
}
