//! Addresses of this host, and which of them have stopped working.
//!
//! An interface that is taken down or loses its link ends no connection: the system goes on to send
//! again for minutes. It reports the change at once to processes that have asked for that, and then
//! the list of addresses shows which are of no use.

use super::config::ListAddresses;
use core::net::IpAddr;
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
}

struct Known {
    /// Those that worked when the system was asked last.
    working: BTreeSet<IpAddr>,
    /// Those that did before, and do not.
    lost: BTreeSet<IpAddr>,
}

/// How a list of addresses differs from the one before.
#[derive(Debug)]
pub(super) struct Changes {
    /// Addresses that have stopped working.
    pub(super) lost: BTreeSet<IpAddr>,
    /// There are others that work.
    pub(super) has_new: bool,
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
        })
    }

    /// Readable when something has changed.
    pub(super) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Takes the reports; whether there were any.
    pub(super) fn take_reports(&self) -> bool {
        let mut has_any = false;
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

    /// Asks the system again.
    ///
    /// # Errors
    /// The system does not list its addresses now.
    pub(super) fn look(&self) -> io::Result<Changes> {
        let mut now = (self.list)()?;
        let mut known = self.known.lock();
        if !known.working.is_subset(&now) {
            // A list that changes while it is read may be short of some.
            now.append(&mut (self.list)()?);
        }
        let lost: BTreeSet<IpAddr> = known.working.difference(&now).copied().collect();
        known.lost.extend(&lost);
        known.lost.retain(|address| !now.contains(address));
        let has_new = !now.is_subset(&known.working);
        known.working = now;
        Ok(Changes { lost, has_new })
    }

    /// Whether an address has stopped working, and does not work again.
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
    use core::cell::Cell;

    #[test]
    fn this_host_has_lost_no_address() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let own = OwnAddresses::new(|| Ok(BTreeSet::from([[127, 0, 0, 1].into()]))).unwrap();
        assert!(!own.take_reports());
        assert_eq!(own.look().unwrap().lost, BTreeSet::new());
        assert!(!own.is_lost(here) && !own.is_lost(IpAddr::from([192, 0, 2, 1])));
    }

    #[test]
    fn a_look_that_fails_loses_no_address() {
        let own = OwnAddresses::new(|| Ok(BTreeSet::new())).unwrap();
        let failing = OwnAddresses {
            list: || Err(io::ErrorKind::OutOfMemory.into()),
            ..own
        };
        let here = IpAddr::from([192, 0, 2, 1]);
        failing.add(here);
        assert!(failing.look().is_err());
        assert!(!failing.is_lost(here));
    }

    #[test]
    fn an_address_that_one_list_of_two_leaves_out_is_not_lost() {
        thread_local!(static LISTS: Cell<u8> = const { Cell::new(0) });
        let here = IpAddr::from([192, 0, 2, 1]);
        let own = OwnAddresses::new(|| {
            let at = LISTS.replace(LISTS.get() + 1);
            let whole = BTreeSet::from([[192, 0, 2, 1].into()]);
            Ok(if at == 1 { BTreeSet::new() } else { whole })
        });
        let own = own.unwrap();
        assert_eq!(own.look().unwrap().lost, BTreeSet::new());
        assert_eq!(LISTS.get(), 3);
        assert!(!own.is_lost(here));
    }

    #[test]
    fn an_address_that_is_not_listed_any_more_is_lost_once() {
        let own = OwnAddresses::new(|| Ok(BTreeSet::new())).unwrap();
        let gone = IpAddr::from([192, 0, 2, 1]);
        own.add(gone);
        assert!(!own.is_lost(gone));
        assert_eq!(own.look().unwrap().lost, BTreeSet::from([gone]));
        assert!(own.is_lost(gone));
        assert_eq!(own.look().unwrap().lost, BTreeSet::new());
        assert!(own.is_lost(gone));
        own.add(gone);
        assert!(!own.is_lost(gone));
    }
}
