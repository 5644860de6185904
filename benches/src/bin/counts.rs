//! Does one operation of a fast path so many times: `counts NAME TIMES`.
//!
//! `cargo xtask counts` runs it under callgrind with two numbers of times; the difference is what
//! the operations take.
//!
//! One process plays rank 0 alone. Its neighbors are memory, which is all that rank 0 sees of them
//! too. In round trips it plays both ranks.
#![deny(unsafe_code)]

#[path = "../../../cli/src/perf/engines.rs"]
#[allow(dead_code, reason = "argonet perf uses the rest")]
mod engines;
#[path = "../rounds.rs"]
mod rounds;

use argonet::{GlobalRef, JobRank, Rank, Result, SharedArray, World};
use argonet_conduit::ThreadMode;
use argonet_conduit::channel::ChannelCredits;
use argonet_conduit::smp::Barrier;
use argonet_engine::{Call, DataType, Folding, Kind, Operation, ThreadCtx};
use argonet_start::StartError;
use engines::{Memory, Station};
use std::hint::black_box;
use std::process::ExitCode;

/// Name, and the function that does so many.
type Round = (&'static str, fn(u64));

/// Values put and got through the public interface, by a rank alone; and work of two ranks, both of
/// this process: round trips over a connection, also for the cost of credits
/// (docs/flow-control.md) and of rails that stand in for each other, and over interfaces in
/// software; collective calls by cells.
const ROUNDS: [Round; 10] = [
    ("put-value", |times| {
        of_a_world(times, |world, array, i| {
            world.put_value(array.ptr(Rank(0), ELEMENT), i)
        });
    }),
    ("get-value", |times| {
        of_a_world(times, |world, array, _| {
            world
                .get_value(array.ptr(Rank(0), ELEMENT))
                .map(black_box)
                .map(drop)
        });
    }),
    ("put-at", |times| {
        by_reference(times, |world, at, i| world.put_at(at, i))
    }),
    ("get-at", |times| {
        by_reference(times, |world, at, _| {
            world.get_at(at).map(black_box).map(drop)
        });
    }),
    ("barrier-lines", |times| {
        by_lines(times, Call::of(Kind::Barrier));
    }),
    ("reduce-all-lines", |times| {
        let (given, mut got) = ([1u64], [0u64; 2]);
        let call = Call {
            unit: 8,
            count: 1,
            src: given.as_ptr().cast(),
            dst: got.as_mut_ptr().cast(),
            folding: Some(Folding::built_in(Operation::Add, DataType::U64)),
            ..Call::of(Kind::ReduceAll)
        };
        by_lines(times, call);
    }),
    ("tcp-round-trip", |times| {
        rounds::over_tcp(times, Some(ChannelCredits::default()), 0);
    }),
    ("tcp-round-trip-without-credits", |times| {
        rounds::over_tcp(times, None, 0);
    }),
    ("failover-round-trip", |times| {
        rounds::over_tcp(times, Some(ChannelCredits::default()), 2);
    }),
    ("portals-round-trip", rounds::over_portals),
];

/// An operation, with the number of neighbors and how often it may be done: no rank takes messages
/// out of the ring.
struct Case {
    name: &'static str,
    neighbors: u32,
    most: u64,
    operation: fn(&Station, &ThreadCtx, u64) -> Result<()>,
}

const NEIGHBOR: JobRank = JobRank(1);

const CASES: [Case; 4] = [
    Case {
        name: "put-8",
        neighbors: 1,
        most: u64::MAX,
        operation: |station, ctx, i| station.put(ctx, NEIGHBOR, i),
    },
    Case {
        name: "am-short-send",
        neighbors: 1,
        most: 16_000,
        operation: |station, ctx, i| Ok(station.send(ctx, NEIGHBOR, station.one_way, i as u32)?),
    },
    Case {
        name: "poll-1",
        neighbors: 1,
        most: u64::MAX,
        operation: poll,
    },
    Case {
        name: "poll-64",
        neighbors: 64,
        most: u64::MAX,
        operation: poll,
    },
];

/// The element that is put and got.
const ELEMENT: usize = 3;

/// So many operations of a job of one rank on an array.
///
/// Its segment is mapped, as those of neighbors are, so they take what operations on a neighbor's
/// element take.
fn of_a_world(times: u64, operation: impl Fn(&World, &SharedArray<u64>, u64) -> Result<()>) {
    let world = World::builder().build().expect("a job of one rank");
    let array = SharedArray::<u64>::alloc(&world, 8).expect("an array");
    for i in 0..times {
        operation(&world, black_box(&array), black_box(i)).expect("a value");
    }
}

/// The same on an element that was checked once.
fn by_reference(times: u64, operation: impl Fn(&World, &GlobalRef<'_, u64>, u64) -> Result<()>) {
    of_a_world(1, |world, array, _| {
        let at = array.element(world, Rank(0), ELEMENT)?;
        (0..times).try_for_each(|i| operation(world, black_box(&at), black_box(i)))
    });
}

/// So many collective calls of two ranks on neighboring lines.
///
/// Rank 1 starts one, which rank 0 then finds entered, so that its blocking call never waits; then
/// rank 1 completes its own.
#[allow(unsafe_code)]
fn by_lines(times: u64, call: Call) {
    let memory = Memory::create(2).expect("memory");
    let station = |rank| {
        Station::new(&memory, JobRank(rank), ThreadMode::Seq, Barrier::Sleeper).expect("a rank")
    };
    let stations = [station(0), station(1)];
    let [own, other] = stations.each_ref().map(|station| &station.engine);
    let contexts = [Station::context(), Station::context()];
    // The results of both ranks are one behind the other.
    let others = Call {
        dst: call.dst.wrapping_add(call.count * call.unit),
        ..call
    };
    for _ in 0..times {
        // SAFETY: the memory that the calls read and write outlives them, as each is complete at
        // the end of its round.
        let event = unsafe { other.collective_start(&contexts[1], other.world_team(), others) }
            .expect("a start");
        // SAFETY: as above.
        unsafe { own.collective_wait(&contexts[0], own.world_team(), call) }.expect("a call");
        while !other.test(&contexts[1], event).expect("a test") {}
    }
}

fn poll(station: &Station, ctx: &ThreadCtx, _: u64) -> Result<()> {
    black_box(station.poll(ctx)?);
    Ok(())
}

fn run(case: &Case, times: u64) -> Result<()> {
    let memory = Memory::create(case.neighbors + 1).map_err(|cause| StartError::Rings {
        rank: argonet::Rank(0),
        ranks: case.neighbors + 1,
        cause,
    })?;
    // The barrier that Linux has, even where callgrind runs the program.
    let station = Station::new(&memory, JobRank(0), ThreadMode::Seq, Barrier::Sleeper)?;
    let ctx = Station::context();
    (0..times).try_for_each(|i| (case.operation)(&station, &ctx, black_box(i)))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = CASES
        .iter()
        .map(|case| case.name)
        .chain(ROUNDS.map(|(name, _)| name))
        .collect();
    if let [name, times] = args.as_slice()
        && let Some((_, run)) = ROUNDS.iter().find(|(round, _)| round == name)
        && let Ok(times) = times.parse()
    {
        run(times);
        return ExitCode::SUCCESS;
    }
    let chosen = match args.as_slice() {
        // For a caller that runs all of them.
        [list] if list == "--list" => {
            println!("{}", names.join("\n"));
            return ExitCode::SUCCESS;
        }
        [name, times] => CASES
            .iter()
            .find(|case| case.name == name)
            .zip(times.parse().ok())
            .filter(|(case, times)| *times <= case.most),
        _ => None,
    };
    let Some((case, times)) = chosen else {
        eprintln!("usage: counts NAME TIMES, of {}", names.join(", "));
        return ExitCode::from(2);
    };
    match run(case, times) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("counts: {error}");
            ExitCode::FAILURE
        }
    }
}
