//! Broadcast and reduction of the world, which wait; and the types of reductions.

use crate::collectives;
use crate::error::{Error, Result};
use crate::global::Global;
use crate::process;
use crate::world::{Threading, World};
use argonet_base::Rank;
use argonet_engine::{Signature, TreePass};
use zerocopy::{FromBytes, IntoBytes};

/// Values that can be combined over ranks.
///
/// ```
/// # use argonet::{Reducible, Reduction, World};
/// # use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "argonet::zerocopy")]
/// #[repr(C)]
/// struct Point { x: i32, y: i32 }
///
/// impl Reducible for Point {
///     fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
///         Point { x: i32::combine(reduction, a.x, b.x), y: i32::combine(reduction, a.y, b.y) }
///     }
/// }
/// let low = Point::combine(Reduction::Min, Point { x: 1, y: 9 }, Point { x: 4, y: 2 });
/// assert_eq!((low.x, low.y), (1, 2));
/// # let world = World::init().unwrap();
/// world.reduce_all(Reduction::Max, &mut [low]).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "a `Reduction` cannot combine values of `{Self}`",
    label = "this type is not `Reducible`",
    note = "numbers and arrays of them are; implement `Reducible` for a type of your own, or give a closure to `reduce_all_with` and its relatives"
)]
pub trait Reducible: Global {
    /// The combination of two values.
    ///
    /// It must be associative and commutative, and the same on all ranks. For one that does not
    /// commute there are methods that take a closure, such as
    /// [`Collectives::reduce_all_with`](crate::Collectives::reduce_all_with).
    ///
    /// It runs in the midst of the library's work, in any thread that polls: a call that
    /// communicates returns [`AmError::Restricted`](crate::AmError::Restricted) in it, and a panic
    /// of it ends the job with code 101 and a message that says so.
    ///
    /// See the example of [`Reducible`].
    fn combine(reduction: Reduction, a: Self, b: Self) -> Self;
}

/// How values are combined.
///
/// Sums and products of integers wrap around; minimum and maximum of floats ignore NaN where there
/// is a number.
///
/// ```
/// use argonet::{Reducible, Reduction};
/// let combined = |reduction| i32::combine(reduction, 3, 4);
/// assert_eq!(combined(Reduction::Sum), 7);
/// assert_eq!(combined(Reduction::Product), 12);
/// assert_eq!(combined(Reduction::Min), 3);
/// assert_eq!(combined(Reduction::Max), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reduction {
    /// Sum.
    Sum,
    /// Product.
    Product,
    /// Smallest.
    Min,
    /// Largest.
    Max,
}

macro_rules! reducible {
    (int: $($int:ty)*) => {$(
        impl Reducible for $int {
            fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
                match reduction {
                    Reduction::Sum => a.wrapping_add(b),
                    Reduction::Product => a.wrapping_mul(b),
                    Reduction::Min => a.min(b),
                    Reduction::Max => a.max(b),
                }
            }
        }
    )*};
    (float: $($float:ty)*) => {$(
        impl Reducible for $float {
            fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
                match reduction {
                    Reduction::Sum => a + b,
                    Reduction::Product => a * b,
                    Reduction::Min => a.min(b),
                    Reduction::Max => a.max(b),
                }
            }
        }
    )*};
}

reducible!(int: u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize);
reducible!(float: f32 f64);

/// Element by element.
impl<T: Reducible, const N: usize> Reducible for [T; N] {
    fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
        core::array::from_fn(|at| T::combine(reduction, a[at], b[at]))
    }
}

/// Folds `theirs` into `mine` element by element.
///
/// Where the lengths differ the rest is left out; the engine reports that to all ranks.
pub(crate) fn fold_with<T: Global>(combine: impl Fn(T, T) -> T) -> impl Fn(&mut [u8], &[u8]) {
    move |mine, theirs| {
        let size = size_of::<T>();
        for (a, b) in mine.chunks_exact_mut(size).zip(theirs.chunks_exact(size)) {
            if let (Ok(x), Ok(y)) = (T::read_from_bytes(a), T::read_from_bytes(b)) {
                a.copy_from_slice(combine(x, y).as_bytes());
            }
        }
    }
}

