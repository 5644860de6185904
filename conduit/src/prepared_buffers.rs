//! Buffers of negotiated payloads, on conduits where these are private memory of the process.

use crate::conduit::{PrepareRequest, Prepared};
use argonet_am::{Message, Payload};
use argonet_base::HandlerIndex;
use argonet_base::kept::Kept;
use argonet_segment::SharedBytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Buffers from prepare to commit or cancel, by address, each with the room that it has reserved.
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
        self.0.lock().insert(start.addr(), (buffer, taken));
        // SAFETY: the buffer is kept, and touched by the client alone, until commit or cancel.
        unsafe { Prepared::new(*want, start, capacity, start.addr(), 0) }
    }

    /// Takes a buffer out, and the room that its message has reserved.
    ///
    /// # Panics
    /// If the conduit has not prepared it.
    pub(crate) fn take(&self, prepared: &Prepared) -> (Box<[u8]>, T) {
        let (position, _) = prepared.place();
        let buffer = self.0.lock().remove(&position);
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
