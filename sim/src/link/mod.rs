//! A reliable link over a wire that loses, repeats, reorders and damages frames: whole messages,
//! each exactly once, in the order in which they were submitted.
//!
//! This is the protocol of the simulated conduit; real conduits bring their own. It is sans-IO: a
//! [`Link`] owns no clock, no socket and no source of chance, and is driven by
//!
//! | verb | |
//! | --- | --- |
//! | [`Link::submit`] | takes a message to send, or says that there is no room |
//! | [`Link::handle_recv`] | takes a frame that arrived |
//! | [`Link::handle_timeout`] | takes the time; begins a pass |
//! | [`Link::poll_transmit`] | yields frames to send |
//! | [`Link::poll_timeout`] | yields when `handle_timeout` must be called next |
//! | [`Link::poll_message`] | yields messages that arrived |
//! | [`Link::poll_event`] | yields what else happened: acknowledged messages, a dead peer |
//!
//! * **Loss** is found by time (RFC 8985): a part is lost when one sent sufficiently later has
//!   arrived. When nothing arrives any more the retransmission timer fires (RFC 6298: from measured
//!   round trips, doubled each time). Either way at most [`LinkConfig::resends_per_pass`] parts are sent
//!   again in one pass.
//! * **Acknowledgements** are cumulative and selective. Whatever has a payload is acknowledged, a
//!   duplicate too: its acknowledgement may have been lost.
//! * **Bounds**: messages and parts under way, parts buffered at the receiver, the message being put
//!   together. A receiver whose user takes no messages closes its window; the sender then probes, since the
//!   frame that opens it again may be lost.
//! * **Death** is a matter of time: a peer that has been silent for
//!   [`LinkConfig::dead_after_ns`] while this end sent or probed is dead.
//!
//! A message has a head, which the link keeps, and a tail that lies with its submitter until
//! [`LinkEvent::Acknowledged`]: parts that are sent again are read again.

mod config;
mod end;
mod frame;
mod receiver;
mod rtt;
mod sender;
#[cfg(test)]
mod tests;

pub use config::{LinkConfig, LinkConfigError};
pub use end::{Counters, Link, LinkEvent};
pub use frame::{Address, FrameError, HEADER_BYTES, Header, parse};
pub use sender::{Outgoing, Tail};
