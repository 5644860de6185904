//! Single jobs with faults of the tests' choice.
#![allow(unsafe_code)]

use argonet_am::{Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_boot::{Key, WaitFor, Waiting};
use argonet_engine::{Injection, Side, Target, Transfer};
use argonet_sim::workload::{SeedReport, Shape, run_shape};
use argonet_sim::{
    Failure, FaultPlan, JobConfig, Partition, Pause, Quality, Rank, SimConfig, Simulated as _,
    Sizes,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn run(seed: u64, ranks: u32, sizes: Sizes, faults: FaultPlan) -> SeedReport {
    run_shape(Shape::new(seed, ranks, sizes, faults), None).unwrap()
}

fn well(report: &SeedReport) {
    assert!(report.ok(), "{report}");
    assert_eq!(report.outcome.abort, None, "{report}");
}

const ALL_AT_ONCE: Quality = Quality {
    jitter_ns: 5_000,
    hold_ppm: 300_000,
    hold_ns: 50_000,
    break_ppm: 20_000,
    short_ppm: 500_000,
    ..Quality::CLEAN
};

/// Breaks that leave time for the longest frame through the smallest connection: a transfer that
/// breaks off begins again with its frame.
const ALL_FOR_SMALL: Quality = Quality {
    break_ppm: 100,
    ..ALL_AT_ONCE
};

/// Faults of the wire that never stop.
fn forever(quality: Quality) -> FaultPlan {
    FaultPlan {
        healed: quality,
        ..FaultPlan::none()
    }
}

#[test]
fn nothing_goes_wrong_and_no_connection_breaks() {
    for seed in 0..10 {
        let report = run(seed, 4, Sizes::default(), FaultPlan::none());
        well(&report);
        assert!(report.handled > 20, "{report}");
        let (made, broken) = report.outcome.connections;
        assert!(made > 0 && broken == 0, "{report}");
    }
}

#[test]
fn all_faults_at_once_for_ever() {
    for seed in 0..10 {
        let report = run(seed, 5, Sizes::default(), forever(ALL_AT_ONCE));
        well(&report);
        let (made, broken) = report.outcome.connections;
        assert!(made > broken && broken > 0, "{report}");
    }
}

#[test]
fn every_buffer_at_its_smallest() {
    for seed in 0..10 {
        well(&run(seed, 4, Sizes::smallest(), FaultPlan::none()));
        well(&run(seed, 3, Sizes::smallest(), forever(ALL_FOR_SMALL)));
    }
}

#[test]
fn sixty_four_ranks() {
    well(&run(1, 64, Sizes::default(), FaultPlan::none()));
    well(&run(
        2,
        64,
        Sizes::default(),
        forever(Quality {
            break_ppm: 2_000,
            ..Quality::CLEAN
        }),
    ));
}

#[test]
fn a_partition_heals() {
    let mut faults = FaultPlan::none();
    faults.stop_ns = 100_000_000;
    for (side, one_way) in [(vec![0, 1], false), (vec![2], true)] {
        faults.partitions.push(Partition {
            from_ns: 20_000,
            until_ns: 100_000_000,
            side,
            one_way,
        });
    }
    let report = run(1, 4, Sizes::default(), faults);
    well(&report);
    assert!(report.outcome.took.as_millis() >= 100, "{report}");
}

#[test]
fn slow_and_paused_ranks_are_waited_for() {
    let mut faults = FaultPlan::none();
    faults.stop_ns = 300_000_000;
    faults.slow = vec![(0, 500)];
    faults.pauses = vec![Pause {
        rank: 1,
        from_ns: 30_000,
        until_ns: 300_000_000,
    }];
    let report = run(1, 4, Sizes::default(), faults);
    well(&report);
    assert!(report.outcome.took.as_millis() >= 300, "{report}");
}

/// Whenever a rank dies, the job ends in time, and the dead is named.
#[test]
fn a_dead_rank_ends_the_job_and_is_named() {
    let mut noticed = 0;
    for seed in 0..30 {
        let mut faults = FaultPlan::none();
        let dead = (seed % 4) as u32;
        faults.deaths = vec![(dead, seed * 7_000)];
        let shape = Shape::new(seed, 4, Sizes::default(), faults);
        let dead_after_ns = shape.job.sim.sizes.dead_after_ns;
        let report = run_shape(shape, None).unwrap();
        // The named rank, and the time, are judged there.
        assert!(report.ok(), "{report}");
        if let Some(abort) = &report.outcome.abort {
            noticed += 1;
            assert_ne!(abort.rank.0, dead);
            assert!(abort.at_ns < 3 * dead_after_ns, "{report}");
        }
    }
    assert!(noticed > 20, "{noticed} of 30 deaths were noticed");
}

/// All ranks find a published value after a fence, and not before.
#[test]
fn the_job_has_a_key_store_and_a_fence() {
    let config = JobConfig::new(SimConfig::new(5, 1));
    let outcome = argonet_sim::run(
        &config,
        None,
        |_, _| Ok(()),
        |rank: &Rank, ()| {
            let boot = rank.engine.boot();
            let me = boot.rank();
            boot.publish(Key::User, &[me.0 as u8; 3]).unwrap();
            assert!(boot.publish(Key::User, &[]).is_err(), "twice");
            assert!(
                boot.lookup(JobRank(0), Key::User).is_err(),
                "before the fence"
            );
            // They come at different times.
            let late = Duration::from_micros(u64::from(me.0) * 100);
            rank.engine.conduit().compute(late);
            boot.fence().unwrap();
            assert!(
                rank.now() >= Duration::from_micros(400),
                "before all had come"
            );
            for other in (0..boot.size()).map(JobRank) {
                assert_eq!(boot.lookup(other, Key::User).unwrap(), [other.0 as u8; 3]);
            }
            boot.fence().unwrap();
        },
    );
    let outcome = outcome.unwrap();
    assert_eq!((&outcome.failure, &outcome.abort), (&None, &None));
}

/// No rank sleeps while something waits for a poll: each message costs the wire's time and no more.
#[test]
fn a_sleeping_rank_is_woken_at_once() {
    const TURNS: u32 = 200;
    const PING: HandlerIndex = HandlerIndex(130);
    let mut config = JobConfig::new(SimConfig::new(2, 1));
    // Sleep as soon as nothing is there.
    config.policy.spins = 0;
    config.policy.yields = 0;
    let register = |_: JobRank, handlers: &mut HandlerTable| {
        let seen = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&seen);
        let ping = move |_: &mut Delivery<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        handlers.register_at(PING, "ping", Box::new(ping))?;
        Ok(seen)
    };
    let outcome = argonet_sim::run(
        &config,
        None,
        register,
        |rank: &Rank, seen: Arc<AtomicU32>| {
            let me = rank.engine.rank().0;
            for turn in 0..TURNS {
                let ping = Message {
                    handler: PING,
                    args: &[turn],
                    payload: Payload::None,
                };
                let send = || {
                    rank.engine
                        .request(&rank.ctx, JobRank(1 - me), &ping, Injection::Blocking)
                };
                if me == 0 {
                    send().unwrap();
                }
                let what = Waiting::new(WaitFor::Condition);
                let done = || seen.load(Ordering::Relaxed) > turn;
                rank.engine.wait_until(&rank.ctx, what, done).unwrap();
                if me == 1 {
                    send().unwrap();
                }
            }
        },
    );
    let outcome = outcome.unwrap();
    assert_eq!((&outcome.failure, &outcome.abort), (&None, &None));
    // There and back, with waking and a few polls; the end takes its time, too.
    let limit = Duration::from_micros(u64::from(TURNS) * 2 * 4 + 1000);
    assert!(outcome.took < limit, "{:?}", outcome.took);
}

/// A rank that sleeps while a rail is full goes on when there is room, be it on a further rail.
#[test]
fn room_on_any_rail_ends_a_sleep() {
    const BYTES: usize = 1 << 20;
    const PUTS: u32 = 64;
    let mut config = JobConfig::new(SimConfig::new(2, 1));
    config.sim.segment_bytes = BYTES as u64;
    let sizes = &mut config.sim.sizes;
    (sizes.channel.rails, sizes.pipe_bytes) = (3, 4096);
    sizes.channel.fragment_bytes = 64 << 10;
    // Sleep as soon as nothing is there.
    (config.policy.spins, config.policy.yields) = (0, 0);
    let program = |rank: &Rank, ()| {
        let (engine, ctx) = (&rank.engine, &rank.ctx);
        let source = vec![7u8; BYTES];
        if engine.rank().0 == 0 {
            for _ in 0..PUTS {
                let put = Transfer {
                    target: Target::Segment {
                        rank: JobRank(1),
                        offset: SegmentOffset(0),
                    },
                    side: Side::Put(source.as_ptr()),
                    len: BYTES,
                };
                // SAFETY: the source is there until the put is complete.
                let put = unsafe { engine.start(ctx, put, Injection::Blocking) };
                engine.wait(ctx, put.unwrap()).unwrap();
            }
        }
    };
    let outcome = argonet_sim::run(&config, None, |_, _| Ok(()), program).unwrap();
    assert_eq!((&outcome.failure, &outcome.abort), (&None, &None));
    // 64 MiB over three connections take 21.9 ms. Where only the first rail ends sleeps it is 24.6.
    assert!(outcome.took < Duration::from_millis(23), "{outcome:?}");
}

/// A job that cannot end says what each rank waits for.
#[test]
fn a_job_that_hangs_reports_every_rank() {
    let sizes = Sizes {
        dead_after_ns: u64::MAX / 8,
        ..Sizes::default()
    };
    let mut faults = FaultPlan::none();
    for rank in 0..3 {
        faults.partitions.push(Partition {
            from_ns: 0,
            until_ns: u64::MAX,
            side: vec![rank],
            one_way: false,
        });
    }
    let report = run(1, 3, sizes, faults);
    assert!(!report.ok());
    let Some(Failure::Stalled(states)) = &report.outcome.failure else {
        panic!("{report}");
    };
    for rank in 0..3 {
        assert!(states.contains(&format!("rank {rank}: ")), "{states}");
    }
    assert!(
        states.contains("since") && states.contains("requests: "),
        "{states}"
    );
}
