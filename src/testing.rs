//! Tests by the attribute [`test`](macro@crate::test): the process of the harness starts a job, and
//! each rank calls the function.

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
/// It needs the feature `test`: `argonet = { path = "...", features = ["test"] }` below
/// `[dev-dependencies]`. The function gets the world, as that of [`run`](crate::run()) does, and
/// returns `()`, or `Result<(), E>` with `E: Into<Box<dyn Error>>`. The test fails if the function
/// panics or returns an error on any rank: that ends the job, and the message says which rank it
/// was. A rank passes when the function has returned and the rank has left the job. A rank that
/// exits earlier fails the test, even with code 0.
///
/// ```
/// use argonet::{Result, SharedArray, World};
///
/// #[argonet::test(ranks = [1, 3], conduit = "tcp", neighborhood_size = 1)]
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
/// | option | type | meaning | default |
/// | --- | --- | --- | --- |
/// | `ranks = 4`, `ranks = [1, 4]` | `u32` | number of ranks; a list makes a job for each | 2 |
/// | `conduit = "tcp"`, `conduit = ["smp", "tcp"]` | `&str` | conduit between ranks that share no memory; a list as above | `ARGONET_CONDUIT`, else `smp` |
/// | `neighborhood_size = 1` | `u32` | most ranks that share memory; 0 for all of them | `GASNET_SUPERNODE_MAXSIZE`, else all |
/// | `timeout = 10` | `u64` | seconds after which a job fails; before its end it reports what each rank waits for | 60 |
/// | `env("NAME" = "value", ...)` | `&str` | further variables of the ranks' environment | |
///
/// All ranks are on this host, whatever settings say of hosts, and share memory: without
/// `neighborhood_size = 1` nothing goes over the conduit `tcp`. Over `smp` that option changes
/// nothing. The values are constant expressions. A list is written in brackets here, and an
/// expression with a comma outside of brackets needs parentheses. Two lists make a job for each
/// combination, one after the other, each with the whole `timeout`; the first job that fails ends
/// the test. `conduit` and `neighborhood_size` win over their variables in `env`.
///
/// `#[ignore]`, `#[should_panic]` and `#[cfg]` are written beside it as beside `#[test]`. The
/// `expected` of `should_panic` is compared with the whole message: the job, its code, the first
/// rank that failed and its panic or error. Without `expected` any failure of the job will do; and
/// of several jobs only the first one that fails counts. Filters, tests that run at the same time
/// and nextest work: to the harness it is one test. The harness captures the output of the ranks;
/// each line begins with the rank. In documentation tests the attribute does nothing.
///
/// The world has the default settings, others come by `env`, and the functions of
/// [`am!`](crate::am!) and [`rpc!`](crate::rpc!). What only a [`Builder`](crate::Builder) can
/// register is for tests that start a whole program. A function with a `&mut World<Par>` gets a
/// world for many threads.
///
/// The ranks are started anew from the test program, and find their test by its name. So the
/// harness must accept `--exact NAME --include-ignored --nocapture --test-threads=1`, as that of
/// the compiler does. Code that runs before `main` runs in the launcher and in every rank, and must
/// start no thread. The expansion uses the path `::argonet`, so the dependency must have that name.
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
    pub neighborhood_size: Option<u32>,
    pub timeout_s: u64,
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
        !test.ranks.is_empty(),
        "`ranks = []` makes no job: name a number of ranks"
    );
    assert!(
        !test.conduits.is_empty(),
        "`conduit = []` makes no job: name a conduit, or leave the option out"
    );
    assert!(test.timeout_s > 0, "`timeout = 0`: give 1 second or more");
    for &conduit in test.conduits {
        for &ranks in test.ranks {
            let job = TestJob {
                name,
                ranks,
                conduit,
                neighborhood_size: test.neighborhood_size,
                variables: test.variables,
                timeout: Duration::from_secs(test.timeout_s),
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
        true => rank.restore_output().map_err(|error| error.to_string()),
        false => Err(format!(
            "the harness ran the test {name}, not {}: it must select one test by `--exact`",
            rank.name()
        )),
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
