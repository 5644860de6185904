//! Hosts for tests: network namespaces of this machine, joined by bridges.
//!
//! ```text
//!   namespace a         namespace switch         namespace b
//!     eth0 10.71.0.1 ---- a0 = bridge br0 = b0 ---- eth0 10.71.0.2
//!     eth1 10.71.1.1 ---- a1 = bridge br1 = b1 ---- eth1 10.71.1.2       (if there are two networks)
//! ```
//!
//! Nothing of it is in the machine's own namespace. A guardian, a shell that waits for the end of a
//! pipe, takes all of it away, with the processes that are left in it, when the [`Network`] is
//! dropped or the test's process ends in any way, and after half an hour at the latest. Leftovers
//! of a guardian that was killed go when the next network is made.
//!
//! Needs the right to make namespaces, `ip` and `tc` (Debian's iproute2) and `nft` (nftables);
//! [`missing`] names the missing part.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of the names of namespaces; the id of the test's process follows.
const PREFIX: &str = "argonet-test-";

/// Hosts that see each other over one or two networks.
pub(crate) struct Network {
    prefix: String,
    hosts: Vec<String>,
    guardian: Child,
}

/// Why networks cannot be made here; nothing if they can.
pub(crate) fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let script = "for tool in ip tc nft timeout; do command -v $tool >/dev/null || { echo no $tool; exit; }; done\n\
             unshare -n ip link add probe type bridge 2>/dev/null || { echo no right to make network namespaces; exit; }\n\
             unshare -n nft add table inet probe 2>/dev/null || echo no right to filter packets";
        let output = sh(script).expect("a shell");
        (!output.is_empty()).then(|| output.trim().to_owned())
    };
    MISSING.get_or_init(find).as_deref()
}

