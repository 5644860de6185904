//! Connections of the simulated wire as rails of a channel.
#![allow(unsafe_code)]

use crate::clock::Place;
use crate::wire::{End, Nothing, Task};
use argonet_conduit::channel::Pieces;
use argonet_conduit::channel::rail::{Look, Made, NewRail, Rail, RailId, Rails, Ready, Vital};
use argonet_segment::bulk;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;

/// One end of a connection.
#[derive(Clone)]
pub struct SimRail {
    place: Arc<Place>,
    end: End,
}

fn nothing(nothing: Nothing) -> io::Error {
    match nothing {
        Nothing::Now => io::ErrorKind::WouldBlock.into(),
        Nothing::Ever => io::ErrorKind::ConnectionReset.into(),
    }
}

// SAFETY: bytes are copied during the call, and the wire says how many.
unsafe impl Rail for SimRail {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        self.place.wire(|streams, plan, now_ns| {
            let room = streams.room(plan, now_ns, self.end, pieces.bytes());
            let mut bytes = vec![0; room.map_err(nothing)?];
            let mut at = 0;
            for piece in pieces.as_slice() {
                let into = &mut bytes[at..];
                let len = piece.len.min(into.len());
                // SAFETY: the caller promises the piece.
                unsafe { bulk::copy(into.as_mut_ptr(), piece.at, len) };
                at += len;
            }
            streams.write(plan, now_ns, self.end, bytes);
            Ok(at)
        })
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut bytes = Vec::new();
        let read = self.place.wire(|streams, plan, now_ns| {
            streams.read(plan, now_ns, self.end, pieces.bytes(), &mut bytes)
        });
        match read {
            Ok(()) => {}
            // As sockets do where the peer has ended.
            Err(Nothing::Ever) => return Ok(0),
            Err(now @ Nothing::Now) => return Err(nothing(now)),
        }
        let mut at = 0;
        for piece in pieces.as_slice() {
            let from = &bytes[at..];
            let len = piece.len.min(from.len());
            // SAFETY: the caller promises the piece.
            unsafe { bulk::copy(piece.at, from.as_ptr(), len) };
            at += len;
        }
        Ok(at)
    }

    fn shut(&self) {
        self.place
            .wire(|streams, plan, now_ns| streams.shut(plan, now_ns, self.end));
    }

    fn queued(&self) -> u64 {
        self.place.wire(|streams, _, _| streams.queued(self.end)) as u64
    }

    fn vital(&self) -> Option<Vital> {
        self.place
            .wire(|streams, _, now_ns| streams.vital(now_ns, self.end))
    }
}

/// The rails of a rank.
pub struct SimRails {
    place: Arc<Place>,
    polls: AtomicU32,
    /// A sleep ends at once.
    is_woken: AtomicBool,
}

impl SimRails {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place: Arc::new(place),
            polls: AtomicU32::new(0),
            is_woken: AtomicBool::new(false),
        }
    }

    fn rank(&self) -> u32 {
        self.place.rank
    }

    fn rail(&self, end: End) -> SimRail {
        SimRail {
            place: Arc::clone(&self.place),
            end,
        }
    }
}

impl Rails for SimRails {
    type Rail = SimRail;

    fn reopens(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "sim"
    }

    fn want(&self, id: RailId) {
        self.place
            .wire(|streams, _, now_ns| streams.want(now_ns, self.rank(), id));
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<SimRail>> {
        loop {
            let task = self
                .place
                .wire(|streams, plan, now_ns| streams.next_task(plan, now_ns, self.rank()))?;
            let joined = match task {
                Task::GiveUp(id, error) => return Some(Made::Unreachable(id, error)),
                Task::Use(joined) => joined,
                Task::Ask(id) => {
                    let received = received(id);
                    self.place.wire(|streams, plan, now_ns| {
                        streams.ask(plan, now_ns, self.rank(), id, received);
                    });
                    continue;
                }
                Task::Answer(hello) => {
                    let received = received(hello.id());
                    self.place.wire(|streams, plan, now_ns| {
                        streams.answer(plan, now_ns, self.rank(), &hello, received)
                    })
                }
            };
            return Some(Made::Rail(NewRail {
                id: joined.id,
                rail: self.rail(joined.end),
                incarnation: joined.incarnation,
                received: joined.received,
            }));
        }
    }

    fn open(&self, id: RailId, rail: &SimRail) -> io::Result<()> {
        let is_open = self
            .place
            .wire(|streams, _, _| streams.open(self.rank(), id, rail.end));
        match is_open {
            true => Ok(()),
            false => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    fn close(&self, id: RailId, rail: &SimRail) {
        self.place.wire(|streams, plan, now_ns| {
            streams.close(plan, now_ns, self.rank(), id, rail.end);
        });
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Look {
            first: None,
            all: true,
        }
    }

    fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    fn ready(&self, found: &mut Ready) {
        let turn = self.polls();
        self.place
            .wire(|streams, _, _| streams.find_ready(self.rank(), turn, found));
    }

    fn has_ready(&self) -> bool {
        self.place
            .wire(|streams, _, _| streams.has_ready(self.rank()))
    }

    fn wait_for_room(&self, _id: RailId, rail: &SimRail, waits: bool) {
        self.place
            .wire(|streams, _, _| streams.wait_for_room(rail.end, waits));
    }

    fn sleep(&self, timeout: Option<Duration>) {
        if self.is_woken.swap(false, Ordering::Relaxed) {
            return;
        }
        let until_ns = timeout.map(|time| {
            let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.place.clock.now_ns().saturating_add(time_ns)
        });
        self.place.park(until_ns);
    }

    fn wake(&self) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.place.clock.wake(self.rank());
    }

    fn forget_wakeups(&self) {
        self.is_woken.store(false, Ordering::Relaxed);
    }

    fn virtual_ns(&self) -> Option<u64> {
        Some(self.place.clock.now_ns())
    }
}

impl Drop for SimRails {
    fn drop(&mut self) {
        self.place
            .wire(|streams, plan, now_ns| streams.end(plan, now_ns, self.rank()));
    }
}
