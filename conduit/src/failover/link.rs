//! A member's rail to a peer: what was read and written of the stream's runs and of offers.

use super::record::{self, HEAD, Head, LONGEST_RUN, OFFER};
use crate::channel::rail::Rail;
use crate::channel::stream::Cursor;
use crate::channel::{AnyRail, Pieces};
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::io;

/// Bytes of runs of other generations that are thrown away at a time.
const SCRATCH: usize = 4096;

/// Reads of these and of heads at a time: peers that send nothing else do not hold up the rank.
const MOST_FRUITLESS: usize = 64;

/// Bytes that are unsent, about, behind which nothing more is offered.
const MOST_UNSENT: usize = 2 * LONGEST_RUN;

/// An offer of the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Heard {
    pub(super) generation: u64,
    /// Up to where it has taken this rank's stream.
    pub(super) received: u64,
}

/// What a read has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read {
    /// So many bytes of the stream.
    Bytes(usize),
    /// An offer: nothing more is read until [`Link::go_on`].
    Offer(Heard),
    Nothing,
    /// The rail is of no use any more.
    End,
}

/// The receiving half.
#[derive(Default)]
struct Inbound {
    /// A head, or an offer, of which so many bytes are here.
    bytes: [u8; OFFER],
    have: usize,
    /// Bytes of the run that are not read, and its generation.
    left: usize,
    low: u32,
    /// An offer was found and not heard.
    is_held: bool,
    /// The generation in which the rail carries the stream.
    carries: Option<u32>,
}

/// The sending half.
#[derive(Default)]
struct Outbound {
    /// What was begun and the rail has not taken, from `from` on: the rest of a run, and offers
    /// behind it.
    unsent: Vec<u8>,
    from: usize,
}

/// The rail.
pub(super) struct Link {
    pub(super) member: usize,
    pub(super) rail: AnyRail,
    /// See [`Member::address`](super::Member::address).
    pub(super) address: Option<IpAddr>,
    /// See [`Member::lasts`](super::Member::lasts).
    pub(super) lasts: bool,
    /// Counts the rails of this member to the peer.
    pub(super) incarnation: u64,
    inbound: Mutex<Inbound>,
    outbound: Mutex<Outbound>,
    /// Whether there is something unsent.
    ///
    /// Written by the holder of `outbound`.
    has_unsent: AtomicBool,
    /// The channel waits for room.
    pub(super) waits_for_room: AtomicBool,
    /// The stream is all that passes from now on.
    ///
    /// Set once, by the thread that drives.
    is_raw: AtomicBool,
    /// A read or a write of the stream has found it to be of no use.
    has_ended: AtomicBool,
}

/// Whether the rail may take or have more later.
pub(super) fn is_later(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind())
}

