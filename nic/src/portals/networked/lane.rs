//! What is to go to a peer, and what is coming from it.

use super::record::{Head, MORE_BYTES};
use crate::portals::software::{Arrival, Opened, Request};
use argonet_segment::bulk;
use core::ptr::NonNull;
use std::collections::VecDeque;

/// Where the data of a message is.
#[derive(Debug)]
pub(super) enum Data {
    None,
    /// In a descriptor of an operation that has not ended, or in an entry that an operation has open.
    Memory(NonNull<u8>),
    /// What an atomic operation found, one element as a rule.
    Word([u8; 8]),
    Kept(Box<[u8]>),
}

// SAFETY: the pointer is into memory that stays until the operation has ended, which whoever has the message does.
unsafe impl Send for Data {}

/// What is done when all of a message has been given to the link.
#[derive(Debug)]
pub(super) enum Then {
    Nothing,
    /// The source of this operation is not needed any more; one that nobody answers ends.
    Gone(u64),
    /// The get ends at this target.
    Close(Opened),
}

/// A message that is to go.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) head: Head,
    pub(super) data: Data,
    pub(super) len: u64,
    /// Bytes of data that have gone.
    pub(super) gone: u64,
    /// Whether the first record has gone.
    pub(super) begun: bool,
    pub(super) then: Then,
}

impl Outgoing {
    pub(super) fn new(head: Head, data: Data, len: u64, then: Then) -> Self {
        Self {
            head,
            data,
            len,
            gone: 0,
            begun: false,
            then,
        }
    }

    pub(super) fn is_answer(&self) -> bool {
        matches!(self.head, Head::Answer { .. })
    }

    /// Head and length of data of the next record of at most `most` bytes.
    pub(super) fn next(&self, most: usize) -> (Head, usize) {
        let head = if self.begun {
            Head::More { at: self.gone }
        } else {
            self.head
        };
        let left = usize::try_from(self.len - self.gone).unwrap_or(usize::MAX);
        (head, left.min(most - head.bytes()))
    }

    /// Writes that record.
    pub(super) fn write(&self, head: &Head, record: &mut [u8]) {
        let (place, data) = record.split_at_mut(head.bytes());
        head.write(place);
        let at = self.gone as usize;
        match &self.data {
            Data::None => {}
            Data::Word(word) => data.copy_from_slice(&word[at..at + data.len()]),
            Data::Kept(kept) => data.copy_from_slice(&kept[at..at + data.len()]),
            // SAFETY: `gone` and the record's data are within `len`, which the descriptor or the entry has from there on; it stays until the
            // operation has ended, and is accessed as shared memory.
            Data::Memory(memory) => unsafe {
                bulk::copy(data.as_mut_ptr(), memory.as_ptr().add(at), data.len());
            },
        }
    }

    /// Takes note that it has gone; whether it was the last.
    pub(super) fn went(&mut self, len: usize) -> bool {
        self.begun = true;
        self.gone += len as u64;
        self.gone == self.len
    }
}

/// A message of which more is to come.
#[derive(Debug)]
pub(super) enum Incoming {
    None,
    /// A put. What does not find its entry is received and forgotten.
    Put {
        request: Request,
        asks: bool,
        id: u64,
        place: Result<Opened, Arrival>,
        come: u64,
    },
    /// The answer to a get.
    Answer {
        id: u64,
        arrival: Arrival,
        come: u64,
    },
}

/// Both directions of what passes between this rank and a peer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) outgoing: VecDeque<Outgoing>,
    /// How many of those are answers.
    pub(super) answers: u32,
    /// Operations that the peer has to answer.
    pub(super) waiting: u32,
    pub(super) incoming: Incoming,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            outgoing: VecDeque::new(),
            answers: 0,
            waiting: 0,
            incoming: Incoming::None,
        }
    }
}

impl Lane {
    /// Whether the peer owes something that is no acknowledgement.
    pub(super) fn waits(&self) -> bool {
        self.waiting != 0 || !matches!(self.incoming, Incoming::None)
    }
}

static_assertions::const_assert!(MORE_BYTES < super::record::REQUEST_BYTES);
