//! One of two ranks of a test, with any interface.

use argonet_base::JobRank;
use argonet_nic::portals::{
    Descriptor, DescriptorHandle, Entry, EntryHandle, Event, Events, Matching, NicError, Part,
    PortalIndex, Portals, Position, Queue, Target,
};
use argonet_segment::bulk;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

/// Bytes of a rank's memory.
pub(crate) const MEMORY: u64 = 4 << 20;
/// How long an event may take to come.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) const END: Events = Events {
    start: false,
    end: true,
};

/// A rank: its interface, its memory, and a way to wait for the other.
pub(crate) struct Member<N> {
    pub(crate) nic: N,
    pub(crate) memory: NonNull<u8>,
    pub(crate) barrier: Box<dyn FnMut()>,
}

impl<N: Portals> Member<N> {
    pub(crate) fn is_target(&self) -> bool {
        self.nic.rank() == JobRank(1)
    }

    pub(crate) fn at(&self, offset: u64) -> NonNull<u8> {
        assert!(offset <= MEMORY);
        // SAFETY: within the memory of the rank.
        unsafe { self.memory.add(offset as usize) }
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= MEMORY);
        // SAFETY: within the memory, which is touched by `bulk` only.
        unsafe { bulk::copy(self.at(offset).as_ptr(), bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        assert!(offset + len as u64 <= MEMORY);
        let mut bytes = vec![0; len];
        // SAFETY: as in `write`.
        unsafe { bulk::copy(bytes.as_mut_ptr(), self.at(offset).as_ptr(), len) };
        bytes
    }

    /// A descriptor over all of the memory.
    pub(crate) fn bind(&self, descriptor: Descriptor) -> DescriptorHandle {
        // SAFETY: the memory outlives the interface and is touched by `bulk` only.
        unsafe { self.nic.bind(self.memory, MEMORY, descriptor) }.expect("bind")
    }

    pub(crate) fn attach(
        &self,
        portal: PortalIndex,
        matching: Matching,
        (offset, len): (u64, u64),
        entry: Entry,
    ) -> EntryHandle {
        let at = self.at(offset);
        // SAFETY: the memory outlives the interface and is touched by `bulk` only.
        unsafe {
            self.nic
                .attach(portal, Position::Tail, matching, at, len, entry)
        }
        .expect("attach")
    }

    /// The next event of a queue.
    pub(crate) fn next(&self, queue: Queue) -> Event {
        self.try_next(queue).expect("event")
    }

    pub(crate) fn try_next(&self, queue: Queue) -> Result<Event, NicError> {
        let begun = Instant::now();
        loop {
            if let Some(event) = self.nic.queue_get(queue)? {
                return Ok(event);
            }
            let rank = self.nic.rank();
            assert!(begun.elapsed() < LIMIT, "rank {rank}: no event comes");
            std::thread::yield_now();
        }
    }
}

pub(crate) fn to(portal: PortalIndex, bits: u64, offset_bytes: u64) -> Target {
    Target {
        rank: JobRank(1),
        portal,
        bits,
        offset_bytes,
    }
}

pub(crate) fn exactly(bits: u64) -> Matching {
    Matching {
        bits,
        ignore: 0,
        source: None,
    }
}

pub(crate) fn part(offset_bytes: u64, len_bytes: u64) -> Part {
    Part {
        offset_bytes,
        len_bytes,
    }
}
