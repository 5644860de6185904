//! Non-contiguous puts and gets between ranks, by the safe API.

use argonet::{
    AmError, Error, Global, GlobalSlice, Rank, Section, SectionError, SegmentOffset, SharedArray,
    World, raw,
};

use crate::support::{Done, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("vis_random_sections_against_a_model", || {
        each(&SIZES, "vis_sections");
    }),
    ("vis_random_lists_against_a_model", || {
        each(&SIZES, "vis_lists");
    }),
    ("vis_halo_of_a_torus", || each(&[1, 2, 3, 8], "vis_halo")),
    ("vis_refused", || each(&[1, 2], "vis_refused")),
    ("vis_sections_beyond_all_memory_are_refused", || {
        each(&[1, 2], "vis_beyond");
    }),
    ("vis_elements_of_no_bytes", || {
        each(&[1, 2], "vis_of_nothing")
    }),
];

/// `len` values at any place, which no array need have.
fn slice_at<T: Global>(rank: Rank, offset: u64, len: usize) -> GlobalSlice<T> {
    raw::global_slice(raw::global_ptr(rank, SegmentOffset(offset)), len)
}

pub(crate) const PROGRAMS: &[Program] = &[
    ("vis_sections", sections),
    ("vis_lists", lists),
    ("vis_halo", halo),
    ("vis_refused", refused),
    ("vis_beyond", beyond),
    ("vis_of_nothing", of_nothing),
];

/// Elements of each rank's array for every rank.
const PART: usize = 900;

/// A section of `PART` elements with these counts: dimensions lie in each other in a random order,
/// and some run backwards.
fn section(random: &mut Random, counts: &[usize]) -> Section {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    let mut dims = vec![(0, 0); counts.len()];
    let (mut first, mut len) = (0, 1);
    for dim in order {
        let stride = len + random.below(3);
        let steps = counts[dim].max(1) - 1;
        dims[dim] = (counts[dim], stride as isize);
        if random.below(3) == 0 {
            dims[dim].1 = -(stride as isize);
            first += stride * steps;
        }
        len += stride * steps;
    }
    assert!(len <= PART);
    Section::new(first + random.below(PART - len + 1), &dims)
}

/// The elements of a section, one by one, in the order of their indices.
fn elements(text: &Section, counts: &[usize]) -> Vec<usize> {
    // Only the debug text shows the shape of a section; the model has its own arithmetic.
    let text = format!("{text:?}");
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    let numbers: Vec<isize> = numbers.filter_map(|number| number.parse().ok()).collect();
    let mut all = vec![numbers[0]];
    for (dim, count) in counts.iter().enumerate() {
        let stride = numbers[2 + 2 * dim];
        let next = all
            .iter()
            .flat_map(|at| (0..*count as isize).map(move |i| at + i * stride));
        all = next.collect();
    }
    all.into_iter().map(|at| at as usize).collect()
}

