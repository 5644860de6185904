//! The receiving half of one end: what has arrived, in order or not, and the message being put
//! together.

use super::config::LinkConfig;
use super::frame::{FIRST, FrameError, Header, LAST};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Arrived {
    flags: u8,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Receiver {
    /// The number expected next.
    next: u64,
    /// Parts beyond it. At most `recv_parts` together with `ready`.
    early: BTreeMap<u64, Arrived>,
    /// Parts in order that are not yet taken.
    ready: VecDeque<Arrived>,
    /// The message being put together, at most `message_bytes`.
    partial: Option<Vec<u8>>,
    complete: bool,
    /// The window that was told last, as its end.
    told_limit: u64,
    pub(super) duplicates: u64,
    /// Messages taken by the user.
    pub(super) taken: u64,
}

impl Receiver {
    pub(super) fn new(config: &LinkConfig) -> Self {
        Self {
            next: 0,
            early: BTreeMap::new(),
            ready: VecDeque::new(),
            partial: None,
            complete: false,
            told_limit: u64::from(config.recv_parts),
            duplicates: 0,
            taken: 0,
        }
    }

    /// Parts that are held.
    pub(super) fn held(&self) -> usize {
        self.early.len() + self.ready.len()
    }

    pub(super) fn ack(&self) -> u64 {
        self.next
    }

    pub(super) fn sack(&self) -> u64 {
        self.early
            .keys()
            .map(|seq| seq - self.next - 1)
            .filter(|bit| *bit < 64)
            .fold(0, |sack, bit| sack | 1 << bit)
    }

    /// How many numbers from the next on are taken.
    pub(super) fn window(&self, config: &LinkConfig) -> u32 {
        config.recv_parts - self.ready.len() as u32
    }

    /// The window is told to the sender.
    pub(super) fn tell(&mut self, config: &LinkConfig) -> u32 {
        let window = self.window(config);
        self.told_limit = self.next + u64::from(window);
        window
    }

    /// Whether the window has opened so far that the sender should know.
    pub(super) fn wants_to_tell(&self, config: &LinkConfig) -> bool {
        let limit = self.next + u64::from(self.window(config));
        let closed = self.told_limit <= self.next && limit > self.next;
        closed || limit - self.told_limit.min(limit) > u64::from(config.recv_parts / 2)
    }

    /// Takes a payload.
    ///
    /// # Errors
    /// It is beyond the window.
    pub(super) fn handle(
        &mut self,
        header: &Header,
        payload: &[u8],
        config: &LinkConfig,
    ) -> Result<(), FrameError> {
        if header.seq < self.next || self.early.contains_key(&header.seq) {
            self.duplicates += 1;
            return Ok(());
        }
        if header.seq - self.next >= u64::from(self.window(config)) {
            return Err(FrameError::Window);
        }
        let arrived = Arrived {
            flags: header.flags,
            bytes: payload.to_vec(),
        };
        self.early.insert(header.seq, arrived);
        while let Some(part) = self.early.remove(&self.next) {
            self.next += 1;
            self.ready.push_back(part);
        }
        Ok(())
    }

    /// Puts parts together until a message is complete.
    ///
    /// # Errors
    /// The sender's parts do not fit together, or make a message that is too long.
    pub(super) fn assemble(&mut self, config: &LinkConfig) -> Result<(), FrameError> {
        while !self.complete
            && let Some(part) = self.ready.pop_front()
        {
            if (part.flags & FIRST != 0) == self.partial.is_some() {
                return Err(FrameError::Parts);
            }
            let partial = self.partial.get_or_insert_default();
            if part.bytes.len() > config.message_bytes - partial.len() {
                return Err(FrameError::Parts);
            }
            partial.extend_from_slice(&part.bytes);
            self.complete = part.flags & LAST != 0;
        }
        Ok(())
    }

    pub(super) fn has_message(&self) -> bool {
        self.complete
    }

    pub(super) fn is_idle(&self) -> bool {
        self.partial.is_none() && self.held() == 0
    }

    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        if !self.complete {
            return None;
        }
        self.complete = false;
        self.taken += 1;
        self.partial.take()
    }
}
