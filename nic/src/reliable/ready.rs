//! The turns in which peers are sent to.

use std::collections::VecDeque;

/// Bytes of datagrams after which it is the next peer's turn.
const TURN_BYTES: usize = 64 << 10;

/// Peers that may have something to send of one [`Order`](super::link::Order), in turn.
#[derive(Debug)]
pub(super) struct Ready {
    peers: VecDeque<u32>,
    /// Bytes that the first one may still send in its turn.
    turn_bytes: usize,
}

impl Ready {
    pub(super) fn new() -> Self {
        Self {
            peers: VecDeque::new(),
            turn_bytes: TURN_BYTES,
        }
    }

    pub(super) fn add(&mut self, peer: u32) {
        self.peers.push_back(peer);
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.peers.front().copied()
    }

    /// The first one has nothing to send.
    pub(super) fn pass(&mut self) {
        self.peers.pop_front();
        self.turn_bytes = TURN_BYTES;
    }

    /// The first one has sent so many bytes.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.turn_bytes = self.turn_bytes.saturating_sub(bytes);
        if self.turn_bytes == 0 {
            self.peers.rotate_left(1);
            self.turn_bytes = TURN_BYTES;
        }
    }
}
