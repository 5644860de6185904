//! `argonet doctor` over hosts that are well, and over hosts that each have one fault.

use std::process::{Command, Output};

use serde_json::Value;

use crate::built;
use crate::network::Network;
use crate::support::Test;

/// They need network namespaces.
pub(crate) const TESTS: &[Test] = &[
    ("doctor_finds_hosts_well", well),
    ("doctor_names_hosts_that_it_does_not_reach", unreachable),
    ("doctor_distinguishes_dropped_from_refused_ports", firewall),
    ("doctor_sees_one_direction_and_one_network", partly),
    ("doctor_distinguishes_paths_of_datagrams", datagrams),
    ("doctor_compares_limits_and_packets", limits),
    ("doctor_refuses_bad_arguments", refused),
    ("doctor_says_that_its_report_is_lost", full_device),
];

/// Findings of a run.
struct Examined {
    code: Option<i32>,
    findings: Vec<Value>,
    text: String,
}

fn doctor(template: &str, args: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(built::command());
    command.arg("doctor").args(args);
    command.env("GASNET_CSPAWN_CMD", template);
    command.envs(settings.iter().copied());
    command.output().expect("argonet can be run")
}

fn examine(template: &str, args: &[&str], settings: &[(&str, &str)]) -> Examined {
    let output = doctor(template, &[args, &["--json"]].concat(), settings);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "{text}");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["well"], output.status.success(), "{text}");
    Examined {
        code: output.status.code(),
        findings: document["findings"].as_array().expect("a list").clone(),
        text,
    }
}

impl Examined {
    /// The findings of a check that are not "ok": their levels and all that they say.
    fn of(&self, check: &str) -> Vec<(&str, String)> {
        let of_check = |finding: &&Value| finding["check"] == check && finding["level"] != "ok";
        let part =
            |finding: &Value, what: &str| finding[what].as_str().unwrap_or_default().to_owned();
        let findings = self.findings.iter().filter(of_check);
        findings
            .map(|finding| {
                let parts = ["found", "need", "remedy"].map(|what| part(finding, what));
                (
                    finding["level"].as_str().expect("a level"),
                    parts.join(" | "),
                )
            })
            .collect()
    }

    /// Only this check has found something.
    #[track_caller]
    fn only(&self, check: &str) -> Vec<(&str, String)> {
        for finding in &self.findings {
            let expected = finding["check"] == check || finding["level"] == "ok";
            assert!(expected, "{}", self.text);
        }
        self.of(check)
    }
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
}

