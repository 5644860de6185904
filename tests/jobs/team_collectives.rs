//! Collective operations of teams against sequential results.

use std::sync::Arc;

use argonet::{Blocks, Collectives, Par, Rank, Reduction, Seq, Threading, World};

use crate::support::{Done, Job, Pattern, Program, Test, each};

const SIZES: [u32; 6] = [1, 2, 3, 4, 5, 8];

pub(crate) const TESTS: &[Test] = &[
    ("team_collectives_all_ranks_everything", || {
        each(&SIZES, "team-collectives-world")
    }),
    ("team_collectives_rows_and_columns_at_once", || {
        each(&SIZES, "team-collectives-teams")
    }),
    ("team_collectives_by_messages_in_small_pieces", || {
        for ranks in [2, 3, 5] {
            small(Job::launched(ranks, "team-collectives-world"))
                .run()
                .well();
            small(Job::launched(ranks, "team-collectives-teams"))
                .run()
                .well();
        }
    }),
    ("team_collectives_threads_of_different_teams", || {
        each(&[2, 4], "team-collectives-threads")
    }),
    ("team_collectives_operations_that_are_dropped_go_on", || {
        each(&[1, 2, 4], "team-collectives-dropped")
    }),
    (
        "team_collectives_short_ones_that_wait_for_room_before_a_long_one",
        || each(&[2, 3, 8], "team-collectives-queued"),
    ),
    ("team_collectives_wrong_settings", || {
        for (name, value, part) in [
            (
                "GASNET_COLL_ROOTED_GEOM",
                "KNOMIAL_TREE,1",
                "a radix of 2 or more",
            ),
            ("GASNET_COLL_TUNING_FILE", "/nowhere/at/all", "No such file"),
        ] {
            let outcome = Job::launched(2, "team-collectives-world")
                .env(name, value)
                .run();
            outcome.failed(&[name, value, part]);
        }
    }),
    (
        "team_collectives_a_long_call_against_a_short_one_names_both",
        || {
            for job in [
                Job::launched(3, "team-collectives-differs"),
                Job::self_started(2, "team-collectives-differs"),
            ] {
                job.run().failed(&[
                    "rank 1: members of a team call different operations",
                    "a broadcast with root 0 and 20000 u8 at rank 1",
                    "a broadcast with root 0 and 5 u8 at rank 0",
                ]);
            }
        },
    ),
    ("team_collectives_lengths_that_differ_end_the_job", || {
        for ranks in [2, 3] {
            let job = Job::launched(ranks, "team-collectives-lengths");
            job.run()
                .failed(&["member 1 of a team sent 24 bytes", "where 16 are expected"]);
        }
    }),
    (
        "team_collectives_tuning_files_are_read_alike_or_refused",
        tuning_files,
    ),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("team-collectives-world", || {
        let world = World::init()?;
        everything(&world.collectives(), world.rank(), world.size())?;
        Ok(world.finalize()?)
    }),
    ("team-collectives-teams", teams),
    ("team-collectives-threads", threads),
    ("team-collectives-dropped", dropped),
    ("team-collectives-queued", queued),
    ("team-collectives-lengths", || {
        let world = World::init()?;
        let (me, size) = (world.rank().0, world.size());
        // Rank 1 has a value more for rank 0 than that awaits.
        let len = |from: u32, to: u32| if (from, to) == (1, 0) { 3 } else { 2 };
        let blocks: Blocks<u64> = (0..size).map(|to| vec![7; len(me, to)]).collect();
        let lengths = vec![2; size as usize];
        let calls = world.collectives();
        calls.start_exchange_v(blocks, &lengths)?.wait()?;
        calls.start_barrier()?.wait()?;
        println!("lengths that differ are found");
        Ok(world.finalize()?)
    }),
    ("team-collectives-differs", || {
        let world = World::init()?;
        let len = if world.rank() == Rank(1) { 20_000 } else { 5 };
        world
            .collectives()
            .broadcast(Rank(0), &mut vec![1u8; len])?;
        Ok(world.finalize()?)
    }),
];

