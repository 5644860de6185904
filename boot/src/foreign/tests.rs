//! Environments of launchers, and what they mean.

use super::*;

/// A member of a job, for tests of what follows.
pub(crate) fn member_of_test(identity: &str, rank: u32, size: u32) -> Member {
    Member {
        launcher: SRUN,
        variable: STEP_SIZE,
        rank,
        size,
        identity: identity.into(),
        spread: None,
    }
}

/// The descriptor of a socket that process 4711 made.
const SOCKET: &str = "6";

/// The process whose surroundings are judged.
const PID: u32 = 815;

fn around<T>(environment: &[(&str, &str)], act: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    act(&Surroundings {
        pid: PID,
        variable: &|name| {
            let found = environment.iter().find(|(held, _)| *held == name);
            found.map(|(_, value)| OsString::from(value))
        },
        maker: &|fd| match fd {
            6 => Some("4711 99".to_owned()),
            5 => Some("4712 99".to_owned()),
            _ => None,
        },
    })
}

fn judged(environment: &[(&str, &str)]) -> Found {
    around(environment, judge)
}

/// The mark that the rank of this environment leaves to programs that it starts.
fn mark_of(environment: &[(&str, &str)]) -> String {
    let job = member(environment).job();
    let variables = around(environment, |around| around.variables());
    Mark { job, variables }.to_string()
}

/// The variable that is named and the number of processes, if the environment is one of several
/// processes, whether they can become one job or not.
fn found(environment: &[(&str, &str)]) -> Option<(&'static str, Option<u64>)> {
    match judged(environment) {
        Found::Alone(_) | Found::OfRank(_) => None,
        Found::Member(member) => Some((member.variable, Some(member.size.into()))),
        Found::Refused(BootError::ForeignLauncher { variable, size, .. }) => Some((variable, size)),
        Found::Refused(error) => panic!("{error}"),
    }
}

/// Why the processes cannot become one job.
#[track_caller]
fn refused(environment: &[(&str, &str)]) -> String {
    match judged(environment) {
        Found::Refused(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn member(environment: &[(&str, &str)]) -> Member {
    match judged(environment) {
        Found::Member(member) => member,
        other => panic!("{other:?}"),
    }
}

/// `environment` with `name` set to `value`, or without it.
fn with_value<'a>(
    environment: &[(&'a str, &'a str)],
    name: &'a str,
    value: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    let mut all = environment.to_vec();
    all.retain(|(known, _)| *known != name);
    all.extend(value.map(|value| (name, value)));
    all
}

const ALLOCATION: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "7"),
    ("SLURM_NTASKS", "4"),
    ("SLURM_PROCID", "0"),
    ("SLURM_LOCALID", "0"),
];

/// Variables of a task of `srun -n 4` on one node.
const TASK: [(&str, &str); 7] = [
    ("SLURM_CLUSTER_NAME", "laptop"),
    ("SLURM_JOB_ID", "7"),
    ("SLURM_STEP_ID", "2"),
    ("SLURM_STEP_NUM_TASKS", "4"),
    ("SLURM_STEP_NUM_NODES", "1"),
    ("SLURM_STEP_TASKS_PER_NODE", "4"),
    ("SLURM_PROCID", "3"),
];

const OF_HYDRA: [(&str, &str); 5] = [
    ("PMI_RANK", "1"),
    ("PMI_SIZE", "2"),
    ("PMI_FD", SOCKET),
    ("MPI_LOCALNRANKS", "2"),
    ("MPI_LOCALRANKID", "1"),
];

