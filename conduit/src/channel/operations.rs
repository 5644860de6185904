//! Puts and gets under way with one peer, and requests whose payload stays with the user.

use super::frame::{Fields, Frame, HeadBytes, Kind, LONGEST_HEAD, charge};
use super::stream::{Body, Extent, Grant, SendStream};
use crate::conduit::{Completion, OpToken};
use crate::keyed::Keyed;
use crate::wire::{UserBytes, UserPlace};
use argonet_am::record::RecordError;
use std::collections::VecDeque;

/// Payloads that stay where they are, with one peer, at most; longer puts go on when the peer has
/// taken some.
pub(crate) const MOST_EXTENTS: usize = 32;

/// Puts with one token that are reported together: none waits for more than so many bytes behind
/// it.
const TOGETHER_BYTES: u64 = 4 << 10;

/// Frames that are to be reported when the peer has taken them.
#[derive(Debug)]
struct Sent {
    /// Positions of the stream: the first frame's beginning, the last one's end.
    begin: u64,
    end: u64,
    op: OpToken,
    local: bool,
    /// Puts that are there then.
    remote: u32,
}

/// A get under way.
#[derive(Debug)]
struct Get {
    op: OpToken,
    place: UserPlace,
    offset: u64,
    /// Bytes that were asked for, and answered.
    asked: usize,
    answered: usize,
    refused: bool,
}

/// A put or get of which not everything could be sent.
#[derive(Debug)]
struct Transfer {
    what: What,
    offset: u64,
    len: usize,
    issued: usize,
    op: OpToken,
    begin: u64,
}

#[derive(Debug)]
enum What {
    Put { source: UserBytes, refused: bool },
    Get { key: u32 },
}

/// The destination of the data of a get.
pub(crate) enum Data {
    /// It goes there.
    Place(UserPlace),
    /// The get was refused.
    Drop,
}

/// The operations with one peer.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    sent: VecDeque<Sent>,
    gets: Keyed<Get, 16>,
    transfer: Option<Transfer>,
}

