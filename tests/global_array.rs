//! Arrays that are spread over ranks.

use argonet::{
    AmError, Distribution, DistributionError, Error, GlobalArray, Rank, Result, Section,
    SectionError, SharedArray, Spread, World,
};
use core::ops::Range;
use std::collections::BTreeSet;

/// Ways to spread three dimensions.
const SPREADS: [[Spread; 3]; 6] = [
    [Spread::Block, Spread::Whole, Spread::Whole],
    [Spread::Whole, Spread::Cyclic, Spread::Whole],
    [Spread::Block, Spread::Block, Spread::Cyclic],
    [
        Spread::BlockCyclic(2),
        Spread::BlockCyclic(3),
        Spread::Block,
    ],
    [Spread::Cyclic, Spread::Whole, Spread::BlockCyclic(2)],
    [Spread::Block; 3],
];

/// A number that no other element has.
fn number([i, j, k]: [usize; 3]) -> u64 {
    (i * 10_000 + j * 100 + k) as u64
}

/// The numbers of a region, the last dimension running fastest.
fn numbers(region: &[Range<usize>; 3]) -> Vec<u64> {
    let [rows, columns, layers] = region;
    let lines = rows
        .clone()
        .flat_map(|i| columns.clone().map(move |j| (i, j)));
    lines
        .flat_map(|(i, j)| layers.clone().map(move |k| number([i, j, k])))
        .collect()
}

fn region(random: &mut fastrand::Rng, extents: [usize; 3]) -> [Range<usize>; 3] {
    extents.map(|extent| {
        let (a, b) = (random.usize(0..=extent), random.usize(0..=extent));
        a.min(b)..a.max(b)
    })
}

#[argonet::test(ranks = [1, 2, 5, 6], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 2)]
fn regions_have_the_elements_that_ranks_wrote(world: &mut World) -> Result<()> {
    let extents = [7, 9, 8];
    let mut random = fastrand::Rng::with_seed(17 + u64::from(world.rank().0));
    for spread in SPREADS {
        let distribution = Distribution::new(extents, spread);
        let mut array = GlobalArray::<u64, 3>::alloc(world, distribution)?;
        world.quiet(|q| {
            for (index, value) in array.local_mut(q).iter_mut() {
                assert_eq!(*value, 0);
                *value = number(index);
            }
        })?;
        assert_eq!(
            array.get_vec(world, extents.map(|extent| 0..extent))?,
            numbers(&extents.map(|to| 0..to))
        );
        for _ in 0..30 {
            let region = region(&mut random, extents);
            let mut values = numbers(&region);
            values.fill(1);
            array.get_into(world, region.clone(), &mut values)?;
            assert_eq!(values, numbers(&region), "{spread:?} {region:?}");
        }
        world.barrier()?;
        // Each rank writes some columns, on any rank.
        let ranks = world.size() as usize;
        let columns = |rank: usize| extents[1] * rank / ranks..extents[1] * (rank + 1) / ranks;
        let mine = [1..6, columns(world.rank().0 as usize), 2..7];
        let doubled: Vec<u64> = numbers(&mine)
            .into_iter()
            .map(|number| 2 * number)
            .collect();
        array.put_from(world, mine, &doubled)?;
        let mut count = 0;
        world.quiet(|q| {
            for (index, value) in array.local(q).iter() {
                let [i, _, k] = index;
                let factor = 1 + u64::from((1..6).contains(&i) && (2..7).contains(&k));
                assert_eq!(*value, factor * number(index), "{spread:?} {index:?}");
                count += 1u64;
            }
        })?;
        let all = world
            .collectives()
            .reduce_all_value(argonet::Reduction::Sum, count)?;
        assert_eq!(all, 7 * 9 * 8);
        array.free(world)?;
    }
    Ok(())
}

