//! Transfers whose shapes were checked, and operations that own their values.

use crate::error::Result;
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::op::Op;
use crate::process;
use crate::section::{Section, SectionError};
use crate::world::{Threading, World};
use argonet_am::AmError;
use argonet_base::kept::Kept;
use argonet_base::{Rank, SegmentOffset};
use argonet_engine::{
    Direction, Few, Injection, OpError, PeerMemory, Piece, Pieces, RowsAt, Shape, Strided,
    VisTransfer,
};

/// A transfer whose shape was checked.
///
/// Addresses are those of buffers that its maker keeps.
pub(super) struct Checked {
    direction: Direction,
    rank: Rank,
    what: What,
}

#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack for a call, and a box would cost more than the call"
)]
enum What {
    Strided {
        element: usize,
        counts: Few<usize>,
        to: (usize, Few<isize>),
        from: (usize, Few<isize>),
    },
    Vector {
        to: Vec<Piece>,
        from: Vec<Piece>,
    },
}

impl Checked {
    pub(super) fn with<R>(&self, f: impl FnOnce(&VisTransfer<'_>) -> R) -> R {
        let shape = match &self.what {
            What::Strided {
                element,
                counts,
                to,
                from,
            } => Shape::Strided(Strided {
                to: to.0,
                to_strides: &to.1,
                from: from.0,
                from_strides: &from.1,
                element: *element,
                counts,
            }),
            What::Vector { to, from } => Shape::Pieces {
                to: Pieces::Vector(to),
                from: Pieces::Vector(from),
            },
        };
        f(&VisTransfer {
            direction: self.direction,
            rank: argonet_base::JobRank(self.rank.0),
            memory: PeerMemory::Segment,
            shape,
            notice: None,
        })
    }
}

impl<M: Threading> World<M> {
    /// Checks sections against each other and against their arrays.
    pub(super) fn check_sections<T: Global>(
        direction: Direction,
        (there, at): (GlobalSlice<T>, &Section),
        (len, of): (usize, &Section),
    ) -> Result<()> {
        match direction {
            Direction::Put => at.matches(of),
            Direction::Get => of.matches(at),
        }?;
        at.check(there.len())?;
        of.check(len)?;
        Ok(())
    }

    /// A put or get of sections that is complete on return.
    ///
    /// # Safety
    /// `len` values lie at `here`, which may be written for a get.
    #[inline]
    pub(super) unsafe fn run_strided<T: Global>(
        &self,
        direction: Direction,
        (there, at): (GlobalSlice<T>, &Section),
        (here, len, of): (*mut T, usize, &Section),
    ) -> Result<()> {
        Self::check_sections(direction, (there, at), (len, of))?;
        // SAFETY: this function's contract; the sections were checked.
        if unsafe { self.move_rows(direction, (there, at), (here, of)) } {
            return Ok(());
        }
        let local = (here.cast_const(), len, of);
        let checked = self.strided(direction, (there, at), local)?;
        // SAFETY: this function's contract; the call is complete on return.
        unsafe { self.run(&checked) }
    }

    /// Moves sections that are rows on both sides, if the other's memory is mapped here; whether it
    /// has.
    ///
    /// # Safety
    /// The sections were checked, and the values of the one here may be read, or written for a get.
    #[inline]
    pub(super) unsafe fn move_rows<T: Global>(
        &self,
        direction: Direction,
        (there, at): (GlobalSlice<T>, &Section),
        (here, of): (*mut T, &Section),
    ) -> bool {
        let (Some((theirs, ours)), Some((first, lowest, span)), Some((here_first, ..))) =
            (at.rows_with(of), at.span(), of.span())
        else {
            return false;
        };
        let size = size_of::<T>();
        let bytes = |stride: isize| stride.wrapping_mul(size as isize);
        let rank = Self::job_rank(there.rank());
        // The other side's slice may come from a message that says anything.
        let (Some(before), Some(span)) = (lowest.checked_mul(size), span.checked_mul(size)) else {
            return false;
        };
        let Some(begins) = there.first().offset().0.checked_add(before as u64) else {
            return false;
        };
        let there = RowsAt {
            first: first.wrapping_sub(lowest).wrapping_mul(size),
            stride: bytes(theirs.stride),
        };
        let here = RowsAt {
            first: here.wrapping_add(here_first).cast(),
            stride: bytes(ours.stride),
        };
        // There may be any number of rows of no bytes.
        let count = if size == 0 { 0 } else { theirs.count };
        let what = (count, theirs.run * size);
        let engine = self.engine();
        let span = (rank, SegmentOffset(begins), span);
        // SAFETY: this function's contract.
        process::with(|ctx| unsafe { engine.vis_rows(ctx, direction, span, there, here, what) })
    }

