//! Memory of this process that peers may reach by address, as its client binds it to endpoints.
#![allow(unsafe_code)]

use argonet_segment::PageKind;
use argonet_segment::registration::{
    Access, CacheLimits, CacheStatistics, MappedMemory, NotMapped, PageRange, RegistrationCache,
};
use core::ptr::NonNull;
use parking_lot::RwLock;
use std::sync::OnceLock;

/// Why memory cannot be bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// There is no such endpoint.
    #[error("endpoint {endpoint} cannot have memory: endpoints are numbered from 0 to {last}", last = Regions::ENDPOINTS - 1)]
    NoSuchEndpoint {
        /// The endpoint asked for.
        endpoint: u32,
    },
    /// The endpoint has memory.
    #[error("endpoint {endpoint} has {len} bytes from {address:#x} bound already")]
    Taken {
        /// The endpoint asked for.
        endpoint: u32,
        /// Where its memory begins.
        address: u64,
        /// Bytes of it.
        len: usize,
    },
    /// No memory can be there.
    #[error("no {len} bytes of memory can begin at {address:#x}")]
    NoMemory {
        /// The address.
        address: u64,
        /// The length.
        len: usize,
    },
}

#[derive(Clone, Copy)]
struct Region {
    /// Exposed, so that a pointer can be made of an address that a peer names.
    base: usize,
    len: usize,
}

/// Why a range cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outside {
    /// Nothing is bound at the endpoint.
    Nothing,
    /// It is not all in the bound memory.
    Segment {
        /// Where that begins.
        address: u64,
        /// Bytes of it.
        len: u64,
    },
    /// All memory is bound, and none is mapped here.
    Hole(u64),
    /// All memory is bound, and this cannot be written.
    ReadOnly(u64),
    /// It is no word: its address is no multiple of its length.
    Unaligned,
}

/// The memory bound at each endpoint of this process.
///
/// Any thread may call at any time.
#[derive(Default)]
pub struct Regions {
    bound: RwLock<Vec<Option<Region>>>,
    /// Once all memory is bound at the first endpoint: ranges of it that are known to be mapped.
    everything: OnceLock<RegistrationCache<MappedMemory>>,
}

impl Regions {
    /// Endpoints that can have memory.
    pub const ENDPOINTS: u32 = 256;

    /// The endpoint at which all memory can be bound.
    pub const EVERYTHING: u32 = 0;

    /// Limits of the cache of mapped memory: so many ranges, looked up in pieces of this length
    /// where all of one is alike.
    const KNOWN_RANGES: usize = 4096;
    const BUCKET_BYTES: usize = 2 << 20;

    /// Lets peers read and write all memory of this process through the first endpoint, besides
    /// other memory bound there.
    ///
    /// For good. Ranges that are not mapped when a peer first wants them are refused.
    ///
    /// # Safety
    /// Peers, and calls of this process that name its own memory by address, write only where this
    /// process expects it, and it unmaps no memory that a peer may still access without
    /// [`forget`](Self::forget).
    pub unsafe fn bind_everything(&self) {
        let limits = CacheLimits {
            // All that can be addressed.
            bytes: 1 << 47,
            count: Self::KNOWN_RANGES,
            page_bytes: PageKind::Normal.page_bytes() as usize,
            bucket_bytes: Self::BUCKET_BYTES,
        };
        let cache = RegistrationCache::new(MappedMemory, limits);
        let _ = self
            .everything
            .set(cache.expect("the cache takes these limits"));
    }

    /// Whether all memory is bound at an endpoint.
    #[inline]
    pub fn is_everything(&self, endpoint: u32) -> bool {
        endpoint == Self::EVERYTHING && self.everything.get().is_some()
    }

    /// Forgets that memory is mapped, before it is unmapped: the next message looks anew.
    pub fn forget(&self, address: usize, len: usize) {
        if let Some(known) = self.everything.get() {
            // No bytes are no memory to forget.
            let _ = known.invalidate(address, len);
        }
    }

    /// Statistics of the cache of mapped memory.
    pub fn statistics(&self) -> Option<CacheStatistics> {
        self.everything.get().map(RegistrationCache::statistics)
    }

