//! Mistakes of users, scripts and other launchers.

use crate::support::{Job, Test, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("bad_input_number_of_ranks", rank_counts),
    ("bad_input_program_missing_or_not_executable", programs),
    ("bad_input_unknown_conduit", conduit),
    ("bad_input_garbage_in_settings", settings),
    ("bad_input_second_thread", second_thread),
    ("bad_input_attaching_twice", twice),
    ("bad_input_forged_job_description", forged),
    (
        "bad_input_descriptors_closed_on_the_way",
        closed_descriptors,
    ),
    ("bad_input_two_programs_as_one_rank", two_programs),
    ("bad_input_started_by_another_launcher", foreign),
    ("bad_input_too_few_open_files", open_files),
];

fn rank_counts() {
    for ranks in ["0", "1025", "100000", "18446744073709551615"] {
        let why = format!("{ranks} ranks were asked for; a job on one host has 1 to 1024 ranks");
        Job::launcher(ranks, &[], &["true"])
            .run()
            .code(2)
            .says(&[&why]);
    }
}

fn programs() {
    let outcome = Job::launcher("2", &[], &["/nonexistent/prog"])
        .run()
        .code(127);
    outcome.says(&["argonet run: cannot run \"/nonexistent/prog\": there is no such program"]);
    Job::launcher("2", &[], &["no-such-program-anywhere"])
        .run()
        .code(127)
        .says(&["\"no-such-program-anywhere\"", "PATH"]);
    Job::launcher("2", &["tag"], &["/"])
        .run()
        .code(126)
        .says(&["cannot run \"/\""]);
    Job::launcher("2", &[], &["/proc/version"])
        .run()
        .code(126)
        .says(&["cannot run \"/proc/version\""]);
}

fn conduit() {
    let outcome = Job::launcher("2", &["conduit=carrier-pigeon"], &["true"])
        .run()
        .code(2);
    outcome.says(&["unknown conduit \"carrier-pigeon\"; known: smp"]);
    Job::launcher("2", &[], &["true"])
        .env("ARGONET_CONDUIT", "x")
        .run()
        .code(2)
        .says(&["ARGONET_CONDUIT is \"x\"; allowed: one of smp, tcp"]);
}

fn settings() {
    for value in ["two", "-1", "1025", "4294967296", "2.5", "\u{1f980}"] {
        let why =
            format!("GASNET_PSHM_NODES is \"{value}\"; allowed: a number of ranks from 0 to 1024");
        Job::self_started(value, &["hello"])
            .run()
            .code(3)
            .says(&[&why]);
    }
    let job = Job::launched(1, &[], &["hello"]).env("ARGONET_START_TIMEOUT", "soon");
    job.run()
        .code(2)
        .says(&["ARGONET_START_TIMEOUT is \"soon\"; allowed: a number of seconds"]);
    let job = Job::launched(1, &[], &["hello"]).env("ARGONET_HUGEPAGES", "3MB");
    job.run()
        .code(2)
        .says(&["ARGONET_HUGEPAGES is \"3MB\"; allowed: one of 2MB, 1GB"]);
}

fn second_thread() {
    let outcome = Job::self_started("2", &["second-thread"]).run().code(3);
    outcome.says(&[
        "this process has 2 threads and cannot fork the other ranks",
        "argonet run -n N",
    ]);
}

fn twice() {
    let outcome = Job::self_started("2", &["twice"]).run().code(3);
    outcome.says(&["job rank 0 has been taken"]);
}

fn forged() {
    for (value, why) in [
        ("garbage", "it has 1 fields instead of 10"),
        (
            "2:0:2:900:901:902:903:904:905:0",
            "descriptor 900 (control) is not open",
        ),
        ("2:0:2:0:1:2:3:4:5:0", "descriptor of the control file is 0"),
        ("2:2:2:900:901:902:903:904:905:0", "rank 2 is not below"),
        ("9:0:2:900:901:902:903:904:905:0", "its format is \"9\""),
    ] {
        let job = Job::self_started("1", &["hello"]).env("ARGONET_BOOT", value);
        job.run()
            .code(3)
            .says(&[&format!("ARGONET_BOOT (\"{value}\") cannot be used: "), why]);
    }
    // Descriptors that are open, but on other things.
    let this = this_program();
    let script = "exec 5</dev/null 6</dev/null 7</dev/null 8</dev/null 9</dev/null; ARGONET_BOOT=2:0:2:7:8:9:6:5:10:0 exec \"$0\" __rank hello";
    let job = Job::launcher("1", &[], &["sh", "-c", script, &this]);
    job.run()
        .code(3)
        .says(&["descriptor 7 (control) is not a shared memory file"]);
    // Another rank's place, and another job's name.
    let script =
        "ARGONET_BOOT=$(echo \"$ARGONET_BOOT\" | sed 's/....$/zzzz/') exec \"$0\" __rank hello";
    Job::launcher("1", &[], &["sh", "-c", script, &this])
        .run()
        .code(3)
        .says(&["job identity"]);
    let script =
        "ARGONET_BOOT=$(echo \"$ARGONET_BOOT\" | sed 's/:[^:]*$/:12345/') exec \"$0\" __rank hello";
    Job::launcher("1", &[], &["sh", "-c", script, &this])
        .run()
        .code(3)
        .says(&["another job"]);
    let script =
        "ARGONET_BOOT=$(echo \"$ARGONET_BOOT\" | sed 's/^2:0:1:/2:0:3:/') exec \"$0\" __rank hello";
    Job::launcher("1", &[], &["sh", "-c", script, &this])
        .run()
        .code(3)
        .says(&["3 ranks of this"]);
}