impl Link {
    pub(super) fn new(
        member: usize,
        rail: AnyRail,
        address: Option<IpAddr>,
        lasts: bool,
        incarnation: u64,
    ) -> Self {
        Self {
            member,
            rail,
            address,
            lasts,
            incarnation,
            inbound: Mutex::default(),
            outbound: Mutex::default(),
            has_unsent: AtomicBool::new(false),
            waits_for_room: AtomicBool::new(false),
            is_raw: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// It carries the stream in a generation: one that does not last carries no offers any more.
    pub(super) fn begin_stream(&self, generation: u64) {
        self.is_raw.store(!self.lasts, Ordering::Relaxed);
        self.inbound.lock().carries = Some(record::low(generation));
    }

    /// It carries the stream in that generation no more; no thread is reading it.
    pub(super) fn end_stream(&self, generation: u64) {
        let mut inbound = self.inbound.lock();
        inbound
            .carries
            .take_if(|low| *low == record::low(generation));
    }

    /// Whether it carries, or has carried, the stream alone.
    pub(super) fn is_raw(&self) -> bool {
        self.is_raw.load(Ordering::Relaxed)
    }

    /// A read or a write of the stream finds it to be of no use.
    pub(super) fn note_end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Whether one has.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether [`push`](Self::push) has something to write.
    pub(super) fn has_unsent(&self) -> bool {
        self.has_unsent.load(Ordering::SeqCst)
    }

    /// The offer that was found was heard.
    pub(super) fn go_on(&self) {
        self.inbound.lock().is_held = false;
    }

    /// Reads what is no part of the stream, where the rail does not carry it.
    ///
    /// Runs of generations of the past are thrown away.
    pub(super) fn read_offer(&self) -> Read {
        // SAFETY: there is no place that could not be written.
        unsafe { self.read(None) }
    }

    /// Reads bytes of the stream in a generation to these places, or an offer.
    ///
    /// # Safety
    /// As [`Rail::read`].
    pub(super) unsafe fn read_stream(&self, generation: u64, places: &Pieces) -> Read {
        let low = record::low(generation);
        if self.lasts {
            // SAFETY: the caller's promise.
            return unsafe { self.read(Some((low, places))) };
        }
        let inbound = self.inbound.lock();
        if inbound.carries != Some(low) {
            return Read::End;
        }
        // SAFETY: the caller's promise.
        match unsafe { self.rail.read(places) } {
            Ok(0) => Read::End,
            Ok(bytes) => Read::Bytes(bytes),
            Err(error) if is_later(&error) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    /// # Safety
    /// As [`Rail::read`], with the places.
    unsafe fn read(&self, stream: Option<(u32, &Pieces)>) -> Read {
        let mut inbound = self.inbound.lock();
        // Another thread may have ended or begun the stream here since the caller looked.
        if inbound.carries != stream.map(|(low, _)| low) {
            return Read::Nothing;
        }
        let mut fruitless = 0;
        loop {
            if inbound.is_held || fruitless == MOST_FRUITLESS {
                return Read::Nothing;
            }
            if inbound.left > 0 {
                let mut scratch = [0; SCRATCH];
                let mut thrown = Pieces::new();
                let limited;
                let (places, is_wanted) = match stream {
                    Some((low, places)) if low == inbound.low => {
                        limited = places.first_bytes(inbound.left);
                        (&limited, true)
                    }
                    _ => {
                        thrown.add(scratch.as_mut_ptr(), inbound.left.min(SCRATCH));
                        (&thrown, false)
                    }
                };
                // SAFETY: `scratch` outlives the call, or the caller promises the places.
                match unsafe { self.rail.read(places) } {
                    Ok(0) => return Read::End,
                    Ok(bytes) => {
                        inbound.left -= bytes;
                        if is_wanted {
                            return Read::Bytes(bytes);
                        }
                        fruitless += 1;
                    }
                    Err(error) if is_later(&error) => return Read::Nothing,
                    Err(_) => return Read::End,
                }
                continue;
            }
            match self.read_record(&mut inbound) {
                Ok(None) => fruitless += 1,
                Ok(Some(heard)) => return Read::Offer(heard),
                Err(read) => return read,
            }
        }
    }

    /// Reads more of a head or an offer; the offer if it is whole.
    fn read_record(&self, inbound: &mut Inbound) -> Result<Option<Heard>, Read> {
        let wanted = if inbound.have < HEAD { HEAD } else { OFFER };
        let mut pieces = Pieces::new();
        let room = &mut inbound.bytes[inbound.have..wanted];
        pieces.add(room.as_mut_ptr(), room.len());
        // SAFETY: the room outlives the call.
        match unsafe { self.rail.read(&pieces) } {
            Ok(0) => return Err(Read::End),
            Ok(bytes) => inbound.have += bytes,
            Err(error) if is_later(&error) => return Err(Read::Nothing),
            Err(_) => return Err(Read::End),
        }
        if inbound.have == HEAD {
            let head = inbound.bytes.first_chunk().and_then(record::read_head);
            match head {
                Some(Head::Run { low, len }) if self.lasts => {
                    (inbound.left, inbound.low, inbound.have) = (len, low, 0);
                }
                Some(Head::Probe) if self.lasts => inbound.have = 0,
                Some(Head::Offer) => {}
                _ => return Err(Read::End),
            }
        } else if inbound.have == OFFER {
            inbound.have = 0;
            let (generation, received) = record::read_offer(&inbound.bytes).ok_or(Read::End)?;
            inbound.is_held = true;
            return Ok(Some(Heard {
                generation,
                received,
            }));
        }
        Ok(None)
    }

    /// Offers a generation, behind what was begun.
    ///
    /// # Errors
    /// The rail is of no use any more, or carries the stream alone, or the peer asks for offers and
    /// takes none.
    pub(super) fn offer(&self, generation: u64, received: u64) -> io::Result<()> {
        let mut outbound = self.outbound.lock();
        let unsent = outbound.unsent.len() - outbound.from;
        if self.is_raw.load(Ordering::Relaxed) || unsent > MOST_UNSENT {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let offer = record::offer(generation, received);
        outbound.unsent.extend_from_slice(&offer);
        self.push_locked(&mut outbound).map(|_| ())
    }

    /// Has something on its way that the peer's host acknowledges; only for rails that last.
    ///
    /// # Errors
    /// The rail is of no use any more.
    pub(super) fn probe(&self) -> io::Result<()> {
        let mut outbound = self.outbound.lock();
        if outbound.unsent.is_empty() {
            outbound.unsent.extend_from_slice(&record::probe());
        }
        self.push_locked(&mut outbound).map(|_| ())
    }

    /// Writes more of what was begun; whether all of it was written.
    ///
    /// # Errors
    /// The rail is of no use any more.
    pub(super) fn push(&self) -> io::Result<bool> {
        self.push_locked(&mut self.outbound.lock())
    }

    fn push_locked(&self, outbound: &mut Outbound) -> io::Result<bool> {
        while outbound.from < outbound.unsent.len() {
            let mut pieces = Pieces::new();
            let rest = &mut outbound.unsent[outbound.from..];
            pieces.add(rest.as_mut_ptr(), rest.len());
            // SAFETY: the rest lies where it is during the call.
            match unsafe { self.rail.write(&pieces) } {
                Ok(bytes) => outbound.from += bytes,
                Err(error) if is_later(&error) => {
                    self.has_unsent.store(true, Ordering::SeqCst);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        outbound.unsent.clear();
        outbound.from = 0;
        self.has_unsent.store(false, Ordering::SeqCst);
        Ok(true)
    }

    /// Writes bytes of the stream in a generation.
    ///
    /// Over a rail that lasts, those of a run that the rail does not take are kept for
    /// [`push`](Self::push), and are written: nothing else could end the run, if another generation
    /// comes, without bytes that the peer would take for the stream's.
    ///
    /// # Errors
    /// As [`Rail::write`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn write_stream(
        &self,
        generation: u64,
        pieces: &Pieces,
    ) -> io::Result<usize> {
        let mut outbound = self.outbound.lock();
        if !self.push_locked(&mut outbound)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !self.lasts {
            // SAFETY: the caller's promise.
            return unsafe { self.rail.write(pieces) };
        }
        let mut written = 0;
        while written < pieces.bytes() && outbound.unsent.is_empty() {
            let run = pieces.behind(written).first_bytes(LONGEST_RUN);
            // The head goes with the bytes.
            let mut head = record::run(record::low(generation), run.bytes());
            let mut whole = Pieces::new();
            whole.add(head.as_mut_ptr(), HEAD);
            for piece in run.as_slice() {
                whole.add(piece.at, piece.len);
            }
            // SAFETY: the head outlives the call, and the caller promises the rest.
            match unsafe { self.rail.write(&whole) } {
                Ok(taken) => {
                    written += run.bytes();
                    let rest = whole.behind(taken);
                    outbound.unsent.resize(rest.bytes(), 0);
                    // SAFETY: as above.
                    unsafe { Cursor::new(&rest).take(&mut outbound.unsent) };
                    self.has_unsent.store(rest.bytes() > 0, Ordering::SeqCst);
                }
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}
