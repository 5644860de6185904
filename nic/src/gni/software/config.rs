//! How large the interfaces of a host are.

use crate::gni::{GniError, NicAddress};
use argonet_base::JobRank;

/// Sizes on which all ranks of a host agree.
///
/// Untouched pages take no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftwareConfig {
    /// The first of the ranks that share the file.
    pub first: JobRank,
    /// How many they are; consecutive.
    pub ranks: u32,
    /// Interfaces of each rank.
    pub nics: u16,
    /// Places for registered memory of an interface.
    pub registrations: u32,
    /// Completion queues of an interface.
    pub queues: u32,
    /// Most events in a queue; rounded up to a power of two.
    pub queue_events: u32,
    /// Wildcard datagrams of an interface.
    pub wildcards: u32,
    /// Memory of an interface for buffers that peers may reach.
    pub buffer_bytes: u64,
}

impl Default for SoftwareConfig {
    fn default() -> Self {
        Self {
            first: JobRank(0),
            ranks: 2,
            nics: 1,
            registrations: 1024,
            queues: 8,
            queue_events: 1 << 15,
            wildcards: 64,
            buffer_bytes: 16 << 20,
        }
    }
}

/// Most interfaces of a host.
const MOST_PLACES: u64 = 1 << 16;

impl SoftwareConfig {
    /// With lengths of queues as they are used; refused if it makes no sense.
    pub(super) fn checked(self, address: NicAddress) -> Result<Self, GniError> {
        let rank = address.rank;
        let places = u64::from(self.ranks) * u64::from(self.nics);
        let sane = (1..=MOST_PLACES).contains(&places)
            && (1..1 << 24).contains(&self.registrations)
            && (1..=1 << 15).contains(&self.queues)
            && (1..=1 << 24).contains(&self.queue_events)
            && self.wildcards <= 1 << 20;
        if !sane {
            return Err(GniError::Invalid {
                rank,
                what: "a host has 1 to 65,536 interfaces, an interface less than 2^24 registrations, \
                       1 to 32,768 queues of 1 to 2^24 events, and at most 2^20 wildcards",
            });
        }
        let config = Self {
            queue_events: self.queue_events.next_power_of_two(),
            ..self
        };
        match config.place(address) {
            Some(_) => Ok(config),
            None => Err(GniError::BadPeer {
                rank,
                peer: address,
            }),
        }
    }

    /// Which of the host's interfaces an address names, if it is one.
    #[inline(always)]
    pub(super) fn place(&self, address: NicAddress) -> Option<u32> {
        let rank = address.rank.0.wrapping_sub(self.first.0);
        let there = rank < self.ranks && address.nic < self.nics;
        there.then(|| rank * u32::from(self.nics) + u32::from(address.nic))
    }

    /// How many interfaces share the file.
    #[inline(always)]
    pub(super) fn places(&self) -> u32 {
        self.ranks * u32::from(self.nics)
    }

    /// The reverse of [`place`](Self::place).
    pub(super) fn address(&self, place: u32) -> NicAddress {
        let nics = u32::from(self.nics);
        NicAddress {
            rank: JobRank(self.first.0.wrapping_add(place / nics)),
            nic: (place % nics) as u16,
        }
    }
}
