//! A member's rail to a peer: what was read and written of the stream's runs and of offers.

use super::record::{self, HEAD, Head, LONGEST_RUN, OFFER};
use crate::channel::rail::Rail;
use crate::channel::{AnyRail, Pieces};
use parking_lot::Mutex;
use std::io;

/// Bytes of runs of other generations that are thrown away at a time.
const SCRATCH: usize = 4096;

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
    /// An offer: nothing more is read until [`Link::go_on`] or [`Link::begin_stream`].
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
    /// An offer was found, and it is not known what comes behind it.
    is_held: bool,
    /// The generation in which the rail carries the stream.
    carries: Option<u32>,
}

/// The sending half.
#[derive(Default)]
struct Outbound {
    /// A head that the rail has not taken, from `from` on, or nothing.
    bytes: [u8; OFFER],
    from: usize,
    until: usize,
    /// Bytes of the run that are not written, and its generation.
    left: usize,
    low: u32,
    /// An offer that is written behind them.
    offer: Option<[u8; OFFER]>,
}

/// The rail.
pub(super) struct Link {
    pub(super) member: usize,
    pub(super) rail: AnyRail,
    /// See [`Member::lasts`](super::Member::lasts).
    pub(super) lasts: bool,
    /// Counts the rails of this member to the peer.
    pub(super) incarnation: u64,
    inbound: Mutex<Inbound>,
    outbound: Mutex<Outbound>,
}

/// Whether the rail may take or have more later.
fn is_later(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind())
}

impl Link {
    pub(super) fn new(member: usize, rail: AnyRail, lasts: bool, incarnation: u64) -> Self {
        Self {
            member,
            rail,
            lasts,
            incarnation,
            inbound: Mutex::default(),
            outbound: Mutex::default(),
        }
    }

    /// The offer that was found comes to nothing.
    pub(super) fn go_on(&self) {
        self.inbound.lock().is_held = false;
    }

    /// The rail carries the stream in a generation, which comes behind the offer that was found.
    pub(super) fn begin_stream(&self, generation: u64) {
        let mut inbound = self.inbound.lock();
        inbound.carries = Some(record::low(generation));
        inbound.is_held = false;
    }

    /// It carries the stream in that generation no more.
    pub(super) fn end_stream(&self, generation: u64) {
        let mut inbound = self.inbound.lock();
        inbound
            .carries
            .take_if(|low| *low == record::low(generation));
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
        if self.lasts {
            // SAFETY: the caller's promise.
            return unsafe { self.read(Some((record::low(generation), places))) };
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
        loop {
            if inbound.is_held {
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
                    }
                    Err(error) if is_later(&error) => return Read::Nothing,
                    Err(_) => return Read::End,
                }
                continue;
            }
            match self.read_record(&mut inbound) {
                Ok(None) => {}
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
    /// The rail is of no use any more.
    pub(super) fn offer(&self, generation: u64, received: u64) -> io::Result<()> {
        let mut outbound = self.outbound.lock();
        outbound.offer = Some(record::offer(generation, received));
        self.push(&mut outbound, None).map(|_| ())
    }

    /// Writes more of an offer; whether all of it was written.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    pub(super) fn push_offer(&self) -> io::Result<bool> {
        let mut outbound = self.outbound.lock();
        if outbound.offer.is_none() {
            return Ok(true);
        }
        self.push(&mut outbound, None)
    }

    /// Writes bytes of the stream in a generation.
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
        if !self.lasts {
            let mut outbound = self.outbound.lock();
            if outbound.offer.is_some() && !self.push(&mut outbound, None)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            drop(outbound);
            // SAFETY: the caller's promise.
            return unsafe { self.rail.write(pieces) };
        }
        let low = record::low(generation);
        let mut outbound = self.outbound.lock();
        let outbound = &mut *outbound;
        let begins = outbound.left == 0 || outbound.low != low || outbound.from < outbound.until;
        if begins || outbound.offer.is_some() {
            if !self.push(outbound, Some(low))? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let mut written = 0;
        if outbound.left == 0 {
            // The head goes with the bytes.
            let run = pieces.first_bytes(LONGEST_RUN);
            outbound.bytes[..HEAD].copy_from_slice(&record::run(low, run.bytes()));
            (outbound.from, outbound.until) = (0, HEAD);
            (outbound.left, outbound.low) = (run.bytes(), low);
            let mut whole = Pieces::new();
            whole.add(outbound.bytes.as_mut_ptr(), HEAD);
            for piece in run.as_slice() {
                whole.add(piece.at, piece.len);
            }
            // SAFETY: the head lies in the outbound half, which is locked, and the caller promises
            // the rest.
            let bytes = unsafe { self.rail.write(&whole) };
            match bytes {
                Ok(bytes) => {
                    outbound.from = bytes.min(HEAD);
                    written = bytes.saturating_sub(HEAD);
                }
                Err(error) => {
                    // No byte of the run was written: the next one may have another length.
                    (outbound.from, outbound.until, outbound.left) = (0, 0, 0);
                    return Err(error);
                }
            }
        } else {
            let rest = pieces.first_bytes(outbound.left);
            // SAFETY: the caller's promise.
            written += unsafe { self.rail.write(&rest) }?;
        }
        outbound.left -= written;
        match written {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }

    /// Writes what comes before the stream in a generation: the rest of a head, of a run of another
    /// generation, and an offer.
    ///
    /// Whether all of it was written.
    fn push(&self, outbound: &mut Outbound, low: Option<u32>) -> io::Result<bool> {
        static FILLING: [u8; SCRATCH] = [0; SCRATCH];
        loop {
            let mut pieces = Pieces::new();
            let is_head = outbound.from < outbound.until;
            let is_filling =
                outbound.left > 0 && (low != Some(outbound.low) || outbound.offer.is_some());
            if is_head {
                let rest = &mut outbound.bytes[outbound.from..outbound.until];
                pieces.add(rest.as_mut_ptr(), rest.len());
            } else if is_filling {
                // It is thrown away: the peer has another generation, or will have it.
                pieces.add(FILLING.as_ptr().cast_mut(), outbound.left.min(SCRATCH));
            } else if let Some(offer) = outbound.offer.take() {
                outbound.bytes = offer;
                (outbound.from, outbound.until) = (0, OFFER);
                continue;
            } else {
                return Ok(true);
            }
            // SAFETY: both lie where they are during the call, and are only read.
            match unsafe { self.rail.write(&pieces) } {
                Ok(bytes) if is_head => outbound.from += bytes,
                Ok(bytes) => outbound.left -= bytes,
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}