/// The name of tuning files.
const FILE: &str = "coll.tune";

/// A directory of this process's own with a tuning file, gone with the value.
struct Tuned(std::path::PathBuf);

impl Tuned {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("argonet-tuned-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(FILE), text).unwrap();
        Self(path)
    }

    fn file(&self) -> String {
        self.0.join(FILE).to_str().unwrap().into()
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Errors name the file and number of a wrong line, and the setting in which the files of two ranks
/// differ.
fn tuning_files() {
    const NAME: &str = "GASNET_COLL_TUNING_FILE";
    let good = Tuned::new("good", "# small\nGASNET_COLL_PIPE_SEG_SIZE=128\n");
    let other = Tuned::new("other", "GASNET_COLL_PIPE_SEG_SIZE=256\n");
    let wrong = Tuned::new("wrong", "# small\nGASNET_COLL_PIPE_SEG_SIZE=some\n");
    let job = Job::launched(3, "team-collectives-world");
    job.env(NAME, &good.file()).run().well();
    let job = Job::launched(3, "team-collectives-world");
    let outcome = job.env(NAME, &wrong.file()).run();
    outcome.failed(&[NAME, &wrong.file(), "line 2", "PIPE_SEG_SIZE=some", "64 KB"]);
    // One name, and two files, as there may be on two hosts.
    let [here, there] = [&good, &other].map(|tuned| tuned.0.display());
    let script =
        format!("case $ARGONET_BOOT in 2:1:*) cd {there};; *) cd {here};; esac; exec \"$0\"");
    let elsewhere = || Job::wrapped(3, &script, "team-collectives-world").env(NAME, FILE);
    let outcome = elsewhere().run();
    outcome.failed(&[
        "rank 1: GASNET_COLL_PIPE_SEG_SIZE is 256 by the file coll.tune here and 128 on rank 0",
    ]);
    // A setting in the environment counts more than any file.
    let job = elsewhere().env("GASNET_COLL_PIPE_SEG_SIZE", "1000");
    job.run().well();
}

/// Nothing is read where it lies, and everything is offered or goes in pieces.
fn small(job: Job) -> Job {
    job.env("ARGONET_CROSS_MEMORY", "0")
        .env("ARGONET_COLL_EAGER_SIZE", "64")
        .env("GASNET_COLL_PIPE_SEG_SIZE", "1000")
        .env("GASNET_COLL_SCRATCH_SIZE", "2000")
        .env("GASNET_COLL_ROOTED_GEOM", "KNOMIAL_TREE,3")
}

/// Values that rank `from` has for rank `to`.
fn values(from: u32, to: u32, len: usize) -> Vec<u64> {
    let value = |at| u64::from(from) * 1_000_003 + u64::from(to) * 10_007 + at as u64;
    (0..len).map(value).collect()
}

fn sum(ranks: core::ops::Range<u32>, to: u32, len: usize) -> Vec<u64> {
    let mut sum = vec![0; len];
    for rank in ranks {
        sum.iter_mut()
            .zip(values(rank, to, len))
            .for_each(|(a, b)| *a += b);
    }
    sum
}

fn everything<M: Threading>(all: &Collectives<'_, M>, me: Rank, size: u32) -> argonet::Result<()> {
    of_a_value(all, me, size)?;
    for len in [0, 1, 7, 100, 1500, 20_000] {
        let mine = values(me.0, 0, len);
        let flat =
            |from: &dyn Fn(u32) -> Vec<u64>| -> Vec<u64> { (0..size).flat_map(from).collect() };
        let blocks = flat(&|to| values(me.0, to, len));
        for root in (0..size).map(Rank) {
            let mut word = if me == root {
                mine.clone()
            } else {
                vec![0; len]
            };
            all.broadcast(root, &mut word)?;
            assert_eq!(word, values(root.0, 0, len));
            let reduced = all.reduce(root, Reduction::Sum, &mine)?;
            assert_eq!(reduced, (me == root).then(|| sum(0..size, 0, len)));
            let gathered = all.gather(root, &mine)?;
            assert_eq!(
                gathered,
                (me == root).then(|| flat(&|from| values(from, 0, len)))
            );
            let mut own = vec![0; len];
            let given = if me == root { &blocks[..] } else { &[] };
            all.scatter(root, given, &mut own)?;
            assert_eq!(own, values(root.0, me.0, len));
        }
        let mut word = mine.clone();
        all.reduce_all(Reduction::Sum, &mut word)?;
        assert_eq!(word, sum(0..size, 0, len));
        let mut word = mine.clone();
        all.scan(Reduction::Sum, &mut word)?;
        assert_eq!(word, sum(0..me.0 + 1, 0, len));
        let before = all.exclusive_scan(Reduction::Sum, &mine)?;
        assert_eq!(before, (me.0 > 0).then(|| sum(0..me.0, 0, len)));
        assert_eq!(all.gather_all(&mine)?, flat(&|from| values(from, 0, len)));
        assert_eq!(
            all.exchange(&blocks)?,
            flat(&|from| values(from, me.0, len))
        );
        assert_eq!(
            all.reduce_scatter(Reduction::Sum, &blocks)?,
            sum(0..size, me.0, len)
        );
        let mut run = vec![[me.0, me.0, 0]; len];
        all.reduce_all_with(&mut run, |a, b| {
            [a[0], b[1], a[2] | b[2] | u32::from(a[1] + 1 != b[0])]
        })?;
        assert!(run.iter().all(|run| *run == [0, size - 1, 0]));
        // Short ones, and such as are offered.
        if matches!(len, 7 | 20_000) {
            unequal(all, me, size, len)?;
        }
        // The same bits at all ranks.
        let mut third = vec![1.0 / f64::from(3 + me.0); len];
        all.reduce_all(Reduction::Sum, &mut third)?;
        let bits: Vec<u64> = third.iter().map(|x| x.to_bits()).collect();
        let mut same = bits.clone();
        all.broadcast(Rank(0), &mut same)?;
        assert_eq!(same, bits);
    }
    Ok(())
}

/// Blocks of up to `most` values, a third of them empty.
fn unequal<M: Threading>(
    all: &Collectives<'_, M>,
    me: Rank,
    size: u32,
    most: usize,
) -> argonet::Result<()> {
    let len = |from: u32, to: u32| match (from * 5 + to * 3) % 3 {
        0 => 0,
        1 => most,
        _ => most / 2,
    };
    let block = |from, to| values(from, to, len(from, to));
    let given: Blocks<u64> = (0..size).map(|to| block(me.0, to)).collect();
    let come: Blocks<u64> = (0..size).map(|from| block(from, me.0)).collect();
    let lengths: Vec<usize> = come.iter().map(<[u64]>::len).collect();
    assert_eq!(all.exchange_v(&given)?, come);
    let started = all.start_exchange_v(given.clone(), &lengths)?;
    // Each has as many values for all.
    let first: Blocks<u64> = (0..size).map(|from| block(from, 0)).collect();
    let lengths: Vec<usize> = first.iter().map(<[u64]>::len).collect();
    let mine = block(me.0, 0);
    assert_eq!(all.gather_all_v(&mine)?, first);
    let later = all.start_gather_all_v(mine.clone().into(), &lengths)?;
    for root in (0..size).map(Rank) {
        let is_root = me == root;
        let gathered = all.gather_v(root, &mine)?;
        assert_eq!(gathered, is_root.then(|| first.clone()));
        let gathered = all.start_gather_v(root, mine.clone().into(), &lengths)?;
        let blocks = is_root.then(|| given.clone());
        let own = block(root.0, me.0);
        assert_eq!(all.scatter_v(root, blocks.as_ref())?, own);
        let scattered = all.start_scatter_v(root, blocks, own.len())?;
        assert_eq!(*scattered.wait()?, *own);
        assert_eq!(gathered.wait()?, is_root.then(|| first.clone()));
    }
    assert_eq!(later.wait()?, first);
    assert_eq!(started.wait()?, come);
    Ok(())
}

/// One value of each rank, and combinations of one's own.
fn of_a_value<M: Threading>(all: &Collectives<'_, M>, me: Rank, size: u32) -> argonet::Result<()> {
    let sum = |ranks: core::ops::Range<u32>| ranks.map(|rank| rank + 1).sum::<u32>();
    let mine = me.0 + 1;
    let run = |a: [u32; 2], b: [u32; 2]| {
        assert_eq!(a[1] + 1, b[0], "operands in the order of ranks");
        [a[0], b[1]]
    };
    for root in (0..size).map(Rank) {
        assert_eq!(all.broadcast_value(root, mine)?, root.0 + 1);
        let reduced = all.reduce_value(root, Reduction::Sum, mine)?;
        assert_eq!(reduced, (me == root).then(|| sum(0..size)));
        let reduced = all.reduce_with(root, &[[me.0; 2]; 3], run)?;
        assert_eq!(reduced, (me == root).then(|| vec![[0, size - 1]; 3]));
    }
    assert_eq!(all.reduce_all_value(Reduction::Sum, mine)?, sum(0..size));
    let pair = all.reduce_all_value(Reduction::Max, [mine, size - me.0])?;
    assert_eq!(pair, [size, size]);
    assert_eq!(all.scan_value(Reduction::Sum, mine)?, sum(0..mine));
    let before = all.exclusive_scan_value(Reduction::Sum, mine)?;
    assert_eq!(before, (me.0 > 0).then(|| sum(0..me.0)));
    let mut runs = [[me.0; 2]; 2];
    all.scan_with(&mut runs, run)?;
    assert_eq!(runs, [[0, me.0]; 2]);
    let before = all.exclusive_scan_with(&[[me.0; 2]], run)?;
    assert_eq!(before, me.0.checked_sub(1).map(|last| vec![[0, last]]));
    // The same, under way at once; what they own besides is captured.
    let witness = Arc::new(());
    let owned = || {
        let witness = Arc::clone(&witness);
        move |a, b| {
            assert!(Arc::strong_count(&witness) > 1);
            run(a, b)
        }
    };
    let mine = |count| vec![[me.0; 2]; count].into_boxed_slice();
    let roots = (0..size).map(|root| all.start_reduce_with(Rank(root), mine(3), owned()));
    let roots: Vec<_> = roots.collect::<argonet::Result<_>>()?;
    let whole = all.start_reduce_all_with(mine(700), owned())?;
    let runs = all.start_scan_with(mine(2), owned())?;
    let last = all.start_exclusive_scan_with(mine(1), owned())?;
    let sums = all.start_exclusive_scan(Reduction::Sum, vec![me.0 + 1, 1].into())?;
    assert_eq!(last.wait()?.map(<[_]>::into_vec), before);
    assert_eq!(*runs.wait()?, [[0, me.0]; 2]);
    assert_eq!(*whole.wait()?, [[0, size - 1]; 700]);
    for (root, reduced) in (0..size).zip(roots) {
        let reduced = reduced.wait()?.map(<[_]>::into_vec);
        assert_eq!(reduced, (me.0 == root).then(|| vec![[0, size - 1]; 3]));
    }
    let before = sums.wait()?.map(<[_]>::into_vec);
    assert_eq!(before, (me.0 > 0).then(|| vec![sum(0..me.0), me.0]));
    let nowhere = all.start_reduce_with(Rank(size), mine(1), owned());
    assert!(nowhere.is_err());
    assert_eq!(
        Arc::strong_count(&witness),
        1,
        "closures end with their operations, and where none was started"
    );
    // One that is dropped goes on, with its closure.
    drop(all.start_reduce_all_with(mine(9), owned())?);
    assert_eq!(all.reduce_all_value(Reduction::Sum, 1u32)?, size);
    // It may combine later still.
    std::mem::forget(witness);
    Ok(())
}

/// Several under way of the world, of rows and of columns, waited for in any order.
fn teams() -> Done {
    let world = World::init()?;
    let (me, size) = (world.rank().0, world.size());
    let all = world.team();
    let row = all
        .split(&world, Some(me / 2), -i64::from(me) as i32)?
        .expect("a row");
    let column = all.split(&world, Some(me % 2), 0)?.expect("a column");
    for team in [&row, &column] {
        everything(&team.collectives(&world), team.rank(), team.size())?;
    }
    let (world_of, row_of, column_of) = (
        world.collectives(),
        row.collectives(&world),
        column.collectives(&world),
    );
    for round in 0..40u32 {
        let len = [1, 50, 3000, 30_000][round as usize % 4];
        let mut sums = Vec::new();
        for (team, count) in [
            (&world_of, size),
            (&row_of, row.size()),
            (&column_of, column.size()),
        ] {
            sums.push((
                team.start_reduce_all(Reduction::Sum, vec![round; len].into())?,
                count,
            ));
        }
        let barrier = row_of.start_barrier()?;
        let all = column_of.start_gather_all(vec![me].into())?;
        assert!(
            all.wait()?
                .iter()
                .copied()
                .eq(column.ranks().map(|rank| column.world_rank(rank).0))
        );
        for (sum, count) in sums.into_iter().rev() {
            assert!(sum.wait()?.iter().all(|sum| *sum == round * count));
        }
        barrier.wait()?;
    }
    drop((world_of, row_of, column_of));
    Ok(world.finalize()?)
}

/// Each thread has a team of its own, of all ranks.
fn threads() -> Done {
    let world: World<Par> = World::builder().build_par()?;
    let me = world.rank();
    let teams: Vec<_> = (0..3)
        .map(|key| world.team().split(&world, Some(0), key * me.0 as i32))
        .collect::<argonet::Result<_>>()?;
    std::thread::scope(|scope| {
        for team in teams.iter().flatten() {
            let world = &world;
            scope.spawn(move || {
                for _ in 0..3 {
                    everything(&team.collectives(world), team.rank(), team.size())
                        .expect("all goes well");
                }
            });
        }
    });
    drop(teams);
    Ok(world.finalize()?)
}

/// An operation that one rank drops completes at the others.
fn dropped() -> Done {
    let world: World<Seq> = World::init()?;
    let me = world.rank().0;
    let pattern = Pattern::new();
    for round in 0..50u64 {
        let root = Rank((round % u64::from(world.size())) as u32);
        let content = pattern.piece(round, 20_000);
        let bytes = if me == root.0 {
            content.to_vec()
        } else {
            vec![0; 20_000]
        };
        let sent = world.collectives().start_broadcast(root, bytes.into())?;
        if me == root.0 {
            drop(sent);
        } else {
            assert!(*sent.wait()? == *content);
        }
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// More short calls than there is room for, with long ones between: a rank that waits for room
/// differs from no other rank.
fn queued() -> Done {
    let world: World<Seq> = World::init()?;
    let (me, size) = (world.rank().0, world.size());
    for round in 0..100u32 {
        let mut short = Vec::new();
        let mut long = Vec::new();
        for call in 0..40u32 {
            let value = vec![round + call + me].into();
            let number = size * (round + call) + size * (size - 1) / 2;
            let started = world
                .collectives()
                .start_reduce_all(Reduction::Sum, value)?;
            short.push((started, number));
            if call % 16 == 7 {
                let bytes = vec![if me == 0 { call as u8 } else { 0 }; 10_000];
                let started = world.collectives().start_broadcast(Rank(0), bytes.into())?;
                long.push((started, call as u8));
            }
        }
        for (started, byte) in long {
            assert!(started.wait()?.iter().all(|&b| b == byte));
        }
        for (started, number) in short {
            assert_eq!(*started.wait()?, [number]);
        }
    }
    Ok(world.finalize()?)
}
