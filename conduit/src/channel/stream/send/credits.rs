//! News of credits for a peer: beside the stream, with control frames.

use crate::channel::frame::{Fields, HeadBytes, Kind};
use argonet_am::system_queue::Frame;

/// News that is to be reported.
///
/// Functions that change it return whether it must be written at once.
#[derive(Debug, Default)]
pub(crate) struct Credits {
    /// Low bits of the credits lent to the peer since the beginning, and of those reported to it.
    lent: u16,
    reported_lent: u16,
    /// Credits that this rank would like.
    wanted: u16,
    /// An epoch has ended here.
    epoch: bool,
    /// The question to the peer that is not answered.
    open: Option<Frame>,
    /// Whether it is still to be written.
    asks: bool,
    /// The answer to the peer's question, until it is written.
    answer: Option<Frame>,
}

impl Credits {
    /// The peer has been lent some more.
    pub(crate) fn lend(&mut self, count: u16) -> bool {
        self.lent = self.lent.wrapping_add(count);
        count > 0
    }

    /// This rank would like some.
    pub(crate) fn want(&mut self, count: u16) -> bool {
        self.wanted = self.wanted.saturating_add(count);
        count > 0
    }

    /// An epoch has ended here; the next control frame reports it.
    pub(crate) fn end_epoch(&mut self) -> bool {
        self.epoch = true;
        false
    }

    /// Puts a question to the peer; there is no other.
    pub(crate) fn ask(&mut self, question: Frame) -> bool {
        debug_assert!(self.open.is_none());
        self.open = Some(question);
        self.asks = true;
        true
    }

    /// The question has been answered.
    pub(crate) fn answered(&mut self) -> bool {
        self.open = None;
        self.asks = false;
        false
    }

    /// Answers the peer.
    pub(crate) fn answer(&mut self, answer: Frame) -> bool {
        self.answer = Some(answer);
        true
    }

    /// Written news may be lost.
    ///
    /// The peer repeats a question if its answer is lost.
    pub(super) fn report_again(&mut self) {
        self.reported_lent = 0;
        self.asks = self.open.is_some();
    }

    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.lent != self.reported_lent || self.wanted > 0
    }

    /// Whether there is nothing to report, and no question that is not answered.
    pub(super) fn rests(&self) -> bool {
        !self.has_news() && self.open.is_none() && self.answer.is_none()
    }

    /// The control frame.
    #[inline]
    pub(super) fn control(&mut self, (taken, handled): (u64, u64)) -> HeadBytes {
        let fields = Fields {
            offset: taken,
            rest: handled,
            op: self.lent.into(),
            wanted: self.wanted.into(),
            ..Fields::default()
        };
        let mut head = HeadBytes::new(Kind::Control, 0, &[], 0, &fields);
        if self.epoch {
            head.end_epoch();
        }
        self.reported_lent = self.lent;
        self.wanted = 0;
        self.epoch = false;
        head
    }

    /// The next of the frames behind it.
    #[inline]
    pub(super) fn system(&mut self) -> Option<HeadBytes> {
        let word = if self.asks {
            self.asks = false;
            self.open
        } else {
            self.answer.take()
        }?;
        let fields = Fields {
            offset: word.0,
            ..Fields::default()
        };
        Some(HeadBytes::new(Kind::System, 0, &[], 0, &fields))
    }
}
