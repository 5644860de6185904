//! Jobs that launchers of others start: MPICH's hydra, Open MPI's mpirun, Slurm's srun.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Job, Outcome, Running, Test, check_hello, pid, this_program};

/// Tests, each with the program that it needs.
pub(crate) const TESTS: &[(Test, &str)] = &[
    (("launchers_hydra", hydra), "mpiexec.hydra"),
    (("launchers_open_mpi", open_mpi), "mpirun.openmpi"),
    (("launchers_slurm", slurm), "slurmctld"),
    (
        ("launchers_slurm_over_hosts", slurm_over_hosts),
        "slurmctld",
    ),
];

/// Time limit of each of them, which starts many jobs, one after another.
pub(crate) const TEST_LIMIT: Duration = Duration::from_secs(240);

/// Whether a program is installed, and this user may use it as the tests do.
pub(crate) fn may_start(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let is_there = directories.any(|directory| directory.join(program).is_file());
    is_there && (program != "slurmctld" || rustix::process::geteuid().is_root())
}

const HYDRA: &[&str] = &["mpiexec.hydra", "-n"];
const OPEN_MPI: &[&str] = &["mpirun.openmpi", "-n"];

/// `ranks` ranks of a program below a launcher, with what Open MPI wants of root and of machines
/// with few processors.
fn job(launcher: &[&str], ranks: u32, program: &[&str]) -> Job {
    Job::program(&[launcher, &[&ranks.to_string()], program].concat())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("GASNET_EXITTIMEOUT", "4")
}

fn rank_program(launcher: &[&str], ranks: u32, program: &[&str]) -> Job {
    let this = this_program();
    job(
        launcher,
        ranks,
        &[&[this.as_str(), "__rank"], program].concat(),
    )
}

fn hydra() {
    starts_and_ends(HYDRA);
    // Of this launcher each rank leads a process group, which ends with it.
    let (job, guardian) = waiting(HYDRA, &["wait", "children"]);
    job.kill(job.rank_pid(1), Signal::KILL);
    let outcome = job.outcome();
    assert!(!outcome.status.success() && guardian > 1, "{outcome:?}");
    // As it does not say where the ranks are.
    let outcome = job_of_script(HYDRA, "eval \"exec $PMI_FD<&-\"; exec \"$0\" __rank hello");
    outcome
        .says(&["PMI_FD names no open socket, which a program between the launcher and this one"]);
}

fn open_mpi() {
    starts_and_ends(OPEN_MPI);
}

fn job_of_script(launcher: &[&str], script: &str) -> Outcome {
    job(launcher, 2, &["bash", "-c", script, &this_program()]).run()
}

fn starts_and_ends(launcher: &[&str]) {
    for ranks in [2, 5] {
        check_hello(
            &rank_program(launcher, ranks, &["hello"]).run().code(0),
            ranks,
        );
    }
    // Two at a time, and programs in a row below shells.
    let jobs = [(); 2].map(|()| rank_program(launcher, 2, &["hello"]).start());
    for job in jobs {
        check_hello(&job.outcome().code(0), 2);
    }
    let in_a_row = "for i in 1 2 3; do \"$0\" __rank quick || exit 1; done; \"$0\" __rank hello";
    check_hello(&job_of_script(launcher, in_a_row).code(0), 2);
    let ended = "without finalizing; the other ranks were ended";
    for (program, code) in [
        (["exit-at-fence", "1", "9"], 9),
        (["exit-at-fence", "0", "0"], 1),
    ] {
        let outcome = rank_program(launcher, 3, &program).run().code(code);
        // Open MPI's mpirun does not wait until all that its ranks have written is there.
        if launcher == HYDRA {
            outcome.says(&[ended]);
        }
    }
    rank_program(launcher, 3, &["finalize-then-exit", "1", "5"])
        .run()
        .code(5);
    let alone = rank_program(launcher, 2, &["hello"]).env("GASNET_PSHM_NODES", "1");
    let outcome = alone.run().code(0);
    assert!(
        outcome
            .lines()
            .iter()
            .all(|line| line.starts_with("rank 0 of 1 in")),
        "{outcome:?}"
    );
    rank_program(launcher, 1, &["hello"]).run().code(0);
    // A rank that runs `argonet run` starts a job of its own.
    let run = "\"$0\" __launch 2 -- \"$0\" __rank hello";
    let outcome = job_of_script(launcher, run).code(0);
    assert_eq!(outcome.out.matches(" of 2 in ").count(), 4, "{outcome:?}");
    killed(launcher);
}

