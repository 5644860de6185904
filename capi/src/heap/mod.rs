//! Memory of the client's that is checked: `gasnett_debug_malloc` and its kin, which debug builds
//! have.
//!
//! A block lies between two guards, whose bytes depend on its address, and all that is known of it
//! is kept elsewhere: so whatever the client writes, and whatever it passes as a block, is told and
//! not believed. The functions are in every library; headers call them where `GASNET_DEBUGMALLOC`
//! is defined.

mod block;
mod calls;
mod fill;
mod options;
mod report;
mod table;

pub(crate) use calls::{LAYOUT, PROTOTYPES};
pub(crate) use report::report_at_end;
