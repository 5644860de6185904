//! Long sends between neighbors: the receiver reads the bytes where they lie, in a segment that is
//! mapped here, or anywhere in the sender's process by way of the kernel.
//!
//! One copy, and nothing passes through messages.
#![allow(unsafe_code)]

use super::wire::Form;
use crate::ProcessOf;
use crate::core::Engine;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::Conduit;
use argonet_segment::bulk;
use argonet_segment::cross_memory::{CrossMemoryError, read_process};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// Where the bytes of an offer lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lies {
    /// At an address of the sender's process.
    Address(u64),
    /// At an offset of its segment.
    Segment(u64),
}

impl Lies {
    /// The form and the position for the header of an offer.
    pub(super) fn to_wire(self) -> (Form, u64) {
        match self {
            Self::Address(address) => (Form::Offer, address),
            Self::Segment(offset) => (Form::OfferSegment, offset),
        }
    }

    pub(super) fn read(form: Form, at: u64) -> Option<Self> {
        match form {
            Form::Offer => Some(Self::Address(at)),
            Form::OfferSegment => Some(Self::Segment(at)),
            _ => None,
        }
    }
}

/// How memory of neighbors that is not mapped is read.
#[derive(Default)]
pub(super) struct CrossMemory {
    processes: OnceLock<ProcessOf>,
    /// Whether the kernel has refused a copy.
    ///
    /// Set by a thread whose copy it refuses, read by all threads; Relaxed, as nothing depends on
    /// when a thread learns of it.
    refused: AtomicBool,
}

impl<C: Conduit> Engine<C> {
    /// Has the kernel copy long data of collective operations between the processes of this host,
    /// wherever it permits that.
    ///
    /// `processes` gives the process of a rank.
    ///
    /// Returns false if `processes` was set before.
    pub fn copy_across(&self, processes: ProcessOf) -> bool {
        self.background
            .collectives
            .cross_memory
            .processes
            .set(processes)
            .is_ok()
    }

    /// Where bytes lie that this rank offers.
    pub(super) fn lies(&self, at: *const u8, len: usize) -> Lies {
        match self.directory().translate_range(at, len) {
            Some((rank, offset)) if rank == self.rank => Lies::Segment(offset.0),
            // Where no neighbor can read it, the offer does not show the address: simulated runs
            // stay the same.
            _ if self
                .background
                .collectives
                .cross_memory
                .processes
                .get()
                .is_none() =>
            {
                Lies::Address(0)
            }
            _ => Lies::Address(at.addr() as u64),
        }
    }

    /// Reads bytes of a peer where they lie; whether that is possible.
    ///
    /// # Safety
    /// `into` is writable for `len` bytes, and the peer does not change the offered bytes
    /// meanwhile.
    pub(super) unsafe fn pull(
        &self,
        source: JobRank,
        lies: Lies,
        into: *mut u8,
        len: usize,
    ) -> bool {
        match lies {
            Lies::Segment(offset) => {
                let offset = SegmentOffset(offset);
                if !self.ensure_mapped(source, offset, len).unwrap_or(false) {
                    return false;
                }
                let Some(place) = self.directory.resolve(source, offset, len) else {
                    return false;
                };
                // SAFETY: the directory has checked the peer's side, the caller promises ours; a
                // peer's segment and this call's memory are apart, or the schedule would receive
                // into memory that it sends from.
                unsafe { bulk::copy(into, place.as_ptr(), len) };
                true
            }
            // SAFETY: the caller's promise.
            Lies::Address(address) => unsafe { self.read_across(source, address, into, len) },
        }
    }

    /// # Safety
    /// As [`pull`](Self::pull).
    unsafe fn read_across(&self, source: JobRank, address: u64, into: *mut u8, len: usize) -> bool {
        let cross_memory = &self.background.collectives.cross_memory;
        if source == self.rank || cross_memory.refused.load(Ordering::Relaxed) {
            return false;
        }
        let Some(process) = cross_memory
            .processes
            .get()
            .and_then(|process| process(source))
        else {
            return false;
        };
        // SAFETY: the caller's promise.
        match unsafe { read_process(process, address, into, len) } {
            Ok(()) => true,
            // A peer that keeps to the rules offers no unmapped memory; another fails when it sends
            // the bytes itself. A peer that is gone ends the job anyway.
            Err(CrossMemoryError::Missing { .. } | CrossMemoryError::Gone { .. }) => false,
            Err(_) => {
                cross_memory.refused.store(true, Ordering::Relaxed);
                false
            }
        }
    }
}
