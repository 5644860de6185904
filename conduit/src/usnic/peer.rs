//! What a rank knows of a peer, and what came over its rails.

use crate::channel::rail::RailId;
use argonet_base::JobRank;
use argonet_nic::reliable::{Channel, PeerLost};
use std::collections::VecDeque;

/// Bytes of a rail that wait to be read, from which on the layer keeps what comes.
const MOST_UNREAD: usize = 256 << 10;

/// The number of the rail that carries payloads beside the stream.
pub(super) const BESIDE: u16 = 1;

/// The channel that a rail has for itself, by its number: commands carry the stream, data the
/// payloads beside it.
pub(super) fn channel_of(rail: RailId) -> Channel {
    match rail.number {
        0 => Channel::Command,
        _ => Channel::Data,
    }
}

/// The rail over a channel.
pub(super) fn rail_of(peer: JobRank, channel: Channel) -> RailId {
    let number = match channel {
        Channel::Command => 0,
        Channel::Data => BESIDE,
    };
    RailId { peer, number }
}

/// Why a peer was lost, with what its interface has reported of operations that failed.
pub(super) fn reason(lost: &PeerLost, trouble: Option<String>) -> String {
    match trouble {
        None => lost.to_string(),
        Some(trouble) => format!("{lost}; the interface has reported that {trouble}"),
    }
}

/// What came over a rail.
#[derive(Default)]
pub(super) struct Arrivals {
    /// What came and was not read.
    pub(super) unread: VecDeque<u8>,
    /// Whether the channel knows that there is this rail.
    pub(super) is_made: bool,
    /// Whether the channel uses it.
    pub(super) is_open: bool,
    /// Whether it is in `State::ready`.
    pub(super) is_listed: bool,
}

impl Arrivals {
    /// Whether more may be kept until it is read.
    pub(super) fn has_room(&self) -> bool {
        self.unread.len() < MOST_UNREAD
    }
}

/// Of a peer that was used.
#[derive(Default)]
pub(super) struct Peer {
    /// By channel.
    pub(super) rails: [Arrivals; 2],
    /// Nothing more is read: it was lost, or a rail was shut.
    pub(super) is_shut: bool,
    /// The channel knows that there is no rail any more, or learns it in time.
    pub(super) is_given_up: bool,
}

impl Peer {
    pub(super) fn on(&self, channel: Channel) -> &Arrivals {
        &self.rails[channel.index()]
    }

    pub(super) fn on_mut(&mut self, channel: Channel) -> &mut Arrivals {
        &mut self.rails[channel.index()]
    }

    /// Whether what comes next on a channel may be delivered.
    pub(super) fn takes(&self, channel: Channel) -> bool {
        self.on(channel).has_room() && !self.is_shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn the_reason_of_a_loss_has_what_the_interface_reported() {
        let lost = PeerLost {
            rank: JobRank(1),
            peer: JobRank(4),
            silent: Duration::from_secs(20),
            sends: 3,
        };
        assert_eq!(reason(&lost, None), lost.to_string());
        let trouble = "of net, 2 operations failed, the first with a send failed: out of paper";
        let why = reason(&lost, Some(trouble.to_owned()));
        assert!(why.starts_with("rank 1 cannot reach rank 4: "), "{why}");
        assert!(why.ends_with(trouble), "{why}");
    }
}
