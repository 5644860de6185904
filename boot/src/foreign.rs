//! Launchers other than this library's, known by variables in the environment of the processes that
//! they start.
//!
//! A process that one of them started beside others on this host is a rank of their job
//! ([`Member`]); they find each other in the module `rendezvous`. Where the environment says that
//! there are more processes and this one cannot join them, it is refused: it would be rank 0 of 1.
//! A program starts alone if only an allocation is in the environment, as in a batch script or in a
//! shell of `salloc`.
//!
//! | launcher | rank and number | on this host | identity | store for several hosts |
//! | --- | --- | --- | --- | --- |
//! | Slurm's srun | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | `SLURM_STEP_NUM_NODES` | cluster, job, step, node | PMI-1 with `--mpi=pmi2`, PMIx with `--mpi=pmix` |
//! | Open MPI's mpirun | `OMPI_COMM_WORLD_*` | `OMPI_COMM_WORLD_LOCAL_SIZE` | `PMIX_NAMESPACE`, the address of its server | PMIx |
//! | MPICH's hydra | `PMI_RANK`, `PMI_SIZE` | `MPI_LOCALNRANKS` | the process that made the socket `PMI_FD` | PMI-1 |
//!
//! Where the processes are on several hosts ([`Spread`]), those of each host find each other, and
//! the hosts by the launcher's store ([`Way`], `rendezvous::over_hosts`). On one host that is not
//! touched: an MPI in the same program may need it.
//!
//! The variables are text that anyone may have set: none is believed before it has been checked.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::RawFd;

use crate::error::BootError;
use crate::page::{MAX_JOB_RANKS, MAX_LOCAL_RANKS};
use crate::{ancestry, sys};

const OPEN_MPI: &str = "Open MPI's mpirun";
const OPEN_MPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";
const OPEN_MPI_LOCAL_SIZE: &str = "OMPI_COMM_WORLD_LOCAL_SIZE";
const OPEN_MPI_LOCAL_RANK: &str = "OMPI_COMM_WORLD_LOCAL_RANK";
const MVAPICH_SIZE: &str = "MV2_COMM_WORLD_SIZE";

/// For all launchers that speak PMI.
const PMI_SIZE: &str = "PMI_SIZE";
/// The process's descriptor of the socket to the launcher.
const PMI_FD: &str = "PMI_FD";
/// Set by hydra, and not by others that speak PMI.
const HYDRA_LOCAL_SIZE: &str = "MPI_LOCALNRANKS";
const HYDRA_LOCAL_RANK: &str = "MPI_LOCALRANKID";

const STEP_SIZE: &str = "SLURM_STEP_NUM_TASKS";
const STEP: &str = "SLURM_STEP_ID";
const SRUN: &str = "Slurm's srun";
const HYDRA: &str = "MPICH's hydra";

/// The process of the task, as Slurm has started it.
const TASK_PROCESS: &str = "SLURM_TASK_PID";

/// Set in the environment of a rank that another launcher started, to its [`Mark`]: programs that
/// it starts are no processes of that launcher's, though they see its variables.
pub(crate) const JOINED: &str = "ARGONET_JOINED";

/// Numbers of Slurm's steps from here on are of the batch script, of a shell in an allocation, and
/// others that run no tasks of a program.
const SPECIAL_STEPS: u64 = 0xffff_fff0;

/// Says which process of a job it is where the launcher speaks PMIx; no variable of PMIx says how
/// many there are.
const PMIX_RANK: &str = "PMIX_RANK";

/// The job, as the launcher's servers of PMIx call it.
const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";

/// The beginning of that for steps of Slurm.
const NAMESPACES_OF_SLURM: &str = "slurm.pmix";

/// Addresses of the PMIx server of this host, which no two servers of it share.
const PMIX_SERVERS: [&str; 7] = [
    "PMIX_SERVER_URI41",
    "PMIX_SERVER_URI4",
    "PMIX_SERVER_URI3",
    "PMIX_SERVER_URI21",
    "PMIX_SERVER_URI2",
    "PMIX_SERVER_URI",
    "PMIX_SERVER_TMPDIR",
];

