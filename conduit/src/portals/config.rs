//! How the conduit is set up.

use crate::SegmentLen;
use crate::threads::ThreadMode;
use argonet_am::credit::{Plan, PlanError, Rules, Wishes};
use argonet_am::{MAX_MEDIUM, Registered};
use argonet_base::JobRank;
use argonet_segment::Directory;
use core::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a chunk: the largest request or reply that travels in one message.
pub const CHUNK_BYTES: usize = 1024;

/// Bytes of the longest message that an interface must at least carry.
///
/// All arguments fit it, so only payloads go in parts.
pub const SHORTEST_MESSAGE: u64 = 512;

/// Bytes of the payload of a large medium as it travels: aligned, so that all lie aligned in their
/// buffers.
pub(super) const LARGE_BYTES: usize = MAX_MEDIUM;
pub(super) const LARGE_ALIGN: usize = 64;

/// Payloads of large mediums that one buffer for them holds at least.
pub(super) const LARGE_IN_BUFFER: usize = 4;

/// Tickets that polls for requests need in hand (spec P2).
pub(super) const HELD_TICKETS: u32 = 2;

/// Least tickets: those, and two for a request in two messages.
const LEAST_TICKETS: u32 = HELD_TICKETS + 2;

/// Sizes and limits: the `GASNET_PORTAL_*` of GASNet's Portals conduit, with the same defaults
/// where it has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortalsSizes {
    /// Messages of this rank under way (`MSG_LIMIT`).
    pub messages: u32,
    /// Temporary descriptors (`NUM_TMPMD`).
    pub temporaries: u32,
    /// Whether longs that fit a chunk travel in one (`PACKED_LONG`).
    pub packed_longs: bool,
    /// Whether requests are paid with credits (`FLOW_CONTROL`).
    ///
    /// If not, a request without room at its target is sent again until there is room.
    pub flow_control: bool,
    /// Chunks that requests are sent from and answered into (`SB_CHUNKS`).
    pub send_chunks: u32,
    /// Chunks that replies are sent from (`RPL_CHUNKS`).
    pub reply_chunks: u32,
    /// Events that a poll takes of the queue that is always safe to poll; 0: all (`SAFE_LIMIT`).
    pub safe_events: u32,
    /// The same of the queue of requests (`AM_LIMIT`).
    pub am_events: u32,
    /// The same of the system queue (`SYS_LIMIT`).
    pub system_events: u32,
    /// Buffers that payloads of large mediums arrive in, for requests and for replies, each of so
    /// many payloads of the largest size.
    pub large_buffers: u32,
    /// Payloads of large mediums that are sent at once, for requests and for replies.
    pub large_slots: u32,
    /// Rules of the credit machine.
    pub rules: Rules,
    /// Wishes for the plan.
    pub wishes: Wishes,
}

impl Default for PortalsSizes {
    fn default() -> Self {
        Self {
            messages: 250,
            temporaries: 1024,
            packed_longs: true,
            flow_control: true,
            send_chunks: 1024,
            reply_chunks: 64,
            safe_events: 12,
            am_events: 8,
            system_events: 0,
            large_buffers: 4,
            large_slots: 16,
            rules: Rules::default(),
            wishes: Wishes::default(),
        }
    }
}

impl PortalsSizes {
    /// Every number at the smallest with which a peer that never polls does not keep others out.
    #[must_use]
    pub fn smallest() -> Self {
        let rules = Rules::default();
        Self {
            messages: LEAST_TICKETS,
            temporaries: 1,
            send_chunks: 4,
            reply_chunks: 1,
            safe_events: 1,
            am_events: 1,
            system_events: 1,
            large_buffers: 1,
            large_slots: 4,
            wishes: Wishes {
                share: Some(rules.least.into()),
                bank: Some(8),
                space_bytes: None,
            },
            rules: Rules {
                epoch_requests: 4,
                ..rules
            },
            ..Self::default()
        }
    }

    /// How the receive space of each of so many ranks is dealt out.
    ///
    /// A rank is a peer of its own here: its messages to itself take the same way.
    ///
    /// # Errors
    /// Numbers that do not fit each other, with the sums.
    pub fn plan(&self, ranks: u32) -> Result<Plan, PlanError> {
        let within = |what, got: u32, from: u32, to: u32| {
            let (got, from, to) = (got.into(), from.into(), to.into());
            match (from..=to).contains(&got) {
                true => Ok(()),
                false => Err(PlanError::Range {
                    what,
                    got,
                    from,
                    to,
                }),
            }
        };
        within(
            "messages under way (GASNET_PORTAL_MSG_LIMIT)",
            self.messages,
            LEAST_TICKETS,
            u16::MAX.into(),
        )?;
        within(
            "temporary descriptors (GASNET_PORTAL_NUM_TMPMD)",
            self.temporaries,
            1,
            1 << 20,
        )?;
        within(
            "chunks for requests (GASNET_PORTAL_SB_CHUNKS)",
            self.send_chunks,
            1,
            u16::MAX.into(),
        )?;
        within(
            "chunks for replies (GASNET_PORTAL_RPL_CHUNKS)",
            self.reply_chunks,
            1,
            u16::MAX.into(),
        )?;
        within("buffers for large mediums", self.large_buffers, 1, 1 << 10)?;
        within("large mediums under way", self.large_slots, 1, 1 << 10)?;
        Plan::new(ranks.saturating_add(1), &self.rules, self.wishes)
    }
}

/// Memory of this rank that peers can be given access to by the interface.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Where it begins, on a boundary of 64 bytes.
    pub start: NonNull<u8>,
    /// How long it is.
    pub len_bytes: u64,
}

/// The parts of a [`Portals`](super::Portals), beside its interface.
pub struct PortalsConfig {
    /// This rank.
    pub rank: JobRank,
    /// Ranks of the job.
    pub ranks: u32,
    /// Threads that will call.
    pub mode: ThreadMode,
    /// Sizes and limits.
    pub sizes: PortalsSizes,
    /// Segments as clients have their addresses.
    pub directory: Arc<Directory>,
    /// Segments as the interface has their addresses; the same where they are mapped once.
    pub reached: Arc<Directory>,
    /// Handlers that exist, the same on all ranks.
    pub registered: Registered,
    /// Attached bytes of a rank's segment, as that rank publishes them, after
    /// [`Conduit::segment_grown`](crate::Conduit::segment_grown).
    pub segment_len: SegmentLen,
}
