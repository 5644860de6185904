//! How large an interface is to be.

/// Limits that the library is asked for; it may give less
/// ([`Portals::limits`](crate::portals::Portals::limits) has those that it gave).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portals4Config {
    /// Places of the portal table; libraries have at least 64.
    pub portals: u32,
    /// Entries.
    pub entries: u32,
    /// Bound descriptors; the library binds up to three of its own for each.
    pub descriptors: u32,
    /// Event queues.
    pub queues: u32,
    /// Most events in a queue.
    pub queue_events: u64,
    /// Counters.
    pub counters: u32,
    /// Operations with events of which not all have been taken.
    pub operations: u32,
    /// Longest put or get.
    pub message_bytes: u64,
}

impl Default for Portals4Config {
    fn default() -> Self {
        Self {
            portals: 64,
            entries: 256,
            descriptors: 2048,
            queues: 8,
            queue_events: 1 << 15,
            counters: 64,
            operations: 1 << 14,
            message_bytes: i64::MAX as u64,
        }
    }
}
