//! Our side: put, get and atomic operations.
//!
//! Rank 0 works on the memory of rank 1, which waits.

use super::metric::Load;
use super::pair::{LARGEST, Pair};
use argonet::Result;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn by_rank_0(
    pair: &Pair<'_>,
    load: Load,
    mut operation: impl FnMut(&mut [u8], u64) -> Result<()>,
) -> Result<Duration> {
    let start = Instant::now();
    if pair.rank().0 == 0 {
        pair.with_private(|bytes| {
            (0..load.count).try_for_each(|i| operation(&mut bytes[..load.bytes], i))
        })?;
    }
    Ok(start.elapsed())
}

/// Blocking put of one word.
pub(crate) fn put_word(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let to = pair.word();
    by_rank_0(pair, load, |_, i| pair.world.put_value(to, i))
}

/// Blocking get of one word.
pub(crate) fn get_word(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let from = pair.word();
    by_rank_0(pair, load, |_, _| {
        black_box(pair.world.get_value(from)?);
        Ok(())
    })
}

/// Puts of one size, one after the other.
pub(crate) fn put_flood(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let to = pair.bulk(load.bytes);
    by_rank_0(pair, load, |bytes, _| pair.world.put_from(to, bytes))
}

/// Gets of one size, one after the other.
pub(crate) fn get_flood(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let from = pair.bulk(load.bytes);
    by_rank_0(pair, load, |bytes, _| pair.world.get_into(from, bytes))
}

/// Puts of one size that are all started before one is waited for.
pub(crate) fn put_started(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let (to, start) = (pair.bulk(load.bytes), Instant::now());
    if pair.rank().0 == 0 {
        pair.with_private(|bytes| {
            let bytes = &bytes[..load.bytes];
            pair.world
                .scope(|s| (0..load.count).try_for_each(|_| s.put(to, bytes)))
        })?;
    }
    Ok(start.elapsed())
}

/// Gets of one size, of which as many are started as this rank has room for before one is waited
/// for.
pub(crate) fn get_started(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let (from, start, mut left) = (pair.bulk(load.bytes), Instant::now(), load.count as usize);
    while pair.rank().0 == 0 && left > 0 {
        left -= pair.with_private(|bytes| {
            let places = bytes[..LARGEST].chunks_exact_mut(load.bytes).take(left);
            let count = places.len();
            pair.world
                .scope(|s| places.into_iter().try_for_each(|place| s.get(from, place)))?;
            Ok::<_, argonet::Error>(count)
        })?;
    }
    Ok(start.elapsed())
}

/// Blocking fetch-and-add.
pub(crate) fn fetch_add(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let at = pair.word();
    by_rank_0(pair, load, |_, i| {
        black_box(pair.world.fetch_add(at, i)?);
        Ok(())
    })
}
