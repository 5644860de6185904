//! Non-contiguous puts and gets (GASNet-EX: vector, indexed, strided): one operation moves many
//! pieces of memory.
//!
//! A transfer is brought into a simple form first ([`grid`]). Where the peer's memory is mapped
//! here the bytes are copied at once ([`copy`]); else they travel in messages that name many pieces
//! each ([`messages`], [`wire`]), which the owner of the memory checks as a whole before it touches
//! any of it ([`serve`]), or, if they are long, as puts and gets.
#![allow(unsafe_code)]

mod call;
mod copy;
mod few;
mod grid;
mod landing;
mod lattice;
mod messages;
mod notice;
mod plan;
mod rows;
mod serve;
mod shape;
mod space;
mod walk;
mod wire;

pub use call::{Direction, PeerMemory, VisTransfer};
pub use few::Few;
pub(super) use landing::Scatter;
pub use notice::Notice;
pub(super) use notice::{Kept as KeptNotice, Notices};
pub use rows::RowsAt;
pub use shape::{Part as ShapePart, Piece, Pieces, Shape, Strided, VisError};

use core::sync::atomic::{AtomicUsize, Ordering};

/// The engine's part of non-contiguous transfers: the most bytes that one message may move.
///
/// Set before the job communicates.
pub(super) struct Vis {
    put: AtomicUsize,
    get: AtomicUsize,
}

impl Default for Vis {
    fn default() -> Self {
        Self {
            put: AtomicUsize::new(usize::MAX),
            get: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Vis {
    fn chunk(&self, direction: Direction) -> usize {
        let most = match direction {
            Direction::Put => &self.put,
            Direction::Get => &self.get,
        };
        most.load(Ordering::Relaxed)
    }
}

impl<C: argonet_conduit::Conduit> super::core::Engine<C> {
    /// Limits the bytes that one message of a non-contiguous transfer moves, to at least 1.
    pub fn limit_vis_chunk(&self, direction: Direction, bytes: usize) {
        let most = match direction {
            Direction::Put => &self.vis.put,
            Direction::Get => &self.vis.get,
        };
        most.store(bytes.max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
