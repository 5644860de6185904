//! One operation on the memory of several ranks.

use super::World;
use crate::error::Result;
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::op::has_ended;
use crate::process;
use crate::section::Section;
use crate::world::Threading;
use argonet_am::AmError;
use argonet_engine::{Direction, Injection, OpError};
use argonet_event::Event;
use std::collections::VecDeque;

/// A section of one rank's memory, and where its elements are in a buffer here.
pub(crate) struct Moved<T: Global> {
    pub(crate) there: GlobalSlice<T>,
    pub(crate) at: Section,
    pub(crate) of: Section,
}

/// Operations of one call at the same time; further ones wait for the first of them.
const AT_ONCE: usize = 64;

/// Operations that use a buffer until they are complete.
struct UnderWay<'w, M: Threading> {
    world: &'w World<M>,
    events: VecDeque<Event>,
}

impl<M: Threading> UnderWay<'_, M> {
    /// Waits until no more than so many are left.
    fn wait(&mut self, left: usize) -> Result<()> {
        let engine = self.world.engine();
        let mut outcome = Ok(());
        while self.events.len() > left {
            let Some(event) = self.events.pop_front() else {
                break;
            };
            if let Err(error) = process::with(|ctx| engine.wait(ctx, event)) {
                if !has_ended(&error) {
                    // To return would give the buffer back while it is still used.
                    engine.fatal(&format!(
                        "a put or get on several ranks cannot wait for what it has started: {error}"
                    ));
                }
                outcome = outcome.and(Err(error.into()));
            }
        }
        outcome
    }
}

impl<M: Threading> Drop for UnderWay<'_, M> {
    fn drop(&mut self) {
        // An error has been returned before this.
        let _ = self.wait(0);
    }
}

impl<M: Threading> World<M> {
    /// Writes sections of a slice, blocking until all are visible at their targets.
    pub(crate) fn put_each<T: Global>(&self, values: &[T], parts: &[Moved<T>]) -> Result<()> {
        let here = values.as_ptr().cast_mut();
        // SAFETY: the slice is readable, and nothing is written there by a put.
        unsafe { self.run_each(Direction::Put, (here, values.len()), parts) }
    }

    /// Reads into sections of a slice, blocking until all have arrived.
    pub(crate) fn get_each<T: Global>(&self, values: &mut [T], parts: &[Moved<T>]) -> Result<()> {
        let (len, here) = (values.len(), values.as_mut_ptr());
        here.expose_provenance();
        // SAFETY: the slice is writable, and any bytes are values of a `Global` type.
        unsafe { self.run_each(Direction::Get, (here, len), parts) }
    }

    /// Nothing has been moved where a section leaves its slice.
    ///
    /// # Safety
    /// `len` values lie at `here`, which may be written for a get.
    unsafe fn run_each<T: Global>(
        &self,
        direction: Direction,
        (here, len): (*mut T, usize),
        parts: &[Moved<T>],
    ) -> Result<()> {
        if let [part] = parts {
            let (there, here) = ((part.there, &part.at), (here, len, &part.of));
            // SAFETY: this function's contract.
            return unsafe { self.run_strided(direction, there, here) };
        }
        for Moved { there, at, of } in parts {
            Self::check_sections(direction, (*there, at), (len, of))?;
        }
        let mut under_way = UnderWay {
            world: self,
            events: VecDeque::new(),
        };
        let engine = self.engine();
        for Moved { there, at, of } in parts {
            // SAFETY: this function's contract; the sections were checked.
            if unsafe { self.move_rows(direction, (*there, at), (here, of)) } {
                continue;
            }
            under_way.wait(AT_ONCE - 1)?;
            let local = (here.cast_const(), len, of);
            let checked = self.strided(direction, (*there, at), local)?;
            let start = |injection| {
                checked.with(|transfer| {
                    // SAFETY: the values are there until `under_way` has waited, and it was checked
                    // that the sections lie in them; there are no lists.
                    process::with(|ctx| unsafe { engine.vis_start(ctx, transfer, injection) })
                })
            };
            let event = loop {
                // Room and handles that this call has taken come back when it waits for them.
                let left = under_way.events.len();
                if left == 0 {
                    break start(Injection::Blocking)?;
                }
                match start(Injection::Immediate) {
                    Err(OpError::NoHandle { .. } | OpError::Am(AmError::Full { .. })) => {
                        under_way.wait(left - 1)?;
                    }
                    started => break started?,
                }
            };
            if !event.is_done() {
                under_way.events.push_back(event);
            }
        }
        under_way.wait(0)
    }
}
