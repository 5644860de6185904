//! Client code that runs in the client's own call, on its own stack: conditions, wakers, futures.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use argonet::World;

use super::{allowed, ends_well, lend, one, take_back};
use crate::support::{Done, Program, Test};

pub(super) const TESTS: &[Test] = &[
    ("client_a_condition_may_panic_and_call", || {
        for ranks in [1, 2, 3] {
            ends_well(ranks, "condition");
            ends_well(ranks, "condition-par");
        }
    }),
    ("client_a_waker_may_panic_and_call", || {
        for ranks in [1, 2, 3] {
            ends_well(ranks, "waker");
        }
    }),
];

pub(super) const PROGRAMS: &[Program] = &[
    ("condition", || condition(World::init()?)),
    ("condition-par", || condition(World::builder().build_par()?)),
    ("waker", waker),
];

/// Calls `f`, which panics; nothing is printed.
fn panics<R>(f: impl FnOnce() -> R) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = catch_unwind(AssertUnwindSafe(f));
    std::panic::set_hook(hook);
    assert!(
        caught.is_err(),
        "a panic of the client's goes to the client"
    );
}

fn condition<M: argonet::Threading>(world: World<M>) -> Done {
    let world = lend(world);
    let long = Duration::from_secs(60);
    // At the first look, and after some polls.
    for looks in [0, 3] {
        let left = Cell::new(looks);
        let look = || match left.get() {
            0 => panic!("on purpose"),
            looks => {
                left.set(looks - 1);
                false
            }
        };
        panics(|| world.wait_until(look));
        left.set(looks);
        panics(|| world.wait_timeout(long, look));
        let future = std::future::poll_fn(|_| match look() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        left.set(looks);
        panics(|| world.block_on(future));
    }
    for _ in 0..3 {
        world.barrier()?;
        // A condition may do all that a call may: even meet the other ranks.
        let mut met = 0;
        world.wait_until(|| {
            allowed();
            world.barrier().expect("a barrier");
            let meet = world.collectives().start_barrier().expect("a barrier");
            meet.wait().expect("its end");
            met += 1;
            met == 3
        })?;
        // The same of a future.
        let mut met = 0;
        world.block_on(std::future::poll_fn(|_| {
            allowed();
            world.barrier().expect("a barrier");
            met += 1;
            match met {
                3 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        }));
        world.barrier()?;
    }
    Ok(take_back(world).finalize()?)
}

/// Does what its number says, and counts.
struct Wakes {
    panics: bool,
    woken: AtomicU32,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        allowed();
        assert!(!self.panics, "on purpose");
    }
}

fn waker() -> Done {
    let world = lend(World::init()?);
    world.barrier()?;
    for panics_too in [false, true] {
        for _ in 0..20 {
            let wakes = Arc::new(Wakes {
                panics: panics_too,
                woken: AtomicU32::new(0),
            });
            let waker = Waker::from(Arc::clone(&wakes));
            let mut context = Context::from_waker(&waker);
            let mut op = world.rpc(world.rank_offset(1), &one, ())?;
            let mut look = || Pin::new(&mut op).poll(&mut context);
            // A waker is called whenever the operation is not complete.
            let before = || wakes.woken.load(Ordering::Relaxed);
            let polled = match panics_too {
                false => look(),
                true => {
                    let hook = std::panic::take_hook();
                    std::panic::set_hook(Box::new(|_| {}));
                    let polled = catch_unwind(AssertUnwindSafe(look));
                    std::panic::set_hook(hook);
                    assert_eq!(polled.is_err(), before() == 1);
                    polled.unwrap_or(Poll::Pending)
                }
            };
            match polled {
                Poll::Ready(result) => assert_eq!(result?, 1),
                // It is as it was.
                Poll::Pending => assert_eq!(op.wait()?, 1),
            }
        }
    }
    world.barrier()?;
    Ok(take_back(world).finalize()?)
}
