//! Options of an interface's objects, and features of an interface.

use super::{Counter, EntryHandle, Queue};
use argonet_base::JobRank;

/// How a portal treats messages that do not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortalOptions {
    /// If nothing matches, or the queue that an event belongs in has no room, nothing is done, the
    /// portal is disabled, its queue gets [`Disabled`](super::EventKind::Disabled), and the
    /// initiator gets its message back as [`Outcome::Disabled`](super::Outcome::Disabled).
    ///
    /// Without it data and events are dropped and counted.
    pub flow_control: bool,
}

/// Which operations an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matching {
    /// The bits that a message must have,
    pub bits: u64,
    /// except for these.
    pub ignore: u64,
    /// The rank that may have sent it; `None`: any rank.
    pub source: Option<JobRank>,
}

/// Where in its list an entry goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Before all others.
    ///
    /// Needs [`Features::insert`].
    Head,
    /// Behind all others.
    Tail,
    /// Just before this one, of the same portal.
    ///
    /// Needs [`Features::insert`].
    Before(EntryHandle),
    /// Just behind this one, of the same portal.
    ///
    /// Needs [`Features::insert`].
    After(EntryHandle),
}

/// The side that decides where in an entry data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Managed {
    /// The initiator.
    Remote,
    /// The entry: each operation behind the one before.
    ///
    /// When less than `min_free_bytes` are left it takes no more (the `max_size` of Portals 3.3);
    /// the initiator's offset counts for nothing.
    Local {
        /// The least room that keeps the entry active.
        min_free_bytes: u64,
    },
}

/// Which events an object makes, if it has a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Events {
    /// When an operation begins.
    ///
    /// Needs [`Features::start_events`].
    pub start: bool,
    /// When it is complete.
    ///
    /// Acknowledgements come in both cases.
    pub end: bool,
}

/// The counter of an object, and its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// Which one.
    pub counter: Counter,
    /// By bytes moved, not by operations.
    pub bytes: bool,
}

/// An entry of a match list with its memory, the target of operations (spec P1: RAR, RARAM, ReqRB,
/// CB, SYSMD and the receiving half of ReqSB are such).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Whether puts and atomics are accepted.
    ///
    /// Fetching atomics need both.
    pub puts: bool,
    /// Whether gets are accepted.
    pub gets: bool,
    /// The side that decides where data goes.
    pub managed: Managed,
    /// Whether an operation that is longer than the room left is cut short.
    ///
    /// Otherwise the entry is passed over.
    pub truncate: bool,
    /// Whether operations are never acknowledged, though their initiators ask.
    ///
    /// Needs [`Features::ack_disable`].
    pub ack_disable: bool,
    /// How many operations are accepted; `None`: any number.
    ///
    /// Others than 1 need [`Features::thresholds`].
    pub threshold: Option<u32>,
    /// Whether the entry leaves its list when its threshold is reached or its room used up, with an
    /// event of its own.
    ///
    /// Otherwise it stays and is passed over.
    pub auto_unlink: bool,
    /// Which events it makes.
    pub events: Events,
    /// Where they go.
    pub queue: Option<Queue>,
    /// The counter of completed operations.
    pub count: Option<Count>,
    /// Handed back in events.
    pub user: u64,
}

impl Entry {
    /// Takes puts and gets at the initiator's offset forever and says nothing of them, as the
    /// entry over a segment does.
    pub const OPEN: Self = Self {
        puts: true,
        gets: true,
        managed: Managed::Remote,
        truncate: false,
        ack_disable: false,
        threshold: None,
        auto_unlink: false,
        events: Events {
            start: false,
            end: false,
        },
        queue: None,
        count: None,
        user: 0,
    };
}

/// Memory that operations of this rank begin from: source of puts, destination of gets (spec P1:
/// RARSRC, RplSB, TMPMD and the sending half of ReqSB are such).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// How many operations may be begun; `None`: any number.
    ///
    /// Needs [`Features::thresholds`].
    pub threshold: Option<u32>,
    /// Whether it is released, with an event, when its threshold is reached and the last answer is
    /// in.
    pub auto_unlink: bool,
    /// Which events it makes, beside acknowledgements.
    pub events: Events,
    /// Where they go.
    pub queue: Option<Queue>,
    /// The counter of acknowledgements asked for by [`Ack::Count`](super::Ack::Count), and of
    /// replies.
    pub count: Option<Count>,
    /// Handed back in events.
    pub user: u64,
}

impl Descriptor {
    /// For any number of operations, none of which is reported.
    pub const SILENT: Self = Self {
        threshold: None,
        auto_unlink: false,
        events: Events {
            start: false,
            end: false,
        },
        queue: None,
        count: None,
        user: 0,
    };
}

/// Features that only some interfaces have.
///
/// A request for a missing one is [`NicError::Unsupported`](super::NicError::Unsupported).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// Entries may be put elsewhere than at the end of a list.
    pub insert: bool,
    /// Thresholds other than 1.
    pub thresholds: bool,
    /// Events at the start of operations.
    pub start_events: bool,
    /// Entries that do not acknowledge.
    pub ack_disable: bool,
    /// When its call returns, an operation has read its source, and a put has reached its target.
    ///
    /// The return of the call does not say how it ended.
    pub synchronous: bool,
    /// A message without room at its target has gone there all the same, by a call of the system or
    /// over a network, so that another try costs as much as the first.
    pub remote: bool,
}

/// How much of everything an interface has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Ranks that can be reached.
    pub ranks: u32,
    /// Portals of a rank.
    pub portals: u32,
    /// Entries of a rank.
    pub entries: u32,
    /// Bound descriptors of a rank.
    pub descriptors: u32,
    /// Event queues of a rank.
    pub queues: u32,
    /// Events in a queue.
    pub queue_events: u64,
    /// Counters of a rank.
    pub counters: u32,
    /// Longest put or get.
    pub message_bytes: u64,
    /// Longest atomic operation.
    pub atomic_bytes: u64,
}

/// Counts of an interface since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Register {
    /// Messages for this rank that were dropped or refused.
    Drops,
    /// Events for this rank that found their queue full.
    EventsDropped,
    /// Operations of this rank that were carried without the target's lock.
    Direct,
    /// Operations of this rank that went through the target's match list in the ordinary way.
    Matched,
    /// Ranks that ended inside the interface of this one and whose steps were completed or undone.
    Recoveries,
}