#[argonet::test(ranks = 3)]
fn pointers_and_views_name_the_same_elements(world: &mut World) -> Result<()> {
    for spread in SPREADS {
        let distribution = Distribution::new([6, 5, 7], spread);
        let array = GlobalArray::<u64, 3>::alloc(world, distribution)?;
        // Each element is written through its pointer, by one rank or another.
        for (at, index) in numbers(&[0..6, 0..5, 0..7]).into_iter().enumerate() {
            let (i, j, k) = (index / 10_000, index / 100 % 100, index % 100);
            if at % 3 == world.rank().0 as usize {
                let to = array.at([i as usize, j as usize, k as usize]);
                world.put_value(to, index)?;
            }
        }
        world.quiet(|q| {
            let view = array.local(q);
            assert!(view.iter().all(|(index, value)| *value == number(index)));
            assert_eq!(
                view.lines().map(|(_, line)| line.len()).sum::<usize>(),
                view.iter().count()
            );
            assert!(
                view.lines()
                    .all(|(index, line)| line.is_empty() || line[0] == number(index))
            );
            let [rows, columns, layers] = view.own_numbers();
            for (i, j) in rows.flat_map(|i| columns.clone().map(move |j| (i, j))) {
                let line = view.line([i, j, 0]);
                assert_eq!(line.len(), layers.len());
                assert!(layers.clone().all(|k| view[[i, j, k]] == line[k]));
            }
        })?;
        let own: BTreeSet<u64> =
            world.quiet(|q| array.local(q).iter().map(|(_, v)| *v).collect())?;
        if let Some(block) = array.own_indices() {
            assert!(numbers(&block).into_iter().eq(own));
        }
        array.free(world)?;
    }
    Ok(())
}

#[argonet::test(ranks = 2)]
fn what_is_not_in_the_array_is_refused(world: &mut World) -> Result<()> {
    let distribution = Distribution::new([4, 6], [Spread::Block, Spread::Cyclic]);
    let array = GlobalArray::<u64, 2>::alloc(world, distribution)?;
    let mut values = [9; 6];
    let outside = array.get_into(world, [0..1, 1..7], &mut values);
    assert!(matches!(
        outside,
        Err(Error::Section(SectionError::NoSuchRange {
            dimension: 1,
            start: 1,
            end: 7,
            extent: 6
        }))
    ));
    let huge = array.get_vec(world, [0..usize::MAX, 0..usize::MAX]);
    assert!(matches!(
        huge,
        Err(Error::Section(SectionError::NoSuchRange {
            dimension: 0,
            ..
        }))
    ));
    for region in [[0..1, 0..5], [0..2, 0..6], [1..1, 0..6]] {
        let refused = array.put_from(world, region, &values);
        let Err(Error::Distribution(DistributionError::RegionLength { values: 6, .. })) = refused
        else {
            panic!("{refused:?}");
        };
    }
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "that is what is wrong with it"
    )]
    let reversed = array.get_vec(world, [3..2, 0..6]);
    assert!(matches!(reversed, Err(Error::Section(_))));
    assert_eq!(values, [9; 6]);
    for index in [[4, 0], [0, 6], [usize::MAX; 2]] {
        let at = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| array.at(index)));
        assert!(at.is_err(), "{index:?}");
    }
    let past = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        array.read_line(world, [0, 0], &mut [0; 7]);
    }));
    assert!(past.is_err());
    world.barrier()?;
    assert_eq!(array.get_vec(world, [0..4, 0..6])?, [0; 24]);
    Ok(())
}

#[argonet::test(ranks = 4)]
fn distributions_that_ranks_cannot_have_leave_nothing_behind(world: &mut World) -> Result<()> {
    let line = |len| Distribution::new([len], [Spread::Block]);
    let wide = GlobalArray::<u8, 1>::alloc(world, line(7).halo([2]));
    assert!(matches!(
        wide,
        Err(Error::Distribution(DistributionError::WideHalo { .. }))
    ));
    let differ = GlobalArray::<u8, 1>::alloc(world, line(7 + world.rank().0 as usize));
    assert!(matches!(differ, Err(Error::Mismatch { .. })));
    // One team can have its array, the other one cannot.
    let odd = world.rank().0 % 2;
    let team = world.team().split(world, Some(odd), 0)?;
    let team = team.unwrap_or_else(|| unreachable!("it gave a color"));
    let spread = [[Spread::Block], [Spread::BlockCyclic(0)]][odd as usize];
    let refused = GlobalArray::<u8, 1>::alloc_on(world, &team, Distribution::new([9], spread));
    match (odd, refused) {
        (0, Err(Error::ElsewhereFailed { .. })) => {}
        (1, Err(Error::Distribution(DistributionError::EmptyBlock { dimension: 0 }))) => {}
        (_, refused) => panic!("{:?}", refused.err()),
    }
    let huge = GlobalArray::<u64, 1>::alloc(world, line(1 << 50));
    assert!(
        matches!(huge, Err(Error::Heap { .. } | Error::Segment(_))),
        "{:?}",
        huge.err()
    );
    // All that was taken has been given back: there is room for one array after another.
    let first = SharedArray::<u8>::alloc(world, 1)?;
    let offset = first.ptr(world.rank(), 0).offset();
    first.free(world)?;
    for _ in 0..100 {
        let array = GlobalArray::<u64, 1>::alloc(world, line(100_000).halo([1]))?;
        assert!(
            array
                .get_vec(world, 0..100_000)?
                .iter()
                .all(|value| *value == 0)
        );
        world.barrier()?;
        world.put_value(array.at([world.rank().0 as usize]), 3)?;
        world.barrier()?;
        array.free(world)?;
    }
    let last = SharedArray::<u8>::alloc(world, 1)?;
    assert_eq!(last.ptr(world.rank(), 0).offset(), offset);
    Ok(())
}