impl Operations {
    /// Bytes of their records.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>() + self.gets.buffer_bytes()
    }

    /// Frees the records if there is no operation.
    pub(crate) fn free_buffers(&mut self) {
        if self.is_empty() {
            self.sent = VecDeque::new();
            self.gets.free_memory();
        }
    }

    /// Whether one that goes in several frames may begin.
    ///
    /// Those of a single frame do not wait for it.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.transfer.is_none()
    }

    /// Whether there is an entry for another get.
    pub(crate) fn has_room_for_get(&self, limit: u32) -> bool {
        self.gets.len() < limit as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.transfer.is_none() && self.gets.len() == 0
    }

    /// Frames from `begin` to `end` were added for an operation.
    #[inline]
    pub(crate) fn note(&mut self, begin: u64, end: u64, op: OpToken, local: bool, remote: bool) {
        if let Some(last) = self.sent.back_mut()
            && last.op == op
            && last.end == begin
            && end - last.begin <= TOGETHER_BYTES
            && !(local || last.local)
        {
            last.end = end;
            last.remote += u32::from(remote);
            return;
        }
        self.sent.push_back(Sent {
            begin,
            end,
            op,
            local,
            remote: remote.into(),
        });
    }

    // spec B10: local and remote completion wait for the acknowledgement of the peer.
    /// The peer has taken the stream so far.
    pub(crate) fn taken(&mut self, taken: u64, mut report: impl FnMut(OpToken, Completion, u32)) {
        while let Some(first) = self.sent.front()
            && first.end <= taken
        {
            if first.local {
                report(first.op, Completion::Local, 1);
            }
            if first.remote > 0 {
                report(first.op, Completion::Remote, first.remote);
            }
            self.sent.pop_front();
        }
    }

    /// The peer is lost: reports the completions of all operations, none of which is under way any
    /// more.
    #[cold]
    pub(crate) fn end(&mut self, mut report: impl FnMut(OpToken, Completion, u32)) {
        self.taken(u64::MAX, &mut report);
        if let Some(Transfer {
            what: What::Put { refused, .. },
            op,
            ..
        }) = self.transfer.take()
        {
            report(op, Completion::Local, 1);
            if !refused {
                report(op, Completion::Remote, 1);
            }
        }
        self.gets.drain(|get| {
            if !get.refused {
                report(get.op, Completion::Remote, 1);
            }
        });
    }

    /// Begins a put whose source stays with the user.
    pub(crate) fn begin_put(&mut self, source: UserBytes, offset: u64, op: OpToken, begin: u64) {
        let len = source.len();
        let what = What::Put {
            source,
            refused: false,
        };
        self.begin(what, offset, len, op, begin);
    }

    /// Begins a get, for which there is room.
    pub(crate) fn begin_get(&mut self, place: UserPlace, offset: u64, op: OpToken, begin: u64) {
        let len = place.len();
        let key = self.open_get(place, offset, op);
        self.begin(What::Get { key }, offset, len, op, begin);
    }

    /// Asks for all of a get in one frame, if the grant allows that; there is room in the ring, and
    /// an entry.
    pub(crate) fn get_at_once(
        &mut self,
        (place, offset, op): (UserPlace, u64, OpToken),
        send_stream: &mut SendStream,
        grant: &mut Grant,
        reserved: usize,
    ) -> bool {
        if !grant.allows(charge(Kind::Get, 0, 0), reserved) {
            return false;
        }
        let len = place.len();
        let key = self.open_get(place, offset, op);
        let fields = Fields {
            offset,
            rest: len as u64,
            ..Fields::default()
        };
        ask(&mut self.gets, send_stream, grant, key, fields, len);
        true
    }

    fn open_get(&mut self, place: UserPlace, offset: u64, op: OpToken) -> u32 {
        self.gets.insert(Get {
            op,
            place,
            offset,
            asked: 0,
            answered: 0,
            refused: false,
        })
    }

    fn begin(&mut self, what: What, offset: u64, len: usize, op: OpToken, begin: u64) {
        debug_assert!(self.transfer.is_none() && len > 0);
        self.transfer = Some(Transfer {
            what,
            offset,
            len,
            issued: 0,
            op,
            begin,
        });
    }

    /// Adds frames of the operation that has begun, as far as there is room: `room` bytes of the
    /// ring.
    pub(crate) fn go_on(
        &mut self,
        send_stream: &mut SendStream,
        grant: &mut Grant,
        reserved: usize,
        mut room: usize,
        fragment_bytes: usize,
    ) {
        while let Some(transfer) = &mut self.transfer {
            if room < LONGEST_HEAD {
                return;
            }
            let left = transfer.len - transfer.issued;
            let len = left.min(fragment_bytes);
            let fields = Fields {
                // No segment reaches that far: the target refuses it.
                offset: transfer.offset.saturating_add(transfer.issued as u64),
                rest: left as u64,
                ..Fields::default()
            };
            let before = send_stream.used();
            match &transfer.what {
                What::Put { source, .. } => {
                    // spec T3: the rest waits until the peer has acknowledged some.
                    if send_stream.user_extents() >= MOST_EXTENTS {
                        return;
                    }
                    let head = HeadBytes::new(Kind::Put, 0, &[], len, &fields);
                    let fragment = source.part(transfer.issued, len);
                    let body = Body::Move(Extent::User(fragment), Kind::Put, fields);
                    send_stream.push(head, body, true);
                }
                What::Get { key } => {
                    if !grant.allows(charge(Kind::Get, 0, 0), reserved) {
                        return;
                    }
                    ask(&mut self.gets, send_stream, grant, *key, fields, len);
                }
            }
            room = room.saturating_sub(send_stream.used() - before);
            transfer.issued += len;
            if transfer.issued == transfer.len {
                if let What::Put { refused, .. } = transfer.what {
                    let (begin, op) = (transfer.begin, transfer.op);
                    self.note(begin, send_stream.head(), op, true, !refused);
                }
                self.transfer = None;
            }
        }
    }

    /// Where data that has come for a get goes.
    ///
    /// # Errors
    /// It was not asked for.
    pub(crate) fn data(&mut self, frame: &Frame) -> Result<Data, RecordError> {
        let unasked = RecordError::Kind(Kind::Got.into());
        let get = self.gets.get_mut(frame.fields.op).ok_or(unasked)?;
        // Completions come in any order where there are several rails; none comes twice.
        let (at, len) = (frame.fields.offset.checked_sub(get.offset), frame.length);
        let at = at.map_or(usize::MAX, |at| usize::try_from(at).unwrap_or(usize::MAX));
        if len == 0
            || at.checked_add(len).is_none_or(|end| end > get.asked)
            || len > get.asked - get.answered
        {
            return Err(unasked);
        }
        Ok(if get.refused {
            Data::Drop
        } else {
            Data::Place(get.place.part(at, len))
        })
    }

    /// A fragment of a get has been answered; returns the operation that is complete by that.
    ///
    /// # Errors
    /// More has been answered than was asked for.
    pub(crate) fn answered(
        &mut self,
        key: u32,
        len: usize,
    ) -> Result<Option<OpToken>, RecordError> {
        let Some(get) = self.gets.get_mut(key) else {
            return Ok(None);
        };
        if len > get.asked - get.answered {
            return Err(RecordError::Kind(Kind::Got.into()));
        }
        get.answered += len;
        let is_issued = !self.transfer.as_ref().is_some_and(|t| t.is_get(key));
        if get.answered < get.asked || !is_issued {
            return Ok(None);
        }
        let (op, refused) = (get.op, get.refused);
        self.gets.remove(key);
        Ok((!refused).then_some(op))
    }

    /// The peer refuses the frame that began at a position of the stream.
    ///
    /// # Errors
    /// There is nothing that it can refuse.
    pub(crate) fn refused(&mut self, fields: &Fields) -> Result<(), RecordError> {
        let unasked = RecordError::Kind(Kind::Refused.into());
        if fields.op != 0 {
            let get = self.gets.get_mut(fields.op).ok_or(unasked)?;
            if fields.rest == 0 || fields.rest > (get.asked - get.answered) as u64 {
                return Err(unasked);
            }
            get.refused = true;
            // No more of it is asked for.
            if self.transfer.as_ref().is_some_and(|t| t.is_get(fields.op)) {
                self.transfer = None;
            }
            self.answered(fields.op, fields.rest as usize)?;
            return Ok(());
        }
        let at = self
            .sent
            .partition_point(|sent| sent.end <= fields.position);
        // Between the frames of a long put may be those of short ones, which end before it.
        let mut ending_later = self.sent.range_mut(at..);
        if let Some(sent) = ending_later.find(|sent| sent.begin <= fields.position) {
            sent.remote = sent.remote.saturating_sub(1);
        } else if let Some(transfer) = &mut self.transfer
            && transfer.begin <= fields.position
            && let What::Put { refused, .. } = &mut transfer.what
        {
            *refused = true;
        }
        Ok(())
    }
}

