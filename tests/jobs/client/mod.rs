//! Client code that the library calls: effects of its panics, and of its calls into the library.
//!
//! In the midst of the library's work (handlers, remote procedures with their arguments and
//! results, combinations) a panic ends the job and a call is refused. Code that runs in the
//! client's own call (conditions, wakers, arguments and results at the caller) may panic and may
//! call.

mod combine;
mod own_call;
mod remote;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use argonet::{Reduction, Threading, World};

use crate::support::{Job, Program, Test};

pub(crate) const TESTS: &[&[Test]] = &[combine::TESTS, own_call::TESTS, remote::TESTS];

pub(crate) const PROGRAMS: &[&[Program]] =
    &[combine::PROGRAMS, own_call::PROGRAMS, remote::PROGRAMS];

/// The exit code of a job that a panic of client code has ended.
const PANIC_CODE: i32 = 101;

/// Seconds after which a job that should end by itself is ended.
const LIMIT_S: u32 = 60;

/// Runs a program whose ranks all end well.
fn ends_well(ranks: u32, program: &str) {
    Job::launched_for(LIMIT_S, ranks, program).run().well();
}

/// Runs a program that a panic of client code ends, with a message that has these parts.
///
/// No rank goes on after the panic.
fn ends_by_panic(ranks: u32, program: &str, parts: &[&str]) {
    let outcome = Job::launched_for(LIMIT_S, ranks, program).run();
    let outcome = outcome.failed(parts);
    assert_eq!(outcome.code(), Some(PANIC_CODE), "{outcome:#?}");
    assert!(!outcome.out.contains(WENT_ON), "{outcome:#?}");
}

/// Output of a rank that goes on after a panic that should have ended the job.
const WENT_ON: &str = "went on after the panic";

/// Calls `f`, and says so if a panic leaves it.
fn goes_on_after<R>(f: impl FnOnce() -> R) {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    if caught.is_err() {
        println!("{WENT_ON}");
    }
}

argonet::rpc! {
    fn one() -> u32 { 1 }
}

/// A world, as client code that the library calls gets hold of it.
trait Reenter {
    /// Results of calls that communicate.
    fn results(&self) -> Vec<argonet::Result<()>>;

    /// Calls that complete here alone.
    fn works(&self);
}

impl<M: Threading> Reenter for World<M> {
    fn results(&self) -> Vec<argonet::Result<()>> {
        let all = self.collectives();
        vec![
            self.poll().map(drop),
            self.wait_until(|| true),
            self.barrier(),
            self.drain(),
            self.rpc(self.rank(), &one, ()).map(drop),
            self.reduce_all(Reduction::Sum, &mut [1u32]),
            all.reduce_all(Reduction::Sum, &mut [1u32]),
            all.reduce_all(Reduction::Sum, &mut [1u32; 5000]),
            all.start_barrier().map(drop),
            all.start_reduce_all(Reduction::Sum, vec![1u32].into())
                .map(drop),
            all.start_reduce_all(Reduction::Sum, vec![1u32; 5000].into())
                .map(drop),
        ]
    }

    fn works(&self) {
        self.poll().expect("a poll");
        self.wait_until(|| true).expect("a wait");
        let result = self.rpc(self.rank(), &one, ()).expect("a call").wait();
        assert_eq!(result.expect("a result"), 1);
    }
}

thread_local! {
    /// The way by which client code gets hold of the world.
    static WORLD: RefCell<Option<Rc<dyn Reenter>>> = const { RefCell::new(None) };
    /// Number of calls that client code has tried where it may not.
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

/// Gives client code of this thread the world until the result is dropped.
fn lend<M: Threading>(world: World<M>) -> Rc<World<M>> {
    let world = Rc::new(world);
    let held: Rc<dyn Reenter> = world.clone();
    WORLD.set(Some(held));
    world
}

/// Takes the world back, to finalize it.
fn take_back<M: Threading>(world: Rc<World<M>>) -> World<M> {
    WORLD.set(None);
    Rc::try_unwrap(world).unwrap_or_else(|_| panic!("the world is held elsewhere"))
}

/// Calls into the library from where that is refused.
fn refused() {
    let Some(world) = WORLD.with_borrow(Clone::clone) else {
        return;
    };
    for (at, result) in world.results().into_iter().enumerate() {
        let error = result.expect_err(&format!("call {at} is refused"));
        let text = error.to_string();
        assert!(text.contains("inside an active-message handler"), "{text}");
    }
    REFUSED.set(REFUSED.get() + 1);
}

/// Calls into the library from where that is allowed.
fn allowed() {
    if let Some(world) = WORLD.with_borrow(Clone::clone) {
        world.works();
    }
}
