//! Jobs over several hosts, which are network namespaces, that MPICH's hydra or Open MPI's mpirun
//! starts.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use argonet::{Rank, SharedArray, World};
use rustix::process::{Pid, Signal, kill_process};

use crate::built;
use crate::network::Network;
use crate::support::{Done, Job, Outcome, Program, Talk, Test};

pub(crate) const BY_HYDRA: &[Test] = &[
    ("elsewhere_all_kinds_of_traffic_over_hosts", all_kinds),
    ("elsewhere_refused_over_hosts", refused),
    ("elsewhere_killed_over_hosts", killed),
    ("elsewhere_exit_codes_over_hosts", exit_codes),
    ("elsewhere_info_over_hosts", info),
];

pub(crate) const BY_OPEN_MPI: &[Test] = &[
    ("elsewhere_all_kinds_of_traffic_by_pmix", all_kinds_by_pmix),
    ("elsewhere_refused_by_pmix", refused_by_pmix),
    ("elsewhere_killed_by_pmix", killed_by_pmix),
    ("elsewhere_exit_codes_by_pmix", exit_codes_by_pmix),
    ("elsewhere_info_and_doctor_by_pmix", info_by_pmix),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("elsewhere-together", together),
    ("elsewhere-for-ever", for_ever),
    ("elsewhere-leaves", leaves),
];

const HYDRA: &str = "mpiexec.hydra";
const OPEN_MPI: &str = "mpirun.openmpi";

/// In what hydra's own processes say when they fail.
const OF_HYDRA: &str = "HYDT_dmxu_poll_wait_for_event";

/// In what Open MPI's processes say when they do not find each other, before ranks start.
const OF_OPEN_MPI: &str = "unable to complete a TCP connection";

/// What is missing for tests of hydra; nothing if all is there.
pub(crate) fn no_hydra() -> Option<&'static str> {
    (!is_installed(HYDRA)).then_some("no mpiexec.hydra (Debian's mpich)")
}

/// The same for tests of Open MPI.
pub(crate) fn no_open_mpi() -> Option<&'static str> {
    (!is_installed(OPEN_MPI)).then_some("no mpirun.openmpi (Debian's openmpi-bin)")
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Hosts, and the way of launchers to them.
struct Cluster {
    network: Network,
    hosts: Vec<String>,
    directory: PathBuf,
    /// In place of a remote shell.
    shell: PathBuf,
}

