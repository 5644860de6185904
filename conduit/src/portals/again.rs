//! Messages that are sent again: they found no room, no entry, or no credits at their target.

use super::core::{Again, Portals};
use super::wire::Head;
use crate::conduit::SendError;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::portals::{NicError, Portals as Interface};
use core::sync::atomic::Ordering;

/// A message to be sent again, and whether the interface has refused it before: another refusal is
/// reported.
#[derive(Debug)]
pub(super) struct Pending {
    what: Again,
    refused: bool,
}

impl<N: Interface> Portals<N> {
    /// It was lost at its target: it goes again.
    #[cold]
    pub(super) fn send_again(&self, what: Again) {
        self.try_later(what, false);
    }

    /// The interface has refused it, and that was not reported: it goes again once more.
    #[cold]
    pub(super) fn send_once_more(&self, what: Again) {
        self.try_later(what, true);
    }

    /// Keeps an error for the next poll.
    #[cold]
    pub(super) fn fail_later(&self, error: SendError) {
        if let SendError::Message(error) = error {
            self.send_again(Again::Report(error));
        }
    }

    fn try_later(&self, what: Again, refused: bool) {
        self.again.lock().push(Pending { what, refused });
        self.agains.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends messages again that found no room or no entry.
    #[cold]
    pub(super) fn try_again(&self, mut fails: impl FnMut(AmError)) {
        let all = core::mem::take(&mut *self.again.lock());
        for Pending { what, refused } in all {
            match self.once_more(what, refused, &mut fails) {
                // It stays counted: a thread that saw none would sleep for long.
                Some(pending) => self.again.lock().push(pending),
                None => {
                    self.agains.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// What is left of it for a later time.
    fn once_more(
        &self,
        what: Again,
        refused: bool,
        fails: &mut impl FnMut(AmError),
    ) -> Option<Pending> {
        let what = match what {
            Again::Report(error) => {
                fails(error);
                return None;
            }
            Again::Release(descriptor, memory) => {
                self.release(descriptor, memory);
                return None;
            }
            what => what,
        };
        match self.try_one(&what) {
            Ok(true) => None,
            Ok(false) => Some(Pending { what, refused }),
            Err(_) if !refused => {
                let what = match what {
                    // It has been paid for.
                    Again::Refused(chunk) => Again::Request(chunk),
                    what => what,
                };
                let refused = true;
                Some(Pending { what, refused })
            }
            Err((peer, error)) => {
                self.give_up(&what);
                fails(self.refuses(peer, &error));
                None
            }
        }
    }

    /// Whether it could be sent now; its target, and the error, if the interface refuses it.
    fn try_one(&self, what: &Again) -> Result<bool, (JobRank, NicError)> {
        let outcome = |to: JobRank, result: Result<(), NicError>| match result {
            Ok(()) => Ok(true),
            Err(error) => Err((to, error)),
        };
        match *what {
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
                outcome(sent.to, self.put_request(chunk, &sent))
            }
            // It has kept its ticket.
            Again::Request(chunk) => match self.send_chunks.sent(chunk) {
                Some(sent) => outcome(sent.to, self.put_request(chunk, &sent)),
                None => Ok(true),
            },
            Again::Reply(chunk) => match self.reply_chunks.sent(chunk) {
                Some(sent) => outcome(sent.to, self.put_reply(chunk, &sent)),
                None => Ok(true),
            },
            Again::Operation(handle) => match self.transfer_of(handle) {
                Some(transfer) => outcome(transfer.to, self.issue(handle, &transfer)),
                None => Ok(true),
            },
            Again::System(to, word) => outcome(to, self.put_system(to, word)),
            Again::Buffers => match self.link_buffers() {
                // Other users hold all resources.
                Err(NicError::NoSpace { .. }) => Ok(false),
                linked => outcome(self.rank, linked),
            },
            // Those are no calls that an interface refuses.
            Again::Release(..) | Again::Report(_) => Ok(true),
        }
    }

    /// Takes back the resources of a message that will not be sent.
    fn give_up(&self, what: &Again) {
        match *what {
            Again::Request(chunk) | Again::Refused(chunk) => {
                if let Some(sent) = self.send_chunks.sent(chunk) {
                    let head = Head::of(sent.bits);
                    let cost = head.map_or(0, |head| self.cost_of(&head, sent.len));
                    self.abandon(self.peer(sent.to), chunk, cost);
                }
            }
            Again::Reply(chunk) => self.replied(chunk),
            Again::Operation(handle) => self.drop_operation(handle),
            Again::System(..) | Again::Buffers | Again::Release(..) | Again::Report(_) => {}
        }
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