const OF_OPEN_MPI: [(&str, &str); 6] = [
    ("OMPI_COMM_WORLD_SIZE", "3"),
    ("OMPI_COMM_WORLD_RANK", "0"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
    ("PMIX_NAMESPACE", "1870397441"),
    ("PMIX_SERVER_URI2", "1870397440.0;tcp4://127.0.0.1:42437"),
    ("PMIX_RANK", "0"),
];

#[test]
fn a_step_of_several_tasks_is_one_job_and_an_allocation_is_none() {
    let step = |id, tasks| {
        let mut all = ALLOCATION.to_vec();
        all.extend([("SLURM_STEP_ID", id), ("SLURM_STEP_NUM_TASKS", tasks)]);
        found(&all)
    };
    assert_eq!(found(&[]), None);
    assert_eq!(found(&ALLOCATION), None, "a batch script or salloc");
    assert_eq!(step("0", "4"), Some(("SLURM_STEP_NUM_TASKS", Some(4))));
    assert_eq!(step("3", "1"), None);
    assert_eq!(step("4294967291", "4"), None, "the batch step");
    assert_eq!(step("4294967290", "4"), None, "a shell in an allocation");
    // Slurm's plugin for PMIx gives the shell of salloc a rank, too.
    let mut shell = ALLOCATION.to_vec();
    shell.extend([("SLURM_STEP_ID", "4294967290"), ("PMIX_RANK", "0")]);
    assert_eq!(found(&shell), None, "a shell in an allocation");
}

#[test]
fn the_launcher_closest_to_the_program_counts() {
    let srun = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")];
    let with = |more: &[(&'static str, &'static str)]| found(&[&srun, more].concat());
    assert_eq!(with(&[("PMI_SIZE", "4")]), Some((STEP_SIZE, Some(4))));
    assert_eq!(with(&[("PMIX_RANK", "2")]), Some((STEP_SIZE, Some(4))));
    // One of the two is left from what started the other; none is refused for the smaller.
    assert_eq!(with(&[("PMI_SIZE", "2")]), Some((STEP_SIZE, Some(4))));
    assert_eq!(with(&[("PMI_SIZE", "1")]), Some((STEP_SIZE, Some(4))));
    assert_eq!(with(&[("PMI_SIZE", "8")]), Some(("PMI_SIZE", Some(8))));
    // An implementation of MPI may have started one process that has started srun.
    for variable in ["MV2_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"] {
        assert_eq!(with(&[(variable, "1")]), Some((STEP_SIZE, Some(4))));
        assert_eq!(with(&[(variable, "4")]), Some((variable, Some(4))));
        assert_eq!(found(&[(variable, "1")]), None);
        let error = refused(&[&srun[..], &[(variable, "3")]].concat());
        assert!(error.contains(variable), "{error}");
        assert!(
            error.contains("SLURM_STEP_NUM_TASKS says that Slurm's srun started 4, and it is"),
            "{error}"
        );
    }
    // mpirun starts its daemons by srun.
    let daemons = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
    let daemons = [&daemons[..], &OF_OPEN_MPI, &[("SLURM_TASK_PID", "814")]].concat();
    assert_eq!(found(&daemons), Some((OPEN_MPI_SIZE, Some(3))));
    // srun has started this process itself.
    let tasks = with_value(&daemons, "SLURM_TASK_PID", Some("815"));
    assert_eq!(found(&tasks), None);
    let mpi = [("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "0")];
    assert_eq!(found(&mpi), Some(("OMPI_COMM_WORLD_SIZE", Some(3))));
    assert_eq!(found(&[("PMIX_RANK", "0")]), Some(("PMIX_RANK", None)));
    assert_eq!(found(&[("PMI_SIZE", "1")]), None);
    // hydra within a step has a socket, which no step passes on.
    assert_eq!(with(&OF_HYDRA), Some(("PMI_SIZE", Some(2))));
    let alone = [
        ("PMI_SIZE", "1"),
        ("PMI_FD", SOCKET),
        ("MPI_LOCALNRANKS", "1"),
    ];
    assert_eq!(with(&alone), None);
    let outer = [("PMI_SIZE", "1"), ("PMI_FD", "9"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(with(&outer), Some((STEP_SIZE, Some(4))));
    // srun within hydra gives its tasks a socket of its own.
    let task = [&srun[..], &OF_HYDRA, &[("SLURM_TASK_PID", "815")]].concat();
    assert_eq!(found(&task), Some((STEP_SIZE, Some(4))));
    let of_both = [&OF_OPEN_MPI[..], &OF_HYDRA].concat();
    assert_eq!(found(&of_both), Some((PMI_SIZE, Some(2))), "a live socket");
}

#[test]
fn a_program_that_a_rank_starts_is_alone() {
    for environment in [&TASK[..], &OF_HYDRA, &OF_OPEN_MPI] {
        let mark = mark_of(environment);
        let child = with_value(environment, JOINED, Some(&mark));
        assert!(
            matches!(judged(&child), Found::OfRank(_)),
            "{environment:?}"
        );
        for other in ["1", "", "0:0", "x:y"] {
            member(&with_value(environment, JOINED, Some(other)));
        }
    }
    // hydra's socket is not passed on, or its number is another file's.
    let mark = mark_of(&OF_HYDRA);
    let child = with_value(&OF_HYDRA, JOINED, Some(&mark));
    let without = around(&child, |around| {
        judge(&Surroundings {
            pid: PID,
            variable: around.variable,
            maker: &|_| None,
        })
    });
    assert!(matches!(without, Found::OfRank(_)), "{without:?}");
}

#[test]
fn a_rank_of_a_job_that_a_rank_starts_is_no_program_of_that_rank() {
    let of_task = mark_of(&TASK);
    let inherited = |environment: &[(&'static str, &'static str)], mark: &str| {
        let all = with_value(environment, JOINED, Some(mark));
        assert_eq!(member(&all), member(environment));
    };
    for (name, value) in [("SLURM_STEP_ID", "3"), ("SLURM_JOB_ID", "8")] {
        inherited(&with_value(&TASK, name, Some(value)), &of_task);
    }
    inherited(&OF_HYDRA, &of_task);
    inherited(&OF_HYDRA, &mark_of(&OF_OPEN_MPI));
    // Two jobs of hydra differ in the socket alone.
    inherited(
        &OF_HYDRA,
        &mark_of(&with_value(&OF_HYDRA, "PMI_FD", Some("5"))),
    );
    let namespace = with_value(&OF_OPEN_MPI, "PMIX_NAMESPACE", Some("2"));
    inherited(&namespace, &mark_of(&OF_OPEN_MPI));
    // A step below Open MPI that has as many tasks, behind a shell.
    let step = [&OF_OPEN_MPI[..], &with_value(&TASK, STEP_SIZE, Some("3"))].concat();
    let mark = mark_of(&OF_OPEN_MPI);
    let step = with_value(&step, JOINED, Some(&mark));
    let error = refused(&step);
    assert!(
        error.contains("by a launcher that cannot be distinguished"),
        "{error}"
    );
}

#[test]
fn a_task_of_slurm_is_a_rank_of_its_step() {
    let found = member(&TASK);
    assert_eq!((found.rank, found.size), (3, 4));
    assert_eq!(found.identity, "slurm laptop 7.2");
    // Whatever way srun offers to the ranks beside.
    for more in [("PMI_SIZE", "4"), ("PMI_FD", SOCKET), ("PMIX_RANK", "3")] {
        let task = with_value(&TASK, more.0, Some(more.1));
        assert_eq!(member(&task), found);
    }
    for (name, value) in [("SLURM_STEP_ID", "3"), ("SLURM_JOB_ID", "8")] {
        let other = member(&with_value(&TASK, name, Some(value)));
        assert_ne!(other.identity, found.identity);
    }
    let says = |name, value, reason: &str| {
        let error = refused(&with_value(&TASK, name, value));
        assert!(error.contains(reason), "{error}");
    };
    says(
        "SLURM_STEP_NUM_NODES",
        Some("2"),
        "they are on 2 hosts, and Slurm lets them find each other by PMI-1 or PMIx if it is started as `srun --mpi=pmi2`",
    );
    says(
        "SLURM_STEP_NUM_NODES",
        None,
        "SLURM_STEP_NUM_NODES is not set",
    );
    says(
        "SLURM_STEP_TASKS_PER_NODE",
        Some("3"),
        "3 of them are on this host",
    );
    says("SLURM_PROCID", Some("4"), "this one's number is 4");
    says("SLURM_PROCID", None, "SLURM_PROCID is not set");
    says("SLURM_JOB_ID", Some(""), "SLURM_JOB_ID is not set");
}

#[test]
fn a_process_of_hydra_or_open_mpi_is_a_rank() {
    let found = member(&OF_HYDRA);
    assert_eq!((found.rank, found.size), (1, 2));
    assert_eq!(found.identity, "hydra 4711 99");
    for (name, value, reason) in [
        ("PMI_FD", Some("7"), "PMI_FD names no open socket"),
        ("PMI_FD", None, "PMI_FD names no open socket"),
        (
            "MPI_LOCALNRANKS",
            Some("3"),
            "rank 1 of 2 is number 1 of 3 on its host",
        ),
        (
            "MPI_LOCALNRANKS",
            None,
            "do not say which of them are on this host",
        ),
        ("PMI_RANK", None, "PMI_RANK is not set"),
    ] {
        let error = refused(&with_value(&OF_HYDRA, name, value));
        assert!(error.contains(reason), "{error}");
    }
    let many = with_value(&OF_HYDRA, "MPI_LOCALNRANKS", Some("1025"));
    let error = refused(&with_value(&many, "PMI_SIZE", Some("1025")));
    assert!(error.contains("a host has at most 1024 ranks"), "{error}");
    let found = member(&OF_OPEN_MPI);
    assert_eq!((found.rank, found.size), (0, 3));
    assert!(
        found.identity.contains("1870397441 1870397440.0;tcp4"),
        "{found:?}"
    );
    for (name, value, reason) in [
        (
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            Some("2"),
            "OMPI_COMM_WORLD_LOCAL_RANK is not set",
        ),
        ("PMIX_NAMESPACE", None, "PMIX_NAMESPACE is not set"),
        ("PMIX_SERVER_URI2", None, "PMIX_SERVER_URI2 is not set"),
    ] {
        let error = refused(&with_value(&OF_OPEN_MPI, name, value));
        assert!(error.contains(reason), "{error}");
    }
}

/// Variables of the last process of `mpiexec -ppn 2 -n 4` on two hosts.
const FAR_OF_HYDRA: [(&str, &str); 5] = [
    ("PMI_RANK", "3"),
    ("PMI_SIZE", "4"),
    ("PMI_FD", SOCKET),
    ("MPI_LOCALNRANKS", "2"),
    ("MPI_LOCALRANKID", "1"),
];

/// Those of a task of `srun --mpi=pmi2 -N 3 -n 5`.
const FAR_TASK: [(&str, &str); 11] = [
    ("SLURM_JOB_ID", "7"),
    ("SLURM_STEP_ID", "2"),
    ("SLURM_STEP_NUM_TASKS", "5"),
    ("SLURM_STEP_NUM_NODES", "3"),
    ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1"),
    ("SLURM_PROCID", "3"),
    ("SLURM_NODEID", "1"),
    ("SLURM_LOCALID", "1"),
    ("PMI_RANK", "3"),
    ("PMI_SIZE", "5"),
    ("PMI_FD", SOCKET),
];

#[test]
fn ranks_on_several_hosts_are_of_one_job_where_the_launcher_has_a_store() {
    let spread = Spread {
        first: 2,
        here: 2,
        way: Way::Pmi(6),
        ends_all: true,
    };
    let found = member(&FAR_OF_HYDRA);
    assert_eq!((found.rank, found.size), (3, 4));
    assert_eq!(
        (found.spread, found.first(), found.here()),
        (Some(spread), 2, 2)
    );
    let task = member(&FAR_TASK);
    let of_task = Spread {
        ends_all: false,
        ..spread
    };
    assert_eq!((task.rank, task.size, task.spread), (3, 5, Some(of_task)));
    assert_eq!(task.identity, "slurm  7.2 node 1");
    let near = member(&TASK);
    assert_eq!((near.spread, near.first(), near.here()), (None, 0, 4));
    assert_eq!(member(&OF_HYDRA).spread, None, "its socket is left alone");
    let more = with_value(&FAR_OF_HYDRA, "PMI_SIZE", Some("65536"));
    assert_eq!(member(&more).size, 65536);
    for (environment, name, value, reason) in [
        (
            &FAR_OF_HYDRA[..],
            "PMI_SIZE",
            Some("65537"),
            "a job has at most 65536",
        ),
        (
            &FAR_OF_HYDRA[..],
            "MPI_LOCALRANKID",
            None,
            "MPI_LOCALRANKID is not set",
        ),
        (
            &FAR_OF_HYDRA[..],
            "MPI_LOCALRANKID",
            Some("2"),
            "consecutive (`mpiexec -ppn N`",
        ),
        (
            &FAR_OF_HYDRA[..],
            "MPI_LOCALRANKID",
            Some("0"),
            "rank 3 of 4 is number 0 of 2",
        ),
        (
            &FAR_OF_HYDRA[..],
            "PMI_RANK",
            Some("0"),
            "rank 0 of 4 is number 1 of 2",
        ),
        (
            &FAR_OF_HYDRA[..],
            "PMI_FD",
            Some("7"),
            "PMI_FD names no open socket",
        ),
        (&FAR_TASK[..], "PMI_FD", None, "`srun --mpi=pmi2`"),
        (&FAR_TASK[..], "PMI_FD", Some("7"), "`srun --mpi=pmi2`"),
        (&FAR_TASK[..], "PMI_RANK", Some("2"), "`srun --mpi=pmi2`"),
        (
            &FAR_TASK[..],
            "SLURM_NODEID",
            None,
            "SLURM_NODEID is not set",
        ),
        (
            &FAR_TASK[..],
            "SLURM_NODEID",
            Some("3"),
            "SLURM_STEP_TASKS_PER_NODE, by which",
        ),
        (
            &FAR_TASK[..],
            "SLURM_STEP_TASKS_PER_NODE",
            Some("2(x"),
            "SLURM_STEP_TASKS_PER_NODE, by which",
        ),
    ] {
        let error = refused(&with_value(environment, name, value));
        assert!(error.contains(reason), "{name}: {error}");
    }
}

/// Those of the third process of `mpirun --host a:2,b:2 -n 4`.
const FAR_OF_OPEN_MPI: [(&str, &str); 7] = [
    ("OMPI_COMM_WORLD_SIZE", "4"),
    ("OMPI_COMM_WORLD_RANK", "2"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
    ("PMIX_NAMESPACE", "1477967873"),
    ("PMIX_SERVER_URI2", "1477967872.2;tcp4://127.0.0.1:57757"),
    ("PMIX_RANK", "2"),
];

/// What `srun --mpi=pmix` sets in place of the variables of PMI-1.
const OF_SLURMS_PMIX: [(&str, &str); 3] = [
    ("PMIX_NAMESPACE", "slurm.pmix.7.2"),
    (
        "PMIX_SERVER_URI2",
        "pmix-server.14360;tcp4://127.0.0.1:59649",
    ),
    ("PMIX_RANK", "3"),
];

#[test]
fn hosts_find_each_other_by_pmix_where_the_launcher_speaks_that() {
    let found = member(&FAR_OF_OPEN_MPI);
    assert_eq!((found.rank, found.size), (2, 4));
    let spread = Spread {
        first: 2,
        here: 2,
        way: Way::Pmix,
        ends_all: false,
    };
    assert_eq!(found.spread, Some(spread));
    assert!(found.identity.contains("1477967873 1477967872.2;tcp4"));
    let near = with_value(&FAR_OF_OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE", Some("4"));
    assert_eq!(member(&near).spread, None, "its server is left alone");

    let task = [&FAR_TASK[..8], &OF_SLURMS_PMIX].concat();
    let found = member(&task);
    assert_eq!(found.spread, Some(spread));
    assert_eq!(found.identity, "slurm  7.2 node 1");
    // What is left of an outer launcher is not Slurm's.
    let both = [&FAR_TASK[..], &OF_SLURMS_PMIX].concat();
    let way = |environment: &[(&str, &str)]| member(environment).spread.map(|spread| spread.way);
    assert_eq!(way(&both), Some(Way::Pmi(6)), "it needs no library");
    assert_eq!(
        way(&with_value(&both, "PMI_FD", Some("7"))),
        Some(Way::Pmix)
    );

    let by_node =
        "consecutive (`mpiexec -ppn N`, `srun --distribution=block`, `mpirun --map-by slot`)";
    let no_store = "if it is started as `srun --mpi=pmi2` or `srun --mpi=pmix`";
    for (environment, name, value, reason) in [
        (
            &FAR_OF_OPEN_MPI[..],
            "PMIX_RANK",
            Some("0"),
            "PMIX_RANK is not this one's rank 2",
        ),
        (
            &FAR_OF_OPEN_MPI[..],
            "PMIX_RANK",
            None,
            "PMIX_RANK is not this one's",
        ),
        (
            &FAR_OF_OPEN_MPI[..],
            "PMIX_RANK",
            Some("x"),
            "PMIX_RANK, by which",
        ),
        (
            &FAR_OF_OPEN_MPI[..],
            "PMIX_NAMESPACE",
            None,
            "PMIX_NAMESPACE is not set",
        ),
        (
            &FAR_OF_OPEN_MPI[..],
            "PMIX_SERVER_URI2",
            None,
            "PMIX_SERVER_URI2 is not set",
        ),
        (
            &FAR_OF_OPEN_MPI[..],
            "OMPI_COMM_WORLD_LOCAL_RANK",
            Some("3"),
            by_node,
        ),
        (&task[..], "PMIX_NAMESPACE", Some("1477967873"), no_store),
        // A step within another one has the variables of that.
        (
            &task[..],
            "PMIX_NAMESPACE",
            Some("slurm.pmix.7.1"),
            no_store,
        ),
        (
            &task[..],
            "PMIX_NAMESPACE",
            Some("slurm.pmix.7.20"),
            no_store,
        ),
        (&task[..], "PMIX_NAMESPACE", None, no_store),
        (&task[..], "PMIX_RANK", Some("2"), no_store),
        (&task[..], "PMIX_SERVER_URI2", None, no_store),
    ] {
        let error = refused(&with_value(environment, name, value));
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn lists_of_tasks_give_the_number_of_each_node() {
    let of = |list, node| tasks_of_node(list, node);
    assert_eq!(
        [0, 1, 2].map(|node| of("2(x2),1", node)),
        [Some(2), Some(2), Some(1)]
    );
    assert_eq!(of("2(x2),1", 3), None);
    assert_eq!(of("4", 0), Some(4));
    assert_eq!(of("1,2(x18446744073709551615)", 5), None, "too many nodes");
    for bad in ["", "x", "2(x)", "2(x2", "2x2", "(x2)", "1,x"] {
        assert_eq!(of(bad, 1), None, "{bad}");
    }
}

#[test]
fn text_that_no_launcher_sets_is_refused_by_name() {
    for (environment, name) in [
        (&TASK[..], "SLURM_STEP_NUM_TASKS"),
        (&TASK[..], "SLURM_STEP_ID"),
        (&TASK[..], "SLURM_PROCID"),
        (&TASK[..], "SLURM_STEP_TASKS_PER_NODE"),
        (&OF_HYDRA[..], "PMI_SIZE"),
        (&OF_HYDRA[..], "PMI_FD"),
        (&OF_HYDRA[..], "MPI_LOCALNRANKS"),
        (&OF_OPEN_MPI[..], "OMPI_COMM_WORLD_SIZE"),
        (&OF_OPEN_MPI[..], "OMPI_COMM_WORLD_RANK"),
    ] {
        for value in [
            "many",
            "-1",
            "+2",
            "2.5",
            "0x2",
            "99999999999999999999",
            "\u{1f980}",
        ] {
            let error = refused(&with_value(environment, name, Some(value)));
            assert!(
                error.contains(&format!("{name}, by which")),
                "{value}: {error}"
            );
            assert!(error.contains(&format!("is \"{value}\"")), "{error}");
        }
    }
    let error = refused(&[("PMI_SIZE", "\x1b[2J3")]);
    assert!(error.contains("is \"[2J3\""), "{error:?}");
    let long = "9".repeat(100_000);
    assert!(refused(&[("PMI_SIZE", &long)]).len() < 500);
    assert_eq!(
        member(&with_value(&TASK, "SLURM_PROCID", Some(" 1\n"))).rank,
        1
    );
}

#[test]
fn variables_of_a_process_are_known_by_their_beginnings() {
    let all = [&TASK[2..], &OF_HYDRA, &OF_OPEN_MPI].concat();
    for (name, _) in all {
        assert!(
            describes_process(OsString::from(name).as_os_str()),
            "{name}"
        );
    }
    for name in [
        "SLURM_JOB_ID",
        "SLURM_NTASKS",
        "GASNET_OFI_SPAWNER",
        "PATH",
        "OMPI_MCA_btl",
        "PMIX_MCA_gds",
    ] {
        assert!(
            !describes_process(OsString::from(name).as_os_str()),
            "{name}"
        );
    }
}
