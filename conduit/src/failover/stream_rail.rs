//! The rail of the stream to a peer in one generation: that of the member that carries it.

use super::link::{Heard, Link, Read, is_later};
use crate::channel::Pieces;
use crate::channel::rail::{Rail, Vital};
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::{Arc, Weak};

/// What carriers know of the rails that they are of.
pub(super) trait Hearing: Send + Sync {
    /// The silence of the peer at the other end of this link.
    fn silence(&self, peer: JobRank, link: &Link) -> Option<Vital>;

    /// The peer has offered something over this link.
    fn hear(&self, peer: JobRank, link: &Arc<Link>, heard: Heard);

    /// The carrier has ended, as its rail does not say.
    fn cut(&self, peer: JobRank);

    /// The link has not taken all of a run: it is pushed until it has.
    fn leave_unsent(&self, peer: JobRank, link: &Arc<Link>);
}

/// A generation.
pub(super) struct Carrier {
    pub(super) peer: JobRank,
    pub(super) link: Arc<Link>,
    pub(super) generation: u64,
    /// A read finds the end.
    is_ended: AtomicBool,
    hearing: Weak<dyn Hearing>,
}

impl Carrier {
    pub(super) fn new(
        peer: JobRank,
        link: Arc<Link>,
        generation: u64,
        hearing: Weak<dyn Hearing>,
    ) -> Self {
        Self {
            peer,
            link,
            generation,
            is_ended: AtomicBool::new(false),
            hearing,
        }
    }

    /// Nothing more passes.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.link.end_stream(self.generation);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

/// Its rail.
#[derive(Clone)]
pub(super) struct StreamRail(pub(super) Arc<Carrier>);

// SAFETY: the link passes the pieces to a rail that keeps the promises, or fewer of them, and says
// how many bytes that took of them.
unsafe impl Rail for StreamRail {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let carrier = &*self.0;
        if carrier.is_ended() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // SAFETY: the caller's promise.
        let written = unsafe { carrier.link.write_stream(carrier.generation, pieces) };
        if carrier.link.has_unsent()
            && let Some(hearing) = carrier.hearing.upgrade()
        {
            hearing.leave_unsent(carrier.peer, &carrier.link);
        }
        if let Err(error) = &written
            && !is_later(error)
        {
            carrier.link.note_end();
        }
        written
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let carrier = &*self.0;
        if carrier.is_ended() {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        match unsafe { carrier.link.read_stream(carrier.generation, pieces) } {
            Read::Bytes(bytes) => Ok(bytes),
            Read::End => {
                carrier.link.note_end();
                Ok(0)
            }
            Read::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Read::Offer(heard) => {
                if let Some(hearing) = carrier.hearing.upgrade() {
                    hearing.hear(carrier.peer, &carrier.link, heard);
                }
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    fn shut(&self) {
        let carrier = &*self.0;
        carrier.end();
        if !carrier.link.lasts {
            carrier.link.rail.shut();
        } else if let Some(hearing) = carrier.hearing.upgrade() {
            hearing.cut(carrier.peer);
        }
    }

    fn queued(&self) -> u64 {
        self.0.link.rail.queued()
    }

    fn vital(&self) -> Option<Vital> {
        let hearing = self.0.hearing.upgrade()?;
        hearing.silence(self.0.peer, &self.0.link)
    }
}
