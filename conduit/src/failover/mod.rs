//! Failover: rails of several members, kinds or interfaces, of which one carries the stream to a
//! peer at a time.
//!
//! [`FailoverRails`] are rails for a [`channel`](crate::channel). The members are in the order in
//! which the user prefers them. Where the one that carries the stream to a peer fails, both ranks
//! agree on another (`succession`), over its rail (`record`, `link`), and the stream goes on from
//! where each has taken it. When a better member is there again, it goes back to it after a while,
//! which grows with the failures. Payloads are striped over further rails of members that have
//! such, as ever.
//!
//! ```text
//!   netlink --> own_addresses --+
//!   the end of a rail (link) ---+--> Events --> Rails::next: see --> Succession, one per peer
//!   an offer (link) ------------+                     ^                  |  Act
//!   silence: the channel's vitals --> close_stream ---+                  v
//!                        Ask: Member::want, or a probe     Offer: Link::offer
//!                        Carry: Made::Rail, to the channel
//! ```
//!
//! All of it runs in the thread that calls `Rails::next`, which holds `driving`; other threads add
//! events.

mod config;
mod driving;
mod gauge;
mod link;
mod losses;
mod member;
mod own_addresses;
mod rails;
mod record;
mod shared;
mod stream_rail;
mod succession;
#[cfg(test)]
mod tests;

pub use config::{FailoverConfig, ListAddresses, MemberConfig};
pub use gauge::{MemberCounts, RAILS_FILE_NAME, RailReport};
pub use member::Member;
pub use rails::FailoverRails;
