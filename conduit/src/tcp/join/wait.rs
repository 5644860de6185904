//! Events of the sockets of the joining half, in one epoll.

use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Result;

/// A place among some, and which of those that have had it in turn: an event of an earlier one
/// finds no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Place {
    /// Which place; below 2^24.
    pub index: u32,
    /// Different for each that has had the place, until 2^32 have.
    pub turn: u32,
}

/// The subject of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The listening socket of this index.
    Door(u32),
    /// An unknown connection.
    Stranger(Place),
    /// An attempt to connect.
    Attempt(Place),
}

/// Events taken at a time.
const BATCH: usize = 64;

#[derive(Debug)]
pub(super) struct Waiting(OwnedFd);

impl Waiting {
    pub(super) fn new() -> Result<Self> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self)
    }

    pub(super) fn readable(&self, socket: &OwnedFd, source: Source) -> Result<()> {
        epoll::add(&self.0, socket, data(source), epoll::EventFlags::IN)
    }

    pub(super) fn writable(&self, socket: &OwnedFd, source: Source) -> Result<()> {
        epoll::add(&self.0, socket, data(source), epoll::EventFlags::OUT)
    }

    pub(super) fn now_readable(&self, socket: &OwnedFd, source: Source) -> Result<()> {
        epoll::modify(&self.0, socket, data(source), epoll::EventFlags::IN)
    }

    pub(super) fn forget(&self, socket: &OwnedFd) -> Result<()> {
        epoll::delete(&self.0, socket)
    }

    /// The sockets that are ready, now or within `wait_ns`, which is less than a second.
    pub(super) fn ready(&self, wait_ns: u32) -> Result<impl Iterator<Item = Source> + use<>> {
        let mut events = Vec::new();
        // Nothing ready is by far the usual case, and takes no memory.
        let mut buffer = [const { core::mem::MaybeUninit::uninit() }; BATCH];
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns.into(),
        };
        match epoll::wait(&self.0, &mut buffer, Some(&wait)) {
            Ok((ready, _)) => events.extend(ready.iter().map(|event| event.data.u64())),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(events.into_iter().map(source))
    }
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// kind: 8 bits, place: 24 bits, turn: 32 bits.
fn data(source: Source) -> epoll::EventData {
    let (kind, who) = match source {
        Source::Door(index) => (0, Place { index, turn: 0 }),
        Source::Stranger(who) => (1, who),
        Source::Attempt(who) => (2, who),
    };
    let bits = kind << 56 | u64::from(who.index & 0xff_ffff) << 32 | u64::from(who.turn);
    epoll::EventData::new_u64(bits)
}

fn source(bits: u64) -> Source {
    let who = Place {
        index: (bits >> 32) as u32 & 0xff_ffff,
        turn: bits as u32,
    };
    match bits >> 56 {
        0 => Source::Door(who.index),
        1 => Source::Stranger(who),
        _ => Source::Attempt(who),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_keep_their_names() {
        let who = Place {
            index: 0xff_fffe,
            turn: u32::MAX - 1,
        };
        for named in [Source::Door(7), Source::Stranger(who), Source::Attempt(who)] {
            assert_eq!(source(data(named).u64()), named);
        }
    }
}
