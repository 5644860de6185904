//! Names that every other crate of argonet uses: ranks and indices ([`ids`]), sizes as users write
//! them ([`size`]), processor primitives with one file per architecture ([`cpu`]), the numbers of
//! GASNet's interface ([`gasnet`]), values that belong to operations under way ([`kept`]), random
//! numbers ([`random`]), options of sockets ([`socket_option`]), the library's own threads
//! ([`threads`]), libraries that are loaded when they are wanted
//! ([`shared_library`]) and the atomics that loom can replace ([`sync`]).
#![deny(unsafe_code)]

pub mod cpu;
pub mod gasnet;
pub mod ids;
pub mod kept;
pub mod random;
pub mod shared_library;
pub mod size;
pub mod socket_option;
pub mod sync;
pub mod threads;

pub use ids::{HandlerIndex, JobRank, Rank, SegmentOffset};
