//! Taking what has come from the queue.

use super::shared::Shared;
use crate::channel::rail::RailId;
use argonet_nic::datagram::DatagramQueue;

/// Batches that one look takes at most.
const MOST_BATCHES: u32 = 16;

// spec U13: few receives are put off.
/// Batches after which acknowledgements wait no longer for something to ride on.
const MOST_WITHHELD: u32 = 8;

/// What the one thread needs that takes.
pub(super) struct Taking<Q: DatagramQueue> {
    buffers: Q::ReceiveBuffers,
    /// Batches since acknowledgements were last sent that rode on nothing.
    withheld: u32,
}

impl<Q: DatagramQueue> Taking<Q> {
    pub(super) fn new(queue: &Q) -> Self {
        Self {
            buffers: queue.receive_buffers(),
            withheld: 0,
        }
    }

    // spec U6: deliver first; what else there is to do waits for the next pass.
    /// Takes what has come; whether anything had.
    ///
    /// A read takes one batch after the other, as long as it has room for a further datagram. What
    /// it does not take would be copied twice more, so the system keeps that meanwhile.
    ///
    /// Acknowledgements wait for what the rank sends next. If that is nothing, the next look sends
    /// them that finds nothing.
    pub(super) fn take(&mut self, shared: &Shared<Q>, mut read: Option<&mut Read<'_>>) -> bool {
        let mut any = false;
        for _ in 0..MOST_BATCHES {
            // Most looks find nothing. The thread sees to what time demands.
            let mut locked = None;
            let take = &mut |datagram: &mut [u8]| {
                let locked = locked.get_or_insert_with(|| shared.lock());
                locked.arrive(datagram, read.as_deref_mut());
            };
            let batch = shared.queue.receive(&mut self.buffers, take);
            match locked {
                Some(locked) if self.withheld < MOST_WITHHELD => {
                    self.withheld = match locked.end_promptly() {
                        true => self.withheld + 1,
                        false => 0,
                    };
                }
                Some(locked) => {
                    self.withheld = 0;
                    locked.end();
                }
                None if self.withheld > 0 && !any => {
                    self.withheld = 0;
                    shared.lock().end();
                }
                None => {}
            }
            any |= batch.any;
            let takes_more = read.as_ref().is_some_and(|read| !read.is_full);
            if !batch.full || !takes_more {
                break;
            }
        }
        any
    }
}

/// A read that takes what arrives meanwhile.
pub(super) struct Read<'a> {
    rail: RailId,
    /// Bytes that it takes at most.
    room: usize,
    copy: &'a mut dyn FnMut(&[u8]) -> usize,
    copied: usize,
    /// It has no room for another datagram as long as the last one.
    is_full: bool,
}

impl<'a> Read<'a> {
    /// Of a rail; `copy` says how many bytes it takes, in all no more than `room`.
    pub(super) fn new(rail: RailId, room: usize, copy: &'a mut dyn FnMut(&[u8]) -> usize) -> Self {
        Self {
            rail,
            room,
            copy,
            copied: 0,
            is_full: false,
        }
    }

    pub(super) fn is_of(&self, rail: RailId) -> bool {
        self.rail == rail
    }

    pub(super) fn copied(&self) -> usize {
        self.copied
    }

    /// Takes the next bytes of the rail, as far as there is room; the others.
    pub(super) fn take<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let taken = (self.copy)(bytes).min(bytes.len());
        self.copied += taken;
        self.is_full = self.room.saturating_sub(self.copied) < bytes.len();
        &bytes[taken..]
    }
}
