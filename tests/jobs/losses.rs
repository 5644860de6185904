//! Jobs that go on without ranks that have died.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use argonet::{
    AmError, DistObject, Distribution, Error, GlobalArray, MAX_MEDIUM, Rank, Reduction, Result,
    SharedArray, Spread, Team, World,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::support::{Done, Job, Outcome, Path, Program, Random, Test};

pub(crate) const TESTS: &[Test] = &[
    ("lost_ranks_fail_the_calls_that_wait_for_them", calls),
    ("lost_ranks_one_after_another", || {
        survive(8, "lost-again", &[]);
    }),
    ("lost_ranks_at_once_under_traffic", || {
        for seed in 0..4 {
            survive(6, "lost-traffic", &[(SEED, &seed.to_string())]);
        }
    }),
    ("lost_rank_while_others_leave", || {
        survive(4, "lost-leaving", &[]);
    }),
    ("lost_rank_and_survivors_that_leave_at_once", || {
        for _ in 0..3 {
            survive(8, "lost-at-once", &[]);
        }
    }),
    ("lost_rank_and_survivors_that_do_not_leave_together", || {
        let job = Job::launched(4, "lost-apart").env(POLICY, "continue");
        let outcome = job.run();
        if !refuses(&outcome) {
            outcome.failed(&["leaves the job, and this rank asks who is left"]);
        }
    }),
    ("lost_rank_while_tasks_run", || {
        survive(5, "lost-tasks", &[]);
    }),
    ("lost_rank_while_halos_are_exchanged", || {
        survive(5, "lost-halo", &[]);
    }),
    ("lost_rank_while_others_have_slices", || {
        survive(3, "lost-quiet", &[]);
    }),
    ("lost_rank_of_a_job_of_threads", || {
        survive(4, "lost-threads", &[]);
    }),
    ("lost_rank_ends_a_job_whose_user_wants_that", || {
        let outcome = Job::launched(3, "lost-again").run();
        outcome.failed(&["rank 1", "SIGKILL"]);
    }),
    (
        "lost_rank_ends_a_job_of_which_a_rank_does_not_go_on",
        || {
            let job = Job::launched(3, "lost-unwilling").env(POLICY, "continue");
            job.run().failed(&["rank 1"]);
        },
    ),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("lost-calls", lost_calls),
    ("lost-again", again),
    ("lost-traffic", traffic),
    ("lost-leaving", leaving),
    ("lost-at-once", at_once),
    ("lost-apart", apart),
    ("lost-tasks", tasks),
    ("lost-halo", halo),
    ("lost-quiet", quiet),
    ("lost-threads", threads),
    ("lost-unwilling", unwilling),
    ("lost-host", host_dies),
    ("lost-network", network_breaks),
];

/// The setting under test.
pub(crate) const POLICY: &str = "ARGONET_ON_RANK_LOST";

/// Which of the calls.
pub(crate) const CALL: &str = "ARGONET_TEST_LOST_CALL";

/// A number from which a program draws.
pub(crate) const SEED: &str = "ARGONET_TEST_LOST_SEED";

argonet::rpc! {
    fn double(n: u64) -> u64 { 2 * n }
    fn first_of(all: Vec<u64>) -> u64 { all[0] }
    fn all_of(all: String) -> String { all }
}

/// Whether the conduit cannot go on without a rank, which the job then says.
fn refuses(outcome: &Outcome) -> bool {
    let refuses = matches!(
        Path::of_this_run(),
        Path::Network("portals" | "portals4" | "udp", _)
    );
    let says = outcome.err.contains("cannot go on without a rank");
    assert_eq!(says, refuses, "{outcome:#?}");
    refuses
}

/// Runs a job that goes on; its survivors check all else.
pub(crate) fn survive(ranks: u32, program: &str, given: &[(&str, &str)]) {
    let mut job = Job::launched(ranks, program).env(POLICY, "continue");
    for (name, value) in given {
        job = job.env(name, value);
    }
    let outcome = job.run();
    if !refuses(&outcome) {
        survived(ranks, &outcome);
    }
}

/// Checks that each rank of a job is lost or has come to its end, and that nothing else is said.
#[track_caller]
pub(crate) fn survived(ranks: u32, outcome: &Outcome) {
    let ended = outcome.out.lines().count();
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
    let lost = outcome.err.lines().filter(|line| line.contains("goes on"));
    let lost = lost.count();
    assert_eq!(ended + lost, ranks as usize, "{outcome:#?}");
    assert!(lost > 0, "{outcome:#?}");
    assert_eq!(outcome.err.lines().count(), lost, "{outcome:#?}");
}

