//! Meaning of what hosts know of the paths for datagrams between them.

use std::time::Duration;

use argonet_nic::reliable::{BadPath, FIRST_DATAGRAM_BYTES, PathEnd, PathFault, PathState};

use super::datagrams::Known;
use super::facts::Mailbox;
use super::finding::{Finding, Level};
use super::judge::{Seen, in_words};

/// Those of the hosts that get datagrams.
pub(super) fn with_mailboxes(seen: &[Seen]) -> Vec<(&Seen, Mailbox)> {
    let with = seen.iter().map(|host| (host, host.facts.mailbox.as_ref()));
    with.filter_map(|(host, mailbox)| Some((host, *mailbox.ok()?)))
        .collect()
}

/// Judges every pair of hosts by what both have found, of which each is given with its place;
/// `level` is that of a fault: the job's conduit may need no datagrams.
pub(super) fn judge(
    seen: &[Seen],
    found: &[(u32, Vec<Known>)],
    wait: Duration,
    level: Level,
) -> Vec<Finding> {
    let need =
        "UDP in both directions between hosts, for jobs over usnic; those over tcp need none";
    let mut findings: Vec<Finding> = Vec::new();
    for host in seen {
        // A host without an interface or settings has reported that.
        if let (Err(why), None) = (&host.facts.mailbox, &host.facts.trouble) {
            findings.push(Finding {
                level,
                check: "datagrams",
                hosts: vec![host.name.clone()],
                found: format!("{} gets no datagrams: {why}", host.name),
                need: Some(need.into()),
                remedy: Some(
                    "name a range of free ports in ARGONET_TCP_PORTS, or leave it unset".into(),
                ),
            });
        }
    }
    let hosts = with_mailboxes(seen);
    let state = |here: u32, there: u32| {
        let (_, known) = found.iter().find(|(place, _)| *place == here)?;
        let known = known.iter().find(|known| known.mailbox == there);
        Some(known.map_or(PathState::WELL, |known| known.state()))
    };
    let mut pairs = 0;
    for (here, (first, mailbox)) in (0..).zip(&hosts) {
        for (there, (second, other)) in (0..).zip(&hosts).skip(here as usize + 1) {
            // An agent that is lost has been reported.
            let (Some(from), Some(to)) = (state(here, there), state(there, here)) else {
                continue;
            };
            let fault = PathFault::between(from, to, FIRST_DATAGRAM_BYTES);
            let Some((fault, is_back)) = fault else {
                pairs += 1;
                continue;
            };
            let end = |host: &Seen, mailbox: &Mailbox| PathEnd {
                rank: None,
                host: host.name.clone(),
                place: Some(format!("UDP {}", mailbox.address)),
            };
            let mut ends = [end(first, mailbox), end(second, other)];
            if is_back {
                ends.reverse();
            }
            let [from, to] = ends;
            let path = BadPath {
                from,
                to,
                fault,
                silent: wait,
                sends: 0,
                answer: None,
                over_fabric: false,
            };
            findings.push(Finding {
                level,
                check: "datagrams",
                hosts: vec![first.name.clone(), second.name.clone()],
                found: path.found(),
                need: Some(need.into()),
                remedy: Some(path.advice().into()),
            });
        }
    }
    if pairs > 0 {
        let names = in_words(hosts.iter().map(|(host, _)| host.name.as_str()));
        let found = format!(
            "{pairs} pairs of {names} exchange datagrams of {FIRST_DATAGRAM_BYTES} bytes over UDP"
        );
        findings.insert(0, Finding::ok("datagrams", found));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::judge::tests::host;

    const WAIT: Duration = Duration::from_secs(3);

    #[test]
    fn a_pair_is_judged_by_what_both_hosts_know() {
        let seen = [host("a", 0), host("b", 1), host("c", 2)];
        let judge = |found: &[(u32, Vec<Known>)]| judge(&seen, found, WAIT, Level::Warning);
        let well = judge(&[(0, vec![]), (1, vec![]), (2, vec![])]);
        assert_eq!((well.len(), well[0].level), (1, Level::Ok));
        assert!(well[0].found.starts_with("3 pairs of a, b, c"), "{well:?}");
        let heard = PathState {
            heard: true,
            ..PathState::default()
        };
        let nothing = PathState::default();
        let found = judge(&[
            (0, vec![Known::new(1, nothing)]),
            (1, vec![Known::new(0, heard)]),
            (2, vec![]),
        ]);
        assert_eq!((found.len(), found[1].level), (2, Level::Warning));
        assert!(found[0].found.starts_with("2 pairs"), "{found:?}");
        let text = "b (UDP 10.1.0.1:4000) cannot reach a (UDP 10.1.0.0:4000): the path is one-way";
        assert!(found[1].found.starts_with(text), "{found:?}");
        assert_eq!(found[1].hosts, ["a", "b"]);
        let remedy = found[1].remedy.as_deref().unwrap();
        assert!(remedy.contains("firewalls"), "{remedy}");
        // Of a host whose agent gave no answer nothing is said.
        let alone = judge(&[(0, vec![Known::new(1, nothing)])]);
        assert_eq!(alone, []);
    }

    #[test]
    fn a_host_without_a_port_is_reported_and_left_out() {
        let mut seen = [host("a", 0), host("b", 1)];
        seen[0].facts.mailbox = Err("all UDP ports are in use".into());
        assert_eq!(with_mailboxes(&seen).len(), 1);
        let found = judge(&seen, &[(0, vec![])], WAIT, Level::Problem);
        assert_eq!((found.len(), found[0].level), (1, Level::Problem));
        assert_eq!(
            found[0].found,
            "a gets no datagrams: all UDP ports are in use"
        );
    }
}
