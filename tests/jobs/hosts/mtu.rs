//! Datagrams as long as the network between hosts takes, which changes under load.

use super::storm::rounds;
use crate::network::Network;
use crate::support::{Job, Talk};

/// What a filter matches of datagrams that fill jumbo frames: those have 9,000 bytes, of which the
/// header of IPv4 takes 20.
const JUMBO: &str = "udp length 8980 counter";

/// Goes on until some have come that fill them; the test's watchdog bounds it.
fn until_long(network: &Network, talk: &mut Talk<'_>) {
    network.filter("b", JUMBO);
    while network.struck("b") < 100 {
        rounds(talk, 1);
    }
    network.heal("b");
}

pub(super) fn followed() {
    let network = Network::new(&["a", "b"]);
    network.set_mtu(9000);
    network.set_mtu_between(9000);
    let job = Job::over_conduit("usnic", 2, "a,b", "rails");
    let job = job.env("GASNET_CSPAWN_CMD", &network.template());
    let outcome = job.run_with(|talk| {
        until_long(&network, talk);
        // Long ones are lost without a word.
        network.set_mtu_between(1500);
        rounds(talk, 10);
        network.set_mtu_between(9000);
        until_long(&network, talk);
        // The sender's own interface refuses them.
        network.on("a", "ip link set eth0 mtu 1500");
        rounds(talk, 10);
    });
    outcome.ended_well();
}
