//! Matching network interfaces.
//!
//! A rank makes parts of its memory reachable by *entries* in match lists. A peer names a rank, an
//! index into that rank's *portal table* and 64 match bits; the interface goes through the list at
//! that index, and the first entry whose bits agree (where it does not ignore them) and that
//! accepts the operation is its target. The rank whose memory it is does nothing. *Event queues*
//! and counters report operations.
//!
//! [`Portals`] is the trait, and its methods say what each does. [`software`] implements it in
//! shared memory, [`networked`] in shared memory and between hosts, [`portals4`] over a library of
//! Portals 4.
//!
//! # What is taken from where
//!
//! The protocol text that the conduit follows is written for Portals 3.3, today's libraries have
//! Portals 4. The trait has the operations of both, in one form, and [`Features`] for those of only
//! one; ADR 0026 has the table.
//!
//! * A match entry and its memory are one thing, an [`Entry`], as in Portals 4. Memory that
//!   operations start from is a [`Descriptor`], bound apart, *free floating*. A buffer that is both
//!   is both.
//! * Places in a list other than its end, thresholds other than one, events at the start of an
//!   operation, and targets that refuse to acknowledge are features of Portals 3.3.
//! * Counters, portals that are disabled when something does not fit (*flow control*), and atomic
//!   operations are Portals 4.
//! * Every operation that asks for an answer gets one, [`Outcome`] says which. (In Portals 3.3 the
//!   acknowledgement of a put that matched nothing never comes.)
//! * Events at the initiator carry the operation's match bits and header, as in 3.3.

mod error;
mod event;
mod handle;
mod interface;
pub mod networked;
mod operation;
mod options;
pub mod portals4;
mod slots;
pub mod software;

pub use error::NicError;
pub use event::{Event, EventKind, Outcome};
pub use handle::{Counter, DescriptorHandle, EntryHandle, PortalIndex, Queue};
pub use interface::{Portals, ReportDropped};
pub use operation::{Ack, Answer, AtomicKind, AtomicOp, Part, Target};
pub use options::{
    Count, Descriptor, Entry, Events, Features, Limits, Managed, Matching, PortalOptions, Position,
    Register,
};
