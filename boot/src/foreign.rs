//! Launchers other than this library's, known by variables in the environment of the processes that
//! they start.
//!
//! Their processes are not ranks of one job: each would be rank 0 of 1. So a program that one of
//! them has started several times is refused. A program starts if only an allocation is in the
//! environment, as in a batch script or in a shell of `salloc`.

use std::ffi::OsString;

use crate::error::BootError;

/// Variables in which implementations of MPI say how many processes their launchers started.
///
/// Those launchers may start their daemons by another one, so these count before what others have
/// left.
const OF_MPI: [(&str, &str); 2] = [
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
    ("MV2_COMM_WORLD_SIZE", "MVAPICH's launcher"),
];

/// The same for all launchers that speak PMI.
const PMI_SIZE: &str = "PMI_SIZE";

const STEP_SIZE: &str = "SLURM_STEP_NUM_TASKS";
const STEP: &str = "SLURM_STEP_ID";
const SRUN: &str = "Slurm's srun";

/// Numbers of Slurm's steps from here on are of the batch script, of a shell in an allocation, and
/// others that run no tasks of a program.
const SPECIAL_STEPS: u64 = 0xffff_fff0;

/// Says which process of a job it is where the launcher speaks PMIx; no variable of PMIx says how
/// many there are.
const PMIX_RANK: &str = "PMIX_RANK";

/// If another launcher has started several processes, the error that each of them would be alone.
pub(crate) fn foreign_launcher() -> Option<BootError> {
    judge(|name| std::env::var_os(name))
}

/// The warning of what starts ranks if another launcher has started several processes, as each of
/// those may be `starter`.
pub(crate) fn warning(starter: &str) -> Option<String> {
    let BootError::ForeignLauncher {
        variable,
        launcher,
        size,
    } = foreign_launcher()?
    else {
        return None;
    };
    let size = size.map_or("several".into(), |size| size.to_string());
    Some(format!(
        "warning: {variable} says that {launcher} started {size} processes; if each of them is \
         {starter}, there are as many jobs"
    ))
}

fn judge(variable: impl Fn(&str) -> Option<OsString>) -> Option<BootError> {
    let number = |name: &str| variable(name)?.to_str()?.trim().parse::<u64>().ok();
    let special_step = number(STEP).is_some_and(|step| step >= SPECIAL_STEPS);
    let sized = |name, launcher| Some((name, launcher, number(name)?));
    let of_mpi = (OF_MPI.into_iter()).find_map(|(name, launcher)| sized(name, launcher));
    let srun = number(STEP)
        .filter(|_| !special_step)
        .and_then(|_| sized(STEP_SIZE, SRUN));
    let pmi = sized(PMI_SIZE, "a PMI launcher");
    // srun speaks PMI, too. If they differ, one is left from the launcher that started the other,
    // and it is unknown which one: no process of several may count as alone.
    let larger = match (srun, pmi) {
        (Some(srun), Some(pmi)) if pmi.2 > srun.2 => Some(pmi),
        (srun, pmi) => srun.or(pmi),
    };
    match of_mpi.or(larger) {
        Some((_, _, 0 | 1)) => None,
        Some((variable, launcher, size)) => Some(BootError::ForeignLauncher {
            variable,
            launcher,
            size: Some(size),
        }),
        // The shell of an allocation has a rank of PMIx, and so has all that is started from it.
        None if special_step => None,
        None => variable(PMIX_RANK).map(|_| BootError::ForeignLauncher {
            variable: PMIX_RANK,
            launcher: "a PMIx launcher",
            size: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variable that is named and the number of processes, if the environment is one of several
    /// processes.
    fn found(environment: &[(&str, &str)]) -> Option<(&'static str, Option<u64>)> {
        let error = judge(|name| {
            let found = environment.iter().find(|(held, _)| *held == name);
            found.map(|(_, value)| OsString::from(value))
        })?;
        match error {
            BootError::ForeignLauncher { variable, size, .. } => Some((variable, size)),
            error => panic!("{error}"),
        }
    }

    const ALLOCATION: [(&str, &str); 4] = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_PROCID", "0"),
        ("SLURM_LOCALID", "0"),
    ];

    #[test]
    fn a_step_of_several_tasks_is_refused_and_an_allocation_is_not() {
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
        assert_eq!(with(&[("MV2_COMM_WORLD_SIZE", "1")]), None);
        // mpirun starts its daemons by srun.
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        let mpi = [("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "0")];
        assert_eq!(found(&mpi), Some(("OMPI_COMM_WORLD_SIZE", Some(3))));
        assert_eq!(found(&[("PMIX_RANK", "0")]), Some(("PMIX_RANK", None)));
        assert_eq!(found(&[("PMI_SIZE", "1")]), None);
        assert_eq!(found(&[("PMI_SIZE", "many")]), None);
    }
}
