//! A receive to which a call has come: where its bytes go.
#![allow(unsafe_code)]

use argonet_segment::{SharedBytes, bulk};

/// Memory of a call.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) *mut u8);

// SAFETY: the memory is the call's until it is complete, for any thread that goes on with it;
// handlers put bytes there under the mailbox's lock, and the call reads them only when the mailbox
// says that all are there.
unsafe impl Send for Place {}

/// A receive of which something is missing, or that the call has not looked at since.
pub(super) struct Posted {
    place: Place,
    pub(super) len: usize,
    missing: usize,
    /// Whether pieces may come.
    pub(super) offered: bool,
    pub(super) complete: bool,
}

impl Posted {
    /// Nothing has come yet.
    pub(super) fn new(place: Place, len: usize) -> Self {
        Self {
            place,
            len,
            missing: len,
            offered: false,
            complete: false,
        }
    }

    /// Puts bytes where they belong; `None` if they do not.
    pub(super) fn place(
        &mut self,
        offset: usize,
        payload: SharedBytes<'_>,
        piece: bool,
    ) -> Option<()> {
        let len = payload.len();
        let fits = offset <= self.len && len <= self.len - offset && len <= self.missing;
        if self.complete || piece != self.offered || !fits || (!piece && len != self.len) {
            return None;
        }
        if len > 0 {
            // SAFETY: the bytes lie inside the `self.len` bytes at the place, which are the call's
            // and writable until the receive is complete; it is not while bytes are missing. The
            // payload may lie where its sender can still write, which the bulk routine allows; it
            // does not overlap with the memory of a call of this process.
            unsafe { bulk::copy(self.place.0.add(offset), payload.as_ptr(), len) };
        }
        self.missing -= len;
        self.complete = self.missing == 0;
        Some(())
    }
}
