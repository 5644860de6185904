//! Handles: the names of an interface's objects.

use core::fmt;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name {
            /// Place in the interface's table.
            pub(crate) index: u32,
            /// How often that place had been used before, so that handles of objects that are gone
            /// are known.
            pub(crate) generation: u32,
        }

        impl $name {
            /// As one number, to be kept where numbers are.
            #[must_use]
            pub fn to_bits(self) -> u64 {
                u64::from(self.generation) << 32 | u64::from(self.index)
            }

            /// From [`to_bits`](Self::to_bits).
            ///
            /// A number that was none gives a handle that every call refuses.
            #[must_use]
            pub fn from_bits(bits: u64) -> Self {
                Self {
                    index: bits as u32,
                    generation: (bits >> 32) as u32,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, " {}.{}"), self.index, self.generation)
            }
        }
    };
}

handle!(
    /// An event queue.
    Queue,
    "queue"
);
handle!(
    /// A counter of events.
    Counter,
    "counter"
);
handle!(
    /// An entry of a match list.
    EntryHandle,
    "entry"
);
handle!(
    /// A bound descriptor.
    DescriptorHandle,
    "descriptor"
);

/// Place in a portal table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortalIndex(pub u32);

impl fmt::Display for PortalIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "portal {}", self.0)
    }
}
