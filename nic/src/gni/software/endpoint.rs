//! Endpoints.

use super::mailbox::{Receiving, Sending};
use super::queue::Ring;
use super::shared::Shared;
use crate::gni::{EventData, GniError, NicAddress};
use core::sync::atomic::Ordering;
use parking_lot::Mutex;
use std::sync::Arc;

/// An endpoint of an interface in software.
pub struct Endpoint {
    /// Keeps what mailboxes lie in mapped.
    pub(super) shared: Arc<Shared>,
    pub(super) ring: Arc<Ring>,
    pub(super) to: NicAddress,
    /// The peer's.
    pub(super) place: u32,
    pub(super) data: EventData,
    /// Differs from those of all other endpoints of the interface.
    pub(super) number: u64,
    pub(super) sending: Mutex<Option<Sending>>,
    pub(super) receiving: Mutex<Option<Receiving>>,
}

impl Endpoint {
    pub(super) fn new(
        shared: &Arc<Shared>,
        ring: &Arc<Ring>,
        to: NicAddress,
        data: EventData,
    ) -> Result<Self, GniError> {
        Ok(Self {
            shared: Arc::clone(shared),
            ring: Arc::clone(ring),
            to,
            place: shared.peer(to)?,
            data,
            number: shared.endpoints.fetch_add(1, Ordering::Relaxed),
            sending: Mutex::new(None),
            receiving: Mutex::new(None),
        })
    }
}

/// A mailbox that is opened once more goes on behind what was released.
impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.leave_mailbox(self);
    }
}
