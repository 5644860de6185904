//! How a rank's interface is set up: queues, portals, entries, descriptors, and where the buffers
//! lie.

use super::arrivals::{Arrivals, Returns};
use super::assembly::Assembly;
use super::chunks::Chunks;
use super::config::{
    Buffers, CHUNK_BYTES, LARGE_BYTES, LARGE_IN_BUFFER, PortalsConfig, PortalsSizes,
};
use super::core::{PortalsError, Queues, Three};
use super::large::Large;
use super::roles::{self, Role};
use super::segment::operations;
use super::slots::Slots;
use super::stock::{ANY, AT_END, Stock};
use argonet_am::credit::{Costs, Plan, Space};
use argonet_am::lid_cache::LidCache;
use argonet_nic::portals::{
    Descriptor, DescriptorHandle, Entry, NicError, PortalIndex, PortalOptions,
    Portals as Interface, Position,
};
use core::ptr::NonNull;

/// Buffers begin on lines.
const LINE: u64 = 64;

/// Events besides those that are counted.
const SPARE_EVENTS: u64 = 64;

/// Depths of the queues of a rank, in events, so that none ever overflows.
pub(super) type Depths = Three<u64>;

impl Depths {
    pub(super) fn of(sizes: &PortalsSizes, ranks: u32, plan: &Plan, message_bytes: u64) -> Self {
        // Parts of mediums but their last, whose events no credit pays for: as many as the buffers
        // hold.
        let parts = match message_bytes < LARGE_BYTES as u64 {
            true => large_space(sizes).bytes() / message_bytes.max(1),
            false => 0,
        };
        let [ranks, chunks, large] = [ranks, sizes.send_chunks, sizes.large_buffers].map(u64::from);
        // spec P9: one event a credit. Without credits, as many as all ranks have chunks, twice for
        // those of two halves.
        let arrive = match sizes.flow_control {
            true => plan.total(),
            false => 2 * ranks * chunks,
        };
        Self {
            // A question and an answer for each peer, and where they are acknowledged that.
            system: 4 * ranks + SPARE_EVENTS,
            // Replies of two halves, acknowledgements of requests, replies and operations.
            safe: 3 * chunks
                + u64::from(sizes.messages)
                + 2 * u64::from(sizes.reply_chunks)
                + large
                + parts
                + SPARE_EVENTS,
            requests: arrive + u64::from(plan.space().buffers) + large + parts + SPARE_EVENTS,
        }
    }
}

/// Payloads that the buffers of large mediums have room for.
fn large_space(sizes: &PortalsSizes) -> Space {
    Space {
        buffers: sizes.large_buffers,
        chunks: LARGE_IN_BUFFER as u32,
        costs: Costs {
            chunk_bytes: LARGE_BYTES as u32,
            ..Costs::OF_TEXT
        },
    }
}

/// Bytes of each part, in their order.
fn parts(sizes: &PortalsSizes, plan: &Plan) -> [u64; 6] {
    let chunks = |count: u32| u64::from(count) * CHUNK_BYTES as u64;
    let large = large_space(sizes).bytes();
    [
        chunks(sizes.send_chunks),
        chunks(sizes.reply_chunks),
        plan.space().bytes(),
        large,
        large,
        2 * u64::from(sizes.large_slots) * LARGE_BYTES as u64,
    ]
}

/// Bytes of buffers that a rank needs.
pub(super) fn buffer_bytes(sizes: &PortalsSizes, plan: &Plan) -> u64 {
    let parts = parts(sizes, plan);
    parts.iter().map(|bytes| bytes.next_multiple_of(LINE)).sum()
}

/// Everything that is made once.
pub(super) struct Parts {
    pub(super) queues: Queues,
    pub(super) send_chunks: Chunks,
    pub(super) bounce: [DescriptorHandle; 2],
    pub(super) reply_chunks: Chunks,
    pub(super) slots: Slots,
    pub(super) system: DescriptorHandle,
    pub(super) arrivals: Arrivals,
    pub(super) returns: Returns,
}

/// Divides the buffers.
fn divide(
    buffers: Buffers,
    config: &PortalsConfig,
    plan: &Plan,
) -> Result<[(NonNull<u8>, u64); 6], PortalsError> {
    let Buffers { start, len_bytes } = buffers;
    let needed = buffer_bytes(&config.sizes, plan);
    if len_bytes < needed {
        return Err(PortalsError::Buffers {
            rank: config.rank,
            got: len_bytes,
            needed,
        });
    }
    let mut at = 0;
    Ok(parts(&config.sizes, plan).map(|bytes| {
        // SAFETY: the parts lie one behind the other, and their sum was compared with the length.
        let part = unsafe { start.add(at as usize) };
        at += bytes.next_multiple_of(LINE);
        (part, bytes)
    }))
}

