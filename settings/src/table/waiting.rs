//! Waiting of ranks, and their reports when it takes long.

use crate::choice::WaitMode;
use crate::kind::{Kind, SECONDS};
use crate::row::{Preset, Scope};
use crate::setting::settings;
use std::time::Duration;

settings! {
    WAIT: WaitMode = "ARGONET_WAIT", Kind::Choice(WaitMode::WORDS), Preset::Is("auto"), Scope::Rank,
        "How a rank waits: looking again and again, letting others run, sleeping soon, or as suits ranks and processors.";
    STALL_TIMEOUT: Duration = "ARGONET_STALL_TIMEOUT", SECONDS, Preset::Is("60"), Scope::Rank,
        "How long a rank may wait without progress before it reports what it waits for; 0 for never.";
}
