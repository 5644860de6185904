//! Sizes of interfaces in software.

use super::shared::{ARRIVALS, QUEUES, REGISTRATIONS, WILDCARDS};
use argonet_base::JobRank;
use argonet_nic::gni::software::{SoftwareConfig, mailbox_bytes};
use argonet_nic::gni::{GniError, Shape};

/// The sizes of interfaces in software that have what the [rails](super::MailboxRails) of so many
/// ranks from the first one on need.
///
/// # Errors
/// A shape of mailboxes that they do not take.
pub fn software_config(
    (first, ranks): (JobRank, u32),
    shape: Shape,
) -> Result<SoftwareConfig, GniError> {
    let mailbox = mailbox_bytes(first, shape)?;
    Ok(SoftwareConfig {
        first,
        ranks,
        nics: 1,
        registrations: REGISTRATIONS,
        queues: QUEUES,
        queue_events: ARRIVALS,
        wildcards: WILDCARDS as u32,
        buffer_bytes: mailbox.saturating_mul(ranks.into()),
    })
}
