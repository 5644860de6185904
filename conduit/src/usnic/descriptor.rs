//! The descriptor of datagrams.

use super::DatagramRails;
use crate::channel::{Channel, ChannelSizes, receive_space};
use crate::descriptor::{Descriptor, Facts};
use crate::tcp::join::listens_on;
use argonet_nic::datagram::{Nic, fabric};
use argonet_nic::fabric::Library;
use argonet_settings::{Settings, USNIC_NIC, USNIC_PROVIDER, USNIC_ROW};

/// The conduit usnic.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &USNIC_ROW,
    limits: || ChannelSizes::default().limits(),
    capabilities: Channel::<DatagramRails<Nic>>::CAPABILITIES,
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    vec![
        ("listens on", listens_on(settings)),
        ("datagrams go through", goes_through(settings)),
        ("requests that wait", receive_space(settings, ranks)),
    ]
}

/// The interface that the settings choose, or why no job can start.
fn goes_through(settings: &Settings) -> String {
    if settings.get(&USNIC_NIC) != "fabric" {
        return "sockets of the system (ARGONET_USNIC_NIC)".to_owned();
    }
    let provider = settings.get(&USNIC_PROVIDER);
    let library = Library::of_settings(settings);
    let described =
        library.and_then(|library| fabric::describe(&library, provider.as_deref(), None));
    described.unwrap_or_else(|error| format!("nothing, no job can start: {error}"))
}
