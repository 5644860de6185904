//! The state of one peer.

use super::lock::ClassLock;
use super::ring::{Reader, Writer};
use argonet_am::MessageClass;
use argonet_base::cpu;
use core::sync::atomic::{AtomicU64, Ordering};

/// The state of one peer: positions in the four rings shared with it, and their locks.
///
/// The lock of the inbound request class also covers the outbound reply class: replies are sent
/// only by handlers of requests that its holder delivers.
#[derive(Default)]
pub(super) struct Peer {
    pub(super) out_request: Writer,
    pub(super) out_reply: Writer,
    pub(super) in_request: Reader,
    pub(super) in_reply: Reader,
    pub(super) out_request_lock: ClassLock,
    pub(super) in_request_lock: ClassLock,
    pub(super) in_reply_lock: ClassLock,
    /// See [`Rest`].
    pub(super) rest: Rest,
}

impl Peer {
    /// Where this rank reads from the peer.
    #[inline(always)]
    pub(super) fn reader(&self, class: MessageClass) -> &Reader {
        match class {
            MessageClass::Request => &self.in_request,
            MessageClass::Reply => &self.in_reply,
        }
    }
}

/// After all that a peer has sent has been taken, its rings are left alone for a moment.
///
/// A reader that is faster than the writer would look at the writer's line again and again, and
/// take it away after every message: each then costs a transfer of the line, some 70 ns. Left
/// alone, the writer fills lines at its own speed. An answer cannot come within so short a time,
/// so ping-pong does not suffer; a message right behind another is delivered with the next batch.
/// Where several messages lay there more will come: the rest is as many times as long, within
/// [`LONGEST`](Self::LONGEST).
///
/// Holds the tick at which the rest ends, 0 for none. A hint: any thread may store any value.
#[derive(Default)]
pub(super) struct Rest(AtomicU64);

impl Rest {
    /// Pauses in the longest rest: about a microsecond.
    pub(super) const LONGEST: u64 = 8;

    /// Begins after `taken` messages.
    #[inline(always)]
    pub(super) fn begin(&self, taken: u32) {
        let ticks = u64::from(taken).min(Self::LONGEST) * cpu::SHORT_PAUSE_TICKS;
        self.0
            .store(cpu::ticks().wrapping_add(ticks) | 1, Ordering::Relaxed);
    }

    /// Whether it goes on.
    ///
    /// Ends it when its time is over.
    #[inline(always)]
    pub(super) fn goes_on(&self) -> bool {
        let end = self.0.load(Ordering::Relaxed);
        if end == 0 {
            return false;
        }
        // Where counters of processors differ by more than a rest, there is none.
        let left = end.wrapping_sub(cpu::ticks());
        if left <= Self::LONGEST * cpu::SHORT_PAUSE_TICKS + 1 {
            return true;
        }
        self.0.store(0, Ordering::Relaxed);
        false
    }
}

// With the directory's 16 bytes a peer costs at most 64 bytes before it is used.
static_assertions::const_assert!(size_of::<Peer>() <= 48);
