//! PMIx, by which processes of Open MPI's mpirun, of PRRTE, and of Slurm with `--mpi=pmix` exchange
//! values (docs/adr/0055).
//!
//! Its protocol is the library's own affair: libpmix is loaded at run time, with the few structures
//! of `abi`. It keeps threads, so a rank never loads it. A process that the rank forks for the
//! start of the job does:
//!
//! ```text
//! rank (client)                          its child argonet-pmix (session)
//!   | forks                                | loads libpmix, PMIx_Init
//!   | <------------------- connected ----- | checks rank and number of ranks
//!   | ----- put host-0, value -----------> | PMIx_Put, PMIx_Commit
//!   | ----- fence -----------------------> | PMIx_Fence, in a thread
//!   | ----- get root of rank 0 ----------> | PMIx_Get
//!   | ----- finish ----------------------> | PMIx_Finalize, ends
//! ```
//!
//! The rank stays without threads, so that it can fork the host's agent, and without the library's
//! memory and handlers; it ends every wait in time, whatever the library does, and kills the
//! child then. The child is killed when the rank ends.

mod abi;
mod client;
mod library;
mod message;
mod session;

pub(crate) use client::Pmix;
pub(crate) use library::Library;
