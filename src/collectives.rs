//! Collective operations of a team.
#![allow(unsafe_code)]

mod blocking;
mod of_world;
mod started;
mod unequal;
mod value;

pub(crate) use of_world::vote;
pub use of_world::{Reducible, Reduction};
pub use unequal::Blocks;

use crate::error::Result;
use crate::global::Global;
use crate::op::Op;
use crate::process;
use crate::team::Team;
use crate::world::{Threading, World};
use argonet_engine::{Call, Folding, Kind, Signature, Team as EngineTeam};
use argonet_event::Event;
use core::any::TypeId;
use core::mem::ManuallyDrop;
use std::sync::Arc;

/// The collective operations of a [`Team`], or of the whole [`World`]; returned by
/// [`Team::collectives`] and [`World::collectives`].
///
/// All ranks of the team call the same operations in the same order, with the same root, length and
/// operation; ranks that differ end the job with a message that names two of them. Lengths may
/// differ in methods whose names end with `_v` alone. Ranks here are ranks in the team. Any number
/// of started operations may be under way, of one team and of several, and be waited for in any
/// order; polls advance them. Operations of the world's team are in one order with calls of
/// [`World`] itself, such as [`World::barrier`]: a rank that starts a broadcast, a scatter, a
/// gather, a reduction to one or a scan before such a call differs from one that starts it
/// afterwards. No operation is a barrier but [`start_barrier`](Self::start_barrier): a rank is done
/// when its own part is.
///
/// A call whose name begins with `start` waits only for room. Its operation owns the buffers until
/// it is complete; one that is dropped before goes on, and its buffers are leaked. The other calls
/// block, polling, until this rank's part is done.
///
/// Values are combined in an order that depends on the number of ranks, where they are, and lengths
/// alone, so the same input gives the same bits. With a combination of one's own, operands stay in
/// the order of ranks.
///
/// ```
/// # use argonet::{Rank, Reduction, World};
/// # let world = World::init().unwrap();
/// let (me, size) = (world.rank().0, world.size());
/// let calls = world.collectives();
/// assert!(calls.gather_all(&[me]).unwrap().into_iter().eq(0..size));
/// // Two at once.
/// let sum = calls.start_reduce_all(Reduction::Sum, vec![1u32; 3].into()).unwrap();
/// let largest = calls.start_reduce_all(Reduction::Max, vec![me].into()).unwrap();
/// assert_eq!(*largest.wait().unwrap(), [size - 1]);
/// assert_eq!(*sum.wait().unwrap(), [size; 3]);
/// // Of one's own row.
/// let team = world.team().split(&world, Some(me / 4), 0).unwrap().unwrap();
/// let first = team.collectives(&world).gather(Rank(0), &[me]).unwrap();
/// assert_eq!(first.is_some(), me % 4 == 0);
/// ```
///
/// Source: GASNet-EX, `gasnet_coll.h`, and beyond it.
#[derive(Clone)]
pub struct Collectives<'w, M: Threading> {
    world: &'w World<M>,
    team: Arc<EngineTeam>,
}

impl<M: Threading> World<M> {
    /// The collective operations of all ranks.
    ///
    /// See the example of [`Collectives`].
    #[must_use]
    pub fn collectives(&self) -> Collectives<'_, M> {
        Collectives {
            world: self,
            team: Arc::clone(self.engine().world_team()),
        }
    }
}

impl Team {
    /// The collective operations of the team.
    ///
    /// See the example of [`Collectives`].
    #[must_use]
    pub fn collectives<'w, M: Threading>(&'w self, world: &'w World<M>) -> Collectives<'w, M> {
        Collectives {
            world,
            team: Arc::clone(self.of_engine()),
        }
    }
}

/// Combines values of a type by a [`Reduction`].
///
/// # Safety
/// As many aligned values lie at both places, the second of which may be written.
unsafe fn combine<T: Reducible>(
    context: [*const (); 2],
    left: *const u8,
    right: *mut u8,
    count: usize,
) {
    // One loop each, so that the compiler makes vectors of it.
    macro_rules! each {
        ($($code:literal $reduction:ident)*) => {
            match context[0].addr() {
                $($code => {
                    // SAFETY: this function's contract.
                    unsafe { zip(left, right, count, |a, b| T::combine(Reduction::$reduction, a, b)) }
                })*
                _ => {}
            }
        };
    }
    each!(0 Sum 1 Product 2 Min 3 Max);
}

pub(crate) fn code(reduction: Reduction) -> usize {
    match reduction {
        Reduction::Sum => 0,
        Reduction::Product => 1,
        Reduction::Min => 2,
        Reduction::Max => 3,
    }
}

/// # Safety
/// `count` values lie at both places, the second of which may be written; any alignment.
#[inline(always)]
unsafe fn zip<T: Copy>(left: *const u8, right: *mut u8, count: usize, combine: impl Fn(T, T) -> T) {
    let (left, right) = (left.cast::<T>(), right.cast::<T>());
    for at in 0..count {
        // SAFETY: this function's contract.
        unsafe {
            let value = combine(
                left.add(at).read_unaligned(),
                right.add(at).read_unaligned(),
            );
            right.add(at).write_unaligned(value);
        }
    }
}

