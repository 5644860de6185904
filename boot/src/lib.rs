//! Starts the ranks of a job and lets them find each other.
//!
//! A rank calls [`attach()`] and gets a [`LocalJob`]: its rank, the number of ranks, three shared
//! files, a key store and a fence ([`Bootstrap`]). Jobs start in one of four ways, and the program
//! need not know which:
//!
//! * `argonet run -n N prog` ([`launch()`]) starts N processes of `prog`;
//! * `GASNET_PSHM_NODES=N ./prog`: the process becomes rank 0 and forks the others inside
//!   [`attach()`];
//! * `srun ./prog`, `mpirun -n N ./prog`: another launcher starts N processes on this host, which
//!   find each other (module `rendezvous`);
//! * `./prog`: a job of one rank.
//!
//! # Shared memory of a host
//!
//! Three sparse memfds, made before any rank runs and inherited or handed over by descriptor, never
//! by name: *control* (the job page, one page a rank, the key store: [`page`]), *rings* (raw, sized
//! by the shared-memory conduit) and *segments* (raw, sized by the segment crate). Nothing appears
//! in `/dev/shm`, so nothing can be left there.
//!
//! # End of a job
//!
//! A rank calls [`Bootstrap::finalized`] when it no longer needs the others; how it ends after that
//! is its own affair, though a non-zero exit code still is the job's. A rank that ends *before*
//! that ends the job. Three nets see to it, each for the case that the one before is gone:
//!
//! 1. the launcher (or rank 0 of a job that started itself) watches its children, as another
//!    launcher may do;
//! 2. the [`guardian`], a process in a session of its own, watches launcher and ranks through
//!    pidfds and kills the process groups of all ranks when the launcher or a rank has gone, so
//!    that the ranks' own children end too;
//! 3. each rank asks the kernel for a SIGKILL when its parent dies.
//!
//! The *exit word* of the job page records once which rank ended the job, and why; the process that
//! reports the end of the job reads it there, so that the ranks that were ended because of it are
//! not blamed.
//!
//! A rank that *asks* for the end ([`exit()`], return from main, a signal) leaves the others
//! `GASNET_EXITTIMEOUT`: they learn of it, end the next time they wait, and are killed when the
//! time is over.
//!
//! # Unsafe code
//!
//! Only in [`page`] (references into the mapped control file) and in the private modules `sys`
//! (system calls that rustix does not wrap, fork, and what may run after it), `sigact` (signal
//! handlers and the timer), `backtrace` (a copy of a process in any state) and `pmix` (calls of
//! libpmix, in a process of its own).
#![deny(unsafe_code)]

mod agreement;
mod ancestry;
mod attach;
mod backtrace;
pub mod binding;
mod board;
mod bootstrap;
mod clock;
mod confirming;
mod crash;
mod detached;
mod end_code;
mod error;
mod exit;
mod exit_mark;
mod exit_options;
mod exit_word;
mod fence;
mod file_limit;
mod files;
mod foreign;
mod grace;
pub mod guardian;
pub mod hosts;
mod judgment;
mod launch;
mod line;
mod local;
mod losses;
#[cfg(test)]
mod numbers;
mod outcome;
mod output;
pub mod page;
mod part;
mod pmi;
mod pmix;
mod process;
mod processor_time;
mod rank_stderr;
mod ranks;
mod rendezvous;
mod replaced;
mod secret;
mod selflaunch;
mod selfspawn;
mod sigact;
mod signals;
mod sink;
mod spawn;
mod store;
mod streams;
mod sys;
mod tally;
mod test_job;
mod threads;

pub use argonet_settings::HugePages;
#[doc(hidden)]
pub use attach::check_job_description;
pub use attach::{AttachOptions, attach, launcher_here};
pub use backtrace::{print_backtrace, print_by as print_backtrace_by};
pub use board::{Board, WaitFor, Waiting};
pub use bootstrap::{Bootstrap, Key, MAX_VALUE_BYTES};
pub use crash::{abort_reported, freeze_while, shows_backtraces};
pub use error::{BootError, Missing};
pub use exit_mark::ExitMark;
pub use file_limit::files_of_rank;
pub use files::SharedFiles;
pub use hosts::{Answers, HostOptions, Look, Post, VisitOptions, Visited, Visits, agent, visit};
pub use launch::{LaunchOptions, NO_CONDUIT, TIMEOUT_CODE, launch};
pub use local::LocalJob;
pub use losses::Losses;
pub use page::{
    ExitKind, ExitWord, JobPage, MAX_JOB_RANKS, MAX_LOCAL_RANKS, RankPage, RankState, control_bytes,
};
#[doc(hidden)]
pub use pmi::check_pmi_bytes;
pub use process::{
    ReportExit, before_the_end, exit, exit_without_handlers, report_as_gasnet, report_exits_by,
};
#[doc(hidden)]
pub use rendezvous::check_rendezvous_bytes;
pub use secret::{SECRET_BYTES, Secret};
pub use selflaunch::launch_self;
pub use test_job::{RankOfTest, TestJob, begin_process, rank_of_test};
