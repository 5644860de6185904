//! Carriers of a channel's streams: [`Rail`], one way to one peer, and [`Rails`], those of one kind
//! that a rank has.
//!
//! Rails say which of them have something ([`Rails::ready`]), and the channel reads and writes
//! them. It calls [`Rails::want`], [`Rails::open`], [`Rails::close`], [`Rails::heard`],
//! [`Rails::wait_for_room`] and [`Server::again`] under locks of its own, and the function that it
//! gives to [`Rails::next`] takes one. So a rail holds no lock around that function that these
//! calls take.

use super::stream::Pieces;
use crate::connections::GateCounts;
use crate::datagrams::Datagrams;
use crate::failover::RailReport;
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use core::time::Duration;
use std::io;

/// Rails to one peer are numbered below this: sets of them are words of 32 bits.
pub const MOST_RAILS: u16 = 32;

/// Names a rail of this rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RailId {
    /// The peer.
    pub peer: JobRank,
    /// Which of the rails to it, below [`MOST_RAILS`]: 0 is the one that messages use, the others
    /// carry payloads beside the stream.
    pub number: u16,
}

impl RailId {
    /// In one word, for interfaces that hand such a word back.
    #[must_use]
    pub fn to_word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.peer.0)
    }

    /// A bit for its number; 0 if that is none of a rail.
    #[inline]
    #[must_use]
    pub fn bit(self) -> u32 {
        1u32.checked_shl(self.number.into()).unwrap_or(0)
    }

    /// The reverse of [`to_word`](Self::to_word).
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        Self {
            peer: JobRank(word as u32),
            number: (word >> 32) as u16,
        }
    }
}

/// One way to a peer, which carries bytes in order.
///
/// Clones are the same rail. Both directions may be used at once, each by one thread at a time.
///
/// # Safety
/// [`write`](Self::write) and [`read`](Self::read) return at most the length of all pieces, and
/// they use no piece after they have returned: the channel gives out places of the client's memory,
/// which the client frees when the operation is complete.
pub unsafe trait Rail: Clone + Send + Sync + 'static {
    /// Writes the bytes that it takes at once; how much, and at least one byte.
    ///
    /// # Safety
    /// All pieces can be read.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where it takes nothing now, [`io::ErrorKind::Interrupted`], or
    /// the reason of its end.
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize>;

    /// Reads the bytes that are there; how much.
    ///
    /// 0 is the end of the rail.
    ///
    /// # Safety
    /// All pieces can be written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize>;

    /// Ends it for both peers: the next read finds the end.
    ///
    /// A channel that finds the end asks for another rail.
    fn shut(&self);

    /// Bytes that were written and that the peer's host has not acknowledged, where that is known.
    ///
    /// Striping goes by it.
    fn queued(&self) -> u64 {
        0
    }

    /// The silence of the peer's host; `None` where the rail finds its end by itself.
    fn vital(&self) -> Option<Vital> {
        None
    }
}

/// Whether the host at the other end of a rail owes an acknowledgement, and how long it is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vital {
    /// The peer's host has been sent something that it must acknowledge, and has not.
    pub owed: bool,
    /// Since when nothing has come from it, ns before now.
    pub silent_ns: u64,
    /// Retransmission timeout before any backoff; 0 where it is not known.
    pub rto_ns: u64,
}

/// A rail whose peer has proved who it is, and over which no frame has passed.
///
/// The channel [shuts](Rail::shut) one that it does not use.
#[derive(Debug)]
pub struct NewRail<R> {
    /// Which it is.
    pub id: RailId,
    /// The rail.
    pub rail: R,
    /// Counts the rails of this number between the two ranks from 1 on; a lower number than one
    /// that was seen is of the past.
    pub incarnation: u64,
    /// Up to which byte the peer says that it has taken this rank's stream, at or after the time at
    /// which the rail was made.
    ///
    /// 0 on a first rail, and on those that carry payloads.
    pub received: u64,
}

/// Outcome of a wish for a rail.
#[derive(Debug)]
pub enum Made<R> {
    /// A rail, asked for or accepted.
    Rail(NewRail<R>),
    /// There will be none: why.
    ///
    /// A job goes on without those after the first.
    Unreachable(RailId, AmError),
}

/// Which rails a poll reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The peer whose first rail is read without asking whether it has something.
    pub first: Option<JobRank>,
    /// Whether [`Rails::ready`] is asked.
    pub all: bool,
}

