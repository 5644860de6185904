//! The test of the attribute [`test`](macro@crate::test): in the process of the harness it runs as
//! a job, in the process of a rank it runs.

use crate::builder::Builder;
use crate::run::{FAILURE, with_causes};
use crate::world::{Threading, World};
use argonet_boot::{RankOfTest, TestJob, rank_of_test};
use argonet_engine::{PANIC_CODE, panic_text};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::time::Duration;

/// Runs a function as a test on every rank of a job of its own.
///
/// The function gets the world, as that of [`run`](crate::run()) does, and returns nothing or a
/// `Result`. It fails where it returns an error or panics on any rank: that ends the job, and the
/// message of the test says which rank it was.
///
/// ```
/// use argonet::{Result, SharedArray, World};
///
/// #[argonet::test(ranks = [1, 3], conduit = "tcp", neighborhood = 1)]
/// fn a_ring(world: &mut World) -> Result<()> {
///     let numbers = SharedArray::<u32>::alloc(world, 1)?;
///     world.put_value(numbers.ptr(world.rank_offset(1), 0), world.rank().0)?;
///     world.barrier()?;
///     assert_eq!(numbers.read(world, 0), world.rank_offset(-1).0);
///     Ok(())
/// }
/// # fn main() {}
/// ```
///
/// | option | meaning | default |
/// | --- | --- | --- |
/// | `ranks = 4`, `ranks = [1, 4]` | number of ranks; a list makes a job for each, one after the other | 2 |
/// | `conduit = "tcp"`, `conduit = ["smp", "tcp"]` | conduit; a list as above | `ARGONET_CONDUIT`, else `smp` |
/// | `neighborhood = 1` | most ranks that share memory; the others communicate by the conduit, though they are on one host | `GASNET_SUPERNODE_MAXSIZE`, else all |
/// | `timeout = 10` | seconds after which a job fails; before its end it reports what each rank waits for | 60 |
/// | `env("NAME" = "value", ...)` | further variables of the ranks' environment | |
///
/// The values are constant expressions, of the types `u32`, `&str`, `u32`, `u64` and `&str`; one
/// with a comma of its own stands in parentheses. Over `smp` all ranks share memory, so
/// `neighborhood` changes nothing there.
///
/// `#[ignore]`, `#[should_panic]` and `#[cfg]` are written beside it as beside `#[test]`; what
/// `should_panic(expected = "...")` names is a part of the message of the panic or error of the
/// first rank that had one, and without `expected` any failure of the job will do. Filters, tests
/// that run at the same time and nextest work: to the harness it is one test. What the ranks print
/// is captured, with the number of the rank before each line.
///
/// A rank passes when the function returns and the rank has left the job; one that exits before
/// that fails the test, with code 0 too.
///
/// A function with a `&mut World<Par>` gets a world for many threads.
///
/// All ranks are on this host, whatever settings say of hosts. The ranks are started anew from the
/// test program, and find their test by its name, as `--exact NAME` does. So the harness is that of
/// the compiler, or one with its options; a rank that runs no test fails the job. Code that runs
/// before `main` runs in each. The attribute names this crate `::argonet`.
///
/// # Threads
/// The world belongs to the thread of the test, which is not the first one of its process.
///
/// # Errors
/// Mistakes are errors of the compiler:
///
/// ```compile_fail
/// // A test of this kind takes its world.
/// #[argonet::test]
/// fn test() {}
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// // It is called `ranks`.
/// #[argonet::test(rank = 4)]
/// fn test(_: &mut argonet::World) {}
/// # fn main() {}
/// ```
pub use argonet_macros::test;

/// A test, as the expansion of the attribute has it.
#[doc(hidden)]
pub struct Test {
    /// Crate, modules and function.
    pub name: &'static str,
    pub ranks: &'static [u32],
    pub conduits: &'static [Option<&'static str>],
    pub neighborhood: Option<u32>,
    pub seconds: u64,
    pub variables: &'static [(&'static str, &'static str)],
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<E> Sealed for Result<(), E> {}
}

/// What the function of a test may return.
#[diagnostic::on_unimplemented(
    message = "a test cannot return `{Self}`",
    note = "it returns nothing, or a `Result<(), E>` with an error for `Box<dyn Error>`"
)]
#[doc(hidden)]
pub trait Outcome: sealed::Sealed {
    /// The error, if it is one.
    fn error(self) -> Option<Box<dyn Error>>;
}

impl Outcome for () {
    fn error(self) -> Option<Box<dyn Error>> {
        None
    }
}

impl<E: Into<Box<dyn Error>>> Outcome for Result<(), E> {
    fn error(self) -> Option<Box<dyn Error>> {
        self.err().map(Into::into)
    }
}

ctor::declarative::ctor! {
    /// In the program of a test a process may be a launcher, or a rank.
    #[ctor(unsafe)]
    fn begin() { argonet_boot::begin_process() }
}

/// Called by the expansion of [`test`](macro@crate::test), on the thread of the test.
#[doc(hidden)]
#[track_caller]
pub fn run_test<M: Threading, R: Outcome>(test: &Test, body: fn(&mut World<M>) -> R) {
    // The harness leaves out the name of the crate.
    let name = test.name.split_once("::").map_or(test.name, |(_, n)| n);
    if let Some(rank) = rank_of_test() {
        run_rank(rank, name, body)
    }
    assert!(
        !test.ranks.is_empty() && !test.conduits.is_empty(),
        "`ranks` and `conduit` of the test name at least one each"
    );
    assert!(
        test.seconds > 0,
        "`timeout` of the test is a second at least"
    );
    for &conduit in test.conduits {
        for &ranks in test.ranks {
            let job = TestJob {
                name,
                ranks,
                conduit,
                neighborhood: test.neighborhood,
                variables: test.variables,
                time_limit: Duration::from_secs(test.seconds),
            };
            if let Err(why) = job.run() {
                panic!("{why}");
            }
        }
    }
}

/// Runs the test in this rank, and ends the process.
fn run_rank<M: Threading, R: Outcome>(
    rank: &RankOfTest,
    name: &str,
    body: fn(&mut World<M>) -> R,
) -> ! {
    let begun = match rank.name() == name {
        true => rank.begin().map_err(|error| error.to_string()),
        false => Err(format!("the harness runs {name} for {}", rank.name())),
    };
    let joined = begun.and_then(|()| Builder::new().join::<M>().map_err(|e| with_causes(&e)));
    let mut world = joined.unwrap_or_else(|why| fail(rank, &why));
    let number = World::<M>::job_rank(world.rank());
    rank.joined(number);
    // The world outlives the panic, and nothing sees what the panic has left of it.
    let (code, why) = match catch_unwind(AssertUnwindSafe(|| body(&mut world).error())) {
        Ok(None) => match world.finalize() {
            Ok(()) => {
                rank.passed(number);
                exit(0)
            }
            Err(error) => fail(rank, &with_causes(&error)),
        },
        Ok(Some(error)) => (FAILURE, with_causes(&*error)),
        Err(payload) => (PANIC_CODE, panic_text(payload)),
    };
    world.engine().boot().abort(code, &why)
}

/// Ends a rank that has no world.
fn fail(rank: &RankOfTest, why: &str) -> ! {
    rank.failed(why);
    eprintln!("argonet: {why}");
    exit(FAILURE.into())
}
