//! The descriptor of messages over libfabric.

use super::MessageRails;
use crate::channel::{Channel, ChannelSizes, receive_space};
use crate::descriptor::{Descriptor, Facts};
use argonet_nic::fabric::Library;
use argonet_nic::rdm;
use argonet_settings::{OFI_PROVIDER, OFI_ROW, Settings};

/// The conduit ofi.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &OFI_ROW,
    limits: || ChannelSizes::default().limits(),
    capabilities: Channel::<MessageRails<rdm::Rdm>>::CAPABILITIES,
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    vec![
        ("messages go through", goes_through(settings)),
        ("requests that wait", receive_space(settings, ranks)),
    ]
}

/// The provider that the settings choose, or why no job can start.
fn goes_through(settings: &Settings) -> String {
    let provider = settings.get(&OFI_PROVIDER);
    let library = Library::of_settings(settings);
    let described = library.and_then(|library| rdm::describe(&library, provider.as_deref(), None));
    described.unwrap_or_else(|error| format!("nothing, no job can start: {error}"))
}
