//! A rank as a coroutine: blocking code that can be suspended wherever it waits.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicPtr, Ordering};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Bytes of a coroutine's stack.
const STACK_BYTES: usize = 512 * 1024;

/// The order for a suspended rank when it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Go on.
    Go,
    /// Unwind: the run is over.
    End,
}

/// With this a rank's coroutine unwinds when the run is over.
pub(crate) struct Ended;

/// Where a rank's code suspends itself.
///
/// Shared by everything that waits on the rank's behalf.
#[derive(Debug, Default)]
pub(crate) struct Fiber {
    /// The coroutine's yielder; null as long as it does not run.
    ///
    /// Written when the coroutine begins and ends, by itself; read by itself.
    yielder: AtomicPtr<Yielder<Order, ()>>,
}

impl Fiber {
    /// Gives control to the scheduler, until it resumes this rank.
    ///
    /// Only called by code that runs on this rank's coroutine, with no lock of the cluster held.
    pub(crate) fn suspend(&self) {
        let yielder = self.yielder.load(Ordering::Relaxed);
        assert!(!yielder.is_null(), "suspended outside its coroutine");
        // SAFETY: the coroutine stores its yielder's address while it runs and clears it before it
        // ends; only its own code calls, as its conduit and bootstrap belong to it alone.
        let order = unsafe { &*yielder }.suspend(());
        if order == Order::End {
            resume_unwind(Box::new(Ended));
        }
    }

    /// Ends the rank's code from inside.
    pub(crate) fn end(&self) -> ! {
        resume_unwind(Box::new(Ended))
    }
}

/// How a rank's code ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It returned.
    Returned,
    /// It was ended, by itself or by the scheduler.
    Ended,
    /// It panicked.
    Panicked(String),
}

/// A rank's code, running or suspended.
pub(crate) struct Strand {
    coroutine: Coroutine<Order, (), End, DefaultStack>,
}

impl Strand {
    /// Code that has not begun yet.
    pub(crate) fn new(fiber: Arc<Fiber>, body: impl FnOnce() + 'static) -> std::io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let coroutine = Coroutine::with_stack(stack, move |yielder, first: Order| {
            if first == Order::End {
                return End::Ended;
            }
            let address = core::ptr::from_ref(yielder).cast_mut();
            fiber.yielder.store(address, Ordering::Relaxed);
            let outcome = catch_unwind(AssertUnwindSafe(body));
            fiber
                .yielder
                .store(core::ptr::null_mut(), Ordering::Relaxed);
            match outcome {
                Ok(()) => End::Returned,
                Err(payload) if payload.is::<Ended>() => End::Ended,
                Err(payload) => End::Panicked(said(&*payload)),
            }
        });
        Ok(Self { coroutine })
    }

    /// Lets it run until it suspends itself or ends.
    pub(crate) fn resume(&mut self, order: Order) -> Option<End> {
        match self.coroutine.resume(order) {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(end) => Some(end),
        }
    }
}

/// The text of a panic.
fn said(payload: &(dyn core::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_owned())
}
