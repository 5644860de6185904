//! Messages that are to go to a peer, and the message that is coming from it.

use super::record::{Head, MORE_BYTES};
use crate::portals::software::{Arrival, Opened, Request};
use argonet_segment::bulk;
use core::ptr::NonNull;
use std::collections::VecDeque;

/// Where the data of a message is.
#[derive(Debug)]
pub(super) enum Data {
    None,
    /// In a descriptor of an operation that has not ended, or in an entry that an operation has
    /// open.
    Memory(NonNull<u8>),
    /// The old value that an atomic operation found, one element as a rule.
    Word([u8; 8]),
    Kept(Box<[u8]>),
}

// SAFETY: the pointer is into memory that stays until the operation has ended, and the thread that
// has the message ends it.
unsafe impl Send for Data {}

/// The step after all of a message has been given to the link.
#[derive(Debug)]
pub(super) enum Then {
    Nothing,
    /// The source of this operation is not needed any more; an operation without an answer ends.
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

    fn asks(&self) -> bool {
        matches!(self.head, Head::Request { asks: true, .. })
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
            // SAFETY: `gone` and the record's data are within `len`, which the descriptor or the
            // entry has from there on; it stays until the operation has ended, and is accessed as
            // shared memory.
            Data::Memory(memory) => unsafe {
                bulk::copy(data.as_mut_ptr(), memory.as_ptr().add(at), data.len());
            },
        }
    }

    /// Takes note that it has gone; whether it was the last.
    fn went(&mut self, len: usize) -> bool {
        self.begun = true;
        self.gone += len as u64;
        self.gone == self.len
    }
}

/// A message of which more is to come.
#[derive(Debug)]
pub(super) enum Incoming {
    None,
    /// A put.
    ///
    /// One that does not find its entry is received and forgotten.
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

/// Messages between this rank and a peer, in both directions.
///
/// A message goes without a pause once it has begun. Answers go at any time, requests only while
/// the peer has answered all but so many: so a peer has room for all answers that it owes, and
/// ranks do not wait for each other in a circle.
#[derive(Debug)]
pub(super) struct Lane {
    requests: VecDeque<Outgoing>,
    answers: VecDeque<Outgoing>,
    /// Whether an answer goes next when both kinds could go.
    answers_next: bool,
    /// Requests that have begun and that the peer has not answered.
    asked: u32,
    /// Operations that the peer has to answer, begun or not.
    pub(super) waiting: u32,
    pub(super) incoming: Incoming,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            answers_next: true,
            asked: 0,
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

    pub(super) fn ask(&mut self, request: Outgoing) {
        self.waiting += u32::from(request.asks());
        self.requests.push_back(request);
    }

    /// Whether another answer is kept; a peer asks for no more before it has these.
    pub(super) fn has_room_for_answer(&self, most_answers: u32) -> bool {
        (self.answers.len() as u64) < u64::from(most_answers)
    }

    pub(super) fn answer(&mut self, answer: Outgoing) {
        self.answers.push_back(answer);
    }

    /// The peer has answered.
    pub(super) fn answered(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.asked = self.asked.saturating_sub(1);
    }

    fn may_ask(&self, most_answers: u32) -> bool {
        let next = self.requests.front();
        next.is_some_and(|next| !next.asks() || self.asked < most_answers)
    }

    /// The message of which something goes next.
    pub(super) fn next(&mut self, most_answers: u32) -> Option<&mut Outgoing> {
        let has_begun = |queue: &VecDeque<Outgoing>| queue.front().is_some_and(|m| m.begun);
        let is_answer = if has_begun(&self.answers) || has_begun(&self.requests) {
            has_begun(&self.answers)
        } else if self.may_ask(most_answers) {
            self.answers_next && !self.answers.is_empty()
        } else {
            true
        };
        if is_answer {
            self.answers.front_mut()
        } else {
            self.requests.front_mut()
        }
    }