/// Variables from which a process takes what it is; no two processes of launchers have the same
/// values of all, unless hydra gives them.
const DEFINING: [&str; 14] = [
    OPEN_MPI_SIZE,
    "OMPI_COMM_WORLD_RANK",
    MVAPICH_SIZE,
    PMI_SIZE,
    "PMI_RANK",
    PMI_FD,
    HYDRA_LOCAL_SIZE,
    "SLURM_JOB_ID",
    STEP,
    STEP_SIZE,
    "SLURM_PROCID",
    TASK_PROCESS,
    PMIX_NAMESPACE,
    PMIX_RANK,
];

/// Beginnings of names of variables by which launchers describe a process.
const DESCRIBING: [&str; 10] = [
    "PMI_",
    "PMI2_",
    "PMIX_",
    "OMPI_COMM_WORLD_",
    "MV2_COMM_WORLD_",
    "MPI_LOCAL",
    "SLURM_STEP",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_TASK_PID",
];

/// The beginning of names of a user's settings of PMIx, which describe no process.
const SETTINGS_OF_PMIX: &[u8] = b"PMIX_MCA_";

/// Whether a launcher describes one of its processes by the variable of this name, so that
/// processes which another one starts must not see it.
pub(crate) fn describes_process(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let describes = |begin: &&str| name.starts_with(begin.as_bytes());
    !name.starts_with(SETTINGS_OF_PMIX) && DESCRIBING.iter().any(describes)
}

/// The launcher's store by which hosts find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// PMI-1, at the descriptor of the socket to the launcher.
    Pmi(RawFd),
    /// PMIx, by its library, which finds the server by the variables.
    Pmix,
}

/// Where the processes of a job over several hosts are, and how the hosts find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    /// The first rank of this host; the others follow it.
    pub(crate) first: u32,
    /// Number of ranks of this host.
    pub(crate) here: u32,
    pub(crate) way: Way,
    /// Whether the launcher ends all processes of the job when one has failed.
    pub(crate) ends_all: bool,
}

/// A process of several that a launcher started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) launcher: &'static str,
    /// The variable with the number of processes.
    variable: &'static str,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The same for all processes of the job on this host, and for those of no other job there.
    pub(crate) identity: String,
    /// `None` where all of them are on this host.
    pub(crate) spread: Option<Spread>,
}

impl Member {
    /// A number that the processes of this job have in common, and no other job on this host has.
    pub(crate) fn job(&self) -> u64 {
        let size = self.size.to_string();
        hash(&[self.launcher, &size, &self.identity])
    }

    /// The first rank of this host.
    pub(crate) fn first(&self) -> u32 {
        self.spread.map_or(0, |spread| spread.first)
    }

    /// Number of ranks of this host.
    pub(crate) fn here(&self) -> u32 {
        self.spread.map_or(self.size, |spread| spread.here)
    }
}

/// FNV-1a, which all builds have alike.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let text = parts.join("\0");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The mark of a rank in the environment of the programs that it starts, in which they recognize
/// the variables that describe the rank and not themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// [`Member::job`].
    job: u64,
    /// A hash of all [`DEFINING`] variables: with other values than those of the rank, there is
    /// another launcher between the two.
    variables: u64,
}

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (job, variables) = text.split_once(':')?;
        Some(Self {
            job: number(job)?,
            variables: number(variables)?,
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}:{:016x}", self.job, self.variables)
    }
}

