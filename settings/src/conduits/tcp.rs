//! Connections between hosts over TCP.

use super::{ConduitRow, LinkName};
use crate::kind::{DAY, Kind, TimeUnit};
use crate::row::{Preset, Scope};
use crate::setting::settings;
use crate::table::section;
use crate::value::Bytes;
use std::time::Duration;

/// The conduit over connections.
///
/// Clients that know the networks of GASNet alone ask for udp if they want the one for Ethernet:
/// here it is this one by that name.
pub const TCP_ROW: ConduitRow = ConduitRow {
    name: "tcp",
    about: "hosts, through authenticated connections; neighbors through shared memory",
    page: None,
    spans_hosts: true,
    leaves_neighborhoods: true,
    sends_datagrams: false,
    needs_library: false,
    moves_segments: |_| false,
    links: &[LinkName::new("tcp"), LinkName::of_gasnet("udp")],
    settings: Some(section("Connections over TCP", USED, &[])),
};

/// The most connections that two ranks can have.
pub const MAX_TCP_CONNECTIONS: u64 = 16;

settings! {
    TCP_INTERFACES: Option<String> = "ARGONET_TCP_INTERFACES", Kind::Text, Preset::Words("all that lead to other hosts"), Scope::Rank,
        "The network interfaces to listen at and to connect from: names, subnets and addresses such as eth0,10.1.0.0/16, separated by commas.";
    TCP_WORKER_IP: Option<String> = "GASNET_WORKERIP", Kind::Text, Preset::Unset, Scope::Rank,
        "An address in the subnet to use, such as 192.168.0.0; ARGONET_TCP_INTERFACES comes before it.";
    TCP_INTERFACE_COUNT: u64 = "ARGONET_TCP_INTERFACE_COUNT",
        Kind::Count { min: 0, max: 64, unit: "interfaces" }, Preset::Is("0"), Scope::Rank,
        "How many network interfaces are used at most, the first ones; 0 for any number.";
    TCP_PORTS: Option<String> = "ARGONET_TCP_PORTS", Kind::Text, Preset::Words("any"), Scope::Rank,
        "The ports to listen at, such as 40000-40999; a host needs one for each of its ranks. Over usnic, and over portals between hosts, they are UDP ports.";
    TCP_CONNECT_RETRIES: u64 = "ARGONET_TCP_CONNECT_RETRIES",
        Kind::Count { min: 0, max: 1_000_000, unit: "retries" }, Preset::Is("63"), Scope::Rank,
        "How often an address of a rank is tried again before it is given up.";
    TCP_UNREACHABLE_TIMEOUT: Duration = "ARGONET_TCP_UNREACHABLE_TIMEOUT",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::from_millis(100), max: DAY }, Preset::Is("30"), Scope::Rank,
        "How long a rank may be unreachable before the job ends.";
    TCP_CONNECTIONS: u64 = "ARGONET_TCP_CONNECTIONS",
        Kind::Count { min: 1, max: MAX_TCP_CONNECTIONS, unit: "connections" }, Preset::Is("2"), Scope::Job,
        "How many connections two ranks have with each other at most. Those after the first are made when large transfers want them.";
    TCP_EAGER_SIZE: Bytes = "ARGONET_TCP_EAGER_SIZE",
        Kind::Size { min: 64, max: 64 << 10 }, Preset::Is("65535"), Scope::Rank,
        "Puts up to this length are copied when they are injected, so that their source may be written again at once; longer ones are sent from their source. Data that a rank is asked for is copied up to this length, too, and up to 16 KB.";
    TCP_FRAGMENT_SIZE: Bytes = "ARGONET_TCP_FRAGMENT_SIZE",
        Kind::Size { min: 4 << 10, max: 1 << 20 }, Preset::Is("512 KB"), Scope::Rank,
        "Gets, and puts above ARGONET_TCP_EAGER_SIZE, go in fragments of at most this size, or 128 KB while several connections are used. A transfer of half of it or more asks for further connections.";
    TCP_SILENCE_TIMEOUT: Duration = "ARGONET_TCP_SILENCE_TIMEOUT",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::ZERO, max: DAY }, Preset::Is("5"), Scope::Job,
        "How long the host of a rank may acknowledge nothing before another connection is made; 0 for as long as the system waits. With ARGONET_RAILS for usnic, too, and, if not set, three retransmission timeouts of the rail, 0.2 s at least.";
    TCP_IDLE_BUFFERS: Duration = "ARGONET_TCP_IDLE_BUFFERS",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::ZERO, max: DAY }, Preset::Is("10"), Scope::Rank,
        "How long nothing may pass between two ranks before the buffers for each other are freed, which come back with the next message; 0 forever.";
    TCP_IDLE_CONNECTIONS: Duration = "ARGONET_TCP_IDLE_CONNECTIONS",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::ZERO, max: DAY }, Preset::Is("0"), Scope::Rank,
        "How long nothing may pass between two ranks before their connections are closed, which are made again for the next message; 0 forever.";
    TCP_PROGRESS: Option<bool> = "ARGONET_TCP_PROGRESS", Kind::Boolean, Preset::Words("yes where the host has a processor to spare"), Scope::Rank,
        "Whether a thread serves puts and gets of other hosts while the rank computes. It runs no handlers.";
}
