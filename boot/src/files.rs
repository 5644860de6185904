//! The three shared files of a host: made once, inherited by descriptor, never named.

use std::os::fd::{AsFd, OwnedFd};

use argonet_settings::HugePages;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;

use crate::error::BootError;
use crate::page::Layout;

const SEALABLE: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);

/// Descriptors of shared files are moved to this number or above where the limit allows it, because shell scripts
/// between the launcher and the rank use the low ones.
const LOW_FD_LIMIT: i32 = 100;

/// The shared files of the ranks of one host. Descriptors are close-on-exec in a rank.
#[derive(Debug)]
pub struct SharedFiles {
    /// The job page, the ranks' pages and the key store; sized and sealed before the first rank starts.
    pub control: OwnedFd,
    /// Raw memory for the shared-memory conduit, which sizes it. Sealed against shrinking, so that no access below a size
    /// once seen can fault; empty at first.
    pub rings: OwnedFd,
    /// Raw memory for the segments, sized by the segment crate; empty at first. Takes seals.
    pub segments: OwnedFd,
    /// The page size of `segments`, when it is not the system's base page.
    pub huge_pages: Option<HugePages>,
}

impl SharedFiles {
    /// Makes the files for a job of `size` ranks; the control file is all zero.
    pub(crate) fn create(size: u32, huge_pages: Option<HugePages>) -> Result<Self, BootError> {
        let control = memfd("argonet-control", SEALABLE)?;
        ftruncate(&control, Layout::new(size).total_bytes() as u64).map_err(|e| {
            BootError::system(format!("sizing the control memory of {size} ranks"), e)
        })?;
        fcntl_add_seals(&control, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| BootError::system("sealing the control memory", e))?;
        Self::with_control(control, huge_pages)
    }

    /// Files of ranks of the same host that share no more than the control memory with those that have these.
    pub(crate) fn of_other_neighbourhood(&self) -> Result<Self, BootError> {
        let control = fcntl_dupfd_cloexec(&self.control, LOW_FD_LIMIT)
            .map_err(|e| BootError::system("sharing the control memory", e))?;
        Self::with_control(control, self.huge_pages)
    }

    fn with_control(control: OwnedFd, huge_pages: Option<HugePages>) -> Result<Self, BootError> {
        let rings = memfd("argonet-rings", SEALABLE)?;
        fcntl_add_seals(&rings, SealFlags::SHRINK)
            .map_err(|e| BootError::system("sealing the memory of the rings", e))?;
        let segments = memfd(
            "argonet-segments",
            SEALABLE
                | match huge_pages {
                    None => MemfdFlags::empty(),
                    Some(HugePages::Size2MB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
                    Some(HugePages::Size1GB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
                },
        )?;
        Ok(Self {
            control,
            rings,
            segments,
            huge_pages,
        })
    }
}

fn memfd(name: &str, flags: MemfdFlags) -> Result<OwnedFd, BootError> {
    let fd = memfd_create(name, flags).map_err(|source| BootError::System {
        what: format!("making the shared memory file {name}"),
        source: source.into(),
        remedy: if flags.contains(MemfdFlags::HUGETLB) {
            "; does this system have huge pages of that size (/sys/kernel/mm/hugepages)? Else unset ARGONET_HUGEPAGES"
        } else {
            ""
        },
    })?;
    Ok(moved_up(fd))
}

/// The same file under a descriptor out of the way of shell scripts, or as it was where the limit is too low.
pub(crate) fn moved_up(fd: OwnedFd) -> OwnedFd {
    fcntl_dupfd_cloexec(fd.as_fd(), LOW_FD_LIMIT).unwrap_or(fd)
}
