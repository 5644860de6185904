//! How many connections may wait to prove who they are, and for how long.
//!
//! A connection is *unknown* from when it is accepted until its handshake is done. At most [`GateLimits::most`] are at a time,
//! each for [`GateLimits::deadline_ns`] whatever it sends. When all places are taken, one from an address of the job takes
//! that of the oldest from elsewhere; when all are from addresses of the job, new ones wait in the kernel's queue. So
//! who is not on a host of the job cannot keep the job's ranks out.
//!
//! No socket and no clock: it takes addresses and times, and says what to drop.

use super::handshake::Refused;
use super::wait::Place;
use core::net::IpAddr;

/// What a gate allows.
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

/// What becomes of a connection that was just accepted.
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

/// What a gate has counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounts {
    /// Connections that were accepted.
    pub seen: u64,
    /// That proved to be of the job.
    pub proven: u64,
    /// Dropped at once: all places were taken.
    pub full: u64,
    /// Dropped for one from an address of the job.
    pub evicted: u64,
    /// Dropped at the deadline.
    pub expired: u64,
    /// Closed or broken by the other end.
    pub closed: u64,
    /// Dropped: no word of argonet's protocol.
    pub other_protocol: u64,
    /// Dropped: another version of it.
    pub other_version: u64,
    /// Dropped: of another job.
    pub other_job: u64,
    /// Dropped: without the key, or with an old message.
    pub no_proof: u64,
    /// Dropped: of the job, and for another rank than this or from none that it has.
    pub wrong_rank: u64,
}

