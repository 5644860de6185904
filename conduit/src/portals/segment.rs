//! The entries and descriptors over this rank's segment, which grows.

use super::config::PortalsConfig;
use super::roles::{LONG_REPLIES, LONG_REQUESTS, RAR, Role};
use super::stock::{ANY, AT_END};
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::portals::{
    Descriptor, DescriptorHandle, Entry, EntryHandle, NicError, PortalIndex, Portals as Interface,
    Position, Queue,
};
use argonet_segment::Directory;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// RAR, RARAM and RARSRC: all attached memory.
///
/// A segment that has grown gets new ones. The old are taken out when nothing uses them; until then
/// they serve the memory that they reach.
pub(super) struct Segment {
    rank: JobRank,
    directory: Arc<Directory>,
    reached: Arc<Directory>,
    requests: Queue,
    safe: Queue,
    current: RwLock<Option<Cover>>,
    old: Mutex<Vec<Cover>>,
}

/// Entries and descriptors that cover a segment of some length.
#[derive(Clone, Copy)]
struct Cover {
    len_bytes: u64,
    entries: [EntryHandle; 3],
    /// For puts and for gets.
    descriptors: [DescriptorHandle; 2],
}

/// Bytes of the segment as the memory of an operation.
#[derive(Clone, Copy)]
pub(super) struct Covered {
    pub(super) put: DescriptorHandle,
    pub(super) get: DescriptorHandle,
    pub(super) offset: u64,
}

impl Segment {
    pub(super) fn new(config: &PortalsConfig, requests: Queue, safe: Queue) -> Self {
        Self {
            rank: config.rank,
            directory: Arc::clone(&config.directory),
            reached: Arc::clone(&config.reached),
            requests,
            safe,
            current: RwLock::new(None),
            old: Mutex::default(),
        }
    }

    /// Covers the memory that is attached now.
    ///
    /// It may be published to peers afterwards.
    pub(super) fn follow(&self, nic: &impl Interface) -> Result<(), NicError> {
        let len_bytes = self.directory.attached_bytes(self.rank);
        let mut current = self.current.write();
        if current.map_or(0, |cover| cover.len_bytes) == len_bytes {
            return Ok(());
        }
        let cover = match len_bytes {
            0 => None,
            _ => Some(self.cover(nic, len_bytes)?),
        };
        let mut old = self.old.lock();
        old.extend(core::mem::replace(&mut *current, cover));
        drop(current);
        old.retain(|cover| !remove(nic, &cover.entries, &cover.descriptors));
        Ok(())
    }

    fn cover(&self, nic: &impl Interface, len_bytes: u64) -> Result<Cover, NicError> {
        let missing = || NicError::NotShared {
            rank: self.rank,
            address: 0,
            len_bytes,
        };
        let len = usize::try_from(len_bytes).map_err(|_| missing())?;
        let place = |directory: &Directory| directory.resolve(self.rank, SegmentOffset(0), len);
        if place(&self.reached).is_none() {
            // If its mapping there cannot be had, the error is returned below.
            let _ = self.reached.refresh(self.rank, len_bytes);
        }
        let memory = place(&self.reached).ok_or_else(missing)?;
        let attach = |portal: PortalIndex, entry: Entry| {
            // SAFETY: attached memory stays mapped as long as the directory, which outlives the
            // interface's entries as this value holds it, and is accessed as shared memory.
            unsafe { nic.attach(portal, Position::Tail, ANY, memory, len_bytes, entry) }
        };
        let reporting = |queue, role: Role| Entry {
            gets: false,
            events: AT_END,
            queue: Some(queue),
            user: role.word(0),
            ..Entry::OPEN
        };
        let mut entries = Vec::with_capacity(3);
        for (portal, entry) in [
            (RAR, Entry::OPEN),
            (LONG_REQUESTS, reporting(self.requests, Role::LongRequest)),
            (LONG_REPLIES, reporting(self.safe, Role::LongReply)),
        ] {
            let attached = attach(portal, entry);
            entries.push(attached.inspect_err(|_| {
                // No peer has used them.
                remove(nic, &entries, &[]);
            })?);
        }
        let own = place(&self.directory).ok_or_else(missing)?;
        let bind = |descriptor| {
            // SAFETY: as above; clients leave source and destination alone as their operations ask.
            unsafe { nic.bind(own, len_bytes, descriptor) }
        };
        let [put, get] = operations(self.safe);
        let put = bind(put).inspect_err(|_| {
            remove(nic, &entries, &[]);
        })?;
        let get = bind(get).inspect_err(|_| {
            remove(nic, &entries, &[put]);
        })?;
        Ok(Cover {
            len_bytes,
            entries: [entries[0], entries[1], entries[2]],
            descriptors: [put, get],
        })
    }

    /// Memory of the client, if it lies in the segment.
    pub(super) fn find(&self, address: *const u8, len: usize) -> Option<Covered> {
        let (rank, offset) = self.directory.translate_range(address, len)?;
        if rank != self.rank {
            return None;
        }
        let cover = (*self.current.read())?;
        let end = offset.0.checked_add(len as u64)?;
        (end <= cover.len_bytes).then_some(Covered {
            put: cover.descriptors[0],
            get: cover.descriptors[1],
            offset: offset.0,
        })
    }
}

/// Descriptors for puts, whose sending is not reported, and for gets.
pub(super) fn operations(safe: Queue) -> [Descriptor; 2] {
    let put = Descriptor {
        queue: Some(safe),
        user: Role::Operation.word(0),
        ..Descriptor::SILENT
    };
    let get = Descriptor {
        events: AT_END,
        ..put
    };
    [put, get]
}

/// Takes parts of a cover away; false while one of them stays, as something uses it.
fn remove(nic: &impl Interface, entries: &[EntryHandle], descriptors: &[DescriptorHandle]) -> bool {
    // An object that was taken away before is not there any more.
    let stays = |result| !matches!(result, Ok(()) | Err(NicError::BadHandle { .. }));
    let attached = entries
        .iter()
        .filter(|entry| stays(nic.unlink(**entry)))
        .count();
    let bound = descriptors
        .iter()
        .filter(|bound| stays(nic.release(**bound)));
    attached + bound.count() == 0
}
