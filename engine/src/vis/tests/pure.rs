//! Tests that need no engine: simplest forms, passes over sides, names in messages.

use super::model::{Case, any_case, any_strided};
use crate::vis::copy::{Ways, walks};
use crate::vis::grid::{Grid, Side};
use crate::vis::walk::{Place, Runs, Walk, together};
use crate::vis::wire::{MessageLimits, Named, Naming, name_addresses, name_lattice};
use crate::vis::{Shape, Strided, copy};
use argonet_segment::SharedBytes;
use core::convert::Infallible;
use proptest::prelude::*;

/// Bytes that show where they are.
pub(super) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 253 + seed * 91) as u8)
        .collect()
}

/// Both sides of a shape.
fn sides<R>(shape: Shape<'_>, f: impl FnOnce(&Runs<'_>, &Runs<'_>) -> R) -> Option<R> {
    Some(match shape {
        Shape::Strided(shape) => {
            let grid = Grid::new(&shape)?;
            f(
                &Runs::Lattice(grid.side(Side::To)),
                &Runs::Lattice(grid.side(Side::From)),
            )
        }
        Shape::Pieces { to, from } => f(&to.into(), &from.into()),
    })
}

/// The address of each byte of a side.
fn addresses(mut walk: Walk<'_>) -> Vec<usize> {
    let mut all = Vec::new();
    while let Some((address, len)) = walk.now() {
        all.extend(address..address + len);
        walk.skip(len);
    }
    all
}

/// Copies a case by `copy` and compares all memory with the model's.
fn copies(case: &Case, copy: impl FnOnce(Shape<'_>)) -> Result<(), TestCaseError> {
    let (to_len, from_len) = case.needs();
    let (mut to, from) = (vec![0xee; to_len + 9], pattern(1, from_len + 9));
    let expected = case.applied(&to, &from);
    let to_at = to.as_mut_ptr().expose_provenance();
    let from_at = from.as_ptr().expose_provenance();
    case.with(to_at, from_at, copy);
    prop_assert_eq!(to, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_byte_goes_where_it_belongs(case in any_case(), by in any::<bool>()) {
        copies(&case, |shape| match shape {
            Shape::Strided(shape) => {
                if let Some(mut grid) = Grid::new(&shape) {
                    grid.simplify(if by { Side::To } else { Side::From });
                    // SAFETY: all addresses lie in the two vectors.
                    unsafe { copy::grid(&grid, Ways::default()) };
                }
            }
            // SAFETY: as above.
            Shape::Pieces { to, from } => unsafe { copy::pieces(to, from, Ways::default()) },
        })?;
    }

    #[test]
    fn a_pass_may_stop_and_go_on_anywhere(case in any_case(), steps in prop::collection::vec(0usize..70, 1..20)) {
        copies(&case, |shape| {
            sides(shape, |to, from| {
                let (mut to_place, mut from_place) = (Place::default(), Place::default());
                for step in steps.iter().cycle().take(100_000) {
                    let (mut to, mut from) = (to.walk(to_place), from.walk(from_place));
                    // SAFETY: all addresses lie in the two vectors.
                    let copied = unsafe { walks(&mut to, &mut from, *step, Ways::default()) };
                    (to_place, from_place) = (to.place(), from.place());
                    if copied < *step {
                        break;
                    }
                }
                let mut rest = (to.walk(to_place), from.walk(from_place));
                // SAFETY: as above.
                unsafe { walks(&mut rest.0, &mut rest.1, usize::MAX, Ways::default()) };
            });
        })?;
    }

    #[test]
    fn the_simplest_form_has_the_same_bytes(case in any_strided()) {
        case.with(1 << 20, 1 << 30, |shape| {
            let Shape::Strided(shape) = shape else { unreachable!() };
            let Some(grid) = Grid::new(&shape) else { return Ok(()) };
            let pairs = |grid: &Grid| {
                let (to, from) = (grid.side(Side::To), grid.side(Side::From));
                let (to, from) = (Runs::Lattice(to), Runs::Lattice(from));
                let pairs = addresses(to.all()).into_iter().zip(addresses(from.all()));
                let mut pairs: Vec<_> = pairs.collect();
                pairs.sort_unstable();
                pairs
            };
            let before = pairs(&grid);
            for by in [Side::To, Side::From] {
                let mut simple = grid.clone();
                simple.simplify(by);
                prop_assert_eq!(&pairs(&simple), &before);
                prop_assert!(simple.dims.len() <= grid.dims.len());
                prop_assert_eq!(simple.bytes(), Some(before.len()));
                // Nothing that lies together is left apart.
                let element = simple.element as isize;
                let apart = simple.dims.iter().any(|dim| dim.to == element && dim.from == element);
                prop_assert!(!apart);
                let in_order = simple.dims.is_sorted_by_key(|dim| match by {
                    Side::To => dim.to,
                    Side::From => dim.from,
                });
                prop_assert!(in_order, "{simple:?}");
                let hull = Runs::Lattice(simple.side(Side::To)).hull().unwrap().unwrap();
                let places = before.iter().map(|(to, _)| *to);
                prop_assert_eq!(Some(hull.first), places.clone().min());
                prop_assert_eq!(Some(hull.end - 1), places.max());
            }
            Ok(())
        })?;
    }

    #[test]
    fn names_come_back(case in any_case(), message in 40usize..500, chunk in 1usize..300, carries in any::<bool>()) {
        case.with(1 << 20, 1 << 30, |shape| sides(shape, |runs, _| {
            let all = addresses(runs.all());
            let (mut walk, mut name, mut done) = (runs.all(), Vec::new(), 0);
            while done < all.len() {
                let limits = MessageLimits { message, bytes: chunk.min(all.len() - done), carries };
                let place = walk.place();
                let bytes = name_addresses(&mut name, &mut walk, limits);
                prop_assert!(bytes > 0 && bytes <= limits.bytes);
                let carried = if carries { bytes } else { 0 };
                prop_assert!(name.len() + carried <= message);
                let expected = &all[done..done + bytes];
                let read = |naming, name: &[u8], bytes| {
                    let named = Named::read(naming, &SharedBytes::from_slice(name), bytes)?;
                    let (runs, place) = named.runs();
                    Some(addresses(runs.walk(place)))
                };
                let back = read(Naming::Addresses, &name, bytes);
                prop_assert_eq!(back.as_deref(), Some(expected));
                for bytes in [bytes - 1, bytes + 1] {
                    prop_assert_eq!(read(Naming::Addresses, &name, bytes), None);
                }
                for cut in [1, 4, name.len()] {
                    prop_assert_eq!(read(Naming::Addresses, &name[..name.len() - cut], bytes), None);
                }
                if let Runs::Lattice(lattice) = runs {
                    name_lattice(&mut name, lattice, place);
                    let back = read(Naming::Lattice, &name, bytes).unwrap();
                    prop_assert_eq!(&back[..bytes], expected);
                    prop_assert_eq!(read(Naming::Lattice, &name, all.len() - done + 1), None);
                    prop_assert_eq!(read(Naming::Lattice, &name[..name.len() - 1], bytes), None);
                }
                done += bytes;
            }
            Ok(())
        }).unwrap_or(Ok(())))?;
    }

    #[test]
    fn any_bytes_may_come_as_a_name(name in prop::collection::vec(any::<u8>(), 0..200), bytes in any::<usize>(), small in any::<bool>()) {
        let bytes = if small { bytes % 1000 } else { bytes };
        for naming in [Naming::Addresses, Naming::Lattice] {
            if let Some(named) = Named::read(naming, &SharedBytes::from_slice(&name), bytes) {
                let (runs, _) = named.runs();
                prop_assert!(runs.hull().is_ok() && runs.bytes().is_some());
            }
        }
    }
}

fn strided<'a>(
    counts: &'a [usize],
    element: usize,
    to: &'a [isize],
    from: &'a [isize],
) -> Strided<'a> {
    Strided {
        to: 1 << 20,
        to_strides: to,
        from: 1 << 30,
        from_strides: from,
        element,
        counts,
    }
}