/// Sets all up but the segment.
///
/// # Safety
/// As `Portals::new`.
pub(super) unsafe fn set_up(
    nic: &impl Interface,
    buffers: Buffers,
    config: &PortalsConfig,
    plan: &Plan,
    message_bytes: u64,
) -> Result<Parts, PortalsError> {
    let sizes = &config.sizes;
    let depths = Depths::of(sizes, config.ranks, plan, message_bytes);
    let queues = depths.map(|events| nic.queue_alloc(events))?;
    let Queues {
        system,
        safe,
        requests,
    } = queues;
    let of_portals = [
        None,
        Some(requests),
        Some(requests),
        Some(requests),
        Some(safe),
        Some(safe),
        Some(safe),
        Some(system),
    ];
    for (portal, queue) in (0..).zip(of_portals) {
        nic.portal_alloc(PortalOptions::default(), queue, Some(PortalIndex(portal)))?;
    }
    let [send, reply, receive, of_requests, of_replies, slots] = divide(buffers, config, plan)?;
    let bind = |(start, bytes): (NonNull<u8>, u64), descriptor| {
        // SAFETY: the caller promises that the buffers stay mapped and are used through the
        // interface.
        unsafe { nic.bind(start, bytes, descriptor) }
    };
    let source = |role: Role, queue| Descriptor {
        queue: Some(queue),
        user: role.word(0),
        ..Descriptor::SILENT
    };
    let attach = |portal, (start, bytes): (NonNull<u8>, u64), role: Role, queue| {
        let entry = Entry {
            gets: false,
            events: AT_END,
            queue: Some(queue),
            user: role.word(0),
            ..Entry::OPEN
        };
        // SAFETY: as for `bind`.
        unsafe { nic.attach(portal, Position::Tail, ANY, start, bytes, entry) }
    };
    attach(roles::REPLIES, send, Role::Reply, safe)?;
    attach(roles::SYSTEM, (send.0, 0), Role::System, system)?;
    let [put, get] = operations(safe);
    let large_space = large_space(sizes);
    let stock = |role, portal, queue, start, space: &Space, basin| {
        // SAFETY: the part is of the space's length, and used for nothing else.
        unsafe { Stock::new(nic, (role, portal, queue), start, space, basin) }
    };
    let large = |role, portal, queue, (start, _), most| {
        Ok::<_, NicError>(Large {
            buffers: stock(role, portal, queue, start, &large_space, false)?,
            parts: Assembly::new(most),
        })
    };
    let chunks = |part: (NonNull<u8>, u64), count, role| {
        let descriptor = bind(part, source(role, safe))?;
        // SAFETY: the part is as long as its chunks, covered by the descriptor, and used for
        // nothing else.
        let chunks = unsafe { Chunks::new(part.0, count, CHUNK_BYTES, descriptor, config.mode) };
        Ok::<_, NicError>(chunks)
    };
    let at_once = depths.requests as usize;
    // One for each chunk.
    let answers = sizes.send_chunks as usize;
    let (space, role) = (plan.space(), Role::RequestBuffer);
    Ok(Parts {
        queues,
        send_chunks: chunks(send, sizes.send_chunks, Role::SentRequest)?,
        bounce: [bind(send, put)?, bind(send, get)?],
        reply_chunks: chunks(reply, sizes.reply_chunks, Role::SentReply)?,
        // SAFETY: as of `chunks`, for twice as many slots.
        slots: unsafe { Slots::new(slots.0, sizes.large_slots, bind(slots, put)?) },
        system: bind((send.0, 0), source(Role::SentSystem, system))?,
        arrivals: Arrivals {
            requests: stock(role, roles::REQUESTS, requests, receive.0, space, true)?,
            large: large(
                Role::LargeRequest,
                roles::LARGE_REQUESTS,
                requests,
                of_requests,
                at_once,
            )?,
            halves: LidCache::new(at_once, at_once),
        },
        returns: Returns {
            large: large(
                Role::LargeReply,
                roles::LARGE_REPLIES,
                safe,
                of_replies,
                answers,
            )?,
            halves: LidCache::new(answers, answers),
        },
    })
}
