//! Numbers of this process in a memory file that only it has open, where other processes of the
//! same user read them through `/proc` while the job runs.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io;

/// Words of 64 bits in such a file.
// Each word stands for itself, so Relaxed is enough; this process alone writes.
pub(crate) struct Words {
    map: MmapRaw,
    count: usize,
    _file: OwnedFd,
}

impl Words {
    /// All 0, in a file of this name.
    pub(crate) fn new(name: &str, count: usize) -> io::Result<Self> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, (count * 8) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = MmapOptions::new().len(count * 8).map_raw(&file)?;
        Ok(Self {
            map,
            count,
            _file: file,
        })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < self.count, "word {at} of {}", self.count);
        // SAFETY: within the mapping, which begins at a page and stays as long as `self`; the file
        // keeps its length, so other processes can only change the numbers.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(at)) }
    }

    /// What another process reads.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.all()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    pub(crate) fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, Relaxed);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<u64> {
        (0..self.count)
            .map(|at| self.word(at).load(Relaxed))
            .collect()
    }
}

/// Out of the bytes of such a file; `None` if they are none.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    rest.is_empty().then_some(words)
}

/// Two halves.
pub(crate) fn two(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd as _;

    /// Another process of the same user may open it.
    #[test]
    fn the_file_keeps_its_length() {
        let words = Words::new("argonet-test", 3).unwrap();
        words.set(2, 7);
        let path = format!("/proc/self/fd/{}", words._file.as_raw_fd());
        let other = OpenOptions::new().write(true).open(path).unwrap();
        for len in [0, 8, 1 << 20] {
            assert!(other.set_len(len).is_err(), "{len}");
        }
        assert_eq!(words.all(), [0, 0, 7]);
    }
}