#[argonet::test(ranks = 5, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn teams_have_arrays_of_their_own(world: &mut World) -> Result<()> {
    let odd = world.rank().0 % 2;
    // In the opposite order.
    let team = world
        .team()
        .split(world, Some(odd), -(world.rank().0 as i32))?;
    let team = team.unwrap_or_else(|| unreachable!("it gave a color"));
    let len = 50 + 140 * odd as usize;
    let distribution = Distribution::new([len], [Spread::Block]).periodic([true]);
    let distribution = if odd == 0 {
        distribution.halo([2])
    } else {
        distribution
    };
    let mut array = GlobalArray::<u64, 1>::alloc_on(world, &team, distribution)?;
    assert_eq!(array.at([0]).rank(), team.world_rank(Rank(0)));
    assert_eq!(
        array.at([len - 1]).rank(),
        team.world_rank(Rank(team.size() - 1))
    );
    world.quiet(|q| {
        array
            .local_mut(q)
            .iter_mut()
            .for_each(|([at], value)| *value = at as u64);
    })?;
    assert!(array.get_vec(world, 0..len)?.into_iter().eq(0..len as u64));
    // The other team needs another length of memory, of which views show nothing.
    let count = world.quiet(|q| array.local(q).iter().count())?;
    let indices = array.own_indices().map(|[own]| own.len());
    assert_eq!(Some(count), indices);
    array.exchange_halo(world)?;
    let own = array
        .own_indices()
        .unwrap_or_else(|| unreachable!("it is spread in blocks"));
    world.quiet(|q| {
        let view = array.local(q);
        if odd == 0 {
            let line = view.line([0]);
            let first = own[0].start + len - 2;
            let expected = (0..line.len()).map(|at| ((first + at) % len) as u64);
            assert!(expected.eq(line.iter().copied()), "{line:?}");
        } else {
            assert_eq!(view.extents(), [own[0].len()]);
        }
    })?;
    array.free(world)
}