    /// Lets peers read and write `len` bytes at `base` through an endpoint.
    ///
    /// # Safety
    /// Until [`unbind`](Self::unbind), and until messages that peers had sent by then have been
    /// handled, the bytes are readable and writable, and this process reads and writes them through
    /// the bulk routine and atomics alone while a peer may access them.
    ///
    /// # Errors
    /// [`RegionError`]; nothing is bound then.
    pub unsafe fn bind(&self, endpoint: u32, base: *mut u8, len: usize) -> Result<(), RegionError> {
        if endpoint >= Self::ENDPOINTS {
            return Err(RegionError::NoSuchEndpoint { endpoint });
        }
        let region = Region {
            base: base.expose_provenance(),
            len,
        };
        if (base.is_null() && len > 0) || region.base.checked_add(len).is_none() {
            return Err(RegionError::NoMemory {
                address: region.base as u64,
                len,
            });
        }
        let at = endpoint as usize;
        let mut regions = self.bound.write();
        if regions.len() <= at {
            regions.resize(at + 1, None);
        }
        if let Some(taken) = regions[at] {
            return Err(RegionError::Taken {
                endpoint,
                address: taken.base as u64,
                len: taken.len,
            });
        }
        regions[at] = Some(region);
        Ok(())
    }

    /// Takes the memory of an endpoint away; whether it had any.
    pub fn unbind(&self, endpoint: u32) -> bool {
        let mut regions = self.bound.write();
        let slot = regions.get_mut(endpoint as usize);
        slot.is_some_and(|slot| slot.take().is_some())
    }

    /// Address and length of the memory bound at an endpoint.
    pub fn lookup(&self, endpoint: u32) -> Option<(u64, usize)> {
        let region = self.region(endpoint)?;
        Some((region.base as u64, region.len))
    }

    /// The place of `len` bytes at `address`, if they all lie in the memory bound at the endpoint
    /// and may be used in this way.
    pub(super) fn check(
        &self,
        endpoint: u32,
        address: u64,
        len: usize,
        access: Access,
    ) -> Result<NonNull<u8>, Outside> {
        let at = address as usize;
        let place = core::ptr::with_exposed_provenance_mut(at);
        if let Some(known) = self.everything.get()
            && endpoint == Self::EVERYTHING
        {
            mapped(known, at, len, access)?;
            return NonNull::new(place).ok_or(Outside::Hole(address));
        }
        let region = self.region(endpoint).ok_or(Outside::Nothing)?;
        let before = at.checked_sub(region.base);
        let end = before.and_then(|before| before.checked_add(len));
        let inside = end.is_some_and(|end| end <= region.len);
        NonNull::new(place)
            .filter(|_| inside)
            .ok_or(Outside::Segment {
                address: region.base as u64,
                len: region.len as u64,
            })
    }

    fn region(&self, endpoint: u32) -> Option<Region> {
        *self.bound.read().get(endpoint as usize)?
    }
}

/// Checks that memory is mapped: remembered as far as it was found out before.
fn mapped(
    known: &RegistrationCache<MappedMemory>,
    address: usize,
    len: usize,
    access: Access,
) -> Result<(), Outside> {
    if let Ok(found) = known.acquire(address, len)
        && (access == Access::Read || *found.handle() == Access::ReadWrite)
    {
        return Ok(());
    }
    look_again(known, address, len, access)
}

