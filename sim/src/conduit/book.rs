//! What a rank keeps about its peers: links, credits, operations, and what is to be reported.

use super::buffers::{Buffer, Buffers};
use super::message::{Head, Kind};
use super::operations::Operations;
use crate::clock::State;
use crate::config::Sizes;
use crate::link::{self, Address, Link, LinkConfig, LinkEvent, Outgoing, Tail};
use argonet_am::record::RecordError;
use argonet_am::{AmError, MessageClass};
use argonet_base::JobRank;
use argonet_conduit::{ClassLedger, Completion, OpToken};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is to be told to the sink.
#[derive(Debug)]
pub(super) enum Report {
    Completed(OpToken, Completion),
    Broken(AmError),
}

/// Credits between this rank and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Credits {
    /// Requests sent to the peer that it has not handled.
    pub(super) used: u32,
    /// Requests of the peer that were handled here and not yet told.
    pub(super) owed: u32,
}

/// All that a rank keeps.
pub(super) struct Book {
    pub(super) rank: u32,
    ranks: u32,
    pub(super) sizes: Sizes,
    link: LinkConfig,
    epoch: u64,
    /// By peer and class; made at first use.
    links: Vec<Option<Box<Link>>>,
    /// Links that have a message.
    arrived: BTreeSet<u32>,
    /// Peers that are owed credits.
    owing: BTreeSet<u32>,
    /// Links by the time of their next timer.
    timers: BTreeSet<(u64, u32)>,
    timer_of: BTreeMap<u32, u64>,
    /// Links that may have something to send.
    touched: BTreeSet<u32>,
    pub(super) credits: Vec<Credits>,
    pub(super) buffers: Buffers,
    pub(super) operations: Operations,
    pub(super) reports: VecDeque<Report>,
    dead: BTreeMap<u32, u64>,
    /// Requests to each peer that are being prepared: room is kept for them.
    reserved: BTreeMap<u32, usize>,
    /// The peer and class that the next poll begins with.
    pub(super) cursor: u32,
    pub(super) strays: u64,
    frame: Vec<u8>,
}

pub(super) fn link_id(peer: u32, class: MessageClass) -> u32 {
    peer * 2 + u32::from(class == MessageClass::Reply)
}

fn class_of(id: u32) -> MessageClass {
    if id % 2 == 1 {
        MessageClass::Reply
    } else {
        MessageClass::Request
    }
}

