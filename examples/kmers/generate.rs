//! Makes sequence to measure with: one seed and size, one file, on every machine.
//!
//! Random bases alone would make nearly every 31-mer occur once. As in a genome, some of this
//! sequence repeats: families of transposons in soft-masked, diverged copies on either strand,
//! duplications of the last megabases, microsatellites, and gaps of `N`.

use std::io::{self, Write};
use std::str::FromStr;

const LINE_LETTERS: u64 = 70;
const LINE_BYTES: u64 = LINE_LETTERS + 1;
/// Letters of a record: a file of 256 MB has 8.
const RECORD_LETTERS: u64 = 32_000_000;
/// No record begins with fewer bytes left.
const LEAST_RECORD_BYTES: u64 = 1000;
const LEAST_BYTES: u64 = 100;
const FAMILIES: u64 = 64;
const HISTORY_LETTERS: usize = 1 << 22;

/// A size in bytes, as in `256MB` or `1GiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => {
                return Err(format!(
                    "'{unit}' is not a unit; use kB, MB, GB, KiB, MiB or GiB"
                ));
            }
        };
        let number: u64 = number
            .parse()
            .map_err(|_| format!("'{text}' is not a size such as 256MB"))?;
        match number.checked_mul(factor) {
            Some(bytes) if bytes >= LEAST_BYTES => Ok(Self(bytes)),
            Some(_) => Err(format!("a file must have at least {LEAST_BYTES} bytes")),
            None => Err(format!("'{text}' is too large")),
        }
    }
}

/// Writes a FASTA file of exactly `size` bytes.
pub fn write(out: &mut impl Write, seed: u64, size: Size) -> io::Result<()> {
    let mut genome = Genome::new(seed);
    let mut left = size.0;
    let mut record = 0;
    let mut line = Vec::new();
    while left > 0 {
        record += 1;
        line.clear();
        writeln!(line, ">generated{record} seed={seed} size={}", size.0)?;
        out.write_all(&line)?;
        left -= line.len() as u64;
        let mut letters = 0;
        while left > 0 && (letters < RECORD_LETTERS || left < LEAST_RECORD_BYTES) {
            // The last line takes the rest, one more when that would be an empty line.
            let bytes = if left <= LINE_BYTES + 1 {
                left
            } else {
                LINE_BYTES
            };
            genome.line(usize::try_from(bytes - 1).unwrap_or_default(), &mut line);
            out.write_all(&line)?;
            letters += bytes - 1;
            left -= bytes;
        }
    }
    out.flush()
}

struct Genome {
    random: Random,
    families: Vec<Vec<u8>>,
    /// Letters of the last segments; those up to `used` are written.
    letters: Vec<u8>,
    used: usize,
}

impl Genome {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut family = |_| {
            let length = random.within(300, 6000);
            let mut letters = Vec::new();
            random.bases(length, &mut letters);
            letters
        };
        let families = (0..FAMILIES).map(&mut family).collect();
        Self {
            random,
            families,
            letters: Vec::new(),
            used: 0,
        }
    }

    /// The next letters, with a line end.
    fn line(&mut self, length: usize, line: &mut Vec<u8>) {
        while self.letters.len() - self.used < length {
            self.segment();
        }
        line.clear();
        line.extend_from_slice(&self.letters[self.used..self.used + length]);
        line.push(b'\n');
        self.used += length;
        if self.used > 2 * HISTORY_LETTERS {
            let old = self.used - HISTORY_LETTERS;
            self.letters.drain(..old);
            self.used -= old;
        }
    }

    fn segment(&mut self) {
        let Self {
            random,
            families,
            letters,
            ..
        } = self;
        match random.below(1000) {
            0..560 => {
                let length = random.within(500, 4000);
                random.bases(length, letters);
            }
            560..860 => {
                // The lesser of two makes some families much larger than others.
                let family = random.below(FAMILIES).min(random.below(FAMILIES));
                let whole = &families[usize::try_from(family).unwrap_or_default()];
                let start = random.index(whole.len() / 2);
                let divergence = random.below(160);
                random.copy(&whole[start..], divergence, u8::to_ascii_lowercase, letters);
            }
            860..970 if letters.len() > 20_000 => {
                let length = usize::try_from(random.within(1000, 20_000)).unwrap_or_default();
                let start = random.index(letters.len() - length);
                let source = letters[start..start + length].to_vec();
                let divergence = random.below(20);
                random.copy(&source, divergence, |&letter| letter, letters);
            }
            970..990 => {
                let mut unit = Vec::new();
                let length = random.within(1, 7);
                random.bases(length, &mut unit);
                unit.make_ascii_lowercase();
                let copies = random.index(60) + 10;
                letters.extend(unit.repeat(copies));
            }
            990..1000 => {
                let gap = random.index(200) + 1;
                letters.extend(std::iter::repeat_n(b'N', gap));
            }
            _ => {
                let length = random.within(500, 4000);
                random.bases(length, letters);
            }
        }
    }
}