/// The description of values, and of how they are combined, that ranks compare.
fn signature<T: Reducible>(reduction: Reduction) -> Signature {
    Signature::reduction(collectives::code(reduction) as u16).on::<T>()
}

/// In the third word of a vote of every rank but the root: the verdict that comes back from the
/// root lacks it.
const UNDECIDED: u64 = 1 << 63;

/// Whether all ranks call `what` with the same two numbers.
///
/// Collective. A rank in another call that votes counts as different; one in another collective
/// operation ends the job.
pub(crate) fn vote<M: Threading>(
    world: &World<M>,
    what: &'static str,
    numbers: [u64; 2],
) -> Result<()> {
    // Third word: whether a rank below differs. Fourth: a hash of the operation that is voted
    // about.
    let topic = what.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let undecided = if world.rank().0 == 0 { 0 } else { UNDECIDED };
    let mut words = [numbers[0], numbers[1], undecided, topic];
    let same = |a: &[u64; 4], b: &[u64; 4]| a[..2] == b[..2] && a[3] == b[3];
    let fold = |mine: &mut [u8], theirs: &[u8]| {
        let Ok(mut a) = <[u64; 4]>::read_from_bytes(mine) else {
            return;
        };
        a[2] |= match <[u64; 4]>::read_from_bytes(theirs) {
            Ok(b) => (b[2] & !UNDECIDED) | u64::from(!same(&a, &b)),
            Err(_) => 1,
        };
        mine.copy_from_slice(a.as_bytes());
    };
    let root = World::<M>::job_rank(Rank(0));
    let pass = TreePass {
        root,
        fold: Some(&fold),
        down: true,
        signature: Signature::VOTE,
    };
    run(world, &pass, words.as_mut_bytes(), 32)?;
    if words[2] != 0 || !same(&words, &[numbers[0], numbers[1], 0, topic]) {
        return Err(Error::Mismatch {
            rank: world.rank(),
            what,
        });
    }
    Ok(())
}

/// Checks, before any data moves, that all ranks call the same operation, which is too long for one
/// pass; otherwise the job ends.
fn agree<M: Threading>(world: &World<M>, pass: &TreePass<'_>, total: usize) -> Result<()> {
    Ok(process::with(|ctx| world.engine().agree(ctx, pass, total))?)
}

fn run<M: Threading>(
    world: &World<M>,
    pass: &TreePass<'_>,
    bytes: &mut [u8],
    unit: usize,
) -> Result<()> {
    Ok(process::with(|ctx| {
        world.engine().collective(ctx, pass, bytes, unit)
    })?)
}

/// Reductions go through buffers in whole elements.
const fn assert_element<T>() {
    assert!(
        size_of::<T>() > 0 && size_of::<T>() <= 4096,
        "elements of a reduction have 1 byte to 4 KiB"
    );
}

impl<M: Threading> World<M> {
    /// Gives all ranks the values that `root` has.
    ///
    /// Collective; all slices have the same length. Blocks, polling, until this rank's part is
    /// done: it is no barrier.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let root = Rank(0);
    /// let mut seeds = if world.rank() == root { [11u64, 12] } else { [0; 2] };
    /// world.broadcast(root, &mut seeds).unwrap();
    /// assert_eq!(seeds, [11, 12]);
    /// ```
    ///
    /// # Errors
    /// A root that does not exist; [`AmError::Restricted`](crate::AmError::Restricted) inside a
    /// handler. Ranks that call another operation, or this one with another root, type or length,
    /// end the job with an error that names both calls.
    pub fn broadcast<T: Global>(&self, root: Rank, values: &mut [T]) -> Result<()> {
        let pass = TreePass {
            root: Self::job_rank(root),
            fold: None,
            down: true,
            signature: Signature::default().on::<T>(),
        };
        if size_of_val(values) > self.engine().longest_pass() {
            agree(self, &pass, size_of_val(values))?;
            return self.collectives().broadcast(root, values);
        }
        run(self, &pass, values.as_mut_bytes(), 1)
    }

