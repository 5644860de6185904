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

impl ThreadMode {
    /// Whether a lock of the process is one.
    ///
    /// In SEQ it is not, and other threads stay out, also one that ends the process. In PARSYNC the
    /// conduit cannot distinguish a thread from the one that is inside, so it locks.
    pub(crate) const fn locks(self) -> bool {
        !matches!(self, Self::Seq)
    }
}
