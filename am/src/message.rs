//! Input of a conduit: one active message, not yet packed.

use argonet_base::{HandlerIndex, SegmentOffset};
use argonet_segment::SharedBytes;

/// Which of the two classes a message travels in.
///
/// Replies never wait for requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageClass {
    /// Sent from ordinary code; its handler may reply once.
    Request,
    /// Sent from a request's handler, to the requester only; its handler may not send.
    Reply,
}

/// Category of a message (GASNet-EX 0.19, "Active Message Categories").
// spec P5: the three kinds, on every conduit.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, num_enum::TryFromPrimitive, num_enum::IntoPrimitive,
)]
#[repr(u8)]
pub enum Category {
    /// Arguments only.
    Short = 1,
    /// Arguments and a payload that lives as long as the handler runs.
    Medium = 2,
    /// Arguments and a payload placed in the target's segment before the handler runs.
    Long = 3,
}

impl Category {
    /// Name in messages to the user.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Short => "short",
            Category::Medium => "medium",
            Category::Long => "long",
        }
    }
}

/// The payload of a message.
#[derive(Clone, Copy)]
pub enum Payload<'a> {
    /// A short message.
    None,
    /// Bytes of a medium message.
    Medium(SharedBytes<'a>),
    /// Bytes of a long message and where in the target's segment they go.
    Long(SharedBytes<'a>, SegmentOffset),
}

impl Payload<'_> {
    /// Category that this payload makes.
    #[inline]
    #[must_use]
    pub fn category(&self) -> Category {
        match self {
            Payload::None => Category::Short,
            Payload::Medium(_) => Category::Medium,
            Payload::Long(..) => Category::Long,
        }
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Payload::None => 0,
            Payload::Medium(bytes) | Payload::Long(bytes, _) => bytes.len(),
        }
    }

    /// Whether there are no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One active message as its sender describes it.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// Handler that runs at the target.
    pub handler: HandlerIndex,
    /// Arguments, at most [`MAX_ARGS`](crate::MAX_ARGS).
    pub args: &'a [u32],
    /// Payload; decides the category.
    pub payload: Payload<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_make_categories_with_names() {
        let (none, some) = (SharedBytes::default(), SharedBytes::from_slice(b"x"));
        let nowhere = SegmentOffset(0);
        for (payload, name, len) in [
            (Payload::None, "short", 0),
            (Payload::Medium(none), "medium", 0),
            (Payload::Medium(some), "medium", 1),
            (Payload::Long(some, nowhere), "long", 1),
        ] {
            assert_eq!((payload.category().name(), payload.len()), (name, len));
            assert_eq!(payload.is_empty(), len == 0);
        }
    }
}
