//! This rank where ranks may be lost.

use std::os::fd::AsFd;

use argonet_base::JobRank;

use super::{RankProcess, this};
use crate::page::Control;
use crate::{guardian, judgment};

/// The rank of this process in the job in `control` cannot reach `peer`: see
/// [`Bootstrap::unreachable`](crate::Bootstrap::unreachable).
pub(crate) fn unreachable(control: &Control, peer: JobRank) -> bool {
    let this = this().filter(|this| std::ptr::eq(&*this.control, control));
    let Some((this, link)) = this.and_then(|this| Some((this, this.ways.link.as_ref()?))) else {
        return false;
    };
    let link = link.as_fd();
    let can_be = peer != this.rank && judgment::one_may_be_lost(control, this.rank, peer);
    if can_be {
        guardian::accuse(link, this.rank, peer);
    }
    can_be && !guardian::is_hung_up(link)
}

impl RankProcess {
    /// Whether the job goes on if this process dies now.
    ///
    /// Async-signal-safe.
    pub(crate) fn may_be_lost(&self) -> bool {
        judgment::may_be_lost(&self.control, self.rank)
    }
}
