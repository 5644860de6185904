//! Reports of the memory that a rank keeps for its rails.

use super::core::Core;
use super::peer::{Inbound, Outbound};
use crate::channel::rail::Rails;
use crate::connections::Connections;
use crate::ledger::Held;
use core::sync::atomic::Ordering::Relaxed;

impl<R: Rails> Core<R> {
    /// Memory that is kept for a peer that was used.
    pub(super) fn held(inbound: &Inbound<R>, outbound: &Outbound<R>) -> Held {
        let rails = inbound.rails.iter();
        let first = inbound.wire.as_ref().and_then(|wire| wire.rail());
        let buffers = inbound.receive_stream.buffer_bytes()
            + inbound.parked.buffer_bytes()
            + inbound.replies.buffer_bytes()
            + rails
                .map(|rail| rail.receive_stream.buffer_bytes())
                .sum::<usize>()
            + outbound.send_stream.buffer_bytes()
            + outbound.operations.buffer_bytes();
        Held {
            state_bytes: (Self::UNUSED_BYTES + Self::USED_BYTES) as u64,
            buffer_bytes: buffers as u64,
            descriptors: u32::from(first.is_some()) + inbound.rails.len() as u32,
        }
    }

    /// Memory that is kept, and counts of connections that have come.
    ///
    /// Peers that another thread serves just now count without their buffers.
    pub(super) fn connections(&self) -> Connections {
        let all = self.all_used().filter_map(|peer| {
            let inbound = peer.inbound.try_lock()?;
            let outbound = peer.outbound.try_lock()?;
            Some(Self::held(&inbound, &outbound))
        });
        let held = all.fold(Held::default(), |sum, one| Held {
            state_bytes: sum.state_bytes + one.state_bytes,
            buffer_bytes: sum.buffer_bytes + one.buffer_bytes,
            descriptors: sum.descriptors + one.descriptors,
        });
        self.gauge_doors();
        Connections {
            held: Some(held),
            ..self.doors.read()
        }
    }

    /// Records how many connections have come and are open, if that has changed.
    #[inline]
    pub(super) fn gauge_doors(&self) {
        let open = (self.used.load(Relaxed), self.connected.load(Relaxed));
        let came = self.rails.came();
        self.doors.record(open, came, || self.rails.callers());
    }
}
