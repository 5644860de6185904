//! The hash table of one rank.
//!
//! Counting is bound by memory, so a k-mer takes eight bytes: one array of words, in which an entry
//! leaves out the bits that its place already gives (Knuth's "quotienting", TAOCP 6.4, exercise
//! 13). Probing goes round the eight slots of the home's cache line, then round those of the next
//! line, so that nearly every k-mer costs one cache miss.
//!
//! ```text
//!   63                                                              0
//!  +---------------------------+--------------+----------------------+
//!  | remainder: 62 - bits      | displacement | count: bits - 8      |   2^bits slots, bits >= 16
//!  +---------------------------+--------------+----------------------+
//!  hash = home << (62 - bits) | remainder,    displacement = 8 * lines + slots further round the line
//! ```
//!
//! An empty slot is 0, which no entry is, since its count is at least 1. A count that fills its
//! field moves half of it to a side map, and so does the rare k-mer that finds no slot within the
//! displacement's reach.
//!
//! The high bits of the hash choose the home. Doubling the table therefore sends the entries of a
//! line to two adjacent ones at twice its place, which is done in place, streaming from the end.
//! The address space is reserved at the start and touched as the table grows.

use std::collections::HashMap;
use std::hint::black_box;

use argonet::zerocopy::FromBytes;
use memmap2::{MmapMut, MmapOptions};

use crate::kmer::{HASH_BITS, Hash, Kmer};

const DISPLACEMENT_BITS: u32 = 10;
/// Slots that one k-mer may probe.
///
/// As many follow the last home, so that probing need not wrap round the table.
const REACH: usize = 1 << DISPLACEMENT_BITS;
/// Slots of a cache line.
const LINE: usize = 8;
const MIN_BITS: u32 = 16;
const MAX_BITS: u32 = 38;
/// Entries are at most this share of the slots; beyond it probes grow long.
const LOAD_PERCENT: u64 = 70;
/// K-mers whose slots are touched together, so that their cache misses overlap.
const BLOCK: usize = 128;

/// Why a table could not grow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The system gave no address space.
    #[error("no memory for a table of {mebibytes} MiB: {source}; use more hosts or a smaller file")]
    Memory {
        /// Size asked for.
        mebibytes: usize,
        /// The system's answer.
        source: std::io::Error,
    },
    /// More than 2^38 slots.
    #[error("the table holds {entries} different k-mers and cannot grow further; use more ranks")]
    Full {
        /// Different k-mers so far.
        entries: u64,
    },
}

/// Counts by k-mer.
///
/// Counts stop at `u32::MAX`.
pub struct Table {
    memory: MmapMut,
    bits: u32,
    /// Slots in use.
    entries: u64,
    /// Counts that the fields of entries had no room for.
    spilled: HashMap<Hash, u64>,
}

/// How entries of a table of 2^bits slots are laid out.
#[derive(Clone, Copy)]
struct Layout {
    remainder_bits: u32,
    count_bits: u32,
}

impl Layout {
    const fn new(bits: u32) -> Self {
        let remainder_bits = HASH_BITS - bits;
        Self {
            remainder_bits,
            count_bits: u64::BITS - remainder_bits - DISPLACEMENT_BITS,
        }
    }

    #[inline]
    fn home(self, hash: Hash) -> usize {
        (hash.bits() >> self.remainder_bits) as usize
    }

    /// The entry without displacement and count.
    #[inline]
    fn stem(self, hash: Hash) -> u64 {
        hash.bits() << (u64::BITS - self.remainder_bits)
    }

    #[inline]
    fn count_mask(self) -> u64 {
        (1 << self.count_bits) - 1
    }

    fn displacement(self, entry: u64) -> usize {
        (entry >> self.count_bits) as usize & (REACH - 1)
    }

