//! Meaning of the facts of the hosts for a job.

use core::net::IpAddr;
use core::ops::Range;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use argonet_base::size::HumanSize;
use argonet_boot::files_of_rank;

use super::facts::{Facts, Limit, Trouble};
use super::finding::{Finding, Level};

/// Clocks that differ by less are as one.
const CLOCKS_MAY_DIFFER: Duration = Duration::from_secs(1);

/// A host that has reported its facts.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    /// The ranks that a job would have there.
    pub(super) ranks: Range<u32>,
    pub(super) greeted: Duration,
    pub(super) facts: Facts,
}

/// What another launcher makes of programs that it starts as it started this one, and whether they
/// start.
pub(super) fn launcher((found, starts): &(String, bool)) -> Finding {
    let found = format!("other launcher of this process: {found}");
    match starts {
        true => Finding::ok("launcher", found),
        false => Finding {
            level: Level::Warning,
            need: Some(
                "programs that are started by it become one job; `argonet run` does not need that"
                    .into(),
            ),
            ..Finding::ok("launcher", found)
        },
    }
}

/// A host that cannot be asked.
pub(super) fn lost(host: &str, why: &str, stderr: &[String], way: &str) -> Finding {
    let mut found = why.to_owned();
    for line in stderr {
        // Writing to a string cannot fail.
        let _ = write!(found, "\nthe command to start its agent printed: {line}");
    }
    Finding {
        level: Level::Problem,
        check: "reach",
        hosts: vec![host.to_owned()],
        found,
        need: Some(format!(
            "argonet's agent, of the same version as here, can be started on {host} {way} without a question being asked"
        )),
        remedy: Some(format!(
            "see that the name {host} is right and the host is up, that a key or an agent of ssh lets you in, and that argonet is \
             installed there at the same path (else: ARGONET_AGENT)"
        )),
    }
}

pub(super) fn reached(seen: &[Seen], way: &str) -> Option<Finding> {
    let slowest = seen.iter().max_by_key(|host| host.greeted)?;
    let found = format!(
        "{} answered {way}; the slowest, {}, after {:.0} ms",
        in_words(seen.iter().map(|host| host.name.as_str())),
        slowest.name,
        slowest.greeted.as_secs_f64() * 1e3
    );
    Some(Finding::ok("reach", found))
}

/// Those with another version were not let in, so all that are seen agree; unless an agent lies.
pub(super) fn versions(seen: &[Seen]) -> Option<Finding> {
    let first = seen.first()?;
    let other = seen
        .iter()
        .find(|host| host.facts.version != first.facts.version);
    Some(match other {
        None => Finding::ok(
            "version",
            format!("argonet {} everywhere", first.facts.version),
        ),
        Some(other) => Finding {
            level: Level::Problem,
            check: "version",
            hosts: vec![first.name.clone(), other.name.clone()],
            found: format!(
                "{} has argonet {}, {} has {}",
                first.name, first.facts.version, other.name, other.facts.version
            ),
            need: Some("the same version on all hosts".into()),
            remedy: Some(
                "install one version everywhere, or name its path with ARGONET_AGENT".into(),
            ),
        },
    })
}

pub(super) fn interfaces(seen: &[Seen]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for host in seen {
        if let Some(Trouble::Interfaces(why)) = &host.facts.trouble {
            findings.push(Finding {
                level: Level::Problem,
                check: "interfaces",
                hosts: vec![host.name.clone()],
                found: why.clone(),
                need: Some("an interface that is up and leads to the other hosts".into()),
                remedy: Some(
                    "set one up (`ip link set dev NAME up`) or connect it; or name interfaces or subnets that are up on all hosts in ARGONET_TCP_INTERFACES, such as 10.1.0.0/16".into(),
                ),
            });
            continue;
        }
        let chosen = host.facts.cards.iter().filter(|card| card.chosen);
        let chosen: Vec<String> = chosen
            .map(|card| {
                let mtu = card.mtu.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
                format!("{} ({}/{}{mtu})", card.name, card.address, card.prefix)
            })
            .collect();
        let found = format!("{} would use {}", host.name, chosen.join(", "));
        findings.push(Finding::ok("interfaces", found));
    }
    findings
}