/// A job of which ranks are lost, as one rank sees it.
struct Survivor {
    world: World,
    /// Calls of the handler.
    noticed: Arc<AtomicU32>,
}

impl Survivor {
    fn join() -> Result<Self> {
        let noticed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&noticed);
        let world = World::builder()
            .on_peer_lost(move |_| _ = count.fetch_add(1, Ordering::Relaxed))
            .build()?;
        Ok(Self { world, noticed })
    }

    /// Checks that all ranks but the lost ones go on, and returns their team.
    fn check(&self, v: &SharedArray<u64>, lost: &[Rank]) -> Result<Team> {
        let Self { world, noticed } = self;
        let team = world.survivors()?;
        let mut known = world.lost_ranks();
        assert!(lost.iter().all(|rank| known.contains(rank)), "{known:?}");
        assert_eq!(noticed.load(Ordering::Relaxed) as usize, known.len());
        // The first of them are agreed on; others may have been lost since.
        known.truncate((world.size() - team.size()) as usize);
        assert!(known.iter().all(|rank| team.rank_of(*rank).is_none()));
        assert!(lost.iter().all(|rank| known.contains(rank)), "{known:?}");
        for rank in &known {
            let at = v.ptr(*rank, 0);
            refused(world.put_value(at, 1), *rank);
            refused(world.get_value(at), *rank);
            refused(world.put_from(v.on(*rank), &vec![1; v.len()]), *rank);
            refused(world.fetch_add(at, 1), *rank);
            let put = world.put(v.on(*rank), vec![1; v.len()].into());
            refused(put.and_then(|op| op.wait()), *rank);
            let call = world.rpc(*rank, &double, (4,));
            refused(call.and_then(|op| op.wait()), *rank);
        }
        // In another order at each rank: none waits for others. Another may be lost meanwhile, and
        // be named.
        for call in (0..4).map(|call| (call + world.rank().0) % 4) {
            let outcome = match call {
                _ if known.is_empty() => break,
                0 => world.barrier(),
                1 => world.reduce_all(Reduction::Sum, &mut [1u64]),
                2 => world.team().split(world, Some(0), 0).map(drop),
                _ => SharedArray::<u64>::alloc(world, 10).map(drop),
            };
            assert!(outcome.is_err_and(|error| is_loss(&error)));
        }
        Ok(team)
    }
}

/// It fails because that rank is lost.
#[track_caller]
fn refused<T>(outcome: Result<T>, lost: Rank) {
    match outcome {
        Err(Error::Am(AmError::PeerLost { peer, .. })) => assert_eq!(peer.0, lost.0),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("rank {lost} is lost, and the call succeeds"),
    }
}

/// Whether it fails because a rank is lost.
pub(crate) fn is_loss(error: &Error) -> bool {
    matches!(error, Error::Am(AmError::PeerLost { .. }))
}

/// This rank dies.
pub(crate) fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("to die");
    unreachable!("a killed process goes on")
}

/// All ranks have come so far, though some of them may have died since: the last message of a lost
/// one may be lost with it.
fn meet(world: &World) -> Result<()> {
    match world.barrier() {
        Err(error) if is_loss(&error) => Ok(()),
        outcome => outcome,
    }
}

/// All members of a team communicate.
fn exercise(world: &World, team: &Team, v: &SharedArray<u64>, salt: u64) -> Result<()> {
    let (me, size) = (team.rank().0, team.size());
    let all = team.collectives(world);
    let mut sum = [u64::from(me) + salt];
    all.reduce_all(Reduction::Sum, &mut sum)?;
    let ranks = u64::from(size);
    assert_eq!(sum[0], ranks * (ranks - 1) / 2 + ranks * salt);
    let long = vec![u64::from(me) + salt; 5000];
    let gathered = all.gather_all(&long)?;
    let blocks = gathered.chunks(5000).zip(0u64..);
    assert!(blocks.clone().count() == size as usize);
    for (block, rank) in blocks {
        assert!(block.iter().all(|word| *word == rank + salt));
    }
    // Each puts to the next.
    let next = team.world_rank(team.rank_offset(1));
    let before = u64::from(team.rank_offset(-1).0);
    world.put_from(v.on(next), &vec![u64::from(me) + salt; v.len()])?;
    team.barrier(world)?;
    let mut here = vec![0; v.len()];
    v.read_into(world, 0, &mut here);
    assert!(here.iter().all(|word| *word == before + salt), "{here:?}");
    let got = world.get(v.on(next))?.wait()?;
    assert!(got.iter().all(|word| *word == u64::from(me) + salt));
    let doubled = world.rpc(next, &double, (salt,))?.wait()?;
    assert_eq!(doubled, 2 * salt);
    team.barrier(world)?;
    world.fetch_add(v.ptr(team.world_rank(Rank(0)), 0), 1)?;
    team.barrier(world)?;
    if me == 0 {
        // What its predecessor has put, and one of each.
        assert_eq!(v.read(world, 0), u64::from(size - 1) + salt + ranks);
    }
    team.barrier(world)
}

