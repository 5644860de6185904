//! Jobs over several hosts: one agent a host, in a tree below the launcher.
//!
//! ```text
//!              argonet run              launcher: host list, key, output, exit code
//!              /         \              ssh, a command template, or plain processes (`start`)
//!         agent a        agent c        `argonet agent`: ranks of its host, its subtree's part of fences
//!         /  \  \          |   \
//!       ranks  agent b   ranks  agent d
//! ```
//!
//! A control connection is the standard input and output of the process that its upper end started:
//! no port, no address, no firewall, and the remote shell has authenticated and encrypts it
//! (docs/adr/0021). On it go frames (`frame`) that hold messages (`message`); `edge` is one end of
//! it, with heartbeats and windows, without I/O or clock. Bytes from a connection are checked
//! before they are used: the other end may run another version, or a shell's start-up files may
//! write there.
//!
//! On its host an agent is what the launcher is in a job on one host: it makes the control memory
//! (for all ranks of the job, so that looking up a value never waits), starts guardian and ranks,
//! and watches them. Fences and the key store go through the tree (`exchange`): a host's ranks
//! enter a fence in shared memory, the last one wakes its agent, agents merge the values of their
//! subtrees on the way up, and hand each host the values of the others on the way down.
//!
//! Where another launcher has started the ranks, each host's first rank forks its agent, and rank 0
//! the root (`serve`); agents connect over TCP (`door`), and each frame has a code (`seal`).
//!
//! Agents can also be sent to look at their hosts (`visit` above, `look` below): there are no ranks
//! then, but questions and answers, whose meaning is the affair of the program at both ends.
//!
//! The exit word (`crate::page::ExitWord`) goes the same way: the launcher keeps the first one that
//! arrives and sends it to all hosts. An agent whose upper connection ends, or is silent for
//! `ARGONET_AGENT_TIMEOUT`, kills its ranks; one that is killed leaves that to its guardian; a
//! launcher or agent that loses a lower connection ends the job.
//!
//! A job that goes on without ranks that die (`survival`, `accusations`) also goes on without a
//! host whose connection it loses, and without those below that.

mod accusations;
mod agent;
mod child;
mod children;
mod choose;
mod describe;
mod description;
mod door;
mod edge;
mod exchange;
mod frame;
mod hello;
mod here;
mod list;
mod look;
mod message;
mod node;
mod pipe;
mod root;
mod seal;
pub(crate) mod serve;
mod start;
mod survival;
mod tree;
mod values;
mod visit;
mod words;

pub use agent::agent;
pub use choose::HostOptions;
pub(crate) use choose::choose;
pub use list::HostListError;
pub use look::{Answers, Look, Post};
pub(crate) use root::launch;
pub use visit::{VisitOptions, Visited, Visits, visit};

#[doc(hidden)]
pub use frame::check_control_bytes;
