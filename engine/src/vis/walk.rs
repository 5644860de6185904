//! One pass over the bytes of a side, in their order, for any cut into runs.

use super::grid::Hull;
use super::lattice::{Lattice, LatticeWalk};
use super::shape::{Piece, Pieces};

/// The runs of a side of a transfer, in any of its forms.
#[derive(Clone, Debug)]
pub(super) enum Runs<'a> {
    Vector(&'a [Piece]),
    Indexed { addresses: &'a [usize], len: usize },
    Lattice(Lattice),
}

impl<'a> From<Pieces<'a>> for Runs<'a> {
    fn from(pieces: Pieces<'a>) -> Self {
        match pieces {
            Pieces::Vector(list) => Self::Vector(list),
            Pieces::Indexed { addresses, len } => Self::Indexed { addresses, len },
        }
    }
}

/// A byte of a side: the number of its run, and where in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) within: usize,
}

impl Runs<'_> {
    /// Its bytes from some place on.
    pub(super) fn walk(&self, from: Place) -> Walk<'_> {
        let Place { index, within } = from;
        match self {
            Self::Vector(list) => Walk::Vector {
                list,
                index,
                within,
            },
            Self::Indexed { addresses, len } => Walk::Indexed {
                addresses,
                len: *len,
                index,
                within,
            },
            Self::Lattice(lattice) => Walk::Lattice(lattice.walk(index, within)),
        }
    }

    /// All bytes of it.
    pub(super) fn all(&self) -> Walk<'_> {
        self.walk(Place::default())
    }

    /// How many there are; `None` if more than a process can have.
    pub(super) fn bytes(&self) -> Option<usize> {
        match self {
            Self::Vector(list) => {
                let mut lens = list.iter().map(|piece| piece.len);
                lens.try_fold(0usize, usize::checked_add)
            }
            Self::Indexed { addresses, len } => addresses.len().checked_mul(*len),
            Self::Lattice(lattice) => lattice.run.checked_mul(lattice.runs()?),
        }
    }

    /// All addresses between the lowest and the highest of its bytes; or the first entry that no
    /// memory can have.
    pub(super) fn hull(&self) -> Result<Option<Hull>, usize> {
        let join = |hull: Option<Hull>, new: Hull| Some(hull.map_or(new, |hull| hull.with(new)));
        match self {
            Self::Vector(list) => {
                let mut hull = None;
                for (entry, piece) in list.iter().enumerate().filter(|(_, p)| p.len > 0) {
                    hull = join(hull, Hull::of(piece.address, piece.len).ok_or(entry)?);
                }
                Ok(hull)
            }
            Self::Indexed { len: 0, .. } => Ok(None),
            Self::Indexed { addresses, len } => {
                let Some(&last) = addresses.iter().max() else {
                    return Ok(None);
                };
                let entry = || addresses.iter().position(|at| *at == last).unwrap_or(0);
                let last = Hull::of(last, *len).ok_or_else(entry)?;
                let first = addresses.iter().min().map_or(last.first, |first| *first);
                Ok(Some(Hull { first, ..last }))
            }
            Self::Lattice(lattice) => lattice.hull().map(Some).ok_or(0),
        }
    }
}

/// How far a pass over a side has come.
pub(super) enum Walk<'a> {
    Vector {
        list: &'a [Piece],
        index: usize,
        within: usize,
    },
    Indexed {
        addresses: &'a [usize],
        len: usize,
        index: usize,
        within: usize,
    },
    Lattice(LatticeWalk<'a>),
    /// Bytes that all lie together.
    Line {
        address: usize,
        len: usize,
    },
}

impl Walk<'_> {
    /// The address of the next byte, and how many lie together from there on; at least one.
    ///
    /// `None` at the end.
    #[inline]
    pub(super) fn now(&mut self) -> Option<(usize, usize)> {
        match self {
            Self::Vector {
                list,
                index,
                within,
            } => loop {
                let piece = list.get(*index)?;
                if *within < piece.len {
                    return Some((piece.address + *within, piece.len - *within));
                }
                *index += 1;
                *within = 0;
            },
            Self::Indexed {
                addresses,
                len,
                index,
                within,
            } => {
                let address = addresses.get(*index)?;
                (*len > 0).then(|| (address + *within, *len - *within))
            }
            Self::Lattice(walk) => walk.now(),
            Self::Line { address, len } => (*len > 0).then_some((*address, *len)),
        }
    }

    /// Goes on by so many bytes, at most as many as lie together.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        match self {
            Self::Vector { within, .. } => *within += bytes,
            Self::Indexed {
                len, index, within, ..
            } => {
                *within += bytes;
                if *within == *len {
                    *within = 0;
                    *index += 1;
                }
            }
            Self::Lattice(walk) => walk.skip(bytes),
            Self::Line { address, len } => {
                *address += bytes;
                *len -= bytes;
            }
        }
    }

    /// Goes on by so many bytes, or to the end.
    pub(super) fn skip_all(&mut self, mut bytes: usize) {
        while bytes > 0
            && let Some((_, together)) = self.now()
        {
            let step = together.min(bytes);
            self.skip(step);
            bytes -= step;
        }
    }

    /// Where it is.
    pub(super) fn place(&self) -> Place {
        let (index, within) = match self {
            Self::Vector { index, within, .. } | Self::Indexed { index, within, .. } => {
                (*index, *within)
            }
            Self::Lattice(walk) => (walk.index, walk.within),
            Self::Line { .. } => (0, 0),
        };
        Place { index, within }
    }
}

/// Calls `f` with the addresses and the length of each part that lies together on both sides, until
/// one side ends or `most` bytes have been dealt with; how many have.
#[inline(always)]
pub(super) fn together<E>(
    to: &mut Walk<'_>,
    from: &mut Walk<'_>,
    most: usize,
    mut f: impl FnMut(usize, usize, usize) -> Result<(), E>,
) -> Result<usize, E> {
    let mut done = 0;
    while done < most
        && let (Some((to_at, to_len)), Some((from_at, from_len))) = (to.now(), from.now())
    {
        let len = to_len.min(from_len).min(most - done);
        f(to_at, from_at, len)?;
        to.skip(len);
        from.skip(len);
        done += len;
    }
    Ok(done)
}

/// How many parts lie together on both sides; `None` if more than `most`.
pub(super) fn parts(mut to: Walk<'_>, mut from: Walk<'_>, most: usize) -> Option<usize> {
    let mut count = 0;
    let counted = together(&mut to, &mut from, usize::MAX, |_, _, _| {
        count += 1;
        if count > most { Err(()) } else { Ok(()) }
    });
    counted.ok().map(|_| count)
}
