//! How many connections may wait to prove who they are, and for how long.
//!
//! A connection is *unknown* from when it is accepted until its handshake is done. At most
//! [`GateLimits::most`] are at a time, each for [`GateLimits::deadline_ns`], also if it sends
//! bytes. When all places are taken, one from an address of the job takes that of the oldest from
//! elsewhere; when all are from addresses of the job, new ones wait in the kernel's queue. So
//! strangers on other hosts cannot keep the job's ranks out.
//!
//! No socket and no clock: it takes addresses and times, and names the connections to drop.

#[cfg(test)]
mod tests;

pub use crate::connections::GateCounts;

use super::handshake::Refused;
use super::wait::Place;
use core::net::IpAddr;

/// Limits of a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateLimits {
    /// Unknown connections at a time.
    pub most: u32,
    /// How long one may stay unknown, ns.
    pub deadline_ns: u64,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            most: 64,
            deadline_ns: 2_000_000_000,
        }
    }
}

/// The gate's decision on a connection that was just accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may begin.
    Admitted(Place),
    /// It may begin, and `evicted` is to be closed.
    Instead {
        /// The new one.
        admitted: Place,
        /// The one whose place it has; already counted.
        evicted: Place,
    },
    /// It is to be closed.
    Full,
}

/// How an unknown connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It proved to be of the job.
    Proven,
    /// Its handshake failed.
    Refused(Refused),
    /// The other end closed it, or it broke.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    turn: u32,
    /// Since when, and whether from an address of the job.
    taken: Option<(u64, bool)>,
}

/// The gate of a rank.
#[derive(Debug)]
pub struct Gate {
    limits: GateLimits,
    /// Sorted.
    job: Vec<IpAddr>,
    seats: Vec<Seat>,
    taken: u32,
    counts: GateCounts,
}

impl Gate {
    /// An empty gate.
    ///
    /// `job` has the addresses of the job's hosts.
    #[must_use]
    pub fn new(limits: GateLimits, job: impl IntoIterator<Item = IpAddr>) -> Self {
        let empty = Seat {
            turn: 0,
            taken: None,
        };
        let mut this = Self {
            limits,
            job: Vec::new(),
            seats: vec![empty; limits.most as usize],
            taken: 0,
            counts: GateCounts::default(),
        };
        this.know(job);
        this
    }

    /// Further addresses of the job's hosts.
    pub fn know(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.job.extend(addresses.into_iter().map(canonical));
        self.job.sort_unstable();
        self.job.dedup();
    }

    /// Whether a further connection should be accepted now.
    ///
    /// If not, it is better off in the kernel's queue.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.taken < self.limits.most || self.oldest(false).is_some()
    }

    /// A connection from `from` was accepted.
    pub fn admit(&mut self, now_ns: u64, from: IpAddr) -> Admission {
        self.counts.seen += 1;
        let of_job = self.job.binary_search(&canonical(from)).is_ok();
        if let Some(place) = self.seats.iter().position(|p| p.taken.is_none()) {
            self.taken += 1;
            return Admission::Admitted(self.occupy(place, now_ns, of_job));
        }
        match self.oldest(false) {
            Some(place) if of_job => {
                self.counts.evicted += 1;
                let evicted = self.name(place);
                Admission::Instead {
                    evicted,
                    admitted: self.occupy(place, now_ns, of_job),
                }
            }
            _ => {
                self.counts.full += 1;
                Admission::Full
            }
        }
    }

    /// An unknown connection is none any more.
    ///
    /// One that has been dropped already is left alone.
    pub fn leave(&mut self, who: Place, how: Left) {
        if self.free(who) {
            match how {
                Left::Proven => self.counts.proven += 1,
                Left::Closed => self.counts.closed += 1,
                Left::Refused(why) => count(&mut self.counts, why),
            }
        }
    }

    /// One whose time is over, to be closed; to be called until there is none.
    pub fn expire(&mut self, now_ns: u64) -> Option<Place> {
        let place = self.oldest_of_all()?;
        let since = self.seats[place].taken.map_or(0, |(since, _)| since);
        if now_ns < since.saturating_add(self.limits.deadline_ns) {
            return None;
        }
        let who = self.name(place);
        self.free(who);
        self.counts.expired += 1;
        Some(who)
    }

    /// When [`expire`](Self::expire) has something to say, if nothing changes until then; ns.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let (since, _) = self.seats[self.oldest_of_all()?].taken?;
        Some(since.saturating_add(self.limits.deadline_ns))
    }

    /// How many are inside.
    #[must_use]
    pub const fn unknown(&self) -> u32 {
        self.taken
    }

    /// Its counts.
    #[must_use]
    pub const fn counts(&self) -> GateCounts {
        self.counts
    }

    fn name(&self, place: usize) -> Place {
        Place {
            index: place as u32,
            turn: self.seats[place].turn,
        }
    }

    fn occupy(&mut self, place: usize, now_ns: u64, of_job: bool) -> Place {
        let entry = &mut self.seats[place];
        entry.turn = entry.turn.wrapping_add(1);
        entry.taken = Some((now_ns, of_job));
        self.name(place)
    }

    fn free(&mut self, who: Place) -> bool {
        match self.seats.get_mut(who.index as usize) {
            Some(place) if place.turn == who.turn && place.taken.is_some() => {
                place.taken = None;
                self.taken -= 1;
                true
            }
            _ => false,
        }
    }

    /// The place that was taken first, of those from addresses of the job or of the others.
    fn oldest(&self, of_job: bool) -> Option<usize> {
        let places = self.seats.iter().enumerate();
        let taken = places.filter_map(|(i, place)| match place.taken {
            Some((since, of)) if of == of_job => Some((since, i)),
            _ => None,
        });
        taken.min().map(|(_, i)| i)
    }

    fn oldest_of_all(&self) -> Option<usize> {
        let since = |i: &usize| self.seats[*i].taken.map(|(since, _)| since);
        let both = [self.oldest(false), self.oldest(true)];
        both.into_iter().flatten().min_by_key(since)
    }
}

/// An IPv4 address that came through an IPv6 socket is the IPv4 address.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Counts one that was dropped.
fn count(counts: &mut GateCounts, why: Refused) {
    let count = match why {
        Refused::Magic => &mut counts.other_protocol,
        Refused::Version(_) => &mut counts.other_version,
        Refused::Job => &mut counts.other_job,
        Refused::Acceptor(_) | Refused::Connector(_) => &mut counts.wrong_rank,
        // The last two are a connector's.
        Refused::Proof | Refused::ByPeer { .. } | Refused::Verdict(_) => &mut counts.no_proof,
    };
    *count += 1;
}
