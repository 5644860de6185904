//! The two ends of the stream between a rank and one peer.
//!
//! A [`SendStream`] takes frames and yields the bytes to write; a [`ReceiveStream`] takes the bytes
//! that were read and yields frames. Both know their place in their stream, which goes on when
//! another rail is made: bytes that the peer has not taken are written again
//! ([`SendStream::resume`]), and bytes taken before are passed over.
//!
//! * **Replay.** Frames, and payloads that are copied, lie in a ring until the peer has taken them;
//!   payloads that stay where they are (an [`Extent`]) are read again from there. The ring grows as
//!   it is needed, up to its limit.
//! * **Room.** Requests leave the room of the largest reply in the ring, and a request is taken
//!   only while that room is there: a reply never waits. A peer sends no more requests than it has
//!   been lent room for ([`Grant`]), so arriving bytes are always taken from the rail, and replies
//!   never wait behind requests.

mod bodies;
mod grant;
mod pieces;
mod rail_choice;
mod receive;
mod ring;
mod send;
#[cfg(test)]
mod tests;

pub(crate) use bodies::{Bodies, Wanted};
pub(crate) use grant::{Aside, Grant, Parked};
pub(crate) use pieces::Cursor;
pub use pieces::{Piece, Pieces};
pub(crate) use rail_choice::{Choice, Link, Speed, best};
pub(crate) use receive::{Next, PAYLOAD_ALIGN, ReceiveStream};
pub(crate) use send::{Body, Claim, Credits, Extent, SendStream};
