//! Connections between hosts over TCP.

use crate::kind::{DAY, Kind, TimeUnit};
use crate::row::{Preset, Scope};
use crate::setting::settings;
use std::time::Duration;

settings! {
    TCP_INTERFACES: Option<String> = "ARGONET_TCP_INTERFACES", Kind::Text, Preset::Words("all that lead to other hosts"), Scope::Rank,
        "The network interfaces to use: names, subnets and addresses such as eth0,10.1.0.0/16, separated by commas.";
    TCP_WORKER_IP: Option<String> = "GASNET_WORKERIP", Kind::Text, Preset::Unset, Scope::Rank,
        "An address in the subnet to use, such as 192.168.0.0; ARGONET_TCP_INTERFACES comes before it.";
    TCP_INTERFACE_COUNT: u64 = "ARGONET_TCP_INTERFACE_COUNT",
        Kind::Count { min: 0, max: 64, unit: "interfaces" }, Preset::Is("0"), Scope::Rank,
        "How many network interfaces are used at most, the first ones; 0 for any number.";
    TCP_PORTS: Option<String> = "ARGONET_TCP_PORTS", Kind::Text, Preset::Words("any"), Scope::Rank,
        "The ports to listen at, such as 40000-40999; a host needs one for each of its ranks.";
    TCP_CONNECT_RETRIES: u64 = "ARGONET_TCP_CONNECT_RETRIES",
        Kind::Count { min: 0, max: 1_000_000, unit: "retries" }, Preset::Is("63"), Scope::Rank,
        "How often an address of a rank is tried again before it is given up.";
    TCP_UNREACHABLE_TIMEOUT: Duration = "ARGONET_TCP_UNREACHABLE_TIMEOUT",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::from_millis(100), max: DAY }, Preset::Is("30"), Scope::Rank,
        "How long a rank may be unreachable before the job ends.";
}
