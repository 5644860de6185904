//! A member's call of a collective operation, and the part of it that must be the same at all
//! members.
#![allow(unsafe_code)]

use super::label::{Label, Signature};
use crate::datatype::{DataType, Operation, fold_before};
use core::ops::Range;

/// Kinds of collective operations.
///
/// A block is `unit * count` bytes, except in [unequal](Kind::is_unequal) kinds.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, num_enum::TryFromPrimitive, num_enum::IntoPrimitive,
)]
#[repr(u8)]
pub enum Kind {
    /// Complete when all have called.
    Barrier = 1,
    /// The root's source, a block, to all targets.
    Broadcast,
    /// All sources, a block each, combined, to the root's target.
    Reduce,
    /// The same to all targets.
    ReduceAll,
    /// All sources, a block each, to the root's target in the order of ranks.
    Gather,
    /// The same to all targets.
    GatherAll,
    /// The root's source, a block for each rank, in pieces to the targets.
    Scatter,
    /// The source has a block for each rank, the target gets one from each.
    Exchange,
    /// The sources have a block for each rank, which gets its own combined.
    ReduceScatter,
    /// All sources up to this member's own, combined.
    Scan,
    /// All sources before this member's own, combined; the target of rank 0 is left as it is.
    ExclusiveScan,
    /// A barrier of the library's own, which keeps members from running ahead too far.
    Window,
    /// The source has a block for each rank, the target gets one from each; each has a length of
    /// its own ([`BlockRanges`]).
    ///
    /// [`Call::count`] is 1 for a gather-all, in which each sends one block to all, and 0 for any
    /// other, so that members find the difference.
    ExchangeV,
    /// All sources, a block of any length each, to the root's target.
    GatherV,
    /// The root's source, a block of any length for each rank, to the targets.
    ScatterV,
}

impl Kind {
    /// Whether it has a root.
    #[must_use]
    pub fn is_rooted(self) -> bool {
        matches!(
            self,
            Self::Broadcast
                | Self::Reduce
                | Self::Gather
                | Self::Scatter
                | Self::GatherV
                | Self::ScatterV
        )
    }

    /// Whether each block has a length of its own.
    #[must_use]
    pub fn is_unequal(self) -> bool {
        matches!(self, Self::ExchangeV | Self::GatherV | Self::ScatterV)
    }

    /// Whether it combines values.
    #[must_use]
    pub fn folds(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::ReduceAll | Self::ReduceScatter | Self::Scan | Self::ExclusiveScan
        )
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce-to-one",
            Self::ReduceAll => "reduce-to-all",
            Self::Gather => "gather",
            Self::GatherAll => "gather-all",
            Self::Scatter => "scatter",
            Self::Exchange => "exchange",
            Self::ReduceScatter => "reduce-scatter",
            Self::Scan => "scan",
            Self::ExclusiveScan => "exclusive scan",
            Self::Window => "barrier of the library's own",
            Self::ExchangeV => "exchange of unequal blocks",
            Self::GatherV => "gather of unequal blocks",
            Self::ScatterV => "scatter of unequal blocks",
        }
    }
}

/// Combines elements: each of the `count` at `right` becomes `left op right`.
///
/// The two do not overlap. It is called by any thread that polls; it cannot communicate, and its
/// panic ends the job.
pub type FoldFn = unsafe fn(context: [*const (); 2], left: *const u8, right: *mut u8, count: usize);

/// How values are combined.
#[derive(Clone, Copy)]
pub struct Folding {
    /// The function.
    pub function: FoldFn,
    /// Passed to the function.
    pub context: [*const (); 2],
    /// Whether the operands must stay in the order of ranks, because the operation does not
    /// commute.
    pub ordered: bool,
    /// Whether the function is, or calls, the client's: it is called with no lock held that another
    /// call waits for.
    pub is_client_code: bool,
    /// The signature that members compare: members that combine differently end the job.
    pub signature: Signature,
}

impl Folding {
    /// An operation that is built in, on a type that has it ([`Operation::reduces`]).
    #[must_use]
    pub fn built_in(op: Operation, dt: DataType) -> Self {
        let word = |word: u32| core::ptr::without_provenance(word as usize);
        Self {
            function: built_in,
            context: [word(op.into()), word(dt.into())],
            ordered: false,
            is_client_code: false,
            signature: Self::signature_of(op, dt),
        }
    }

