//! The mapped control file: made, received and checked, and what lies in it by its place.
#![allow(unsafe_code)]

use core::mem::{align_of, size_of};
use core::sync::atomic::Ordering;
use std::os::fd::AsFd;

use argonet_base::JobRank;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};

use super::job::JobPage;
use super::key::KeySlot;
use super::layout::{LAYOUT_HASH, Layout, VERSION};
use super::rank::RankPage;
use crate::bootstrap::KEYS;
use crate::error::BootError;
use crate::part::HostPart;

const MAGIC: u64 = u64::from_le_bytes(*b"argonet\0");

/// Values that the maker of a job writes into the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobIdentity {
    pub(crate) job_id: u64,
    pub(crate) size: u32,
    pub(crate) huge_pages: u32,
    pub(crate) launcher_pid: u32,
    pub(crate) part: HostPart,
}

/// The mapped control file.
#[derive(Debug)]
pub(crate) struct Control {
    map: MmapRaw,
    size: u32,
    part: HostPart,
}

impl Control {
    /// Maps a control file that was just made for `identity.size` ranks, and fills in the job page.
    pub(crate) fn create(fd: impl AsFd, identity: JobIdentity) -> Result<Self, BootError> {
        let control = Self::map(fd, identity.size, identity.part)
            .map_err(|e| BootError::system("mapping the control memory", e))?;
        let job = control.job();
        let HostPart {
            first,
            ranks,
            neighborhood,
        } = identity.part;
        job.host_first.store(first, Ordering::Relaxed);
        job.host_ranks.store(ranks, Ordering::Relaxed);
        job.neighborhood.store(neighborhood, Ordering::Relaxed);
        job.layout_hash.store(LAYOUT_HASH, Ordering::Relaxed);
        job.version.store(VERSION, Ordering::Relaxed);
        job.job_id.store(identity.job_id, Ordering::Relaxed);
        job.size.store(identity.size, Ordering::Relaxed);
        job.huge_pages.store(identity.huge_pages, Ordering::Relaxed);
        job.launcher_pid
            .store(identity.launcher_pid, Ordering::Relaxed);
        job.magic.store(MAGIC, Ordering::Release);
        Ok(control)
    }

