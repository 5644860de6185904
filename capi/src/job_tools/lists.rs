//! Lists of memory, as vectored and indexed transfers have them, written out.

use core::ffi::{c_char, c_void};
use core::fmt::{self, Display, Formatter};
use core::mem::offset_of;
use core::ptr::{null_mut, without_provenance_mut};

use crate::export::{export, names};
use crate::job::Team;
use crate::job_tools::peer::{NAME_BYTES, named};
use crate::job_tools::{put, slice};

/// `gex_Memvec_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) address: *mut c_void,
    pub(crate) bytes: usize,
}

/// `argonet_memveclist_stats_t`: of the pieces that are not empty.
///
/// With none the least is the greatest number and the bounds are the last address and NULL, so that
/// any piece would change them.
#[repr(C)]
struct PieceStats {
    least: usize,
    most: usize,
    total: usize,
    first: *mut c_void,
    last: *mut c_void,
}

/// `argonet_addrlist_stats_t`.
#[repr(C)]
struct AddressStats {
    first: *mut c_void,
    last: *mut c_void,
}

impl PieceStats {
    fn of(pieces: impl Iterator<Item = Piece>) -> Self {
        let nothing = Self {
            least: usize::MAX,
            most: 0,
            total: 0,
            first: without_provenance_mut(usize::MAX),
            last: null_mut(),
        };
        pieces
            .filter(|piece| piece.bytes > 0)
            .fold(nothing, |stats, piece| {
                let last = piece.address.wrapping_byte_add(piece.bytes - 1);
                Self {
                    least: stats.least.min(piece.bytes),
                    most: stats.most.max(piece.bytes),
                    total: stats.total.wrapping_add(piece.bytes),
                    first: stats.first.min(piece.address),
                    last: stats.last.max(last),
                }
            })
    }

    fn bounds(&self) -> Bounds {
        match self.most {
            0 => Bounds(None),
            _ => Bounds(Some((self.first, self.last))),
        }
    }
}

/// The first and the last byte of some memory, if there is any.
pub(super) struct Bounds(pub(super) Option<(*mut c_void, *mut c_void)>);

impl Display for Bounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((first, last)) => write!(f, "within [{first:p}...{last:p}]"),
            None => f.write_str("empty"),
        }
    }
}

/// Longest word: an address with its `0x`, or a number with its sign.
pub(super) const WORD_BYTES: usize = 20;
/// Bytes of a list's entry beside its words: brackets, commas, blanks, and its share of a new line.
const ENTRY_BYTES: usize = 8;
/// Bytes around a list: four words, or five for addresses, among other text and a 0.
const AROUND_BYTES: usize = 64 + 5 * WORD_BYTES;
/// Entries in one line.
const LINE_ENTRIES: usize = 4;

/// The most bytes that a list takes, of entries with so many words each; far more than memory for
/// an absurd count.
fn room(count: usize, words: usize) -> usize {
    let entry = words * WORD_BYTES + ENTRY_BYTES;
    count.saturating_mul(entry).saturating_add(AROUND_BYTES)
}

/// The most bytes that a transfer between two lists takes.
fn room_for_both(dst: usize, src: usize, words: usize) -> usize {
    let lists = room(dst, words).saturating_add(room(src, words));
    lists.saturating_add(NAME_BYTES + AROUND_BYTES)
}

/// Entries between brackets, some in a line.
fn listed(entries: impl Iterator<Item = String>) -> String {
    let mut text = "[".to_owned();
    for (at, entry) in entries.enumerate() {
        text += match at {
            0 => "",
            at if at % LINE_ENTRIES == 0 => ",\n ",
            _ => ", ",
        };
        text += &entry;
    }
    text + "]"
}

fn pieces_text(pieces: &[Piece]) -> (String, PieceStats) {
    let stats = PieceStats::of(pieces.iter().copied());
    let entries = pieces
        .iter()
        .map(|piece| format!("{{{:p}, {}}}", piece.address, piece.bytes));
    let (count, total, bounds) = (pieces.len(), stats.total, stats.bounds());
    let text = format!(
        "{count} pieces, {total} bytes, {bounds}\n{}",
        listed(entries)
    );
    (text, stats)
}

fn addresses_text(addresses: &[*mut c_void], bytes: usize) -> (String, PieceStats) {
    let pieces = addresses.iter().map(|&address| Piece { address, bytes });
    let stats = PieceStats::of(pieces);
    let entries = addresses.iter().map(|&address| format!("{address:p}"));
    let (count, total, bounds) = (addresses.len(), stats.total, stats.bounds());
    let text = format!(
        "{count} addresses of {bytes} bytes each, {total} bytes, {bounds}\n{}",
        listed(entries)
    );
    (text, stats)
}

