//! Reports to ranks.

use argonet_am::{AmError, Category, Delivery, Message, MessageClass, Payload};
use argonet_base::{HandlerIndex, SegmentOffset};
use argonet_conduit::{Completion, OpToken, Sink};
use argonet_segment::SharedBytes;
use std::collections::BTreeMap;

/// Handlers.
///
/// The arguments of a request say which reply it wants.
pub(crate) const ASK: HandlerIndex = HandlerIndex(128);
pub(crate) const ANSWER: HandlerIndex = HandlerIndex(129);

/// The sink of a rank.
#[derive(Default)]
pub(crate) struct Log {
    /// How often the request, and the reply, of a number came.
    pub(crate) requests: BTreeMap<u32, u32>,
    pub(crate) replies: BTreeMap<u32, u32>,
    /// How often both parts of an operation were reported.
    pub(crate) local: BTreeMap<u64, u32>,
    pub(crate) remote: BTreeMap<u64, u32>,
    pub(crate) errors: Vec<AmError>,
}

/// Where the long of a number goes: none that is under way has the same place.
pub(crate) fn place_of(class: MessageClass, number: u32) -> SegmentOffset {
    let class = u64::from(class == MessageClass::Reply);
    SegmentOffset((1 + u64::from(number % LONGS) + class * u64::from(LONGS)) * LONG_BYTES)
}

/// Numbers that are under way together, at most, and room for a long.
const LONGS: u32 = 40;
const LONG_BYTES: u64 = 8192;

/// The bytes of a number.
pub(crate) fn bytes(number: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number as usize * 7 + at) as u8)
        .collect()
}

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let number = delivery.arg(0);
        let payload = delivery.payload().to_vec();
        let is_whole = payload == bytes(number, payload.len());
        assert!(is_whole, "the bytes of {:?} {number}", delivery.class());
        if delivery.class() == MessageClass::Reply {
            *self.replies.entry(number).or_default() += 1;
            return;
        }
        *self.requests.entry(number).or_default() += 1;
        let (category, len) = (delivery.arg(1), delivery.arg(2) as usize);
        let Ok(category) = Category::try_from(category as u8) else {
            return;
        };
        let data = bytes(number, len);
        let data = SharedBytes::from_slice(&data);
        let reply = delivery.reply(&Message {
            handler: ANSWER,
            args: &[number],
            payload: match category {
                Category::Short => Payload::None,
                Category::Medium => Payload::Medium(data),
                Category::Long => Payload::Long(data, place_of(MessageClass::Reply, number)),
            },
        });
        self.errors.extend(reply.err());
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        let parts = match completion {
            Completion::Local => &mut self.local,
            Completion::Remote => &mut self.remote,
        };
        *parts.entry(op.handle).or_default() += 1;
    }

    fn on_error(&mut self, error: AmError) {
        self.errors.push(error);
    }
}