    /// A put or get of sections.
    pub(super) fn strided<T: Global>(
        &self,
        direction: Direction,
        (there, at): (GlobalSlice<T>, &Section),
        (here, len, of): (*const T, usize, &Section),
    ) -> Result<Checked> {
        Self::check_sections(direction, (there, at), (len, of))?;
        let size = size_of::<T>();
        let place = |base: usize, whose, section: &Section| {
            let (first, strides) = section.in_bytes(size, whose)?;
            // The slice's offset may already have led around to an address, which is found outside
            // of the segment; the section leads no further around, as it ends below 2^63.
            Ok::<_, SectionError>((base.wrapping_add(first), strides))
        };
        let theirs = (there.rank(), there.first().offset().0);
        let remote = place(self.address(there)?, theirs, at)?;
        let local = place(here.expose_provenance(), (self.rank(), 0), of)?;
        let (to, from) = match direction {
            Direction::Put => (remote, local),
            Direction::Get => (local, remote),
        };
        Ok(Checked {
            direction,
            rank: there.rank(),
            what: What::Strided {
                element: size,
                counts: at.counts(),
                to,
                from,
            },
        })
    }

    /// Checks that all pieces are of one rank.
    pub(super) fn vector<T: Global>(
        &self,
        direction: Direction,
        there: &[GlobalSlice<T>],
        here: impl Iterator<Item = Piece>,
    ) -> Result<Checked> {
        let rank = there.first().map_or(self.rank(), |piece| piece.rank());
        let mut remote = Vec::with_capacity(there.len());
        for (number, piece) in there.iter().enumerate() {
            if piece.rank() != rank {
                return Err(SectionError::SeveralRanks {
                    piece: number,
                    first: rank.0,
                    other: piece.rank().0,
                }
                .into());
            }
            remote.push(Piece {
                address: self.address(*piece)?,
                len: piece.len().saturating_mul(size_of::<T>()),
            });
        }
        let local = here.collect();
        let (to, from) = match direction {
            Direction::Put => (remote, local),
            Direction::Get => (local, remote),
        };
        Ok(Checked {
            direction,
            rank,
            what: What::Vector { to, from },
        })
    }

    /// Where a slice begins in its rank's process.
    ///
    /// Whether it lies in that rank's segment is found out later.
    fn address<T: Global>(&self, slice: GlobalSlice<T>) -> Result<usize> {
        let (engine, to) = (self.engine(), Self::job_rank(slice.rank()));
        if to.0 >= engine.size() {
            let (size, from) = (engine.size(), engine.rank());
            return Err(OpError::Am(AmError::NoSuchRank { to, size, from }).into());
        }
        let base = 0u64.wrapping_sub(engine.offset_of(to, 0).0);
        Ok(base.wrapping_add(slice.first().offset().0) as usize)
    }

    /// # Safety
    /// The addresses of this side are those of memory that is readable or writable.
    pub(super) unsafe fn run(&self, checked: &Checked) -> Result<()> {
        let engine = self.engine();
        checked.with(|transfer| {
            // SAFETY: the caller's promise; the lists are there until this returns.
            process::with(|ctx| unsafe { engine.vis(ctx, transfer, Injection::Blocking) })
        })?;
        Ok(())
    }

    /// # Safety
    /// The addresses of this side are those of memory that `buffers` own, wherever they are moved
    /// to, and that no other code uses.
    pub(super) unsafe fn start_checked<'w, K: Send + 'static, B: 'static>(
        &'w self,
        checked: Checked,
        buffers: K,
        give: fn(K) -> B,
    ) -> Result<Op<'w, B, M>> {
        let engine = self.engine();
        let event = checked.with(|transfer| {
            // SAFETY: the caller's promise; buffers and lists are kept until the event is complete.
            process::with(|ctx| unsafe { engine.vis_start(ctx, transfer, Injection::Blocking) })
        })?;
        // The engine reads the lists until the end.
        let kept = (buffers, checked);
        Ok(Op::of_event(self, event, kept, move |(buffers, _)| {
            give(buffers)
        }))
    }
}

pub(super) fn listed<T: Global>(slice: &[T]) -> Piece {
    Piece {
        address: slice.as_ptr().expose_provenance(),
        len: size_of_val(slice),
    }
}

pub(super) fn listed_kept<T: Global>(kept: &Kept<T>) -> Piece {
    let values = kept.as_ptr();
    Piece {
        address: values.cast::<T>().expose_provenance(),
        len: values.len().saturating_mul(size_of::<T>()),
    }
}

pub(super) fn kept_each<T: Global>(values: Vec<Box<[T]>>) -> Vec<Kept<T>> {
    values.into_iter().map(Kept::new).collect()
}

pub(super) fn give_each<T: Global>(kept: Vec<Kept<T>>) -> Vec<Box<[T]>> {
    kept.into_iter().map(Kept::give).collect()
}

pub(super) fn listed_mut<T: Global>(slice: &mut [T]) -> Piece {
    Piece {
        address: slice.as_mut_ptr().expose_provenance(),
        len: size_of_val(slice),
    }
}
