//! Layout of the control file, and the hash by which two builds know that they agree.

use core::mem::{offset_of, size_of};

use super::job::{FenceWords, JobPage};
use super::key::KeySlot;
use super::rank::{RankPage, RankState};
use crate::bootstrap::KEYS;

pub(super) const VERSION: u32 = 3;

/// Layout of the control file of a job of a given size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    size: usize,
}

impl Layout {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            size: size as usize,
        }
    }
    pub(super) const fn rank_page(self, rank: usize) -> usize {
        size_of::<JobPage>() + rank * size_of::<RankPage>()
    }
    pub(super) const fn key_slot(self, rank: usize, key: usize) -> usize {
        self.rank_page(self.size) + (rank * KEYS + key) * size_of::<KeySlot>()
    }
    pub(crate) const fn total_bytes(self) -> usize {
        self.key_slot(self.size, 0)
    }
}

/// Bytes of the control memory of a job of `ranks` ranks on one host.
#[must_use]
pub fn control_bytes(ranks: u32) -> usize {
    Layout::new(ranks).total_bytes()
}

/// FNV-1a over everything that two builds must agree on.
pub(crate) const LAYOUT_HASH: u64 = {
    let parts = [
        size_of::<JobPage>(),
        size_of::<RankPage>(),
        size_of::<KeySlot>(),
        KEYS,
        offset_of!(JobPage, size),
        offset_of!(JobPage, huge_pages),
        offset_of!(JobPage, guardian_pid),
        offset_of!(JobPage, reports),
        offset_of!(JobPage, exit_word),
        offset_of!(JobPage, fence),
        offset_of!(JobPage, host_first),
        offset_of!(JobPage, neighborhood),
        offset_of!(JobPage, exit_reported),
        offset_of!(JobPage, forced_at_ms),
        offset_of!(JobPage, claimed),
        offset_of!(JobPage, goes_on),
        offset_of!(JobPage, losses),
        offset_of!(JobPage, agreement),
        offset_of!(JobPage, all_accept),
        offset_of!(JobPage, all_acknowledged),
        offset_of!(JobPage, furthest),
        offset_of!(FenceWords, host_arrived),
        offset_of!(RankPage, segment_len),
        offset_of!(RankPage, segment_base),
        offset_of!(RankPage, fences_entered),
        offset_of!(RankPage, notice),
        offset_of!(RankPage, lost),
        offset_of!(RankPage, accepts_losses),
        offset_of!(RankPage, agreed),
        RankState::Returned as usize,
        offset_of!(JobPage, exit_timeout_ms),
        VERSION as usize,
    ];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < parts.len() {
        hash = (hash ^ parts[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
};