fn closed_descriptors() {
    let this = this_program();
    let script =
        "fd=$(echo \"$ARGONET_BOOT\" | cut -d: -f4); bash -c \"exec $fd>&-; exec $0 __rank hello\"";
    let job = Job::launcher("1", &[], &["bash", "-c", script, &this]);
    job.run()
        .code(3)
        .says(&["(control) is not open. Was it closed by a program between"]);
}

fn two_programs() {
    let this = this_program();
    let job = Job::launcher(
        "1",
        &[],
        &[
            "sh",
            "-c",
            "\"$0\" __rank hello; \"$0\" __rank hello",
            &this,
        ],
    );
    job.run()
        .code(3)
        .says(&["job rank 0 has been taken by process ", "(finalized)"]);
}

fn foreign() {
    let several = |environment: &[(&str, &str)], says: &[&str]| {
        let job = Job::self_started("", &["hello"]);
        let job = environment.iter().fold(job, |job, (n, v)| job.env(n, v));
        job.run().code(3).says(says);
    };
    several(
        &[("OMPI_COMM_WORLD_SIZE", "4")],
        &[
            "OMPI_COMM_WORLD_SIZE says that Open MPI's mpirun started 4 processes, which cannot become one job: \
             OMPI_COMM_WORLD_RANK is not set",
            "argonet run -n 4",
            "GASNET_PSHM_NODES=1",
        ],
    );
    several(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")], &["PMI_SIZE"]);
    several(
        &[("PMIX_RANK", "1")],
        &["PMIX_RANK says that a PMIx launcher started several processes"],
    );
    several(
        &[("PMI_SIZE", "many")],
        &[
            "the environment variable PMI_SIZE, by which launchers describe their processes, is \"many\"",
        ],
    );
    let step = [
        ("SLURM_NTASKS", "4"),
        ("SLURM_PROCID", "2"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_STEP_NUM_NODES", "2"),
    ];
    several(
        &step,
        &[
            "SLURM_STEP_NUM_TASKS says that Slurm's srun started 4 processes",
            "they are on 2 hosts, and Slurm lets them find each other by PMI-1 or PMIx if it is started as `srun --mpi=pmi2` or",
        ],
    );
    let starts = |job: Job| job.run().code(0).silent();
    let within = |job: Job| step.iter().fold(job, |job, (n, v)| job.env(n, v));
    let alone = || Job::self_started("", &["hello"]);
    starts(alone().env("PMI_SIZE", "1"));
    // In a batch script and in a shell of salloc.
    starts(alone().env("SLURM_NTASKS", "4").env("SLURM_PROCID", "0"));
    // The user wants jobs of one rank.
    starts(within(alone()).env("GASNET_PSHM_NODES", "1"));
    // Under this library's own launcher.
    starts(Job::launched(2, &[], &["hello"]).env("PMI_SIZE", "1"));
    // Perhaps as often as there are tasks, each with a job of its own.
    let outcome = within(Job::launched(2, &[], &["hello"])).run().code(0);
    outcome.says(&[
        "argonet run: warning: SLURM_STEP_NUM_TASKS says that Slurm's srun started 4 processes; \
         if each of them is an `argonet run`, there are as many jobs",
    ]);
    let outcome = within(alone()).env("GASNET_PSHM_NODES", "2").run().code(0);
    outcome.says(&[
        "argonet: warning: SLURM_STEP_NUM_TASKS says that Slurm's srun started 4 processes; if \
         each of them is a program that starts its other ranks itself, there are as many jobs",
    ]);
}

fn open_files() {
    let this = this_program();
    let script = "ulimit -n 100; exec \"$0\" __launch 200 -- true";
    let job = Job::launcher("1", &[], &["sh", "-c", script, &this]);
    job.run().code(1).says(&[
        "a job of 200 ranks needs 232 open files in the launcher",
        "RLIMIT_NOFILE",
    ]);
}
