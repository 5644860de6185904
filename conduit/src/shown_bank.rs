//! A rank's bank of credits, with the gauges that show it.

use crate::gauges::Gauges;
use argonet_am::credit::{Bank, Figures, Peer};
use argonet_am::system_queue::Question;
use argonet_base::JobRank;
use core::ops::Deref;
use std::io;
use std::sync::Arc;

/// A rank's [`Bank`], and the gauges in shared memory from which commands read its credits.
pub(crate) struct ShownBank {
    bank: Bank,
    gauges: Arc<Gauges>,
}

impl Deref for ShownBank {
    type Target = Bank;

    #[inline]
    fn deref(&self) -> &Bank {
        &self.bank
    }
}

impl ShownBank {
    /// The bank of a rank of a job of `ranks`.
    ///
    /// # Errors
    /// The system gives no memory for the gauges.
    pub(crate) fn new(bank: Bank, rank: JobRank, ranks: u32) -> io::Result<Self> {
        let gauges = Arc::new(Gauges::new(rank.0, ranks, &bank)?);
        Ok(Self { bank, gauges })
    }

    pub(crate) fn gauges(&self) -> Arc<Gauges> {
        Arc::clone(&self.gauges)
    }

    /// Shows the credits that the bank has, and has moved.
    #[cold]
    pub(crate) fn show(&self) {
        self.gauges.bank(&self.bank);
    }

    /// Shows the credits between this rank and a peer.
    #[inline]
    pub(crate) fn show_peer(&self, peer: JobRank, figures: Figures, stalls: u64) {
        self.gauges.peer(peer.0, figures, stalls);
    }

    /// Asks peers to give credits back, if a peer lacks some.
    ///
    /// `visit` gives its function the credits of a rank, unless another thread holds the peer's
    /// lock or a question to the peer is open. `ask` sends a question to a rank. Both take the lock
    /// of a peer, so the caller holds none.
    // spec P11
    #[inline]
    pub(crate) fn call_back(
        &self,
        visit: impl FnMut(JobRank, &mut dyn FnMut(&mut Peer)),
        ask: impl FnMut(JobRank, Question),
    ) {
        if self.bank.is_short() {
            self.call_in(visit, ask);
        }
    }

    #[cold]
    fn call_in(
        &self,
        mut visit: impl FnMut(JobRank, &mut dyn FnMut(&mut Peer)),
        mut ask: impl FnMut(JobRank, Question),
    ) {
        let mut asked = Vec::new();
        self.bank.scavenge(
            |rank, look| visit(JobRank(rank), look),
            |rank, revoke| asked.push((JobRank(rank), revoke)),
        );
        // The bank's list is free again: the holder of a peer's lock may have waited for it.
        for (rank, revoke) in asked {
            ask(rank, Question::Revoke(revoke));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_am::credit::{Plan, Rules, Wishes};
    use core::time::Duration;
    use std::sync::mpsc::channel;
    use std::thread;

    /// The holder of a peer's lock may want the bank's list, and `ask` that lock.
    #[test]
    fn questions_are_asked_while_the_list_is_free() {
        let rules = Rules::default();
        let wishes = Wishes {
            share: Some(40),
            bank: Some(0),
            space_bytes: None,
        };
        let plan = Plan::new(3, &rules, wishes).unwrap();
        let bank = ShownBank::new(Bank::new(0, plan, rules), JobRank(0), 3).unwrap();
        let bank = Arc::new(bank);
        let mut peers = [1, 2].map(|_| Peer::new(&bank).unwrap());
        while peers[1].asks(100, 2, &bank) > 0 {}
        let mut asked = Vec::new();
        bank.call_back(
            |rank, look| {
                if rank == JobRank(1) {
                    look(&mut peers[0]);
                }
            },
            |rank, question| {
                asked.push((rank, question));
                let (send, listed) = channel();
                let bank = Arc::clone(&bank);
                thread::spawn(move || send.send(bank.listed()));
                let listed = listed.recv_timeout(Duration::from_secs(10));
                assert!(listed.is_ok(), "the list is in use");
            },
        );
        assert!(
            matches!(asked[..], [(JobRank(1), Question::Revoke(_))]),
            "{asked:?}"
        );
    }
}