impl Cluster {
    fn new(hosts: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let network = Network::new(hosts);
        let name = format!("argonet-test-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        for host in hosts {
            fs::create_dir_all(directory.join(host)).expect("a directory");
        }
        let shell = directory.join("shell");
        // Options of ssh come before the host.
        let template = network.template().replace("%M", "$host");
        let template = template.replace("%C", "sh -c \"$*\"");
        // Open MPI's processes of two hosts do not bear each other's files.
        let script = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nhost=$1\nshift\nexport TMPDIR=\"${{0%/*}}/$host\"\n{template}\n"
        );
        fs::write(&shell, script).expect("a script");
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o700)).expect("a mode");
        Self {
            network,
            hosts: hosts.iter().map(|&host| host.into()).collect(),
            directory,
            shell,
        }
    }

    /// Starts so many processes, on all hosts, as `options` have it.
    fn mpiexec(&self, ranks: u32, options: &[&str]) -> Command {
        let mut command = self.network.command("a");
        let shell = self.shell.to_string_lossy();
        command
            .args([HYDRA, "-launcher", "ssh", "-launcher-exec", &shell])
            .args(["-iface", "eth0", "-hosts", &self.hosts.join(",")])
            .args(["-n", &ranks.to_string()])
            .args(options);
        command
    }

    /// `program` on two ranks of each host.
    fn pairs(&self, ranks: u32, program: &str) -> Job {
        self.job(ranks, self.mpiexec(ranks, &["-ppn", "2"]), program)
    }

    /// Starts so many processes, two on each host, as `options` have it.
    fn mpirun(&self, ranks: u32, options: &[&str]) -> Command {
        let mut command = self.network.command("a");
        let hosts: Vec<String> = self.hosts.iter().map(|host| format!("{host}:2")).collect();
        command
            .args([OPEN_MPI, "--mca", "oob_tcp_if_include", "eth0"])
            .args(["--mca", "plm_rsh_agent", &self.shell.to_string_lossy()])
            .args(["--host", &hosts.join(","), "-n", &ranks.to_string()])
            .args(options)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    fn job(&self, ranks: u32, launcher: Command, program: &str) -> Job {
        let job = Job::under(ranks, launcher, program);
        job.env("ARGONET_CONDUIT", "tcp")
            .env("GASNET_EXITTIMEOUT", "4")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

argonet::rpc! {
    fn next(x: u64) -> u64 { x + 1 }
}

/// Puts, gets and messages between all pairs of ranks.
fn together() -> Done {
    let world = World::init()?;
    let (me, size) = (u64::from(world.rank().0), world.size());
    let slots = SharedArray::<u64>::alloc(&world, size as usize)?;
    world.barrier()?;
    for to in (0..size).map(Rank) {
        let slot = slots.ptr(to, me as usize);
        world.put_value(slot, 100 * me + u64::from(to.0))?;
    }
    world.barrier()?;
    for from in (0..size).map(Rank) {
        for writer in 0..size {
            let found = world.get_value(slots.ptr(from, writer as usize))?;
            assert_eq!(found, u64::from(100 * writer + from.0));
        }
        assert_eq!(world.rpc(from, &next, (me,))?.wait()?, me + 1);
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Barriers until the job is ended.
fn for_ever() -> Done {
    let world = World::init()?;
    let line = format!("rank {} is process {}\n", world.rank(), std::process::id());
    // At once, so that other ranks' lines are not in between.
    std::io::stderr().write_all(line.as_bytes())?;
    loop {
        world.barrier()?;
    }
}

/// Rank 2 leaves while the others wait for it.
fn leaves() -> Done {
    let world = World::init()?;
    world.barrier()?;
    if world.rank().0 == 2 {
        std::process::exit(9);
    }
    loop {
        world.barrier()?;
    }
}

fn all_kinds() {
    let cluster = Cluster::new(&["a", "b"]);
    cluster.pairs(4, "elsewhere-together").run().well();
    // The second host has one.
    cluster.pairs(3, "elsewhere-together").run().well();
    let job = cluster.pairs(4, "elsewhere-together");
    job.env("GASNET_SUPERNODE_MAXSIZE", "1").run().well();
    let cluster = Cluster::new(&["a", "b", "c"]);
    cluster.pairs(6, "elsewhere-together").run().well();
    let one_each = Job::under(3, cluster.mpiexec(3, &["-ppn", "1"]), "elsewhere-together");
    one_each.env("ARGONET_CONDUIT", "tcp").run().well();
}

fn refused() {
    let cluster = Cluster::new(&["a", "b"]);
    let job = Job::under(4, cluster.mpiexec(4, &[]), "elsewhere-together");
    job.env("ARGONET_CONDUIT", "tcp").run().failed(&[
        "is one of the 2 ranks of this host, the first of which is rank ",
        "must be consecutive (`mpiexec -ppn N`",
    ]);
    let job = cluster.pairs(4, "elsewhere-together");
    job.env("ARGONET_CONDUIT", "smp").run().failed(&[
        "rank 3, started by MPICH's hydra, could not join its job: the conduit smp joins ranks of one host",
        "ARGONET_CONDUIT (tcp",
    ]);
    // hydra itself makes one connection to the first host; those to the root of the job are lost.
    let first_alone = "limit rate over 1/hour burst 1 packets drop";
    let rule = format!("iifname \"eth*\" tcp flags & (syn | ack) == syn {first_alone}");
    cluster.network.filter("a", &rule);
    let job = cluster.pairs(4, "elsewhere-together");
    let job = job.env("ARGONET_START_TIMEOUT", "4");
    job.env("ARGONET_AGENT_TIMEOUT", "8")
        .run()
        .failed(&["does a firewall between the hosts keep TCP from its ports?"]);
}

/// Kills what `victim` finds in a job of four ranks on two hosts, under hydra.
fn kill(cluster: &Cluster, victim: fn(&Talk<'_>, &[Pid]) -> Pid) -> Outcome {
    kill_in(cluster.pairs(4, "elsewhere-for-ever"), victim)
}

/// The same for such a job.
fn kill_in(job: Job, victim: fn(&Talk<'_>, &[Pid]) -> Pid) -> Outcome {
    job.run_with(|talk| {
        let mut ranks = vec![None; 4];
        while ranks.contains(&None) {
            let line = talk.line_with("rank ");
            let words: Vec<&str> = line.split(' ').collect();
            let &["rank", rank, "is", "process", pid] = &words[..] else {
                panic!("{line}")
            };
            let rank: usize = rank.parse().expect(&line);
            ranks[rank] = pid.parse().ok().and_then(Pid::from_raw);
        }
        let ranks: Vec<Pid> = ranks.into_iter().flatten().collect();
        kill_process(victim(talk, &ranks), Signal::KILL).expect("a process that lives");
    })
}

fn killed() {
    let cluster = Cluster::new(&["a", "b"]);
    // hydra ends the job as well, and its process may be gone that passes on what is said.
    let fails = |outcome: Outcome, says: &[&str]| {
        let is_hydras = outcome.out.contains("BAD TERMINATION") || outcome.err.contains(OF_HYDRA);
        outcome.failed(if is_hydras { &[] } else { says })
    };
    let outcome = kill(&cluster, |_, ranks| ranks[3]);
    let says = [
        "argonet: rank 3 (pid ",
        "was killed by signal 9 (SIGKILL); the other ranks were ended",
    ];
    fails(outcome, &says);
    let outcome = kill(&cluster, |_, ranks| ranks[0]);
    fails(
        outcome,
        &["argonet: rank 0 (pid ", "was killed by signal 9"],
    );
    let outcome = kill(&cluster, |talk, _| {
        let agents = talk.processes("argonet-agent");
        assert_eq!(agents.len(), 2, "one a host");
        agents[1]
    });
    let says = "its agent, or the connection to it, ended while the job needed it";
    fails(outcome, &[says]);
    kill(&cluster, |talk, _| talk.processes("argonet-root")[0]).failed(&[]);
    let outcome = kill(&cluster, |talk, _| talk.processes("argonet-guard")[1]);
    fails(outcome, &["the job's guardian (process "]);
    kill(&cluster, |talk, _| talk.processes("hydra_pmi_proxy")[0]).failed(&[]);
    kill(&cluster, |talk, _| talk.pid).failed(&[]);
}

fn exit_codes() {
    let cluster = Cluster::new(&["a", "b"]);
    let outcome = cluster.pairs(4, "elsewhere-leaves").run();
    assert_eq!(outcome.code(), Some(9), "{outcome:#?}");
    outcome.says(&[
        "argonet: rank 2 (pid ",
        "exited with code 9 without finalizing; the other ranks were ended",
    ]);
}

/// What `argonet info` says of a launcher over hosts.
fn info() {
    let cluster = Cluster::new(&["a", "b"]);
    let mut command = cluster.mpiexec(4, &["-ppn", "2"]);
    command.arg(Path::new(built::command())).arg("info");
    let output = command.output().expect("mpiexec");
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "MPICH's hydra: a program becomes rank 3 of 4, of which 2 on this host, from rank 2 on, share memory; the hosts find",
        "by PMI-1",
    ] {
        assert!(text.contains(part), "{part}: {output:?}");
    }
}

/// The outcome of a job under mpirun, once mpirun's own processes have found each other.
fn outcome(job: impl Fn() -> Outcome) -> Outcome {
    let outcomes = (0..5).map(|_| job());
    let mut found = outcomes.filter(|outcome| !outcome.err.contains(OF_OPEN_MPI));
    found.next().expect("a job that starts")
}

/// `program` on two ranks of each host, under mpirun.
fn by_pmix(cluster: &Cluster, ranks: u32, program: &str) -> Outcome {
    outcome(|| {
        cluster
            .job(ranks, cluster.mpirun(ranks, &[]), program)
            .run()
    })
}

fn all_kinds_by_pmix() {
    let cluster = Cluster::new(&["a", "b"]);
    by_pmix(&cluster, 4, "elsewhere-together").ended_well();
    // The second host has one.
    by_pmix(&cluster, 3, "elsewhere-together").ended_well();
    let apart = || cluster.job(4, cluster.mpirun(4, &[]), "elsewhere-together");
    outcome(|| apart().env("GASNET_SUPERNODE_MAXSIZE", "1").run()).ended_well();
    let cluster = Cluster::new(&["a", "b", "c"]);
    by_pmix(&cluster, 6, "elsewhere-together").ended_well();
    let one_each = || cluster.mpirun(3, &["--map-by", "ppr:1:node"]);
    outcome(|| cluster.job(3, one_each(), "elsewhere-together").run()).ended_well();
}

fn refused_by_pmix() {
    let cluster = Cluster::new(&["a", "b"]);
    let by_node = || cluster.mpirun(4, &["--map-by", "node"]);
    outcome(|| cluster.job(4, by_node(), "elsewhere-together").run()).failed(&[
        "must be consecutive (`mpiexec -ppn N`, `srun --distribution=block`, `mpirun --map-by slot`)",
    ]);
    let nowhere = || cluster.job(4, cluster.mpirun(4, &[]), "elsewhere-together");
    let nowhere = || nowhere().env("ARGONET_PMIX_LIBRARY", "/nowhere/libpmix.so.2");
    outcome(|| nowhere().run()).failed(&[
        "the store of Open MPI's mpirun (PMIx, by libpmix) failed at \"PMIx_Init\": no libpmix could be loaded: /nowhere/",
        "ARGONET_PMIX_LIBRARY",
    ]);
    // A server that has ended: no process listens there.
    let script = "for n in '' 2 21 3 4 41; do export \"PMIX_SERVER_URI$n=$PMIX_NAMESPACE.9;tcp4://127.0.0.1:1\"; done; exec \"$0\"";
    let dead = || cluster.mpirun(4, &["sh", "-c", script]);
    outcome(|| cluster.job(4, dead(), "elsewhere-together").run()).failed(&[
        "the launcher's server, which PMIX_SERVER_URI2 and the like name, cannot be used: UNREACHABLE (-25)",
    ]);
}

fn killed_by_pmix() {
    let cluster = Cluster::new(&["a", "b"]);
    let job = || cluster.job(4, cluster.mpirun(4, &[]), "elsewhere-for-ever");
    // mpirun does not wait until all that its ranks have written is there.
    let kill = |victim| kill_in(job(), victim).failed(&[]);
    kill(|_, ranks| ranks[3]);
    kill(|_, ranks| ranks[0]);
    kill(|talk, _| {
        assert!(talk.processes("argonet-pmix").is_empty(), "after the start");
        talk.processes("argonet-agent")[1]
    });
    kill(|talk, _| talk.processes("argonet-root")[0]);
    kill(|talk, _| talk.processes("argonet-guard")[1]);
    kill(|talk, _| talk.processes("orted")[1]);
    kill(|talk, _| talk.pid);
}

fn exit_codes_by_pmix() {
    let cluster = Cluster::new(&["a", "b"]);
    let outcome = by_pmix(&cluster, 4, "elsewhere-leaves");
    assert_eq!(outcome.code(), Some(9), "{outcome:#?}");
}

fn info_by_pmix() {
    let cluster = Cluster::new(&["a", "b"]);
    let asked = |options: &[&str], subcommand: &str| {
        let mut command = cluster.mpirun(4, options);
        // A code that is not 0 would end the others.
        let script = format!("\"$0\" {subcommand} 2>&1 || :");
        command.args(["sh", "-c", &script]).arg(built::command());
        let output = command.output().expect("mpirun");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let asked = |options: &[&str], subcommand: &str| {
        let outputs = (0..5).map(|_| asked(options, subcommand).concat());
        let mut found = outputs.filter(|text| !text.contains(OF_OPEN_MPI));
        found.next().expect("processes that start")
    };
    let becomes = "Open MPI's mpirun: a program becomes rank 3 of 4, of which 2 on this host, from rank 2 on, share memory; the hosts \
                   find each other by PMIx, through ";
    let text = asked(&[], "info");
    assert!(
        text.contains(becomes) && text.contains("libpmix.so.2"),
        "{text}"
    );
    let nowhere = ["-x", "ARGONET_PMIX_LIBRARY=/nowhere/libpmix.so.2"];
    let missing = "the hosts find each other by PMIx only, and no libpmix could be loaded: /nowhere/libpmix.so.2";
    for subcommand in ["info", "doctor"] {
        let text = asked(&nowhere, subcommand);
        assert!(text.contains(missing), "{subcommand}: {text}");
    }
}