/// Meaning of the environment for a program that was started by itself.
#[derive(Debug)]
pub(crate) enum Found {
    /// No launcher has started several processes; the one that has started this, if any.
    Alone(Option<&'static str>),
    /// A rank, which this launcher has started, has started this process.
    OfRank(&'static str),
    Member(Member),
    /// There are several, and this one cannot join them.
    Refused(BootError),
}

/// The launcher of this process, by its environment.
pub(crate) fn find() -> Found {
    judge(&Surroundings::own())
}

/// Lets programs that this process, the rank of `member`, starts from now on be alone; the reason
/// if it cannot.
///
/// Other libraries of this process, as that of an MPI, may need the launcher's variables, so those
/// stay.
pub(crate) fn mark_children(member: &Member) -> Result<(), String> {
    let mark = Mark {
        job: member.job(),
        variables: Surroundings::own().variables(),
    };
    match sys::set_variable(JOINED, &mark.to_string()) {
        true => Ok(()),
        false => Err(format!(
            "rank {} had more than one thread when it joined its job, so programs that it starts take themselves for ranks; give \
             them GASNET_PSHM_NODES=1",
            member.rank
        )),
    }
}

/// Whether another launcher has started several processes, of which this is one.
pub(crate) fn is_one_of_several() -> bool {
    matches!(find(), Found::Member(_) | Found::Refused(_))
}

/// The warning of what starts ranks if another launcher has started several processes, as each of
/// those may be `starter`.
pub(crate) fn warning(starter: &str) -> Option<String> {
    let (variable, launcher, size) = match find() {
        Found::Alone(_) | Found::OfRank(_) => return None,
        Found::Member(member) => (member.variable, member.launcher, Some(member.size.into())),
        Found::Refused(BootError::ForeignLauncher {
            variable,
            launcher,
            size,
            ..
        }) => (variable, launcher, size),
        Found::Refused(error) => return Some(format!("warning: {error}")),
    };
    let size: Option<u64> = size;
    let size = size.map_or("several".into(), |size| size.to_string());
    Some(format!(
        "warning: {variable} says that {launcher} started {size} processes; if each of them is \
         {starter}, there are as many jobs"
    ))
}

/// Keeps the socket to the launcher, whose variable its ranks do not get either, from the processes
/// that this one starts.
pub(crate) fn keep_socket_from_children() {
    let raw = std::env::var(PMI_FD)
        .ok()
        .and_then(|text| text.parse().ok());
    let fd = raw.filter(|fd| *fd > 2).and_then(sys::examine_fd);
    // The number may be that of another file by now.
    if let Some(fd) = fd.filter(|fd| rustix::net::sockopt::socket_type(*fd).is_ok()) {
        // One that stays open harms no more than an unknown file.
        let _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC);
    }
}

/// What a process can find out about its launcher.
struct Surroundings<'a> {
    pid: u32,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The process that made the socket behind a descriptor, in words that fit no other process of
    /// this host until it is started again.
    maker: &'a dyn Fn(RawFd) -> Option<String>,
}

/// A launcher that has said how many processes it started.
#[derive(Clone, Copy)]
struct Sized {
    variable: &'static str,
    launcher: &'static str,
    size: u64,
    describe: fn(&Surroundings<'_>, u64) -> Described,
}

/// A process as a launcher describes it.
struct Process {
    rank: u64,
    identity: String,
    /// Where there are several hosts: its number among those of this one, how many these are, and
    /// the launcher's store.
    spread: Option<(u64, u64, Way)>,
}

/// The process, or why it can be no rank.
type Described = Result<Process, Why>;

enum Why {
    /// A variable has no value of its kind.
    Bad(BootError),
    /// This process cannot join the others.
    Apart(String),
    /// hydra's socket, by which its processes know each other, is not open.
    NoSocket,
}

impl From<BootError> for Why {
    fn from(error: BootError) -> Self {
        Self::Bad(error)
    }
}

impl Surroundings<'static> {
    /// Those of this process.
    fn own() -> Self {
        Self {
            pid: std::process::id(),
            variable: &|name| std::env::var_os(name),
            maker: &ancestry::maker_of_socket,
        }
    }
}

impl Surroundings<'_> {
    /// See [`Mark`].
    fn variables(&self) -> u64 {
        let values = DEFINING.map(|name| (self.variable)(name).unwrap_or_default());
        let values = values.each_ref().map(|value| value.to_string_lossy());
        hash(&values.each_ref().map(AsRef::as_ref))
    }

    /// The mark of the rank that has started this process, if one has.
    fn mark(&self) -> Option<Mark> {
        Mark::parse((self.variable)(JOINED)?.to_str()?)
    }

    /// The text of a variable; an empty one is none.
    fn text(&self, name: &'static str) -> Result<Option<String>, BootError> {
        match (self.variable)(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(Err(other)) => Err(bad(name, &other.to_string_lossy())),
        }
    }

    fn number(&self, name: &'static str) -> Result<Option<u64>, BootError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| plain);
        number.map(Some).ok_or_else(|| bad(name, &text))
    }

    fn needed_text(&self, name: &'static str) -> Result<String, Why> {
        self.text(name)?.ok_or_else(|| is_not_set(name))
    }

    fn needed_number(&self, name: &'static str) -> Result<u64, Why> {
        self.number(name)?.ok_or_else(|| is_not_set(name))
    }

    fn sized(
        &self,
        variable: &'static str,
        launcher: &'static str,
        describe: fn(&Surroundings<'_>, u64) -> Described,
    ) -> Result<Option<Sized>, BootError> {
        let sized = |size| Sized {
            variable,
            launcher,
            size,
            describe,
        };
        Ok(self.number(variable)?.map(sized))
    }

    /// This process's socket to a launcher that speaks PMI, and the process that made it.
    fn pmi_socket(&self) -> Result<Option<(RawFd, String)>, BootError> {
        let fd = self.number(PMI_FD)?;
        let fd = fd.and_then(|fd| RawFd::try_from(fd).ok());
        Ok(fd.and_then(|fd| Some((fd, (self.maker)(fd)?))))
    }

    /// The address of this host's server of PMIx.
    fn pmix_server(&self) -> Result<String, Why> {
        let mut servers = PMIX_SERVERS.into_iter();
        let server = servers.find_map(|name| self.text(name).transpose());
        server
            .transpose()?
            .ok_or_else(|| is_not_set("PMIX_SERVER_URI2"))
    }

    /// Whether a launcher that speaks PMIx has said that this process is `rank`, of this namespace
    /// if it is known.
    fn is_of_pmix(&self, rank: u64, namespace: Option<&str>) -> Result<bool, BootError> {
        let name = self.text(PMIX_NAMESPACE)?;
        let is_its = name.is_some_and(|name| namespace.is_none_or(|its| name == its));
        Ok(is_its && self.number(PMIX_RANK)? == Some(rank) && self.pmix_server().is_ok())
    }
}

