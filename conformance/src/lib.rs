//! Duties of every conduit, as test cases that are generic over the
//! [`Conduit`](argonet_conduit::Conduit) trait.
//!
//! A conduit joins by a [`Rig`]: a way to make a job of connected endpoints in one process. Its
//! test program hands the rig to [`trials`] and runs them:
//!
//! ```text
//! let rigs = [...];                                  // one for each way to set the conduit up
//! let trials = rigs.into_iter().flat_map(trials).collect();
//! libtest_mimic::run(&Arguments::from_args(), trials).exit()
//! ```
//!
//! One thread drives all endpoints, by polls; cases of waiting and of threads use more. Nothing
//! sleeps to wait: a case that waits for something polls until it is there, and fails when nothing
//! has moved for as many rounds as the rig says that a message may take. Should a call hang, a
//! watchdog prints what each endpoint has seen and ends the process. `docs/conduits.md` says what
//! each case checks, and how to write a rig.

mod bench;
mod cases;
mod effort;
mod log;
mod mail;
mod pattern;
mod rig;
mod watchdog;

pub use cases::trials;
pub use effort::seeds_asked;
pub use rig::{Buffers, Job, Promises, Rig, Setup};
