//! Parts that conduits over a wire have in common.

mod memory;

pub use memory::{UserBytes, UserPlace};
