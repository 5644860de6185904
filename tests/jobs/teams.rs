//! Teams against what every rank can work out for itself.

use argonet::engine::TeamError;
use argonet::{Error, JobRank, Par, Rank, SharedArray, Team, Threading, World};

use crate::support::{Done, Job, Path, Program, Random, Test, each};

const SIZES: [u32; 5] = [1, 2, 3, 5, 8];

pub(crate) const TESTS: &[Test] = &[
    ("teams_split_by_random_colors_and_keys", || {
        each(&SIZES, "teams-split");
        let job = Job::launched(32, "teams-split").env("ARGONET_SEGMENT", "65536");
        job.run().well();
    }),
    ("teams_created_from_lists", || each(&SIZES, "teams-create")),
    ("teams_refused_and_the_job_goes_on", || {
        each(&[2, 3, 5], "teams-refused");
    }),
    ("teams_dropped_anywhere", || {
        each(&[1, 2, 3], "teams-dropped")
    }),
    ("teams_of_many_threads", || {
        each(&[1, 2, 4], "teams-threads")
    }),
    ("teams_where_ranks_are", || each(&SIZES, "teams-places")),
    ("teams_of_hosts", hosts),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("teams-split", split),
    ("teams-create", create),
    ("teams-refused", refused),
    ("teams-dropped", dropped),
    ("teams-threads", threads),
    ("teams-places", places),
    ("teams-hosts", on_hosts),
];

/// A team is of these ranks of the world, and they reach each other through it.
fn is_team<M: Threading>(
    world: &World<M>,
    team: &Team,
    members: &[Rank],
    slots: &SharedArray<u32>,
) -> Done {
    assert_eq!(team.size() as usize, members.len());
    assert!(
        team.ranks()
            .map(|rank| team.world_rank(rank))
            .eq(members.iter().copied())
    );
    assert_eq!(team.world_rank(team.rank()), world.rank());
    for rank in world.ranks() {
        let place = members.iter().position(|member| *member == rank);
        assert_eq!(team.rank_of(rank), place.map(|place| Rank(place as u32)));
    }
    assert_eq!(team.rank_of(Rank(world.size())), None);
    // Around the team: the value that the member before has put is there after the barrier.
    let next = team.world_rank(team.rank_offset(1));
    world.put_value(slots.ptr(next, 0), team.rank().0 + 7)?;
    team.barrier(world)?;
    assert_eq!(slots.read(world, 0), team.rank_offset(-1).0 + 7);
    team.barrier(world)?;
    Ok(())
}

/// Choices of some ranks, the same list at all of them.
fn choices(random: &mut Random, count: usize) -> Vec<(Option<u32>, i32)> {
    let key = |random: &mut Random| match random.below(5) {
        0 => i32::MIN,
        1 => i32::MAX,
        small => small as i32 - 3,
    };
    (0..count)
        .map(|_| {
            let color = [None, Some(0), Some(1), Some(u32::MAX)][random.below(4)];
            (color, key(random))
        })
        .collect()
}

/// The members of a team, by its rank of them, in the order of their keys.
fn of(parent: &[Rank], choices: &[(Option<u32>, i32)], color: u32) -> Vec<Rank> {
    let mut those: Vec<_> = (0..parent.len())
        .filter(|&rank| choices[rank].0 == Some(color))
        .collect();
    those.sort_by_key(|&rank| choices[rank].1);
    those.into_iter().map(|rank| parent[rank]).collect()
}

fn split() -> Done {
    let world = World::init()?;
    let slots = SharedArray::<u32>::alloc(&world, 1)?;
    let all: Vec<_> = world.ranks().collect();
    let rounds = if world.size() > 8 { 3 } else { 20 };
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let chosen = choices(&mut random, all.len());
        let (color, key) = chosen[world.rank().0 as usize];
        let Some(team) = world.team().split(&world, color, key)? else {
            assert_eq!(color, None);
            continue;
        };
        let members = of(&all, &chosen, color.ok_or("joined nothing")?);
        is_team(&world, &team, &members, &slots)?;
        // The team's own teams, which outlive it.
        let mut random = Random::new(1000 + u64::from(members[0].0));
        let chosen = choices(&mut random, members.len());
        let (color, key) = chosen[team.rank().0 as usize];
        let second = team.split(&world, color, key)?;
        drop(team);
        if let Some(second) = second {
            let of_second = of(&members, &chosen, color.ok_or("joined nothing")?);
            is_team(&world, &second, &of_second, &slots)?;
        }
    }
    Ok(world.finalize()?)
}

