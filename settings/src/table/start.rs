//! The start of a job, and its messages meanwhile.

use super::{NO_MPI, NO_SPAWNER, NO_SSH};
use crate::choice::Sealing;
use crate::conduits::CONDUIT_NAMES;
use crate::kind::{DAY, Kind, TimeUnit};
use crate::row::{Effect, Preset, Row, Scope};
use crate::setting::settings;
use std::time::Duration;

/// The most ranks that a host can have.
pub const MAX_LOCAL_RANKS: u32 = 1024;

settings! {
    PSHM_NODES: u64 = "GASNET_PSHM_NODES",
        Kind::Count { min: 0, max: MAX_LOCAL_RANKS as u64, unit: "ranks" }, Preset::Is("0"), Scope::Job,
        "How many ranks a program becomes that was started alone; 0 is one. Where another launcher, such as srun or mpirun, has \
         started several processes, each becomes a job of so many ranks; without the setting they become one job. `argonet run` \
         has its own option.";
    CONDUIT: &'static str = "ARGONET_CONDUIT", Kind::Choice(&CONDUIT_NAMES), Preset::Is(CONDUIT_NAMES[0]), Scope::Job,
        "The conduit of jobs that `argonet run` starts, where `--conduit` is not given.";
    RAILS: Option<String> = "ARGONET_RAILS", Kind::Text, Preset::Unset, Scope::Rank,
        "Several rails between hosts, the best one first, such as tcp:eth0,tcp:eth1,usnic:eth1: kinds (tcp, usnic), each with an \
         interface, subnet or address if it is to have one alone. Messages go over the first that works, and over the next where \
         it fails; payloads are striped over those of tcp. The same kinds in the same order on all ranks; interfaces may differ.";
    SEAL: Sealing = "ARGONET_SEAL", Kind::Choice(Sealing::WORDS), Preset::Is("auth"), Scope::Job,
        "Datagrams over usnic, and over portals between hosts: auth, each has a code by the job's key, so that forged and \
         changed ones are dropped; encrypt, what they carry is encrypted, too; off, none has, for networks where only ranks \
         of the job send.";
    START_TIMEOUT: Duration = "ARGONET_START_TIMEOUT",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::from_secs(1), max: DAY }, Preset::Is("60"), Scope::Rank,
        "How long ranks wait for each other at the start, also under another launcher, where they first wait as long to \
         find rank 0, and as long for its answer. Over usnic, a twelfth of it is how long paths between ranks may be \
         silent then, and a sixth how long a peer later that was never heard.";
    QUIET: bool = "GASNET_QUIET", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Silences warnings: at the start, and later of paths that are silent and rails that fail.";
    VERBOSE_ENV: bool = "GASNET_VERBOSEENV", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Prints each setting that the launcher or rank 0 reads.";
    SPAWN_FUNCTION: Option<&'static str> = "GASNET_SPAWNFN", Kind::Choice(&["L", "S", "C"]), Preset::Unset, Scope::Rank,
        "How the agents of a job over several hosts are started: L on this host, S by ssh, C by GASNET_CSPAWN_CMD. Where it \
         is not given, C if that is set, else S.";
    SPAWN_VERBOSE: bool = "GASNET_SPAWN_VERBOSE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Prints the steps of starting and ending the job.";
}

const ENCODED: &str = "nothing is encoded: ranks inherit arguments and environment as they are";
const OF_GASNETRUN: &str = "GASNet's own start script sets it for GASNet's processes";

