//! What is sent again: it found no room, no entry, or no credits at its target.

use super::chunks::Sent;
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
                self.request_again(chunk, &sent)
            }
            // It has kept its ticket.
            Again::Request(chunk) => match self.send_chunks.sent(chunk) {
                Some(sent) => self.request_again(chunk, &sent),
                None => Ok(true),
            },
            Again::Reply(chunk) => match self.reply_chunks.sent(chunk) {
                Some(sent) => {
                    let put = self.put_reply(chunk, &sent);
                    if put.is_err() {
                        self.replied(chunk);
                    }
                    told(sent.to, put)
                }
                None => Ok(true),
            },
            Again::Operation(handle) => match self.table.transfer(handle) {
                Some(transfer) => {
                    let issued = self.issue(handle, &transfer);
                    if issued.is_err() {
                        self.drop_operation(handle);
                    }
                    told(transfer.to, issued)
                }
                None => Ok(true),
            },
            Again::System(to, word) => told(to, self.put_system(to, word)),
            Again::Buffers => match self.link_buffers() {
                // Others have what there is.
                Err(NicError::NoSpace { .. }) => Ok(false),
                linked => told(self.rank, linked),
            },
            Again::Release => {
                let Some((descriptor, memory)) = self.unreleased.lock().pop() else {
                    return Ok(true);
                };
                self.release(descriptor, memory);
                Ok(true)
            }
        }
    }

    /// Sends a request again, which has its ticket. One that is refused even so was not sent.
    fn request_again(&self, chunk: u32, sent: &Sent) -> Result<bool, AmError> {
        let Err(error) = self.put_request(chunk, sent) else {
            return Ok(true);
        };
        let cost = Head::of(sent.bits).map_or(0, |head| self.cost_of(&head, sent.len));
        self.abandon(self.peer(sent.to), chunk, cost);
        Err(self.refuses(sent.to, &error))
    }

    /// Gives the interface all buffers that it has not got.
    fn link_buffers(&self) -> Result<(), NicError> {
        let arrivals = &mut *self.arrivals.lock();
        arrivals.requests.relink(&self.nic)?;
        arrivals.large.buffers.relink(&self.nic)?;
        self.returns.lock().large.buffers.relink(&self.nic)
    }

    fn cost_of(&self, head: &Head, len: u64) -> u16 {
        let costs = &self.sizes.rules.costs;
        match head.kind.is_split() {
            true => costs.long(),
            false => (len as u32).div_ceil(costs.granularity).max(1) as u16,
        }
    }
}