fn sections() -> Done {
    let world = World::init()?;
    let size = world.size() as usize;
    let me = world.rank().index();
    let v = SharedArray::<u32>::alloc(&world, PART * size)?;
    let mut random = Random::new(77 + me as u64);
    for step in 0..600u32 {
        let target = Rank(random.below(size) as u32);
        let there = v.on(target).part(me * PART..(me + 1) * PART);
        let levels = random.below(4);
        let counts: Vec<usize> = (0..levels).map(|_| random.below(5)).collect();
        let (at, of) = (section(&mut random, &counts), section(&mut random, &counts));
        let mine: Vec<u32> = (0..PART as u32).map(|i| i * 7 + step * 1000).collect();
        let before: Vec<u32> = (0..PART as u32).map(|i| i * 3 + step).collect();
        world.put_from(there, &before)?;
        let pairs = elements(&at, &counts)
            .into_iter()
            .zip(elements(&of, &counts));
        let mut expected = before.clone();
        let mut read = mine.clone();
        for (to, from) in pairs {
            expected[to] = mine[from];
            read[from] = before[to];
        }
        let after = |expected: &[u32]| -> Done {
            assert!(
                *world.get(there)?.wait()? == *expected,
                "{at:?} from {of:?}"
            );
            Ok(())
        };
        match random.below(6) {
            0 => world.put_strided(there, &at, &mine, &of)?,
            1 => {
                let back = world.start_put_strided(there, &at, mine.clone().into(), &of)?;
                assert!(*back.wait()? == *mine);
            }
            2 => world.scope(|s| s.put_strided(there, &at, &mine, &of))?,
            3 => {
                let mut got = mine.clone();
                world.get_strided(&mut got, &of, there, &at)?;
                assert!(got == read, "{of:?} from {at:?}");
                expected.clone_from(&before);
            }
            4 => {
                let got = world.start_get_strided(mine.into(), &of, there, &at)?;
                assert!(*got.wait()? == *read, "{of:?} from {at:?}");
                expected.clone_from(&before);
            }
            _ => {
                let mut got = mine.clone();
                world.scope(|s| s.get_strided(&mut got, &of, there, &at))?;
                assert!(got == read, "{of:?} from {at:?}");
                expected.clone_from(&before);
            }
        }
        after(&expected)?;
    }
    Ok(world.finalize()?)
}

/// Pieces of `PART` elements that do not overlap and have so many in all, in a random order.
fn cut(random: &mut Random, total: usize) -> Vec<(usize, usize)> {
    let (mut pieces, mut at, mut left) = (Vec::new(), 0, total);
    while left > 0 {
        let len = random.below(left + 1);
        at += random.below(3);
        pieces.push((at, len));
        at += len;
        left -= len;
        if pieces.len() == 30 {
            pieces.push((at, left));
            left = 0;
        }
    }
    for last in (1..pieces.len()).rev() {
        pieces.swap(last, random.below(last + 1));
    }
    pieces
}

fn lists() -> Done {
    let world = World::init()?;
    let size = world.size() as usize;
    let me = world.rank().index();
    let v = SharedArray::<u16>::alloc(&world, PART * size)?;
    let mut random = Random::new(99 + me as u64);
    for step in 0..600u16 {
        let target = Rank(random.below(size) as u32);
        let there = v.on(target).part(me * PART..(me + 1) * PART);
        let total = random.below(600);
        let (far, near) = (cut(&mut random, total), cut(&mut random, total));
        let mine: Vec<u16> = (0..PART as u16)
            .map(|i| i.wrapping_mul(7).wrapping_add(step))
            .collect();
        let before: Vec<u16> = (0..PART as u16)
            .map(|i| i.wrapping_mul(3).wrapping_sub(step))
            .collect();
        world.put_from(there, &before)?;
        let pieces: Vec<_> = far
            .iter()
            .map(|(at, len)| there.part(*at..*at + *len))
            .collect();
        let flat = |list: &[(usize, usize)]| -> Vec<usize> {
            list.iter().flat_map(|(at, len)| *at..*at + *len).collect()
        };
        let mut expected = before.clone();
        if random.below(2) == 0 {
            let slices: Vec<&[u16]> = near
                .iter()
                .map(|(at, len)| &mine[*at..*at + *len])
                .collect();
            if random.below(2) == 0 {
                world.put_vector(&pieces, &slices)?;
            } else {
                let owned: Vec<Box<[u16]>> = slices.iter().map(|slice| Box::from(*slice)).collect();
                let back = world.start_put_vector(&pieces, owned.clone())?.wait()?;
                assert!(back == owned);
            }
            for (to, from) in flat(&far).into_iter().zip(flat(&near)) {
                expected[to] = mine[from];
            }
        } else {
            let mut slices: Vec<Box<[u16]>> =
                near.iter().map(|(_, len)| vec![0; *len].into()).collect();
            if random.below(2) == 0 {
                let mut borrowed: Vec<&mut [u16]> =
                    slices.iter_mut().map(|slice| &mut **slice).collect();
                world.get_vector(&mut borrowed, &pieces)?;
            } else {
                slices = world.start_get_vector(slices, &pieces)?.wait()?;
            }
            let got: Vec<u16> = slices.concat();
            let right: Vec<u16> = flat(&far).into_iter().map(|at| before[at]).collect();
            assert!(got == right);
        }
        assert!(*world.get(there)?.wait()? == *expected);
    }
    Ok(world.finalize()?)
}

