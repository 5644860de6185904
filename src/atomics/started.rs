//! Operations under way.
#![allow(unsafe_code)]

use super::Atomic;
use crate::error::Result;
use crate::global::GlobalPtr;
use crate::op::{Op, has_ended};
use crate::process;
use crate::world::{Threading, World};
use argonet_engine::{self as engine, Injection, OpError};
use argonet_event::Event;
use core::ptr::NonNull;

/// Where the value before will be.
///
/// It outlives the operation: dropped before that is complete it is leaked.
struct Landing<T> {
    place: NonNull<T>,
    complete: bool,
}

// SAFETY: it owns the place, as the box did that it was made of.
unsafe impl<T: Send> Send for Landing<T> {}

impl<T> Landing<T> {
    fn new(zero: T) -> Self {
        Self {
            place: NonNull::from(Box::leak(Box::new(zero))),
            complete: false,
        }
    }

    /// No operation writes there any more.
    fn close(&mut self) {
        self.complete = true;
    }
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        if self.complete {
            // SAFETY: leaked by `new`, and no operation writes there any more.
            drop(unsafe { Box::from_raw(self.place.as_ptr()) });
        }
    }
}

/// Starts the operation; its result is `take` of the value before.
pub(super) fn start<'w, M: Threading, T: Atomic, R: 'static>(
    world: &'w World<M>,
    at: GlobalPtr<T>,
    what: engine::Atomic<T>,
    take: impl Fn(T) -> R + Send + 'static,
) -> Result<Op<'w, R, M>> {
    let mut landing = Landing::new(T::of_bits(0));
    let (target, result) = (World::<M>::target_of(at), landing.place.as_ptr());
    // SAFETY: the place is there until the operation is complete, as it is leaked otherwise.
    let started = process::with(|ctx| unsafe {
        let engine = world.engine();
        engine.atomic_start(ctx, target, what, result, Injection::Blocking)
    });
    // An operation that was not started writes nothing.
    let event = started.inspect_err(|_| landing.close())?;
    let mut look = move |world: &World<M>| -> Option<Result<R>> {
        match is_done(world, event) {
            Ok(false) => None,
            Ok(true) => {
                landing.close();
                // SAFETY: the operation is complete, and its result lies there.
                Some(Ok(take(unsafe { landing.place.read() })))
            }
            Err(error) => {
                if has_ended(&error) {
                    landing.close();
                }
                Some(Err(error.into()))
            }
        }
    };
    if event.is_done()
        && let Some(result) = look(world)
    {
        return Ok(Op::done(world, result?));
    }
    Ok(Op::waiting(world, look))
}

fn is_done<M: Threading>(world: &World<M>, event: Event) -> Result<bool, OpError> {
    process::with(|ctx| world.engine().peek(ctx, event))
}