fn create() -> Done {
    let world = World::init()?;
    let slots = SharedArray::<u32>::alloc(&world, 1)?;
    for seed in 0..20 {
        // Ranks in a random order, cut into teams and one part that makes none.
        let mut random = Random::new(seed);
        let mut order: Vec<_> = world.ranks().collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        let parent = world
            .team()
            .create(&world, &order)?
            .ok_or("all are in it")?;
        is_team(&world, &parent, &order, &slots)?;
        let parts: Vec<_> = order.iter().map(|_| random.below(3)).collect();
        let own = parts[parent.rank().0 as usize];
        // Names are ranks of the parent.
        let list: Vec<_> = parent
            .ranks()
            .filter(|rank| own > 0 && parts[rank.0 as usize] == own)
            .collect();
        let team = parent.create(&world, &list)?;
        assert_eq!(team.is_some(), own > 0);
        if let Some(team) = team {
            let members: Vec<_> = list.iter().map(|&rank| parent.world_rank(rank)).collect();
            is_team(&world, &team, &members, &slots)?;
        }
    }
    Ok(world.finalize()?)
}

fn cause(outcome: argonet::Result<Option<Team>>) -> Option<TeamError> {
    match outcome {
        Err(Error::Team { cause, .. }) => Some(cause),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

fn refused() -> Done {
    let world = World::init()?;
    let (team, me) = (world.team(), world.rank());
    let (one, two) = (Rank(0), Rank(1));
    // A list that cannot be: rank 1, and rank 0, which names rank 1, get an error, and no other.
    let list = match me.0 {
        0 => vec![one, two],
        1 => vec![one, two, Rank(world.size())],
        _ => vec![],
    };
    let outcome = cause(team.create(&world, &list));
    match me.0 {
        0 => assert_eq!(outcome, Some(TeamError::WrongElsewhere { other: 1 })),
        1 => {
            let (process, size) = (JobRank(world.size()), world.size());
            assert_eq!(outcome, Some(TeamError::NoSuchProcess { process, size }));
        }
        _ => assert_eq!(outcome, None),
    }
    // Two lists with a rank in common.
    let list = match me.0 {
        0 => vec![one, two],
        1 => vec![two, one],
        _ => vec![],
    };
    let outcome = cause(team.create(&world, &list));
    assert_eq!(me.0 < 2, matches!(outcome, Some(TeamError::Overlap { .. })));
    // A rank that gives no list.
    let list = if me == one { vec![one, two] } else { vec![] };
    let outcome = cause(team.create(&world, &list));
    let absent = TeamError::Absent {
        process: JobRank(1),
        endpoint: 0,
    };
    assert_eq!(outcome, (me == one).then_some(absent));
    // Others split meanwhile.
    let outcome = match me.0 {
        0 => cause(team.split(&world, Some(0), 0)),
        _ => cause(team.create(&world, &[])),
    };
    assert_eq!(
        outcome,
        Some(TeamError::DifferentCalls { one: 0, other: 1 })
    );
    // And the job goes on.
    let all = team.split(&world, Some(0), 0)?.ok_or("a color is given")?;
    all.barrier(&world)?;
    Ok(world.finalize()?)
}

argonet::am! {
    fn drop_here(_ctx, round: u32) {
        // A handler may not send, and need not.
        let team = HELD.with(|held| held.borrow_mut().take());
        assert!(team.is_some_and(|team| team.size() > 0 && round < 1500));
    }
}

thread_local! {
    static HELD: core::cell::RefCell<Option<Team>> = const { core::cell::RefCell::new(None) };
}

/// Memory that this process does not share.
fn own_memory_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn dropped() -> Done {
    let world = World::init()?;
    let rounds = 1500;
    let mut before = 0;
    for round in 0..rounds {
        if round == 300 {
            before = own_memory_kib();
        }
        let color = (world.rank().0 + round) % 2;
        let team = world
            .team()
            .split(&world, Some(color), 0)?
            .ok_or("a color is given")?;
        if round % 3 == 0 {
            team.barrier(&world)?;
        }
        match round % 2 {
            0 => drop(team),
            _ => {
                HELD.with(|held| *held.borrow_mut() = Some(team));
                world.send(world.rank(), &drop_here, round)?;
                world.wait_until(|| HELD.with(|held| held.borrow().is_none()))?;
            }
        }
    }
    let last = world.team().split(&world, Some(0), 0)?;
    // A team has some thousand bytes.
    let grown = own_memory_kib() - before;
    assert!(
        before > 0 && grown < 256,
        "{grown} KiB more than {before} after {rounds} rounds"
    );
    // A team that outlives the world.
    world.finalize()?;
    drop(last);
    Ok(())
}

fn threads() -> Done {
    let world: World<Par> = World::builder().build_par()?;
    let parents: Vec<_> = (0..4)
        .map(|_| world.team().split(&world, Some(3), 0))
        .collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        for (at, parent) in (0u32..).zip(&parents) {
            let (world, parent) = (&world, parent.as_ref().expect("a color was given"));
            scope.spawn(move || {
                for round in 0..50 {
                    let color = (world.rank().0 + round + at) % 2;
                    let team = parent
                        .split(world, Some(color), -(round as i32))
                        .expect("split");
                    let team = team.expect("a color was given");
                    let members = world
                        .ranks()
                        .filter(|rank| (rank.0 + round + at) % 2 == color);
                    assert!(team.ranks().map(|rank| team.world_rank(rank)).eq(members));
                    team.barrier(world).expect("barrier");
                }
            });
        }
    });
    Ok(world.finalize()?)
}

