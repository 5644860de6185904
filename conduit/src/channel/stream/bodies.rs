//! Payloads that come beside the stream: which are missing, and which came before their heads.

use crate::channel::frame::Frame;
use argonet_am::record::RecordError;
use std::collections::BTreeMap;

/// Bodies that are waited for, and heads, at most: more than a sender has under way.
pub(super) const MOST_BODIES: usize = 8192;

/// The fate of a body that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// It is.
    Yes,
    /// It has come before.
    No,
}

/// By the positions of the heads.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// Heads that were taken and whose bodies have not come.
    missing: BTreeMap<u64, Frame>,
    /// Bodies that have come, and whether they were placed.
    early: BTreeMap<u64, (Frame, bool)>,
}

impl Bodies {
    /// Up to where everything has come, if heads have up to `taken`.
    #[inline]
    pub(crate) fn complete(&self, taken: u64) -> u64 {
        let first = self.missing.first_key_value();
        first.map_or(taken, |(position, _)| taken.min(*position))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.early.is_empty()
    }

    /// The stream was taken up to `taken`: bodies before that have no head any more.
    ///
    /// A payload comes in the stream and beside it where a rail was lost: its sender gives it to
    /// another while the first still brings it.
    pub(crate) fn pass(&mut self, taken: u64) {
        while let Some(first) = self.early.first_entry()
            && *first.key() < taken
        {
            first.remove();
        }
    }

    /// Whether the body at `position` is of no use if heads have been taken up to `taken`.
    pub(crate) fn is_past(&self, position: u64, taken: u64) -> bool {
        position < taken && !self.missing.contains_key(&position)
    }

    /// A head was taken whose payload is beside the stream.
    ///
    /// Whether its body has come, and was placed.
    ///
    /// # Errors
    /// The body was of another one, or there are too many.
    pub(crate) fn head(
        &mut self,
        position: u64,
        frame: &Frame,
    ) -> Result<Option<bool>, RecordError> {
        if let Some((body, placed)) = self.early.remove(&position) {
            check(frame, &body)?;
            return Ok(Some(placed));
        }
        self.missing.insert(position, *frame);
        self.bound()?;
        Ok(None)
    }

    // spec B3: a payload that has come over another rail is not taken again.
    // spec T7: payloads come in any order.
    /// A body begins for the head at `position`; heads have been taken up to `taken`.
    ///
    /// # Errors
    /// It belongs to another head.
    pub(crate) fn wants(
        &self,
        position: u64,
        taken: u64,
        body: &Frame,
    ) -> Result<Wanted, RecordError> {
        let is_wanted = match self.missing.get(&position) {
            Some(head) => check(head, body).map(|()| true)?,
            None => position >= taken && !self.early.contains_key(&position),
        };
        Ok(if is_wanted { Wanted::Yes } else { Wanted::No })
    }

    /// A body that was wanted when it began is here, in its place or nowhere.
    ///
    /// Its head, if that was there before; then both are.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn body(
        &mut self,
        position: u64,
        body: &Frame,
        placed: bool,
    ) -> Result<Option<Frame>, RecordError> {
        if let Some(head) = self.missing.remove(&position) {
            return Ok(Some(head));
        }
        self.early.insert(position, (*body, placed));
        self.bound()?;
        Ok(None)
    }

    fn bound(&self) -> Result<(), RecordError> {
        let got = self.missing.len() + self.early.len();
        if got <= MOST_BODIES {
            return Ok(());
        }
        Err(RecordError::Account {
            what: "payloads beside the stream",
            got: got as u64,
            most: MOST_BODIES as u64,
        })
    }
}

/// Whether a head and a body belong together.
fn check(head: &Frame, body: &Frame) -> Result<(), RecordError> {
    let same = head.kind == body.kind && head.length == body.length && head.fields == body.fields;
    same.then_some(()).ok_or(RecordError::Position {
        got: body.position,
        expected: head.position,
    })
}
