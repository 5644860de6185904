//! The machine piece by piece; whole jobs of it run in the simulator.

mod asking;
mod bounds;
mod form;
mod lending;
mod plan;
mod shared;
mod stream;
mod walk;

use super::*;

/// Rules with 16-bit fields and small epochs.
pub(super) fn rules() -> Rules {
    Rules {
        form: Form::WIDE,
        epoch_requests: 8,
        ..Rules::default()
    }
}

/// A bank of a job of `nodes` with `share` and `bank` credits, or a few more in the bank by
/// rounding.
pub(super) fn bank(nodes: u32, share: u32, bank: u32, rules: Rules) -> Bank {
    let wishes = Wishes {
        share: Some(share),
        bank: Some(bank),
        space_bytes: None,
    };
    Bank::new(0, Plan::new(nodes, &rules, wishes).unwrap(), rules)
}

/// Two ranks: the state that rank 0 keeps of rank 1, and the other way round.
pub(super) struct Pair {
    pub(super) banks: [Bank; 2],
    pub(super) peers: [Peer; 2],
}

impl Pair {
    pub(super) fn new(share: u32, banked: u32, rules: Rules) -> Self {
        let banks = [bank(2, share, banked, rules), bank(2, share, banked, rules)];
        let peers = [&banks[0], &banks[1]].map(|bank| Peer::new(bank).unwrap());
        Self { banks, peers }
    }

    /// Rank 0 sends a request and rank 1 answers it.
    ///
    /// Returns the tag of the reply, or `None` if the request has to wait.
    pub(super) fn round(&mut self, cost: u16, attempt: &mut Attempt) -> Option<Tag> {
        let tag = self.peers[0].request(cost, attempt, &self.banks[0])?;
        let debt = self.peers[1].arrived(tag, &self.banks[1]).unwrap();
        let reply = self.peers[1].reply(debt, 0, &self.banks[1]);
        self.peers[0].replied(reply, &self.banks[0]).unwrap();
        Some(reply)
    }

    /// A request of more than is free stalls; it goes when others have come back, and asks for the
    /// credits that it lacked.
    pub(super) fn stalled_round(&mut self, first: u16, second: u16) -> Tag {
        let held = self.peers[0]
            .request(first, &mut Attempt::default(), &self.banks[0])
            .unwrap();
        let mut attempt = Attempt::default();
        assert!(
            self.peers[0]
                .request(second, &mut attempt, &self.banks[0])
                .is_none()
        );
        assert!(attempt.has_stalled());
        let debt = self.peers[1].arrived(held, &self.banks[1]).unwrap();
        let reply = self.peers[1].reply(debt, 0, &self.banks[1]);
        self.peers[0].replied(reply, &self.banks[0]).unwrap();
        self.round(second, &mut attempt).unwrap()
    }
}
