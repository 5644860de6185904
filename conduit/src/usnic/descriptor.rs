//! The descriptor of datagrams.

use super::DatagramRails;
use crate::channel::{Channel, ChannelSizes, receive_space};
use crate::descriptor::{Descriptor, Facts};
use crate::tcp::join::listens_on;
use argonet_nic::datagram::Udp;
use argonet_settings::{Settings, USNIC_ROW};

/// The conduit usnic.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &USNIC_ROW,
    limits: || ChannelSizes::default().limits(),
    capabilities: Channel::<DatagramRails<Udp>>::CAPABILITIES,
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    vec![
        ("listens on", listens_on(settings)),
        ("requests that wait", receive_space(settings, ranks)),
    ]
}
