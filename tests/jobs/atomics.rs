//! Atomic operations on global memory, of all types.

use argonet::raw::{Category, Injection};
use argonet::{Atomic, AtomicOp, GlobalPtr, Rank, SharedArray, World};

use crate::support::{Done, Job, Path, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("atomics_fetch_add_by_all_ranks", || {
        each(&SIZES, "hammer");
        let many = Path::of_this_run().many(6400).clamp(8, 64) as u32;
        let job = Job::launched(many, "hammer").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
    ("atomics_lock_by_compare_exchange", || each(&SIZES, "lock")),
    ("atomics_all_operations_of_all_types", || {
        each(&[1, 2], "operations");
    }),
    ("atomics_combine_over_ranks", || each(&SIZES, "combine")),
    ("atomics_started_and_implicit_on_floats", || {
        each(&SIZES, "started");
    }),
    ("atomics_by_all_threads", || each(&[1, 2, 3], "threads")),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("hammer", hammer),
    ("lock", lock),
    ("operations", operations),
    ("combine", combine),
    ("started", started),
    ("threads", threads),
];

fn hammer() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 1)?;
    let count = Path::of_this_run().many(64_000) / u64::from(world.size());
    let mut tickets = Vec::new();
    for i in 0..count {
        for to in world.ranks() {
            let before = world.fetch_add(v.ptr(to, 0), 1)?;
            if to == Rank(0) {
                tickets.push(before);
            }
            if i % 16 == 0 {
                // An odd amount that is taken back.
                world.fetch_add(v.ptr(to, 0), 12_345)?;
                world.fetch_add(v.ptr(to, 0), 12_345u64.wrapping_neg())?;
            }
        }
    }
    assert_eq!(tickets.len() as u64, count);
    world.barrier()?;
    assert_eq!(v.read(&world, 0), count * u64::from(world.size()));
    Ok(world.finalize()?)
}

/// Additions that are not atomic by themselves, under a lock on rank 0.
fn lock() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u32>::alloc(&world, 1)?;
    let sum = SharedArray::<[u64; 3]>::alloc(&world, 1)?;
    let (lock, cell) = (v.ptr(Rank(0), 0), sum.ptr(Rank(0), 0));
    let me = world.rank().0 + 1;
    let count = Path::of_this_run().many(4000) / u64::from(world.size());
    for i in 0..count {
        while world.compare_exchange(lock, 0, me)? != 0 {
            Path::of_this_run().look_again(&world);
        }
        let [a, b, c] = world.get_value(cell)?;
        assert!(a == b && b == c);
        world.put_value(cell, [a + i, b + i, c + i])?;
        assert_eq!(world.compare_exchange(lock, me, 0)?, me);
    }
    world.barrier()?;
    let expected = u64::from(world.size()) * (count * (count - 1) / 2);
    assert_eq!(world.get_value(cell)?, [expected; 3]);
    Ok(world.finalize()?)
}

