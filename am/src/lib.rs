//! Active messages without I/O: what a message is, how it is packed, which handler it names and
//! who may reply.
//!
//! * [`Message`] is what a sender describes; [`record`] is how it lies in a ring; [`Delivery`] is
//!   what a handler sees, and its token.
//! * [`HandlerTable`] has 256 entries, the client's from 128 on, the same on all ranks.
//! * [`credit`] says who may send how much where receive space is bounded, [`recycling`] how that
//!   space is used again, [`system_queue`] what ranks send each other beside requests and replies,
//!   and [`lid_cache`] puts longs of two messages together.
//! * A request's handler may reply once, a reply's handler not at all; neither may start anything
//!   else. Room for the reply is reserved before the request is accepted, so [`ReplyPort::reply`]
//!   never waits.
//!
//! Nothing here owns a socket, a clock or a thread, and nothing allocates once handlers are
//! registered.
#![forbid(unsafe_code)]

pub mod credit;
mod delivery;
mod endpoints;
mod error;
pub mod lid_cache;
mod limits;
mod message;
pub mod record;
pub mod recycling;
pub mod system_queue;
mod table;

pub use delivery::{Delivery, ReplyPort};
pub use endpoints::{Carried, Endpoints};
pub use error::AmError;
pub use limits::{CLIENT_BASE, ENDPOINTS, HANDLERS, MAX_ARGS, MAX_CARRIED, MAX_MEDIUM};
pub use message::{Category, Message, MessageClass, Payload};
pub use table::{HandlerFn, HandlerTable, Registered};
