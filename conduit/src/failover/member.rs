//! What failover chooses among.

use crate::channel::rail::{Rails, Vital};
use crate::channel::{AnyRail, Erased};
use argonet_base::JobRank;
use core::net::IpAddr;
use rustix::fd::BorrowedFd;

/// Rails of one kind, or of one interface, that may be one of several.
pub trait Member: Rails {
    /// Whether rails last as long as the job: one that was given up is there again when its peer is
    /// heard, with what was written to it before.
    ///
    /// If not, a rail that ends takes along what was written to it, and the next one begins anew.
    fn lasts(&self) -> bool;

    /// A thread is about to sleep at several members: adds what can be read when there is something
    /// to do; false if there is already.
    ///
    /// [`end_sleep`](Self::end_sleep) follows in both cases.
    fn begin_sleep<'a>(&'a self, wakes: &mut Vec<BorrowedFd<'a>>) -> bool;

    /// It sleeps no more.
    fn end_sleep(&self);

    /// The address of this host at which a rail ends; `None` where it is at none of them.
    fn address(&self, rail: &Self::Rail) -> Option<IpAddr>;

    /// Addresses of this host have changed: rails are made from those that there are now, if the
    /// kind can do so.
    fn readdress(&self) {}

    /// The rank ends, and this is dropped next: what takes time begins.
    fn begin_to_end(&self) {}

    /// The silence of a peer at the other end of its first rail; `None` where that is not known.
    fn silence(&self, peer: JobRank, rail: &Self::Rail) -> Option<Vital>;
}

impl<R: Member> Member for Erased<R> {
    fn lasts(&self) -> bool {
        self.rails().lasts()
    }

    fn begin_sleep<'a>(&'a self, wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        self.rails().begin_sleep(wakes)
    }

    fn end_sleep(&self) {
        self.rails().end_sleep();
    }

    fn address(&self, rail: &AnyRail) -> Option<IpAddr> {
        self.rails().address(self.of(rail))
    }

    fn readdress(&self) {
        self.rails().readdress();
    }

    fn begin_to_end(&self) {
        self.rails().begin_to_end();
    }

    fn silence(&self, peer: JobRank, rail: &AnyRail) -> Option<Vital> {
        self.rails().silence(peer, self.of(rail))
    }
}
