//! Addresses of this host, and which of them have stopped to work.
//!
//! An interface that is taken down or loses its link ends no connection: the system goes on to send
//! again for minutes. It reports the change at once to processes that have asked for that, and then
//! the list of addresses shows which are of no use.

use super::config::ListAddresses;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::collections::BTreeSet;
use std::io;

/// Changes of interfaces, and of addresses of both families.
const CHANGES: i32 = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;

/// What this host knows of its own addresses.
pub(super) struct OwnAddresses {
    /// The system's reports of changes.
    reports: OwnedFd,
    /// Lists those of interfaces that are up and have a link.
    list: ListAddresses,
    known: Mutex<Known>,
    /// The last look has failed.
    is_missed: AtomicBool,
}

struct Known {
    /// Those that worked when the system was asked last.
    working: BTreeSet<IpAddr>,
    /// Those that did before, and do not.
    lost: BTreeSet<IpAddr>,
}

impl OwnAddresses {
    /// From now on.
    ///
    /// # Errors
    /// The system reports no changes, or does not list its addresses.
    pub(super) fn new(list: ListAddresses) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let reports = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&reports, &SocketAddrNetlink::new(0, CHANGES as u32))?;
        // Changes from here on are reported, so that none is missed.
        let known = Mutex::new(Known {
            working: list()?,
            lost: BTreeSet::new(),
        });
        Ok(Self {
            reports,
            list,
            known,
            is_missed: AtomicBool::new(false),
        })
    }

    /// Readable when something has changed.
    pub(super) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Takes the reports; whether there were any.
    pub(super) fn take_reports(&self) -> bool {
        let mut has_any = self.is_missed.swap(false, Ordering::Relaxed);
        // What they say is not read: the list has it.
        let mut scratch = [0; 512];
        loop {
            match recv(&self.reports, &mut scratch, RecvFlags::empty()) {
                // More were lost than there was room for.
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => has_any = true,
                Err(_) => return has_any,
            }
        }
    }

    /// Asks the system again: the addresses that have stopped to work since the last time.
    pub(super) fn look(&self) -> BTreeSet<IpAddr> {
        // Where the system has no memory or descriptor for it, it is asked later.
        let Ok(now) = (self.list)() else {
            self.is_missed.store(true, Ordering::Relaxed);
            return BTreeSet::new();
        };
        let mut known = self.known.lock();
        let lost: BTreeSet<IpAddr> = known.working.difference(&now).copied().collect();
        known.lost.extend(&lost);
        known.lost.retain(|address| !now.contains(address));
        known.working = now;
        lost
    }

    /// Whether an address has stopped to work, and does not again.
    ///
    /// One that never worked has not: how the system shows some interfaces says little of them.
    pub(super) fn is_lost(&self, address: IpAddr) -> bool {
        self.known.lock().lost.contains(&address)
    }

    /// An address works, from now on until the system is asked.
    #[cfg(test)]
    pub(super) fn add(&self, address: IpAddr) {
        let mut known = self.known.lock();
        known.working.insert(address);
        known.lost.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_lost_no_address() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let own = OwnAddresses::new(|| Ok(BTreeSet::from([[127, 0, 0, 1].into()]))).unwrap();
        assert!(!own.take_reports());
        assert_eq!(own.look(), BTreeSet::new());
        assert!(!own.is_lost(here) && !own.is_lost(IpAddr::from([192, 0, 2, 1])));
    }

    #[test]
    fn a_look_that_fails_is_repeated() {
        let own = OwnAddresses::new(|| Ok(BTreeSet::new())).unwrap();
        let failing = OwnAddresses {
            list: || Err(io::ErrorKind::OutOfMemory.into()),
            ..own
        };
        let here = IpAddr::from([192, 0, 2, 1]);
        failing.add(here);
        assert_eq!(failing.look(), BTreeSet::new());
        assert!(!failing.is_lost(here));
        assert!(failing.take_reports() && !failing.take_reports());
    }

    #[test]
    fn an_address_that_is_not_listed_any_more_is_lost_once() {
        let own = OwnAddresses::new(|| Ok(BTreeSet::new())).unwrap();
        let gone = IpAddr::from([192, 0, 2, 1]);
        own.add(gone);
        assert!(!own.is_lost(gone));
        assert_eq!(own.look(), BTreeSet::from([gone]));
        assert!(own.is_lost(gone));
        assert_eq!(own.look(), BTreeSet::new());
        assert!(own.is_lost(gone));
        own.add(gone);
        assert!(!own.is_lost(gone));
    }
}
