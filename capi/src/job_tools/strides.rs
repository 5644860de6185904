//! Strided transfers, written out.

use core::ffi::{c_char, c_void};

use crate::export::{export, names};
use crate::job::Team;
use crate::job_tools::lists::{Bounds, WORD_BYTES};
use crate::job_tools::peer::{NAME_BYTES, named};
use crate::job_tools::{put, slice};

/// Bytes around the lists of a transfer: less than this and eight words.
const AROUND_BYTES: usize = 192 + 8 * WORD_BYTES;

/// The most bytes that so many numbers take, with a comma and a blank each, the brackets and a 0.
fn room(count: usize) -> usize {
    count.saturating_mul(WORD_BYTES + 2).saturating_add(3)
}

fn listed<T: ToString>(numbers: &[T]) -> String {
    let words: Vec<String> = numbers.iter().map(T::to_string).collect();
    format!("[{}]", words.join(", "))
}

/// One side of a transfer: where it begins, and how far apart its elements are in each dimension.
struct Side<'a> {
    address: *mut c_void,
    strides: &'a [isize],
}

impl Side<'_> {
    /// The first and the last byte that are touched, of so many elements in each dimension.
    fn bounds(&self, element: usize, counts: &[usize]) -> Bounds {
        if element == 0 || counts.contains(&0) {
            return Bounds(None);
        }
        let mut first = self.address;
        let mut last = self.address.wrapping_byte_add(element - 1);
        for (&stride, &count) in self.strides.iter().zip(counts) {
            let reach = stride.wrapping_mul((count - 1) as isize);
            if reach < 0 {
                first = first.wrapping_byte_offset(reach);
            } else {
                last = last.wrapping_byte_offset(reach);
            }
        }
        Bounds(Some((first, last)))
    }

    fn text(&self, element: usize, counts: &[usize]) -> String {
        let bounds = self.bounds(element, counts);
        format!(
            "{:p}, strides {}, {bounds}",
            self.address,
            listed(self.strides)
        )
    }
}

names! {
    isize = "ptrdiff_t",
    *const isize = "const ptrdiff_t *",
    *const usize = "const size_t *",
}

export! {
    /// Room for a list of strides.
    fn argonet_format_strides_bufsz(count: usize) -> usize {
        room(count)
    }

    /// A list of strides.
    fn argonet_format_strides(to: *mut c_char, count: usize, list: *const isize) {
        // SAFETY: as many strides as the caller says.
        let text = listed(unsafe { slice(list, count) });
        // SAFETY: room for as much as argonet_format_strides_bufsz returns, as the header says.
        unsafe { put(to, &text) };
    }

    /// Room for a strided transfer.
    fn argonet_format_putsgets_bufsz(levels: usize) -> usize {
        room(levels).saturating_mul(3).saturating_add(NAME_BYTES + AROUND_BYTES)
    }

    /// A strided transfer; its bytes.
    ///
    /// The second argument is the reference's own, which callers pass as null.
    fn argonet_format_putsgets(to: *mut c_char, _stats: *mut c_void, tm: *const Team, rank: u32,
                               dst: *mut c_void, dst_strides: *const isize,
                               src: *mut c_void, src_strides: *const isize,
                               element: usize, counts: *const usize, levels: usize) -> usize {
        // SAFETY: as many strides and counts as there are dimensions.
        let (dst_strides, src_strides, counts) =
            unsafe { (slice(dst_strides, levels), slice(src_strides, levels), slice(counts, levels)) };
        // SAFETY: a team of ours, or null.
        let peer = unsafe { named(tm, rank) };
        let total = counts.iter().fold(element, |all, &count| all.wrapping_mul(count));
        let side = |address, strides| Side { address, strides }.text(element, counts);
        let text = format!(
            "{total} bytes with {peer}: elements of {element} bytes, counts {}\nto {}\nfrom {}",
            listed(counts),
            side(dst, dst_strides),
            side(src, src_strides),
        );
        // SAFETY: room for as much as argonet_format_putsgets_bufsz returns, as the header says.
        unsafe { put(to, &text) };
        total
    }
}