fn well() {
    let network = Network::of(&["a", "b", "c"], 2);
    let examined = examine(&network.template(), &["-H", "a:2,b:2,c"], &[]);
    assert_eq!(examined.code, Some(0), "{}", examined.text);
    let checks: Vec<&Value> = examined.findings.iter().map(|f| &f["check"]).collect();
    let expected = [
        "launcher",
        "reach",
        "version",
        "interfaces",
        "interfaces",
        "interfaces",
        "network",
        "datagrams",
        "mtu",
        "nofile",
        "memlock",
        "clock",
    ];
    assert_eq!(checks, expected, "{}", examined.text);
    says(
        &examined.text,
        &[
            "a would use eth0 (10.71.0.1/24, MTU 1500), eth1 (10.71.1.1/24, MTU 1500)",
            "6 directions between a, b, c work",
            "3 pairs of a, b, c exchange datagrams of 1232 bytes",
        ],
    );
    // For people, by the ports of a setting, which suffice by one.
    let ports = ("ARGONET_TCP_PORTS", "4000-4001");
    let output = doctor(&network.template(), &["-H", "a:2,b:2"], &[ports]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    says(
        &text,
        &[
            "hosts: 2, ranks: 4",
            "ok       network     2 directions",
            "a job over these hosts would work (0 warnings)",
        ],
    );
    let examined = examine(&network.template(), &["-H", "a:3,b:2"], &[ports]);
    assert_eq!(examined.code, Some(1));
    let found = &examined.only("ports")[0].1;
    says(
        found,
        &[
            "all ports from 4000 to 4001 are in use",
            "3 ports, one for each rank",
        ],
    );
}

fn unreachable() {
    let network = Network::new(&["a", "b"]);
    let examined = examine(&network.template(), &["-H", "a,nowhere,b"], &[]);
    assert_eq!(examined.code, Some(1));
    let found = examined.only("reach");
    assert_eq!(found.len(), 1, "{}", examined.text);
    says(
        &found[0].1,
        &[
            "host nowhere (rank 1): ",
            "the command to start its agent printed: ",
            "nowhere\": No such file",
            "a key or an agent of ssh",
        ],
    );
    says(&examined.text, &["2 directions between a, b work"]);

    // A host whose agent hangs, one with another version, one without an agent.
    let template = format!(
        "case %M in hangs) exec sleep 1000;; old) printf '\\nargonet-agent\\0\\001\\r\\0\\0\\0\\001\\0\\0\\0\\002\\0\\0\\0\\005\\0\\0\\00009.9.9' \
         | tr '\\r' '\\015'; exec sleep 1000;; no) echo Permission denied >&2; exit 255;; *) {};; esac",
        network.template()
    );
    let timeout = ("ARGONET_AGENT_TIMEOUT", "1");
    let examined = examine(&template, &["-H", "a,hangs,b,no"], &[timeout]);
    let found = examined.only("reach");
    assert_eq!(found.len(), 2, "{}", examined.text);
    says(
        &found[0].1,
        &["host hangs (rank 1): its agent gave no sign of life for 1 s"],
    );
    says(
        &found[1].1,
        &[
            "host no (rank 3)",
            "the command to start its agent printed: Permission denied",
        ],
    );
}

fn firewall() {
    let network = Network::new(&["a", "b"]);
    network.filter("b", "tcp dport 4001-4099 drop");
    let ports = ("ARGONET_TCP_PORTS", "4000-4099");
    let examined = examine(
        &network.template(),
        &["-H", "a:2,b:2", "--wait", "0.4"],
        &[ports],
    );
    assert_eq!(examined.code, Some(1));
    let found = examined.only("network");
    assert_eq!(found.len(), 1, "{}", examined.text);
    assert_eq!(found[0].0, "problem");
    says(
        &found[0].1,
        &[
            "a to b at 10.71.0.2 port 4001: no answer within 0.4 s",
            "TCP from a to 10.71.0.2 port 4001 of b",
            "let TCP to ports 4000-4099 (ARGONET_TCP_PORTS) pass the firewall of b",
        ],
    );
    network.heal("b");
    network.filter("b", "tcp flags & (syn | ack) == syn reject with tcp reset");
    let examined = examine(&network.template(), &["-H", "a,b", "--wait", "0.4"], &[]);
    let found = examined.only("network");
    assert_eq!(found.len(), 1, "{}", examined.text);
    says(
        &found[0].1,
        &[
            "refused, though it listens there",
            "set ARGONET_TCP_PORTS, such as",
            "b needs 1",
        ],
    );
}

fn partly() {
    // One of two networks leads nowhere, but the other does.
    let network = Network::of(&["a", "b"], 2);
    network.filter("b", "iifname eth1 drop");
    let examined = examine(&network.template(), &["-H", "a,b", "--wait", "0.4"], &[]);
    assert_eq!(examined.code, Some(0), "{}", examined.text);
    let found = examined.only("network");
    // From b too: the answers do not come.
    assert_eq!(found.len(), 2, "{}", examined.text);
    assert!(found.iter().all(|(level, _)| *level == "warning"));
    says(
        &found[0].1,
        &["a to b at 10.71.1.2", "can be reached at another address"],
    );
    // The user wants that one.
    let only = ("ARGONET_TCP_INTERFACES", "eth1");
    let examined = examine(
        &network.template(),
        &["-H", "a,b", "--wait", "0.4"],
        &[only],
    );
    assert_eq!(examined.code, Some(1));
    assert_eq!(examined.of("network").len(), 2);
    let found = examined.of("datagrams");
    assert_eq!((found.len(), found[0].0), (1, "warning"));
    says(
        &found[0].1,
        &["cannot reach b (UDP 10.71.1.2:", "the path is one-way"],
    );
    // A missing interface.
    let none = ("ARGONET_TCP_INTERFACES", "eth0,eth7");
    let examined = examine(&network.template(), &["-H", "a,b"], &[none]);
    let found = examined.only("interfaces");
    assert_eq!(
        (examined.code, found.len()),
        (Some(1), 2),
        "{}",
        examined.text
    );
    says(
        &found[0].1,
        &[
            "a has no interface \"eth7\"; it has lo (",
            "ARGONET_TCP_INTERFACES",
        ],
    );
    // Short messages pass; packets of more than 600 bytes vanish in both directions.
    network.heal("b");
    network.filter("b", "iifname eth0 ip length > 600 drop");
    let first = ("ARGONET_TCP_INTERFACES", "eth0");
    let examined = examine(
        &network.template(),
        &["-H", "a,b", "--wait", "0.5"],
        &[first],
    );
    let found = examined.of("network");
    assert!(!found.is_empty(), "{}", examined.text);
    says(
        &found[0].1,
        &[
            "64 KiB in one piece do not",
            "ip link set dev eth0 mtu 1400",
        ],
    );
}

/// spec U10: in the words of a job.
fn datagrams() {
    let network = Network::new(&["a", "b"]);
    let examined = |settings: &[(&str, &str)]| {
        let args = ["-H", "a,b", "--wait", "0.5"];
        examine(&network.template(), &args, settings)
    };
    let usnic = [("ARGONET_CONDUIT", "usnic")];
    for (settings, code, level) in [(&[][..], 0, "warning"), (&usnic, 1, "problem")] {
        network.filter("b", "meta l4proto udp drop");
        let one_way = examined(settings);
        assert_eq!(one_way.code, Some(code), "{}", one_way.text);
        let found = one_way.only("datagrams");
        assert_eq!((found.len(), found[0].0), (1, level), "{}", one_way.text);
        says(
            &found[0].1,
            &[
                "a (UDP 10.71.0.1:",
                "cannot reach b (UDP 10.71.0.2:",
                "the path is one-way: datagrams come from there",
                "let UDP pass the firewalls of both hosts",
            ],
        );
        network.heal("b");
    }
    network.filter("a", "meta l4proto udp drop");
    network.filter("b", "meta l4proto udp drop");
    let examined_both = examined(&[]);
    let found = examined_both.only("datagrams");
    assert_eq!(found.len(), 1, "{}", examined_both.text);
    says(
        &found[0].1,
        &["no datagram passes, either way, within 0.5 s"],
    );
    network.heal("a");
    network.heal("b");
    network.set_mtu(1000);
    let short = examined(&[]);
    let found = short.only("datagrams");
    assert_eq!(found.len(), 1, "{}", short.text);
    says(&found[0].1, &["none of 1232 bytes does", "MTU to 1280"]);
}

fn limits() {
    let network = Network::new(&["a", "b"]);
    network.on("b", "ip link set dev eth0 mtu 1400");
    // On b fewer files than connections.
    let template = format!("[ %M != b ] || ulimit -n 132; {}", network.template());
    let examined = examine(&template, &["-H", "a:2,b:3"], &[]);
    assert_eq!(examined.code, Some(0), "{}", examined.text);
    let found = examined.only("mtu");
    assert_eq!((found.len(), found[0].0), (1, "warning"));
    says(
        &found[0].1,
        &[
            "10.71.0.0/24 differ in the MTU: 1400 at eth0 of b, 1500 at eth0 of a",
            "mtu 1400` on a",
        ],
    );
    let examined = examine(&template, &["-H", "a:3,b:3"], &[]);
    assert_eq!(examined.code, Some(1));
    let found = examined.of("nofile");
    assert_eq!(found.len(), 1, "{}", examined.text);
    says(
        &found[0].1,
        &[
            "a process on b may open 132 files",
            "134 files for each rank",
            "2 connections to each of 3 ranks",
            "limits.conf",
        ],
    );
}

fn refused() {
    for (args, parts) in [
        (&["-H", "a,-x"][..], &["is no host"][..]),
        (
            &["-H", "a:1", "-n", "2"],
            &["room for 1 ranks on 1 hosts, and 2 were asked for"],
        ),
        (
            &["--wait", "0", "-H", "a"],
            &["a number of seconds above 0"],
        ),
        (&["-H", "a", "--hostfile", "b"], &["cannot be used with"]),
        (&[], &["no hosts are named: use -H"]),
    ] {
        let output = doctor("%M %C", args, &[("GASNET_SSH_SERVERS", "")]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        says(&errors, parts);
    }
}

fn full_device() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = Command::new(built::command())
        .args(["doctor", "-H", "a"])
        .env("GASNET_CSPAWN_CMD", ": %M; exec %C")
        .stdout(full.expect("a full device"))
        .output()
        .expect("argonet can be run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    says(
        &errors,
        &["argonet doctor: writing the report failed: No space left on device"],
    );
}
