//! The descriptor of mailboxes.

use super::NAME;
use crate::channel::{ChannelSizes, receive_space};
use crate::conduit::Capabilities;
use crate::descriptor::{Descriptor, Facts};
use argonet_settings::{GNI_MAILBOX_CREDITS, GNI_MAILBOX_MESSAGE, GNI_ROW, Settings};

/// The conduit gni.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &GNI_ROW,
    limits: || ChannelSizes::default().limits(),
    capabilities: Capabilities {
        put: true,
        get: true,
        atomics: false,
        completes_at_injection: false,
    },
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    let (messages, bytes) = (
        settings.get(&GNI_MAILBOX_CREDITS),
        settings.get(&GNI_MAILBOX_MESSAGE),
    );
    let mailbox = format!("{messages} messages of {} bytes for each peer", bytes.0);
    vec![
        (
            "interface",
            format!("{NAME} in software, in memory of the host"),
        ),
        ("mailboxes", mailbox),
        ("requests that wait", receive_space(settings, ranks)),
    ]
}
