//! One node's part of fences and of the key store (spec P14), without I/O or clock.
//!
//! A node has *sources*: the agents below it and, unless it is the launcher, the ranks of its host.
//! Each source sends the values that its ranks have published, then that all of them have entered
//! fence n. When all sources have, the node passes both up; at the top the fence is complete. Going
//! down, each source gets the values of all ranks that are not its own, and then the word that lets
//! its ranks go. So a fence takes two messages on every edge of the tree, and one more if some, but
//! not all, ranks of a subtree wait ([`Action::Waits`]), by which the launcher knows whether a rank
//! waits in vain.

use std::ops::Range;

use static_assertions::const_assert;

use crate::bootstrap::KEYS;
use crate::hosts::frame::Garbled;
use crate::hosts::values;

/// The keys that a rank has published, one bit each.
type Keys = u16;
const_assert!(KEYS <= Keys::BITS as usize);

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Up: ranks wait at this fence.
    Waits(u32),
    /// Up: these values, and that all ranks of the subtree have entered this fence.
    Up { values: Vec<u8>, fence: u32 },
    /// To a source: these values, and that this fence is complete.
    Down {
        source: usize,
        values: Vec<u8>,
        fence: u32,
    },
}

#[derive(Debug)]
struct Source {
    ranks: Range<u32>,
    /// Values that its ranks have published since the last fence.
    values: Vec<u8>,
    /// The last fence that all of its ranks have entered.
    arrived: u32,
}

#[derive(Debug)]
pub(crate) struct Exchange {
    is_root: bool,
    sources: Vec<Source>,
    /// Values that have come from above since the last fence.
    above: Vec<u8>,
    /// By rank of the job.
    published: Vec<Keys>,
    /// The last fence that is complete.
    done: u32,
    /// The last fence that all sources have entered.
    sent: u32,
    /// The last fence at which a rank is known to wait.
    waited: u32,
}

impl Exchange {
    /// A node of a job of `size` ranks, with sources of these ranks.
    pub(crate) fn new(size: u32, is_root: bool, sources: Vec<Range<u32>>) -> Self {
        let source = |ranks| Source {
            ranks,
            values: Vec::new(),
            arrived: 0,
        };
        Self {
            is_root,
            sources: sources.into_iter().map(source).collect(),
            above: Vec::new(),
            published: vec![0; size as usize],
            done: 0,
            sent: 0,
            waited: 0,
        }
    }

    /// The last fence at which a rank waits or has waited.
    pub(crate) fn waited(&self) -> u32 {
        self.waited
    }

    /// Values of ranks of a source.
    pub(crate) fn values(&mut self, source: usize, bytes: &[u8]) -> Result<(), Garbled> {
        let ranks = self.sources[source].ranks.clone();
        self.note(bytes, |rank| ranks.contains(&rank))?;
        self.sources[source].values.extend_from_slice(bytes);
        Ok(())
    }

    /// Values from above.
    pub(crate) fn above(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let own: Vec<Range<u32>> = self.sources.iter().map(|s| s.ranks.clone()).collect();
        self.note(bytes, |rank| !own.iter().any(|ranks| ranks.contains(&rank)))?;
        self.above.extend_from_slice(bytes);
        Ok(())
    }

    fn note(&mut self, bytes: &[u8], may: impl Fn(u32) -> bool) -> Result<(), Garbled> {
        for value in values::parse(bytes)? {
            let (rank, key) = (value.rank, value.key);
            let keys = self.published.get_mut(rank.index());
            let Some(keys) = keys.filter(|keys| **keys & 1 << key == 0 && may(rank.0)) else {
                let reason = format!("key {key} of rank {rank}, twice or from elsewhere");
                return Err(Garbled(reason));
            };
            *keys |= 1 << key;
        }
        Ok(())
    }

    /// Ranks below a source wait at `fence`.
    pub(crate) fn waits(&mut self, fence: u32) -> Result<Vec<Action>, Garbled> {
        self.check(fence)?;
        Ok(self.note_wait(fence).into_iter().collect())
    }

    /// All ranks of a source have entered `fence`.
    pub(crate) fn arrived(&mut self, source: usize, fence: u32) -> Result<Vec<Action>, Garbled> {
        self.check(fence)?;
        if self.sources[source].arrived == fence {
            return Err(Garbled(format!("fence {fence} twice")));
        }
        self.sources[source].arrived = fence;
        if self.sources.iter().any(|s| s.arrived != fence) {
            return Ok(self.note_wait(fence).into_iter().collect());
        }
        self.waited = fence;
        self.sent = fence;
        if self.is_root {
            return Ok(self.complete());
        }
        let values = self
            .sources
            .iter()
            .flat_map(|s| &s.values)
            .copied()
            .collect();
        Ok(vec![Action::Up { values, fence }])
    }

    /// From above: `fence` is complete.
    pub(crate) fn done(&mut self, fence: u32) -> Result<Vec<Action>, Garbled> {
        if fence != self.sent || fence == self.done {
            return Err(Garbled(format!("the end of fence {fence} before its time")));
        }
        Ok(self.complete())
    }

    /// Only the fence after the last one can be entered.
    fn check(&self, fence: u32) -> Result<(), Garbled> {
        match fence.checked_sub(self.done) {
            Some(1) if self.sent == self.done => Ok(()),
            _ => Err(Garbled(format!("fence {fence} after {}", self.done))),
        }
    }

    fn note_wait(&mut self, fence: u32) -> Option<Action> {
        let is_news = self.waited < fence;
        self.waited = self.waited.max(fence);
        (is_news && !self.is_root).then_some(Action::Waits(fence))
    }

    fn complete(&mut self) -> Vec<Action> {
        self.done = self.sent;
        let above = std::mem::take(&mut self.above);
        let of: Vec<Vec<u8>> = self
            .sources
            .iter_mut()
            .map(|s| std::mem::take(&mut s.values))
            .collect();
        let down = |source: usize| {
            let others = of.iter().enumerate().filter(|(i, _)| *i != source);
            let mut values = above.clone();
            others.for_each(|(_, more)| values.extend_from_slice(more));
            let fence = self.done;
            Action::Down {
                source,
                values,
                fence,
            }
        };
        (0..of.len()).map(down).collect()
    }
}

#[cfg(test)]
mod tests;