/// A call that waits for a rank.
pub(crate) type Call = fn(&mut World, &SharedArray<u64>, Rank) -> Result<()>;

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("barrier", |world, _, _| world.barrier()),
    ("reduction", |world, _, _| {
        world.reduce_all(Reduction::Sum, &mut [1u64])
    }),
    ("long reduction", |world, _, _| {
        world.reduce_all(Reduction::Sum, &mut vec![1u64; 100_000])
    }),
    ("broadcast", |world, _, lost| {
        world.collectives().broadcast(lost, &mut [0u64; 3])
    }),
    ("long gather", |world, _, _| {
        world
            .collectives()
            .gather_all(&vec![1u64; 50_000])
            .map(drop)
    }),
    ("started barrier", |world, _, _| {
        world.collectives().start_barrier()?.wait()
    }),
    ("started calls", |world, _, _| {
        let all = world.collectives();
        // More than may be under way at once by cells.
        let ops: Vec<_> = (0..40)
            .map(|_| all.start_reduce_all(Reduction::Sum, vec![1u64; 8].into()))
            .collect::<Result<_>>()?;
        let exchange = all.start_exchange(vec![1u64; 9_000 * world.size() as usize].into())?;
        let failed = ops.into_iter().filter_map(|op| op.wait().err());
        assert!(failed.fold(0, |count, error| count + usize::from(is_loss(&error))) > 0);
        exchange.wait().map(drop)
    }),
    ("drain", |world, _, _| world.drain()),
    ("object", |world, _, _| {
        DistObject::new(world, Cell::new(1)).map(drop)
    }),
    ("quiet phase", |world, _, _| world.quiet(|_| ())),
    ("split", |world, _, _| {
        world.team().split(world, Some(0), 0).map(drop)
    }),
    ("allocation", |world, _, _| {
        SharedArray::<u64>::alloc(world, 100).map(drop)
    }),
    ("get", |world, v, lost| {
        again_and_again(world, || world.get_value(v.ptr(lost, 0)).map(drop))
    }),
    ("long get", |world, v, lost| {
        again_and_again(world, || world.get(v.on(lost))?.wait().map(drop))
    }),
    ("put", |world, v, lost| {
        let values = vec![7; v.len()];
        again_and_again(world, || world.put_from(v.on(lost), &values))
    }),
    ("started puts", |world, v, lost| {
        let put = || world.put(v.on(lost), vec![7; v.len()].into());
        again_and_again(world, || {
            let ops = [put()?, put()?, put()?];
            ops.into_iter().try_for_each(|op| op.wait().map(drop))
        })
    }),
    ("atomic", |world, v, lost| {
        again_and_again(world, || world.fetch_add(v.ptr(lost, 0), 1).map(drop))
    }),
    ("aggregator", |world, v, lost| {
        again_and_again(world, || {
            let mut aggregator = world.aggregator();
            for word in 0..300 {
                aggregator.load(v.ptr(lost, word))?;
                aggregator.load(v.ptr(world.rank(), word))?;
            }
            aggregator.flush().map(drop)
        })
    }),
    ("call", |world, _, lost| {
        again_and_again(world, || world.rpc(lost, &double, (1,))?.wait().map(drop))
    }),
    ("long call", |world, _, lost| {
        // Parts of the arguments or of the result are under way when the rank is lost.
        let text = "x".repeat(20 * MAX_MEDIUM);
        again_and_again(world, || {
            world.rpc(lost, &all_of, (text.clone(),))?.wait().map(drop)
        })
    }),
    ("aggregated calls", |world, _, lost| {
        let mut calls = world.rpc_aggregator();
        again_and_again(world, || {
            // Nothing waits for them.
            calls.rpc_one_way(lost, &double, (4,))?;
            calls.send()
        })
    }),
    ("tasks", |world, _, _| world.run_tasks([0u8], |_, _| {})),
    ("future", |world, v, lost| {
        let get = || async { world.get(v.on(lost))?.await.map(drop) };
        again_and_again(world, || world.block_on(get()))
    }),
];

