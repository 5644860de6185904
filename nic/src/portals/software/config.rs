//! How large the interfaces of a host are.

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
    /// Places of a portal table.
    pub portals: u32,
    /// Entries of a rank.
    pub entries: u32,
    /// Bound descriptors of a rank.
    pub descriptors: u32,
    /// Event queues of a rank.
    pub queues: u32,
    /// Most events in a queue; rounded up to a power of two.
    pub queue_events: u64,
    /// Counters of a rank.
    pub counters: u32,
    /// Memory of a rank for buffers that peers may reach.
    pub arena_bytes: u64,
}

impl Default for SoftwareConfig {
    fn default() -> Self {
        Self {
            first: JobRank(0),
            ranks: 2,
            portals: 16,
            entries: 256,
            descriptors: 2048,
            queues: 8,
            queue_events: 1 << 15,
            counters: 64,
            arena_bytes: 16 << 20,
        }
    }
}
