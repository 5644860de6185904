//! A rail in memory that takes and gives any number of bytes at a time, or none.

use crate::channel::rail::Rail;
use crate::channel::stream::{Cursor, Pieces};
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Chance by a seed, which clones share.
#[derive(Clone)]
pub(super) struct Chance(Arc<Mutex<Xoshiro256PlusPlus>>);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Xoshiro256PlusPlus::seed_from_u64(
            seed,
        ))))
    }

    /// A number below `below`.
    pub(super) fn below(&self, below: usize) -> usize {
        (self.0.lock().next_u64() % below.max(1) as u64) as usize
    }
}

#[derive(Default)]
struct OneWay {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// One end.
#[derive(Clone)]
pub(super) struct Pipe {
    here: Arc<Mutex<OneWay>>,
    there: Arc<Mutex<OneWay>>,
    /// Bytes that are under way each way, at most.
    room: usize,
    /// `None` takes and gives as much as there is.
    chance: Option<Chance>,
    /// Nothing arrives at either end.
    silent: Arc<AtomicBool>,
}

impl Pipe {
    pub(super) fn pair(room: usize, chance: Option<Chance>) -> [Self; 2] {
        let ways = [(); 2].map(|()| Arc::new(Mutex::new(OneWay::default())));
        let silent = Arc::new(AtomicBool::new(false));
        [0, 1].map(|end| Self {
            here: Arc::clone(&ways[end]),
            there: Arc::clone(&ways[1 - end]),
            room,
            chance: chance.clone(),
            silent: Arc::clone(&silent),
        })
    }

    pub(super) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.here.lock().ended
    }

    /// Bytes that the other end has not read.
    pub(super) fn unread(&self) -> usize {
        self.there.lock().bytes.len()
    }

    /// Whether a read finds something, or the end.
    pub(super) fn is_readable(&self) -> bool {
        let here = self.here.lock();
        !self.silent.load(Ordering::Relaxed) && (here.ended || !here.bytes.is_empty())
    }

    /// How many of so many.
    fn some(&self, most: usize) -> io::Result<usize> {
        let count = match &self.chance {
            None => most,
            Some(chance) => match chance.below(4) {
                0 => 0,
                1 => most.min(1 + chance.below(3)),
                _ => most.min(1 + chance.below(most)),
            },
        };
        match count {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

// SAFETY: bytes are copied during the call alone, as many as are returned, which are at most those
// of the pieces.
unsafe impl Rail for Pipe {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        if self.has_ended() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut there = self.there.lock();
        if there.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = self.some(pieces.bytes().min(self.room - there.bytes.len()))?;
        let mut bytes = vec![0; count];
        // SAFETY: the caller promises the pieces.
        unsafe { Cursor::new(pieces).take(&mut bytes) };
        there.bytes.extend(bytes);
        Ok(count)
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        if self.silent.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut here = self.here.lock();
        if here.bytes.is_empty() && here.ended {
            return Ok(0);
        }
        let count = self.some(pieces.bytes().min(here.bytes.len()))?;
        let bytes: Vec<u8> = here.bytes.drain(..count).collect();
        // SAFETY: as above.
        Ok(unsafe { Cursor::new(pieces).fill(&bytes) })
    }

    fn shut(&self) {
        self.here.lock().ended = true;
        self.there.lock().ended = true;
    }
}