    fn hash(self, place: usize, entry: u64) -> Hash {
        let displacement = self.displacement(entry);
        let line = place / LINE - displacement / LINE;
        let home = line * LINE + place.wrapping_sub(displacement) % LINE;
        Hash::from_bits(
            (home as u64) << self.remainder_bits | entry >> (u64::BITS - self.remainder_bits),
        )
    }
}

impl Table {
    /// An empty table for a share of `windows` windows.
    ///
    /// It may come to hold more.
    pub fn new(windows: u64) -> Result<Self, TableError> {
        // In reads each k-mer is seen many times, in a genome few: start small, reserve for the
        // worst.
        let bits = bits_for(windows / 8);
        Ok(Self {
            memory: map(bits_for(windows))?,
            bits,
            entries: 0,
            spilled: HashMap::new(),
        })
    }

    /// Counts each of `hashes` once.
    pub fn add_batch(&mut self, hashes: &[Hash]) -> Result<(), TableError> {
        for block in hashes.chunks(BLOCK) {
            if self.entries + block.len() as u64 > (1u64 << self.bits) / 100 * LOAD_PERCENT {
                self.grow()?;
            }
            self.add_block(block);
        }
        Ok(())
    }

    #[inline(never)]
    fn add_block(&mut self, block: &[Hash]) {
        let layout = Layout::new(self.bits);
        let slots = slots(&mut self.memory, self.bits);
        // Loads that nothing waits for overlap; one pass that loaded and then decided would take
        // the misses in turn.
        let touched = block
            .iter()
            .fold(0, |touched, &hash| touched | slots[layout.home(hash)]);
        black_box(touched);
        for &hash in block {
            match add(slots, layout, hash) {
                Ok(new) => self.entries += u64::from(new),
                Err(Spilled(count)) => *self.spilled.entry(hash).or_default() += count,
            }
        }
    }

