//! The handlers that C has registered with an endpoint.

use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use argonet_am::{AmError, CLIENT_BASE, Delivery, HANDLERS, HandlerTable, MAX_ARGS};
use argonet_base::HandlerIndex;
use parking_lot::Mutex;

use crate::am::call;
use crate::am::entry::{CATEGORIES, Entry, KINDS, LONG, MEDIUM, SHORT};
use crate::job::Job;

/// Handlers that a client can have.
const COUNT: usize = HANDLERS - CLIENT_BASE.0 as usize;

/// Handlers by index.
pub(crate) struct Handlers {
    /// Null where there is none.
    ///
    /// An entry is complete before it gets here (Release and Acquire), and stays for good.
    entries: [AtomicPtr<Entry>; COUNT],
    /// Held by a thread that registers handlers.
    registering: Mutex<()>,
}

impl Default for Handlers {
    fn default() -> Self {
        Self {
            entries: [const { AtomicPtr::new(null_mut()) }; COUNT],
            registering: Mutex::new(()),
        }
    }
}

/// Why handlers cannot be registered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An entry of the table is not allowed.
    Bad(String),
    /// No index is left.
    Full(String),
}

impl Handlers {
    /// Lets messages for all indices of clients come here, so that handlers registered later are
    /// found.
    pub(crate) fn register(&'static self, table: &mut HandlerTable) -> Result<(), AmError> {
        for (index, entry) in (CLIENT_BASE.0..=u8::MAX).zip(&self.entries) {
            let run = move |delivery: &mut Delivery<'_>| {
                // SAFETY: null, or an entry that was leaked.
                match unsafe { entry.load(Ordering::Acquire).as_ref() } {
                    Some(entry) => call::run(entry, delivery),
                    None => call::no_handler(delivery),
                }
            };
            table.register_at(
                HandlerIndex(index),
                &format!("C handler {index}"),
                Box::new(run),
            )?;
        }
        Ok(())
    }

    /// The same for a further endpoint, which takes messages from now on.
    ///
    /// Where nothing is registered with it, the primordial endpoint's handlers run: the
    /// specification leaves that open, and clients have relied on it.
    pub(crate) fn open(&'static self, job: &'static Job, index: u32) -> Result<(), AmError> {
        let mut table = HandlerTable::default();
        for index in CLIENT_BASE.0..=u8::MAX {
            let run = move |delivery: &mut Delivery<'_>| match self.entry_or(job.handlers, index) {
                Some(entry) => call::run(entry, delivery),
                None => call::no_handler(delivery),
            };
            let name = format!("C handler {index}");
            table.register_at(HandlerIndex(index), &name, Box::new(run))?;
        }
        job.joined.engine.open_endpoint(index, table)
    }

    /// The entry of an index here or, where there is none, among others, for as long as the process
    /// lives.
    pub(crate) fn entry_or(&self, others: &Self, index: u8) -> Option<&'static Entry> {
        self.entry(index).or_else(|| others.entry(index))
    }

    /// The entry of an index, for as long as the process lives.
    pub(crate) fn entry(&self, index: u8) -> Option<&'static Entry> {
        let at = index.checked_sub(CLIENT_BASE.0)?;
        // SAFETY: null, or an entry that was leaked.
        unsafe {
            self.entries[usize::from(at)]
                .load(Ordering::Acquire)
                .as_ref()
        }
    }

    /// Registers all of a table, or nothing; writes indices back where the table has 0.
    pub(crate) fn add(&self, table: &mut [Entry]) -> Result<(), Refusal> {
        for (at, entry) in table.iter().enumerate() {
            check(entry).map_err(|why| Refusal::Bad(format!("entry {at} {why}")))?;
        }
        self.place(table)
    }

    /// The same for handlers of which GASNet-1 says no more than their index and function.
    pub(crate) fn add_untyped(&self, table: &mut [Entry]) -> Result<(), Refusal> {
        for (at, entry) in table.iter().enumerate() {
            check_untyped(entry).map_err(|why| Refusal::Bad(format!("entry {at} {why}")))?;
        }
        self.place(table)
    }

    /// Gives checked entries their places.
    fn place(&self, table: &mut [Entry]) -> Result<(), Refusal> {
        let _one_at_a_time = self.registering.lock();
        let mut taken: [bool; COUNT] =
            core::array::from_fn(|at| !self.entries[at].load(Ordering::Relaxed).is_null());
        for (at, entry) in table.iter().enumerate() {
            if entry.index == 0 {
                continue;
            }
            let slot = &mut taken[usize::from(entry.index - CLIENT_BASE.0)];
            if core::mem::replace(slot, true) {
                let (index, name) = (entry.index, entry.named());
                let why = format!("entry {at} ({name}) asks for index {index}, which is taken");
                return Err(Refusal::Bad(why));
            }
        }
        let mut chosen = Vec::with_capacity(table.len());
        for (at, entry) in table.iter().enumerate() {
            if entry.index != 0 {
                chosen.push(entry.index);
                continue;
            }
            let Some(slot) = taken.iter().rposition(|taken| !taken) else {
                let why = format!(
                    "no index is left for entry {at} ({}): there are {COUNT}",
                    entry.named()
                );
                return Err(Refusal::Full(why));
            };
            taken[slot] = true;
            chosen.push(CLIENT_BASE.0 + slot as u8);
        }
        for (entry, index) in table.iter_mut().zip(chosen) {
            // Nothing else is written: a table without zeros may be read-only.
            if entry.index == 0 {
                entry.index = index;
            }
            let kept = Box::into_raw(Box::new(*entry));
            self.entries[usize::from(index - CLIENT_BASE.0)].store(kept, Ordering::Release);
        }
        Ok(())
    }
}

/// Checks index and function of an entry, apart from other entries.
fn check_untyped(entry: &Entry) -> Result<(), String> {
    let name = entry.named();
    if entry.index != 0 && entry.index < CLIENT_BASE.0 {
        return Err(format!(
            "({name}) asks for index {}; clients have {} to 255, and 0 for any",
            entry.index, CLIENT_BASE.0
        ));
    }
    let index = entry.index;
    if entry.function.is_none() {
        return Err(format!("({name}, index {index}) has no function"));
    }
    Ok(())
}

/// Checks an entry, apart from other entries.
fn check(entry: &Entry) -> Result<(), String> {
    check_untyped(entry)?;
    let (name, index) = (entry.named(), entry.index);
    if entry.flags & !(CATEGORIES | KINDS) != 0
        || ![SHORT, MEDIUM, LONG, MEDIUM | LONG].contains(&(entry.flags & CATEGORIES))
        || entry.flags & KINDS == 0
    {
        return Err(format!(
            "({name}, index {index}) has flags {:#x}; they must be one of GEX_FLAG_AM_SHORT, MEDIUM, LONG, MEDLONG and one of GEX_FLAG_AM_REQUEST, REPLY, REQREP",
            entry.flags
        ));
    }
    if entry.nargs as usize > MAX_ARGS {
        return Err(format!(
            "({name}, index {index}) has {} arguments; at most {MAX_ARGS} are allowed",
            entry.nargs
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "handlers_tests.rs"]
mod tests;
