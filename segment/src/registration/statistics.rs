//! Statistics of a cache.

/// Counts since a cache was made, and of its present contents.
///
/// Read while others use the cache, the numbers need not fit together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheStatistics {
    /// Requests that a registration covered.
    pub hits: u64,
    /// Requests that none did.
    pub misses: u64,
    /// Ranges that were registered.
    pub registered: u64,
    /// Those of them that were unions with others.
    pub unions: u64,
    /// Registrations that were given back for want of room.
    pub evictions: u64,
    /// Registrations that another took the place of, or that were invalidated.
    pub retired: u64,
    /// Times that the registrar had no room or did not take a range.
    pub refusals: u64,
    /// Bytes that are registered now, retired ones that are in use included.
    pub pinned_bytes: usize,
    /// Registrations that there are now, those included.
    pub pinned_count: usize,
}
