//! The kinds of events, and the unit of each.

use argonet_settings::Letter;

/// The unit of an event's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// It has none.
    None,
    /// Bytes that are moved.
    Bytes,
    /// 1 if an attempt succeeded, else 0.
    Success,
    /// Things that a call has done.
    Count,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $letter:ident, $name:literal, $unit:ident;)*) => {
        /// Kinds of events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The letter under which it is traced and counted.
            #[must_use]
            pub const fn letter(self) -> Letter {
                match self { $(Self::$kind => Letter::$letter,)* }
            }

            /// Its name in traces and summaries.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The unit of its value.
            #[must_use]
            pub const fn unit(self) -> Unit {
                match self { $(Self::$kind => Unit::$unit,)* }
            }
        }
    };
}

kinds! {
    /// A get that the caller waits for.
    Get = Get, "GET", Bytes;
    /// A get with an event.
    GetNb = Get, "GET_NB", Bytes;
    /// An implicit get.
    GetNbi = Get, "GET_NBI", Bytes;
    /// A put that the caller waits for.
    Put = Put, "PUT", Bytes;
    /// A put with an event.
    PutNb = Put, "PUT_NB", Bytes;
    /// An implicit put.
    PutNbi = Put, "PUT_NBI", Bytes;
    /// A remote atomic operation that the caller waits for.
    Atomic = Atomic, "ATOMIC", Bytes;
    /// A remote atomic operation with an event.
    AtomicNb = Atomic, "ATOMIC_NB", Bytes;
    /// An implicit remote atomic operation.
    AtomicNbi = Atomic, "ATOMIC_NBI", Bytes;
    /// A test of operations.
    TestSync = Sync, "TEST_SYNC", Success;
    /// A wait for operations.
    WaitSync = Sync, "WAIT_SYNC", None;
    /// A wait for a condition of the client.
    WaitUntil = Sync, "WAIT_UNTIL", None;
    /// A wait for all that was sent to be handled.
    Drain = Sync, "DRAIN", None;
    /// A collective operation that waits.
    Collective = Collective, "COLLECTIVE", Bytes;
    /// The start of a broadcast.
    Broadcast = Collective, "BROADCAST_NB", Bytes;
    /// The first half of a barrier.
    BarrierNotify = Barrier, "BARRIER_NOTIFY", None;
    /// From the first half of a barrier to the second.
    BarrierNotifyWait = Barrier, "BARRIER_NOTIFYWAIT", None;
    /// The second half of a barrier, or all of one that is not split.
    BarrierWait = Barrier, "BARRIER_WAIT", None;
    /// An attempt at the second half of a barrier.
    BarrierTry = Barrier, "BARRIER_TRY", Success;
    /// The start of a barrier with an event.
    BarrierStart = Barrier, "COLL_BARRIER_NB", None;
    /// A handler-safe lock that another thread held.
    LockWait = Lock, "HSL_LOCK", None;
    /// A short request.
    RequestShort = Message, "AMREQUEST_SHORT", None;
    /// A medium request.
    RequestMedium = Message, "AMREQUEST_MEDIUM", Bytes;
    /// A long request.
    RequestLong = Message, "AMREQUEST_LONG", Bytes;
    /// A short reply.
    ReplyShort = Message, "AMREPLY_SHORT", None;
    /// A medium reply.
    ReplyMedium = Message, "AMREPLY_MEDIUM", Bytes;
    /// A long reply.
    ReplyLong = Message, "AMREPLY_LONG", Bytes;
    /// The handler of a short request.
    HandlerRequestShort = Message, "AMREQUEST_SHORT_HANDLER", None;
    /// The handler of a medium request.
    HandlerRequestMedium = Message, "AMREQUEST_MEDIUM_HANDLER", Bytes;
    /// The handler of a long request.
    HandlerRequestLong = Message, "AMREQUEST_LONG_HANDLER", Bytes;
    /// The handler of a short reply.
    HandlerReplyShort = Message, "AMREPLY_SHORT_HANDLER", None;
    /// The handler of a medium reply.
    HandlerReplyMedium = Message, "AMREPLY_MEDIUM_HANDLER", Bytes;
    /// The handler of a long reply.
    HandlerReplyLong = Message, "AMREPLY_LONG_HANDLER", Bytes;
    /// A poll that the client asked for.
    Poll = Poll, "AMPOLL", Count;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_indices_are_places() {
        for (at, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
            let same = Kind::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{}", kind.name());
        }
    }
}
