//! What has come of broadcasts: where handlers put it, and what all ranks must agree about.
#![allow(unsafe_code)]

use argonet_am::Delivery;
use argonet_base::JobRank;
use argonet_segment::SharedBytes;
use std::collections::BTreeMap;

/// Calls that are remembered after they are complete, to name them if another rank's differs.
const REMEMBERED: usize = 64;

/// Questions that are kept for calls to come. Whoever asks beyond that is not told if its root is
/// another one.
const MOST_QUESTIONS: usize = 1024;

/// What all ranks must name alike.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Call {
    pub(super) root: u32,
    pub(super) len: u64,
}

/// A part of the bytes.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// Memory of a caller, from the call to the completion of its event.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) *mut u8);

// SAFETY: the memory is the operation's until its event is complete, whichever thread goes on with
// it (`broadcast_start` demands that); what touches it does so under a lock.
unsafe impl Send for Place {}

/// A piece that came before this rank called.
pub(super) struct Early {
    from: JobRank,
    call: Call,
    offset: u64,
    bytes: Box<[u8]>,
}

/// Where the pieces of a broadcast go.
pub(super) enum Arrival {
    /// This rank has not called yet.
    Early(Vec<Early>),
    Called {
        call: Call,
        dst: Place,
        /// Bytes that have not come.
        missing: usize,
        /// Pieces that have come and that nobody has sent on.
        fresh: Vec<Piece>,
    },
}

/// What handlers see.
#[derive(Default)]
pub(super) struct Inbox {
    /// Number of the next call.
    next: u64,
    /// By number of the call; those that are complete here are gone.
    pub(super) open: BTreeMap<u64, Arrival>,
    /// The last calls, by number.
    called: Vec<Call>,
    /// Who has asked about a call to come, by its number, and what it has called itself.
    questions: Vec<(u64, JobRank, Call)>,
}

fn arg64(delivery: &Delivery<'_>, low: usize) -> u64 {
    u64::from(delivery.arg(low)) | u64::from(delivery.arg(low + 1)) << 32
}

/// What is wrong where ranks differ.
fn differ(number: u64, (rank, mine): (JobRank, Call), (from, theirs): (JobRank, Call)) -> String {
    format!(
        "broadcast {number} has root {} and {} bytes at rank {rank}, but root {} and {} bytes at \
         rank {from}",
        mine.root, mine.len, theirs.root, theirs.len
    )
}

impl Inbox {
    fn remember(&mut self, call: Call) {
        self.called.resize(REMEMBERED, Call::default());
        self.called[self.next as usize % REMEMBERED] = call;
        self.next += 1;
    }

    /// This rank makes its next call and takes what has come of it; the call's number.
    pub(super) fn call(
        &mut self,
        mut called: Arrival,
        call: Call,
        rank: JobRank,
    ) -> Result<u64, String> {
        let number = self.next;
        self.remember(call);
        for (_, from, theirs) in self
            .questions
            .extract_if(.., |(about, ..)| *about == number)
        {
            if theirs != call {
                return Err(differ(number, (rank, call), (from, theirs)));
            }
        }
        if let Some(Arrival::Early(kept)) = self.open.remove(&number) {
            for early in kept {
                let bytes = SharedBytes::from_slice(&early.bytes);
                called.place(number, rank, early.from, early.call, early.offset, bytes)?;
            }
        }
        self.open.insert(number, called);
        Ok(number)
    }

    #[cfg(test)]
    pub(super) fn questions(&self) -> usize {
        self.questions.len()
    }

    /// A rank that waits for this one, as the root, asks whether it is.
    pub(super) fn asked(&mut self, delivery: &Delivery<'_>) -> Result<(), String> {
        let number = arg64(delivery, 0);
        let (rank, from) = (delivery.rank(), delivery.source());
        let theirs = Call {
            root: rank.0,
            len: arg64(delivery, 2),
        };
        if number >= self.next {
            if self.questions.len() < MOST_QUESTIONS {
                self.questions.push((number, from, theirs));
            }
            return Ok(());
        }
        // The pieces of calls before these are under way.
        if self.next - number <= REMEMBERED as u64 {
            let mine = self.called[number as usize % REMEMBERED];
            if mine != theirs {
                return Err(differ(number, (rank, mine), (from, theirs)));
            }
        }
        Ok(())
    }

    /// A piece comes.
    pub(super) fn arrive(&mut self, delivery: &Delivery<'_>) -> Result<(), String> {
        let number = arg64(delivery, 0);
        let theirs = Call {
            root: delivery.arg(2),
            len: arg64(delivery, 3),
        };
        let offset = arg64(delivery, 5);
        let from = delivery.source();
        let payload = delivery.payload();
        if number >= self.next {
            let early = Early {
                from,
                call: theirs,
                offset,
                bytes: payload.to_vec().into_boxed_slice(),
            };
            match self
                .open
                .entry(number)
                .or_insert(Arrival::Early(Vec::new()))
            {
                Arrival::Early(kept) => kept.push(early),
                Arrival::Called { .. } => return Err(unexpected(number, from)),
            }
            return Ok(());
        }
        match self.open.get_mut(&number) {
            Some(arrival) => arrival.place(number, delivery.rank(), from, theirs, offset, payload),
            None if self.next - number <= REMEMBERED as u64 => {
                let mine = self.called[number as usize % REMEMBERED];
                Err(differ(number, (delivery.rank(), mine), (from, theirs)))
            }
            None => Err(unexpected(number, from)),
        }
    }
}

fn unexpected(number: u64, from: JobRank) -> String {
    format!("rank {from} sent a piece of broadcast {number} that nobody waits for")
}

impl Arrival {
    /// Puts a piece where it belongs.
    fn place(
        &mut self,
        number: u64,
        rank: JobRank,
        from: JobRank,
        theirs: Call,
        offset: u64,
        payload: SharedBytes<'_>,
    ) -> Result<(), String> {
        let Self::Called {
            call,
            dst,
            missing,
            fresh,
        } = self
        else {
            return Err(unexpected(number, from));
        };
        if *call != theirs {
            return Err(differ(number, (rank, *call), (from, theirs)));
        }
        let (len, most) = (payload.len(), call.len as usize);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if len > *missing || offset > most || len > most - offset {
            return Err(unexpected(number, from));
        }
        if len > 0 {
            // SAFETY: the piece lies inside the `call.len` bytes at `dst`, which are writable and
            // nobody else's until the event is complete; it is not while a piece is missing.
            unsafe { core::ptr::copy_nonoverlapping(payload.as_ptr(), dst.0.add(offset), len) };
        }
        *missing -= len;
        fresh.push(Piece { offset, len });
        Ok(())
    }
}
