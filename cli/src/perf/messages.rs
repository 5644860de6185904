//! Our side: active messages, written as a user would.

use super::metric::Load;
use super::pair::Pair;
use argonet::{Am, Payload, Rank, Result, World};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Requests that this rank has handled in the current chunk.
///
/// One thread runs all handlers.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Replies that this rank has handled in the current chunk.
static REPLIES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Memory that handlers copy payloads to.
    static COPY: RefCell<Vec<u8>> = RefCell::new(vec![0; argonet::MAX_MEDIUM]);
}

/// Counts without a locked instruction: only one thread does.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn copy_out(payload: Payload<'_>) {
    COPY.with_borrow_mut(|to| {
        // A medium is never longer than the buffer.
        let copied = payload.copy_to(0, &mut to[..payload.len()]);
        debug_assert!(copied.is_ok());
    });
}

argonet::am! {
    /// Ends a round trip or a flood.
    fn answer(_ctx, _n: u32) { count(&REPLIES); }
    /// A request that is answered without a payload.
    fn ask(ctx, n: u32) {
        count(&REQUESTS);
        let sent = ctx.reply(&answer, n);
        debug_assert!(sent.is_ok());
    }
    /// A request that is answered with the payload it brought.
    fn ask_echo(ctx, n: u32) {
        count(&REQUESTS);
        let sent = ctx.echo(&answer, n);
        debug_assert!(sent.is_ok());
    }
    /// One way; a payload stays unread.
    fn drop_it(_ctx, _n: u32) { count(&REQUESTS); }
    /// One way; the payload is copied out.
    fn keep_it(ctx, _n: u32) {
        count(&REQUESTS);
        copy_out(ctx.payload());
    }
}

/// Resets the counts, between two barriers.
pub(crate) fn reset() {
    REQUESTS.store(0, Ordering::Relaxed);
    REPLIES.store(0, Ordering::Relaxed);
}

/// Sends rank 1 the message that it waits for in [`wait_for_wake`].
pub(crate) fn wake(world: &World) -> Result<()> {
    world.send(Rank(1), &answer, 0)
}

/// Waits for that.
pub(crate) fn wait_for_wake(world: &World) -> Result<()> {
    world.wait_until(|| replies() == 1)
}

fn replies() -> u64 {
    REPLIES.load(Ordering::Relaxed)
}

fn round_trips(
    pair: &Pair<'_>,
    load: Load,
    send: impl Fn(&[u8], u32) -> Result<()>,
) -> Result<Duration> {
    let world = pair.world;
    let start = Instant::now();
    match pair.rank().0 {
        0 => pair.with_private(|bytes| {
            for i in 1..=load.count {
                send(&bytes[..load.bytes], i as u32)?;
                world.wait_until(|| replies() == i)?;
            }
            Ok::<_, argonet::Error>(())
        })?,
        1 => world.wait_until(|| REQUESTS.load(Ordering::Relaxed) == load.count)?,
        _ => {}
    }
    Ok(start.elapsed())
}

/// Short request, short reply.
pub(crate) fn short_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    round_trips(pair, load, |_, i| pair.world.send(Rank(1), &ask, i))
}

/// Medium request, answered with the same bytes.
pub(crate) fn medium_echo(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    round_trips(pair, load, |bytes, i| {
        pair.world.send_medium(Rank(1), &ask_echo, i, bytes)
    })
}

/// Medium request with a payload that no handler reads, short reply.
pub(crate) fn medium_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    round_trips(pair, load, |bytes, i| {
        pair.world.send_medium(Rank(1), &ask, i, bytes)
    })
}

/// Long request to the same place each time, with a payload that no handler reads, short reply.
pub(crate) fn long_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let to = pair.bulk(load.bytes);
    round_trips(pair, load, |bytes, i| {
        pair.world.send_long(to, &ask, i, bytes)
    })
}

/// Sends as fast as it goes; the receiver answers when it has handled all.
fn flood(pair: &Pair<'_>, load: Load, send: impl Fn(&[u8], u32) -> Result<()>) -> Result<Duration> {
    let world = pair.world;
    let start = Instant::now();
    match pair.rank().0 {
        0 => pair.with_private(|bytes| {
            for i in 1..=load.count {
                send(&bytes[..load.bytes], i as u32)?;
            }
            world.wait_until(|| replies() == 1)
        })?,
        1 => {
            world.wait_until(|| REQUESTS.load(Ordering::Relaxed) == load.count)?;
            world.send(Rank(0), &answer, 0)?;
        }
        _ => {}
    }
    Ok(start.elapsed())
}

/// Short messages one way.
pub(crate) fn short_flood(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    flood(pair, load, |_, i| pair.world.send(Rank(1), &drop_it, i))
}

fn medium_flood_to(pair: &Pair<'_>, load: Load, am: &Am<u32>) -> Result<Duration> {
    flood(pair, load, |bytes, i| {
        pair.world.send_medium(Rank(1), am, i, bytes)
    })
}

/// Mediums one way, unread.
pub(crate) fn medium_flood_unread(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    medium_flood_to(pair, load, &drop_it)
}

/// Mediums one way, copied out.
pub(crate) fn medium_flood_copied(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    medium_flood_to(pair, load, &keep_it)
}

/// Longs one way, always to the same place.
pub(crate) fn long_flood(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let to = pair.bulk(load.bytes);
    flood(pair, load, |bytes, i| {
        pair.world.send_long(to, &drop_it, i, bytes)
    })
}
