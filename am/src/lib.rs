//! Active messages without I/O: messages, their packed form, their handlers and their replies.
//!
//! * [`Message`] is a message as its sender describes it; [`record`] is its form in a ring;
//!   [`Delivery`] is a message as its handler sees it, and its token.
//! * [`HandlerTable`] has 256 entries, the client's from 128 on, the same on all ranks.
//! * [`credit`] bounds what each rank may send where receive space is bounded, [`recycling`] uses
//!   that space again, [`system_queue`] has messages between ranks beside requests and replies, and
//!   [`lid_cache`] puts longs of two messages together.
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
