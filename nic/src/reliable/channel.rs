//! The two channels between two ranks.

/// One of the two sequences of records between two ranks.
///
/// Records of a channel arrive in order, those of the two in any: each has numbers, windows and a
/// judgment of losses of its own.
// spec U2: a command channel with priority, and a data channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// For what is short or waited for: it is sent before data.
    Command = 0,
    /// For all else.
    Data = 1,
}

impl Channel {
    /// Both, by the order in which they are sent.
    pub const BOTH: [Self; 2] = [Self::Command, Self::Data];

    /// The other one.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Command => Self::Data,
            Self::Data => Self::Command,
        }
    }

    /// Its place in a table of both.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
