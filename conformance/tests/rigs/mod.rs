//! How each conduit is set up for the suite.

pub(crate) mod smp;
