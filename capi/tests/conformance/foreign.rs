//! Programs that launchers of others start: MPICH's hydra, Open MPI's mpirun, Slurm's srun.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::compiler::root;
use crate::network::Network;
use crate::running::Run;

const RANKS: &str = "4";

/// The launchers, each with a program that it needs.
const LAUNCHERS: [(&[&str], &str); 3] = [
    (&["mpiexec.hydra"], "mpiexec.hydra"),
    (&["mpirun.openmpi"], "mpirun.openmpi"),
    (&["srun"], "slurmctld"),
];

/// The jobs of each launcher: the conduit that the program is linked for, what the ranks reach each
/// other over, how many neighbors each has, and the code.
const JOBS: [(&str, Network, &str, i32); 5] = [
    ("smp", Network::Memory, "4", 7),
    ("tcp", Network::Memory, "4", 0),
    ("tcp", Network::Wire, "1", 9),
    ("portals", Network::Interfaces, "1", 0),
    ("usnic", Network::Datagrams, "1", 0),
];

pub(crate) fn trials() -> Vec<Trial> {
    let programs: Vec<Arc<Program>> = JOBS
        .iter()
        .map(|(word, ..)| Arc::new(Program::new(Way::RELEASE, "launched").linked_for(word)))
        .collect();
    let trial = |(launcher, needs): (&'static [&'static str], &str)| {
        let programs = programs.clone();
        let title = format!("jobs that {needs} starts");
        let test = move || match launcher {
            ["srun"] => in_an_allocation(&programs),
            _ => one_by_one(launcher, &programs),
        };
        Way::RELEASE
            .trial(title, test)
            .with_ignored_flag(!may_start(needs))
    };
    LAUNCHERS.into_iter().map(trial).collect()
}

/// Whether a program is installed, and this user may use it as the tests do.
fn may_start(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let is_there = directories.any(|directory| directory.join(program).is_file());
    is_there && (program != "slurmctld" || rustix::process::geteuid().is_root())
}

/// Also where the environment of the tests says otherwise.
fn variables(network: Network) -> &'static [(&'static str, &'static str)] {
    match network {
        Network::Memory => &[Network::NEIGHBORS],
        other => other.variables(),
    }
}

fn one_by_one(launcher: &[&str], programs: &[Arc<Program>]) -> Result<(), Failed> {
    for ((word, network, near, code), program) in JOBS.into_iter().zip(programs) {
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", "120"])
            .args(launcher)
            .args(["-n", RANKS])
            .arg(program.path()?)
            .args([RANKS, near, &code.to_string()])
            .env_remove("GASNET_PSHM_NODES")
            .envs(OF_OPEN_MPI);
        let what = format!("linked for {word}{}", network.suffix());
        let run = Run::of(command, variables(network).iter().copied(), what)?;
        if run.code() != code || passes(&run) != 1 {
            return Err(run.said().into());
        }
    }
    Ok(())
}

/// What Open MPI wants of root, and of machines with few processors.
const OF_OPEN_MPI: [(&str, &str); 3] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
];

/// All jobs in one cluster.
fn in_an_allocation(programs: &[Arc<Program>]) -> Result<(), Failed> {
    let mut script = String::new();
    let mut codes = String::new();
    for ((_, network, near, code), program) in JOBS.into_iter().zip(programs) {
        let variables = variables(network).iter();
        let variables: Vec<String> = variables
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let (variables, path) = (variables.join(" "), program.path()?.display());
        script += &format!(
            "env {variables} srun -n {RANKS} '{path}' {RANKS} {near} {code}; echo \"code $?\"\n"
        );
        codes += &format!("code {code}\n");
    }
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", "120"])
        .arg(root().join("contrib/slurm-here.sh"))
        .env_remove("GASNET_PSHM_NODES")
        .args(["salloc", "-n", "8", "sh", "-c", &script]);
    let run = Run::of(command, [], "in an allocation".into())?;
    let lines = run.out();
    let found = lines.lines().filter(|line| line.starts_with("code "));
    let found: String = found.flat_map(|line| [line, "\n"]).collect();
    if found == codes && passes(&run) == JOBS.len() {
        return Ok(());
    }
    Err(run.said().into())
}

/// Number of jobs that have come to their end.
fn passes(run: &Run) -> usize {
    let lines = run.out();
    lines
        .lines()
        .filter(|line| *line == "PASS launched")
        .count()
}