/// Cubes with a border, in a ring: after the exchange each border is the neighbor's inner plane.
fn halo() -> Done {
    const EDGE: usize = 10;
    const ALL: usize = EDGE * EDGE * EDGE;
    let world = World::init()?;
    let cube = SharedArray::<f64>::alloc(&world, ALL)?;
    let value = |rank: Rank, at: usize| (rank.0 as usize * ALL + at) as f64;
    let mine: Vec<f64> = (0..ALL).map(|at| value(world.rank(), at)).collect();
    let inner = 1..EDGE - 1;
    for dimension in 0..3 {
        for (side, from, to) in [(1, EDGE - 2, 0), (-1, 1, EDGE - 1)] {
            let plane = |at: usize| {
                let mut ranges = [inner.clone(), inner.clone(), inner.clone()];
                ranges[dimension] = at..at + 1;
                Section::of_array(&[EDGE; 3], &ranges)
            };
            cube.write_from(&world, 0, &vec![-1.0; ALL]);
            world.barrier()?;
            let next = world.rank_offset(side);
            world.put_strided(cube.on(next), &plane(to)?, &mine, &plane(from)?)?;
            world.barrier()?;
            let before = world.rank_offset(-side);
            let step = [EDGE * EDGE, EDGE, 1][dimension];
            for at in 0..ALL {
                let index = [at / EDGE / EDGE, at / EDGE % EDGE, at % EDGE];
                let is_border = (0..3).all(|dim| match dim == dimension {
                    true => index[dim] == to,
                    false => inner.contains(&index[dim]),
                });
                let source = || at + from * step - to * step;
                let right = if is_border {
                    value(before, source())
                } else {
                    -1.0
                };
                assert_eq!(cube.read(&world, at), right, "{index:?}");
            }
            world.barrier()?;
        }
    }
    Ok(world.finalize()?)
}

fn refused() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 20)?;
    let here = v.on(world.rank());
    let mut buffer = [7u64; 10];
    let line = |count| Section::new(0, &[(count, 1)]);
    let section = |result: argonet::Result<()>| match result {
        Err(Error::Section(error)) => error,
        other => panic!("{other:?}"),
    };
    let wrong = Section::new(3, &[(5, 4)]);
    assert_eq!(
        section(world.put_strided(here.part(0..19), &wrong, &buffer, &line(5))),
        SectionError::Outside {
            dimension: 0,
            count: 5,
            stride: 4,
            element: 19,
            len: 19
        }
    );
    world.put_strided(here, &wrong, &buffer, &line(5))?;
    let error = section(world.put_strided(here, &line(11), &buffer, &line(11)));
    assert!(
        matches!(error, SectionError::Outside { len: 10, .. }),
        "{error}"
    );
    let error = section(world.get_strided(&mut buffer, &line(5), here, &line(6)));
    assert!(
        matches!(
            error,
            SectionError::CountsDiffer {
                dimension: 0,
                to: 5,
                from: 6
            }
        ),
        "{error}"
    );
    let error = section(world.get_strided(&mut buffer, &Section::new(0, &[]), here, &line(1)));
    assert!(
        matches!(error, SectionError::DimensionsDiffer { to: 0, from: 1 }),
        "{error}"
    );
    // The length that a pointer claims is checked, too.
    let beyond = slice_at::<u64>(world.rank(), 1 << 50, usize::MAX);
    for first in [0, 1 << 60, usize::MAX - 1] {
        let far = Section::new(first, &[(2, 1)]);
        let refused = world.put_strided(beyond, &far, &buffer, &line(2));
        assert!(refused.is_err(), "{first}");
    }
    let no_rank = slice_at::<u64>(Rank(world.size()), 0, 20);
    let refused = world.get_strided(&mut buffer, &line(2), no_rank, &line(2));
    assert!(
        matches!(refused, Err(Error::Am(AmError::NoSuchRank { .. }))),
        "{refused:?}"
    );
    let refused = world.put_vector(&[here.part(0..3)], &[&buffer[..4]]);
    assert!(refused.is_err_and(|error| error.to_string().contains("24")));
    if world.size() > 1 {
        let error = section(world.put_vector(&[here, v.on(world.rank_offset(1))], &[&[0; 40]]));
        assert!(
            matches!(error, SectionError::SeveralRanks { piece: 1, .. }),
            "{error}"
        );
    }
    assert_eq!(buffer, [7; 10]);
    let expected: Vec<u64> = (0..20).map(|at| if at % 4 == 3 { 7 } else { 0 }).collect();
    world.barrier()?;
    assert_eq!(*world.get(here)?.wait()?, *expected);
    Ok(world.finalize()?)
}