impl GateCounts {
    /// How many were dropped, whatever the reason.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.full
            + self.evicted
            + self.expired
            + self.closed
            + self.other_protocol
            + self.other_version
            + self.other_job
            + self.no_proof
            + self.wrong_rank
    }

    fn refused(&mut self, why: Refused) {
        let count = match why {
            Refused::Magic => &mut self.other_protocol,
            Refused::Version(_) => &mut self.other_version,
            Refused::Job => &mut self.other_job,
            Refused::Acceptor(_) | Refused::Connector(_) => &mut self.wrong_rank,
            // The last two are a connector's.
            Refused::Proof | Refused::ByPeer { .. } | Refused::Verdict(_) => &mut self.no_proof,
        };
        *count += 1;
    }
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
    /// A gate with nobody in it. `job` has the addresses of the job's hosts.
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

    /// Whether a further connection should be accepted now. If not, it is better off in the kernel's queue.
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

    /// An unknown connection is none any more. One that has been dropped already is left alone.
    pub fn leave(&mut self, who: Place, how: Left) {
        if self.free(who) {
            match how {
                Left::Proven => self.counts.proven += 1,
                Left::Closed => self.counts.closed += 1,
                Left::Refused(why) => self.counts.refused(why),
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

    /// What it has counted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const S: u64 = 1_000_000_000;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn gate(most: u32) -> Gate {
        let limits = GateLimits {
            most,
            ..GateLimits::default()
        };
        Gate::new(limits, [address(1), address(2)])
    }

    fn admitted(admission: Admission) -> Place {
        match admission {
            Admission::Admitted(who) => who,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_64_for_two_seconds() {
        let mut gate = Gate::new(GateLimits::default(), []);
        for n in 0..64 {
            admitted(gate.admit(u64::from(n), address(n)));
        }
        assert!(gate.is_open(), "one from the job would have a place");
        assert_eq!(gate.admit(64, address(99)), Admission::Full);
        assert_eq!((gate.unknown(), gate.counts().full), (64, 1));
        assert_eq!(gate.poll_timeout(), Some(2 * S));
        assert_eq!(gate.expire(2 * S - 1), None);
        assert_eq!(gate.expire(2 * S), Some(Place { index: 0, turn: 1 }));
        assert_eq!(gate.expire(2 * S), None);
        assert_eq!(gate.poll_timeout(), Some(2 * S + 1));
        admitted(gate.admit(2 * S, address(99)));
    }

    #[test]
    fn the_job_comes_first() {
        let mut gate = gate(3);
        let first = admitted(gate.admit(5, address(77)));
        let second = admitted(gate.admit(6, address(1)));
        let third = admitted(gate.admit(7, address(78)));
        assert_eq!(gate.admit(8, address(79)), Admission::Full);
        // The oldest stranger gives way, never one from the job.
        for (victim, now_ns) in [(first, 9), (third, 10)] {
            match gate.admit(now_ns, address(2)) {
                Admission::Instead { evicted, .. } => assert_eq!(evicted, victim),
                other => panic!("{other:?}"),
            }
        }
        assert!(!gate.is_open());
        assert_eq!(gate.admit(11, address(2)), Admission::Full);
        // What has gone does not come back, and does not take another's place away.
        gate.leave(first, Left::Proven);
        assert_eq!(gate.unknown(), 3);
        gate.leave(second, Left::Proven);
        assert!(gate.is_open());
        let counts = gate.counts();
        assert_eq!((counts.proven, counts.evicted, counts.full), (1, 2, 2));
        assert_eq!(counts.dropped(), 4);
    }

    #[test]
    fn an_address_of_the_job_is_known_through_an_ipv6_socket() {
        let mut gate = gate(1);
        admitted(gate.admit(0, address(50)));
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert!(matches!(gate.admit(1, mapped), Admission::Instead { .. }));
    }

    #[test]
    fn each_reason_has_its_count() {
        let reasons = [
            Refused::Magic,
            Refused::Version(2),
            Refused::Job,
            Refused::Proof,
            Refused::Acceptor(1),
            Refused::Connector(1),
        ];
        let mut gate = gate(8);
        for why in reasons {
            let who = admitted(gate.admit(0, address(5)));
            gate.leave(who, Left::Refused(why));
            gate.leave(who, Left::Refused(why));
        }
        let who = admitted(gate.admit(0, address(5)));
        gate.leave(who, Left::Closed);
        let expected = GateCounts {
            seen: 7,
            closed: 1,
            other_protocol: 1,
            other_version: 1,
            other_job: 1,
            no_proof: 1,
            wrong_rank: 2,
            ..GateCounts::default()
        };
        assert_eq!(gate.counts(), expected);
        assert_eq!(gate.counts().dropped(), 7);
    }

    proptest! {
        /// Whatever comes and goes: nobody stays beyond the deadline, nobody from the job gives way, all are counted.
        #[test]
        fn a_gate_keeps_its_promises(
            most in 1u32..6,
            steps in proptest::collection::vec((0u64..S, 0u8..8, 0u8..4, any::<proptest::sample::Index>()), 1..300),
        ) {
            let mut gate = gate(most);
            let mut inside: HashMap<(u32, u32), (u64, bool)> = HashMap::new();
            let key = |who: Place| (who.index, who.turn);
            let mut now_ns = 0;
            for (pass_ns, from, kind, which) in steps {
                now_ns += pass_ns;
                while let Some(who) = gate.expire(now_ns) {
                    let (since, _) = inside.remove(&key(who)).expect("it was inside");
                    prop_assert!(since + 2 * S <= now_ns);
                }
                prop_assert!(inside.values().all(|(since, _)| since + 2 * S > now_ns));
                if kind == 0 && !inside.is_empty() {
                    let mut names: Vec<_> = inside.keys().copied().collect();
                    names.sort_unstable();
                    let (index, turn) = *which.get(&names);
                    gate.leave(Place { index, turn }, Left::Proven);
                    inside.remove(&(index, turn));
                } else {
                    let of_job = from == 1 || from == 2;
                    let strangers = inside.values().filter(|(_, of)| !of).count();
                    match gate.admit(now_ns, address(from)) {
                        Admission::Admitted(who) => {
                            prop_assert!(inside.insert(key(who), (now_ns, of_job)).is_none());
                        }
                        Admission::Instead { admitted, evicted } => {
                            prop_assert!(of_job);
                            let (since, of) = inside.remove(&key(evicted)).expect("it was inside");
                            prop_assert!(!of && inside.values().all(|(s, of)| *of || *s >= since));
                            inside.insert(key(admitted), (now_ns, true));
                        }
                        Admission::Full => {
                            prop_assert_eq!(inside.len(), most as usize);
                            prop_assert!(!of_job || strangers == 0);
                        }
                    }
                }
                prop_assert_eq!(gate.unknown() as usize, inside.len());
                prop_assert_eq!(gate.poll_timeout(), inside.values().map(|(since, _)| since + 2 * S).min());
                let counts = gate.counts();
                prop_assert_eq!(counts.seen, counts.proven + counts.dropped() + inside.len() as u64);
            }
        }
    }
}
