//! The control file: job page, ranks' pages and key store, as every process of the job maps them.
//!
//! ```text
//! 0        JobPage               256 bytes
//! 256      RankPage x size       64 bytes each
//! ...      KeySlot x KEYS x size 248 bytes each
//! ```
//!
//! All fields are atomics, because other processes write them: a reference to them is sound for any
//! store of a peer. Offsets follow from the number of ranks alone (`Layout`), and the hash of all
//! sizes and offsets is stored in the page, so that a program built from another version is refused
//! instead of misread.

mod control;
mod job;
mod key;
mod layout;
mod rank;

pub(crate) use crate::exit_word::ExitStage;
pub use crate::exit_word::{ExitKind, ExitWord};
pub(crate) use crate::part::HostPart;
pub(crate) use control::{Control, JobIdentity};
pub(crate) use job::FenceWords;
pub use job::JobPage;
pub use layout::control_bytes;
pub(crate) use layout::{LAYOUT_HASH, Layout};
pub(crate) use rank::UNDECLARED;
pub use rank::{RankPage, RankState};

/// The most ranks that one host runs for one job.
pub const MAX_LOCAL_RANKS: u32 = argonet_settings::MAX_LOCAL_RANKS;

/// The most ranks of a job over several hosts.
pub const MAX_JOB_RANKS: u32 = 1 << 16;