impl Transfer {
    fn is_get(&self, key: u32) -> bool {
        matches!(self.what, What::Get { key: its } if its == key)
    }
}

/// Asks for `len` more bytes of a get, which the grant allows.
fn ask(
    gets: &mut Keyed<Get, 16>,
    send_stream: &mut SendStream,
    grant: &mut Grant,
    key: u32,
    mut fields: Fields,
    len: usize,
) {
    grant.use_up(charge(Kind::Get, 0, 0));
    fields.op = key;
    fields.wanted = len as u32;
    let head = HeadBytes::new(Kind::Get, 0, &[], 0, &fields);
    send_stream.push(head, Body::Empty, grant.is_short());
    if let Some(get) = gets.get_mut(key) {
        get.asked += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::stream::Pieces;
    use argonet_segment::SharedBytes;
    use core::ptr::NonNull;

    const LONG: OpToken = OpToken {
        handle: 1,
        implicit: false,
    };
    const SHORT: OpToken = OpToken {
        handle: 2,
        implicit: false,
    };

    /// Answers to a peer's gets may lie in the stream forever: the peer asks for more as it takes
    /// some.
    #[test]
    fn answers_to_gets_do_not_keep_a_put_waiting() {
        let mut bytes = [0; 1];
        let (mut operations, mut send_stream) = (Operations::default(), SendStream::new());
        for _ in 0..2 * MOST_EXTENTS {
            let head = HeadBytes::new(Kind::Got, 0, &[], 1, &Fields::default());
            let body = Body::Stay(Extent::Segment(NonNull::from(&mut bytes[0]), 1));
            send_stream.push(head, body, false);
        }
        // SAFETY: nothing reads it.
        let source = unsafe { UserBytes::new(bytes.as_ptr(), 1) };
        operations.begin_put(source, 0, LONG, send_stream.head());
        operations.go_on(&mut send_stream, &mut Grant::new(1 << 20), 0, 1 << 20, 1);
        assert!(operations.has_room(), "the put has been sent");
    }

    /// Each completion that is due is reported, once, when the peer is lost.
    #[test]
    fn operations_with_a_lost_peer_end() {
        let (source, mut place) = ([1; 64], [0; 64]);
        let (mut operations, mut send_stream) = (Operations::default(), SendStream::new());
        let mut grant = Grant::new(1 << 20);
        // SAFETY: nothing writes it.
        let user = |place: &mut [u8; 64]| unsafe { UserPlace::new(place.as_mut_ptr(), 64) };
        assert!(operations.get_at_once(
            (user(&mut place), 0, LONG),
            &mut send_stream,
            &mut grant,
            0
        ));
        let begin = send_stream.push_put(0, SharedBytes::from_slice(&source));
        operations.note(begin, send_stream.head(), SHORT, false, true);
        // SAFETY: nothing reads it.
        let bytes = unsafe { UserBytes::new(source.as_ptr(), source.len()) };
        let half_way = OpToken {
            handle: 3,
            implicit: true,
        };
        operations.begin_put(bytes, 0, half_way, send_stream.head());
        operations.go_on(&mut send_stream, &mut grant, 0, LONGEST_HEAD, 1);
        assert!(!operations.has_room());
        let mut ended = Vec::new();
        operations.end(|op, completion, count| ended.push((op.handle, completion, count)));
        let due = [
            (2, Completion::Remote, 1),
            (3, Completion::Local, 1),
            (3, Completion::Remote, 1),
            (1, Completion::Remote, 1),
        ];
        assert_eq!(ended, due);
        assert!(operations.is_empty());
        operations.end(|op, _, _| panic!("{op:?} ends twice"));
    }

    /// Answers of which each was right when it began can be too many together.
    #[test]
    fn more_answers_than_were_asked_for_are_refused() {
        let mut place = [0; 8];
        let (mut operations, mut send_stream) = (Operations::default(), SendStream::new());
        // SAFETY: nothing writes it.
        let user = unsafe { UserPlace::new(place.as_mut_ptr(), 8) };
        let mut grant = Grant::new(1 << 20);
        assert!(operations.get_at_once((user, 0, LONG), &mut send_stream, &mut grant, 0));
        let key = 1 << 16;
        assert_eq!(operations.answered(key, 5), Ok(None));
        assert!(operations.answered(key, 4).is_err());
        assert_eq!(operations.answered(key, 3), Ok(Some(LONG)));
    }

    /// A short put may lie between the frames of a long one, and ends before it.
    #[test]
    fn a_refusal_is_of_the_put_whose_frame_it_names() {
        let source = [1; 2 * MOST_EXTENTS];
        for refused in 0..3 {
            let (mut operations, mut send_stream) = (Operations::default(), SendStream::new());
            let mut grant = Grant::new(1 << 20);
            let mut go_on = |operations: &mut Operations, stream: &mut SendStream| {
                operations.go_on(stream, &mut grant, 0, 1 << 20, 1);
            };
            // SAFETY: nothing reads it.
            let bytes = unsafe { UserBytes::new(source.as_ptr(), source.len()) };
            operations.begin_put(bytes, 0, LONG, send_stream.head());
            go_on(&mut operations, &mut send_stream);
            assert!(!operations.has_room());
            let begin = send_stream.push_put(0, SharedBytes::from_slice(&source[..8]));
            let end = send_stream.head();
            operations.note(begin, end, SHORT, false, true);
            // The first frames leave, so that the others have room.
            while send_stream.unsent() > 0 {
                let mut pieces = Pieces::new();
                send_stream.next_burst(&mut pieces);
                send_stream.wrote(pieces.as_slice().iter().map(|piece| piece.len).sum());
            }
            send_stream.acknowledge(begin).unwrap();
            go_on(&mut operations, &mut send_stream);
            assert!(operations.has_room());
            let position = [0, begin, end][refused];
            let fields = Fields {
                position,
                ..Fields::default()
            };
            operations.refused(&fields).unwrap();
            let mut there = Vec::new();
            operations.taken(send_stream.head(), |op, completion, count| {
                there.extend((completion == Completion::Remote).then_some((op, count)));
            });
            let due = match refused {
                1 => vec![(LONG, 1)],
                _ => vec![(SHORT, 1)],
            };
            assert_eq!(there, due, "refused at {position}");
        }
    }
}