/// Hosts that cannot listen.
pub(super) fn doors(seen: &[Seen]) -> Vec<Finding> {
    let finding = |host: &Seen| match &host.facts.trouble {
        Some(Trouble::Ports(why)) => Some(Finding {
            level: Level::Problem,
            check: "ports",
            hosts: vec![host.name.clone()],
            found: format!("{}: {why}", host.name),
            need: Some(format!(
                "{} ports, one for each rank there",
                host.ranks.len()
            )),
            remedy: Some(
                "name a range of free ports in ARGONET_TCP_PORTS, or leave it unset".into(),
            ),
        }),
        _ => None,
    };
    seen.iter().filter_map(finding).collect()
}

/// The first bits of an address; the others are zero.
fn network(address: IpAddr, prefix: u8) -> (IpAddr, u8) {
    let address = match address {
        IpAddr::V4(v4) => {
            let free = 32 - u32::from(prefix.min(32));
            let bits = v4.to_bits().checked_shr(free).unwrap_or(0);
            IpAddr::V4(bits.checked_shl(free).unwrap_or(0).into())
        }
        IpAddr::V6(v6) => {
            let free = 128 - u32::from(prefix.min(128));
            let bits = v6.to_bits().checked_shr(free).unwrap_or(0);
            IpAddr::V6(bits.checked_shl(free).unwrap_or(0).into())
        }
    };
    (address, prefix)
}

/// The MTU of a host's interface: it, the host, the interface.
type End<'a> = (u32, &'a str, &'a str);

/// Ends of one network whose packets have different lengths.
pub(super) fn mtu(seen: &[Seen]) -> Vec<Finding> {
    let mut networks: BTreeMap<(IpAddr, u8), Vec<End<'_>>> = BTreeMap::new();
    for host in seen {
        let chosen = host
            .facts
            .cards
            .iter()
            .filter(|card| card.chosen && !card.loopback);
        for card in chosen {
            if let Some(mtu) = card.mtu {
                let ends = networks
                    .entry(network(card.address, card.prefix))
                    .or_default();
                ends.push((mtu, &host.name, &card.name));
            }
        }
    }
    let mut findings = Vec::new();
    for ((address, prefix), mut ends) in networks {
        ends.sort_unstable();
        let (Some(&(least, ..)), Some(&(most, ..))) = (ends.first(), ends.last()) else {
            continue;
        };
        if least == most {
            continue;
        }
        let all: Vec<String> = ends
            .iter()
            .map(|(mtu, host, card)| format!("{mtu} at {card} of {host}"))
            .collect();
        let longer: Vec<_> = ends.iter().filter(|(mtu, ..)| *mtu > least).collect();
        let remedy: Vec<String> = longer
            .iter()
            .map(|(_, host, card)| format!("`ip link set dev {card} mtu {least}` on {host}"))
            .collect();
        findings.push(Finding {
            level: Level::Warning,
            check: "mtu",
            hosts: ends.iter().map(|(_, host, _)| (*host).to_owned()).collect(),
            found: format!("the ends of {address}/{prefix} differ in the MTU: {}", all.join(", ")),
            need: Some(
                "the same at all ends; TCP agrees on the smaller one, packets of all else are lost, and so are those of TCP where \
                 something in between hides the difference"
                    .into(),
            ),
            remedy: Some(format!("{}, or raise the others to {most}", remedy.join(", "))),
        });
    }
    if findings.is_empty() && seen.len() > 1 {
        findings.push(Finding::ok(
            "mtu",
            "the same at both ends of every network".into(),
        ));
    }
    findings
}

fn number(limit: Option<u64>) -> String {
    limit.map_or("no limit".into(), |limit| limit.to_string())
}

