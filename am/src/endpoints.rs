//! Messages between endpoints.
//!
//! A process has one endpoint from the start, of index 0; a message from one such to another is a
//! plain one. A message from or to a further endpoint travels as a message of the library's own
//! with one more argument in front, the *word*, which all conduits carry like any other.
//!
//! ```text
//! byte 0       1      2      3
//!      |handler| from | to   | zero |
//! ```
//!
//! So plain messages pay nothing for it, and a further endpoint's message pays one argument.

use crate::delivery::ReplyPort;
use crate::error::AmError;
use crate::limits::{CLIENT_BASE, ENDPOINTS, MAX_ARGS, MAX_CARRIED};
use crate::message::Message;
use crate::table::Registered;
use argonet_base::{HandlerIndex, JobRank};

/// The two ends of a message, as indices of endpoints in their processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Endpoints {
    /// The endpoint that sends.
    pub from: u8,
    /// The endpoint whose handler runs.
    pub to: u8,
}

impl Endpoints {
    /// The endpoints that processes have from the start.
    pub const PRIMORDIAL: Self = Self { from: 0, to: 0 };

    /// Whether a message between them is a plain one.
    #[inline(always)]
    #[must_use]
    pub const fn are_primordial(self) -> bool {
        self.from | self.to == 0
    }

    /// Those of the reply.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }

    /// Whether there can be such endpoints.
    #[must_use]
    pub const fn can_exist(self) -> bool {
        (self.from as u32) < ENDPOINTS && (self.to as u32) < ENDPOINTS
    }

    /// The word of a message for a client's handler.
    #[must_use]
    pub const fn word(self, handler: HandlerIndex) -> u32 {
        u32::from_le_bytes([handler.0, self.from, self.to, 0])
    }

    /// Endpoints and handler of a word; `None` if it is none.
    #[must_use]
    pub fn of_word(word: u32) -> Option<(Self, HandlerIndex)> {
        Self::of_any_word(word).filter(|(ends, _)| !ends.are_primordial())
    }

    /// [`of_word`](Self::of_word) where both may be the endpoints that processes have from the
    /// start.
    #[must_use]
    pub fn of_any_word(word: u32) -> Option<(Self, HandlerIndex)> {
        let [handler, from, to, zero] = word.to_le_bytes();
        let (ends, handler) = (Self { from, to }, HandlerIndex(handler));
        let belongs = zero == 0 && handler >= CLIENT_BASE && ends.can_exist();
        belongs.then_some((ends, handler))
    }
}

/// The arguments of a message as it travels between endpoints: the word, then the client's.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    args: [u32; MAX_CARRIED],
    count: usize,
}

impl Carried {
    /// Puts the word in front.
    ///
    /// # Panics
    /// If there are more than [`MAX_ARGS`] arguments; callers have checked that.
    #[must_use]
    pub fn new(ends: Endpoints, handler: HandlerIndex, given: &[u32]) -> Self {
        assert!(
            given.len() <= MAX_ARGS,
            "argument count is checked before the word is put in front"
        );
        let mut args = [0; MAX_CARRIED];
        args[0] = ends.word(handler);
        args[1..=given.len()].copy_from_slice(given);
        Self {
            args,
            count: 1 + given.len(),
        }
    }

    /// All that travel.
    #[must_use]
    pub fn args(&self) -> &[u32] {
        &self.args[..self.count]
    }
}

/// The way for replies of a handler that runs for such a message.
pub(crate) struct Back<'a> {
    pub(crate) port: &'a dyn ReplyPort,
    /// The index of the library's that such messages have.
    pub(crate) carrier: HandlerIndex,
    /// Those of the message that is replied to.
    pub(crate) ends: Endpoints,
}

