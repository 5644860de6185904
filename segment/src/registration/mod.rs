//! Memory outside of segments, registered when an operation first wants it: a bounded cache.
//!
//! A network interface reaches memory that is *registered* with it: its pages are *pinned* and its
//! tables have their addresses. That takes a system call and some microseconds a page, and there is
//! never enough of it for all memory, so that conduits keep registrations as long as they can and
//! give back those that were used least recently (spec P3 has the temporary descriptors that this
//! replaces, seed U14 the handles). The same is done with knowledge of memory from other sources:
//! [`MappedMemory`] is asked which pages are mapped at all.
//!
//! ```text
//!  acquire(address, len)
//!    |  a registration that covers it?  --- hit: counted as in use, no lock that is written
//!    v  miss, one at a time:
//!  candidates   union with overlaps  >  the buckets around it  >  its pages
//!    v
//!  room         unused registrations go, least recently used first, until bytes and count fit
//!    v
//!  Registrar    NoResources: one more goes, again      Failed: the next candidate
//! ```
//!
//! # Ranges that overlap
//!
//! Registrations of a cache are disjoint. A request that lies inside one hits. One that lies partly
//! in some registers the union with them, if that is at most twice as long as the request, so that
//! two requests that overlap do not displace each other forever; else itself alone, so that a
//! window that slides over a long array costs time linear in its way, and does not pin the array.
//! Either way registrations that overlap are *retired*: no request finds them any more, and each is
//! deregistered at the end of the last operation that uses it.
//!
//! # When memory goes away
//!
//! Nothing here notices that the client unmaps memory: code that learns of it calls
//! [`invalidate`](RegistrationCache::invalidate), before the addresses can be mapped anew. Code
//! that cannot learn of it uses only registrars whose handles stay harmless.

mod access;
mod cache;
mod entry;
mod error;
mod limits;
mod range;
mod statistics;
mod stripes;
mod uses;

pub use access::{Access, MappedMemory, NotMapped};
pub use cache::{Invalidated, RegistrationCache};
pub use entry::Pinned;
pub use error::{Refused, RegistrationError};
pub use limits::{BadLimits, CacheLimits};
pub use range::{BadRange, PageRange};
pub use statistics::CacheStatistics;

/// Registers memory: a network interface's library, or a model of one.
///
/// A cache calls [`register`](Self::register) from one thread at a time, and
/// [`deregister`](Self::deregister) from whichever thread ends the last operation. Neither may call
/// the cache.
pub trait Registrar: Send + Sync {
    /// The handle by which operations use registered memory.
    type Handle: Send + Sync;
    /// Why something is not registered.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Registers whole pages.
    ///
    /// # Errors
    /// [`Refused`]: whether it would help to give back other registrations.
    fn register(&self, range: PageRange) -> Result<Self::Handle, Refused<Self::Error>>;

    /// Undoes one registration; called once for each.
    fn deregister(&self, range: PageRange, handle: &Self::Handle);
}

#[cfg(all(test, not(loom)))]
mod tests;