/// Until it fails.
///
/// What moves within memory polls nowhere, and fails once a poll has noticed the loss.
fn again_and_again(world: &World, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        world.poll()?;
        call()?;
    }
}

fn calls() {
    for number in 0..CALLS.len() {
        survive(4, "lost-calls", &[(CALL, &number.to_string())]);
    }
}

fn lost_calls() -> Done {
    const LOST: Rank = Rank(2);
    let number: usize = std::env::var(CALL)?.parse()?;
    let (name, call) = CALLS[number];
    let ready = Arc::new(AtomicU32::new(0));
    let noticed = Arc::new(AtomicU32::new(0));
    let mut builder = World::builder();
    let note = builder.am("ready", {
        let ready = Arc::clone(&ready);
        move |_, _: u32| _ = ready.fetch_add(1, Ordering::Relaxed)
    });
    let count = Arc::clone(&noticed);
    let world = builder
        .on_peer_lost(move |_| _ = count.fetch_add(1, Ordering::Relaxed))
        .build()?;
    let mut survivor = Survivor { world, noticed };
    let v = SharedArray::alloc(&survivor.world, 20_000)?;
    let world = &mut survivor.world;
    if world.rank() == LOST {
        let others = world.size() - 1;
        world.wait_until(|| ready.load(Ordering::Relaxed) == others)?;
        die();
    }
    world.send(LOST, &note, 0)?;
    match call(world, &v, LOST) {
        Err(error) if is_loss(&error) => {}
        outcome => panic!("{name}: {outcome:?}"),
    }
    let team = survivor.check(&v, &[LOST])?;
    assert_eq!(team.size(), survivor.world.size() - 1);
    exercise(&survivor.world, &team, &v, 5)?;
    Ok(())
}

/// Ranks die one after another, in any place, until two are left.
fn again() -> Done {
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    let v = SharedArray::alloc(world, 3000)?;
    let mut random = Random::new(3);
    let mut order: Vec<u32> = (0..world.size()).collect();
    // The first that dies is rank 1, which a test names.
    for at in 2..order.len() {
        order.swap(at, 1 + random.below(at));
    }
    order.swap(0, 1);
    let mut team = world.survivors()?;
    for (dead, &next) in order[..order.len() - 2].iter().enumerate() {
        let lost: Vec<Rank> = order[..=dead].iter().map(|rank| Rank(*rank)).collect();
        let salt = 100 * dead as u64;
        let rounds = random.below(3) as u64;
        let exercised = (0..rounds).try_for_each(|n| exercise(world, &team, &v, salt + n));
        if world.rank().0 == next {
            exercised?;
            die();
        }
        // Its last messages may be lost with it.
        let exercised = exercised.and_then(|()| exercise(world, &team, &v, salt + 99));
        let error = exercised.expect_err("the team is broken");
        assert!(is_loss(&error), "{error}");
        team = survivor.check(&v, &lost)?;
        assert_eq!(team.size() as usize, order.len() - lost.len());
    }
    exercise(world, &team, &v, 1000)?;
    Ok(())
}

/// A rank dies while all have tasks.
fn tasks() -> Done {
    const LOST: Rank = Rank(2);
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    let v = SharedArray::alloc(world, 3000)?;
    world.barrier()?;
    let mut ran = 0;
    // Each rank also has one that would never end.
    let outcome = world.run_tasks([9, u32::MAX], |height, tasks| {
        ran += 1;
        if world.rank() == LOST && ran == 20 {
            die();
        }
        if height == u32::MAX {
            tasks.push(height);
            return;
        }
        (0..height).for_each(|height| tasks.push(height));
        tasks.push_to(world.rank_offset(1), 0).unwrap();
    });
    let error = outcome.expect_err("tasks are lost");
    assert!(is_loss(&error), "{error}");
    let team = survivor.check(&v, &[LOST])?;
    exercise(world, &team, &v, 7)?;
    Ok(())
}

