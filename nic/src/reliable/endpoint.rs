//! The machine of one rank for all of its peers.

mod asking;
mod losses;

use super::channel::Channel;
use super::config::ReliableConfig;
use super::counts::Counts;
use super::datagram::{
    CHUNK_BYTES, Chunk, HEADER_BYTES, Header, Kind, MORE_BYTES, Numbers, Protection, SEAL_BYTES,
};
use super::error::{PeerUnreachable, ReliableError};
use super::link::{Due, Link, Order};
use super::mtu::Search;
use super::path::Question;
use super::pool::{Pool, Record};
use super::ready::Ready;
use super::receiver::Taken;
use super::seal::{Keys, Refused, Seal};
use super::sender::Acknowledgement;
use super::seq::Seq;
use super::sequence::Sequence;
use super::timers::Timers;
use argonet_base::JobRank;
use core::ops::Range;
use core::time::Duration;
use std::collections::VecDeque;

/// Bytes of a peer that was never used.
pub const IDLE_PEER_BYTES: usize = 24;

/// A peer.
#[derive(Debug, Default)]
struct Peer {
    /// 0: not known.
    incarnation: u64,
    /// From the first datagram on.
    link: Option<Box<Link>>,
    /// Since it was lost.
    lost: Option<Box<PeerUnreachable>>,
}

static_assertions::const_assert!(size_of::<Peer>() == IDLE_PEER_BYTES);

/// A datagram that was good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Its sender.
    ///
    /// The windows to it may have room again, and [`Endpoint::take`] a record.
    pub peer: JobRank,
    /// The channel of the datagram.
    pub channel: Channel,
    /// Where in the datagram the next record of the channel is, if it has that and it was accepted.
    pub record: Option<Range<usize>>,
}

/// A datagram to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit<'a> {
    /// The rank that it goes to.
    pub peer: JobRank,
    /// The queue that it leaves by, where an interface has one a channel.
    ///
    /// Records that are sent again leave by that of data, whichever channel they are of: where many
    /// are lost, acknowledgements must get through.
    pub queue: Channel,
    /// Whether it may be longer than the path takes, so that no other should leave with it.
    pub is_trial: bool,
    /// All of it.
    pub bytes: &'a [u8],
}

/// A link from the first of these ranks to the other, each with its incarnation.
fn new_link(
    ends: [(JobRank, u64); 2],
    keys: Option<Box<Keys>>,
    now: Duration,
    config: &ReliableConfig,
) -> Box<Link> {
    let first = ends.map(|(_, incarnation)| Seq::first_of(incarnation));
    Box::new(Link::new(first, keys, now, config))
}

/// Puts a peer among those that have something to send.
fn list(ready: &mut [Ready], peer: JobRank, link: &mut Link, config: &ReliableConfig) {
    for order in Order::ALL {
        if !link.listed[order as usize] && link.due(order, config).is_some() {
            link.listed[order as usize] = true;
            ready[order as usize].add(peer.0);
        }
    }
}

/// Reliable records to and from every peer of a rank, in order on each channel.
///
/// The module has the list of its verbs.
#[derive(Debug)]
pub struct Endpoint {
    config: ReliableConfig,
    rank: JobRank,
    incarnation: u64,
    seal: Option<Seal>,
    peers: Box<[Peer]>,
    pool: Pool,
    timers: Timers,
    /// By [`Order`].
    ready: [Ready; Order::ALL.len()],
    lost: VecDeque<PeerUnreachable>,
    /// Peers that are silent.
    doubts: VecDeque<PeerUnreachable>,
    counts: Counts,
    /// The latest time that the driver has said.
    seen: Duration,
    /// For datagrams without a record.
    short: [u8; HEADER_BYTES + MORE_BYTES + SEAL_BYTES],
    /// For an encrypted datagram; empty where none is.
    sealed: Box<[u8]>,
    /// For trials and chunks; empty before the first one.
    long: Box<[u8]>,
}

