//! Launchers other than this library's, by what they leave in the environment of the processes that
//! they start.
//!
//! Their processes are not ranks of one job: each would be rank 0 of 1. So a program that one of
//! them has started several times is refused. Where only an allocation is in the environment, as in
//! a batch script or in a shell of `salloc`, a program starts.

use std::ffi::OsString;

use crate::error::BootError;

/// Variables in which launchers say how many processes they started, the most specific first: one
/// launcher may start another.
const SIZES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
    ("MV2_COMM_WORLD_SIZE", "MVAPICH's launcher"),
    ("PMI_SIZE", "a PMI launcher"),
];

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

fn judge(variable: impl Fn(&str) -> Option<OsString>) -> Option<BootError> {
    let number = |name: &str| variable(name)?.to_str()?.trim().parse::<u64>().ok();
    let step = number(STEP).filter(|&step| step < SPECIAL_STEPS);
    let srun = step
        .and(number(STEP_SIZE))
        .map(|size| (STEP_SIZE, SRUN, size));
    let other = SIZES
        .into_iter()
        .find_map(|(name, launcher)| Some((name, launcher, number(name)?)));
    let found = match (other, srun) {
        // srun speaks PMI, too.
        (Some((SIZES_OF_PMI, _, pmi)), Some(srun)) if pmi == srun.2 => Some(srun),
        (other, srun) => other.or(srun),
    };
    match found {
        Some((_, _, 0 | 1)) => None,
        Some((variable, launcher, size)) => Some(BootError::ForeignLauncher {
            variable,
            launcher,
            size: Some(size),
        }),
        None => variable(PMIX_RANK).map(|_| BootError::ForeignLauncher {
            variable: PMIX_RANK,
            launcher: "a PMIx launcher",
            size: None,
        }),
    }
}

const SIZES_OF_PMI: &str = SIZES[2].0;

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
    fn a_step_of_several_tasks_is_refused_and_what_has_no_such_step_is_not() {
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
    }

    #[test]
    fn the_launcher_closest_to_the_program_counts() {
        let srun = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")];
        let with = |more: &[(&'static str, &'static str)]| found(&[&srun, more].concat());
        assert_eq!(with(&[("PMI_SIZE", "4")]), Some((STEP_SIZE, Some(4))));
        assert_eq!(with(&[("PMIX_RANK", "2")]), Some((STEP_SIZE, Some(4))));
        assert_eq!(with(&[("PMI_SIZE", "2")]), Some(("PMI_SIZE", Some(2))));
        // mpirun starts its daemons by srun.
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        let mpi = [("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "0")];
        assert_eq!(found(&mpi), Some(("OMPI_COMM_WORLD_SIZE", Some(3))));
        assert_eq!(found(&[("PMIX_RANK", "0")]), Some(("PMIX_RANK", None)));
        assert_eq!(found(&[("PMI_SIZE", "1")]), None);
        assert_eq!(found(&[("PMI_SIZE", "many")]), None);
    }
}
