//! What is sent again: it found no room, no entry, or no credits at its target.

use super::core::{Again, Portals};
use super::wire::Head;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::portals::{NicError, Portals as Interface};
use core::sync::atomic::Ordering;

impl<N: Interface> Portals<N> {
    /// Sends again what found no room or no entry.
    #[cold]
    pub(super) fn try_again(&self, mut fails: impl FnMut(AmError)) {
        self.take_failures().into_iter().for_each(&mut fails);
        let all = core::mem::take(&mut *self.again.lock());
        for what in all {
            match self.try_one(what) {
                Ok(true) => {
                    self.agains.fetch_sub(1, Ordering::Relaxed);
                }
                Ok(false) => self.again.lock().push(what),
                Err(error) => {
                    self.agains.fetch_sub(1, Ordering::Relaxed);
                    fails(error);
                }
            }
        }
    }

    /// Whether it could be sent now.
    fn try_one(&self, what: Again) -> Result<bool, AmError> {
        let told = |to: JobRank, result: Result<(), NicError>| match result {
            Ok(()) => Ok(true),
            Err(error) => Err(self.refuses(to, &error)),
        };
        match what {
            Again::Refused(chunk) => {
                let Some(mut sent) = self.send_chunks.sent(chunk) else {
                    return Ok(true);
                };
                let Ok(head) = Head::of(sent.bits) else {
                    return Ok(true);
                };
                if !self.tickets.take(1) {
                    return Ok(false);
                }
                let cost = self.cost_of(&head, sent.len);
                let paid = self.pay(&mut self.peer(sent.to).state.lock(), cost);
                let Some(credits) = paid else {
                    self.tickets.give(1);
                    return Ok(false);
                };
                sent.bits = Head { credits, ..head }.bits();
                self.send_chunks.note(chunk, sent);
                told(sent.to, self.put_request(chunk, &sent))
            }
            // It has kept its ticket.
            Again::Request(chunk) => match self.send_chunks.sent(chunk) {
                Some(sent) => told(sent.to, self.put_request(chunk, &sent)),
                None => Ok(true),
            },
            Again::Reply(chunk) => match self.reply_chunks.sent(chunk) {
                Some(sent) => told(sent.to, self.put_reply(chunk, &sent)),
                None => Ok(true),
            },
            Again::Operation(handle) => match self.table.transfer(handle) {
                Some(transfer) => told(transfer.to, self.issue(handle, &transfer)),
                None => Ok(true),
            },
            Again::System(to, word) => told(to, self.put_system(to, word)),
        }
    }

    fn cost_of(&self, head: &Head, len: u64) -> u16 {
        let costs = &self.sizes.rules.costs;
        match head.kind.is_split() {
            true => costs.long(),
            false => (len as u32).div_ceil(costs.granularity).max(1) as u16,
        }
    }
}
