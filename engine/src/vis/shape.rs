//! The memory of a transfer, as its caller describes it, and the errors of such descriptions.

use argonet_base::JobRank;
use core::fmt;

/// A piece of memory of some process, as C lists it too.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where it begins in that process; an address whose provenance is exposed.
    pub address: usize,
    /// Bytes; 0 is allowed, wherever it is.
    pub len: usize,
}

/// One side of a transfer: pieces, in the order of the bytes that they hold.
#[derive(Clone, Copy, Debug)]
pub enum Pieces<'a> {
    /// Each has a length of its own.
    Vector(&'a [Piece]),
    /// All have one length.
    Indexed {
        /// Where they begin.
        addresses: &'a [usize],
        /// Bytes of each.
        len: usize,
    },
}

/// Elements in any number of dimensions: the one with the indices `i` lies on either side at the
/// address of the first plus the sum of `i[d] * strides[d]` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// Address of the first element at the destination, which need not be the lowest.
    pub to: usize,
    /// Bytes from an element to the next of each dimension there; of any sign.
    pub to_strides: &'a [isize],
    /// Address of the first element at the source.
    pub from: usize,
    /// Its strides.
    pub from_strides: &'a [isize],
    /// Bytes of an element.
    pub element: usize,
    /// Elements in each dimension.
    ///
    /// With no dimension there is one element.
    pub counts: &'a [usize],
}

/// The memory on both sides of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// The bytes of lists of pieces, which may be cut in different ways.
    Pieces {
        /// The destination's.
        to: Pieces<'a>,
        /// The source's.
        from: Pieces<'a>,
    },
    /// Elements at regular distances.
    Strided(Strided<'a>),
}

/// Which part of one side is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// An entry of its list, from 0.
    Entry(usize),
    /// The first element.
    Element,
    /// The elements of a dimension, from 0, and those before it.
    Dimension {
        /// Its number.
        number: usize,
        /// Elements in it.
        count: usize,
        /// Its stride in bytes.
        stride: isize,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(entry) => write!(f, "entry {entry} of its list"),
            Self::Element => f.write_str("its first element"),
            Self::Dimension {
                number,
                count,
                stride,
            } => write!(
                f,
                "dimension {number} ({count} elements, stride {stride} bytes)"
            ),
        }
    }
}

/// The error of a shape.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisError {
    /// Source and destination have different lengths.
    #[error(
        "rank {rank}: the destination's pieces have {to} bytes, the source's {from}; both sides of a transfer must have as many"
    )]
    TotalsDiffer {
        /// Where it was called.
        rank: JobRank,
        /// Bytes of the destination.
        to: usize,
        /// Bytes of the source.
        from: usize,
    },
    /// Not so much memory exists.
    #[error(
        "rank {rank}: the {side} of a transfer goes beyond the end of all addresses with {part}"
    )]
    TooLarge {
        /// Where it was called.
        rank: JobRank,
        /// Destination or source.
        side: &'static str,
        /// The part of the shape that does.
        part: Part,
    },
    /// It is not all in the segment of the other rank.
    #[error(
        "rank {from}: the {side} of a transfer leaves the segment of rank {to}, which has {segment} bytes from {base:#x}, with {part}: {len} bytes at {address:#x}"
    )]
    OutsideSegment {
        /// Destination or source.
        side: &'static str,
        /// The part of the shape that does.
        part: Part,
        /// Where the bytes begin, in that rank's process.
        address: usize,
        /// How many they are.
        len: usize,
        /// Where the segment begins there.
        base: u64,
        /// Bytes of it.
        segment: u64,
        /// The rank that called.
        from: JobRank,
        /// The rank of the segment.
        to: JobRank,
    },
}