pub(crate) const IDLE: &[Row] = &[
    Row {
        name: "ARGONET_BOOT",
        kind: Kind::Text,
        preset: Preset::Unset,
        scope: Scope::Rank,
        about: "The description of the job that the launcher leaves for its ranks.",
        effect: Effect::Internal,
    },
    Row {
        name: "ARGONET_ROLE",
        kind: Kind::Text,
        preset: Preset::Unset,
        scope: Scope::Rank,
        about: "What a program has to be that starts its own ranks on several hosts, where it is no rank.",
        effect: Effect::Internal,
    },
    Row {
        name: "ARGONET_TEST_JOB",
        kind: Kind::Text,
        preset: Preset::Unset,
        scope: Scope::Rank,
        about: "The test whose job a process launches, or is a rank of.",
        effect: Effect::Internal,
    },
    Row {
        name: "ARGONET_JOINED",
        kind: Kind::Text,
        preset: Preset::Unset,
        scope: Scope::Rank,
        about: "Set by ranks that another launcher started: their job, so that programs which they start are no ranks of it.",
        effect: Effect::Internal,
    },
    Row {
        name: "ARGONET_LAUNCH_RANKS",
        kind: Kind::Text,
        preset: Preset::Unset,
        scope: Scope::Rank,
        about: "How many ranks a launcher script lets its program start.",
        effect: Effect::Internal,
    },
    Row::idle(
        "GASNET_DISABLE_ENVDECODE",
        Kind::Boolean,
        "0",
        Scope::Job,
        "Does not decode the environment that a start script has encoded.",
        ENCODED,
    ),
    Row::idle(
        "GASNET_DISABLE_ARGDECODE",
        Kind::Boolean,
        "0",
        Scope::Job,
        "Does not decode the arguments that a start script has encoded.",
        ENCODED,
    ),
    Row::idle(
        "GASNET_ENVCMD",
        Kind::Path,
        "env",
        Scope::Job,
        "The path of `env` on other hosts (gasnetrun, ssh).",
        NO_SSH,
    ),
    Row::idle(
        "GASNET_ENV_CMD",
        Kind::Path,
        "env",
        Scope::Job,
        "The path of `env` on other hosts (udp).",
        NO_SSH,
    ),
    Row::idle(
        "GASNET_TMPDIR",
        Kind::Path,
        "TMPDIR, else /tmp",
        Scope::Rank,
        "The directory for temporary files.",
        "argonet makes no temporary files",
    ),
    Row::idle(
        "GASNET_HOST_DETECT",
        Kind::Choice(&["conduit", "gethostid", "hostname"]),
        "conduit",
        Scope::Job,
        "How ranks find out which of them share a host.",
        "ranks share memory with those of their host in the list of hosts",
    ),
    Row::idle(
        "GASNET_USE_GETHOSTID",
        Kind::Boolean,
        "0",
        Scope::Job,
        "The old form of GASNET_HOST_DETECT (udp).",
        "ranks share memory with those of their host in the list of hosts",
    ),
    Row::idle(
        "GASNET_NODEMAP_EXACT",
        Kind::Boolean,
        "1",
        Scope::Job,
        "Looks for ranks that share a host among all, not among neighbors.",
        "ranks share memory with those of their host in the list of hosts",
    ),
    Row::idle(
        "GASNET_SMP_SPAWNER",
        Kind::Choice(&["fork", "ssh", "mpi", "pmi"]),
        "fork",
        Scope::Job,
        "How the ranks of a job in shared memory are started.",
        NO_SPAWNER,
    ),
    Row::idle(
        "GASNET_IBV_SPAWNER",
        Kind::Choice(&["ssh", "mpi", "pmi"]),
        "mpi, else ssh",
        Scope::Job,
        "How the ranks are started (ibv).",
        NO_SPAWNER,
    ),
    Row::idle(
        "GASNET_OFI_SPAWNER",
        Kind::Choice(&["ssh", "mpi", "pmi"]),
        "mpi, else ssh",
        Scope::Job,
        "How the ranks are started (ofi).",
        NO_SPAWNER,
    ),
    Row::idle(
        "GASNET_UCX_SPAWNER",
        Kind::Choice(&["ssh", "mpi", "pmi"]),
        "mpi, else ssh",
        Scope::Job,
        "How the ranks are started (ucx).",
        NO_SPAWNER,
    ),
    Row::idle(
        "MPIRUN_CMD",
        Kind::Text,
        "mpirun -np %N %C",
        Scope::Job,
        "The command by which an MPI starts the ranks.",
        NO_SPAWNER,
    ),
    Row::idle(
        "PMIRUN_CMD",
        Kind::Text,
        "MPIRUN_CMD",
        Scope::Job,
        "The command by which a PMI starts the ranks.",
        NO_SPAWNER,
    ),
    Row::idle(
        "GASNET_MPI_THREAD",
        Kind::Choice(&["SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE"]),
        "SINGLE, with threads SERIALIZED",
        Scope::Job,
        "The level of thread support that is asked of MPI.",
        NO_MPI,
    ),
    Row::idle(
        "GASNET_MPI_FINALIZE",
        Kind::Boolean,
        "1",
        Scope::Job,
        "Finalizes MPI at a normal exit.",
        NO_MPI,
    ),
    Row::idle(
        "GASNET_SPAWN_CONTROL",
        Kind::Text,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_ARGS",
        Kind::Text,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_CONDUIT",
        Kind::Text,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_HAVE_SSH",
        Kind::Boolean,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_HAVE_MPI",
        Kind::Boolean,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_HAVE_PMI",
        Kind::Boolean,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_SPAWN_HAVE_FORK",
        Kind::Boolean,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_RM_NODEFILE",
        Kind::Boolean,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
    Row::idle(
        "GASNET_PLATFORM",
        Kind::Text,
        "",
        Scope::Job,
        "Internal to gasnetrun.",
        OF_GASNETRUN,
    ),
];
