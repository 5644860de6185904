//! Segments: the memory of a job that every rank may read and write.
//!
//! # How memory is laid out
//!
//! The segments of all ranks of one host lie on one sparse, nameless file, the [`SegmentFile`].
//! Each rank has a span of it, as long as its segment may ever become; the part that it has
//! *attached* is the first of the span.
//!
//! ```text
//!  file     |<-- stride -->|<-- stride -->|<-- stride -->|
//!           |rank 0 ####...|rank 1 ##.....|rank 2 #######|      # attached   . may still grow
//!
//!  process  |reserved as one range of addresses, in the same order            |
//!  (each)   |####          |##            |       mapped at first use         |
//! ```
//!
//! Every process reserves addresses for the whole file and maps the attached part of a neighbor
//! when it first uses it. So
//!
//! * from (rank, offset) to an address is an addition, and back is a division ([`Directory`]);
//! * a segment grows in place, and no address ever changes ([`OwnSegment::grow`]);
//! * memory is taken only by pages that are touched, and nothing is left behind, whichever way a
//!   process ends.
//!
//! # In which order things are called
//!
//! 1. [`HostMemory::probe`] learns what the host has; from that and `GASNET_MAX_SEGSIZE` follows
//!    the longest segment, which is the stride.
//! 2. The first process of the job on a host calls [`SegmentFile::create`]; each rank receives the
//!    descriptor and calls [`SegmentFile::from_fd`] and [`Directory::new`].
//! 3. The ranks of the host exchange how much each will attach and call [`admit`], so that a host
//!    that is too small says so before anything runs out of memory.
//! 4. [`OwnSegment::attach`]; publish the length; barrier.
//! 5. [`Directory::resolve`] on the fast path, [`Directory::ensure`] when it answers `None`.
//!
//! Memory outside of segments is registered when it is used ([`registration`]), or copied by the
//! kernel ([`cross_memory`]).
//!
//! # Memory that peers write
//!
//! It is never a `&T` or a `&[u8]`: see [`bulk`]. Code that takes a raw pointer from this crate
//! accesses it through [`bulk::copy`], [`bulk::fill`] and atomics, never by plain loads and stores,
//! as long as a view ([`SharedBytes`]) of the same memory may be in use.
//!
//! There is no process-wide state; any number of directories can live in one process.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("argonet needs 64-bit addresses: segments of all ranks are reserved as one range");

mod admission;
pub mod bulk;
pub mod cross_memory;
mod directory;
mod error;
mod file;
mod pages;
pub mod registration;
mod reservation;
mod segment;

pub use admission::{HostMemory, admit};
pub use bulk::{OutOfRange, SharedBytes, SharedBytesMut};
pub use directory::{Directory, Resolver};
pub use error::SegmentError;
pub use file::SegmentFile;
pub use pages::PageKind;
pub use segment::{NeighborSegment, OwnSegment};
