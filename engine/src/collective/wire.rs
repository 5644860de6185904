//! The arguments of the messages of collective operations:
//!
//! ```text
//! 0, 1  team key           2  number of the call        3  rank of the sender     4  rank of the receiver
//! 5     tag                6  kind | form << 4 | digest << 7                      7  root
//! 8, 9  bytes of a block   10, 11  offset of a piece; place of an offer          12, 13  bytes of an offer
//! ```
//! A message has as many as its form needs.

use super::call::Kind;
use super::label::{DIGEST_BITS, Label};
use crate::TeamKey;
use argonet_am::Delivery;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Arguments that all messages have.
const COMMON: usize = 10;
/// Arguments of the longest.
const MOST: usize = 14;

/// Where form and digest stand beside the kind.
const FORM_AT: u32 = 4;
const DIGEST_AT: u32 = 7;
static_assertions::const_assert_eq!(DIGEST_AT + DIGEST_BITS, 32);

/// The form of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u8)]
pub(super) enum Form {
    /// All bytes of a send.
    Whole = 1,
    /// A send that is too long for that is ready: at an address of its process.
    Offer,
    /// The same, at an offset of its segment.
    OfferSegment,
    /// The receiver of an offer waits for its pieces.
    Ready,
    /// Some of its bytes.
    Piece,
    /// The receiver of an offer has read its bytes itself.
    Done,
    /// Whether the receiver calls the same: the sender waits for it for long.
    Question,
}

/// A message but for its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) key: TeamKey,
    pub(super) number: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) tag: u32,
    pub(super) form: Form,
    pub(super) label: Label,
    /// Offset of a piece, or address or offset of an offer.
    pub(super) at: u64,
    /// Bytes of an offer.
    pub(super) len: u64,
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Arguments of a message.
pub(super) struct Args {
    words: [u32; MOST],
    count: usize,
}

impl Args {
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.words[..self.count]
    }
}

fn nargs(form: Form) -> usize {
    match form {
        Form::Whole | Form::Ready | Form::Done | Form::Question => COMMON,
        Form::Piece => COMMON + 2,
        Form::Offer | Form::OfferSegment => MOST,
    }
}

impl Header {
    pub(super) fn args(&self) -> Args {
        let Label {
            kind,
            root,
            len,
            digest,
        } = self.label;
        let [key, block, at, offered] = [self.key.0, len, self.at, self.len].map(halves);
        let what = u32::from(u8::from(kind))
            | u32::from(u8::from(self.form)) << FORM_AT
            | digest << DIGEST_AT;
        let (number, from, to, tag) = (self.number, self.from, self.to, self.tag);
        Args {
            words: [
                key[0], key[1], number, from, to, tag, what, root, block[0], block[1], at[0],
                at[1], offered[0], offered[1],
            ],
            count: nargs(self.form),
        }
    }

    /// Reads a message; `None` if no member sends such a one.
    pub(super) fn read(delivery: &Delivery<'_>) -> Option<Self> {
        let count = delivery.args().len();
        if count < COMMON {
            return None;
        }
        let word = |at: usize| delivery.arg(at);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        let what = word(6);
        let kind = Kind::try_from(what as u8 & 0xf).ok()?;
        let form = Form::try_from((what >> FORM_AT) as u8 & 7).ok()?;
        if count != nargs(form) {
            return None;
        }
        Some(Self {
            key: TeamKey(long(0)),
            number: word(2),
            from: word(3),
            to: word(4),
            tag: word(5),
            form,
            label: Label {
                kind,
                root: word(7),
                len: long(8),
                digest: what >> DIGEST_AT,
            },
            at: if count > COMMON { long(10) } else { 0 },
            len: if count == MOST { long(12) } else { 0 },
        })
    }
}
