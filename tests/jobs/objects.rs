//! Distributed objects: functions that other ranks call for the instance of a rank.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use argonet::{DistObject, Error, Rank, RpcError, RpcStatus, World};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::support::{Done, Job, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("objects_are_a_table_of_all_ranks", || {
        each(&SIZES, "objects-table");
    }),
    ("objects_of_many_threads", || {
        each(&[1, 2, 3], "objects-par");
    }),
    ("objects_dropped_are_not_found", || {
        each(&[1, 2, 3], "objects-dropped");
    }),
    ("objects_of_another_type_are_refused", || {
        each(&[2], "objects-types");
    }),
    ("objects_stay_while_a_function_runs", || {
        each(&[2], "objects-held");
    }),
    ("objects_one_way_calls_that_cannot_run_end_the_job", || {
        for (program, why) in [
            ("objects-one-way-dropped", "has no instance there any more"),
            ("objects-one-way-types", "has another type"),
            ("objects-one-way-garbled", "do not decode"),
        ] {
            let outcome = Job::launched(2, program).run();
            outcome.failed(&["rank 1", "from rank 0", "a one-way call of `", why]);
        }
    }),
    ("objects_borrowed_by_their_owner", || {
        let outcome = Job::launched(2, "objects-borrowed").run();
        outcome.failed(&["objects::push`, called by rank 0, panicked", "borrowed"]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("objects-table", table),
    ("objects-par", par),
    ("objects-dropped", dropped),
    ("objects-types", types),
    ("objects-held", held),
    ("objects-one-way-dropped", one_way_dropped),
    ("objects-one-way-types", one_way_types),
    ("objects-one-way-garbled", one_way_garbled),
    ("objects-borrowed", borrowed),
];

type Table = RefCell<BTreeMap<u64, Vec<String>>>;

argonet::rpc! {
    /// Stores a value, without a result.
    fn push(table: &Table, key: u64, value: String) {
        table.borrow_mut().entry(key).or_default().push(value);
    }
    fn values_of(table: &Table, key: u64) -> Vec<String> {
        table.borrow().get(&key).cloned().unwrap_or_default()
    }
    fn len(table: &Table,) -> usize { table.borrow().len() }
    fn add(sum: &Cell<u64>, by: u64) -> u64 { sum.set(sum.get() + by); sum.get() }
    fn add_shared(sum: &Mutex<u64>, by: u64) -> u64 {
        let mut sum = sum.lock().expect("no thread has panicked");
        *sum += by;
        *sum
    }
    fn wait_for_drop(held: &Held) -> u32 {
        held.entered.store(1, Ordering::Release);
        while held.is_dropped.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        held.alive.load(Ordering::Acquire)
    }
    fn go() { GO.store(1, Ordering::Release); }
    fn refuse(_value: Undecodable) {}
}

/// Rank 1 polls in no other thread any more.
static GO: AtomicU32 = AtomicU32::new(0);

/// Its bytes never decode.
struct Undecodable;

impl Serialize for Undecodable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(1)
    }
}

impl<'de> Deserialize<'de> for Undecodable {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("no value"))
    }
}

fn status_of(error: &Error) -> Option<RpcStatus> {
    match error {
        Error::Rpc(RpcError::Failed { status, .. }) => Some(*status),
        _ => None,
    }
}

/// A table over all ranks, and objects of other types beside it.
fn table() -> Done {
    const KEYS: u64 = 60;
    let mut builder = World::builder();
    let get = builder.rpc_on("get", |sum: &Cell<u64>, ()| sum.get());
    let mut world = builder.build()?;
    let first = DistObject::new(&world, Cell::new(1000))?;
    let table = DistObject::new(&world, Table::default())?;
    let second = DistObject::new(&world, Cell::new(u64::from(world.rank().0)))?;
    let owner = |key: u64| Rank((key % u64::from(world.size())) as u32);
    let me = world.rank();
    for key in 0..KEYS {
        table.rpc_one_way(&world, owner(key), &push, (key, format!("{key} of {me}")))?;
    }
    for to in world.ranks() {
        first
            .rpc(&world, to, &add, (u64::from(me.0) + 1,))?
            .wait()?;
    }
    world.drain()?;
    for key in (0..KEYS).rev() {
        let mut found = table.rpc(&world, owner(key), &values_of, (key,))?.wait()?;
        found.sort();
        let mut expected: Vec<_> = world.ranks().map(|r| format!("{key} of {r}")).collect();
        expected.sort();
        assert_eq!(found, expected);
    }
    // The owner's own way to its instance, and the function on it.
    let mine = (0..KEYS).filter(|key| owner(*key) == me).count();
    assert_eq!(table.borrow().len(), mine);
    assert_eq!((len.function().expect("no context"))(&table, ()), mine);
    let ranks = u64::from(world.size());
    assert_eq!(first.get(), 1000 + ranks * (ranks + 1) / 2);
    for to in world.ranks() {
        // Of two objects with one type each call finds its own.
        assert_eq!(second.rpc(&world, to, &get, ())?.wait()?, u64::from(to.0));
        assert!(first.rpc(&world, to, &get, ())?.wait()? > 1000);
    }
    // Objects borrow no world.
    let found = world.quiet(|_| table.borrow().len())?;
    assert_eq!(found, mine);
    assert!(format!("{second:?}").contains(&format!("value: {me}")));
    world.barrier()?;
    drop((first, table, second));
    Ok(world.finalize()?)
}