/// Runs a script; returns its output, or its failure.
fn sh(script: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-ec", script]).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{}\n{script}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Takes away what begins with `$1`.
const REMOVE: &str = "for n in $(ip netns list | sed 's/ .*//' | grep \"^$1\"); do \
     ip netns pids $n | xargs -r kill -9 2>/dev/null; ip netns del $n; done";

impl Network {
    /// These hosts, each with an interface `eth0` in one network.
    pub(crate) fn new(hosts: &[&str]) -> Self {
        Self::of(hosts, 1)
    }

    /// These hosts, each with an interface in each of so many networks.
    pub(crate) fn of(hosts: &[&str], networks: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_networks_of_dead_tests();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{PREFIX}{}-{count}-", std::process::id());
        let guard = format!(
            "trap '' INT TERM HUP; timeout 1800 cat >/dev/null; set -- '{prefix}'; {REMOVE}"
        );
        let guardian = Command::new("sh")
            .args(["-c", &guard])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The terminal's signals are for the test.
            .process_group(0)
            .spawn()
            .expect("a shell");
        let this = Self {
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            prefix,
            guardian,
        };
        this.make(networks);
        this
    }

    fn make(&self, networks: usize) {
        let switch = self.namespace("switch");
        let mut script = format!("ip netns add {switch}\n");
        for network in 0..networks {
            script += &format!("ip -n {switch} link add br{network} type bridge forward_delay 0\n");
            script += &format!("ip -n {switch} link set br{network} up\n");
        }
        for host in &self.hosts {
            let space = self.namespace(host);
            script += &format!("ip netns add {space}\nip -n {space} link set lo up\n");
            // Each refusal is reported, not some in a second.
            script += &format!(
                "ip netns exec {space} sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_ratelimit'\n"
            );
            for network in 0..networks {
                script += &self.joining(host, network);
            }
        }
        sh(&script).expect("a network");
    }

    /// A script that gives a host its interface in a network.
    fn joining(&self, host: &str, network: usize) -> String {
        let (switch, space) = (self.namespace("switch"), self.namespace(host));
        let (port, address) = (self.port(host, network), self.address(host, network));
        format!(
            "ip -n {switch} link add {port} type veth peer name eth{network} netns {space}\n\
             ip -n {switch} link set {port} master br{network} up\n\
             ip -n {space} addr add {address}/24 dev eth{network}\n\
             ip -n {space} link set eth{network} up\n"
        )
    }

    /// The switch's end of a host's interface.
    fn port(&self, host: &str, network: usize) -> String {
        format!("p{}-{network}", self.number(host))
    }

    fn number(&self, host: &str) -> usize {
        let i = self.hosts.iter().position(|h| h == host);
        i.expect("a host of this network")
    }

    /// A host has its interface in a network no more, until [`join`](Self::join).
    #[allow(
        dead_code,
        reason = "not every test program that has this module takes one away"
    )]
    pub(crate) fn leave(&self, host: &str, network: usize) {
        self.on(host, &format!("ip link del eth{network}"));
    }

    /// It has it again, as new.
    #[allow(
        dead_code,
        reason = "not every test program that has this module takes one away"
    )]
    pub(crate) fn join(&self, host: &str, network: usize) {
        sh(&self.joining(host, network)).expect("an interface");
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// The command template that runs an agent on a host (`GASNET_CSPAWN_CMD`).
    pub(crate) fn template(&self) -> String {
        format!("exec ip netns exec {}%M %C", self.prefix)
    }

    /// A host's address in a network.
    pub(crate) fn address(&self, host: &str, network: usize) -> String {
        format!("10.71.{network}.{}", self.number(host) + 1)
    }

    /// Runs a script on a host, and returns its output.
    #[track_caller]
    pub(crate) fn on(&self, host: &str, script: &str) -> String {
        let space = self.namespace(host);
        let output = self.command(host).args(["sh", "-ec", script]).output();
        let output = output.unwrap_or_else(|error| panic!("{space}: {error}"));
        assert!(
            output.status.success(),
            "{space}: {script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command for a host; its program is the first argument.
    pub(crate) fn command(&self, host: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host)]);
        command
    }

    /// Limits the bytes that a host sends over an interface, such as `1gbit`.
    #[allow(
        dead_code,
        reason = "not every test program that has this module measures speeds"
    )]
    pub(crate) fn limit(&self, host: &str, interface: &str, rate: &str) {
        let shape = "tbf burst 256k latency 50ms rate";
        self.on(
            host,
            &format!("tc qdisc replace dev {interface} root {shape} {rate}"),
        );
    }

    /// Filters packets to a host: `rule` as nft has it, such as `tcp dport 4000-4010 drop`.
    ///
    /// Added to those before.
    #[track_caller]
    pub(crate) fn filter(&self, host: &str, rule: &str) {
        let chain = "{ type filter hook input priority 0; }";
        let rules =
            format!("add table inet t\nadd chain inet t in {chain}\nadd rule inet t in {rule}\n");
        let mut nft = self.command(host);
        let mut nft = nft
            .args(["nft", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("nft");
        let written = nft.stdin.take().expect("piped").write_all(rules.as_bytes());
        written.expect("rules");
        assert!(nft.wait().expect("nft").success(), "{host}: {rule}");
    }

    /// Connections of a host end in the moment in which something comes for it, until
    /// [`heal`](Self::heal).
    pub(crate) fn cut(&self, host: &str) {
        self.filter(host, "meta l4proto tcp counter reject with tcp reset");
    }

    /// Drops all that comes to a host, without a report to the sender, until [`heal`](Self::heal).
    pub(crate) fn swallow(&self, host: &str) {
        self.filter(host, "iifname \"eth*\" meta l4proto tcp counter drop");
    }

    /// Waits until what [`cut`](Self::cut) or [`swallow`](Self::swallow) does has hit so many
    /// packets.
    ///
    /// The caller's time limit bounds it.
    pub(crate) fn wait_until_struck(&self, host: &str, packets: u64) {
        while self.struck(host) < packets {
            std::thread::yield_now();
        }
    }

    /// Packets that filters of a host have counted.
    pub(crate) fn struck(&self, host: &str) -> u64 {
        let rules = self.on(host, "nft list table inet t");
        let counts = rules.split("counter packets ").skip(1);
        let count = |rest: &str| rest.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        counts.filter_map(count).sum()
    }

    /// Longest packets that hosts send over the first network.
    #[allow(
        dead_code,
        reason = "not every test program that has this module changes them"
    )]
    pub(crate) fn set_mtu(&self, bytes: u32) {
        for host in &self.hosts {
            self.on(host, &format!("ip link set eth0 mtu {bytes}"));
        }
    }

    /// Longest packets that the switch passes on between them; others are lost without a word.
    #[allow(
        dead_code,
        reason = "not every test program that has this module changes them"
    )]
    pub(crate) fn set_mtu_between(&self, bytes: u32) {
        for host in &self.hosts {
            let port = self.port(host, 0);
            self.on("switch", &format!("ip link set {port} mtu {bytes}"));
        }
    }

    /// Everything comes to a host again.
    pub(crate) fn heal(&self, host: &str) {
        self.on(host, "nft delete table inet t");
    }
}

impl Drop for Network {
    /// Waits until nothing is left.
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
        // A panic within a panic would hide the first one.
        if !std::thread::panicking() {
            let left = sh("ip netns list").expect("a list");
            assert!(!left.contains(&self.prefix), "left behind: {left}");
        }
    }
}

fn remove_networks_of_dead_tests() {
    let script = format!(
        "for n in $(ip netns list | sed 's/ .*//' | grep '^{PREFIX}'); do pid=${{n#{PREFIX}}}; pid=${{pid%%-*}}; \
         [ -e /proc/$pid ] || {{ set -- \"{PREFIX}$pid-\"; {REMOVE}; }}; done"
    );
    // Another test may be removing the same.
    let _ = sh(&script);
}
