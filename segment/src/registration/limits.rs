//! How much a cache may hold.

/// Limits of a [`RegistrationCache`](super::RegistrationCache).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits {
    /// Bytes that may be registered at once.
    pub bytes: usize,
    /// Registrations that may exist at once.
    pub count: usize,
    /// Bytes of a page: the unit in which memory is registered.
    pub page_bytes: usize,
    /// Bytes of a bucket: a request is extended to whole buckets where the registrar takes them, so
    /// that small requests side by side share a registration.
    ///
    /// A page's bytes to extend nothing.
    pub bucket_bytes: usize,
}

/// Limits that no cache can keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a cache of {} bytes and {} registrations with pages of {} bytes and buckets of {} cannot be: pages and \
     buckets are powers of two, a bucket is no less than a page, and there is room for one page",
    limits.bytes, limits.count, limits.page_bytes, limits.bucket_bytes
)]
pub struct BadLimits {
    /// The limits that were asked for.
    pub limits: CacheLimits,
}

impl CacheLimits {
    /// Refuses limits that cannot be kept.
    pub(super) fn check(self) -> Result<Self, BadLimits> {
        let units = self.page_bytes.is_power_of_two() && self.bucket_bytes.is_power_of_two();
        let fits = self.bucket_bytes >= self.page_bytes && self.bytes >= self.page_bytes;
        if units && fits && self.count > 0 {
            Ok(self)
        } else {
            Err(BadLimits { limits: self })
        }
    }
}