/// Slices whose makers say that they are longer than any memory: an offset that is too large for a
/// number reaches no other place.
fn beyond() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 32)?;
    for rank in world.ranks() {
        let offset = v.ptr(rank, 16).offset().0;
        let one = Section::new(0, &[(1, 1)]);
        let two = Section::new(0, &[(2, 1)]);
        for (offset, first, dims, mine) in [
            // Multiplied by 8, each of them wraps around or nearly does.
            (offset, 1 << 61, (1, 1), &one),
            (offset, (1 << 61) - 1, (1, 1), &one),
            (offset, 1 << 60, (1, 1), &one),
            (offset, usize::MAX - 1, (1, 1), &one),
            (offset, 0, (2, 1 << 61), &two),
            (offset, 1 << 61, (2, -(1 << 61)), &two),
            // Added to the slice's offset, this one does.
            (u64::MAX - 7, 3, (1, 1), &one),
            (u64::MAX - 7, 3, (2, 7), &two),
        ] {
            let slice = slice_at::<u64>(rank, offset, usize::MAX);
            let (at, mut values) = (Section::new(first, &[dims]), [7u64; 2]);
            let refused = [
                world.put_strided(slice, &at, &values, mine),
                world.get_strided(&mut values, mine, slice, &at),
                world
                    .start_put_strided(slice, &at, Box::new(values), mine)
                    .map(drop),
                world
                    .start_get_strided(Box::new(values), mine, slice, &at)
                    .map(drop),
            ];
            for refused in refused {
                let Err(Error::Section(error)) = refused else {
                    panic!("{offset} {first} {dims:?}: {refused:?}");
                };
                let (text, last) = (
                    error.to_string(),
                    first.max(first + dims.1.max(0) as usize * (dims.0 - 1)),
                );
                for part in [
                    format!("to {last} "),
                    format!("offset {offset} "),
                    format!("rank {rank}"),
                ] {
                    assert!(text.contains(&part), "no \"{part}\" in \"{text}\"");
                }
            }
            assert_eq!(values, [7; 2]);
        }
        world.barrier()?;
    }
    assert_eq!(*world.get(v.on(world.rank()))?.wait()?, [0; 32]);
    Ok(world.finalize()?)
}

/// As many elements as a number can say, all of which are nothing, take no time.
fn of_nothing() -> Done {
    let world = World::init()?;
    let all = Section::new(0, &[(isize::MAX as usize, 1)]);
    let apart = Section::new(3, &[(isize::MAX as usize / 4, 2), (2, 1)]);
    let mut values = [(); usize::MAX];
    for rank in world.ranks() {
        let there = slice_at::<()>(rank, 0, usize::MAX);
        for section in [&all, &apart] {
            world.put_strided(there, section, &values, section)?;
            world.get_strided(&mut values, section, there, section)?;
            let owned: Box<[()]> = Box::new([(); usize::MAX]);
            let owned = world
                .start_put_strided(there, section, owned, section)?
                .wait()?;
            world
                .start_get_strided(owned, section, there, section)?
                .wait()?;
        }
    }
    world.barrier()?;
    Ok(world.finalize()?)
}
