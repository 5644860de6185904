//! Memory of ranks that have all bound all of it, on one host: the kernel copies, so that the owner
//! need not poll, and nothing is copied twice.
//!
//! Where the kernel does not permit that, messages do it.

use super::super::core::Engine;
use super::super::regions::Outside;
use super::super::transfer::Side;
use super::wire::{Range, Refusal};
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_segment::cross_memory::{CrossMemoryError, read_process, write_process};
use argonet_segment::registration::{MappedMemory, NotMapped, PageRange};
use argonet_segment::{PageKind, SharedBytes};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// Returns the process of a rank; `None` if it is on another host.
pub type ProcessOf = Box<dyn Fn(JobRank) -> Option<u32> + Send + Sync>;

/// The processes whose memory the kernel copies.
#[derive(Default)]
pub(super) struct Cross {
    processes: OnceLock<ProcessOf>,
    /// Whether the kernel has refused a copy.
    ///
    /// Set by a thread whose copy it refuses, read by all threads; Relaxed, as nothing depends on
    /// when a thread learns of it.
    refused: AtomicBool,
}

impl<C: Conduit> Engine<C> {
    /// Lets peers reach all memory of this process by address, through the first endpoint.
    ///
    /// All ranks of the job do the same before they communicate. With `processes`, the kernel
    /// copies wherever it permits.
    ///
    /// # Safety
    /// As [`Regions::bind_everything`](crate::Regions::bind_everything).
    pub unsafe fn bind_everything(&self, processes: Option<ProcessOf>) {
        // SAFETY: the caller's promise.
        unsafe { self.bound.regions.bind_everything() };
        if let Some(processes) = processes {
            let _ = self.bound.cross.processes.set(processes);
        }
    }

    /// Whether the kernel copies between this rank and its peers, as far as it has been asked.
    pub fn crosses(&self) -> bool {
        let Cross { processes, refused } = &self.bound.cross;
        processes.get().is_some() && !refused.load(Ordering::Relaxed)
    }

    /// Has the kernel do a transfer; false if it does not, and nothing has been done.
    ///
    /// Ends the job if memory is missing.
    ///
    /// # Safety
    /// This process's side of it is readable or writable.
    pub(super) unsafe fn cross(&self, rank: JobRank, range: Range, side: Side) -> bool {
        if !self.bound.regions.is_everything(range.endpoint) || !self.crosses() {
            return false;
        }
        let process = self.bound.cross.processes.get();
        let Some(process) = process.and_then(|process| process(rank)) else {
            return false;
        };
        let (address, len) = (range.address, range.len as usize);
        let copied = match side {
            // SAFETY: the peer has bound all its memory, so that it expects writes; our side is the
            // caller's promise.
            Side::Put(src) => unsafe { write_process(process, address, src, len) },
            // SAFETY: as above.
            Side::Get(dst) => unsafe { read_process(process, address, dst, len) },
        };
        match copied {
            Ok(()) => true,
            Err(CrossMemoryError::Missing { copied, .. }) => {
                self.missing(rank, process, range, side, copied)
            }
            // The job is about to end.
            Err(CrossMemoryError::Gone { .. }) => false,
            Err(_) => {
                self.bound.cross.refused.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Writes the payload of a long reply to where it goes; false if messages have to.
    pub(super) fn cross_reply(&self, rank: JobRank, range: Range, bytes: SharedBytes<'_>) -> bool {
        // SAFETY: the view is readable.
        rank != self.rank && unsafe { self.cross(rank, range, Side::Put(bytes.as_ptr())) }
    }

    /// Says on which side memory is missing, `copied` bytes after the beginning.
    #[cold]
    fn missing(&self, rank: JobRank, process: u32, range: Range, side: Side, copied: usize) -> ! {
        let (own, what) = match side {
            Side::Put(src) => (src.addr(), "put"),
            Side::Get(dst) => (dst.addr(), "get"),
        };
        let page = PageKind::Normal.page_bytes() as usize;
        let rest = range.len as usize - copied;
        let pages = PageRange::around(own + copied, rest.min(page), page);
        let here = pages.map(|pages| MappedMemory.probe(pages));
        if let Ok(Err(NotMapped::Hole { at })) = here {
            let (me, len, at) = (self.rank, range.len, at.max(own));
            self.fatal(&format!(
                "rank {me}: a {what} of {len} bytes between {own:#x} here and {:#x} of rank {rank} cannot be done: nothing is mapped at {at:#x} here",
                range.address
            ));
        }
        let at = range.address.wrapping_add(copied as u64);
        let mut byte = 0u8;
        // SAFETY: a variable of this function.
        let readable = unsafe { read_process(process, at, &raw mut byte, 1) }.is_ok();
        let refusal = Refusal {
            what: side.handler(),
            range,
            outside: match side {
                Side::Put(_) if readable => Outside::ReadOnly(at),
                _ => Outside::Hole(at),
            },
        };
        self.fatal(&refusal.message(self.rank, rank))
    }
}
