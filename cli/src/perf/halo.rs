//! The faces of a cube of doubles, put into the cube of the neighbor as a halo exchange does,
//! beside loops written by hand.
#![allow(unsafe_code)]

use super::metric::Load;
use super::pair::Pair;
use argonet::{GlobalSlice, Rank, Result, Section, raw};
use std::hint::black_box;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Elements along each edge.
const EDGE: usize = 64;
const ALL: usize = EDGE * EDGE * EDGE;
/// Bytes of a face.
pub(super) const FACE: usize = EDGE * EDGE * 8;

/// Faces by the dimension that is fixed in them; the last one lies together.
#[derive(Clone, Copy)]
enum Face {
    /// One plane of memory.
    First,
    /// Rows.
    Middle,
    /// Single elements.
    Last,
}

impl Face {
    /// The first or the last plane.
    fn section(self, far: bool) -> Section {
        let all = || 0..EDGE;
        let fixed = if far { EDGE - 1..EDGE } else { 0..1 };
        let ranges = match self {
            Face::First => [fixed, all(), all()],
            Face::Middle => [all(), fixed, all()],
            Face::Last => [all(), all(), fixed],
        };
        Section::of_array(&[EDGE; 3], &ranges).expect("planes of the cube")
    }
}

fn cube(pair: &Pair<'_>) -> GlobalSlice<f64> {
    let bytes = pair.bulk(ALL * size_of::<f64>());
    raw::global_slice(raw::global_ptr(bytes.rank(), bytes.offset()), ALL)
}

fn by_rank_0(pair: &Pair<'_>, mut work: impl FnMut(&[f64]) -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    if pair.rank() == Rank(0) {
        pair.with_private(|bytes| {
            let mine = <[f64]>::ref_from_bytes(&bytes[..ALL * 8]);
            work(mine.expect("private memory is aligned"))
        })?;
    }
    Ok(start.elapsed())
}

fn put(pair: &Pair<'_>, load: Load, face: Face) -> Result<Duration> {
    let (at, of) = (face.section(false), face.section(true));
    let there = cube(pair);
    by_rank_0(pair, |mine| {
        (0..load.count).try_for_each(|_| pair.world.put_strided(there, &at, mine, &of))
    })
}

pub(super) fn put_first(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    put(pair, load, Face::First)
}

pub(super) fn put_middle(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    put(pair, load, Face::Middle)
}

pub(super) fn put_last(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    put(pair, load, Face::Last)
}

/// Calls `face` with the beginnings of both cubes.
fn by_hand(pair: &Pair<'_>, load: Load, face: impl Fn(*mut f64, *const f64)) -> Result<Duration> {
    let there = pair.raw_bulk(ALL * 8).cast::<f64>();
    by_rank_0(pair, |mine| {
        for _ in 0..load.count {
            face(black_box(there), black_box(mine.as_ptr()));
        }
        Ok(())
    })
}

pub(super) fn loops_first(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    by_hand(pair, load, |to, from| {
        // SAFETY: the last plane of this rank's cube and the first of the other's.
        unsafe { to.copy_from_nonoverlapping(from.add(ALL - EDGE * EDGE), EDGE * EDGE) };
    })
}

pub(super) fn loops_middle(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    by_hand(pair, load, |to, from| {
        for i in 0..EDGE {
            let row = i * EDGE * EDGE;
            // SAFETY: a row of either cube.
            unsafe {
                let from = from.add(row + EDGE * (EDGE - 1));
                to.add(row).copy_from_nonoverlapping(from, EDGE);
            }
        }
    })
}

pub(super) fn loops_last(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    by_hand(pair, load, |to, from| {
        for i in 0..EDGE {
            for j in 0..EDGE {
                let at = (i * EDGE + j) * EDGE;
                // SAFETY: an element of either cube.
                unsafe { to.add(at).write(from.add(at + EDGE - 1).read()) };
            }
        }
    })
}
