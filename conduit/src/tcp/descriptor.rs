//! The descriptor of connections over TCP.

use super::Tcp;
use super::join::listens_on;
use crate::channel::{ChannelSizes, receive_space};
use crate::descriptor::{Descriptor, Facts};
use argonet_settings::{Settings, TCP_CONNECTIONS, TCP_ROW};

/// The conduit tcp.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &TCP_ROW,
    limits: || ChannelSizes::default().limits(),
    capabilities: Tcp::CAPABILITIES,
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    let most = settings.get(&TCP_CONNECTIONS);
    vec![
        ("listens on", listens_on(settings)),
        (
            "connections of two ranks",
            format!("made on demand, at most {most}"),
        ),
        ("requests that wait", receive_space(settings, ranks)),
        (
            "while the target computes",
            "a thread of the target's may serve puts and gets (ARGONET_TCP_PROGRESS)".into(),
        ),
    ]
}
