//! Long replies to bound memory that are too long for one message.
//!
//! The handler leaves a copy of the payload to be sent in parts
//! ([`outgoing`](super::super::outgoing)). Each part names the whole range, and the handler runs at
//! the requester when it has all of them.
//!
//! ```text
//! 0        24      32       40
//! | prefix | reply | offset | bytes
//! ```

use super::super::core::Engine;
use super::super::limits::internal;
use super::super::outgoing::{InParts, OFFSET};
use super::long::Prefix;
use super::serve::{LENGTHS, Wrong, inside};
use argonet_am::{AmError, Delivery, MessageClass};
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_segment::registration::Access;
use argonet_segment::{SharedBytes, bulk};
use core::sync::atomic::Ordering;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Replies of one rank of which some parts have come and others have not, at most.
///
/// A rank sends one to another before it begins the next, so that there are more only where parts
/// overtake each other.
const MOST_COMING: usize = 64;

/// Bytes of the header before the bytes of a part.
const HEADER: usize = Prefix::BYTES + 8 + OFFSET;

/// Replies of which a part has come: their numbers, and how many bytes have not, by sender.
#[derive(Default)]
pub(super) struct Coming(Mutex<HashMap<JobRank, Vec<(u64, u64)>>>);

impl Coming {
    /// A part of so many bytes has been dealt with; whether it was the last one.
    fn landed(&self, from: JobRank, number: u64, len: u64, bytes: u64) -> Result<bool, Wrong> {
        // The lock orders the writes of threads that took other parts before the handler.
        let mut senders = self.0.lock();
        let replies = senders.entry(from).or_default();
        let known = replies.iter().position(|(known, _)| *known == number);
        let missing = known.map_or(len, |at| replies[at].1);
        let missing = missing.checked_sub(bytes).ok_or(LENGTHS)?;
        match known {
            Some(at) if missing == 0 => _ = replies.swap_remove(at),
            Some(at) => replies[at].1 = missing,
            None if missing == 0 => {}
            None if replies.len() >= MOST_COMING => {
                return Err(
                    "it begins another long reply while 64 others of that rank are not all there",
                );
            }
            None => replies.push((number, missing)),
        }
        if replies.is_empty() {
            senders.remove(&from);
        }
        Ok(missing == 0)
    }
}

impl<C: Conduit> Engine<C> {
    /// Takes a reply over, with a copy of its payload.
    #[cold]
    pub(super) fn owe(
        &self,
        delivery: &mut Delivery<'_>,
        prefix: Prefix,
        given: &[u32],
        bytes: SharedBytes<'_>,
    ) -> Result<(), AmError> {
        let (to, len) = (delivery.source(), bytes.len());
        delivery.reply_by_other_means(prefix.handler, given)?;
        let mut payload = Vec::new();
        if payload.try_reserve_exact(len).is_err() {
            self.fatal(&format!(
                "rank {}: there is no memory to keep a long reply of {len} bytes to rank {to} until it can be sent",
                self.rank
            ));
        }
        payload.resize(len, 0);
        // SAFETY: the vector has that many bytes; the view is readable and covers no memory of it.
        unsafe { bulk::copy(payload.as_mut_ptr(), bytes.as_ptr(), len) };
        let mut head = prefix.pack().to_vec();
        let number = self.bound.replies.fetch_add(1, Ordering::Relaxed);
        head.extend_from_slice(&number.to_le_bytes());
        let reply = InParts::new(to, internal::BOUND_LONG_PART, given, payload);
        self.background.add_outgoing(reply.behind(head));
        Ok(())
    }

    /// A part of a reply has arrived; with the last one the client's handler runs.
    pub(super) fn serve_long_part(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        const SHORT: Wrong = "it is shorter than such a message is";
        let message = delivery.payload();
        let prefix = Prefix::unpack(&message).ok_or(SHORT)?;
        let number = message.read(Prefix::BYTES).map_err(|_| SHORT)?;
        let offset = message.read(Prefix::BYTES + 8).map_err(|_| SHORT)?;
        let (number, offset) = (u64::from_le_bytes(number), u64::from_le_bytes(offset));
        prefix.check_handler()?;
        let bytes = message.len() - HEADER;
        inside(prefix.range, offset, bytes as u64)?;
        let range = self.absolute(prefix);
        let place = match self.own(range, Access::ReadWrite) {
            Ok(place) => place,
            Err(outside) => {
                self.refuse(delivery, range, outside);
                return Ok(());
            }
        };
        // SAFETY: the part lies inside the range, which lies in memory bound here, and the client
        // that bound it promised that it is writable. The carried bytes begin behind the header, in
        // other memory.
        unsafe {
            let place = place.add(offset as usize);
            bulk::copy(place.as_ptr(), message.as_ptr().add(HEADER), bytes);
        }
        let from = delivery.source();
        let last = self
            .bound
            .coming
            .landed(from, number, range.len, bytes as u64)?;
        if last {
            self.run_long(delivery, MessageClass::Reply, prefix, range, Some(place));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_there_when_all_its_bytes_are() {
        let coming = Coming::default();
        let (one, other) = (JobRank(1), JobRank(2));
        assert_eq!(coming.landed(one, 0, 10, 4), Ok(false));
        assert_eq!(coming.landed(other, 0, 4, 4), Ok(true));
        assert_eq!(coming.landed(one, 1, 4, 3), Ok(false));
        assert_eq!(coming.landed(one, 0, 10, 6), Ok(true));
        assert!(coming.landed(one, 1, 4, 2).is_err());
        let one_is_open = HashMap::from([(one, vec![(1, 1)])]);
        assert_eq!(*coming.0.lock(), one_is_open);
    }

    #[test]
    fn too_many_begun_replies_of_a_rank_are_refused() {
        let coming = Coming::default();
        let (one, other) = (JobRank(1), JobRank(2));
        for number in 0..MOST_COMING as u64 {
            assert_eq!(coming.landed(one, number, 10, 4), Ok(false));
        }
        let refused = coming.landed(one, 1 << 40, 10, 4).unwrap_err();
        assert!(refused.contains(&MOST_COMING.to_string()), "{refused}");
        // One of a single part is not kept, others of the rank go on, and other ranks begin theirs.
        assert_eq!(coming.landed(one, 1 << 41, 10, 10), Ok(true));
        assert_eq!(coming.landed(other, 0, 10, 4), Ok(false));
        assert_eq!(coming.landed(one, 5, 10, 6), Ok(true));
        assert_eq!(coming.landed(one, 1 << 40, 10, 4), Ok(false));
    }
}