fn is_not_set(name: &str) -> Why {
    Why::Apart(format!("{name} is not set"))
}

fn bad(variable: &'static str, value: &str) -> BootError {
    BootError::BadLauncherVariable {
        variable,
        value: printable(value),
    }
}

/// The beginning of a text that anyone may have set, without what would control a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

fn judge(around: &Surroundings<'_>) -> Found {
    let launcher = match closest(around) {
        Ok(Some(launcher)) => launcher,
        Ok(None) => return Found::Alone(None),
        Err(error) => return Found::Refused(error),
    };
    let Sized {
        variable,
        launcher,
        size,
        describe,
    } = match launcher {
        Launcher::OfSize(Sized {
            launcher,
            size: 0 | 1,
            ..
        }) => return Found::Alone(Some(launcher)),
        Launcher::OfSize(sized) => sized,
        Launcher::OfUnknownSize => {
            return Found::Refused(BootError::ForeignLauncher {
                variable: PMIX_RANK,
                launcher: "a PMIx launcher",
                size: None,
                reason: "its variables do not say how many there are".into(),
            });
        }
        Launcher::Unclear([one, other]) => return unclear(one, other),
    };
    let refused = |reason: String| {
        Found::Refused(BootError::ForeignLauncher {
            variable,
            launcher,
            size: Some(size),
            reason,
        })
    };
    let of_rank = around.mark();
    let has_its_variables = of_rank.is_some_and(|mark| mark.variables == around.variables());
    let described = match describe(around, size) {
        Ok(described) => described,
        Err(Why::Bad(error)) => return Found::Refused(error),
        Err(Why::NoSocket) if has_its_variables => return Found::OfRank(launcher),
        Err(Why::NoSocket) => {
            return refused(format!(
                "{PMI_FD} names no open socket, which a program between the launcher and this one has closed"
            ));
        }
        Err(Why::Apart(reason)) => return refused(reason),
    };
    let Process {
        rank,
        identity,
        spread,
    } = described;
    let most = match spread {
        None => MAX_LOCAL_RANKS,
        Some(_) => MAX_JOB_RANKS,
    };
    let below = |number: u64, most: u32| u32::try_from(number).ok().filter(|n| *n < most);
    let Some(size) = below(size, most + 1) else {
        let what = spread.map_or("a host", |_| "a job");
        return refused(format!("{what} has at most {most} ranks"));
    };
    let Some(rank) = below(rank, size) else {
        return refused(format!("this one's number is {rank}"));
    };
    let ends_all = launcher == HYDRA;
    let spread = match spread.map(|spread| place_on_host(rank, size, spread, ends_all)) {
        None => None,
        Some(Ok(spread)) => Some(spread),
        Some(Err(reason)) => return refused(reason),
    };
    let member = Member {
        launcher,
        variable,
        rank,
        size,
        identity,
        spread,
    };
    match of_rank.is_some_and(|mark| mark.job == member.job()) {
        true if has_its_variables => Found::OfRank(launcher),
        true => refused(
            "one of them has started this one by a launcher that cannot be distinguished from theirs".into(),
        ),
        false => Found::Member(member),
    }
}

