//! Memory of the client's that is checked: `gasnett_debug_malloc` and its kin, which debug builds
//! have.
//!
//! A block lies between two guards, whose bytes depend on its address, and its record is kept
//! elsewhere: so the library reports a client's write beside a block, and an address that is no
//! block, and believes neither. The functions are in every library; headers call them where
//! `GASNET_DEBUGMALLOC` is defined.

mod block;
mod calls;
mod fill;
mod options;
mod report;
mod table;

pub(crate) use calls::{LAYOUT, PROTOTYPES};
pub(crate) use report::report_at_end;