impl Endpoint {
    /// The endpoint of `rank`, for peers 0 to `peers`.
    ///
    /// `incarnation` is a number that cannot be guessed and that no earlier endpoint of the rank
    /// had; not 0.
    ///
    /// # Errors
    /// [`ReliableError::Config`].
    pub fn new(
        config: ReliableConfig,
        rank: JobRank,
        incarnation: u64,
        seal: Option<Seal>,
        peers: u32,
    ) -> Result<Self, ReliableError> {
        let objection = config.objection();
        let objection =
            objection.or((incarnation == 0).then_some("incarnation 0, which stands for none"));
        if let Some(what) = objection {
            return Err(ReliableError::Config { rank, what });
        }
        let encrypts = seal.as_ref().map(Seal::protection) == Some(Protection::Encrypted);
        let most_bytes = config.most_datagram_bytes();
        let sealed_bytes = if encrypts { most_bytes } else { 0 };
        Ok(Self {
            config,
            rank,
            incarnation,
            seal,
            peers: (0..peers).map(|_| Peer::default()).collect(),
            pool: Pool::new(most_bytes),
            timers: Timers::default(),
            ready: Order::ALL.map(|_| Ready::new()),
            lost: VecDeque::new(),
            doubts: VecDeque::new(),
            counts: Counts::default(),
            seen: Duration::ZERO,
            short: [0; HEADER_BYTES + MORE_BYTES + SEAL_BYTES],
            sealed: vec![0; sealed_bytes].into_boxed_slice(),
            long: Box::default(),
        })
    }

    /// Which incarnation of a peer it is that belongs to this job.
    ///
    /// Before this is known, nothing goes to it or comes from it.
    ///
    /// # Errors
    /// [`ReliableError::Unknown`] for a rank that is not there, incarnation 0, or another one than
    /// was said before.
    pub fn know(&mut self, peer: JobRank, incarnation: u64) -> Result<(), ReliableError> {
        let unknown = self.unknown(peer);
        let place = self.peers.get_mut(peer.0 as usize).ok_or(unknown.clone())?;
        if incarnation == 0 || ![0, incarnation].contains(&place.incarnation) {
            return Err(unknown);
        }
        place.incarnation = incarnation;
        Ok(())
    }

    fn unknown(&self, peer: JobRank) -> ReliableError {
        ReliableError::Unknown {
            rank: self.rank,
            peer,
            ranks: self.peers.len() as u32,
        }
    }