/// The place of `rank`, whose number among the ranks of its host is given, and how many these are.
fn place_on_host(
    rank: u32,
    size: u32,
    (local, here, way): (u64, u64, Way),
    ends_all: bool,
) -> Result<Spread, String> {
    let numbers = u32::try_from(local).ok().zip(u32::try_from(here).ok());
    let first = numbers.and_then(|(local, here)| {
        let first = rank.checked_sub(local)?;
        let fits = local < here && here <= size - first;
        (fits && here <= MAX_LOCAL_RANKS).then_some(Spread {
            first,
            here,
            way,
            ends_all,
        })
    });
    first.ok_or_else(|| {
        format!(
            "rank {rank} of {size} is number {local} of {here} on its host. {CONSECUTIVE}, and at most {MAX_LOCAL_RANKS}"
        )
    })
}

/// What a launcher has to do.
pub(crate) const CONSECUTIVE: &str = "The ranks of a host must be consecutive (`mpiexec -ppn N`, `srun --distribution=block`, `mpirun --map-by slot`)";

/// Two launchers say different numbers, and it is unknown which of them started the other.
fn unclear(one: Sized, other: Sized) -> Found {
    Found::Refused(BootError::ForeignLauncher {
        variable: one.variable,
        launcher: one.launcher,
        size: Some(one.size),
        reason: format!(
            "{} says that {} started {}, and it is unknown which of the two started the other (if that one came first, remove its \
             variable from what the other starts: `env -u {}`)",
            other.variable, other.launcher, other.size, other.variable
        ),
    })
}

enum Launcher {
    OfSize(Sized),
    /// PMIx alone.
    OfUnknownSize,
    /// One of these.
    Unclear([Sized; 2]),
}

/// The launcher that started this process: the innermost where one started another.
///
/// Where that is unknown, no process of several may count as alone.
fn closest(around: &Surroundings<'_>) -> Result<Option<Launcher>, BootError> {
    let of_mpi = match around.sized(OPEN_MPI_SIZE, OPEN_MPI, open_mpi)? {
        None => around.sized(MVAPICH_SIZE, "MVAPICH's launcher", unknown)?,
        found => found,
    };
    let step = around.number(STEP)?;
    let special_step = step.is_some_and(|step| step >= SPECIAL_STEPS);
    let srun = match step.filter(|_| !special_step) {
        Some(_) => around.sized(STEP_SIZE, SRUN, slurm)?,
        None => None,
    };
    let is_hydra = around.number(HYDRA_LOCAL_SIZE)?.is_some();
    let pmi = match is_hydra {
        true => around.sized(PMI_SIZE, HYDRA, hydra)?,
        false => around.sized(PMI_SIZE, "a PMI launcher", unknown)?,
    };
    let has_socket = is_hydra && around.pmi_socket()?.is_some();
    let is_task = around.number(TASK_PROCESS)? == Some(around.pid.into());
    let other = match (srun, pmi) {
        (Some(srun), _) if is_task => return Ok(Some(Launcher::OfSize(srun))),
        // A socket is inherited, by no way from a launcher outside of another one.
        (_, Some(pmi)) if has_socket => return Ok(Some(Launcher::OfSize(pmi))),
        // srun speaks PMI, too.
        (Some(srun), Some(pmi)) if pmi.size > srun.size => Some(pmi),
        (srun, pmi) => srun.or(pmi),
    };
    Ok(match (of_mpi, other) {
        // Implementations of MPI may start their daemons by another launcher, one for each host.
        (Some(mpi), Some(other)) if other.size > 1 && mpi.size != other.size => {
            Some(match mpi.size {
                0 | 1 => Launcher::OfSize(other),
                _ => Launcher::Unclear([mpi, other]),
            })
        }
        (Some(found), _) | (None, Some(found)) => Some(Launcher::OfSize(found)),
        // The shell of an allocation has a rank of PMIx, and so has all that is started from it.
        (None, None) if special_step => None,
        (None, None) => around.text(PMIX_RANK)?.map(|_| Launcher::OfUnknownSize),
    })
}

fn unknown(_: &Surroundings<'_>, _: u64) -> Described {
    Err(Why::Apart(
        "its variables do not say which of them are on this host".into(),
    ))
}

