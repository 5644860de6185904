//! Control frames: acknowledgements and news of credits, beside the frames of the stream.

use super::credits::Credits;
use crate::channel::frame::{Fields, HEADER_BYTES, HeadBytes, Kind};
use crate::channel::stream::pieces::Pieces;

/// Bytes of a control frame, and behind it a question and an answer of the system queue, and the
/// end of the rails.
const CONTROL_BYTES: usize = 4 * HEADER_BYTES + Kind::Control.fields() + 2 * Kind::System.fields();

/// What is written although there is no news for the peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Extra {
    Nothing,
    /// A control frame.
    Probe,
    /// That, and a frame that asks for the end of the rails, or is it.
    Close,
    Closed,
}

/// Bytes taken of the peer's stream, and handled of its requests.
pub(super) type Ack = (u64, u64);

/// Acknowledgements and credits to report, and the frames that report them.
#[derive(Debug)]
pub(super) struct Control {
    /// The frames that are being written, how much of them is written, and where they end.
    bytes: [u8; CONTROL_BYTES],
    at: usize,
    end: usize,
    /// The acknowledgement to write, and the one written last.
    ack: Ack,
    acked: Ack,
    is_urgent: bool,
    extra: Extra,
    /// This position is not acknowledged before the peer has taken the refusal of the frame there;
    /// the refusal ends at the second.
    held: Option<(u64, u64)>,
    credits: Credits,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; CONTROL_BYTES],
            at: 0,
            end: 0,
            ack: (0, 0),
            acked: (0, 0),
            is_urgent: false,
            extra: Extra::Nothing,
            held: None,
            credits: Credits::default(),
        }
    }

    /// Bytes that are to be written.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.end - self.at
    }

    /// Whether there is something to write now.
    #[inline]
    pub(super) fn wants_to_write(&self) -> bool {
        self.left() > 0 || self.is_urgent
    }

    /// Whether there is nothing to report, and no question that is not answered.
    pub(super) fn rests(&self) -> bool {
        self.left() == 0 && !self.is_urgent && self.due() == 0 && self.credits.rests()
    }

    #[inline]
    pub(super) fn set_ack(&mut self, ack: Ack) {
        self.ack = ack;
    }

    /// How much is not acknowledged.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        (self.ack.0 - self.acked.0).max(self.ack.1 - self.acked.1)
    }

    /// An acknowledgement that is due is written next.
    #[inline]
    pub(super) fn hurry(&mut self) {
        self.is_urgent |= self.due() > 0;
    }

    /// A frame is written next, also if it has no news for the peer.
    pub(super) fn probe(&mut self) {
        self.extra = Extra::Probe;
        self.is_urgent = true;
    }

    /// The end of the rails is asked for next, or written.
    pub(super) fn close(&mut self, has_agreed: bool) {
        self.extra = if has_agreed {
            Extra::Closed
        } else {
            Extra::Close
        };
        self.is_urgent = true;
    }

    /// Up to where the peer's stream is taken, as far as this knows.
    pub(super) fn heard(&self) -> u64 {
        self.ack.0
    }

    /// Nothing from `position` on is acknowledged until the peer has taken this stream up to
    /// `until`.
    pub(super) fn hold(&mut self, position: u64, until: u64) {
        let first = self.held.map_or(position, |(first, _)| first.min(position));
        self.held = Some((first, until));
    }

    /// Changes the news of credits, which are reported at once if `f` says so.
    #[inline]
    pub(super) fn report_credits(&mut self, f: impl FnOnce(&mut Credits) -> bool) {
        self.is_urgent |= f(&mut self.credits);
    }

    /// Makes the frames, where something is due and the last ones are written.
    ///
    /// The peer has taken this stream up to `taken`.
    #[inline]
    pub(super) fn prepare(&mut self, taken: u64) {
        if self.left() == 0 && (self.is_urgent || self.due() > 0) {
            self.make(taken);
        }
    }

    #[inline]
    fn make(&mut self, taken: u64) {
        let ack = self.next_ack(taken);
        self.is_urgent = false;
        (self.at, self.end) = (0, 0);
        let news = ack != self.acked || self.credits.has_news();
        let extra = core::mem::replace(&mut self.extra, Extra::Nothing);
        if news || extra > Extra::Nothing {
            self.acked = ack;
            let head = self.credits.control(ack);
            self.add(&head);
        }
        while let Some(head) = self.credits.system() {
            self.add(&head);
        }
        if extra > Extra::Probe {
            self.add_close(extra);
        }
    }

    #[cold]
    fn add_close(&mut self, extra: Extra) {
        let kind = match extra {
            Extra::Close => Kind::Close,
            _ => Kind::Closed,
        };
        self.add(&HeadBytes::new(kind, 0, &[], 0, &Fields::default()));
    }

    #[inline]
    fn next_ack(&mut self, taken: u64) -> Ack {
        if self.held.is_some_and(|(_, until)| taken >= until) {
            self.held = None;
        }
        let held = self.held.map_or(u64::MAX, |(position, _)| position);
        (self.ack.0.min(held).max(self.acked.0), self.ack.1)
    }

    #[inline]
    fn add(&mut self, head: &HeadBytes) {
        let (begin, bytes) = (self.end, head.as_bytes());
        self.end += bytes.len();
        self.bytes[begin..self.end].copy_from_slice(bytes);
    }

    #[inline]
    pub(super) fn pieces(&mut self, out: &mut Pieces) {
        let left = self.left();
        out.add(self.bytes[self.at..].as_mut_ptr(), left);
    }

    /// Up to so many bytes were written; how many of them were of these frames.
    #[inline]
    pub(super) fn wrote(&mut self, bytes: usize) -> usize {
        let own = bytes.min(self.left());
        self.at += own;
        own
    }

    /// Another rail was made: a half written frame is dropped, and what is of the one before.
    pub(super) fn drop_rest(&mut self) {
        self.at = self.end;
        self.extra = Extra::Nothing;
    }

    /// Written acknowledgements may be lost: they are reported again.
    pub(super) fn report_again(&mut self) {
        self.acked = (0, 0);
        self.credits.report_again();
        self.is_urgent = true;
    }
}