    /// Longest record that reaches every peer whole.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.config.record_bytes(self.seal.is_some())
    }

    /// Longest record that reaches this peer whole, as far as is known; it changes with the path.
    #[must_use]
    pub fn record_bytes_to(&self, peer: JobRank) -> usize {
        let link = self
            .peers
            .get(peer.0 as usize)
            .and_then(|p| p.link.as_deref());
        link.map_or_else(|| self.record_bytes(), Link::record_bytes)
    }

    fn protection(&self) -> Protection {
        let seal = self.seal.as_ref();
        seal.map_or(Protection::Open, Seal::protection)
    }

    /// Its counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether records may be submitted for a peer, when there is room.
    ///
    /// # Errors
    /// [`ReliableError::Unknown`], [`ReliableError::Lost`].
    pub fn check(&self, peer: JobRank) -> Result<(), ReliableError> {
        match self.peers.get(peer.0 as usize) {
            Some(place) if place.incarnation != 0 => match place.lost.as_deref() {
                Some(lost) => Err((*lost).into()),
                None => Ok(()),
            },
            _ => Err(self.unknown(peer)),
        }
    }

    /// Whether something that was sent to a peer waits to be acknowledged, and since when nothing
    /// was, though the peer may be heard; else when it was heard last.
    ///
    /// Times in which this process was stopped do not count. `None` where the peer was not used.
    #[must_use]
    pub fn silence(&mut self, now: Duration, peer: JobRank) -> Option<(bool, Duration)> {
        self.it_is(now);
        let place = self.peers.get(peer.0 as usize)?;
        place.link.as_ref().map(|link| link.waits_since())
    }

    /// After how long without an acknowledgement a peer is sent something again for the first time,
    /// as far as that was measured.
    ///
    /// `None` where the peer was not used.
    #[must_use]
    pub fn rto(&self, peer: JobRank) -> Option<Duration> {
        let link = self.peers.get(peer.0 as usize)?.link.as_ref()?;
        Some(link.first_rto(&self.config))
    }

    /// The link to a peer, made when it is first used.
    fn link(&mut self, peer: JobRank, now: Duration) -> Result<&mut Link, ReliableError> {
        self.check(peer)?;
        let unknown = self.unknown(peer);
        let place = self.peers.get_mut(peer.0 as usize).ok_or(unknown)?;
        let ends = [(self.rank, self.incarnation), (peer, place.incarnation)];
        let link = place.link.get_or_insert_with(|| {
            let keys = self.seal.as_ref().map(|seal| seal.keys(ends));
            new_link(ends, keys, now, &self.config)
        });
        Ok(link)
    }

    /// Opens a datagram of a peer that is known; whether it is good, which is counted if not.
    ///
    /// The first good one makes the link.
    fn open(&mut self, now: Duration, header: &Header, datagram: &mut [u8]) -> bool {
        let peer = header.from;
        let Some(place) = self.peers.get_mut(peer.0 as usize) else {
            return false;
        };
        let ends = [(self.rank, self.incarnation), (peer, place.incarnation)];
        let mut fresh = None;
        let keys = match place.link.as_deref_mut() {
            Some(link) => link.keys.as_deref_mut(),
            None => {
                fresh = self.seal.as_ref().map(|seal| seal.keys(ends));
                fresh.as_deref_mut()
            }
        };
        match keys.map_or(Ok(()), |keys| keys.open(header.number, datagram)) {
            Ok(()) => {}
            Err(Refused::Forged) => {
                self.counts.forged += 1;
                return false;
            }
            Err(Refused::Replayed) => {
                self.counts.replayed += 1;
                return false;
            }
        }
        let config = &self.config;
        place
            .link
            .get_or_insert_with(|| new_link(ends, fresh, now, config));
        true
    }

    /// Whether [`submit`](Self::submit) takes a record of any length for this channel of a peer.
    #[must_use]
    pub fn room(&self, peer: JobRank, channel: Channel) -> bool {
        let Some(place) = self.peers.get(peer.0 as usize) else {
            return false;
        };
        place.incarnation != 0
            && place.lost.is_none()
            && place.link.as_ref().is_none_or(|link| {
                let sequence = &link.sequences[channel.index()];
                sequence.sender.has_room(&self.config)
            })
    }

    // spec U14: what has priority asks for the channel of commands.
    /// A record of `len` bytes, which `fill` writes, for a channel of a peer.
    ///
    /// # Errors
    /// [`ReliableError::Unknown`], [`ReliableError::TooLong`], [`ReliableError::Full`],
    /// [`ReliableError::Lost`]; nothing was filled then.
    pub fn submit(
        &mut self,
        now: Duration,
        peer: JobRank,
        channel: Channel,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), ReliableError> {
        let most_bytes = self.config.most_record_bytes(self.seal.is_some());
        let rank = self.rank;
        if len > most_bytes {
            return Err(ReliableError::TooLong {
                rank,
                peer,
                len_bytes: len,
                most_bytes,
            });
        }
        self.link(peer, now)?;
        if !self.room(peer, channel) {
            return Err(ReliableError::Full { rank, peer });
        }
        // It fits, by the comparison above.
        let Some(mut record) = self.pool.record(HEADER_BYTES, len) else {
            return Err(ReliableError::Full { rank, peer });
        };
        fill(record.bytes_mut());
        let config = self.config;
        if len > self.record_bytes() {
            self.make_long();
        }
        let link = self.link(peer, now)?;
        if len >= link.record_bytes() {
            link.mtu.is_full(now, &config);
        }
        link.of(channel).sender.submit(record, &config);
        self.settle(peer);
        Ok(())
    }

    /// Trials and chunks are to come.
    fn make_long(&mut self) {
        if self.long.is_empty() {
            self.long = vec![0; self.config.most_datagram_bytes()].into_boxed_slice();
        }
    }

    /// Lists a peer if it has something to send, and sets its timer.
    fn settle(&mut self, peer: JobRank) {
        let link = self.peers.get_mut(peer.0 as usize);
        let Some(link) = link.and_then(|place| place.link.as_deref_mut()) else {
            return;
        };
        list(&mut self.ready, peer, link, &self.config);
        let at = link.deadline(&self.config);
        self.timers.arm(peer.0, &mut link.armed, at);
    }

    /// A datagram has come.
    ///
    /// `accept` is asked whether the next record of this channel of a peer may be delivered now;
    /// otherwise it is kept for [`take`](Self::take), like those that come before their turn. An
    /// encrypted record is decrypted in its place. `None` for a dropped datagram, which is counted.
    pub fn handle_recv(
        &mut self,
        now: Duration,
        datagram: &mut [u8],
        accept: impl FnOnce(JobRank, Channel) -> bool,
    ) -> Option<Arrived> {
        self.it_is(now);
        let Some((header, len)) = Header::read(datagram) else {
            self.counts.malformed += 1;
            return None;
        };
        if header.protection != self.protection() {
            self.counts.forged += 1;
            return None;
        }
        let peer = header.from;
        let known = self.peers.get(peer.0 as usize).map(|p| p.incarnation);
        let of_this_job = header.to == self.rank
            && header.incarnations[1] == self.incarnation
            && known == Some(header.incarnations[0]);
        if !of_this_job || self.check(peer).is_err() {
            self.counts.strangers += 1;
            return None;
        }
        if !self.open(now, &header, datagram) {
            return None;
        }
        let datagram_bytes = datagram.len();
        let record = HEADER_BYTES..HEADER_BYTES + len;
        let bytes = datagram.get(record.clone())?;
        let place = self.peers.get_mut(peer.0 as usize)?;
        let link = place.link.as_deref_mut()?;
        let (config, pool) = (&self.config, &mut self.pool);
        let channel = header.channel;
        // Of the other channel it says up to where all has come, and whether that is all.
        let acknowledgements = Channel::BOTH.map(|of| {
            let (is_own, names_more) = (of == channel, header.kind.names_more());
            Acknowledgement {
                ack: header.numbers[of.index()].ack,
                selective: if is_own { header.selective } else { 0 },
                more: if is_own && names_more { bytes } else { &[] },
                partial: header.partial[of.index()],
            }
        });
        let both = || link.sequences.iter().zip(&acknowledgements);
        if !both().all(|(sequence, ack)| sequence.sender.is_possible(ack)) {
            self.counts.impossible += 1;
            return None;
        }
        let has_progress = Channel::BOTH.map(|of| {
            let ack = &acknowledgements[of.index()];
            link.of(of).sender.acknowledged(ack, now, config, pool)
        });
        self.counts.taken += 1;
        link.heard(now, has_progress, header.heard, config);
        let seq = header.numbers[channel.index()].seq;
        let sequence = link.of(channel);
        let taken = match header.kind {
            Kind::Data => {
                let accept = || accept(peer, channel);
                Some(sequence.receiver.came(seq, bytes, accept))
            }
            Kind::Probe => {
                sequence.owe(now, true, config);
                None
            }
            Kind::Leave => {
                link.peer_leaves(header.numbers.map(|numbers| numbers.seq));
                None
            }
            Kind::Chunk => sequence.receiver.came_in_chunks(seq, bytes),
            Kind::Trial => {
                // A datagram has less than 2^16 bytes.
                link.mtu.came(datagram_bytes as u16);
                None
            }
            Kind::Reached => {
                if let Some([low, high]) = bytes.first_chunk() {
                    link.reached(u16::from_le_bytes([*low, *high]), config);
                }
                None
            }
            Kind::Ack => None,
        };
        match taken {
            None => {}
            Some(Taken::Next | Taken::Kept) => link.of(channel).owe(now, false, config),
            Some(Taken::Repeated) => {
                self.counts.repeated += 1;
                link.of(channel).owe(now, true, config);
            }
            Some(Taken::NoRoom) => self.counts.no_room += 1,
            Some(Taken::Impossible) => self.counts.impossible += 1,
        }
        self.settle(peer);
        Some(Arrived {
            peer,
            channel,
            record: (taken == Some(Taken::Next)).then_some(record),
        })
    }

    /// The next record of a peer's channel, if it came before and was kept.
    pub fn take(&mut self, now: Duration, peer: JobRank, channel: Channel) -> Option<Record> {
        let place = self.peers.get_mut(peer.0 as usize)?;
        let link = place.link.as_deref_mut()?;
        let sequence = link.of(channel);
        let record = sequence.receiver.take()?;
        sequence.owe(now, false, &self.config);
        self.settle(peer);
        Some(record)
    }

    /// Gives a record's buffer back.
    pub fn recycle(&mut self, record: Record) {
        self.pool.give_back(record);
    }

    /// The next datagram to send.
    ///
    /// What was lost before, then commands, acknowledgements, and data; peers in turn, each up to
    /// 64 KiB.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Transmit<'_>> {
        self.transmit(now, &Order::ALL)
    }

    /// The same without acknowledgements that ride on no datagram: for a driver that may have
    /// something to send soon.
    pub fn poll_transmit_prompt(&mut self, now: Duration) -> Option<Transmit<'_>> {
        self.transmit(now, &Order::PROMPT)
    }

    /// Whether an acknowledgement is to be sent that has ridden on no datagram.
    pub fn owes(&mut self) -> bool {
        self.next_due(&[Order::Acknowledgement]).is_some()
    }

    fn transmit(&mut self, now: Duration, orders: &[Order]) -> Option<Transmit<'_>> {
        self.it_is(now);
        let (order, peer, due) = self.next_due(orders)?;
        let protection = self.protection();
        let least_record_bytes = self.record_bytes();
        if matches!(due, Due::Search(_) | Due::Ask(Question::Full)) {
            self.make_long();
        }
        let place = self.peers.get_mut(peer.0 as usize)?;
        let link = place.link.as_deref_mut()?;
        let number = match link.keys.as_deref_mut() {
            Some(keys) => keys.number()?,
            None => 0,
        };
        let due = link.fit(due, now, &self.config);
        let channel = due.channel();
        let partial = link.partial(due);
        let mut header = Header {
            kind: Kind::Ack,
            channel,
            from: self.rank,
            to: peer,
            incarnations: [self.incarnation, place.incarnation],
            numbers: link.sequences.each_ref().map(|sequence| Numbers {
                seq: sequence.sender.next(),
                ack: sequence.receiver.next(),
            }),
            selective: link.of(channel).receiver.named(),
            partial,
            heard: link.path.is_heard(),
            protection,
            number,
        };
        self.counts.sent += 1;
        link.sent(due, partial, now);
        let mut chunk = Chunk {
            from: 0,
            of: 0,
            each: 0,
        };
        match due {
            Due::Record(_, index) => {
                let sender = &mut link.of(channel).sender;
                let (seq, again) = sender.send(index, now, &self.config)?;
                self.counts.sent_again += u64::from(again);
                header.kind = Kind::Data;
                header.numbers[channel.index()].seq = seq;
            }
            Due::Chunk(_, index) => {
                self.counts.chunks += 1;
                header.kind = Kind::Chunk;
                let sequence = link.of(channel);
                let (seq, len) = sequence.sender.look(index)?;
                header.numbers[channel.index()].seq = seq;
                chunk.each = (least_record_bytes - CHUNK_BYTES) as u16;
                chunk.of = len as u16;
                if sequence.chunked.0 == seq {
                    chunk.from = sequence.chunked.1 as u16;
                }
                let end = usize::from(chunk.from) + usize::from(chunk.each);
                sequence.chunked = (seq, end);
                if end >= len {
                    sequence.chunked.1 = 0;
                    let (_, again) = sequence.sender.send(index, now, &self.config)?;
                    self.counts.sent_again += u64::from(again);
                }
            }
            Due::Search(Search::Trial(_)) | Due::Ask(Question::Full) => {
                self.counts.trials += 1;
                header.kind = Kind::Trial;
            }
            Due::Search(Search::Reached(_)) => header.kind = Kind::Reached,
            Due::Probe(_) | Due::Ask(Question::Short) => {
                self.counts.probes += 1;
                header.kind = Kind::Probe;
            }
            Due::Leave(_) => {
                self.counts.leaves += 1;
                header.kind = Kind::Leave;
                for of in Channel::BOTH {
                    header.numbers[of.index()].seq = link.of(of).sender.end();
                }
            }
            Due::Ack(_) => self.counts.acknowledgements += 1,
        }
        if order == Order::Again || link.acks_now() {
            // What waited for the last lost record, or an acknowledgement that did not ride on this
            // datagram.
            list(&mut self.ready, peer, link, &self.config);
        }
        let at = link.deadline(&self.config);
        self.timers.arm(peer.0, &mut link.armed, at);
        let Link {
            sequences, keys, ..
        } = link;
        let Sequence {
            sender, receiver, ..
        } = &mut sequences[channel.index()];
        let (buffer, len) = match due {
            Due::Record(_, index) => {
                let record = sender.record(index)?;
                let len = record.len();
                (record.datagram(), len)
            }
            Due::Chunk(_, index) => {
                let record = sender.record(index)?;
                let from = usize::from(chunk.from);
                let len = usize::from(chunk.each).min(record.len() - from);
                let (place, body) = self.long[HEADER_BYTES..].split_at_mut(CHUNK_BYTES);
                chunk.write(place);
                body[..len].copy_from_slice(&record.bytes()[from..from + len]);
                (&mut self.long[..], CHUNK_BYTES + len)
            }
            Due::Search(Search::Trial(_)) | Due::Ask(Question::Full) => {
                let bytes = match due {
                    Due::Search(Search::Trial(bytes)) => bytes,
                    _ => self.config.datagram_bytes,
                };
                let len = bytes - HEADER_BYTES - protection.bytes();
                self.long[HEADER_BYTES..][..len].fill(0);
                (&mut self.long[..], len)
            }
            Due::Search(Search::Reached(bytes)) => {
                self.short[HEADER_BYTES..][..2].copy_from_slice(&bytes.to_le_bytes());
                (&mut self.short[..], 2)
            }
            Due::Probe(_) | Due::Leave(_) | Due::Ack(_) | Due::Ask(Question::Short) => {
                let len = receiver.name_more(&mut self.short[HEADER_BYTES..]);
                (&mut self.short[..], len)
            }
        };
        header.write(buffer, len);
        let end = HEADER_BYTES + len;
        self.ready[order as usize].sent(end);
        let bytes = match keys.as_deref_mut() {
            Some(keys) => keys.seal(number, buffer, end, &mut self.sealed)?,
            None => buffer.get(..end)?,
        };
        let queue = match order {
            Order::Again | Order::Data => Channel::Data,
            Order::Command | Order::Acknowledgement => Channel::Command,
        };
        let is_trial = header.kind == Kind::Trial;
        Some(Transmit {
            peer,
            queue,
            is_trial,
            bytes,
        })
    }

    /// What is sent next, and the rank that it goes to.
    fn next_due(&mut self, orders: &[Order]) -> Option<(Order, JobRank, Due)> {
        for order in orders.iter().copied() {
            let ready = &mut self.ready[order as usize];
            while let Some(peer) = ready.first() {
                let place = self.peers.get_mut(peer as usize)?;
                let link = place.link.as_deref_mut();
                if let Some(due) = link.as_ref().and_then(|link| link.due(order, &self.config)) {
                    return Some((order, JobRank(peer), due));
                }
                ready.pass();
                if let Some(link) = link {
                    link.listed[order as usize] = false;
                }
            }
        }
        None
    }

    /// Sends acknowledgements that are due now, before the driver ends.
    pub fn flush(&mut self) {
        for peer in 0..self.peers.len() as u32 {
            if let Some(link) = self.peers[peer as usize].link.as_deref_mut() {
                link.flush();
                self.settle(JobRank(peer));
            }
        }
    }

    /// Announces to each peer with which something has passed that this rank ends, once: from then
    /// on the peer waits for no acknowledgement of its records to this rank.
    ///
    /// Records that were submitted are still sent again until the driver ends. The arrival of the
    /// announcement is not reported.
    pub fn leave(&mut self) {
        for peer in 0..self.peers.len() as u32 {
            self.leave_peer(JobRank(peer));
        }
    }

    /// As [`leave`](Self::leave), to one peer.
    pub fn leave_peer(&mut self, peer: JobRank) {
        let place = self.peers.get_mut(peer.0 as usize);
        if let Some(link) = place.and_then(|place| place.link.as_deref_mut()) {
            link.leave();
            self.settle(peer);
        }
    }

    /// Whether a peer has said that it ends.
    #[must_use]
    pub fn has_left(&self, peer: JobRank) -> bool {
        let place = self.peers.get(peer.0 as usize);
        let link = place.and_then(|place| place.link.as_ref());
        link.is_some_and(|link| link.peer_left)
    }

    /// Whether a peer has said that it ends, and all its records up to then were taken.
    #[must_use]
    pub fn has_ended(&self, peer: JobRank) -> bool {
        let place = self.peers.get(peer.0 as usize);
        let link = place.and_then(|place| place.link.as_ref());
        link.is_some_and(|link| link.has_ended())
    }

    /// Whether all records have arrived that were submitted, and nothing is owed to a peer that has
    /// not left.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let mut links = self.peers.iter().filter_map(|place| place.link.as_ref());
        links.all(|link| link.is_drained())
    }
}