/// Blackman and Vigna's xoshiro256++, seeded with splitmix64 (<https://prng.di.unimi.it/>).
struct Random([u64; 4]);

impl Random {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }

    fn bases(&mut self, length: u64, letters: &mut Vec<u8>) {
        let mut bits = 0;
        for i in 0..length {
            if i % 32 == 0 {
                bits = self.next();
            }
            letters.push(b"ACGT"[(bits & 3) as usize]);
            bits >>= 2;
        }
    }

    /// A copy of `source` on either strand, in which so many of 1000 letters are others.
    fn copy(&mut self, source: &[u8], divergence: u64, case: fn(&u8) -> u8, letters: &mut Vec<u8>) {
        let start = letters.len();
        if self.below(2) == 0 {
            letters.extend(source.iter().map(case));
        } else {
            letters.extend(source.iter().rev().map(|letter| complement(case(letter))));
        }
        if divergence == 0 {
            return;
        }
        // Gaps between substitutions, uniform about their mean.
        let gap = 2000 / divergence;
        let mut at = start + self.index(gap as usize + 1);
        while at < letters.len() {
            let other = b"ACGT"[self.index(4)];
            letters[at] = if letters[at].is_ascii_lowercase() {
                other.to_ascii_lowercase()
            } else {
                other
            };
            at += 1 + self.index(gap as usize + 1);
        }
    }
}

fn complement(letter: u8) -> u8 {
    match letter {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        b'T' => b'A',
        b'a' => b't',
        b'c' => b'g',
        b'g' => b'c',
        b't' => b'a',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(seed: u64, size: u64) -> Vec<u8> {
        let mut file = Vec::new();
        write(&mut file, seed, Size(size)).unwrap();
        file
    }

    #[test]
    fn sizes_are_exact() {
        for size in (LEAST_BYTES..400).chain([999_999]) {
            let file = generated(1, size);
            assert_eq!(file.len() as u64, size);
            assert!(
                file.starts_with(b">generated1 ")
                    && file.ends_with(b"\n")
                    && !file.ends_with(b"\n\n")
            );
        }
    }

    #[test]
    fn seeds_decide() {
        let file = generated(7, 3_000_000);
        assert_eq!(file, generated(7, 3_000_000));
        let sequence = |file: &[u8]| file[100..].to_vec();
        assert_ne!(sequence(&file), sequence(&generated(8, 3_000_000)));
        assert!(
            sequence(&file)
                .iter()
                .all(|letter| b"ACGTacgtN\n".contains(letter))
        );
        assert!(
            b"ACGTacgtN"
                .iter()
                .all(|letter| sequence(&file).contains(letter))
        );
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!("256MB".parse(), Ok(Size(256_000_000)));
        assert_eq!("1GiB".parse(), Ok(Size(1 << 30)));
        assert_eq!("4096".parse(), Ok(Size(4096)));
        for bad in ["", "MB", "1XB", "1", "-5MB", "99999999999GB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