fn operations() -> Done {
    let world = World::init()?;
    macro_rules! check {
        ($($int:ident)*) => {$({
            let mut random = Random::new(5);
            let mut next = || random.next() as $int;
            for _ in 0..Path::of_this_run().many(100) {
                let (a, b) = (next(), next());
                one(&world, a, b, a.wrapping_add(b), |w, p| w.fetch_add(p, b))?;
                one(&world, a, b, a.wrapping_sub(b), |w, p| w.fetch_sub(p, b))?;
                one(&world, a, b, a.wrapping_mul(b), |w, p| w.fetch_mul(p, b))?;
                one(&world, a, b, a.wrapping_add(1), |w, p| w.fetch(p, AtomicOp::inc()))?;
                one(&world, a, b, a.wrapping_sub(1), |w, p| w.fetch(p, AtomicOp::dec()))?;
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
    for (a, b) in [(1.5, 0.25), (-3.0, 8.0), (0.0, -1.0), (f64::INFINITY, 2.0)] {
        one(&world, a, b, a + b, |w, p| w.fetch_add(p, b))?;
        one(&world, a, b, a - b, |w, p| w.fetch_sub(p, b))?;
        one(&world, a, b, a * b, |w, p| w.fetch_mul(p, b))?;
        one(&world, a, b, a.min(b), |w, p| w.fetch_min(p, b))?;
        one(&world, a, b, a.max(b), |w, p| w.fetch_max(p, b))?;
        one(&world, a, b, a + 1.0, |w, p| w.fetch(p, AtomicOp::inc()))?;
        one(&world, a, b, b, |w, p| w.swap(p, b))?;
        one(&world, a, b, b, |w, p| w.compare_exchange(p, a, b))?;
        one(&world, a, b, a, |w, p| w.compare_exchange(p, -a - 0.5, b))?;
        let (a, b) = (a as f32, b as f32);
        one(&world, a, b, a - b, |w, p| w.fetch_sub(p, b))?;
        one(&world, a, b, a.max(b), |w, p| w.fetch_max(p, b))?;
    }
    Ok(world.finalize()?)
}

/// `operation` on `a` returns `a`, leaves `after`, and touches nothing beside it.
fn one<T: Atomic + core::fmt::Debug>(
    world: &World,
    a: T,
    b: T,
    after: T,
    operation: impl Fn(&World, GlobalPtr<T>) -> argonet::Result<T>,
) -> argonet::Result<()> {
    let v = SharedArray::<T>::alloc(world, 3)?;
    let next = world.rank_offset(1);
    world.put_from(v.on(next), &[b, b, b])?;
    world.atomic_store(v.ptr(next, 1), a)?;
    assert_eq!(operation(world, v.ptr(next, 1))?, a);
    let left = world.get(v.on(next))?.wait()?;
    assert_eq!(*left, [b, after, b]);
    v.free(world)
}

fn combine() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 5)?;
    v.write(&world, 0, u64::MAX);
    v.write(&world, 3, u64::MAX);
    world.barrier()?;
    let bit = 1u64 << world.rank().0;
    for to in world.ranks() {
        world.fetch_and(v.ptr(to, 0), !bit)?;
        world.fetch_or(v.ptr(to, 1), bit)?;
        world.fetch_xor(v.ptr(to, 2), bit)?;
        world.fetch_min(v.ptr(to, 3), bit)?;
        world.fetch_max(v.ptr(to, 4), bit)?;
    }
    world.barrier()?;
    let all = (1u64 << world.size()) - 1;
    let here = [0, 1, 2, 3, 4].map(|i| v.read(&world, i));
    assert_eq!(here, [!all, all, all, 1, 1 << (world.size() - 1)]);
    Ok(world.finalize()?)
}

/// Sums by operations that are started: as futures, with events, and implicit ones.
fn started() -> Done {
    let world = World::init()?;
    let v = SharedArray::<f64>::alloc(&world, 3)?;
    let count = 500 / world.size();
    let all = f64::from(count * world.size());
    let mut tickets = Vec::new();
    for _ in 0..count {
        for to in world.ranks() {
            let before = world.block_on(world.start_fetch(v.ptr(to, 0), AtomicOp::inc())?)?;
            assert!(before < all);
            if to == Rank(0) {
                tickets.push(before as u64);
            }
            // Dropped before it is waited for: it is done all the same.
            drop(world.start_atomic(v.ptr(to, 1), AtomicOp::add(0.5))?);
            let before = implicitly(&world, v.ptr(to, 2))?;
            assert!(before <= 0.0 && before >= -2.0 * all);
        }
    }
    assert!(tickets.is_sorted_by(|a, b| a < b));
    world.barrier()?;
    let here = [0, 1, 2].map(|i| v.read(&world, i));
    assert_eq!(here, [all, all / 2.0, -all]);
    Ok(world.finalize()?)
}

/// Subtracts two and adds one in the raw layer; the value before.
#[allow(unsafe_code)]
fn implicitly(world: &World, at: GlobalPtr<f64>) -> argonet::Result<f64> {
    let (raw, mut before) = (world.raw(), f64::NAN);
    // SAFETY: the variable lives until the operations are complete.
    unsafe {
        let result = Some(&raw mut before);
        raw.start_atomic_implicit(at, AtomicOp::sub(2.0), result, Injection::Blocking)?;
        raw.wait_implicit(Category::Rmw.mask())?;
        let event = raw.start_atomic(at, AtomicOp::inc(), None, Injection::Blocking)?;
        raw.wait(event)?;
    }
    Ok(before)
}

/// All threads of all ranks on words of rank 0.
fn threads() -> Done {
    const THREADS: u64 = 4;
    let each = Path::of_this_run().many(5000);
    let world = World::builder().build_par()?;
    let v = SharedArray::<u64>::alloc(&world, 3)?;
    let [count, bits, product] = [0, 1, 2].map(|i| v.ptr(Rank(0), i));
    if world.rank() == Rank(0) {
        v.write(&world, 2, 1);
    }
    world.barrier()?;
    let sum: u64 = std::thread::scope(|scope| {
        let work = || -> argonet::Result<u64> {
            let mut sum = 0;
            for i in 0..each {
                sum += world.fetch(count, AtomicOp::inc())?;
                world.atomic(bits, AtomicOp::xor(1 << (i % 64)))?;
                // Odd, so that nothing is lost of a product in 64 bits.
                world.atomic(product, AtomicOp::mul(3))?;
            }
            Ok(sum)
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, argonet::Result<u64>>| {
            thread
                .join()
                .unwrap_or_else(|_| panic!("a thread has failed"))
        };
        threads.into_iter().map(join).sum::<argonet::Result<u64>>()
    })?;
    let sums = SharedArray::<u64>::alloc(&world, 1)?;
    world.fetch_add(sums.ptr(Rank(0), 0), sum)?;
    world.barrier()?;
    let all = THREADS * each * u64::from(world.size());
    assert_eq!(world.atomic_load(count)?, all);
    // 5000 is 8 more than a multiple of 64: the first 8 bits once more, by an even number of
    // threads.
    assert_eq!(world.atomic_load(bits)?, 0);
    let power = (0..all).fold(1u64, |power, _| power.wrapping_mul(3));
    assert_eq!(world.atomic_load(product)?, power);
    assert_eq!(
        world.atomic_load(sums.ptr(Rank(0), 0))?,
        all * (all - 1) / 2
    );
    Ok(world.finalize()?)
}
