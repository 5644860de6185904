//! Rails of mailboxes: the stream to each peer in short messages of a GNI interface, and puts and
//! gets by the interface itself.
//!
//! Two ranks exchange where their mailboxes are by datagrams, when one of them first sends to the
//! other (`greeting`); both may begin. From then on each has a rail to the other: a virtual
//! connection, whose bytes are cut into short messages (SMSG). A mailbox keeps what was not read,
//! and no more than its credits.
//!
//! Puts and gets need no connection (`one_sided`): each rank registers its segment at the same
//! place of its table under a key that follows from the secret of the job. Short ones go by the
//! window of the processor (FMA), long ones by the interface's engine (BTE).
//!
//! The conduit is generic over [`Gni`]; [`software_config`] alone is for interfaces in software.

mod descriptor;
mod greeting;
mod one_sided;
mod rail;
mod rails;
mod shared;
mod software;
#[cfg(test)]
mod tests;

pub use descriptor::DESCRIPTOR;
pub use one_sided::OneSidedCounts;
pub use rail::MailboxRail;
pub use rails::MailboxRails;
pub use software::software_config;

use argonet_base::JobRank;
use argonet_nic::gni::{Gni, GniError, Shape};
use argonet_segment::Directory;
use argonet_settings::GNI_ROW;
use core::time::Duration;
use std::sync::Arc;

/// Name of the conduit, as in `--conduit`.
pub const NAME: &str = GNI_ROW.name;

/// How the [`MailboxRails`] of a rank are set up.
pub struct MailboxRailsConfig<N: Gni> {
    /// The rank.
    pub rank: JobRank,
    /// The ranks whose interfaces are reached: the first, and how many.
    pub peers: (JobRank, u32),
    /// Its interface.
    pub nic: N,
    /// Shape of each mailbox; the same for all ranks.
    pub shape: Shape,
    /// The secret of the job: by it datagrams prove that they are of the job, and keys are made.
    pub secret: Vec<u8>,
    /// Where this rank's segment is attached.
    pub directory: Arc<Directory>,
    /// Where the segments are mapped that the interface reaches, this rank's among them.
    pub reached: Arc<Directory>,
    /// How long a peer that has left may still be wanted before it counts as lost.
    pub silence: Duration,
}

/// Bytes that the mailboxes of a rank take of its interface's [buffers](Gni::buffers).
///
/// # Errors
/// A shape that the interface does not take.
pub fn mailboxes_bytes<N: Gni>(nic: &N, shape: Shape, ranks: u32) -> Result<u64, GniError> {
    Ok(nic.mailbox_bytes(shape)?.saturating_mul(ranks.into()))
}