    /// Maps the control file at `fd`; the reason if it is not one.
    pub(crate) fn open(fd: impl AsFd, size: u32, job_id: u64) -> Result<Self, String> {
        let fd = fd.as_fd();
        let seals = fcntl_get_seals(fd)
            .map_err(|_| "the control descriptor is not a shared memory file".to_string())?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err("the control file is not sealed against shrinking".into());
        }
        let bytes = fstat(fd)
            .map_err(|e| format!("the control file cannot be examined: {e}"))?
            .st_size;
        let need = Layout::new(size).total_bytes();
        if u64::try_from(bytes).unwrap_or(0) != need as u64 {
            return Err(format!(
                "the control file has {bytes} bytes, but {size} ranks of this version need {need}"
            ));
        }
        let mut control = Self::map(fd, size, HostPart::whole(size))
            .map_err(|e| format!("the control file cannot be mapped: {e}"))?;
        let job = control.job();
        if job.magic.load(Ordering::Acquire) != MAGIC {
            return Err("the control file is not argonet's (wrong magic number)".into());
        }
        let (version, hash) = (
            job.version.load(Ordering::Relaxed),
            job.layout_hash.load(Ordering::Relaxed),
        );
        if (version, hash) != (VERSION, LAYOUT_HASH) {
            return Err(format!(
                "the launcher and this program were built from different versions of argonet (control layout {version} \
                 {hash:016x} against {VERSION} {LAYOUT_HASH:016x}); build both from the same one"
            ));
        }
        if job.size() != size || job.job_id() != job_id {
            return Err("the control file belongs to another job".into());
        }
        let part = HostPart {
            first: job.host_first.load(Ordering::Relaxed),
            ranks: job.host_ranks.load(Ordering::Relaxed),
            neighborhood: job.neighborhood.load(Ordering::Relaxed),
        };
        control.part = part.check(size).ok_or_else(|| {
            format!("the control file gives this host impossible ranks ({part:?})")
        })?;
        Ok(control)
    }

    fn map(fd: impl AsFd, size: u32, part: HostPart) -> std::io::Result<Self> {
        let bytes = Layout::new(size).total_bytes();
        let fd = fd.as_fd();
        let map = MmapOptions::new().len(bytes).map_raw(&fd)?;
        Ok(Self { map, size, part })
    }

    /// A reference to the `T` at `offset`, which comes from [`Layout`] for a rank and key in range.
    fn at<T>(&self, offset: usize) -> &T {
        assert!(
            offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.map.len()
        );
        // SAFETY: the mapping is page-aligned, live as long as `self`, and the assertion above
        // keeps the object inside of it and aligned. The file is sealed against shrinking where it
        // is made (`SharedFiles::create`) and that is checked where it is received (`open`), so
        // every byte is backed. Each `T` used here consists of atomics only (this module's
        // `repr(C)` structs), for which any bit pattern is valid and concurrent writes by other
        // processes are no race.
        unsafe { &*self.map.as_ptr().add(offset).cast::<T>() }
    }

    fn layout(&self) -> Layout {
        Layout::new(self.size)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// The ranks on this host.
    pub(crate) fn part(&self) -> HostPart {
        self.part
    }

    /// The ranks of this host.
    pub(crate) fn host_ranks(&self) -> impl Iterator<Item = JobRank> + use<> {
        self.part.all().map(JobRank)
    }

    /// Whether all ranks of the job are on this host.
    pub(crate) fn is_whole_job(&self) -> bool {
        self.part.ranks == self.size
    }

    pub(crate) fn job(&self) -> &JobPage {
        self.at(0)
    }

    /// # Panics
    /// If there is no such rank.
    pub(crate) fn rank_page(&self, rank: JobRank) -> &RankPage {
        assert!(
            rank.0 < self.size,
            "there is no {rank:?} in a job of {}",
            self.size
        );
        self.at(self.layout().rank_page(rank.index()))
    }

    /// # Panics
    /// If there is no such rank or key.
    pub(crate) fn key_slot(&self, rank: JobRank, key: usize) -> &KeySlot {
        assert!(
            rank.0 < self.size && key < KEYS,
            "there is no key {key} of {rank:?}"
        );
        self.at(self.layout().key_slot(rank.index(), key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SharedFiles;
    use crate::page::{MAX_LOCAL_RANKS, RankState};

    fn control(size: u32) -> (SharedFiles, Control) {
        let files = SharedFiles::create(size, None).unwrap();
        let identity = JobIdentity {
            job_id: 7,
            size,
            huge_pages: 0,
            launcher_pid: 1,
            part: HostPart::whole(size),
        };
        let control = Control::create(&files.control, identity).unwrap();
        (files, control)
    }

    #[test]
    fn every_part_of_the_largest_control_file_is_in_bounds_and_disjoint() {
        let (_files, control) = control(MAX_LOCAL_RANKS);
        let mut addresses = vec![control.job() as *const _ as usize];
        for rank in (0..MAX_LOCAL_RANKS).map(JobRank) {
            addresses.push(control.rank_page(rank) as *const _ as usize);
            addresses.extend((0..KEYS).map(|key| control.key_slot(rank, key) as *const _ as usize));
        }
        let count = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), count);
    }

    #[test]
    fn a_control_file_of_another_job_size_or_kind_is_refused() {
        let (files, _control) = control(4);
        assert!(Control::open(&files.control, 4, 7).is_ok());
        assert!(
            Control::open(&files.control, 4, 8)
                .unwrap_err()
                .contains("another job")
        );
        assert!(
            Control::open(&files.control, 5, 7)
                .unwrap_err()
                .contains("5 ranks")
        );
        assert!(
            Control::open(&files.rings, 4, 7)
                .unwrap_err()
                .contains("0 bytes")
        );
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(
            Control::open(&null, 4, 7)
                .unwrap_err()
                .contains("not a shared memory file")
        );
        let blank = SharedFiles::create(4, None).unwrap();
        assert!(
            Control::open(&blank.control, 4, 7)
                .unwrap_err()
                .contains("magic")
        );
    }

    #[test]
    fn a_rank_is_taken_once_and_its_state_only_grows() {
        let (_files, control) = control(2);
        let page = control.rank_page(JobRank(1));
        assert!(page.join(11) && !page.join(12));
        assert!(!page.end_unattached());
        assert!(page.advance(RankState::Finalized) && !page.advance(RankState::Running));
        assert_eq!((page.state(), page.pid()), (RankState::Finalized, 11));
        assert!(control.rank_page(JobRank(0)).end_unattached());
    }
}