/// Looks memory up anew: the cache does not allow the access, or has no room for the range.
#[cold]
fn look_again(
    known: &RegistrationCache<MappedMemory>,
    address: usize,
    len: usize,
    access: Access,
) -> Result<(), Outside> {
    let hole = Outside::Hole(address as u64);
    let page = known.limits().page_bytes;
    let range = PageRange::around(address, len, page).map_err(|_| hole)?;
    // It may have been made writable since.
    let _ = known.invalidate(address, len);
    match (known.registrar().probe(range), access) {
        (Ok(Access::ReadWrite), _) | (Ok(Access::Read), Access::Read) => Ok(()),
        (Ok(_), Access::ReadWrite) => Err(Outside::ReadOnly(address as u64)),
        (Err(NotMapped::Hole { at }), _) => Err(Outside::Hole(at.max(address) as u64)),
        (Err(_), _) => Err(hole),
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, ReadWrite};
    use super::*;

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let regions = Regions::default();
        let mut memory = [0u8; 100];
        let base = memory.as_mut_ptr();
        let at = base.addr() as u64;
        assert_eq!(regions.lookup(3), None);
        assert_eq!(regions.check(3, at, 1, Read), Err(Outside::Nothing));
        // SAFETY: the array lives to the end, and no code accesses it.
        unsafe { regions.bind(3, base, 100) }.unwrap();
        assert_eq!(regions.lookup(3), Some((at, 100)));
        assert_eq!(regions.lookup(2), None);
        let inside = |address, len| regions.check(3, address, len, ReadWrite).is_ok();
        assert_eq!(
            regions.check(3, at + 7, 93, Read).unwrap().addr().get() as u64,
            at + 7
        );
        assert!(inside(at, 100) && inside(at + 99, 1) && inside(at + 100, 0));
        assert!(!inside(at, 101) && !inside(at + 100, 1) && !inside(at - 1, 1));
        assert!(!inside(at - 1, 102) && !inside(at + 1, 100));
        assert!(!inside(at + 1, usize::MAX) && !inside(u64::MAX, 2) && !inside(0, usize::MAX));
        assert!(regions.unbind(3) && !regions.unbind(3) && !regions.unbind(99));
        assert!(!inside(at, 1));
    }

    #[test]
    fn impossible_bindings_are_refused() {
        let regions = Regions::default();
        let mut memory = [0u8; 8];
        let base = memory.as_mut_ptr();
        let bind = |endpoint, base, len| {
            // SAFETY: the array lives to the end, and no code accesses anything through it.
            unsafe { regions.bind(endpoint, base, len) }
        };
        let last = Regions::ENDPOINTS - 1;
        bind(last, base, 8).unwrap();
        assert_eq!(
            bind(last, base, 4),
            Err(RegionError::Taken {
                endpoint: last,
                address: base.addr() as u64,
                len: 8
            })
        );
        let beyond = Err(RegionError::NoSuchEndpoint { endpoint: last + 1 });
        assert_eq!(bind(last + 1, base, 8), beyond);
        for (base, len) in [(core::ptr::null_mut(), 1), (base, usize::MAX)] {
            let refused = bind(0, base, len);
            assert!(
                matches!(refused, Err(RegionError::NoMemory { .. })),
                "{refused:?}"
            );
        }
        bind(0, core::ptr::null_mut(), 0).unwrap();
        assert_eq!(regions.lookup(0), Some((0, 0)));
        assert!(regions.check(0, 0, 0, Read).is_err());
    }

    #[test]
    fn everything_means_all_mapped_memory() {
        static CONSTANT: [u8; 64] = [3; 64];
        static mut VARIABLE: [u8; 64] = [3; 64];
        let regions = Regions::default();
        // SAFETY: no code accesses anything through it.
        unsafe { regions.bind_everything() };
        assert!(regions.is_everything(0) && !regions.is_everything(1));
        let check = |address: usize, len, access| regions.check(0, address as u64, len, access);
        let heap = vec![0u8; 3 << 20];
        let local = 5u64;
        let places = [
            (heap.as_ptr().addr(), heap.len()),
            ((&raw const local).addr(), 8),
            ((&raw const VARIABLE).addr(), 64),
        ];
        for (address, len) in places {
            for access in [ReadWrite, Read, ReadWrite] {
                assert_eq!(check(address, len, access).unwrap().addr().get(), address);
            }
        }
        let constant = CONSTANT.as_ptr().addr();
        assert!(check(constant, 64, Read).is_ok());
        let read_only = Err(Outside::ReadOnly(constant as u64));
        assert_eq!(check(constant, 64, ReadWrite), read_only);
        assert_eq!(check(64, 8, Read), Err(Outside::Hole(64)));
        assert_eq!(check(0, 8, Read), Err(Outside::Hole(0)));
        assert!(check(usize::MAX - 3, 8, Read).is_err());
        assert_eq!(regions.check(1, 64, 8, Read), Err(Outside::Nothing));
        assert!(regions.statistics().unwrap().hits > 0);
    }

    #[test]
    fn changed_mappings_are_looked_up_again() {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
        let regions = Regions::default();
        // SAFETY: no code accesses anything through it.
        unsafe { regions.bind_everything() };
        let page = PageKind::Normal.page_bytes() as usize;
        // Far from where the system maps memory for other tests meanwhile, so that the hole below
        // stays one.
        let apart = core::ptr::without_provenance_mut(0x2000_0000_0000);
        // SAFETY: a new mapping of this test.
        let base = unsafe { mmap_anonymous(apart, page, ProtFlags::READ, MapFlags::PRIVATE) };
        let base = base.unwrap();
        let at = base.addr() as u64;
        let check = |access| regions.check(0, at, page, access);
        assert!(check(Read).is_ok());
        assert_eq!(check(ReadWrite), Err(Outside::ReadOnly(at)));
        // SAFETY: a mapping of this test.
        unsafe { mprotect(base, page, MprotectFlags::READ | MprotectFlags::WRITE) }.unwrap();
        assert!(check(ReadWrite).is_ok());
        regions.forget(base.addr(), page);
        // SAFETY: a mapping of this test.
        unsafe { munmap(base, page) }.unwrap();
        assert_eq!(check(Read), Err(Outside::Hole(at)));
    }
}
