//! PMI-1, the protocol of MPICH's hydra, and of Slurm with `--mpi=pmi2`, by which processes of a
//! launcher exchange values.
//!
//! It goes over the socket in `PMI_FD`: a command is a line, and so is its answer.
//!
//! ```text
//! cmd=init pmi_version=1 pmi_subversion=1      cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//! cmd=get_maxes                                cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//! cmd=get_my_kvsname                           cmd=my_kvsname kvsname=kvs_1
//! cmd=put kvsname=kvs_1 key=k value=v          cmd=put_result rc=0 msg=success
//! cmd=barrier_in                               cmd=barrier_out
//! cmd=get kvsname=kvs_1 key=k                  cmd=get_result rc=0 msg=success value=v
//! cmd=finalize                                 cmd=finalize_ack
//! cmd=abort exitcode=1                         (none)
//! ```
//!
//! `wire` makes and reads the lines, without I/O; `pieces` makes values of any bytes fit. The
//! launcher may give what is said here to any process of the job, and sends it over the network as
//! it is (docs/security.md).

mod client;
mod pieces;
mod wire;

pub(crate) use client::Pmi;
pub use wire::check as check_pmi_bytes;
