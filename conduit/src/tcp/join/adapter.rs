//! The joiner as the conduit's source of connections.

use super::gate::GateCounts;
use super::service::{JoinService, Made as Met};
use crate::channel::rail::{Made, NewRail, RailId};
use crate::tcp::Connector;
use argonet_am::AmError;
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fd::{BorrowedFd, OwnedFd};

/// Connections that a [`JoinService`] makes, for a [`Tcp`](crate::tcp::Tcp).
#[derive(Debug)]
pub struct Joining {
    service: JoinService,
    rank: JobRank,
    /// The system has refused to go on, which was said once.
    failed: AtomicBool,
}

impl Joining {
    /// Those of `rank`.
    #[must_use]
    pub const fn new(service: JoinService, rank: JobRank) -> Self {
        Self {
            service,
            rank,
            failed: AtomicBool::new(false),
        }
    }

    /// The service that makes the connections.
    #[must_use]
    pub const fn service(&self) -> &JoinService {
        &self.service
    }
}

impl Connector for Joining {
    fn want(&self, peer: JobRank, number: u16) {
        self.service.want(peer, number);
    }

    fn unwant(&self, peer: JobRank, number: u16) {
        self.service.close(peer, number);
    }

    fn readdress(&self) {
        // A wish that is never taken would end each sleep.
        if !self.failed.load(Ordering::Relaxed) {
            self.service.readdress();
        }
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let made = self
            .service
            .next(&|peer, number| received(RailId { peer, number }));
        let (peer, number, why) = match made {
            Ok(None) => return None,
            Ok(Some(Met::Joined(joined))) => {
                return Some(Made::Rail(NewRail {
                    id: RailId {
                        peer: joined.peer,
                        number: joined.connection,
                    },
                    rail: joined.socket,
                    incarnation: joined.incarnation,
                    received: joined.received,
                }));
            }
            Ok(Some(Met::Unreachable(error))) => (error.peer, error.connection, error.to_string()),
            Err(cause) => {
                self.failed.store(true, Ordering::Relaxed);
                let rank = self.rank;
                let why = format!("rank {rank} cannot make connections any more: {cause}");
                (rank, 0, why)
            }
        };
        let at = self.rank;
        Some(Made::Unreachable(
            RailId { peer, number },
            AmError::Unreachable { at, peer, why },
        ))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.service.descriptor())
    }

    fn came(&self) -> u64 {
        self.service.came()
    }

    fn callers(&self) -> Option<GateCounts> {
        self.service.try_counts()
    }
}