/// A transfer: bytes, the other rank, destination, source.
fn transfer(total: usize, peer: &str, dst: &str, src: &str) -> String {
    format!("{total} bytes with {peer}\nto {dst}\nfrom {src}")
}

names! {
    *mut Piece = "gex_Memvec_t *",
    *const Piece = "const gex_Memvec_t *",
    *const *mut c_void = "void *const *",
    PieceStats = "argonet_memveclist_stats_t",
    AddressStats = "argonet_addrlist_stats_t",
}

export! {
    /// Room for a list of pieces.
    fn argonet_format_memveclist_bufsz(count: usize) -> usize {
        room(count, 2)
    }

    /// A list of pieces; returns their totals.
    fn argonet_format_memveclist(to: *mut c_char, count: usize, list: *const Piece) -> PieceStats {
        // SAFETY: as many pieces as the caller says.
        let (text, stats) = pieces_text(unsafe { slice(list, count) });
        // SAFETY: room for as much as argonet_format_memveclist_bufsz returns, as the header says.
        unsafe { put(to, &text) };
        stats
    }

    /// Room for a transfer between lists of pieces.
    fn argonet_format_putvgetv_bufsz(dst_count: usize, src_count: usize) -> usize {
        room_for_both(dst_count, src_count, 2)
    }

    /// A transfer between lists of pieces; its bytes.
    fn argonet_format_putvgetv(to: *mut c_char, tm: *const Team, rank: u32,
                               dst_count: usize, dst_list: *const Piece,
                               src_count: usize, src_list: *const Piece) -> usize {
        // SAFETY: as many pieces as the caller says.
        let (dst, src) = unsafe { (slice(dst_list, dst_count), slice(src_list, src_count)) };
        // SAFETY: a team of ours, or null.
        let peer = unsafe { named(tm, rank) };
        let ((dst, stats), (src, _)) = (pieces_text(dst), pieces_text(src));
        // SAFETY: room for as much as argonet_format_putvgetv_bufsz returns, as the header says.
        unsafe { put(to, &transfer(stats.total, &peer, &dst, &src)) };
        stats.total
    }

    /// Room for a list of addresses.
    fn argonet_format_addrlist_bufsz(count: usize) -> usize {
        room(count, 1)
    }

    /// A list of addresses of equal pieces; between which the pieces lie.
    fn argonet_format_addrlist(to: *mut c_char, count: usize, list: *const *mut c_void, bytes: usize) -> AddressStats {
        // SAFETY: as many addresses as the caller says.
        let (text, stats) = addresses_text(unsafe { slice(list, count) }, bytes);
        // SAFETY: room for as much as argonet_format_addrlist_bufsz returns, as the header says.
        unsafe { put(to, &text) };
        AddressStats { first: stats.first, last: stats.last }
    }

    /// Room for a transfer between lists of addresses.
    fn argonet_format_putigeti_bufsz(dst_count: usize, src_count: usize) -> usize {
        room_for_both(dst_count, src_count, 1)
    }

    /// A transfer between lists of addresses; its bytes.
    fn argonet_format_putigeti(to: *mut c_char, tm: *const Team, rank: u32,
                               dst_count: usize, dst_list: *const *mut c_void, dst_bytes: usize,
                               src_count: usize, src_list: *const *mut c_void, src_bytes: usize) -> usize {
        // SAFETY: as many addresses as the caller says.
        let (dst, src) = unsafe { (slice(dst_list, dst_count), slice(src_list, src_count)) };
        // SAFETY: a team of ours, or null.
        let peer = unsafe { named(tm, rank) };
        let ((dst, stats), (src, _)) = (addresses_text(dst, dst_bytes), addresses_text(src, src_bytes));
        // SAFETY: room for as much as argonet_format_putigeti_bufsz returns, as the header says.
        unsafe { put(to, &transfer(stats.total, &peer, &dst, &src)) };
        stats.total
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(gex_Memvec_t)", size_of::<Piece>()),
    ("offsetof(gex_Memvec_t, gex_len)", offset_of!(Piece, bytes)),
    (
        "sizeof(argonet_memveclist_stats_t)",
        size_of::<PieceStats>(),
    ),
    (
        "offsetof(argonet_memveclist_stats_t, _maxsz)",
        offset_of!(PieceStats, most),
    ),
    (
        "offsetof(argonet_memveclist_stats_t, _totalsz)",
        offset_of!(PieceStats, total),
    ),
    (
        "offsetof(argonet_memveclist_stats_t, _minaddr)",
        offset_of!(PieceStats, first),
    ),
    (
        "offsetof(argonet_memveclist_stats_t, _maxaddr)",
        offset_of!(PieceStats, last),
    ),
    (
        "sizeof(argonet_addrlist_stats_t)",
        size_of::<AddressStats>(),
    ),
    (
        "offsetof(argonet_addrlist_stats_t, _maxaddr)",
        offset_of!(AddressStats, last),
    ),
];
