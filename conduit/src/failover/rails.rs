//! The rails of a rank over several members.

use super::config::FailoverConfig;
use super::gauge::RailReport;
use super::link::Link;
use super::own_addresses::OwnAddresses;
use super::shared::{Further, Shared, first};
use crate::attendant::ring;
use crate::channel::AnyRail;
use crate::channel::rail::{Look, Made, Rail, RailId, Rails, Ready};
use crate::connections::GateCounts;
use crate::datagrams::Datagrams;
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Polls between two looks at all members, and for changes of addresses.
///
/// A look at the sockets of a member is a call of the system.
const POLLS: u32 = 16;

/// The same where the peer that is read first is the only one: others do not come so often.
const POLLS_ALONE: u32 = 64;

// spec B1: traffic goes over several rails, and over the rest where one fails.
/// Rails of several members, of which one carries the stream to a peer at a time.
pub struct FailoverRails(Arc<Shared>);

impl FailoverRails {
    /// Those of the members.
    ///
    /// # Errors
    /// No member, or more rails to a peer than there can be, as [`io::ErrorKind::InvalidInput`]; or
    /// the system gives no descriptor.
    pub fn new(config: FailoverConfig) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared::new(config)?)))
    }

    /// Rails to a peer: that of the stream, and those of payloads.
    #[must_use]
    pub fn rails(&self) -> u16 {
        self.0.rails()
    }
}

impl Rails for FailoverRails {
    type Rail = AnyRail;

