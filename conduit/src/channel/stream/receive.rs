//! The receiving half: bytes as they were read, and the frames in them.

use super::pieces::Pieces;
use crate::channel::frame::{Frame, Kind, LONGEST_HEAD, WholePut, WholeShort};
use argonet_am::record::RecordError;
use argonet_am::{Category, MAX_MEDIUM};
use argonet_segment::bulk;
use core::ptr::NonNull;

/// Bytes that are read at once and not yet looked at: twice the longest frame that is kept here.
const STAGING_BYTES: usize = 2 * (MAX_MEDIUM + 2 * LONGEST_HEAD);

/// Payloads from this length on go straight to their places: another read costs less than another
/// copy.
pub(super) const LONG_PAYLOAD: usize = if cfg!(test) { 16 } else { 16 << 10 };

/// How much is read behind a payload that goes to its place or is aligned, and after one: a head,
/// and little of the next payload, which then goes to its place too.
pub(super) const READ_BEHIND: usize = 256;

/// How the payload of a medium is aligned for its handler, which may have it as an array of any
/// type.
pub(crate) const PAYLOAD_ALIGN: usize = 8;

/// A medium with a long payload: the next one probably has the same lengths.
#[derive(Clone, Copy, Debug)]
struct LongMedium {
    head_len: usize,
    /// Bytes of the frame.
    len: usize,
}

impl LongMedium {
    fn of(frame: &Frame) -> Option<Self> {
        if frame.length < LONG_PAYLOAD {
            return None;
        }
        let is_medium = matches!(frame.kind.message(), Some((_, Category::Medium)));
        is_medium.then(|| Self {
            head_len: frame.head_len(),
            len: frame.len(),
        })
    }
}

// spec T4: long payloads are received into their destination.
/// The rest of a payload that goes straight to its place.
#[derive(Debug)]
struct Direct {
    at: NonNull<u8>,
    left: usize,
    frame: Frame,
    head: [u8; LONGEST_HEAD],
}

// SAFETY: the giver of the place promises that it may be written until the payload is there, by any
// thread.
unsafe impl Send for Direct {}

/// The next thing in the stream.
#[derive(PartialEq, Debug)]
pub(crate) enum Next {
    /// Nothing: more must be read.
    More,
    /// A frame with all its bytes, at the beginning of [`ReceiveStream::bytes`].
    ///
    /// [`ReceiveStream::pass`] comes next.
    Whole(Frame),
    /// The head of a frame of which not all bytes are here; the payload is long and goes to a
    /// place.
    ///
    /// [`ReceiveStream::place`] or [`ReceiveStream::skip`] come next.
    Begun(Frame),
    /// The payload of that frame is at its place; [`ReceiveStream::placed_head`] has its head.
    ///
    /// [`ReceiveStream::pass_behind`] comes next.
    Placed(Frame),
    /// The payload of that frame was thrown away.
    ///
    /// [`ReceiveStream::pass_behind`] comes next.
    Skipped(Frame),
}

/// The stream from one peer.
#[derive(Debug)]
pub(crate) struct ReceiveStream {
    staging: Box<[u8]>,
    start: usize,
    end: usize,
    /// Everything before was taken.
    taken: u64,
    direct: Option<Direct>,
    /// Bytes to throw away, and of which frame, if it had not been taken before.
    skip: usize,
    skipping: Option<Frame>,
    /// The last payload went to its place: the next bytes may be a long payload too.
    expects_placed: bool,
    /// The last whole frame was that one, and nothing was read since: the next bytes may be
    /// another.
    expects_medium: Option<LongMedium>,
    long_bytes: usize,
    /// Frames that had been taken before.
    pub(crate) repeated: u64,
}

impl ReceiveStream {
    pub(crate) fn new(long_bytes: usize) -> Self {
        Self {
            staging: Box::default(),
            start: 0,
            end: 0,
            taken: 0,
            direct: None,
            skip: 0,
            skipping: None,
            expects_placed: false,
            expects_medium: None,
            long_bytes,
            repeated: 0,
        }
    }