/// A rank dies while ranks wait for those beside them, of which some wait for others.
fn halo() -> Done {
    const LOST: Rank = Rank(2);
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    let v = SharedArray::alloc(world, 3000)?;
    let line = Distribution::new([20], [Spread::Block]).halo([1]);
    let mut line = GlobalArray::<u64, 1>::alloc(world, line)?;
    let error = loop {
        if world.rank() == LOST && line.exchange_halo(world).is_ok() {
            die();
        }
        if let Err(error) = line.exchange_halo(world) {
            break error;
        }
    };
    assert!(is_loss(&error), "{error}");
    let again = line.exchange_halo(world);
    assert!(matches!(again, Err(Error::HaloBroken { .. })));
    let team = survivor.check(&v, &[LOST])?;
    exercise(world, &team, &v, 7)?;
    Ok(())
}

/// A rank dies in a quiet phase: the others learn of it when none has a slice any more, their
/// progress threads too.
fn quiet() -> Done {
    const SLOW: Rank = Rank(1);
    let noticed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&noticed);
    let mut world = World::builder()
        .on_peer_lost(move |_| _ = count.fetch_add(1, Ordering::Relaxed))
        .build_par()?;
    world.start_progress_thread()?;
    let mut v = SharedArray::<u64>::alloc(&world, 100)?;
    let rank = world.rank();
    let outcome = world.quiet(|q| {
        let slice = v.local_mut(q);
        slice.fill(7);
        if rank == Rank(2) {
            die();
        }
        let begun = Instant::now();
        while rank == SLOW && begun.elapsed() < Duration::from_millis(300) {
            assert_eq!(noticed.load(Ordering::Relaxed), 0, "a phase is not left");
            assert!(std::hint::black_box(&*slice).iter().all(|it| *it == 7));
        }
    });
    let error = outcome.expect_err("a rank is lost");
    assert!(is_loss(&error), "{error}");
    // What the other one does when its phase has ended too.
    world.put_from(v.on(SLOW), &[9; 100])?;
    world.survivors()?.barrier(&world)?;
    Ok(())
}

/// Two ranks die at about the same time, while all put, get, add and call.
fn traffic() -> Done {
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    let seed: u64 = std::env::var(SEED)?.parse()?;
    let mut random = Random::new(seed);
    let first = random.below(world.size() as usize) as u32;
    let second = (first + 1 + random.below(world.size() as usize - 1) as u32) % world.size();
    let v = SharedArray::<u64>::alloc(world, 40_000)?;
    meet(world)?;
    let mut own = Random::new(seed << 8 | u64::from(world.rank().0));
    let ends = [first, second].contains(&world.rank().0);
    let steps = ends.then(|| own.below(60));
    let mut done = 0;
    while survivor.noticed.load(Ordering::Relaxed) < 2 {
        if steps == Some(done) {
            die();
        }
        done += 1;
        world.poll()?;
        let to = Rank(own.below(world.size() as usize) as u32);
        let len = [1, 9, 700, 9_000, v.len()][own.below(5)];
        let slice = v.on(to).part(..len);
        let outcome = match own.below(5) {
            0 => world
                .put(slice, vec![1; len].into())
                .and_then(|op| op.wait())
                .map(drop),
            1 => world.get(slice).and_then(|op| op.wait()).map(drop),
            2 => world.fetch_add(v.ptr(to, 0), 1).map(drop),
            3 => world
                .rpc(to, &double, (3,))
                .and_then(|op| op.wait())
                .map(drop),
            _ => {
                // Begun, and given up by dropping it.
                world.put(slice, vec![2; len].into()).map(drop)
            }
        };
        if let Err(error) = outcome {
            assert!(is_loss(&error), "{error}");
            assert!(world.lost_ranks().contains(&to), "rank {to} lives");
        }
    }
    let team = survivor.check(&v, &[Rank(first), Rank(second)])?;
    exercise(world, &team, &v, 9)?;
    Ok(())
}

/// Calls until ranks are lost, and goes on without them; those that are left.
fn go_on_once_lost(
    survivor: &Survivor,
    call: impl Fn(&World, &SharedArray<u64>) -> Result<()>,
) -> Result<Team> {
    let world = &survivor.world;
    let v = SharedArray::alloc(world, 3000)?;
    let mut said = false;
    let error = loop {
        if let Err(error) = call(world, &v) {
            break error;
        }
        if world.rank().0 == 0 && !std::mem::replace(&mut said, true) {
            eprintln!("all are ready");
        }
    };
    assert!(is_loss(&error), "{error}");
    let mut team = survivor.check(&v, &[])?;
    loop {
        let outcome = exercise(world, &team, &v, 7);
        // All ask as often. Another may have been lost meanwhile.
        let left = survivor.check(&v, &[])?;
        if left.size() == team.size() {
            return outcome.map(|()| left);
        }
        team = left;
    }
}