/// The halo of all distributions of a plane, on grids of all forms.
#[argonet::test(ranks = [1, 2, 4, 6], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 2)]
fn a_halo_has_what_is_beside(world: &mut World) -> Result<()> {
    let ranks = world.size() as usize;
    let extents = [13usize, 14];
    let grids = (1..=ranks)
        .filter(|rows| ranks.is_multiple_of(*rows))
        .map(|rows| [rows, ranks / rows]);
    for (grid, halo) in
        grids.flat_map(|grid| [[1, 1], [2, 0], [0, 2], [2, 1]].map(|halo| (grid, halo)))
    {
        for periodic in [[false; 2], [true; 2], [true, false]] {
            let distribution = Distribution::new(extents, [Spread::Block; 2]);
            let distribution = distribution.grid(grid).halo(halo).periodic(periodic);
            let mut array = GlobalArray::<i64, 2>::alloc(world, distribution)?;
            let number = |i: usize, j: usize| (100 * i + j) as i64;
            // Another number on each rank, which none may get from another one.
            let outside = -1 - i64::from(world.rank().0);
            for round in 0..3 {
                world.quiet(|q| {
                    let mut view = array.local_mut(q);
                    if round == 0 {
                        for row in 0..view.extents()[0] {
                            view.line_mut([row, 0]).fill(outside);
                        }
                    }
                    view.iter_mut()
                        .for_each(|([i, j], value)| *value = round + number(i, j));
                })?;
                array.exchange_halo(world)?;
                let own = array
                    .own_indices()
                    .unwrap_or_else(|| unreachable!("blocks"));
                world.quiet(|q| {
                    let view = array.local(q);
                    // Which index an element of the part has, around ends that are periodic.
                    let index = |d: usize, at: usize| {
                        let at = (own[d].start + at) as i64 - halo[d] as i64;
                        let extent = extents[d] as i64;
                        let inside = (0..extent).contains(&at) || periodic[d];
                        inside.then_some(at.rem_euclid(extent) as usize)
                    };
                    let [rows, columns] = view.extents();
                    for (row, column) in
                        (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
                    {
                        let expected = match (index(0, row), index(1, column)) {
                            (Some(i), Some(j)) => round + number(i, j),
                            _ => outside,
                        };
                        let found = view[[row, column]];
                        assert_eq!(
                            found, expected,
                            "{grid:?} {halo:?} {periodic:?} {row} {column}"
                        );
                    }
                })?;
            }
            array.free(world)?;
        }
    }
    Ok(())
}

/// Parts without elements, beside ranks that have some.
#[argonet::test(ranks = 2)]
fn empty_parts_exchange_nothing(world: &mut World) -> Result<()> {
    let line = Distribution::new([10, 1], [Spread::Block; 2]).grid([1, 2]);
    let mut line = GlobalArray::<u64, 2>::alloc(world, line.halo([1, 0]).periodic([true; 2]))?;
    world.quiet(|q| {
        let mut view = line.local_mut(q);
        view.iter_mut()
            .for_each(|([i, _], value)| *value = i as u64);
    })?;
    line.exchange_halo(world)?;
    world.quiet(|q| {
        let view = line.local(q);
        let rows = (0..12).map(|row| view.line([row, 0]).first().copied());
        let has_some = world_rank_is_first(&view);
        let expected = (0..12).map(|row| has_some.then_some((row + 9) % 10));
        assert!(rows.eq(expected));
    })?;
    // An array without elements takes no memory, however long its other dimensions.
    let empty = Distribution::new([0, 1 << 40], [Spread::Block, Spread::Whole]);
    let mut empty = GlobalArray::<u64, 2>::alloc(world, empty)?;
    assert_eq!(empty.get_vec(world, empty.all())?, []);
    empty.exchange_halo(world)?;
    let count =
        world.quiet(|q| empty.local_mut(q).iter_mut().count() + empty.local(q).lines().count())?;
    assert_eq!(count, 0);
    empty.free(world)?;
    line.free(world)
}

/// Whether a part has the only column.
fn world_rank_is_first(view: &argonet::LocalView<'_, u64, 2>) -> bool {
    view.own_numbers()[1].len() == 1
}

/// A call that is refused before it has sent anything can be made again.
#[argonet::test(ranks = 2)]
fn an_exchange_that_is_refused_changes_nothing(world: &mut World) -> Result<()> {
    let line = Distribution::new([4], [Spread::Block]).halo([1]);
    let mut line = GlobalArray::<u64, 1>::alloc(world, line)?;
    world.run_tasks([0u8], |_, _| {
        let refused = line.exchange_halo(world);
        assert!(matches!(refused, Err(Error::Am(AmError::InTask { .. }))));
    })?;
    line.exchange_halo(world)
}

/// Ranks that only exchange halos wait for those beside them alone, and read none too early.
#[argonet::test(ranks = [2, 5], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn halos_need_no_barrier(world: &mut World) -> Result<()> {
    let ring = Distribution::new(
        [3 * world.size() as usize, 4],
        [Spread::Block, Spread::Whole],
    );
    let mut ring = GlobalArray::<u64, 2>::alloc(world, ring.halo([1, 0]).periodic([true, false]))?;
    let of = |rank: Rank, round: u64| 1000 * round + u64::from(rank.0);
    let (before, after) = (world.rank_offset(-1), world.rank_offset(1));
    for round in 1..500 {
        for row in 1..4 {
            ring.write_line(world, [row, 0], &[of(world.rank(), round); 4]);
        }
        ring.exchange_halo(world)?;
        for (row, rank) in [(0, before), (4, after)] {
            let mut line = [0; 4];
            ring.read_line(world, [row, 0], &mut line);
            assert_eq!(line, [of(rank, round); 4], "round {round}");
        }
    }
    Ok(())
}

/// What a region is does not depend on how it is cut: a block of a cyclic array by one section.
#[argonet::test(ranks = 1)]
fn one_rank_has_all_in_order(world: &mut World) -> Result<()> {
    let distribution = Distribution::new([5, 4], [Spread::Cyclic, Spread::BlockCyclic(3)]);
    let array = GlobalArray::<u64, 2>::alloc(world, distribution)?;
    assert_eq!(array.own_indices(), Some([0..5, 0..4]));
    let whole: Vec<u64> = (0..20).collect();
    array.put_from(world, [0..5, 0..4], &whole)?;
    let mut column = [0; 5];
    let first = array.at([0, 0]);
    let slice = argonet::raw::global_slice(first, 20);
    let section = Section::new(2, &[(5, 4)]);
    world.get_strided(&mut column, &Section::new(0, &[(5, 1)]), slice, &section)?;
    assert_eq!(column, [2, 6, 10, 14, 18]);
    Ok(())
}