    /// Bytes of its buffer.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.staging.len()
    }

    /// Frees its buffer, unless a frame has begun; it comes back with the next read.
    pub(crate) fn free_buffer(&mut self) {
        let has_begun =
            !self.is_empty() || self.direct.is_some() || self.skip > 0 || self.skipping.is_some();
        if !has_begun {
            self.reset();
            self.staging = Box::default();
        }
    }

    /// Up to where the stream was taken.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether bytes are here that are not taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Where the next bytes are to be read to.
    #[inline]
    pub(crate) fn room(&mut self, out: &mut Pieces) {
        if self.staging.is_empty() {
            self.staging = vec![0; STAGING_BYTES].into_boxed_slice();
        }
        let mut most = STAGING_BYTES;
        if let Some(direct) = &self.direct {
            out.add(direct.at.as_ptr(), direct.left);
            most = READ_BEHIND;
        } else if self.expects_placed {
            most = LONGEST_HEAD.max(READ_BEHIND);
        }
        if self.start == self.end {
            self.start = 0;
            if let Some(medium) = self.expects_medium {
                self.start = self.start_of(medium);
                most = medium.len + READ_BEHIND;
            }
            self.end = self.start;
        } else if let Some(medium) = self.begun() {
            let (start, here) = (self.start_of(medium), self.end - self.start);
            let is_aligned = self.start % PAYLOAD_ALIGN == start;
            if !is_aligned || self.start + medium.len + READ_BEHIND > STAGING_BYTES {
                self.staging.copy_within(self.start..self.end, start);
                (self.start, self.end) = (start, start + here);
            }
            most = medium.len - here + READ_BEHIND;
        } else if self.end + LONGEST_HEAD + MAX_MEDIUM > STAGING_BYTES {
            self.staging.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let room = &mut self.staging[self.end..];
        out.add(room.as_mut_ptr(), room.len().min(most));
    }

    /// The medium with a long payload of which not all bytes are here.
    ///
    /// It is read to its end and little further, so that its payload is aligned by moving the
    /// little of it that is here.
    fn begun(&self) -> Option<LongMedium> {
        let here = &self.staging[self.start..self.end];
        let frame = Frame::read(here, self.long_bytes).ok()??;
        LongMedium::of(&frame).filter(|medium| medium.len > here.len())
    }

    /// Where it begins at the front of the staging area, if its payload is aligned.
    #[inline]
    fn start_of(&self, medium: LongMedium) -> usize {
        let payload = self.staging.as_ptr().addr() + medium.head_len;
        payload.wrapping_neg() % PAYLOAD_ALIGN
    }

    /// So many bytes were read to there.
    #[inline]
    pub(crate) fn filled(&mut self, bytes: usize) {
        let mut rest = bytes;
        if let Some(direct) = &mut self.direct {
            let here = rest.min(direct.left);
            // Within the place, or at its end.
            direct.at = direct.at.map_addr(|at| at.saturating_add(here));
            direct.left -= here;
            rest -= here;
        } else {
            // The next bytes are no long payload, or their head says that they are.
            self.expects_placed = false;
            if bytes > 0 {
                self.expects_medium = None;
            }
        }
        self.end += rest;
        debug_assert!(self.end <= self.staging.len());
    }

    /// The bytes from the next frame on.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.staging[self.start..self.end]
    }

    /// The kind byte of the next frame, if its beginning is here.
    ///
    /// [`ReceiveStream::pass_put`] or [`ReceiveStream::pass_short`] may come next, or
    /// [`ReceiveStream::next`].
    #[inline]
    pub(crate) fn next_kind(&self) -> Option<u8> {
        if self.skip > 0 || self.skipping.is_some() || self.direct.is_some() {
            return None;
        }
        self.staging[self.start..self.end].first().copied()
    }

    /// A short request that came next was used.
    #[inline]
    pub(crate) fn pass_short(&mut self, short: &WholeShort) {
        self.start += short.len();
        self.taken += short.len() as u64;
        self.expects_placed = false;
        self.expects_medium = None;
    }

    /// A put that came next was used.
    #[inline]
    pub(crate) fn pass_put(&mut self, put: &WholePut) {
        let len = WholePut::HEAD + put.length;
        self.start += len;
        self.taken += len as u64;
        self.expects_placed = put.length >= LONG_PAYLOAD;
        self.expects_medium = None;
    }

    /// The next frame.
    ///
    /// # Errors
    /// The frame cannot be used. No frame after it can be found.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Next, RecordError> {
        loop {
            if self.skip > 0 {
                let here = self.skip.min(self.end - self.start);
                self.start += here;
                self.skip -= here;
                if self.skip > 0 {
                    return Ok(Next::More);
                }
            }
            if let Some(frame) = self.skipping {
                return Ok(Next::Skipped(frame));
            }
            if let Some(direct) = &self.direct {
                return Ok(if direct.left == 0 {
                    Next::Placed(direct.frame)
                } else {
                    Next::More
                });
            }
            let here = &self.staging[self.start..self.end];
            let Some(frame) = Frame::read(here, self.long_bytes)? else {
                return Ok(Next::More);
            };
            let is_whole = frame.here() <= here.len();
            if !frame.kind.is_outside() && frame.position != self.taken as u32 {
                self.repeat(&frame)?;
                continue;
            }
            return Ok(if is_whole {
                Next::Whole(frame)
            } else if frame.kind.is_placed() && frame.length >= LONG_PAYLOAD {
                Next::Begun(frame)
            } else {
                Next::More
            });
        }
    }

    // spec B3: positions show bytes that arrive twice.
    /// Passes over a frame that was taken before.
    ///
    /// # Errors
    /// It is no such frame.
    #[cold]
    fn repeat(&mut self, frame: &Frame) -> Result<(), RecordError> {
        let expected = self.taken as u32;
        let before = expected.wrapping_sub(frame.position) as usize;
        if before > i32::MAX as usize || before < frame.len() || before as u64 > self.taken {
            let got = frame.position;
            return Err(RecordError::Position { got, expected });
        }
        self.repeated += 1;
        self.skip = frame.here();
        Ok(())
    }

    /// A whole frame was used.
    #[inline]
    pub(crate) fn pass(&mut self, frame: &Frame) {
        self.start += frame.here();
        debug_assert!(self.start <= self.end);
        if !frame.kind.is_outside() {
            self.taken += frame.len() as u64;
            self.expects_placed = frame.length >= LONG_PAYLOAD && frame.kind.is_placed();
            self.expects_medium = LongMedium::of(frame);
        }
    }

    /// The payload of a frame that has begun goes to `place`.
    ///
    /// # Safety
    /// The payload's bytes from there on may be written until [`Next::Placed`] is passed or
    /// [`reset`](Self::reset) is called, and are no part of this receive_stream.
    pub(crate) unsafe fn place(&mut self, frame: Frame, place: NonNull<u8>) {
        let mut head = [0; LONGEST_HEAD];
        let head_len = frame.head_len();
        head[..head_len].copy_from_slice(&self.staging[self.start..self.start + head_len]);
        self.start += head_len;
        let here = self.end - self.start;
        debug_assert!(here < frame.length);
        // SAFETY: fewer bytes than the payload has are here, and the caller promises its place.
        unsafe { bulk::copy(place.as_ptr(), self.staging[self.start..].as_ptr(), here) };
        self.start = self.end;
        self.expects_medium = None;
        self.direct = Some(Direct {
            at: place.map_addr(|at| at.saturating_add(here)),
            left: frame.length - here,
            frame,
            head,
        });
    }

    /// The head of the frame whose payload is at its place.
    pub(crate) fn placed_head(&self) -> &[u8] {
        self.direct
            .as_ref()
            .map_or(&[], |direct| &direct.head[..direct.frame.head_len()])
    }

    /// A frame was used whose payload is at its place, or was thrown away.
    pub(crate) fn pass_behind(&mut self) {
        let direct = self.direct.take();
        self.expects_placed |= direct.is_some();
        let frame = direct.map(|direct| direct.frame).or(self.skipping.take());
        if let Some(frame) = frame
            && !frame.kind.is_outside()
        {
            self.taken += frame.len() as u64;
        }
    }

    /// Whether the next bytes of the stream itself, and of no body, are data that goes to the place
    /// of this get.
    pub(crate) fn is_placing_data(&self, op: u32) -> bool {
        let data = |direct: &Direct| {
            let Frame { kind, fields, .. } = &direct.frame;
            *kind == Kind::Got && fields.op == op && direct.left > 0
        };
        self.direct.as_ref().is_some_and(data)
    }

    /// The body that is on its way to its place.
    pub(crate) fn placing(&self) -> Option<&Frame> {
        let direct = self.direct.as_ref()?;
        (direct.frame.kind == Kind::Body).then_some(&direct.frame)
    }

    /// Whether the next bytes go to a place.
    #[cfg(test)]
    pub(crate) fn is_placing(&self) -> bool {
        self.direct.as_ref().is_some_and(|direct| direct.left > 0)
    }

    /// A frame has begun whose payload goes nowhere.
    pub(crate) fn skip(&mut self, frame: Frame) {
        self.skip = frame.len();
        self.skipping = Some(frame);
    }

    /// Takes bytes that did not come by a rail, as far as there is room: how many.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut pieces = Pieces::new();
        self.room(&mut pieces);
        let room = self.staging.len() - self.end;
        let len = bytes.len().min(room).min(pieces.bytes());
        self.staging[self.end..self.end + len].copy_from_slice(&bytes[..len]);
        self.filled(len);
        len
    }

    /// Another rail was made: bytes that were not taken come again.
    pub(crate) fn reset(&mut self) {
        self.start = 0;
        self.end = 0;
        self.direct = None;
        self.skip = 0;
        self.skipping = None;
        self.expects_placed = false;
        self.expects_medium = None;
    }
}