    /// Calls `visit` with every k-mer and its count, in no order.
    pub fn for_each(&self, mut visit: impl FnMut(Kmer, u32)) {
        let layout = Layout::new(self.bits);
        let mut spilled = self.spilled.clone();
        let clamp = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        for (place, &entry) in view(&self.memory, self.bits).iter().enumerate() {
            if entry == 0 {
                continue;
            }
            let hash = layout.hash(place, entry);
            let more = if spilled.is_empty() {
                0
            } else {
                spilled.remove(&hash).unwrap_or(0)
            };
            visit(hash.kmer(), clamp((entry & layout.count_mask()) + more));
        }
        for (hash, count) in spilled {
            visit(hash.kmer(), clamp(count));
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), TableError> {
        let bits = self.bits + 1;
        if bits > MAX_BITS {
            return Err(TableError::Full {
                entries: self.entries,
            });
        }
        if bytes_of(bits) > self.memory.len() {
            let mut roomier = map(bits)?;
            let used = bytes_of(self.bits);
            roomier[..used].copy_from_slice(&self.memory[..used]);
            self.memory = roomier;
        }
        let (old, new) = (Layout::new(self.bits), Layout::new(bits));
        let mut strays = Vec::new();
        let mut homeless = Vec::new();
        let half = 1usize << self.bits;
        let slots = slots(&mut self.memory, bits);

        // Entries behind the last home, then ever lower halves: entries in `low..high` go to
        // `high..2 * high`, which is empty by then. Entries whose home is before `low` would land
        // in slots not yet moved, and wait. All these bounds are bounds of lines.
        take(&mut slots[half..half + REACH], half, old, |hash, count| {
            strays.push((hash, count))
        });
        let mut high = half;
        while high > REACH {
            let low = high / 2;
            let (below, above) = slots.split_at_mut(high);
            take(&mut below[low..], low, old, |hash, count| {
                if old.home(hash) < low {
                    strays.push((hash, count));
                } else if !place(above, new.home(hash) - high, new, hash, count) {
                    homeless.push((hash, count));
                }
            });
            high = low;
        }
        take(&mut slots[..high], 0, old, |hash, count| {
            strays.push((hash, count))
        });
        for (hash, count) in strays {
            if !place(slots, new.home(hash), new, hash, count) {
                homeless.push((hash, count));
            }
        }
        for (hash, count) in homeless {
            self.entries -= 1;
            *self.spilled.entry(hash).or_default() += count;
        }
        self.bits = bits;
        Ok(())
    }
}

/// This much of a count belongs in the side map.
struct Spilled(u64);

/// Counts once, and returns whether this took a free slot.
#[inline]
fn add(slots: &mut [u64], layout: Layout, hash: Hash) -> Result<bool, Spilled> {
    let home = layout.home(hash);
    let step = 1u64 << layout.count_bits;
    let mut wanted = layout.stem(hash);
    let Some(reach) = reach(slots, home) else {
        return Err(Spilled(1));
    };
    for displacement in 0..REACH {
        let slot = &mut reach[turn(home, displacement)];
        let entry = *slot;
        let (free, found) = (entry == 0, entry ^ wanted < step);
        // One branch for both: which of them it is cannot be predicted.
        if free | found {
            let counted = (entry | wanted) + 1;
            if counted & (step - 1) == 0 {
                *slot = entry - step / 2 + 1;
                return Err(Spilled(step / 2));
            }
            *slot = counted;
            return Ok(free);
        }
        wanted += step;
    }
    Err(Spilled(1))
}

/// Puts an entry that is nowhere in the table into the first free slot from its home on.
#[inline]
fn place(slots: &mut [u64], home: usize, layout: Layout, hash: Hash, count: u64) -> bool {
    let Some(reach) = reach(slots, home) else {
        return false;
    };
    for displacement in 0..REACH {
        let slot = &mut reach[turn(home, displacement)];
        if *slot == 0 {
            *slot = layout.stem(hash) | (displacement as u64) << layout.count_bits | count;
            return true;
        }
    }
    false
}

/// The lines that a k-mer of this home may be in.
///
/// There are always as many behind a home.
#[inline]
fn reach(slots: &mut [u64], home: usize) -> Option<&mut [u64; REACH]> {
    slots.get_mut(home - home % LINE..)?.first_chunk_mut()
}

/// The slot, within reach, that comes after `displacement` others.
#[inline]
const fn turn(home: usize, displacement: usize) -> usize {
    displacement - displacement % LINE + (home + displacement) % LINE
}

/// Empties `slots`, the first of which is number `first`.
#[inline]
fn take(slots: &mut [u64], first: usize, layout: Layout, mut visit: impl FnMut(Hash, u64)) {
    for (place, slot) in slots.iter_mut().enumerate() {
        let entry = std::mem::take(slot);
        if entry != 0 {
            visit(
                layout.hash(first + place, entry),
                entry & layout.count_mask(),
            );
        }
    }
}

/// Bits of the smallest table that holds `entries`.
fn bits_for(entries: u64) -> u32 {
    let slots = (entries.saturating_mul(100) / LOAD_PERCENT).max(1);
    (slots.ilog2() + 1).clamp(MIN_BITS, MAX_BITS)
}

const fn bytes_of(bits: u32) -> usize {
    ((1usize << bits) + REACH) * size_of::<u64>()
}

/// Zeroed address space for a table of 2^bits slots.
///
/// Pages get memory when they are first written.
fn map(bits: u32) -> Result<MmapMut, TableError> {
    let bytes = bytes_of(bits);
    let memory = MmapOptions::new()
        .len(bytes)
        .no_reserve_swap()
        .map_anon()
        .map_err(|source| TableError::Memory {
            mebibytes: bytes >> 20,
            source,
        })?;
    // With small pages nearly every k-mer would miss the TLB too. Where there are no huge pages it
    // works without.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

#[inline]
fn slots(memory: &mut MmapMut, bits: u32) -> &mut [u64] {
    // A mapping starts at a page and holds whole words, so the conversion cannot fail.
    <[u64]>::mut_from_bytes(&mut memory[..bytes_of(bits)]).unwrap_or_default()
}

fn view(memory: &MmapMut, bits: u32) -> &[u64] {
    <[u64]>::ref_from_bytes(&memory[..bytes_of(bits)]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn counts(table: &Table) -> HashMap<Kmer, u32> {
        let mut counts = HashMap::new();
        table
            .for_each(|kmer, count| assert_eq!(counts.insert(kmer, count), None, "{kmer:?} twice"));
        counts
    }

    /// As `Table::add_batch` does it, for any k-mers.
    fn count(hashes: &[Hash], batch: usize) -> (Table, HashMap<Kmer, u32>) {
        let mut table = Table::new(0).unwrap();
        let mut expected = HashMap::new();
        for hashes in hashes.chunks(batch) {
            table.add_batch(hashes).unwrap();
            hashes
                .iter()
                .for_each(|hash| *expected.entry(hash.kmer()).or_default() += 1);
        }
        (table, expected)
    }

    #[test]
    fn empty() {
        assert!(counts(&Table::new(1000).unwrap()).is_empty());
    }

    #[test]
    fn grows_with_every_kmer() {
        // Thrice, so that old entries are found again after each doubling.
        let hashes: Vec<_> = (0..3)
            .flat_map(|_| 0..1_000_000)
            .map(|i| Hash::of(Kmer(i)))
            .collect();
        let (table, expected) = count(&hashes, 1000);
        assert_eq!(table.bits, 21);
        assert_eq!(table.entries, 1_000_000);
        assert!(table.spilled.is_empty());
        assert_eq!(counts(&table), expected);
    }

    #[test]
    fn large_counts_spill() {
        let hashes: Vec<_> = (0..200_000).map(|i| Hash::of(Kmer(i % 3))).collect();
        let (table, expected) = count(&hashes, 777);
        assert_eq!(table.spilled.len(), 3);
        assert_eq!(counts(&table), expected);
    }

    #[test]
    fn counts_stop_at_their_limit() {
        let mut table = Table::new(0).unwrap();
        let hash = Hash::of(Kmer(5));
        table.add_batch(&[hash]).unwrap();
        table.spilled.insert(hash, u64::from(u32::MAX));
        assert_eq!(counts(&table), HashMap::from([(Kmer(5), u32::MAX)]));
    }

    #[test]
    fn crowded_homes_spill() {
        // More k-mers of one home than it may reach, before and after doublings that part them only
        // in the end.
        let crowd: Vec<_> = (0..3000).map(Hash::from_bits).collect();
        let last = (0..3000).map(|i| Hash::from_bits((1 << HASH_BITS) - 1 - i));
        let other = (0..100_000).map(|i| Hash::of(Kmer(i)));
        let hashes: Vec<_> = crowd
            .iter()
            .copied()
            .chain(last)
            .chain(other)
            .chain(crowd.clone())
            .collect();
        let (table, expected) = count(&hashes, 50);
        assert!(!table.spilled.is_empty());
        assert_eq!(table.bits, 18);
        assert_eq!(counts(&table), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Hashes crowd about some homes, those at both ends and at the seams of doubling among
        /// them.
        #[test]
        fn counts_as_a_map_does(
            near in prop::collection::vec((0u64..9, 0u64..(1 << 52)), 1..200),
            spread in prop::collection::vec(any::<u64>(), 0..400),
            copies in 1u64..600,
            batch in 1usize..700,
        ) {
            let homes = near.iter().map(|&(eighth, low)| (eighth << 59).wrapping_sub(1 << 51).wrapping_add(low));
            let mut hashes: Vec<_> = homes
                .flat_map(|bits| (0..copies).map(move |i| Hash::from_bits(bits.wrapping_add(i << 40))))
                .collect();
            hashes.extend(spread.iter().copied().map(Hash::from_bits));
            let (table, expected) = count(&hashes, batch);
            prop_assert_eq!(counts(&table), expected);
        }
    }
}