/// Survivors leave when they know who is left, some of them before others know it.
fn at_once() -> Done {
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    meet(world)?;
    if world.rank().0 == 1 {
        die();
    }
    while world.survivors()?.size() == world.size() {}
    Ok(())
}

/// The ranks of a host die with their agent.
fn host_dies() -> Done {
    let survivor = Survivor::join()?;
    let size = survivor.world.size();
    let team = go_on_once_lost(&survivor, |world, _| world.barrier())?;
    assert_eq!(team.size(), size - 2);
    Ok(())
}

/// Ranks cannot reach each other any more.
fn network_breaks() -> Done {
    let survivor = Survivor::join()?;
    let (rank, size) = (survivor.world.rank().0, survivor.world.size());
    let next = Rank((rank + 1) % size);
    let values = vec![7; 3000];
    let kind = std::env::var(CALL)?;
    let team = go_on_once_lost(&survivor, |world, v| {
        match kind.as_str() {
            // More than there is room for while nothing moves.
            "puts" => {
                let put = |_| world.put(v.on(next), values.clone().into());
                let ops: Vec<_> = (0..500).map(put).collect::<Result<_>>()?;
                ops.into_iter().try_for_each(|op| op.wait().map(drop))?;
            }
            "calls" => {
                let call = |_| world.rpc(next, &first_of, (values.clone(),));
                let ops: Vec<_> = (0..500).map(call).collect::<Result<_>>()?;
                ops.into_iter().try_for_each(|op| op.wait().map(drop))?;
            }
            _ => world.barrier()?,
        }
        world.poll()?;
        // Another rank than the next is lost.
        match survivor.noticed.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => world.barrier(),
        }
    })?;
    assert!(team.size() < size);
    Ok(())
}

/// A rank dies while others wait in order to leave.
fn leaving() -> Done {
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    meet(world)?;
    if world.rank() == Rank(1) {
        // Others come to their end meanwhile, or have done so before.
        for _ in 0..1000 {
            world.poll()?;
        }
        die();
    }
    Ok(())
}

/// Some survivors leave while others ask who is left.
fn apart() -> Done {
    let survivor = Survivor::join()?;
    let world = &survivor.world;
    // A rank that dies while others still start ends the job.
    let started = world.barrier();
    assert!(started.as_ref().err().is_none_or(is_loss), "{started:?}");
    if world.rank() == Rank(1) {
        die();
    }
    world.wait_until(|| survivor.noticed.load(Ordering::Relaxed) == 1)?;
    if world.rank() != Rank(0) {
        world.survivors()?;
    }
    Ok(())
}

/// Several threads of each rank wait when a rank dies.
fn threads() -> Done {
    let noticed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&noticed);
    let world = World::builder()
        .on_peer_lost(move |_| _ = count.fetch_add(1, Ordering::Relaxed))
        .build_par()?;
    let v = SharedArray::<u64>::alloc(&world, 20_000)?;
    const LOST: Rank = Rank(3);
    let steps = AtomicU32::new(0);
    std::thread::scope(|threads| {
        let mut handles = Vec::new();
        for thread in 0..3 {
            let (world, v, steps) = (&world, &v, &steps);
            handles.push(threads.spawn(move || -> Result<()> {
                loop {
                    if world.rank() == LOST && steps.fetch_add(1, Ordering::Relaxed) > 200 {
                        die();
                    }
                    let outcome = match thread {
                        0 => world.barrier(),
                        1 => world.put_from(v.on(LOST), &vec![1; v.len()]),
                        _ => world
                            .rpc(LOST, &double, (2,))
                            .and_then(|op| op.wait())
                            .map(drop),
                    };
                    if let Err(error) = outcome {
                        assert!(is_loss(&error), "{error}");
                        return Ok(());
                    }
                }
            }));
        }
        handles
            .into_iter()
            .try_for_each(|handle| handle.join().expect("no panic"))
    })?;
    assert_eq!(noticed.load(Ordering::Relaxed), 1);
    let team = world.survivors()?;
    assert_eq!(team.size(), world.size() - 1);
    let mut sum = [1u64];
    team.collectives(&world)
        .reduce_all(Reduction::Sum, &mut sum)?;
    assert_eq!(sum[0], u64::from(team.size()));
    Ok(())
}

/// No rank asks for anything.
fn unwilling() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(1) {
        die();
    }
    world.wait_until(|| false)?;
    Ok(())
}
