//! Losses of a job over several hosts, without I/O or clock.
//!
//! An agent sends its tally of the ranks that are left up when it changes: that of its host, and of
//! the agents below. The root sends that of the whole job down, numbers the losses in the order in
//! which they arrive, and decides rounds of agreement.
//!
//! Connections keep the order of messages. From this follows:
//!
//! * *The order of losses is the same at all hosts*, as one process numbers them, and each host
//!   declares them in the order in which they come down.
//! * *A round has one result*, as one process decides it, and each host learns of the losses that
//!   it covers before it learns of the result.
//! * *A result covers every loss that was declared before the last survivor entered*: a host
//!   declares a loss after the root has numbered it, and the root decides after a tally has come by
//!   which the last one has entered.
//! * *It ends.* A rank that enters no more leaves its host's tally when it finalizes or ends, and
//!   its loss goes up before that tally.
//! * *Ranks of a lost host* may live until their agent sees that its connection has ended, or is
//!   silent for too long. A rank that knows of the loss takes nothing that comes from them.
//! * *Clients accept losses before a fence*: the tally that says so goes up before the fence, and
//!   that of all down before the fence is complete, so that all hosts know it when ranks go on.

use crate::hosts::frame::Garbled;
use crate::hosts::message::Message;
use crate::tally::Tally;

/// The tallies of a node's sources: the agents below it and, unless it is the root, its host.
#[derive(Debug)]
pub(crate) struct Tallies {
    sources: Vec<Tally>,
    /// That of all sources, as it was sent on last.
    total: Tally,
}

impl Tallies {
    pub(crate) fn new(sources: usize) -> Self {
        Self {
            sources: vec![Tally::UNKNOWN; sources],
            total: Tally::UNKNOWN,
        }
    }

    /// That of `source` is new; that of all, if it has changed by this.
    pub(crate) fn take(&mut self, source: usize, tally: Tally) -> Result<Option<Tally>, Garbled> {
        let known = &mut self.sources[source];
        if !tally.follows(known) {
            return Err(Garbled("a tally that takes something back".into()));
        }
        *known = tally;
        let all = self
            .sources
            .iter()
            .copied()
            .fold(Tally::OF_NO_RANKS, Tally::with);
        let is_news = all != std::mem::replace(&mut self.total, all);
        Ok(is_news.then_some(all))
    }
}

/// The losses of the job, as the root keeps them.
#[derive(Debug)]
pub(crate) struct Register {
    tallies: Tallies,
    /// Number of losses.
    losses: u32,
    /// The last round that is decided.
    round: u32,
}

impl Register {
    pub(crate) fn new(sources: usize) -> Self {
        Self {
            tallies: Tallies::new(sources),
            losses: 0,
            round: 0,
        }
    }

    /// A tally has come; the messages for all agents that follow.
    pub(crate) fn tally(&mut self, source: usize, tally: Tally) -> Result<Vec<Message>, Garbled> {
        let Some(all) = self.tallies.take(source, tally)? else {
            return Ok(Vec::new());
        };
        let mut messages = vec![Message::Tally(all)];
        match all.round().and_then(|round| round.checked_sub(self.round)) {
            None | Some(0) => {}
            Some(1) => {
                self.round += 1;
                messages.push(Message::Agreed {
                    round: self.round,
                    losses: self.losses,
                });
            }
            Some(_) => return Err(Garbled(format!("a round far beyond {}", self.round))),
        }
        Ok(messages)
    }

    /// Whether all clients of the job accept losses.
    pub(crate) fn all_accept(&self) -> bool {
        self.tallies.total.accepts
    }

    /// Another rank is lost: its place in the order.
    pub(crate) fn lose(&mut self) -> u32 {
        self.losses += 1;
        self.losses
    }
}

#[cfg(test)]
mod tests;
