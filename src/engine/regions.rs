//! Memory of this process that peers may reach by address, as its client binds it to endpoints.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use parking_lot::RwLock;

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

/// What is bound at each endpoint of this process. Any thread may call at any time.
#[derive(Default)]
pub struct Regions(RwLock<Vec<Option<Region>>>);

impl Regions {
    /// Endpoints that can have memory.
    pub const ENDPOINTS: u32 = 256;

    /// Lets peers read and write `len` bytes at `base` through an endpoint.
    ///
    /// # Safety
    /// Until [`unbind`](Self::unbind), and until what peers had sent by then has been handled, the
    /// bytes are readable and writable, and this process reads and writes them through the bulk
    /// routine and atomics alone while a peer may access them.
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
        let mut regions = self.0.write();
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
        let mut regions = self.0.write();
        let slot = regions.get_mut(endpoint as usize);
        slot.is_some_and(|slot| slot.take().is_some())
    }

    /// Address and length of what is bound at an endpoint.
    pub fn lookup(&self, endpoint: u32) -> Option<(u64, usize)> {
        let region = self.region(endpoint)?;
        Some((region.base as u64, region.len))
    }

    /// The place of `len` bytes at `address`, if they all lie in what is bound at the endpoint.
    pub fn check(&self, endpoint: u32, address: u64, len: usize) -> Option<NonNull<u8>> {
        let region = self.region(endpoint)?;
        let address = usize::try_from(address).ok()?;
        let before = address.checked_sub(region.base)?;
        let inside = before.checked_add(len)? <= region.len;
        let place = core::ptr::with_exposed_provenance_mut(address);
        NonNull::new(place).filter(|_| inside)
    }

    fn region(&self, endpoint: u32) -> Option<Region> {
        *self.0.read().get(endpoint as usize)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let regions = Regions::default();
        let mut memory = [0u8; 100];
        let base = memory.as_mut_ptr();
        let at = base.addr() as u64;
        assert_eq!(regions.lookup(3), None);
        assert_eq!(regions.check(3, at, 1), None);
        // SAFETY: the array lives to the end, and nobody accesses it.
        unsafe { regions.bind(3, base, 100) }.unwrap();
        assert_eq!(regions.lookup(3), Some((at, 100)));
        assert_eq!(regions.lookup(2), None);
        let inside = |address, len| regions.check(3, address, len).is_some();
        assert_eq!(
            regions.check(3, at + 7, 93).unwrap().addr().get() as u64,
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
    fn what_cannot_be_bound_is_refused() {
        let regions = Regions::default();
        let mut memory = [0u8; 8];
        let base = memory.as_mut_ptr();
        let bind = |endpoint, base, len| {
            // SAFETY: the array lives to the end, and nobody accesses anything through it.
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
        assert_eq!(regions.check(0, 0, 0), None);
    }
}