#[test]
fn adjacent_elements_are_one_piece() {
    // A whole array, however it is described: dimensions in any order, and backwards on both sides.
    for (to, from) in [
        ([8, 80, 800], [8, 80, 800]),
        ([800, 8, 80], [800, 8, 80]),
        ([-8, -80, 800], [-8, -80, 800]),
    ] {
        let counts = if to[0] == 800 {
            [5, 10, 10]
        } else {
            [10, 10, 5]
        };
        let mut grid = Grid::new(&strided(&counts, 8, &to, &from)).unwrap();
        grid.simplify(Side::To);
        assert_eq!((grid.element, grid.dims.len()), (4000, 0), "{to:?}");
    }
    // Two faces of a plate: rows that lie together, and a column.
    let mut rows = Grid::new(&strided(&[10, 6, 4], 8, &[8, 160, 3200], &[8, 80, 480])).unwrap();
    rows.simplify(Side::To);
    assert_eq!((rows.element, rows.dims.len()), (80, 2));
    let mut column = Grid::new(&strided(&[10, 6], 8, &[160, 1600], &[80, 800])).unwrap();
    column.simplify(Side::To);
    assert_eq!((column.element, column.dims.len()), (8, 1));
    // One side lies together, and is one run to it.
    let packed = Grid::new(&strided(&[10, 6], 8, &[8, 80], &[160, 3200])).unwrap();
    let side = packed.side(Side::To);
    assert_eq!((side.run, side.axes.len()), (480, 0));
}

#[test]
fn runs_adjacent_on_both_sides_are_one_part() {
    let list = [
        crate::Piece {
            address: 100,
            len: 30,
        },
        crate::Piece {
            address: 200,
            len: 30,
        },
    ];
    let (to, from) = (
        Runs::Vector(&list),
        Runs::Indexed {
            addresses: &[500, 600, 700],
            len: 20,
        },
    );
    assert_eq!(crate::vis::walk::parts(to.all(), from.all(), 4), Some(4));
    assert_eq!(crate::vis::walk::parts(to.all(), from.all(), 3), None);
    let mut parts = Vec::new();
    let seen = together(&mut to.all(), &mut from.all(), 35, |to, from, len| {
        parts.push((to, from, len));
        Ok::<(), Infallible>(())
    });
    assert_eq!(seen, Ok(35));
    assert_eq!(parts, [(100, 500, 20), (120, 600, 10), (200, 610, 5)]);
}
