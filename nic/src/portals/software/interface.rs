//! The interface of a rank.

use super::bound::Table;
use super::config::SoftwareConfig;
use super::faults::{FaultRules, Faults};
use super::memory::Memory;
use super::operate::Initiator;
use super::records::entry;
use super::region::Region;
use super::shared::Shared;
use super::transaction::Transaction;
use crate::portals::{DescriptorHandle, EntryHandle, NicError, Part};
use argonet_base::JobRank;
use argonet_segment::Resolver;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::fd::BorrowedFd;

/// The interface of a rank, in a file that the ranks of a host share.
pub struct Software {
    pub(super) shared: Shared,
    pub(super) table: Table,
}

/// Operations that have gone through an entry's list in the ordinary way.
///
/// Operations without the lock are counted by their initiators
/// ([`Register::Direct`](crate::portals::Register::Direct)), as a count at the target would cost
/// them a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Puts.
    pub puts: u64,
    /// Gets.
    pub gets: u64,
    /// Atomic operations.
    pub atomics: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Software {
    /// The interface of `rank` in the file that all ranks of the host share: a memory file, empty
    /// before the first comes.
    ///
    /// Peers may reach entries of this rank from then on; a barrier of the job must establish that
    /// it has made them all.
    ///
    /// `segments` makes the attached segments reachable, beside the interface's own
    /// [`buffers`](Self::buffers).
    ///
    /// # Errors
    /// [`NicError::BadRank`] if the rank is not among those of `config`; [`NicError::Invalid`] for
    /// tables of no or too many places; [`NicError::WrongFile`] if others use other sizes;
    /// [`NicError::Os`] if the file cannot be mapped.
    pub fn new(
        file: BorrowedFd<'_>,
        config: SoftwareConfig,
        rank: JobRank,
        segments: Option<Resolver>,
        faults: FaultRules,
    ) -> Result<Self, NicError> {
        let config = SoftwareConfig {
            queue_events: config.queue_events.checked_next_power_of_two().unwrap_or(0),
            ..config
        };
        // 16 bits of a word name a portal or a queue, 24 a rank.
        let small = |n: u32| (1..=0x8000).contains(&n);
        let sane = small(config.portals)
            && small(config.queues)
            && small(config.entries)
            && config.queue_events != 0
            && (1..=1 << 24).contains(&config.ranks);
        if !sane {
            return Err(NicError::Invalid {
                rank,
                what: "tables have 1 to 32,768 places, queues at least one event, a host 1 to 2^24 ranks",
            });
        }
        let region = Region::map(file, config)?;
        let shared = Shared {
            region,
            memory: Memory { segments },
            place: rank.0.wrapping_sub(config.first.0),
            reach: 0,
            wakeup: None,
            faults: Faults::new(faults),
            slots: AtomicU64::new(0),
            direct: AtomicU64::new(0),
            matched: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
        };
        if shared.place_of(rank).is_none() {
            return Err(NicError::BadRank {
                rank,
                peer: rank,
                ranks: config.ranks,
            });
        }
        shared.region.join(shared.place);
        Ok(Self {
            table: Table::new(rank, config.descriptors),
            shared,
        })
    }

    /// Memory of this rank that peers may be given access to; the caller divides it.
    ///
    /// It is shared: accessed by atomics and [`argonet_segment::bulk`] while an entry covers it.
    #[must_use]
    pub fn buffers(&self) -> (NonNull<u8>, u64) {
        let len = self.shared.region.layout.config.arena_bytes;
        let base = self.shared.region.arena(self.shared.place, 0, len);
        (base.unwrap_or(NonNull::dangling()), len)
    }

    /// Operations that have gone through an entry of this rank.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    pub fn carried(&self, entry: EntryHandle) -> Result<Carried, NicError> {
        let transaction = self.own();
        let at = transaction.check_entry(entry)?;
        Ok(Carried {
            puts: transaction.get(at + entry::PUTS),
            gets: transaction.get(at + entry::GETS),
            atomics: transaction.get(at + entry::ATOMICS),
            bytes: transaction.get(at + entry::BYTES),
        })
    }

    /// Operations that a descriptor of this rank has begun, and the bytes that those have moved
    /// which are complete.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    pub fn begun(&self, descriptor: DescriptorHandle) -> Result<(u64, u64), NicError> {
        self.table.counts(descriptor)
    }

    /// A rank has died: ends its operations under way at this interface, with
    /// [`Outcome::PeerDied`](crate::portals::Outcome::PeerDied), so that no entry waits for it.
    ///
    /// # Errors
    /// [`NicError::BadRank`]; [`NicError::Invalid`] if its process lives.
    pub fn peer_died(&self, peer: JobRank) -> Result<(), NicError> {
        let rank = self.shared.rank();
        let place = self.shared.place_of(peer).ok_or(NicError::BadRank {
            rank,
            peer,
            ranks: self.shared.ranks(),
        })?;
        if place == self.shared.place || !self.shared.region.has_ended(place) {
            return Err(NicError::Invalid {
                rank,
                what: "a rank that was reported dead is alive",
            });
        }
        self.own().finish_operations_of(place);
        Ok(())
    }

    /// Steps that this rank has taken inside of interfaces, if [`FaultRules::count_steps`] asks for
    /// that.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.shared.faults.steps()
    }

    /// Lets operations go on that a fault holds back.
    ///
    /// Every operation and every look into a queue does that, too.
    pub fn progress(&self) {
        if self.shared.faults.is_active() {
            self.initiator().progress();
        }
    }

    pub(super) fn own(&self) -> Transaction<'_> {
        self.shared.transaction(self.shared.place)
    }

    #[inline(always)]
    pub(super) fn initiator(&self) -> Initiator<'_> {
        Initiator {
            shared: &self.shared,
            table: &self.table,
        }
    }

    pub(super) fn invalid(&self, what: &'static str) -> NicError {
        NicError::Invalid {
            rank: self.shared.rank(),
            what,
        }
    }

    pub(in crate::portals) fn whole(&self, descriptor: DescriptorHandle) -> Result<Part, NicError> {
        Ok(Part {
            offset_bytes: 0,
            len_bytes: self.table.len(descriptor)?,
        })
    }
}

#[cfg(test)]
impl Software {
    /// Where everything lies.
    pub(super) fn layout(&self) -> super::layout::Layout {
        self.shared.region.layout
    }

    /// Writes a word as a peer might.
    pub(super) fn poke(&self, at: u64, value: u64) {
        self.shared.region.store(at, value);
    }
}