/// A job of waiting ranks; also the guardian's id.
fn waiting(launcher: &[&str], program: &[&str]) -> (Running, u32) {
    let mut job = rank_program(launcher, 3, program).start();
    // Launchers mix the lines of ranks.
    let all = ["guardian ", "ready", "pid 0 ", "pid 1 ", "pid 2 "];
    let guardian = job.read_until_all(&all).parse().expect("a process id");
    (job, guardian)
}

/// Chooses a process of a job; the guardian's id is given.
type Choice = dyn Fn(&Running, u32) -> u32;

/// Nothing is left when a rank, the guardian or the launcher is killed.
fn killed(launcher: &[&str]) {
    let victims: [&Choice; 3] = [
        &|job, _| job.rank_pid(2).as_raw_nonzero().get() as u32,
        &|_, guardian| guardian,
        &|job, _| job.pid().as_raw_nonzero().get() as u32,
    ];
    for victim in victims {
        let (job, guardian) = waiting(launcher, &["wait"]);
        job.kill(pid(victim(&job, guardian)), Signal::KILL);
        let outcome = job.outcome();
        assert!(!outcome.status.success(), "{outcome:?}");
    }
}

/// What runs in an allocation of the cluster: each line of output begins with the name of its part.
///
/// Slurm's plugin for PMIx fails to launch a step now and then, before a program runs.
const IN_ALLOCATION: &str = r#"
    part() { sed "s/^/$1: /"; }
    hello() { srun --mpi=$1 -n 4 "$program" __rank hello 2>&1; }
    program=$0
    hello none | part none
    hello pmi2 | part pmi2
    for i in 1 2 3; do hello pmix >"$1/pmix"; grep -q 'launch failed' "$1/pmix" || break; done
    part pmix <"$1/pmix"
    srun -n 3 "$0" __rank hello 2>&1 | part one & srun --overlap -n 3 "$0" __rank hello 2>&1 | part two & wait
    "$0" __rank hello 2>&1 | part shell
    "$0" __launch 2 -- "$0" __rank hello 2>&1 | part run
    srun -n 3 "$0" __rank exit-at-fence 1 9 >/dev/null 2>"$1/exit"; echo "exit: $?"
    srun -n 3 "$0" __rank exit-at-fence 0 0 >/dev/null 2>"$1/left"; echo "left: $?"
    own='[ $SLURM_PROCID = 0 ] && exec "$0" __rank hello; "$0" __rank hello && sleep 0.3 && echo after'
    srun -n 3 sh -c "$own" "$0" >"$1/own" 2>&1; echo "own: $?"; part own <"$1/own"
    waiting() {
        : >"$1/wait"
        srun -n 3 sh -c 'echo "step $SLURM_STEP_ID"; exec "$0" __rank wait' "$program" >"$1/wait" 2>"$1/$2" & step=$!
        until [ "$(grep -c '^ready$\|^pid ' "$1/wait")" = 4 ]; do
            kill -0 $step || exit 1
            sleep 0.01
        done
    }
    waiting "$1" killed
    kill -9 $(sed -n 's/^pid 2 //p' "$1/wait")
    wait $step; echo "killed: $?"
    waiting "$1" canceled
    scancel --signal=KILL "$SLURM_JOB_ID.$(sed -n 's/^step //p' "$1/wait" | head -n 1)"
    wait $step; echo "canceled: $?"
    for name in exit left killed; do part $name <"$1/$name"; done
"#;

/// The script that runs a command with a cluster of this machine.
fn slurm_here() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/slurm-here.sh");
    here.to_string_lossy().into_owned()
}

/// The lines of `outcome` that begin with the name of a part.
fn part_of(outcome: &Outcome, part: &str) -> Outcome {
    Outcome {
        out: outcome
            .out
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{part}: ")))
            .flat_map(|line| [line, "\n"])
            .collect(),
        err: String::new(),
        status: outcome.status,
    }
}

