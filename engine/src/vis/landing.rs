//! Where the bytes of a get go that comes in several messages.

use super::lattice::Lattice;
use super::shape::Piece;
use super::walk::{Place, Runs, Walk};
use parking_lot::Mutex;

/// Runs of this process, as an operation keeps them.
///
/// Lists stay with their owner.
#[derive(Debug)]
enum Kept {
    Vector(*const Piece, usize),
    Indexed(*const usize, usize, usize),
    Lattice(Lattice),
}

/// The bytes of one message.
#[derive(Clone, Copy, Debug)]
struct Expected {
    place: Place,
    bytes: usize,
    has_come: bool,
}

/// The destination of a get, and the part of it that each message brings.
#[derive(Debug)]
pub(in super::super) struct Scatter {
    kept: Kept,
    expected: Mutex<Vec<Expected>>,
}

// SAFETY: the lists are only read, and by the constructor's contract their owner does not change
// them.
unsafe impl Send for Scatter {}
// SAFETY: as for Send; the part that changes is behind a lock.
unsafe impl Sync for Scatter {}

impl PartialEq for Scatter {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Scatter {}

impl Scatter {
    /// # Safety
    /// Lists are there, and no code changes them, as long as [`with_walk`](Self::with_walk) may be
    /// called.
    pub(super) unsafe fn new(runs: &Runs<'_>) -> Self {
        let kept = match runs {
            Runs::Vector(list) => Kept::Vector(list.as_ptr(), list.len()),
            Runs::Indexed { addresses, len } => {
                Kept::Indexed(addresses.as_ptr(), addresses.len(), *len)
            }
            Runs::Lattice(lattice) => Kept::Lattice(lattice.clone()),
        };
        Self {
            kept,
            expected: Mutex::default(),
        }
    }

    /// Records a message that will bring so many bytes for a place; returns its number.
    pub(super) fn expect(&self, place: Place, bytes: usize) -> u64 {
        let mut expected = self.expected.lock();
        expected.push(Expected {
            place,
            bytes,
            has_come: false,
        });
        expected.len() as u64 - 1
    }

    /// A message has come with so many bytes; where they go, if it is expected.
    pub(super) fn take(&self, piece: u64, bytes: usize) -> Option<Place> {
        let mut expected = self.expected.lock();
        let expected = expected.get_mut(usize::try_from(piece).ok()?)?;
        if expected.has_come || expected.bytes != bytes {
            return None;
        }
        expected.has_come = true;
        Some(expected.place)
    }

    /// Calls `f` with the destination from a place on.
    pub(super) fn with_walk<R>(&self, place: Place, f: impl FnOnce(Walk<'_>) -> R) -> R {
        let runs = match &self.kept {
            Kept::Vector(list, count) => {
                // SAFETY: the constructor's contract.
                Runs::Vector(unsafe { core::slice::from_raw_parts(*list, *count) })
            }
            Kept::Indexed(list, count, len) => Runs::Indexed {
                // SAFETY: as above.
                addresses: unsafe { core::slice::from_raw_parts(*list, *count) },
                len: *len,
            },
            Kept::Lattice(lattice) => return f(lattice_walk(lattice, place)),
        };
        f(runs.walk(place))
    }
}

fn lattice_walk(lattice: &Lattice, place: Place) -> Walk<'_> {
    Walk::Lattice(lattice.walk(place.index, place.within))
}
