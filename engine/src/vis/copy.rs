//! Copies between memory that is mapped here.
//!
//! Elements of the sizes of machine words are moved by one load and one store each, in loops of
//! their own; longer ones by the bulk routine.

use super::grid::{Dimension, Grid};
use super::shape::{Piece, Pieces};
use super::walk::{Runs, Walk, together};
use argonet_segment::bulk;
use core::convert::Infallible;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Distances that are added to the addresses of either side to have them in this process.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ways {
    pub(super) to: isize,
    pub(super) from: isize,
}

/// Calls a function with the size of elements as a constant if it is a word's, else with `None` of
/// it.
macro_rules! by_size {
    ($size:expr, $function:ident($($arg:expr),* $(,)?)) => {
        match $size {
            1 => $function::<1>($($arg),*),
            2 => $function::<2>($($arg),*),
            4 => $function::<4>($($arg),*),
            8 => $function::<8>($($arg),*),
            16 => $function::<16>($($arg),*),
            _ => $function::<ANY>($($arg),*),
        }
    };
}

/// Stands for a size that is none of a word's.
const ANY: usize = 0;

/// # Safety
/// `len` bytes at `from` are readable and those at `to` writable; `SIZE` is `len` or [`ANY`].
#[inline(always)]
unsafe fn one<const SIZE: usize>(to: usize, from: usize, len: usize) {
    let (to, from) = (
        with_exposed_provenance_mut(to),
        with_exposed_provenance(from),
    );
    let len = if SIZE == ANY { len } else { SIZE };
    // SAFETY: the caller's promise.
    unsafe { bulk::copy(to, from, len) }
}

/// Copies all elements of a grid.
///
/// # Safety
/// With the ways added, the source's addresses are readable and the destination's writable.
pub(super) unsafe fn grid(grid: &Grid, ways: Ways) {
    let to = grid.to.wrapping_add_signed(ways.to);
    let from = grid.from.wrapping_add_signed(ways.from);
    // SAFETY: the caller's promise.
    unsafe { by_size!(grid.element, nest(to, from, grid.element, &grid.dims)) }
}

/// # Safety
/// As [`grid`]; `SIZE` is `element` or [`ANY`].
unsafe fn nest<const SIZE: usize>(
    mut to: usize,
    mut from: usize,
    element: usize,
    dims: &[Dimension],
) {
    let [inner, outer @ ..] = dims else {
        // SAFETY: there is one element.
        return unsafe { one::<SIZE>(to, from, element) };
    };
    let [middle, outer @ ..] = outer else {
        // SAFETY: the elements of the only dimension.
        return unsafe { row::<SIZE>(to, from, element, inner) };
    };
    let mut at = outer.iter().map(|_| 0).collect::<super::few::Few<usize>>();
    loop {
        let (mut row_to, mut row_from) = (to, from);
        for _ in 0..middle.count {
            // SAFETY: each row of the two inner dimensions, at the indices of the outer ones.
            unsafe { row::<SIZE>(row_to, row_from, element, inner) };
            row_to = row_to.wrapping_add_signed(middle.to);
            row_from = row_from.wrapping_add_signed(middle.from);
        }
        let mut carries = true;
        for (dim, at) in outer.iter().zip(&mut *at) {
            *at += 1;
            to = to.wrapping_add_signed(dim.to);
            from = from.wrapping_add_signed(dim.from);
            if *at < dim.count {
                carries = false;
                break;
            }
            *at = 0;
            let steps = dim.count as isize;
            to = to.wrapping_add_signed(dim.to.wrapping_mul(steps).wrapping_neg());
            from = from.wrapping_add_signed(dim.from.wrapping_mul(steps).wrapping_neg());
        }
        if carries {
            return;
        }
    }
}

/// # Safety
/// As [`grid`], for the elements of one dimension; `SIZE` is `element` or [`ANY`].
#[inline(always)]
unsafe fn row<const SIZE: usize>(mut to: usize, mut from: usize, element: usize, dim: &Dimension) {
    for _ in 0..dim.count {
        // SAFETY: one of the elements.
        unsafe { one::<SIZE>(to, from, element) };
        to = to.wrapping_add_signed(dim.to);
        from = from.wrapping_add_signed(dim.from);
    }
}

