//! Messages that have come for one member of a team, and the receives that they go to: all that
//! handlers see.
//!
//! A member may be behind others, and not even have its team open yet. Early messages are kept, in
//! bounded memory: a send of more than [`EAGER`](super::plan::Tuning::eager_bytes) bytes is only
//! offered until its receiver has come to it, a member runs at most two [`WINDOW`]s of calls ahead
//! of another, and in a call each pair of members exchanges few messages of that size.

use super::call::Kind;
use super::label::Label;
use super::posted::{Place, Posted};
use super::pull::Lies;
use super::wire::{Form, Header};
use crate::Team;
use argonet_base::JobRank;
use argonet_segment::SharedBytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls from one [`Kind::Window`] barrier of a team to the next, so that no member is more than
/// two windows ahead of another.
pub(super) const WINDOW: u32 = 32;

/// Calls that are remembered, before and after the next: more than members can be apart, and than
/// they complete out of order.
const REMEMBERED: u32 = 256;

/// Messages that are kept for each member, at most, beyond [`LEAST`].
const MOST_EACH: usize = 128;
/// Messages that are kept in any case.
const LEAST: usize = 4096;
/// Memory of a message beside its bytes, about.
const EACH_BYTES: usize = 128;
/// Buffers that are kept for the next messages.
const POOLED: usize = 64;

/// Which message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) from: u32,
    pub(super) tag: u32,
    /// Whether it answers an offer.
    pub(super) answer: bool,
}

/// A message that waits for this member to come to it.
enum Item {
    Bytes(Vec<u8>),
    Offer { lies: Lies, len: u64 },
    Answer(Form),
}

/// The state of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Coming {
    /// No byte has come, or not all.
    Waits,
    /// The sender offers the bytes, which lie there.
    Offer(Lies),
    /// All is there.
    Complete,
}

/// A call that a rank is known to have made.
#[derive(Clone, Copy)]
struct Heard {
    number: u32,
    rank: JobRank,
    label: Label,
}

/// The calls of one kind that a member has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Calls of this kind.
    pub calls: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
}

/// See the [module](self).
pub(super) struct Mailbox {
    /// `None` until the team is opened.
    team: Option<Arc<Team>>,
    /// Number of the next call.
    next: u32,
    /// Calls that are not complete here.
    live: Vec<u32>,
    /// The windows among them, barriers that keep members close together, in order.
    windows: Vec<u32>,
    heard: Box<[Option<Heard>]>,
    arrived: HashMap<Slot, Item>,
    posted: HashMap<Slot, Posted>,
    pool: Vec<Vec<u8>>,
    /// Messages that are kept at most.
    most: usize,
    /// Bytes that messages took before the team was opened.
    early_bytes: usize,
    /// Questions about calls to come.
    questions: usize,
    /// The calls that were made, by kind.
    counts: [Count; 16],
    /// A member is lost: nothing that comes is kept or placed.
    is_given_up: bool,
}

fn unexpected(header: &Header, source: JobRank) -> String {
    let Header {
        key,
        number,
        label,
        form,
        tag,
        ..
    } = *header;
    format!(
        "rank {source} sent a message ({form:?}, tag {tag}) of call {number} of team {:#x} ({label}), for which this rank does not wait",
        key.0
    )
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            team: None,
            next: 0,
            live: Vec::new(),
            windows: Vec::new(),
            heard: vec![None; REMEMBERED as usize].into_boxed_slice(),
            arrived: HashMap::new(),
            posted: HashMap::new(),
            pool: Vec::new(),
            most: LEAST,
            early_bytes: 0,
            questions: 0,
            counts: [Count::default(); 16],
            is_given_up: false,
        }
    }
}

impl Mailbox {
    /// The team is open; how many bytes messages took before.
    pub(super) fn open(&mut self, team: &Arc<Team>) -> usize {
        self.team = Some(Arc::clone(team));
        self.most = LEAST + MOST_EACH * team.size() as usize;
        core::mem::take(&mut self.early_bytes)
    }

    /// A message of so many bytes is about to come: the memory that it takes, if it is kept for a
    /// team that is not open.
    ///
    /// This mailbox counts that until it [opens](Self::open).
    pub(super) fn early(&mut self, form: Form, bytes: usize) -> Option<usize> {
        if self.team.is_some() || form == Form::Question {
            return None;
        }
        let taken = bytes + EACH_BYTES;
        self.early_bytes += taken;
        Some(taken)
    }