fn slurm() {
    let here = slurm_here();
    let script = "dir=$(mktemp -d); salloc -n 64 sh -c \"$1\" \"$0\" \"$dir\" 2>&1; rm -r \"$dir\"";
    let outcome = Job::program(&[&here, "sh", "-c", script, &this_program(), IN_ALLOCATION])
        .env("GASNET_EXITTIMEOUT", "4")
        .run()
        .code(0);
    let of = |part: &str| part_of(&outcome, part);
    for (part, ranks) in [
        ("none", 4),
        ("pmi2", 4),
        ("pmix", 4),
        ("one", 3),
        ("two", 3),
        ("run", 2),
    ] {
        check_hello(&of(part), ranks);
    }
    assert_ne!(of("one").lines()[0], of("two").lines()[0]);
    check_hello(&of("shell"), 1);
    let ended = "without finalizing; the other ranks were ended";
    for (part, code, says) in [
        ("exit", "9", ended),
        ("left", "1", ended),
        (
            "killed",
            "137",
            "was killed by signal 9 (SIGKILL); the other ranks were ended",
        ),
    ] {
        let of = of(part);
        assert!(
            of.out.starts_with(&format!("{code}\n")) && of.out.contains(says),
            "{outcome:#?}"
        );
    }
    // Slurm puts all tasks into one process group; what is in it beside ranks is not the job's.
    let own = of("own");
    assert!(
        own.out.starts_with("0\n") && own.out.matches("after\n").count() == 2,
        "{outcome:#?}"
    );
    assert!(!of("canceled").out.starts_with("0\n"), "{outcome:#?}");
}

/// What runs on two nodes.
const OVER_HOSTS: &str = r#"
    part() { sed "s/^/$1: /"; }
    over() { srun --quiet -N 2 -n 4 "$@" 2>&1; }
    program=$0
    over --mpi=pmi2 --ntasks-per-node=2 "$0" __rank hello | part even
    srun --quiet -N 2 -n 3 --mpi=pmi2 "$0" __rank hello 2>&1 | part odd
    over --mpi=none "$0" __rank hello | part none
    over --mpi=pmi2 --distribution=cyclic "$0" __rank hello | part cyclic
    over --mpi=pmix --ntasks-per-node=2 "$0" __rank hello | part even-pmix
    srun --quiet -N 2 -n 3 --mpi=pmix "$0" __rank hello 2>&1 | part odd-pmix
    over --mpi=pmix --distribution=cyclic "$0" __rank hello | part cyclic-pmix
    over --mpi=pmix --ntasks-per-node=2 "$0" __rank launcher | part launcher-pmix
    end() {
        over --mpi=$1 --ntasks-per-node=2 "$program" __rank exit-at-fence 3 9 >"$2/exit"; echo "exit-$1: $?"
        part exit-$1 <"$2/exit"
        : >"$2/wait"
        srun -N 2 -n 4 --mpi=$1 --ntasks-per-node=2 "$program" __rank wait >"$2/wait" 2>"$2/killed" & step=$!
        until [ "$(grep -c '^pid ' "$2/wait")" = 4 ]; do
            kill -0 $step || exit 1
            sleep 0.01
        done
        kill -9 $(sed -n 's/^pid 3 //p' "$2/wait")
        wait $step; echo "killed-$1: $?"; part killed-$1 <"$2/killed"
    }
    end pmi2 "$1"
    end pmix "$1"
"#;

fn slurm_over_hosts() {
    let script = "dir=$(mktemp -d); sh -c \"$1\" \"$0\" \"$dir\"; rm -r \"$dir\"";
    let program = [
        &slurm_here(),
        "sh",
        "-c",
        script,
        &this_program(),
        OVER_HOSTS,
    ];
    let outcome = Job::program(&program)
        .env("NODES", "2")
        .env("ARGONET_CONDUIT", "tcp")
        .env("GASNET_EXITTIMEOUT", "4")
        .run()
        .code(0);
    let of = |part: &str| part_of(&outcome, part);
    for (part, ranks) in [("even", 4), ("odd", 3), ("even-pmix", 4), ("odd-pmix", 3)] {
        check_hello(&of(part), ranks);
    }
    let consecutive = "must be consecutive (`mpiexec -ppn N`, `srun --distribution=block`";
    let by_pmix = "true Slurm's srun: a program becomes rank 3 of 4, of which 2 on this host, from rank 2 on, share memory; the hosts \
                   find each other by PMIx, through ";
    let none = "they are on 2 hosts, and Slurm lets them find each other by PMI-1 or PMIx if it is started as";
    for (part, says) in [
        ("none", none),
        ("cyclic", consecutive),
        ("cyclic-pmix", consecutive),
        ("launcher-pmix", by_pmix),
    ] {
        assert!(of(part).out.contains(says), "{part}: {outcome:#?}");
    }
    let exited = "exited with code 9 without finalizing; the other ranks were ended";
    let killed = "was killed by signal 9 (SIGKILL); the other ranks were ended";
    for (part, code, says) in [
        ("exit-pmi2", "9\n", exited),
        ("exit-pmix", "9\n", exited),
        ("killed-pmi2", "137\n", killed),
        ("killed-pmix", "137\n", killed),
    ] {
        for says in [code, "argonet: rank 3 (pid ", says] {
            assert!(of(part).out.contains(says), "{part}: {outcome:#?}");
        }
    }
}
