//! Buffers of negotiated payloads, on conduits where these are private memory of the process.

use crate::conduit::{PrepareRequest, Prepared};
use argonet_am::{Message, Payload};
use argonet_base::HandlerIndex;
use argonet_base::kept::Kept;
use argonet_segment::SharedBytes;
use core::sync::atomic::{AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The number of the next payload of any conduit of the process.
///
/// One that outlives its conduit must not name that of another. Relaxed, as it only counts.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Buffers from prepare to commit or cancel, by the number of their payload, each with the room
/// that it has reserved.
pub(crate) struct PreparedBuffers<T>(Mutex<BTreeMap<usize, (Kept<u8>, T)>>);

impl<T> Default for PreparedBuffers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PreparedBuffers<T> {
    /// Makes a buffer of `capacity` bytes, for a message that has reserved the room `taken`.
    pub(crate) fn add(&self, want: &PrepareRequest, capacity: usize, taken: T) -> Prepared {
        let buffer = Kept::new(vec![0; capacity.max(1)].into());
        let start = buffer.as_ptr().cast::<u8>();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.0.lock().insert(number, (buffer, taken));
        // SAFETY: the buffer is kept, and touched by the client alone, until commit or cancel,
        // which find it by a number that no other payload of the process has.
        unsafe { Prepared::new(*want, start, capacity, number, 0) }
    }

    /// Takes a buffer out, and the room that its message has reserved.
    ///
    /// # Panics
    /// If the conduit has not prepared it.
    pub(crate) fn take(&self, prepared: &Prepared) -> (Box<[u8]>, T) {
        let (number, _) = prepared.place();
        let buffer = self.0.lock().remove(&number);
        let (buffer, taken) = buffer.expect("a payload that this conduit has prepared");
        (buffer.give(), taken)
    }
}

/// The message that a commit sends.
pub(crate) fn committed<'a>(
    prepared: &Prepared,
    handler: HandlerIndex,
    args: &'a [u32],
    bytes: SharedBytes<'a>,
) -> Message<'a> {
    Message {
        handler,
        args,
        payload: match prepared.offset() {
            Some(offset) => Payload::Long(bytes, offset),
            None => Payload::Medium(bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_am::MessageClass;
    use argonet_base::JobRank;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Memory of a conduit that is gone may be given to the next one.
    #[test]
    fn a_payload_that_outlives_its_conduit_names_no_other() {
        let want = PrepareRequest {
            to: JobRank(1),
            class: MessageClass::Request,
            nargs: 0,
            least: 1,
            most: 64,
            offset: None,
        };
        let first = PreparedBuffers::default();
        let left = first.add(&want, 64, ());
        drop(first);
        let second = PreparedBuffers::default();
        let others = [(); 8].map(|()| second.add(&want, 64, ()));
        let taken = catch_unwind(AssertUnwindSafe(|| second.take(&left)));
        assert!(taken.is_err());
        for other in &others {
            assert_eq!(second.take(other).0.len(), 64);
        }
    }
}
