//! The four shared files of a host: made once, inherited by descriptor, never named.

use std::os::fd::{AsFd, OwnedFd};

use argonet_settings::HugePages;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

use crate::error::BootError;
use crate::page::Layout;

const SEALABLE: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);

/// Descriptors of shared files are moved to this number or above where the limit allows it, because
/// shell scripts between the launcher and the rank use the low ones.
const LOW_FD_LIMIT: i32 = 100;

/// The shared files of the ranks of one host.
///
/// Descriptors are close-on-exec in a rank.
#[derive(Debug)]
pub struct SharedFiles {
    /// The job page, the ranks' pages and the key store; sized and sealed before the first rank
    /// starts.
    pub control: OwnedFd,
    /// Raw memory for the shared-memory conduit, which sizes it.
    ///
    /// Sealed against shrinking, so that no access below a size once seen can fault; empty at
    /// first.
    pub rings: OwnedFd,
    /// Raw memory for the segments, sized by the segment crate; empty at first.
    ///
    /// Takes seals.
    pub segments: OwnedFd,
    /// Raw memory for interfaces in software, which a conduit sizes; of all ranks of the host.
    ///
    /// Sealed as `rings`, empty at first.
    pub interfaces: OwnedFd,
    /// The page size of `segments`, when it is not the system's base page.
    pub huge_pages: Option<HugePages>,
}

impl SharedFiles {
    /// Makes the files for a job of `size` ranks; the control file is all zero.
    pub(crate) fn create(size: u32, huge_pages: Option<HugePages>) -> Result<Self, BootError> {
        let control = memfd("argonet-control", SEALABLE)?;
        let bytes = Layout::new(size).total_bytes() as u64;
        let sizing = |e: Errno| {
            BootError::system(
                format!("sizing the control memory of {size} ranks ({bytes} bytes)"),
                e,
            )
        };
        // The system's own answer would be a signal, SIGXFSZ.
        if getrlimit(Resource::Fsize)
            .current
            .is_some_and(|most| most < bytes)
        {
            return Err(sizing(Errno::FBIG));
        }
        ftruncate(&control, bytes).map_err(sizing)?;
        fcntl_add_seals(&control, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| BootError::system("sealing the control memory", e))?;
        let interfaces = growing("argonet-interfaces")?;
        Ok(Self {
            control,
            rings: growing("argonet-rings")?,
            segments: Self::segments(huge_pages)?,
            interfaces,
            huge_pages,
        })
    }

    /// Files of ranks of the same host that share no more than control memory and interfaces with
    /// those that have these, and the segments if the conduit reaches those.
    pub(crate) fn of_other_neighborhood(&self, reaches_segments: bool) -> Result<Self, BootError> {
        let share = |file: &OwnedFd| {
            fcntl_dupfd_cloexec(file, LOW_FD_LIMIT)
                // The limit of open files is low.
                .or_else(|_| fcntl_dupfd_cloexec(file, 0))
                .map_err(|e| BootError::system("sharing memory between neighborhoods", e))
        };
        Ok(Self {
            control: share(&self.control)?,
            rings: growing("argonet-rings")?,
            segments: match reaches_segments {
                true => share(&self.segments)?,
                false => Self::segments(self.huge_pages)?,
            },
            interfaces: share(&self.interfaces)?,
            huge_pages: self.huge_pages,
        })
    }

    fn segments(huge_pages: Option<HugePages>) -> Result<OwnedFd, BootError> {
        memfd(
            "argonet-segments",
            SEALABLE
                | match huge_pages {
                    None => MemfdFlags::empty(),
                    Some(HugePages::Size2MB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
                    Some(HugePages::Size1GB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
                },
        )
    }
}

/// A file that only becomes longer.
fn growing(name: &str) -> Result<OwnedFd, BootError> {
    let fd = memfd(name, SEALABLE)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK)
        .map_err(|e| BootError::system("sealing shared memory against shrinking", e))?;
    Ok(fd)
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

/// The same file under a descriptor out of the way of shell scripts, or as it was where the limit
/// is too low.
pub(crate) fn moved_up(fd: OwnedFd) -> OwnedFd {
    fcntl_dupfd_cloexec(fd.as_fd(), LOW_FD_LIMIT).unwrap_or(fd)
}