/// Open files of the ranks of a job of `size`, of which so many share memory at most, with so many
/// connections to each other one.
pub(super) fn files(seen: &[Seen], size: u32, neighbors: u32, connections: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut roomiest: Option<(u64, Option<u64>, &str)> = None;
    for host in seen {
        let others = size - (host.ranks.len() as u32).min(neighbors);
        let need = files_of_rank(others, connections);
        let Limit { soft, hard } = host.facts.files;
        if hard.is_none_or(|hard| hard >= need) {
            if roomiest.is_none_or(|(most, ..)| need > most) {
                roomiest = Some((need, hard, &host.name));
            }
            continue;
        }
        findings.push(Finding {
            level: Level::Problem,
            check: "nofile",
            hosts: vec![host.name.clone()],
            found: format!(
                "a process on {} may open {} files (ulimit -Hn; now {})",
                host.name,
                number(hard),
                number(soft)
            ),
            need: Some(format!(
                "{need} files for each rank there: {connections} connections to each of {others} ranks with which it shares no memory \
                 (ARGONET_TCP_CONNECTIONS), and some for itself"
            )),
            remedy: Some(format!(
                "raise the hard limit on {} to {need} or more (`nofile` in /etc/security/limits.conf, LimitNOFILE of sshd or of \
                 the batch system's daemon), set ARGONET_TCP_CONNECTIONS to 1, or run more ranks on a host and fewer hosts",
                host.name
            )),
        });
    }
    if let (Some((need, hard, host)), true) = (roomiest, findings.is_empty()) {
        let found = format!(
            "a rank needs {need} open files at most; it may have {} on {host}",
            number(hard)
        );
        findings.push(Finding::ok("nofile", found));
    }
    findings
}

/// Memory that may be locked.
///
/// Reported, since other conduits want it; this one locks none.
pub(super) fn memory(seen: &[Seen]) -> Option<Finding> {
    let host = seen
        .iter()
        .min_by_key(|host| host.facts.locked_memory.hard.unwrap_or(u64::MAX))?;
    let limit = host.facts.locked_memory.hard;
    let limit = limit.map_or("any amount".into(), |bytes| HumanSize(bytes).to_string());
    let found = format!(
        "tcp and shared memory lock none; a process may lock {limit} (least on {})",
        host.name
    );
    Some(Finding::ok("memlock", found))
}

/// Clocks that differ.
///
/// `asked` is when the hosts were asked by this host's clock, `took` how long all answers took.
pub(super) fn clocks(seen: &[Seen], asked: Duration, took: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for host in seen {
        let clock = Duration::from_nanos(host.facts.clock_ns);
        let (ahead, behind) = (clock.checked_sub(asked + took), asked.checked_sub(clock));
        let (by, word) = match (ahead, behind) {
            (Some(by), _) => (by, "ahead of"),
            (_, Some(by)) => (by, "behind"),
            _ => continue,
        };
        if by > CLOCKS_MAY_DIFFER {
            findings.push(Finding {
                level: Level::Warning,
                check: "clock",
                hosts: vec![host.name.clone()],
                found: format!(
                    "the clock of {} is at least {:.1} s {word} this host's",
                    host.name,
                    by.as_secs_f64()
                ),
                need: Some(
                    "the same time everywhere; a job works without, but times in files and logs of its hosts cannot be compared".into(),
                ),
                remedy: Some(format!("let {} follow a time server (chrony, systemd-timesyncd)", host.name)),
            });
        }
    }
    if findings.is_empty() && !seen.is_empty() {
        findings.push(Finding::ok(
            "clock",
            "the clocks agree within a second".into(),
        ));
    }
    findings
}

