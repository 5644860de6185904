//! Newtypes, so that two integers cannot be swapped in a call.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, " {}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// Position of a member in a team, 0-based.
    ///
    /// In the world team it equals the [`JobRank`].
    Rank(u32), "rank"
);
id!(
    /// Position of a process in the job, 0-based.
    JobRank(u32), "job rank"
);
id!(
    /// Index into the active-message handler table of 256 entries.
    HandlerIndex(u8), "handler"
);
id!(
    /// Byte offset from the start of a rank's segment.
    SegmentOffset(u64), "segment offset"
);

#[cfg(feature = "serde")]
impl serde_core::Serialize for Rank {
    fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde_core::Deserialize<'de> for Rank {
    fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Self)
    }
}

impl Rank {
    /// The rank as an index into a per-rank array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl JobRank {
    /// The job rank as an index into a per-rank array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