/// Rails that have something to read.
#[derive(Debug)]
pub struct Ready {
    found: [RailId; Self::ROOM],
    count: usize,
    made: bool,
}

impl Ready {
    /// Rails that are found at a time.
    pub const ROOM: usize = 16;

    /// None.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: RailId = RailId {
            peer: JobRank(0),
            number: 0,
        };
        Self {
            found: [NONE; Self::ROOM],
            count: 0,
            made: false,
        }
    }

    /// Adds one; false if there is no room for it, and it must be found again.
    pub fn add(&mut self, id: RailId) -> bool {
        let Some(place) = self.found.get_mut(self.count) else {
            return false;
        };
        *place = id;
        self.count += 1;
        true
    }

    /// [`Rails::next`] may have something, too.
    pub fn add_made(&mut self) {
        self.made = true;
    }

    /// Those that were found.
    #[must_use]
    pub fn rails(&self) -> &[RailId] {
        &self.found[..self.count]
    }

    /// Whether [`Rails::next`] may have something.
    #[must_use]
    pub fn has_made(&self) -> bool {
        self.made
    }
}

impl Default for Ready {
    fn default() -> Self {
        Self::new()
    }
}

/// The rails of one kind that a rank has: makes them, and says which have something.
///
/// All calls but [`sleep`](Self::sleep) and [`Server::wait`] return at once; any thread may call.
/// The channel passes over ids that are of no rank or of no rail.
pub trait Rails: Send + Sync + 'static {
    /// One of them.
    type Rail: Rail;

    /// Whether a rail that both ranks have closed can be made again.
    ///
    /// If not, a peer that asks for the end of its rails breaks the protocol.
    fn reopens(&self) -> bool {
        false
    }

    /// Whether payloads that may leave the stream always do so once there is a further rail, as the
    /// first one is for what is short or waited for.
    ///
    /// If not, they are striped over all rails where that is faster. The same for all of the time.
    fn sends_beside(&self) -> bool {
        false
    }

    /// Name of the conduit, as in `--conduit`.
    fn name(&self) -> &'static str;

    /// Rails to one peer, at most.
    fn most(&self) -> u16 {
        MOST_RAILS
    }

    /// Asks for a rail to another rank: the first, a further one (below
    /// [`ChannelSizes::rails`](super::ChannelSizes::rails)), or another after it was lost.
    ///
    /// To ask again changes nothing.
    fn want(&self, id: RailId);

    /// Takes a rail that was made since.
    ///
    /// `received` says up to which byte this rank has taken a peer's stream; the peer learns that
    /// when the rail is made.
    ///
    /// The rail before it need not end first: bytes taken from it meanwhile are passed over when
    /// they come again, and it is not read any more once the next is here.
    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<Self::Rail>>;

    /// The channel uses a rail from now on: [`ready`](Self::ready) finds it, and a thread that is
    /// in [`sleep`](Self::sleep) already wakes for it, too.
    ///
    /// # Errors
    /// It cannot be used, as if it had been lost at once.
    fn open(&self, id: RailId, rail: &Self::Rail) -> io::Result<()>;

    /// The channel has given up a rail: ends it, and does not find it any more.
    ///
    /// A channel that is dropped drops its rails instead.
    fn close(&self, id: RailId, rail: &Self::Rail);

    /// The channel does not use this first rail, and no other one to this peer: it has failed the
    /// peer, or the position cannot be.
    fn refuse(&self, id: RailId, rail: &Self::Rail) {
        let _ = id;
        rail.shut();
    }

    /// Both ranks have closed a rail, as nothing passed: it is not lost, and the next
    /// [`want`](Self::want) asks for another.
    ///
    /// Not called unless rails [reopen](Self::reopens).
    fn unwant(&self, id: RailId) {
        let _ = id;
    }

    /// A peer's process has ended, and the channel goes on without it: nothing is sent to it or
    /// asked of it any more, and nothing that comes of it is used.
    ///
    /// Its rails are closed after.
    fn forget(&self, peer: JobRank) {
        let _ = peer;
    }

    /// Begins a poll.
    ///
    /// `alone`: there is one rail at most.
    fn begin_poll(&self, alone: bool) -> Look;

    /// A number that changes with each poll: threads that serve see by it whether the rank polls.
    fn polls(&self) -> u32;

    /// A read of a peer's first rail has found something.
    ///
    /// `asleep` says whether a thread sleeps in [`sleep`](Self::sleep) or is about to.
    fn heard(&self, peer: JobRank, rail: &Self::Rail, asleep: &dyn Fn() -> bool) {
        let _ = (peer, rail, asleep);
    }

    /// Nothing has come from a peer for long: [`begin_poll`](Self::begin_poll) names it no more
    /// until something has.
    fn cool(&self, peer: JobRank) {
        let _ = peer;
    }

    /// Which have something to read now.
    ///
    /// Where there are more than [`Ready::ROOM`], each has its turn.
    fn ready(&self, found: &mut Ready);

    /// Whether any rail has something to read, or was made; if so, the next poll asks for all.
    fn has_ready(&self) -> bool;

    /// Before a sleep: rails that [`heard`](Self::heard) has left out end it, too.
    fn arm(&self) {}

    /// A sleep ends, or does not any more, when a rail takes more; one that a thread is in already,
    /// too.
    fn wait_for_room(&self, id: RailId, rail: &Self::Rail, waits: bool);

    /// Sleeps until a rail has something, one was made, [`wake`](Self::wake) is called, or the time
    /// is over.
    ///
    /// The next poll asks for all. One thread at a time calls it, after
    /// [`forget_wakeups`](Self::forget_wakeups) and a look whether there is anything to do.
    fn sleep(&self, timeout: Option<Duration>);

    /// Ends the sleep of a thread, or the next one.
    fn wake(&self);

    /// Forgets wakeups of the past, but no rail that was made.
    fn forget_wakeups(&self);

    /// The time by which the rails live, in ns since some beginning; `None` is the system's.
    ///
    /// Where they have a time of their own, the channel has no threads: gathered messages leave
    /// with the rank's next poll.
    #[inline]
    fn virtual_ns(&self) -> Option<u64> {
        None
    }

    /// For a thread that serves rails while its rank makes no call; `None` where there is none.
    fn server(&self) -> Option<&dyn Server<Self::Rail>> {
        None
    }

    /// A number that changes with [`callers`](Self::callers).
    ///
    /// Costs next to nothing.
    fn came(&self) -> u64 {
        0
    }

    /// Counts of peers and strangers that have asked for rails, and of refusals by reason; `None`
    /// while another thread holds them.
    fn callers(&self) -> Option<GateCounts> {
        Some(GateCounts::default())
    }

    /// The rails to a peer and their states, in words.
    ///
    /// `None` where none is chosen among several, or another thread holds them.
    fn in_words(&self, peer: JobRank) -> Option<String> {
        let _ = peer;
        None
    }

    /// Counts of what has happened to rails; `None` where none is chosen among several.
    fn rail_report(&self) -> Option<RailReport> {
        None
    }

    /// Counts of datagrams that the rank's socket has dropped; `None` where no datagrams come.
    fn datagrams(&self) -> Option<Datagrams> {
        None
    }

    /// What moves puts and gets without the stream; `None` where all of them are frames.
    ///
    /// The answer never changes.
    #[inline]
    fn one_sided(&self) -> Option<&dyn OneSided> {
        None
    }
}

/// Moves puts and gets between a rank and its peers without the stream.
pub trait OneSided {
    /// Writes `len` bytes into the segment of a peer during the call, complete on both sides then.
    ///
    /// False, also for a peer that was [forgotten](Rails::forget): nothing was written, or what was
    /// is written again as frames.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes.
    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool;

    /// Reads `len` bytes of the segment of a peer during the call.
    ///
    /// As [`put_now`](Self::put_now).
    ///
    /// # Safety
    /// `dst` is writable for `len` bytes.
    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool;

    /// As [`Conduit::segment_grown`](crate::Conduit::segment_grown).
    ///
    /// # Errors
    /// Why peers cannot reach it.
    fn segment_grown(&self) -> Result<(), String>;
}

/// Waits at rails for a thread of the channel's own, at each until it has something once.
pub trait Server<R> {
    /// Waits until some have something: which.
    ///
    /// False at the end.
    fn wait(&self, found: &mut Ready) -> bool;

    /// Waits at a rail once more.
    fn again(&self, id: RailId, rail: &R);

    /// Waits for rails that are made once more.
    fn again_made(&self);

    /// Ends the waits of now and from now on.
    fn end(&self);
}