/// Combines values by a closure to which the context leads.
///
/// # Safety
/// The first word is a reference to an `F`; as many values lie at both places.
unsafe fn combine_with<T: Copy, F: Fn(T, T) -> T>(
    context: [*const (); 2],
    left: *const u8,
    right: *mut u8,
    count: usize,
) {
    // SAFETY: this function's contract.
    unsafe {
        let combine = &*context[0].cast::<F>();
        zip(left, right, count, combine);
    }
}

/// Whether a type is one of those whose combination is the library's own.
fn is_number<T: 'static>() -> bool {
    macro_rules! any {
        ($($number:ty)*) => {
            [$(TypeId::of::<$number>()),*].contains(&TypeId::of::<T>())
        };
    }
    any!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64)
}

/// The engine's folding of values of a type by a [`Reduction`].
pub(crate) fn folding<T: Reducible>(reduction: Reduction) -> Folding {
    let code = code(reduction);
    Folding {
        function: combine::<T>,
        context: [core::ptr::without_provenance(code), core::ptr::null()],
        ordered: false,
        is_client_code: !is_number::<T>(),
        signature: Signature::reduction(code as u16),
    }
}

/// The engine's folding of values of a type by a closure.
///
/// It is valid as long as the closure stays where it is.
fn folding_with<T: Global, F: Fn(T, T) -> T + Sync>(combine: &F) -> Folding {
    Folding {
        function: combine_with::<T, F>,
        context: [core::ptr::from_ref(combine).cast(), core::ptr::null()],
        ordered: true,
        is_client_code: true,
        signature: Signature::CLOSURE,
    }
}

/// Memory of an operation under way, which is leaked rather than given back before the operation is
/// complete.
struct Lent<B> {
    event: Event,
    buffers: ManuallyDrop<B>,
    returned: bool,
}

impl<B> Lent<B> {
    fn new(event: Event, buffers: B) -> Self {
        Self {
            event,
            buffers: ManuallyDrop::new(buffers),
            returned: false,
        }
    }

    /// The buffers, when the operation is complete; once.
    fn take<M: Threading>(&mut self, world: &World<M>) -> Option<Result<B>> {
        let complete = process::with(|ctx| world.engine().peek(ctx, self.event));
        match complete {
            Ok(false) => None,
            Ok(true) => {
                assert!(!self.returned, "an operation's buffers are taken once");
                self.returned = true;
                // SAFETY: not taken before, as just asserted, and never looked at again.
                Some(Ok(unsafe { ManuallyDrop::take(&mut self.buffers) }))
            }
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl<'w, M: Threading> Collectives<'w, M> {
    fn size(&self) -> usize {
        self.team.size() as usize
    }

    /// Elements of a block of `count` for each member.
    ///
    /// # Panics
    /// If no slice has as many.
    fn blocks(&self, count: usize) -> usize {
        let all = self.size().checked_mul(count);
        all.expect("so many elements for each member are more than any slice has")
    }

    /// Whether this rank is the root.
    fn is(&self, root: argonet_base::Rank) -> bool {
        root.0 == self.team.rank
    }

    /// # Safety
    /// As `Engine::collective_start`.
    unsafe fn call(&self, call: Call) -> Result<Event> {
        let engine = self.world.engine();
        // SAFETY: this function's contract.
        Ok(process::with(|ctx| unsafe {
            engine.collective_start(ctx, &self.team, call)
        })?)
    }

    /// Starts a call on buffers that are kept for it; `result` makes the operation's result of
    /// them.
    ///
    /// # Safety
    /// The call's memory is that of `buffers`, which own it wherever they are moved.
    unsafe fn start<B: Send + 'static, R: 'static>(
        &self,
        call: Call,
        buffers: B,
        result: impl Fn(B) -> R + Send + 'static,
    ) -> Result<Op<'w, R, M>> {
        // SAFETY: this function's contract; `Lent` keeps the buffers until the event is complete.
        let event = unsafe { self.call(call) }?;
        Ok(self.op(event, buffers, result))
    }

    /// The operation of an event, which keeps the buffers.
    fn op<B: Send + 'static, R: 'static>(
        &self,
        event: Event,
        buffers: B,
        result: impl Fn(B) -> R + Send + 'static,
    ) -> Op<'w, R, M> {
        let world = self.world;
        let mut lent = Lent::new(event, buffers);
        Op::waiting(world, move |world: &World<M>| {
            lent.take(world).map(|taken| taken.map(&result))
        })
    }
}

/// A call between two slices of blocks of `count` elements.
fn between<T: 'static, U>(kind: Kind, count: usize, src: *const [T], dst: *mut [U]) -> Call {
    Call {
        unit: size_of::<T>(),
        count,
        src: src.cast(),
        dst: dst.cast(),
        element: Signature::element::<T>(),
        ..Call::of(kind)
    }
}

/// A call in one slice.
fn within<T: 'static>(kind: Kind, values: *mut [T]) -> Call {
    let dst = values.cast::<u8>();
    Call {
        unit: size_of::<T>(),
        count: values.len(),
        src: dst,
        dst,
        element: Signature::element::<T>(),
        ..Call::of(kind)
    }
}