    /// So much data of the [`next`](Self::next) message has gone; returns the step to do if that
    /// was the last.
    pub(super) fn went(&mut self, is_answer: bool, len: usize) -> Option<Then> {
        let queue = if is_answer {
            &mut self.answers
        } else {
            &mut self.requests
        };
        let message = queue.front_mut()?;
        if !message.begun && message.asks() {
            self.asked += 1;
        }
        if !message.went(len) {
            return None;
        }
        self.answers_next = !is_answer;
        queue.pop_front().map(|message| message.then)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.answers.is_empty()
    }

    /// Operations of the peer that have an entry open.
    pub(super) fn into_opened(self) -> impl Iterator<Item = Opened> {
        let coming = match self.incoming {
            Incoming::Put { place, .. } => place.ok(),
            Incoming::None | Incoming::Answer { .. } => None,
        };
        let going = self
            .answers
            .into_iter()
            .filter_map(|answer| match answer.then {
                Then::Close(opened) => Some(opened),
                Then::Nothing | Then::Gone(_) => None,
            });
        coming.into_iter().chain(going)
    }
}

static_assertions::const_assert!(MORE_BYTES < super::record::REQUEST_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portals::software::Asked;
    use crate::portals::{Outcome, PortalIndex};

    fn request(asks: bool, len: u64) -> Outgoing {
        let request = Request {
            asked: Asked::Put,
            portal: PortalIndex(0),
            bits: 0,
            header: 0,
            offset: 0,
            len,
            link: 0,
        };
        let head = Head::Request {
            request,
            asks,
            id: 0,
        };
        Outgoing::new(head, Data::Kept(Box::new([7; 8])), len, Then::Gone(1))
    }

    fn answer() -> Outgoing {
        let arrival = Arrival::failed(Outcome::NoMatch);
        let head = Head::Answer { arrival, id: 0 };
        Outgoing::new(head, Data::None, 0, Then::Nothing)
    }

    /// Sends a record of the next message with so much data; whether it was of an answer, and
    /// whether it was the last.
    fn step(lane: &mut Lane, len: usize) -> Option<(bool, bool)> {
        let is_answer = lane.next(2)?.is_answer();
        Some((is_answer, lane.went(is_answer, len).is_some()))
    }

    #[test]
    fn both_kinds_take_turns_but_not_within_a_message() {
        let mut lane = Lane::default();
        lane.ask(request(false, 8));
        lane.ask(request(false, 0));
        assert_eq!(step(&mut lane, 4), Some((false, false)));
        for _ in 0..3 {
            lane.answer(answer());
        }
        assert_eq!(step(&mut lane, 4), Some((false, true)));
        assert_eq!(step(&mut lane, 0), Some((true, true)));
        assert_eq!(step(&mut lane, 0), Some((false, true)));
        assert_eq!(step(&mut lane, 0), Some((true, true)));
        assert_eq!(step(&mut lane, 0), Some((true, true)));
        assert_eq!(step(&mut lane, 0), None);
        assert!(lane.is_empty() && !lane.waits());
    }

    #[test]
    fn only_so_many_requests_wait_for_answers() {
        let mut lane = Lane::default();
        for _ in 0..3 {
            lane.ask(request(true, 0));
        }
        lane.ask(request(false, 0));
        assert_eq!(step(&mut lane, 0), Some((false, true)));
        assert_eq!(step(&mut lane, 0), Some((false, true)));
        // The third would be one too many, and requests behind it stay there; answers go.
        assert_eq!(step(&mut lane, 0), None);
        lane.answer(answer());
        assert_eq!(step(&mut lane, 0), Some((true, true)));
        assert_eq!(step(&mut lane, 0), None);
        lane.answered();
        assert_eq!(step(&mut lane, 0), Some((false, true)));
        assert_eq!(step(&mut lane, 0), Some((false, true)));
        assert!(lane.waits());
        lane.answered();
        lane.answered();
        assert!(!lane.waits());
    }
}