/// Copies lists of pieces that have as many bytes.
///
/// # Safety
/// As [`grid`].
pub(super) unsafe fn pieces(to: Pieces<'_>, from: Pieces<'_>, ways: Ways) {
    match (to, from) {
        (
            Pieces::Indexed { addresses: to, len },
            Pieces::Indexed {
                addresses: from,
                len: other,
            },
            // SAFETY: the caller's promise.
        ) if len == other => unsafe { by_size!(len, pairs(to, from, len, ways)) },
        // SAFETY: as above.
        (Pieces::Indexed { addresses, len }, from) if len > 0 && lies_together(from) => unsafe {
            let Some((line, _)) = Runs::from(from).all().now() else {
                return;
            };
            by_size!(len, scatter(addresses, line, len, ways));
        },
        // SAFETY: as above.
        (to, Pieces::Indexed { addresses, len }) if len > 0 && lies_together(to) => unsafe {
            let Some((line, _)) = Runs::from(to).all().now() else {
                return;
            };
            by_size!(len, gather(addresses, line, len, ways));
        },
        (Pieces::Vector(to), Pieces::Vector(from)) => {
            // As long as both are cut alike there is nothing to keep count of.
            let alike = |(to, from): (&Piece, &Piece)| to.len == from.len;
            let equal = to.iter().zip(from).take_while(|pair| alike(*pair)).count();
            for (to, from) in to[..equal].iter().zip(from) {
                let to_at = to.address.wrapping_add_signed(ways.to);
                let from_at = from.address.wrapping_add_signed(ways.from);
                // SAFETY: as above; a piece of either side.
                unsafe { one::<ANY>(to_at, from_at, to.len) };
            }
            let (to, from) = (Runs::Vector(&to[equal..]), Runs::Vector(&from[equal..]));
            // SAFETY: as above; the rest, which has as many bytes.
            unsafe { walks(&mut to.all(), &mut from.all(), usize::MAX, ways) };
        }
        _ => {
            let (to, from) = (Runs::from(to), Runs::from(from));
            // SAFETY: as above.
            unsafe { walks(&mut to.all(), &mut from.all(), usize::MAX, ways) };
        }
    }
}

/// Whether a side has one piece.
fn lies_together(side: Pieces<'_>) -> bool {
    match side {
        Pieces::Vector(list) => list.len() == 1,
        Pieces::Indexed { addresses, .. } => addresses.len() == 1,
    }
}

/// # Safety
/// As [`grid`]; `SIZE` is `len` or [`ANY`].
unsafe fn pairs<const SIZE: usize>(to: &[usize], from: &[usize], len: usize, ways: Ways) {
    for (to, from) in to.iter().zip(from) {
        let to = to.wrapping_add_signed(ways.to);
        // SAFETY: a piece on either side.
        unsafe { one::<SIZE>(to, from.wrapping_add_signed(ways.from), len) };
    }
}

/// # Safety
/// As [`pairs`], the source lying together at `line`.
unsafe fn scatter<const SIZE: usize>(to: &[usize], line: usize, len: usize, ways: Ways) {
    let mut from = line.wrapping_add_signed(ways.from);
    for to in to {
        // SAFETY: a piece, and as many bytes of the line.
        unsafe { one::<SIZE>(to.wrapping_add_signed(ways.to), from, len) };
        from = from.wrapping_add(len);
    }
}

/// # Safety
/// As [`pairs`], the destination lying together at `line`.
unsafe fn gather<const SIZE: usize>(from: &[usize], line: usize, len: usize, ways: Ways) {
    let mut to = line.wrapping_add_signed(ways.to);
    for from in from {
        // SAFETY: a piece, and as many bytes of the line.
        unsafe { one::<SIZE>(to, from.wrapping_add_signed(ways.from), len) };
        to = to.wrapping_add(len);
    }
}

/// Copies from one side to the other until one ends, at most so many bytes; how many.
///
/// # Safety
/// As [`grid`].
pub(super) unsafe fn walks(
    to: &mut Walk<'_>,
    from: &mut Walk<'_>,
    most: usize,
    ways: Ways,
) -> usize {
    let copied = together(to, from, most, |to, from, len| {
        let to = to.wrapping_add_signed(ways.to);
        // SAFETY: bytes of either side that lie together.
        unsafe { one::<ANY>(to, from.wrapping_add_signed(ways.from), len) };
        Ok::<(), Infallible>(())
    });
    match copied {
        Ok(copied) => copied,
    }
}
