//! How many threads call a conduit.

/// How many threads of the process may call the library (GASNet's SEQ, PARSYNC, PAR).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadMode {
    /// One thread only.
    Seq,
    /// Several, never at the same time.
    Parsync,
    /// Several at once.
    Par,
}