impl Book {
    pub(super) fn new(rank: u32, ranks: u32, epoch: u64, sizes: Sizes) -> Self {
        Self {
            rank,
            ranks,
            sizes,
            link: sizes.link(),
            epoch,
            links: (0..ranks * 2).map(|_| None).collect(),
            arrived: BTreeSet::new(),
            owing: BTreeSet::new(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            touched: BTreeSet::new(),
            credits: vec![Credits::default(); ranks as usize],
            buffers: Buffers::default(),
            operations: Operations::new(sizes.operations),
            reports: VecDeque::new(),
            dead: BTreeMap::new(),
            reserved: BTreeMap::new(),
            cursor: 0,
            strays: 0,
            frame: Vec::new(),
        }
    }

    pub(super) fn link(&mut self, id: u32, now_ns: u64) -> &mut Link {
        let address = Address {
            from: self.rank,
            to: id / 2,
            class: (id % 2) as u8,
            epoch: self.epoch,
        };
        let config = self.link;
        self.links[id as usize].get_or_insert_with(|| Box::new(Link::new(config, address, now_ns)))
    }

    fn existing(&self) -> impl Iterator<Item = (u32, &Link)> {
        let links = (0..).zip(&self.links);
        links.filter_map(|(id, link)| Some((id, &**link.as_ref()?)))
    }

    /// The links that have messages, from the cursor on; the next time from another.
    pub(super) fn arrivals(&mut self) -> Vec<u32> {
        let after = self.arrived.range(self.cursor..);
        let arrivals: Vec<u32> = after
            .chain(self.arrived.range(..self.cursor))
            .copied()
            .collect();
        self.cursor = arrivals.get(1).copied().unwrap_or(0);
        arrivals
    }

    /// Whether a message to the peer would be taken.
    pub(super) fn has_room(&self, peer: u32, class: MessageClass) -> bool {
        // A link that does not exist yet is empty.
        let link = &self.links[link_id(peer, class) as usize];
        link.as_ref().is_none_or(|link| link.has_room())
    }

    /// Whether a request to the peer may be sent: a link with room, and a credit.
    pub(super) fn may_request(&self, peer: u32) -> bool {
        let reserved = self.reserved.get(&peer).copied().unwrap_or(0);
        let id = link_id(peer, MessageClass::Request);
        let room = match &self.links[id as usize] {
            Some(link) => link.has_room_for(reserved + 1),
            // A link that does not exist yet is empty.
            None => self.link.send_messages > reserved,
        };
        self.credits[peer as usize].used < self.sizes.request_credits && room
    }

    /// For how long a dead peer has been silent, ms.
    pub(super) fn death_of(&self, peer: u32) -> Option<AmError> {
        self.dead.get(&peer).map(|silent_ms| AmError::PeerDead {
            at: JobRank(self.rank),
            peer: JobRank(peer),
            silent_ms: *silent_ms,
        })
    }

    /// Keeps a credit, room and replay bytes for a request that is being prepared.
    pub(super) fn reserve(&mut self, peer: u32, bytes: usize) {
        self.credits[peer as usize].used += 1;
        *self.reserved.entry(peer).or_default() += 1;
        self.buffers.replay_bytes += bytes;
    }

    /// Gives back what [`reserve`](Self::reserve) kept.
    pub(super) fn unreserve(&mut self, peer: u32, bytes: usize) {
        self.credits[peer as usize].used -= 1;
        *self.reserved.entry(peer).or_default() -= 1;
        self.buffers.replay_bytes -= bytes;
    }

    /// Sends a message for which there is room, and in the class of requests a credit.
    pub(super) fn send(
        &mut self,
        peer: u32,
        class: MessageClass,
        mut head: Head,
        args: &[u32],
        tail: Option<(Buffer, usize)>,
        now_ns: u64,
    ) {
        let credits = &mut self.credits[peer as usize];
        match class {
            MessageClass::Request => credits.used += 1,
            MessageClass::Reply => {
                head.credits = core::mem::take(&mut credits.owed);
                self.owing.remove(&peer);
            }
        }
        assert!(
            credits.used <= self.sizes.request_credits,
            "a credit too many is used"
        );
        let tail = tail.map(|(buffer, len)| Tail {
            token: self.buffers.keep(buffer),
            len,
        });
        let message = Outgoing {
            head: head.write(args),
            tail,
        };
        let id = link_id(peer, class);
        let taken = self.link(id, now_ns).submit(message);
        if let Err(refused) = taken {
            // Only a peer that has died meanwhile: nothing will come of it.
            if let Some(tail) = refused.tail {
                self.buffers.release(tail.token);
            }
        }
        self.touched.insert(id);
    }

    /// Takes frames that have arrived, and the time.
    pub(super) fn receive(&mut self, state: &mut State) -> usize {
        let now_ns = state.now_ns;
        let mut taken = 0;
        while taken < self.sizes.poll_frames
            && let Some(frame) = state.receive(self.rank)
        {
            taken += 1;
            let known = link::parse(&frame).ok().map(|(header, _)| header.address);
            let known = known.filter(|a| a.from < self.ranks && a.class < 2);
            let Some(address) = known else {
                self.strays += 1;
                continue;
            };
            let id = address.from * 2 + u32::from(address.class);
            // What is wrong with it, the link counts.
            let _ = self.link(id, now_ns).handle_recv(now_ns, &frame);
            self.touched.insert(id);
        }
        let due = self.timers.range(..=(now_ns, u32::MAX)).map(|(_, id)| *id);
        let due: Vec<u32> = due.collect();
        self.touched.extend(due);
        let touched: Vec<u32> = self.touched.iter().copied().collect();
        for id in touched {
            let link = self.link(id, now_ns);
            link.handle_timeout(now_ns);
            if link.has_message() {
                self.arrived.insert(id);
            }
            while let Some(event) = self.link(id, now_ns).poll_event() {
                self.happened(id, event);
            }
        }
        taken
    }

    fn happened(&mut self, id: u32, event: LinkEvent) {
        let peer = id / 2;
        match event {
            LinkEvent::Acknowledged(token) => match self.buffers.release(token) {
                Some(Buffer::InPlace { op, .. }) => {
                    self.reports
                        .push_back(Report::Completed(op, Completion::Local));
                }
                Some(Buffer::Chunk { op, len, .. }) => {
                    let done = self.operations.chunk_acknowledged(op, len);
                    self.reports.extend(done);
                }
                Some(Buffer::Payload { .. }) | None => {}
            },
            LinkEvent::Dead { silent_ns } => {
                let silent_ms = silent_ns / 1_000_000;
                if self.dead.insert(peer, silent_ms).is_none() {
                    let error = self.death_of(peer);
                    self.reports.extend(error.map(Report::Broken));
                }
            }
            LinkEvent::Broken(_) => self.broken(peer, RecordError::Kind(0)),
        }
    }

    /// A peer sent something that cannot be used.
    pub(super) fn broken(&mut self, from: u32, cause: RecordError) {
        self.reports.push_back(Report::Broken(AmError::Broken {
            at: JobRank(self.rank),
            from: JobRank(from),
            cause,
        }));
    }

    /// Takes the next message of a link; of requests only if their reply has room.
    pub(super) fn next_message(&mut self, id: u32) -> Option<Vec<u8>> {
        if class_of(id) == MessageClass::Request && !self.has_room(id / 2, MessageClass::Reply) {
            return None;
        }
        let link = self.links[id as usize].as_mut()?;
        let message = link.poll_message()?;
        if !link.has_message() {
            self.arrived.remove(&id);
        }
        // The window has opened.
        self.touched.insert(id);
        Some(message)
    }

    /// The peer has handled so many requests of this rank.
    pub(super) fn credited(&mut self, peer: u32, count: u32) -> bool {
        let used = &mut self.credits[peer as usize].used;
        match used.checked_sub(count) {
            Some(left) => {
                *used = left;
                true
            }
            None => false,
        }
    }

    /// A request of the peer was taken; it is owed a credit.
    pub(super) fn owe(&mut self, peer: u32) {
        self.owing.insert(peer);
        let owed = &mut self.credits[peer as usize].owed;
        *owed += 1;
        assert!(
            *owed <= self.sizes.request_credits,
            "rank {peer} used a credit too many"
        );
    }

    /// Sends what credits are owed and what operations are left over, then all frames that may
    /// leave.
    pub(super) fn flush(&mut self, state: &mut State) {
        let now_ns = state.now_ns;
        self.go_on(now_ns);
        if !self.owing.is_empty() {
            let owing: Vec<u32> = self.owing.iter().copied().collect();
            for peer in owing {
                if self.has_room(peer, MessageClass::Reply) {
                    let nothing = Head::new(Kind::Credit);
                    self.send(peer, MessageClass::Reply, nothing, &[], None, now_ns);
                }
            }
        }
        let mut frame = core::mem::take(&mut self.frame);
        while let Some(id) = self.touched.pop_first() {
            let Some(link) = &mut self.links[id as usize] else {
                continue;
            };
            let buffers = &self.buffers;
            let mut read = |token, offset, out: &mut [u8]| buffers.read(token, offset, out);
            while link.poll_transmit(now_ns, &mut frame, &mut read) {
                state.send(self.rank, id / 2, &frame);
            }
            if let Some(excess) = link.excess() {
                panic!("rank {}, link to rank {}: {excess}", self.rank, id / 2);
            }
            let timer = link.poll_timeout();
            if let Some(before) = self.timer_of.remove(&id) {
                self.timers.remove(&(before, id));
            }
            if let Some(at_ns) = timer {
                self.timers.insert((at_ns, id));
                self.timer_of.insert(id, at_ns);
            }
        }
        self.frame = frame;
        state.set_timer(self.rank, self.next_timer());
    }

    /// When a poll is needed next, if nothing arrives.
    pub(super) fn next_timer(&self) -> Option<u64> {
        self.timers.first().map(|(at_ns, _)| *at_ns)
    }

    /// Whether a message has arrived that a poll would take now, or something is to be reported.
    pub(super) fn has_deliverable(&self) -> bool {
        let takes = |id: &u32| {
            class_of(*id) == MessageClass::Reply || self.has_room(*id / 2, MessageClass::Reply)
        };
        !self.reports.is_empty() || self.arrived.iter().any(takes)
    }

    /// Whether anything has arrived that polls will take, now or when there is room.
    pub(super) fn has_arrived(&self) -> bool {
        !self.reports.is_empty() || !self.arrived.is_empty()
    }

    /// Whether a poll without new frames would do anything.
    pub(super) fn has_something(&self, now_ns: u64) -> bool {
        self.has_arrived()
            || !self.operations.is_empty()
            || !self.owing.is_empty()
            || !self.touched.is_empty()
            || self.next_timer().is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// Whether everything that was sent has been handled, and nothing is half way.
    pub(super) fn is_quiescent(&self) -> bool {
        self.reports.is_empty()
            && self.operations.is_empty()
            && self.existing().all(|(_, link)| link.is_idle())
            && self.credits.iter().all(|c| *c == Credits::default())
    }

    /// Whether everything that was sent has reached its target.
    pub(super) fn is_delivered(&self) -> bool {
        self.existing().all(|(_, link)| link.all_acknowledged())
    }

    /// Whether anything has passed between this rank and a peer.
    pub(super) fn knows(&self, peer: u32) -> bool {
        let links = [MessageClass::Request, MessageClass::Reply]
            .map(|class| &self.links[link_id(peer, class) as usize]);
        links.into_iter().flatten().any(|link| link.is_used())
    }

    /// One line for each peer with which something is under way.
    pub(super) fn under_way(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (id, link) in self.existing() {
            let credits = self.credits[(id / 2) as usize];
            let counters = link.counters();
            if link.is_idle()
                && (class_of(id) == MessageClass::Reply || credits == Credits::default())
            {
                continue;
            }
            lines.push(format!(
                "rank {} {:?} to rank {}: {credits:?} {counters:?}",
                self.rank,
                class_of(id),
                id / 2
            ));
        }
        if !self.operations.is_empty() {
            lines.push(format!("rank {}: {}", self.rank, self.operations.ledger()));
        }
        lines
    }

    /// What has passed between this rank and a peer in one class, in messages.
    pub(super) fn class_ledger(&self, peer: u32, class: MessageClass) -> Option<ClassLedger> {
        let id = link_id(peer, class);
        let counters = self.links.get(id as usize)?.as_ref()?.counters();
        Some(ClassLedger {
            sent: counters.submitted,
            taken: counters.acknowledged,
            handled: counters.taken,
            waiting: self.arrived.contains(&id),
        })
    }

    /// Sums over all links: payloads sent again, duplicates, frames refused.
    pub(super) fn totals(&self) -> (u64, u64, u64) {
        let links = self.existing().map(|(_, link)| link.counters());
        links.fold((0, 0, self.strays), |sum, c| {
            (sum.0 + c.resent, sum.1 + c.duplicates, sum.2 + c.refused)
        })
    }
}