/// Functions change instances from any thread.
fn par() -> Done {
    const EACH: u64 = 300;
    let world = World::builder().build_par()?;
    let sum = DistObject::new(&world, Mutex::new(0))?;
    std::thread::scope(|scope| {
        let (world, sum) = (&world, &sum);
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || -> argonet::Result<()> {
                    for i in 0..EACH {
                        let to = world.rank_offset(i as i64 + thread);
                        if i % 2 == 0 {
                            sum.rpc(world, to, &add_shared, (1,))?.wait()?;
                        } else {
                            sum.rpc_one_way(world, to, &add_shared, (1,))?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread").expect("calls");
        }
    });
    world.drain()?;
    let mut sums = [*sum.lock().expect("no thread has panicked")];
    world.reduce_all(argonet::Reduction::Sum, &mut sums)?;
    assert_eq!(sums[0], 3 * EACH * u64::from(world.size()));
    world.barrier()?;
    drop(sum);
    Ok(world.finalize()?)
}

fn dropped() -> Done {
    let world = World::init()?;
    let sum = DistObject::new(&world, Cell::new(0))?;
    let other = DistObject::new(&world, Cell::new(5))?;
    world.barrier()?;
    let to = world.rank_offset(1);
    // Rank 0 has none any more; the others have.
    let (kept, gone) = match world.rank() {
        Rank(0) => (None, Some(sum)),
        _ => (Some(sum), None),
    };
    drop(gone);
    world.barrier()?;
    if let Some(sum) = &kept {
        for _ in 0..3 {
            let outcome = sum.rpc(&world, to, &add, (3,))?.wait();
            if to == Rank(0) {
                let error = outcome.expect_err("it was dropped");
                assert_eq!(status_of(&error), Some(RpcStatus::NoInstance));
                let text = error.to_string();
                let parts = ["objects::add", "rank 0", "has no instance there any more"];
                assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            } else {
                outcome?;
            }
        }
    }
    // A later object has another number.
    let next = DistObject::new(&world, Cell::new(7))?;
    assert_eq!(next.rpc(&world, to, &add, (1,))?.wait()?, 8);
    assert_eq!(other.rpc(&world, to, &add, (1,))?.wait()?, 6);
    world.barrier()?;
    drop((kept, other, next));
    Ok(world.finalize()?)
}

/// Makes two objects, rank 1 in another order than the others.
fn crossed(world: &World) -> argonet::Result<(DistObject<Cell<u64>>, DistObject<Table>)> {
    if world.rank() == Rank(1) {
        let table = DistObject::new(world, Table::default())?;
        Ok((DistObject::new(world, Cell::new(0))?, table))
    } else {
        let sum = DistObject::new(world, Cell::new(0))?;
        Ok((sum, DistObject::new(world, Table::default())?))
    }
}

fn types() -> Done {
    let world = World::init()?;
    let (sum, table) = crossed(&world)?;
    let other = world.rank_offset(1);
    let errors = [
        sum.rpc(&world, other, &add, (1,))?.wait().err(),
        table.rpc(&world, other, &len, ())?.wait().err(),
    ];
    for error in errors {
        let error = error.expect("they are of different types");
        assert_eq!(status_of(&error), Some(RpcStatus::OtherType));
    }
    assert_eq!(sum.rpc(&world, world.rank(), &add, (1,))?.wait()?, 1);
    world.barrier()?;
    drop((sum, table));
    Ok(world.finalize()?)
}

struct Held {
    entered: Arc<AtomicU32>,
    is_dropped: Arc<AtomicU32>,
    alive: Arc<AtomicU32>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.alive.store(0, Ordering::Release);
    }
}

/// A thread runs a function for an instance that its owner drops meanwhile.
fn held() -> Done {
    let world = World::builder().build_par()?;
    let [entered, is_dropped, alive] = [0, 0, 1].map(|n| Arc::new(AtomicU32::new(n)));
    let object = DistObject::new(
        &world,
        Held {
            entered: Arc::clone(&entered),
            is_dropped: Arc::clone(&is_dropped),
            alive: Arc::clone(&alive),
        },
    )?;
    if world.rank() == Rank(0) {
        world.wait_until(|| GO.load(Ordering::Acquire) == 1)?;
        assert_eq!(object.rpc(&world, Rank(1), &wait_for_drop, ())?.wait()?, 1);
        drop(object);
    } else {
        std::thread::scope(|scope| {
            let polls = scope.spawn(|| {
                world.rpc_one_way(Rank(0), &go, ())?;
                world.wait_until(|| entered.load(Ordering::Acquire) == 1)
            });
            while entered.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            drop(object);
            is_dropped.store(1, Ordering::Release);
            polls.join().expect("a thread").expect("polls");
        });
        assert_eq!(alive.load(Ordering::Acquire), 0);
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

fn one_way_dropped() -> Done {
    let world = World::init()?;
    let sum = DistObject::new(&world, Cell::new(0))?;
    let sum = (world.rank() == Rank(0)).then_some(sum);
    world.barrier()?;
    if let Some(sum) = &sum {
        sum.rpc_one_way(&world, Rank(1), &add, (1,))?;
    }
    world.drain()?;
    Ok(world.barrier()?)
}

fn one_way_types() -> Done {
    let world = World::init()?;
    let (sum, _table) = crossed(&world)?;
    if world.rank() == Rank(0) {
        sum.rpc_one_way(&world, Rank(1), &add, (1,))?;
    }
    world.drain()?;
    Ok(world.barrier()?)
}

fn one_way_garbled() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &refuse, (Undecodable,))?;
    }
    world.drain()?;
    Ok(world.barrier()?)
}

/// The owner waits while it borrows what a function wants to change.
fn borrowed() -> Done {
    let world = World::init()?;
    let table = DistObject::new(&world, Table::default())?;
    let borrow = table.borrow();
    world.barrier()?;
    if world.rank() == Rank(0) {
        table.rpc_one_way(&world, Rank(1), &push, (1, "one".into()))?;
    }
    world.drain()?;
    drop(borrow);
    Ok(())
}