    /// Compares a member's call with the label known for that number.
    fn compare(&mut self, number: u32, rank: JobRank, label: Label) -> Result<(), String> {
        let heard = &mut self.heard[(number % REMEMBERED) as usize];
        match heard {
            Some(heard) if heard.number == number => {
                if heard.label != label {
                    return Err(format!(
                        "collective call {number} of a team is {} at rank {}, but {label} at rank {rank}",
                        heard.label, heard.rank
                    ));
                }
            }
            _ => {
                *heard = Some(Heard {
                    number,
                    rank,
                    label,
                })
            }
        }
        Ok(())
    }

    /// This member makes its next call; the call's number.
    pub(super) fn call(
        &mut self,
        me: JobRank,
        label: Label,
        is_window: bool,
    ) -> Result<u32, String> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.live.push(number);
        let count = &mut self.counts[usize::from(u8::from(label.kind)) % 16];
        count.calls += 1;
        count.bytes += label.len;
        if is_window {
            self.windows.push(number);
        }
        // Questions about this call are compared with it now; other ranks ask again.
        self.questions = 0;
        self.compare(number, me, label)?;
        Ok(number)
    }

    /// The calls that were made.
    pub(super) fn counts(&self) -> Vec<(Kind, Count)> {
        let kinds = (0..).map(Kind::try_from).zip(self.counts);
        let called = kinds.filter_map(|(kind, count)| Some((kind.ok()?, count)));
        called.filter(|(_, count)| count.calls > 0).collect()
    }

    /// Number of the next call.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Whether the next call is one of the library's own.
    pub(super) fn is_window_due(&self) -> bool {
        self.next % WINDOW == WINDOW - 1
    }

    /// Whether the messages of a call may be sent: all members are close enough.
    pub(super) fn may_begin(&self, number: u32) -> bool {
        let oldest = self.windows.first();
        !self.is_given_up
            && oldest.is_none_or(|oldest| (number.wrapping_sub(*oldest) as i32) < WINDOW as i32)
    }

    /// A call is complete.
    pub(super) fn end(&mut self, number: u32) {
        self.live.retain(|live| *live != number);
        self.windows.retain(|window| *window != number);
    }

    /// A member is lost: all calls are given up, and what comes for them goes nowhere.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
        self.live.clear();
        self.windows.clear();
        self.arrived.clear();
        self.posted.clear();
        self.pool.clear();
    }

    /// Whether no call is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.live.is_empty()
    }

    /// Questions about calls to come.
    #[cfg(test)]
    pub(super) fn questions(&self) -> usize {
        self.questions
    }

    /// Messages that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.arrived.len()
    }

    /// A message comes.
    pub(super) fn arrive(
        &mut self,
        source: JobRank,
        header: &Header,
        payload: SharedBytes<'_>,
    ) -> Result<(), String> {
        if self.is_given_up {
            return Ok(());
        }
        if let Some(team) = &self.team
            && (header.from >= team.size() || team.job_rank(header.from) != source)
        {
            return Err(unexpected(header, source));
        }
        let ahead = header.number.wrapping_sub(self.next) as i32;
        if header.form == Form::Question {
            // Of older ones nothing is known any more.
            if ahead < 4 * WINDOW as i32 && -ahead < 4 * WINDOW as i32 {
                self.compare(header.number, source, header.label)?;
                self.questions += usize::from(ahead >= 0);
            }
            return Ok(());
        }
        if ahead >= 4 * WINDOW as i32 {
            return Err(unexpected(header, source));
        }
        if -ahead < 4 * WINDOW as i32 {
            self.compare(header.number, source, header.label)?;
        }
        if ahead < 0 && !self.live.contains(&header.number) {
            return Err(unexpected(header, source));
        }
        self.keep_or_place(source, header, payload)
    }

    fn keep_or_place(
        &mut self,
        source: JobRank,
        header: &Header,
        payload: SharedBytes<'_>,
    ) -> Result<(), String> {
        let answer = matches!(header.form, Form::Ready | Form::Done);
        let slot = Slot {
            number: header.number,
            from: header.from,
            tag: header.tag,
            answer,
        };
        let item = match (header.form, self.posted.get_mut(&slot)) {
            (Form::Whole, Some(posted)) => {
                let (come, due) = (payload.len(), posted.len);
                return posted.place(0, payload, false).ok_or_else(|| {
                    if come == due {
                        unexpected(header, source)
                    } else {
                        wrong_length(slot, come as u64, due)
                    }
                });
            }
            (Form::Piece, posted) => {
                let offset = usize::try_from(header.at).unwrap_or(usize::MAX);
                let placed = posted.and_then(|posted| posted.place(offset, payload, true));
                return placed.ok_or_else(|| unexpected(header, source));
            }
            (Form::Whole, None) => {
                let mut bytes = self.pool.pop().unwrap_or_default();
                bytes.resize(payload.len(), 0);
                // Cannot fail: the buffer has the payload's length.
                let copied = payload.copy_to(0, &mut bytes);
                debug_assert!(copied.is_ok());
                Item::Bytes(bytes)
            }
            (form, _) => match Lies::read(form, header.at) {
                Some(lies) => Item::Offer {
                    lies,
                    len: header.len,
                },
                None => Item::Answer(form),
            },
        };
        if self.arrived.len() >= self.most || self.arrived.insert(slot, item).is_some() {
            return Err(unexpected(header, source));
        }
        Ok(())
    }

    /// The call has come to a receive of `len` bytes.
    ///
    /// Until it is complete `place` is writable.
    pub(super) fn post(&mut self, slot: Slot, place: Place, len: usize) -> Result<Coming, String> {
        if self.is_given_up {
            return Ok(Coming::Waits);
        }
        let mut posted = Posted::new(place, len);
        match self.arrived.remove(&slot) {
            Some(Item::Bytes(bytes)) => {
                let placed = posted.place(0, SharedBytes::from_slice(&bytes), false);
                let come = bytes.len();
                if self.pool.len() < POOLED {
                    self.pool.push(bytes);
                }
                match placed {
                    Some(()) => Ok(Coming::Complete),
                    None => Err(wrong_length(slot, come as u64, len)),
                }
            }
            Some(Item::Offer { lies, len: offered }) => {
                if offered != len as u64 {
                    return Err(wrong_length(slot, offered, len));
                }
                posted.offered = true;
                self.posted.insert(slot, posted);
                Ok(Coming::Offer(lies))
            }
            Some(Item::Answer(_)) | None => {
                self.posted.insert(slot, posted);
                Ok(Coming::Waits)
            }
        }
    }

    /// The state of a receive that was posted.
    pub(super) fn look(&mut self, slot: Slot) -> Result<Coming, String> {
        if self.is_given_up {
            return Ok(Coming::Waits);
        }
        let Some(posted) = self.posted.get_mut(&slot) else {
            return Ok(Coming::Complete);
        };
        if posted.complete {
            self.posted.remove(&slot);
            return Ok(Coming::Complete);
        }
        if let Some(Item::Offer { lies, len }) = self.arrived.get(&slot) {
            let (lies, len) = (*lies, *len);
            if len != posted.len as u64 {
                return Err(wrong_length(slot, len, posted.len));
            }
            posted.offered = true;
            self.arrived.remove(&slot);
            return Ok(Coming::Offer(lies));
        }
        Ok(Coming::Waits)
    }

    /// The call has read the bytes of an offer itself.
    pub(super) fn pulled(&mut self, slot: Slot) {
        self.posted.remove(&slot);
    }

    /// The answer to an offer, once.
    pub(super) fn answer(&mut self, slot: Slot) -> Option<Form> {
        debug_assert!(slot.answer);
        match self.arrived.remove(&slot) {
            Some(Item::Answer(form)) => Some(form),
            _ => None,
        }
    }
}

fn wrong_length(slot: Slot, come: u64, expected: usize) -> String {
    format!(
        "member {} of a team sent {come} bytes as message {} of collective call {}, where {expected} are expected: do the ranks give the same lengths of blocks, and have the same settings GASNET_COLL_*?",
        slot.from, slot.tag, slot.number
    )
}

#[cfg(test)]
mod tests;