fn places() -> Done {
    let world = World::init()?;
    let slots = SharedArray::<u32>::alloc(&world, 1)?;
    let all: Vec<_> = world.ranks().collect();
    is_team(&world, &world.team(), &all, &slots)?;
    let own = world.rank().index();
    let near = Path::of_this_run().neighbors(own, all.len());
    is_team(&world, &world.neighborhood_team()?, &all[near], &slots)?;
    // All are on one host.
    is_team(&world, &world.host_team()?, &all, &slots)?;
    Ok(world.finalize()?)
}

/// Variable that the command for an agent gives its ranks: the name of their host.
const HOST: &str = "ARGONET_TEST_HOST";

/// Jobs over hosts that are agents of this machine.
fn hosts() {
    let template = format!("{HOST}=%M exec %C");
    for (ranks, hosts) in [(4, "1:2,2:2"), (5, "1:3,2:2"), (4, "1,2:2,3")] {
        for neighbors in ["1", "2", "255"] {
            let job = Job::over(ranks, hosts, "teams-hosts")
                .env("GASNET_CSPAWN_CMD", &template)
                .env("ARGONET_TCP_INTERFACES", "lo")
                .env("GASNET_SUPERNODE_MAXSIZE", neighbors);
            job.run().well();
        }
    }
}

/// The team of a host is the ranks whose agent has its name, in their order, and a neighborhood is
/// within it.
fn on_hosts() -> Done {
    let world = World::init()?;
    let slots = SharedArray::<u32>::alloc(&world, 1)?;
    let names = SharedArray::<u32>::alloc(&world, world.size() as usize)?;
    let own: u32 = std::env::var(HOST)?.parse()?;
    for rank in world.ranks() {
        world.put_value(names.ptr(rank, world.rank().index()), own)?;
    }
    world.barrier()?;
    let mut on_host = Vec::new();
    for rank in world.ranks() {
        if world.get_value(names.ptr(world.rank(), rank.index()))? == own {
            on_host.push(rank);
        }
    }
    assert!(on_host.len() < world.size() as usize, "there are others");
    let host = world.host_team()?;
    is_team(&world, &host, &on_host, &slots)?;
    let near = world.neighborhood_team()?;
    let most: usize = std::env::var("GASNET_SUPERNODE_MAXSIZE")?.parse()?;
    assert!(near.size() as usize <= most && near.size() <= host.size());
    let mut all = near.ranks().map(|rank| near.world_rank(rank));
    assert!(all.all(|rank| host.rank_of(rank).is_some()), "it is within");
    Ok(world.finalize()?)
}