    /// The signature of an operation and a type, the same at all members that name both alike.
    #[must_use]
    pub fn signature_of(op: Operation, dt: DataType) -> Signature {
        let (op, dt) = (op.bit().trailing_zeros(), u32::from(dt).trailing_zeros());
        Signature {
            operation: 1 << 8 | (dt << 5 | op) as u16,
            element: 0,
        }
    }
}

/// [`FoldFn`] of the built-in operations.
///
/// # Safety
/// As many elements of the type lie at both places, the second of which may be written.
unsafe fn built_in(context: [*const (); 2], left: *const u8, right: *mut u8, count: usize) {
    let [op, dt] = context.map(|word| word.addr() as u32);
    let (Ok(op), Ok(dt)) = (Operation::try_from(op), DataType::try_from(dt)) else {
        return;
    };
    let bytes = dt.bytes().unwrap_or(0) * count;
    // SAFETY: this function's contract; the two do not overlap.
    let (left, right) = unsafe {
        (
            core::slice::from_raw_parts(left, bytes),
            core::slice::from_raw_parts_mut(right, bytes),
        )
    };
    fold_before(op, dt, right, left);
}

/// Whether a call synchronizes all its members, even where its data does not make it.
///
/// Source: `GASNET_COLL_IN_ALLSYNC` and `GASNET_COLL_OUT_ALLSYNC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllSync {
    /// No data moves before all have called.
    pub before: bool,
    /// It is complete nowhere before it is everywhere.
    pub after: bool,
}

/// Where the blocks of one member lie in a call of an [unequal](Kind::is_unequal) kind, in bytes:
/// an entry for each member.
///
/// `None` is no message, and must meet `None` at the other member: one that awaits a block which
/// the other does not send waits forever. An empty range is a message of no bytes. Members that
/// differ in the length of a block end the job. The two entries of a member for itself are both
/// `None`, or have one length.
#[derive(Clone, Copy, Debug)]
pub struct BlockRanges<'a> {
    /// In its source, of the blocks that it has for each member; they may overlap.
    pub sent: &'a [Option<Range<usize>>],
    /// In its target, of the blocks that each member has for it; no two overlap.
    pub received: &'a [Option<Range<usize>>],
}

/// A call of one member.
#[derive(Clone, Copy)]
pub struct Call {
    /// The operation.
    pub kind: Kind,
    /// Rank of the root; 0 where there is none.
    pub root: u32,
    /// Bytes of an element, which is never split.
    pub unit: usize,
    /// Elements of a block.
    pub count: usize,
    /// The member's contribution, if it has one.
    pub src: *const u8,
    /// Where its result goes, if it gets one.
    pub dst: *mut u8,
    /// How values are combined; for the kinds that do.
    pub folding: Option<Folding>,
    /// The type of the elements, as [`Signature::element`] has it; 0 where only bytes count.
    pub element: u16,
    /// Whether it synchronizes all members.
    pub all_sync: AllSync,
}

// SAFETY: the memory and the folding's context are the call's until its event is complete, for any
// thread that goes on with it (`collective_start` demands that), and only the thread that holds the
// call's lock touches them.
unsafe impl Send for Call {}

impl Call {
    /// A call of no bytes, to be completed: all that a barrier needs.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            root: 0,
            unit: 1,
            count: 0,
            src: core::ptr::null(),
            dst: core::ptr::null_mut(),
            folding: None,
            element: 0,
            all_sync: AllSync {
                before: false,
                after: false,
            },
        }
    }

    /// Whether it folds by code of the client's.
    pub(super) fn runs_client_code(&self) -> bool {
        self.folding.is_some_and(|folding| folding.is_client_code)
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block(&self) -> usize {
        self.unit * self.count
    }

    /// The label of the call, the same at all members.
    #[inline(always)]
    pub(super) fn label(&self) -> Label {
        let signature = self
            .folding
            .map_or_else(Signature::default, |f| f.signature);
        let signature = Signature {
            element: signature.element | self.element,
            ..signature
        };
        Label::new(self.kind, self.root, self.block() as u64, signature).with(self.all_sync)
    }
}
