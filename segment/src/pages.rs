//! The kinds of pages that segments may lie on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SegmentError;

/// Size from which transparent huge pages are asked for: that of one huge page on x86-64, and on
/// aarch64 with 4 KiB pages.
pub(crate) const TRANSPARENT_BYTES: u64 = 2 << 20;

/// Where the kernel shows its pools of huge pages.
const POOLS: &str = "/sys/kernel/mm/hugepages";

/// The pages that segments lie on.
///
/// All ranks of a host use the same kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageKind {
    /// Pages of the base size, nothing else asked for.
    Normal,
    /// The kernel is asked for huge pages where a segment has 2 MiB or more, and gives as many as
    /// it can; nothing fails when it has none.
    ///
    /// Whether shared memory gets any is decided by
    /// `/sys/kernel/mm/transparent_hugepage/shmem_enabled`.
    #[default]
    TransparentHuge,
    /// Pages of this size from the pool that the administrator set aside; attaching fails when the
    /// pool is too small.
    Huge {
        /// Size of one page in bytes, a power of two that the kernel supports.
        size_bytes: u64,
    },
}

impl PageKind {
    /// Unit in which memory is mapped and segments grow.
    #[must_use]
    pub fn page_bytes(self) -> u64 {
        match self {
            Self::Normal | Self::TransparentHuge => base_page_bytes(),
            Self::Huge { size_bytes } => size_bytes,
        }
    }

    /// Alignment of each rank's span in the file and in memory.
    ///
    /// Never less than [`page_bytes`](Self::page_bytes); for transparent huge pages that of a huge
    /// page, without which the kernel could not use one.
    #[must_use]
    pub fn span_alignment_bytes(self) -> u64 {
        match self {
            Self::Normal => base_page_bytes(),
            Self::TransparentHuge => TRANSPARENT_BYTES.max(base_page_bytes()),
            Self::Huge { size_bytes } => size_bytes,
        }
    }

    /// `len` rounded up to whole pages, `None` when that exceeds 64 bits.
    #[must_use]
    pub fn round_up(self, len: u64) -> Option<u64> {
        len.checked_next_multiple_of(self.page_bytes())
    }

    /// Refuses sizes that are not sizes of huge pages of this kernel.
    pub(crate) fn check(self) -> Result<(), SegmentError> {
        match self {
            Self::Huge { size_bytes }
                if !size_bytes.is_power_of_two() || !pool(size_bytes).is_dir() =>
            {
                Err(SegmentError::UnsupportedPageSize {
                    page_bytes: size_bytes,
                    available: supported_sizes(),
                })
            }
            _ => Ok(()),
        }
    }
}

fn base_page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn pool(size_bytes: u64) -> PathBuf {
    Path::new(POOLS).join(format!("hugepages-{}kB", size_bytes >> 10))
}

fn supported_sizes() -> String {
    let mut sizes: Vec<String> = fs::read_dir(POOLS)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| name.strip_prefix("hugepages-").map(str::to_owned))
        .collect();
    sizes.sort();
    if sizes.is_empty() {
        "none".to_owned()
    } else {
        sizes.join(", ")
    }
}

/// Pages that the pool of this size can still give: those free and not promised to anyone, and
/// those that the kernel may add by itself.
pub(crate) fn obtainable_pages(size_bytes: u64) -> u64 {
    let count = |name: &str| {
        fs::read_to_string(pool(size_bytes).join(name))
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    let free = count("free_hugepages").saturating_sub(count("resv_hugepages"));
    let surplus = count("nr_overcommit_hugepages").saturating_sub(count("surplus_hugepages"));
    free.saturating_add(surplus)
}

/// The error that says how large the pool would have to be.
pub(crate) fn pool_too_small(size_bytes: u64, wanted_pages: u64) -> SegmentError {
    SegmentError::NoHugePages {
        page_bytes: size_bytes,
        wanted_pages,
        free_pages: obtainable_pages(size_bytes),
        pool_file: pool(size_bytes).join("nr_hugepages"),
    }
}

#[cfg(test)]
mod tests {
    use super::{PageKind, TRANSPARENT_BYTES, supported_sizes};

    #[test]
    fn lengths_are_rounded_to_pages_and_spans_to_huge_pages() {
        let page = PageKind::Normal.page_bytes();
        assert!(page.is_power_of_two());
        assert_eq!(PageKind::Normal.round_up(0), Some(0));
        assert_eq!(PageKind::Normal.round_up(1), Some(page));
        assert_eq!(PageKind::Normal.round_up(page + 1), Some(2 * page));
        assert_eq!(PageKind::Normal.round_up(u64::MAX), None);
        assert_eq!(PageKind::TransparentHuge.page_bytes(), page);
        assert_eq!(
            PageKind::TransparentHuge.span_alignment_bytes(),
            TRANSPARENT_BYTES
        );
        let huge = PageKind::Huge {
            size_bytes: 1 << 30,
        };
        assert_eq!(huge.round_up(1), Some(1 << 30));
    }

    #[test]
    fn sizes_that_this_kernel_has_are_accepted() {
        for kilobytes in supported_sizes().split(", ").filter(|size| *size != "none") {
            let size_bytes = kilobytes.trim_end_matches("kB").parse::<u64>().unwrap() << 10;
            PageKind::Huge { size_bytes }.check().unwrap();
        }
    }

    #[test]
    fn sizes_that_no_kernel_has_are_refused_with_those_that_it_has() {
        for size_bytes in [0, 3 << 20, 1 << 13] {
            let error = PageKind::Huge { size_bytes }.check().unwrap_err();
            assert!(error.to_string().contains("it has"), "{error}");
        }
    }
}
