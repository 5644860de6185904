//! How many requests may be under way: as many as their receiver can keep.

use crate::channel::frame::LARGEST_CHARGE;
use argonet_am::record::RecordError;

/// The sender's account of requests, in bytes as [`charge`](crate::channel::frame::charge) counts
/// them, from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    used: u64,
    handled: u64,
    /// Bytes that may be sent and not handled.
    window: u64,
    /// Most bytes that were sent and not handled since the last `take_peak`; updated where that
    /// number decreases.
    peak: u64,
}

impl Grant {
    /// With the same window as the peer's [`Parked`].
    pub(crate) fn new(window: usize) -> Self {
        assert!(
            window >= LARGEST_CHARGE,
            "a window has room for any request"
        );
        Self {
            used: 0,
            handled: 0,
            window: window as u64,
            peak: 0,
        }
    }

    // spec T8: the rest waits for receive space of the peer.
    /// Whether a request of that charge may be sent, besides those for which `reserved` is kept.
    #[inline]
    pub(crate) fn allows(&self, charge: usize, reserved: usize) -> bool {
        self.used + (charge + reserved) as u64 <= self.handled + self.window
    }

    #[inline]
    pub(crate) fn use_up(&mut self, charge: usize) {
        self.used += charge as u64;
        debug_assert!(self.used <= self.handled + self.window);
    }

    /// Takes the peer's count of handled bytes.
    ///
    /// An old count is passed over.
    ///
    /// # Errors
    /// The count is above the bytes sent.
    #[inline]
    pub(crate) fn handle(&mut self, handled: u64) -> Result<(), RecordError> {
        if handled > self.used {
            return Err(RecordError::Account {
                what: "requests are handled",
                got: handled,
                most: self.used,
            });
        }
        self.peak = self.peak.max(self.in_use());
        self.handled = self.handled.max(handled);
        Ok(())
    }

    /// More or less may be under way from now on; not less than is.
    pub(crate) fn set_window(&mut self, window: usize) {
        self.window = window as u64;
        debug_assert!(self.in_use() <= self.window);
    }

    /// Bytes sent and not handled.
    #[inline]
    pub(crate) fn in_use(&self) -> u64 {
        self.used - self.handled
    }

    /// Most bytes that were sent and not handled at a time since the last call.
    pub(crate) fn take_peak(&mut self) -> u64 {
        core::mem::take(&mut self.peak).max(self.in_use())
    }

    /// Requests that were sent, and that of them the peer has handled.
    #[inline]
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.used, self.handled)
    }

    /// Whether less than half of the window is left.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.in_use() > self.window / 2
    }
}

/// Messages that were set aside: heads, and payloads of mediums, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    bytes: Vec<u8>,
    /// Where the first begins.
    at: usize,
}

impl Aside {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Bytes that it holds.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees its buffer if nothing waits.
    pub(crate) fn free(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    pub(crate) fn push(&mut self, message: &[u8]) {
        if self.at > self.len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(message);
    }

    /// The bytes from the first on.
    pub(crate) fn first(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// The first was handled.
    pub(crate) fn pass(&mut self, len: usize) {
        self.at += len;
        if self.is_empty() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

/// The receiver's account, and requests that had to be set aside, because their reply had no room
/// or the rank made no call.
#[derive(Debug)]
pub(crate) struct Parked {
    window: u64,
    arrived: u64,
    handled: u64,
    /// Requests that have arrived since the last `take_count`.
    count: u32,
    requests: Aside,
}

impl Parked {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            window: window as u64,
            arrived: 0,
            handled: 0,
            count: 0,
            requests: Aside::default(),
        }
    }

    /// Bytes of the buffer for frames that were set aside.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.requests.buffer_bytes()
    }

    /// Frees that buffer if nothing was set aside.
    pub(crate) fn free_buffer(&mut self) {
        self.requests.free();
    }

    /// A request has arrived.
    ///
    /// # Errors
    /// The peer has sent more than was granted.
    #[inline]
    pub(crate) fn arrive(&mut self, charge: usize) -> Result<(), RecordError> {
        let (got, most) = (self.arrived + charge as u64, self.handled + self.window);
        if got > most {
            return Err(RecordError::Account {
                what: "requests are sent",
                got,
                most,
            });
        }
        self.arrived = got;
        self.count += 1;
        Ok(())
    }

    /// How many have arrived since the last call.
    #[inline]
    pub(crate) fn take_count(&mut self) -> u32 {
        core::mem::take(&mut self.count)
    }

    /// The peer may have more or less under way from now on; not less than has arrived.
    pub(crate) fn set_window(&mut self, window: usize) {
        self.window = window as u64;
        debug_assert!(self.owed() <= self.window);
    }

    /// Requests that were set aside are not handled any more, as the peer is lost.
    pub(crate) fn forget(&mut self) {
        self.requests = Aside::default();
        self.handled = self.arrived;
    }

    /// Bytes that have arrived and were not handled.
    pub(crate) fn owed(&self) -> u64 {
        self.arrived - self.handled
    }

    /// A request was handled.
    #[inline]
    pub(crate) fn handle(&mut self, charge: usize) {
        self.handled += charge as u64;
        debug_assert!(self.handled <= self.arrived);
    }

    /// Requests that were handled, which the peer learns.
    #[inline]
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Sets a request aside.
    #[cold]
    pub(crate) fn park(&mut self, request: &[u8]) {
        self.requests.push(request);
        debug_assert!(self.requests.len() as u64 <= self.window);
    }

    /// The bytes from the first on.
    pub(crate) fn first(&mut self) -> &mut [u8] {
        self.requests.first()
    }

    /// The first was handled.
    pub(crate) fn pass(&mut self, len: usize) {
        self.requests.pass(len);
    }
}