impl ReplyPort for Back<'_> {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        if message.handler < CLIENT_BASE {
            // A handler of the library, whose arguments name the endpoint.
            return self.port.reply(to, message);
        }
        let carried = Carried::new(self.ends.reversed(), message.handler, message.args);
        self.port.reply(
            to,
            &Message {
                handler: self.carrier,
                args: carried.args(),
                payload: message.payload,
            },
        )
    }

    fn rank(&self) -> JobRank {
        self.port.rank()
    }

    fn registered(&self) -> &Registered {
        // Handlers of the endpoint that gets the reply are known there alone.
        &Registered::ALL
    }

    fn endpoints(&self) -> Endpoints {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_come_back(handler in CLIENT_BASE.0..=u8::MAX, from in 0..ENDPOINTS as u8, to in 0..ENDPOINTS as u8) {
            let (ends, handler) = (Endpoints { from, to }, HandlerIndex(handler));
            let expected = (!ends.are_primordial()).then_some((ends, handler));
            prop_assert_eq!(Endpoints::of_word(ends.word(handler)), expected);
            prop_assert_eq!(Endpoints::of_any_word(ends.word(handler)), Some((ends, handler)));
            prop_assert_eq!(ends.reversed().reversed(), ends);
        }

        #[test]
        fn any_word_is_refused_or_comes_back(word: u32) {
            if let Some((ends, handler)) = Endpoints::of_word(word) {
                prop_assert!(ends.can_exist() && !ends.are_primordial() && handler >= CLIENT_BASE);
                prop_assert_eq!(ends.word(handler), word);
            }
        }

        #[test]
        fn arguments_follow_the_word(given in proptest::collection::vec(any::<u32>(), 0..=MAX_ARGS)) {
            let ends = Endpoints { from: 3, to: 31 };
            let carried = Carried::new(ends, HandlerIndex(200), &given);
            let (word, rest) = carried.args().split_first().unwrap();
            prop_assert_eq!(Endpoints::of_word(*word), Some((ends, HandlerIndex(200))));
            prop_assert_eq!(rest, given);
        }
    }

    #[test]
    fn endpoints_have_indices_below_the_limit() {
        let (most, first) = (ENDPOINTS as u8, Endpoints::PRIMORDIAL);
        assert!(first.can_exist() && first.are_primordial());
        for (from, to, exist) in [
            (most - 1, most - 1, true),
            (most, 0, false),
            (0, most, false),
        ] {
            let ends = Endpoints { from, to };
            assert_eq!(ends.can_exist(), exist, "{ends:?}");
            assert!(!ends.are_primordial());
        }
        // The same further endpoint at both ends.
        assert!(!Endpoints { from: 3, to: 3 }.are_primordial());
    }

    #[test]
    fn malformed_words_are_refused() {
        let good = Endpoints { from: 1, to: 0 }.word(HandlerIndex(128));
        assert!(Endpoints::of_word(good).is_some());
        let most = ENDPOINTS << 8;
        for bad in [
            good & 0xff,
            good & !0x80,
            good | 1 << 24,
            good | most,
            good | most << 8,
        ] {
            assert_eq!(Endpoints::of_word(bad), None, "{bad:#x}");
        }
    }

    /// Replies of one message inside count for the one that has come.
    #[test]
    fn a_reply_is_counted_where_the_message_came() {
        use crate::delivery::Delivery;
        use crate::message::{Category, MessageClass};
        use argonet_base::SegmentOffset;
        use core::cell::RefCell;

        struct Sent(RefCell<Vec<Vec<u32>>>);
        impl ReplyPort for Sent {
            fn reply(&self, _: JobRank, message: &Message<'_>) -> Result<(), AmError> {
                self.0.borrow_mut().push(message.args.to_vec());
                Ok(())
            }
            fn rank(&self) -> JobRank {
                JobRank(1)
            }
            fn registered(&self) -> &Registered {
                &Registered::ALL
            }
        }
        let (sent, ends) = (Sent(RefCell::default()), Endpoints { from: 3, to: 31 });
        let (carrier, handler) = (HandlerIndex(12), HandlerIndex(255));
        let args = [ends.word(handler), 7];
        for replies in [true, false] {
            let (class, category) = (MessageClass::Request, Category::Short);
            let (source, nowhere) = (JobRank(2), SegmentOffset(0));
            let mut outer = Delivery::new(
                source, class, category, carrier, &args, None, nowhere, &sent,
            );
            outer.unwrap_endpoint_am(ends, handler, 1, carrier, |inner| {
                assert_eq!((inner.args(), inner.endpoints()), (&[7][..], ends));
                if replies {
                    inner.echo(HandlerIndex(128), &[9]).unwrap();
                }
            });
            assert_eq!(outer.has_replied(), replies);
        }
        let word = ends.reversed().word(HandlerIndex(128));
        assert_eq!(*sent.0.borrow(), [vec![word, 9]]);
    }
}