    /// Combines the ranks' slices element by element; `root` gets the result, other ranks' slices
    /// are left with parts of it.
    ///
    /// Collective; all slices have the same length. Blocks as [`broadcast`](Self::broadcast).
    ///
    /// The order of combination depends on the number of ranks and on `root` alone, so
    /// floating-point results are the same in every run with as many ranks.
    ///
    /// ```
    /// # use argonet::{Rank, Reduction, World};
    /// # let world = World::init().unwrap();
    /// let mut largest = [f64::from(world.rank().0)];
    /// world.reduce(Rank(0), Reduction::Max, &mut largest).unwrap();
    /// if world.rank() == Rank(0) {
    ///     assert_eq!(largest[0], f64::from(world.size() - 1));
    /// }
    /// ```
    ///
    /// Elements have 1 byte to 4 KiB; others do not compile:
    ///
    /// ```compile_fail,E0080
    /// # use argonet::{Rank, Reducible, Reduction, World};
    /// # use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
    /// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
    /// #[zerocopy(crate = "argonet::zerocopy")]
    /// #[repr(C)]
    /// struct Nothing;
    ///
    /// impl Reducible for Nothing {
    ///     fn combine(_: Reduction, a: Self, _: Self) -> Self {
    ///         a
    ///     }
    /// }
    /// # let world = World::init().unwrap();
    /// world.reduce(Rank(0), Reduction::Sum, &mut [Nothing]).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce<T: Reducible>(
        &self,
        root: Rank,
        reduction: Reduction,
        values: &mut [T],
    ) -> Result<()> {
        const { assert_element::<T>() };
        let fold = fold_with(|a, b| T::combine(reduction, a, b));
        let pass = TreePass {
            root: Self::job_rank(root),
            fold: Some(&fold),
            down: false,
            signature: signature::<T>(reduction),
        };
        run(self, &pass, values.as_mut_bytes(), size_of::<T>())
    }

    /// Combines the ranks' slices element by element and gives all ranks the result.
    ///
    /// Collective; all slices have the same length. Blocks, polling, until the result is here.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let mut count = [1u32];
    /// world.reduce_all(Reduction::Sum, &mut count).unwrap();
    /// assert_eq!(count[0], world.size());
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_all<T: Reducible>(&self, reduction: Reduction, values: &mut [T]) -> Result<()> {
        if size_of_val(values) > self.engine().longest_pass() {
            let fold = |_: &mut [u8], _: &[u8]| ();
            let pass = TreePass {
                root: Self::job_rank(Rank(0)),
                fold: Some(&fold),
                down: true,
                signature: signature::<T>(reduction),
            };
            agree(self, &pass, size_of_val(values))?;
            return self.collectives().reduce_all(reduction, values);
        }
        let combine = |a, b| T::combine(reduction, a, b);
        self.reduce_all_as(values, signature::<T>(reduction), combine)
    }

    /// As [`reduce_all`](Self::reduce_all) with a combination of one's own, which must be
    /// associative and the same on all ranks.
    ///
    /// What it does is not compared: ranks that pass different ones for the same type get different
    /// results.
    ///
    /// Left operands come from lower ranks.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// // Greatest common divisor of the ranks' numbers.
    /// fn gcd(a: u32, b: u32) -> u32 { if b == 0 { a } else { gcd(b, a % b) } }
    /// let mut number = [6 * (world.rank().0 + 1)];
    /// world.reduce_all_with(&mut number, gcd).unwrap();
    /// assert_eq!(number, [6]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_all_with<T: Global>(
        &self,
        values: &mut [T],
        combine: impl Fn(T, T) -> T,
    ) -> Result<()> {
        self.reduce_all_as(values, Signature::CLOSURE.on::<T>(), combine)
    }

    fn reduce_all_as<T: Global>(
        &self,
        values: &mut [T],
        signature: Signature,
        combine: impl Fn(T, T) -> T,
    ) -> Result<()> {
        const { assert_element::<T>() };
        let fold = fold_with(combine);
        let pass = TreePass {
            root: Self::job_rank(Rank(0)),
            fold: Some(&fold),
            down: true,
            signature,
        };
        run(self, &pass, values.as_mut_bytes(), size_of::<T>())
    }
}
