//! One interface's view of those of its host.

use super::datagram::Datagrams;
use super::faults::Faults;
use super::memory::Registrations;
use super::queue::Taken;
use super::region::Region;
use crate::gni::{Credentials, Failure, GniError, NicAddress};
use argonet_base::JobRank;
use argonet_segment::Resolver;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Set in the word of credentials, which is 0 before an interface has joined.
const JOINED: u64 = 1 << 63;

/// State that every part of the interface works with.
pub(super) struct Shared {
    pub(super) region: Region,
    pub(super) segments: Option<Resolver>,
    pub(super) address: NicAddress,
    /// Which of the interfaces that share the file this is.
    pub(super) place: u32,
    pub(super) joined: u64,
    pub(super) faults: Faults,
    pub(super) registrations: Mutex<Registrations>,
    pub(super) queues: Mutex<Taken>,
    pub(super) datagrams: Datagrams,
    pub(super) failures: Mutex<VecDeque<Failure>>,
    /// Endpoints that were made.
    pub(super) endpoints: AtomicU64,
    /// Threads of this process that sleep, or are about to.
    pub(super) sleepers: Mutex<u32>,
}

/// How credentials stand in the file.
pub(super) fn joined_word(credentials: Credentials) -> u64 {
    JOINED | u64::from(credentials.ptag) << 32 | u64::from(credentials.cookie)
}

impl Shared {
    pub(super) fn rank(&self) -> JobRank {
        self.address.rank
    }

    pub(super) fn invalid(&self, what: &'static str) -> GniError {
        GniError::Invalid {
            rank: self.rank(),
            what,
        }
    }

    pub(super) fn busy(&self, what: &'static str) -> GniError {
        GniError::Busy {
            rank: self.rank(),
            what,
        }
    }

    pub(super) fn bad_handle(&self, what: &'static str) -> GniError {
        GniError::BadHandle {
            rank: self.rank(),
            what,
        }
    }

    pub(super) fn no_space(&self, what: &'static str, limit: u64) -> GniError {
        GniError::NoSpace {
            rank: self.rank(),
            what,
            limit,
        }
    }

    pub(super) fn too_long(&self, what: &'static str, len_bytes: u64, most_bytes: u64) -> GniError {
        GniError::TooLong {
            rank: self.rank(),
            what,
            len_bytes,
            most_bytes,
        }
    }

    /// Makes this interface one that peers reach.
    pub(super) fn join(&self) -> Result<(), GniError> {
        let word = self.region.word(self.region.layout.joined(self.place));
        self.step();
        word.compare_exchange(0, self.joined, Ordering::SeqCst, Ordering::Relaxed)
            .map_err(|_| self.invalid("an interface is opened once in its file"))?;
        Ok(())
    }

    /// The place of a peer that has joined with the same credentials.
    pub(super) fn peer(&self, peer: NicAddress) -> Result<u32, GniError> {
        let rank = self.rank();
        let bad = GniError::BadPeer { rank, peer };
        let Some(place) = self.region.layout.config.place(peer) else {
            return Err(bad);
        };
        match self.credentials(place) {
            word if word == self.joined => Ok(place),
            0 => Err(self.busy("an exchange with an interface that has not been opened")),
            _ => Err(bad),
        }
    }

    /// The word of the interface at a place.
    pub(super) fn credentials(&self, place: u32) -> u64 {
        let at = self.region.layout.joined(place);
        self.region.word(at).load(Ordering::Acquire)
    }

    /// A step that a fault may make the last.
    #[inline(always)]
    pub(super) fn step(&self) {
        self.faults.step();
    }
}