/// Names, as many as are of use.
pub(super) fn in_words<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.len() {
        0..=8 => names.join(", "),
        more => format!("{}, ... ({more} hosts)", names[..7].join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::doctor::facts::{Card, Door, Mailbox};
    use core::num::NonZeroU64;

    /// A host without fault: `eth0` at 10.1.0.`last`, with one rank.
    pub(in crate::doctor) fn host(name: &str, last: u8) -> Seen {
        let address = IpAddr::from([10, 1, 0, last]);
        let rank = u32::from(last);
        Seen {
            name: name.into(),
            ranks: rank..rank + 1,
            greeted: Duration::from_millis(3),
            facts: Facts {
                version: "1.2.3".into(),
                cards: vec![Card {
                    name: "eth0".into(),
                    address,
                    prefix: 24,
                    up: true,
                    loopback: false,
                    mtu: Some(1500),
                    chosen: true,
                }],
                trouble: None,
                doors: vec![Door {
                    rank,
                    addresses: vec![(address, 4000).into()],
                }],
                mailbox: Ok(Mailbox {
                    address: (address, 4000).into(),
                    incarnation: NonZeroU64::MIN,
                }),
                ports: None,
                system_ports: Some((32768, 60999)),
                files: Limit {
                    soft: Some(1024),
                    hard: Some(4096),
                },
                locked_memory: Limit {
                    soft: Some(0),
                    hard: None,
                },
                clock_ns: 1_000_000_000_000,
            },
        }
    }

    #[test]
    fn the_limit_of_files_is_compared_with_the_need_of_a_rank() {
        let seen = [host("a", 0), host("b", 1)];
        let fits = files(&seen, 1000, u32::MAX, 2);
        assert_eq!((fits.len(), fits[0].level), (1, Level::Ok));
        let lacks = files(&seen, 100_000, u32::MAX, 2);
        assert_eq!(lacks.len(), 2);
        let need = files_of_rank(99_999, 2).to_string();
        for finding in lacks {
            assert_eq!(finding.level, Level::Problem);
            assert!(finding.found.contains("may open 4096 files"), "{finding:?}");
            assert!(finding.need.unwrap().starts_with(&need));
            assert!(finding.remedy.unwrap().contains(&need));
        }
        // As each further connection counts, and ranks that share no memory with others of their
        // host.
        assert_eq!(files(&seen, 2100, u32::MAX, 1)[0].level, Level::Ok);
        assert_eq!(files(&seen, 2100, u32::MAX, 2)[0].level, Level::Problem);
        let mut crowd = host("d", 3);
        crowd.ranks = 0..2100;
        assert_eq!(files(&[crowd], 2100, u32::MAX, 2)[0].level, Level::Ok);
        let mut crowd = host("d", 3);
        crowd.ranks = 0..2100;
        assert_eq!(files(&[crowd], 2100, 1, 2)[0].level, Level::Problem);
        let mut unlimited = host("c", 2);
        unlimited.facts.files.hard = None;
        assert_eq!(
            files(&[unlimited], 100_000, u32::MAX, 2)[0].level,
            Level::Ok
        );
    }

    #[test]
    fn a_launcher_whose_programs_do_not_start_is_a_warning() {
        let good = launcher(&("none".into(), true));
        assert_eq!((good.level, good.need), (Level::Ok, None));
        assert_eq!(good.found, "other launcher of this process: none");
        let bad = launcher(&("PMI_SIZE says ...".into(), false));
        assert_eq!(bad.level, Level::Warning);
        assert!(bad.found.ends_with("PMI_SIZE says ..."));
    }

    #[test]
    fn only_ends_of_one_network_are_compared() {
        let mut seen = [host("a", 0), host("b", 1), host("c", 2)];
        seen[1].facts.cards[0].mtu = Some(9000);
        let found = mtu(&seen);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].found,
            "the ends of 10.1.0.0/24 differ in the MTU: 1500 at eth0 of a, 1500 at eth0 of c, 9000 at eth0 of b"
        );
        assert!(
            found[0]
                .remedy
                .as_ref()
                .unwrap()
                .contains("mtu 1500` on b, or raise")
        );
        seen[1].facts.cards[0].address = [10, 2, 0, 1].into();
        assert_eq!(mtu(&seen)[0].level, Level::Ok);
        seen[1].facts.cards[0].prefix = 8;
        assert_eq!(mtu(&seen)[0].level, Level::Ok);
    }

    #[test]
    fn clocks_are_compared_as_far_as_the_answer_is_sure() {
        let seen = [host("a", 0)];
        let at = |asked, took| {
            let seconds = Duration::from_secs_f64;
            clocks(&seen, seconds(asked), seconds(took)).remove(0)
        };
        assert_eq!(at(1000.9, 0.1).level, Level::Ok);
        assert_eq!(at(1002.0, 0.1).level, Level::Warning);
        assert!(at(1002.0, 0.1).found.contains("2.0 s behind"));
        assert!(at(900.0, 1.0).found.contains("99.0 s ahead of"));
        // It may have answered at the end.
        assert_eq!(at(900.0, 99.5).level, Level::Ok);
    }

    #[test]
    fn networks_have_the_first_bits_of_their_addresses() {
        let of = |address: &str, prefix| network(address.parse().unwrap(), prefix).0.to_string();
        assert_eq!(of("10.1.2.3", 16), "10.1.0.0");
        assert_eq!(of("10.1.2.3", 0), "0.0.0.0");
        assert_eq!(of("10.1.2.3", 32), "10.1.2.3");
        assert_eq!(of("fd00::1:2", 112), "fd00::1:0");
        assert_eq!(of("fd00::1", 0), "::");
    }
}