    fn name(&self) -> &'static str {
        self.0.name
    }

    fn most(&self) -> u16 {
        self.rails()
    }

    fn want(&self, id: RailId) {
        self.0.want(id);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<AnyRail>> {
        let shared = &self.0;
        // Another thread does the same, perhaps in the middle of it.
        let mut driving = shared.driving.try_lock()?;
        if driving.made.is_empty() {
            shared.take_made(&mut driving);
            shared.see(&mut driving, received);
        }
        let made = driving.made.pop_front();
        if !driving.made.is_empty() {
            shared.has_events.store(true, Ordering::Release);
        }
        made
    }

    fn open(&self, id: RailId, rail: &AnyRail) -> io::Result<()> {
        match self.0.further(id.number) {
            // Members' first rails are open while they are there.
            None => Ok(()),
            Some(Further { member, number }) => {
                self.0.members[member].open(RailId { number, ..id }, rail)
            }
        }
    }

    fn close(&self, id: RailId, rail: &AnyRail) {
        match (Shared::carrier(rail), self.0.further(id.number)) {
            (Some(carrier), _) => self.0.close_stream(carrier),
            (None, Some(Further { member, number })) => {
                self.0.members[member].close(RailId { number, ..id }, rail);
            }
            (None, None) => rail.shut(),
        }
    }

    fn refuse(&self, _id: RailId, rail: &AnyRail) {
        match Shared::carrier(rail) {
            Some(carrier) => self.0.refuse_stream(carrier),
            None => rail.shut(),
        }
    }

    fn forget(&self, peer: JobRank) {
        self.0.forget(peer);
    }

    fn begin_poll(&self, alone: bool) -> Look {
        let shared = &*self.0;
        let polls = shared.polls.fetch_add(1, Ordering::Relaxed);
        let is_time = polls.is_multiple_of(if alone { POLLS_ALONE } else { POLLS });
        // A rank that polls now and then looks at all members each time.
        let is_time = shared.has_ticked() || is_time;
        if is_time {
            shared.take_reports(false);
        }
        let chosen = shared.chosen.load(Ordering::Relaxed);
        let mut look = shared.members[chosen].begin_poll(alone);
        if is_time || look.first.is_none() || shared.looks_around.load(Ordering::Relaxed) {
            shared.looks_around.store(false, Ordering::Relaxed);
            shared.look_at_others(chosen, &mut look);
            if look.all {
                // A look at their rails follows.
                shared.asks_others.store(true, Ordering::Relaxed);
            }
            look.all |= shared.is_due();
        }
        look.all |= shared.has_events.load(Ordering::Acquire);
        look.all |= shared.has_unsent.load(Ordering::Acquire);
        look
    }

    fn polls(&self) -> u32 {
        self.0.polls.load(Ordering::Relaxed)
    }

    fn heard(&self, peer: JobRank, rail: &AnyRail, asleep: &dyn Fn() -> bool) {
        if let Some(carrier) = Shared::carrier(rail) {
            let Link { member, rail, .. } = &*carrier.link;
            // The others' peers are not read by themselves.
            let others_sleep = || *member != self.0.chosen.load(Ordering::Relaxed) || asleep();
            self.0.members[*member].heard(peer, rail, &others_sleep);
        }
    }

    fn cool(&self, peer: JobRank) {
        self.0.members.iter().for_each(|rails| rails.cool(peer));
    }

    fn ready(&self, found: &mut Ready) {
        let shared = &*self.0;
        shared.push_unsent();
        let members = shared.members.len();
        let begin = shared.polls.load(Ordering::Relaxed) as usize;
        let chosen = shared.chosen.load(Ordering::Relaxed);
        let asks_others = shared.asks_others.swap(false, Ordering::Relaxed);
        for turn in 0..members {
            let member = (begin + turn) % members;
            if member != chosen && !asks_others {
                continue;
            }
            let rails = &shared.members[member];
            let mut its = Ready::new();
            rails.ready(&mut its);
            for id in its.rails() {
                let number = match id.number {
                    0 => shared.looks_at(member, id.peer).then_some(0),
                    number => shared.number(member, number),
                };
                if let Some(number) = number {
                    // What finds no room is found again.
                    found.add(RailId { number, ..*id });
                }
            }
            if its.has_made() {
                found.add_made();
            }
        }
        if shared.has_events.load(Ordering::Acquire) || shared.is_due() {
            for rank in &shared.events.lock().cut {
                found.add(first(JobRank(*rank)));
            }
            found.add_made();
        }
    }

    fn has_ready(&self) -> bool {
        let shared = &*self.0;
        shared.push_unsent();
        let mut members = shared.members.iter();
        let has_ready = shared.has_events.load(Ordering::Acquire)
            || shared.is_due()
            || members.any(|rails| rails.has_ready());
        if has_ready {
            shared.looks_around.store(true, Ordering::Relaxed);
        }
        has_ready
    }

    fn arm(&self) {
        self.0.members.iter().for_each(|rails| rails.arm());
    }

    fn wait_for_room(&self, id: RailId, rail: &AnyRail, waits: bool) {
        let (member, number, rail) = match (Shared::carrier(rail), self.0.further(id.number)) {
            (Some(carrier), _) => {
                let link = &*carrier.link;
                link.waits_for_room.store(waits, Ordering::SeqCst);
                if link.has_unsent() {
                    return;
                }
                (link.member, 0, &link.rail)
            }
            (None, Some(Further { member, number })) => (member, number, rail),
            (None, None) => return,
        };
        self.0.members[member].wait_for_room(RailId { number, ..id }, rail, waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        let shared = &*self.0;
        let due_ns = shared.due_ns.load(Ordering::Relaxed);
        let due = (due_ns != u64::MAX)
            .then(|| Duration::from_nanos(due_ns.saturating_sub(shared.now_ns())));
        let timeout = [timeout, due].into_iter().flatten().min();
        let mut wakes = vec![shared.wakeup.as_fd()];
        wakes.extend(shared.own.as_ref().map(OwnAddresses::reports));
        let mut sleeps = !shared.has_events.load(Ordering::Acquire);
        for rails in &shared.members {
            sleeps &= rails.begin_sleep(&mut wakes);
        }
        if sleeps {
            let each = wakes.iter();
            let mut each: Vec<PollFd<'_>> = each
                .map(|wake| PollFd::from_borrowed_fd(*wake, PollFlags::IN))
                .collect();
            let timeout = timeout.map(|time| Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: time.subsec_nanos().into(),
            });
            // Whatever it was, the caller looks again.
            let _ = poll(&mut each, timeout.as_ref());
            shared.take_reports(true);
        }
        for rails in &shared.members {
            rails.end_sleep();
        }
        shared.looks_around.store(true, Ordering::Relaxed);
    }

    fn wake(&self) {
        ring(&self.0.wakeup);
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.0.wakeup, &mut [0; 8]);
        self.0
            .members
            .iter()
            .for_each(|rails| rails.forget_wakeups());
    }

    fn came(&self) -> u64 {
        self.0.members.iter().map(|rails| rails.came()).sum()
    }

    fn callers(&self) -> Option<GateCounts> {
        let each = self.0.members.iter().map(|rails| rails.callers());
        each.sum()
    }

    fn in_words(&self, peer: JobRank) -> Option<String> {
        let state = self.0.peers.used(peer.0)?.state.try_lock()?;
        Some(state.succession.in_words(&self.0.names))
    }

    fn rail_report(&self) -> Option<RailReport> {
        Some(self.0.gauge.report())
    }

    fn datagrams(&self) -> Option<Datagrams> {
        let mut each = self.0.members.iter();
        each.find_map(|rails| rails.datagrams())
    }
}

/// How long a rank that ends waits for what the rails have not taken of runs that have begun.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Between two looks at it.
const EXIT_LOOKS: Duration = Duration::from_millis(1);

impl Drop for FailoverRails {
    fn drop(&mut self) {
        let begun = Instant::now();
        self.0.push_unsent();
        while self.0.has_unsent.load(Ordering::Acquire) && begun.elapsed() < EXIT_GRACE {
            // Threads of the members take acknowledgements meanwhile.
            std::thread::sleep(EXIT_LOOKS);
            self.0.push_unsent();
        }
        // Each takes its time at once, not one after the other.
        let members = self.0.members.iter();
        members.for_each(|rails| rails.begin_to_end());
    }
}

#[cfg(test)]
impl FailoverRails {
    /// An address of this host, at which members have their rails, works until
    /// the system reports a change.
    pub(super) fn add_address(&self, address: core::net::IpAddr) {
        let own = self.0.own.as_ref();
        own.expect("the system reports changes").add(address);
    }

    /// Up to where this rank has said in an offer that it has taken the stream.
    pub(super) fn said(&self, generation: u64) -> u64 {
        self.0.said.lock()[&generation]
    }

    /// Offers that this rank has made or answered.
    pub(super) fn offers(&self) -> usize {
        self.0.said.lock().len()
    }

    /// As if the system had reported a change of addresses.
    pub(super) fn report_change(&self) {
        self.0.note_change();
    }
}
