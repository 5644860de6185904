//! Atomic operations on global memory, of all types.

use argonet::{Atomic, Rank, SharedVec, World};

use crate::support::{Done, Job, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("atomics_fetch_add_by_all_ranks", || {
        each(&SIZES, "hammer");
        let job = Job::launched(64, "hammer").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
    ("atomics_lock_by_compare_exchange", || each(&SIZES, "lock")),
    ("atomics_all_operations_of_all_types", || {
        each(&[1, 2], "operations");
    }),
    ("atomics_combine_over_ranks", || each(&SIZES, "combine")),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("hammer", hammer),
    ("lock", lock),
    ("operations", operations),
    ("combine", combine),
];

fn hammer() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 1)?;
    let count = 64_000 / u64::from(world.size());
    let mut tickets = Vec::new();
    for i in 0..count {
        for to in world.ranks() {
            let before = world.fetch_add(v.gptr(to, 0), 1)?;
            if to == Rank(0) {
                tickets.push(before);
            }
            if i % 16 == 0 {
                // An odd amount that is taken back.
                world.fetch_add(v.gptr(to, 0), 12_345)?;
                world.fetch_add(v.gptr(to, 0), 12_345u64.wrapping_neg())?;
            }
        }
    }
    assert_eq!(tickets.len() as u64, count);
    world.barrier()?;
    assert_eq!(v.read(&world, 0), count * u64::from(world.size()));
    Ok(world.finalise()?)
}

/// Additions that are not atomic by themselves, under a lock on rank 0.
fn lock() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u32>::alloc(&world, 1)?;
    let sum = SharedVec::<[u64; 3]>::alloc(&world, 1)?;
    let (lock, cell) = (v.gptr(Rank(0), 0), sum.gptr(Rank(0), 0));
    let me = world.rank().0 + 1;
    let count = 4000 / u64::from(world.size());
    for i in 0..count {
        while world.compare_exchange(lock, 0, me)? != 0 {
            std::thread::yield_now();
        }
        let [a, b, c] = world.get_value(cell)?;
        assert!(a == b && b == c);
        world.put_value(cell, [a + i, b + i, c + i])?;
        assert_eq!(world.compare_exchange(lock, me, 0)?, me);
    }
    world.barrier()?;
    let expected = u64::from(world.size()) * (count * (count - 1) / 2);
    assert_eq!(world.get_value(cell)?, [expected; 3]);
    Ok(world.finalise()?)
}

fn operations() -> Done {
    let world = World::init()?;
    macro_rules! check {
        ($($int:ident)*) => {$({
            let mut random = Random::new(5);
            let mut next = || random.next() as $int;
            for _ in 0..100 {
                let (a, b) = (next(), next());
                one(&world, a, b, a.wrapping_add(b), |w, p| w.fetch_add(p, b))?;
                one(&world, a, b, a & b, |w, p| w.fetch_and(p, b))?;
                one(&world, a, b, a | b, |w, p| w.fetch_or(p, b))?;
                one(&world, a, b, a ^ b, |w, p| w.fetch_xor(p, b))?;
                one(&world, a, b, a.min(b), |w, p| w.fetch_min(p, b))?;
                one(&world, a, b, a.max(b), |w, p| w.fetch_max(p, b))?;
                one(&world, a, b, b, |w, p| w.swap(p, b))?;
                one(&world, a, b, b, |w, p| w.compare_exchange(p, a, b))?;
                one(&world, a, b, a, |w, p| w.compare_exchange(p, a ^ 1, b))?;
                one(&world, a, b, a, |w, p| w.atomic_load(p))?;
            }
            for (a, b) in [($int::MIN, $int::MAX), ($int::MAX, 1), (0, $int::MIN)] {
                one(&world, a, b, a.wrapping_add(b), |w, p| w.fetch_add(p, b))?;
                one(&world, a, b, a.min(b), |w, p| w.fetch_min(p, b))?;
                one(&world, a, b, a.max(b), |w, p| w.fetch_max(p, b))?;
            }
        })*};
    }
    check!(u32 i32 u64 i64);
    Ok(world.finalise()?)
}

/// `operation` on `a` returns `a`, leaves `after`, and touches nothing beside it.
fn one<T: Atomic + core::fmt::Debug>(
    world: &World,
    a: T,
    b: T,
    after: T,
    operation: impl Fn(&World, argonet::GlobalPtr<T>) -> argonet::Result<T>,
) -> argonet::Result<()> {
    let v = SharedVec::<T>::alloc(world, 3)?;
    let next = world.neighbour(1);
    world.put_from(v.gptr(next, 0), &[b, b, b])?;
    world.atomic_store(v.gptr(next, 1), a)?;
    assert_eq!(operation(world, v.gptr(next, 1))?, a);
    let left = world.get(v.gptr(next, 0), 3)?.wait()?;
    assert_eq!(*left, [b, after, b]);
    v.free(world)
}

fn combine() -> Done {
    let world = World::init()?;
    let v = SharedVec::<u64>::alloc(&world, 5)?;
    v.write(&world, 0, u64::MAX);
    v.write(&world, 3, u64::MAX);
    world.barrier()?;
    let bit = 1u64 << world.rank().0;
    for to in world.ranks() {
        world.fetch_and(v.gptr(to, 0), !bit)?;
        world.fetch_or(v.gptr(to, 1), bit)?;
        world.fetch_xor(v.gptr(to, 2), bit)?;
        world.fetch_min(v.gptr(to, 3), bit)?;
        world.fetch_max(v.gptr(to, 4), bit)?;
    }
    world.barrier()?;
    let all = (1u64 << world.size()) - 1;
    let here = [0, 1, 2, 3, 4].map(|i| v.read(&world, i));
    assert_eq!(here, [!all, all, all, 1, 1 << (world.size() - 1)]);
    Ok(world.finalise()?)
}