fn open_mpi(around: &Surroundings<'_>, size: u64) -> Described {
    let rank = around.needed_number("OMPI_COMM_WORLD_RANK")?;
    let here = around.needed_number(OPEN_MPI_LOCAL_SIZE)?;
    let name = around.needed_text(PMIX_NAMESPACE)?;
    let server = around.pmix_server()?;
    let spread = match here == size {
        true => None,
        false if around.is_of_pmix(rank, None)? => {
            Some((around.needed_number(OPEN_MPI_LOCAL_RANK)?, here, Way::Pmix))
        }
        false => {
            return Err(Why::Apart(format!(
                "{here} of them are on this host, and hosts find each other by PMIx, whose {PMIX_RANK} is not this one's rank {rank}"
            )));
        }
    };
    Ok(Process {
        rank,
        identity: format!("open mpi {name} {server}"),
        spread,
    })
}

fn slurm(around: &Surroundings<'_>, size: u64) -> Described {
    let rank = around.needed_number("SLURM_PROCID")?;
    let hosts = around.needed_number("SLURM_STEP_NUM_NODES")?;
    let (job, step) = (
        around.needed_number("SLURM_JOB_ID")?,
        around.needed_number(STEP)?,
    );
    let cluster = around.text("SLURM_CLUSTER_NAME")?.unwrap_or_default();
    let identity = format!("slurm {cluster} {job}.{step}");
    if hosts != 1 {
        // A step within another one has inherited the variables of that.
        let namespace = format!("{NAMESPACES_OF_SLURM}.{job}.{step}");
        return slurm_over_hosts(around, (rank, size), hosts, (&identity, &namespace));
    }
    // On one host it is a number.
    match around.number("SLURM_STEP_TASKS_PER_NODE")? {
        Some(here) if here != size => Err(Why::Apart(format!(
            "{here} of them are on this host, which is said to be the only one"
        ))),
        _ => Ok(Process {
            rank,
            identity,
            spread: None,
        }),
    }
}

/// A task of a step on several hosts, which find each other if Slurm speaks PMI-1 or PMIx.
fn slurm_over_hosts(
    around: &Surroundings<'_>,
    (rank, size): (u64, u64),
    hosts: u64,
    (identity, namespace): (&str, &str),
) -> Described {
    let socket = around.pmi_socket()?;
    let says = (around.number("PMI_RANK")?, around.number(PMI_SIZE)?);
    let way = match socket {
        Some((socket, _)) if says == (Some(rank), Some(size)) => Way::Pmi(socket),
        _ if around.is_of_pmix(rank, Some(namespace))? => Way::Pmix,
        _ => {
            return Err(Why::Apart(format!(
                "they are on {hosts} hosts, and Slurm lets them find each other by PMI-1 or PMIx if it is started as \
                 `srun --mpi=pmi2` or `srun --mpi=pmix`"
            )));
        }
    };
    let node = around.needed_number("SLURM_NODEID")?;
    let local = around.needed_number("SLURM_LOCALID")?;
    let list = around.needed_text("SLURM_STEP_TASKS_PER_NODE")?;
    let here = tasks_of_node(&list, node).ok_or_else(|| bad("SLURM_STEP_TASKS_PER_NODE", &list))?;
    Ok(Process {
        rank,
        // Two nodes may be one host, as in tests.
        identity: format!("{identity} node {node}"),
        spread: Some((local, here, way)),
    })
}

/// The number of tasks of a node in a list as `2(x3),1`.
fn tasks_of_node(list: &str, node: u64) -> Option<u64> {
    let mut before = 0_u64;
    for part in list.split(',') {
        let (tasks, nodes) = match part.split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_u64),
        };
        before = before.checked_add(nodes)?;
        if node < before {
            return tasks.parse().ok();
        }
    }
    None
}

fn hydra(around: &Surroundings<'_>, size: u64) -> Described {
    let rank = around.needed_number("PMI_RANK")?;
    let here = around.needed_number(HYDRA_LOCAL_SIZE)?;
    let (socket, maker) = around.pmi_socket()?.ok_or(Why::NoSocket)?;
    let spread = match here == size {
        true => None,
        false => Some((
            around.needed_number(HYDRA_LOCAL_RANK)?,
            here,
            Way::Pmi(socket),
        )),
    };
    Ok(Process {
        rank,
        identity: format!("hydra {maker}"),
        spread,
    })
}

#[cfg(test)]
pub(crate) mod tests;
