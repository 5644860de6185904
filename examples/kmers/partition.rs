//! Windows by the rank that counts them, such that each is counted once.
//!
//! * A FASTA file is cut into ranges of bytes, and a window belongs to the range in which its first
//!   base lies. So a rank reads on past its range for the `k - 1` bases that complete the last
//!   windows.
//! * A FASTQ file is cut into ranges too, moved to the next start of a record.
//! * Compressed data can only be read from its start: each rank reads all of it and keeps every
//!   `ranks`-th stripe of bases, again with `k - 1` more.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use crate::kmer::{BREAK, K};
use crate::parse::{Fault, Format, Scanner, Sink, Start};

/// Bases of a stripe: at least as many as the overlap, and enough to make the share even.
pub const STRIPE_BASES: u64 = 1 << 16;
const READ_BYTES: usize = 1 << 18;

/// One of the shares of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which share, below `ranks`.
    pub rank: u32,
    /// How many there are.
    pub ranks: u32,
}

impl Part {
    /// All of the work.
    pub const WHOLE: Self = Self { rank: 0, ranks: 1 };
}

/// The share of one rank, which counts every window of `codes` without a [`BREAK`].
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Share {
    /// Bases of 0 to 3, and breaks.
    pub codes: Vec<u8>,
    /// Records that begin in this share.
    pub records: u64,
    /// Letters of this share, those of the overlap left out.
    pub letters: u64,
}

impl Share {
    fn add_break(&mut self) {
        if self.codes.last().is_some_and(|&last| last != BREAK) {
            self.codes.push(BREAK);
        }
    }
}

/// Text that cannot be read, or is not what it should be.
#[derive(Debug)]
pub enum ReadError {
    /// From the file.
    Io(io::Error),
    /// From its contents.
    ///
    /// The line is counted from the start of the range.
    Fault(Fault),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Scans a whole text.
pub fn scan(
    text: &mut impl BufRead,
    scanner: &mut Scanner,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    loop {
        let piece = match text.fill_buf() {
            Ok([]) => return Ok(scanner.finish(sink)?),
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        scanner.feed(piece, sink)?;
        let length = piece.len();
        text.consume(length);
    }
}

/// The share of `part` in a text that can be read from anywhere.
pub fn read_range(
    text: &mut (impl Read + Seek),
    format: Format,
    k: K,
    part: Part,
) -> Result<Share, ReadError> {
    let length = text.seek(SeekFrom::End(0))?;
    let cut = |rank| {
        u64::try_from(u128::from(length) * u128::from(rank) / u128::from(part.ranks))
            .unwrap_or(length)
    };
    let (start, end) = (cut(part.rank), cut(part.rank + 1));
    match format {
        Format::Fasta => read_fasta(text, k, [start, end], length),
        Format::Fastq => read_fastq(text, [start, end], length),
    }
}

fn read_fasta(
    text: &mut (impl Read + Seek),
    k: K,
    cuts: [u64; 2],
    length: u64,
) -> Result<Share, ReadError> {
    let [start, end] = [
        line_end_kept(text, cuts[0], length)?,
        line_end_kept(text, cuts[1], length)?,
    ];
    let mut sink = RangeSink {
        share: Share::default(),
        overlap: None,
    };
    let mut scanner = Scanner::new(Format::Fasta, fasta_start(text, start)?);
    sink.share
        .codes
        .reserve(usize::try_from(end - start).unwrap_or_default() + k.bases());
    feed_range(text, start, end, &mut scanner, &mut sink)?;

    sink.overlap = Some(k.bases() - 1);
    let mut at = end;
    while at < length && sink.overlap != Some(0) && !scanner.in_header() {
        let next = length.min(at + 4 * k.bases() as u64);
        feed_range(text, at, next, &mut scanner, &mut sink)?;
        at = next;
    }
    if at == length {
        scanner.finish(&mut sink)?;
    }
    sink.share.add_break();
    Ok(sink.share)
}

/// A cut between CR and LF is moved past them, or else neither side would see that they belong
/// together.
fn line_end_kept(text: &mut (impl Read + Seek), cut: u64, length: u64) -> io::Result<u64> {
    let moves = cut > 0 && cut < length && byte_at(text, cut - 1)? == b'\r';
    Ok(if moves { cut + 1 } else { cut })
}

/// The kind of line that `at` is in, found from the start of that line.
fn fasta_start(text: &mut (impl Read + Seek), at: u64) -> io::Result<Start> {
    if at == 0 {
        return Ok(Start::File);
    }
    let mut block = vec![0; READ_BYTES];
    let mut high = at;
    let line_start = loop {
        let low = high.saturating_sub(READ_BYTES as u64);
        let block = &mut block[..usize::try_from(high - low).unwrap_or(READ_BYTES)];
        text.seek(SeekFrom::Start(low))?;
        text.read_exact(block)?;
        if let Some(before) = block.iter().rposition(|&b| b == b'\n') {
            break low + before as u64 + 1;
        }
        if low == 0 {
            break 0;
        }
        high = low;
    };
    Ok(if line_start == at {
        Start::Line
    } else if byte_at(text, line_start)? == b'>' {
        Start::Header
    } else {
        Start::Sequence
    })
}

fn byte_at(text: &mut (impl Read + Seek), at: u64) -> io::Result<u8> {
    let mut byte = [0];
    text.seek(SeekFrom::Start(at))?;
    text.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn read_fastq(
    text: &mut (impl Read + Seek),
    cuts: [u64; 2],
    length: u64,
) -> Result<Share, ReadError> {
    let [start, end] = [
        fastq_record(text, cuts[0], length)?,
        fastq_record(text, cuts[1], length)?,
    ];
    let mut sink = RangeSink {
        share: Share::default(),
        overlap: None,
    };
    let mut scanner = Scanner::new(Format::Fastq, Start::File);
    feed_range(text, start, end, &mut scanner, &mut sink)?;
    // The next range starts where a record starts, so this one must end where one ends.
    scanner.finish(&mut sink)?;
    Ok(sink.share)
}

/// The start of the first record at or behind `cut`; the end of the text when there is none.
///
/// A line that starts with `@` may also be a quality line. But the second line after that one is a
/// sequence, which cannot start with `+`, while the second line after a `@` line always does.
fn fastq_record(text: &mut (impl Read + Seek), cut: u64, length: u64) -> io::Result<u64> {
    if cut == 0 {
        return Ok(0);
    }
    if cut >= length {
        return Ok(length);
    }
    text.seek(SeekFrom::Start(cut - 1))?;
    let mut lines = BufReader::with_capacity(READ_BYTES, text);
    let mut at = cut - 1 + skip_line(&mut lines)?;
    let mut two_before = None;
    let mut one_before = None;
    loop {
        let Some(&first) = lines.fill_buf()?.first() else {
            return Ok(length);
        };
        if let (b'+', Some((start, b'@'))) = (first, two_before) {
            return Ok(start);
        }
        (two_before, one_before) = (one_before, Some((at, first)));
        at += skip_line(&mut lines)?;
    }
}

/// Bytes up to and with the next `\n`.
fn skip_line(lines: &mut impl BufRead) -> io::Result<u64> {
    lines.skip_until(b'\n').map(|bytes| bytes as u64)
}

fn feed_range(
    text: &mut (impl Read + Seek),
    start: u64,
    end: u64,
    scanner: &mut Scanner,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    if start >= end {
        return Ok(());
    }
    text.seek(SeekFrom::Start(start))?;
    let mut left = end - start;
    let mut block = vec![0; READ_BYTES.min(usize::try_from(left).unwrap_or(READ_BYTES))];
    while left > 0 {
        let wanted = block.len().min(usize::try_from(left).unwrap_or(READ_BYTES));
        let piece = &mut block[..wanted];
        text.read_exact(piece)?;
        scanner.feed(piece, sink)?;
        left -= wanted as u64;
    }
    Ok(())
}

/// Keeps all bases, and behind the range only as many as `overlap` says.
struct RangeSink {
    share: Share,
    overlap: Option<usize>,
}

impl Sink for RangeSink {
    fn record(&mut self) {
        if self.overlap.is_none() {
            self.share.records += 1;
        }
    }

    fn bases(&mut self, codes: &[u8]) {
        if let Some(left) = &mut self.overlap {
            let more = codes.len().min(*left);
            *left -= more;
            self.share.codes.extend_from_slice(&codes[..more]);
        } else {
            self.share.letters += codes.len() as u64;
            self.share.codes.extend_from_slice(codes);
        }
    }

    fn end(&mut self) {
        self.share.add_break();
        if self.overlap.is_some() {
            self.overlap = Some(0);
        }
    }
}

/// Keeps the stripes of one rank, and the overlap behind each.
pub struct StripeSink {
    share: Share,
    part: Part,
    stripe_letters: u64,
    overlap_letters: usize,
    /// Letters seen, kept or not.
    seen: u64,
    overlap_left: usize,
}

impl StripeSink {
    /// Keeps every `ranks`-th stripe of `stripe_letters`, at least `k - 1`.
    pub fn new(k: K, part: Part, stripe_letters: u64) -> Self {
        let overlap_letters = k.bases() - 1;
        assert!(
            stripe_letters >= overlap_letters.max(1) as u64,
            "a stripe must be as long as the overlap"
        );
        Self {
            share: Share::default(),
            part,
            stripe_letters,
            overlap_letters,
            seen: 0,
            overlap_left: 0,
        }
    }

    /// The share that was kept.
    pub fn finish(mut self) -> Share {
        self.share.add_break();
        self.share
    }

    fn mine(&self) -> bool {
        (self.seen / self.stripe_letters) % u64::from(self.part.ranks) == u64::from(self.part.rank)
    }
}

impl Sink for StripeSink {
    fn record(&mut self) {
        if self.mine() {
            self.share.records += 1;
        }
    }

    fn bases(&mut self, mut codes: &[u8]) {
        while !codes.is_empty() {
            let stripe_left = self.stripe_letters - self.seen % self.stripe_letters;
            let length = codes
                .len()
                .min(usize::try_from(stripe_left).unwrap_or(usize::MAX));
            let (piece, rest) = codes.split_at(length);
            if self.mine() {
                // Windows that begin in the other ranks' stripes end here, even when the overlap
                // reached up to this one.
                if self.part.ranks > 1 && self.seen.is_multiple_of(self.stripe_letters) {
                    self.share.add_break();
                }
                self.overlap_left = self.overlap_letters;
                self.share.letters += length as u64;
                self.share.codes.extend_from_slice(piece);
            } else {
                let more = length.min(self.overlap_left);
                self.overlap_left -= more;
                self.share.codes.extend_from_slice(&piece[..more]);
            }
            self.seen += length as u64;
            codes = rest;
        }
    }

    fn end(&mut self) {
        self.share.add_break();
        self.overlap_left = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::kmer::Kmer;
    use crate::sequential;

    /// How often each k-mer occurs, with the numbers of records and letters.
    type Contents = (BTreeMap<Kmer, usize>, u64, u64);

    fn contents(shares: &[Share], k: K) -> Contents {
        let mut kmers = BTreeMap::new();
        for share in shares {
            for kmer in sequential::windows(&share.codes, k) {
                *kmers.entry(kmer).or_default() += 1;
            }
        }
        (
            kmers,
            shares.iter().map(|s| s.records).sum(),
            shares.iter().map(|s| s.letters).sum(),
        )
    }

    fn by_ranges(text: &str, format: Format, k: K, ranks: u32) -> Vec<Share> {
        (0..ranks)
            .map(|rank| {
                read_range(&mut Cursor::new(text), format, k, Part { rank, ranks }).unwrap()
            })
            .collect()
    }

    fn by_stripes(text: &str, format: Format, k: K, ranks: u32, stripe: u64) -> Vec<Share> {
        let keep = |rank| {
            let mut sink = StripeSink::new(k, Part { rank, ranks }, stripe);
            scan(
                &mut Cursor::new(text),
                &mut Scanner::new(format, Start::File),
                &mut sink,
            )
            .unwrap();
            sink.finish()
        };
        (0..ranks).map(keep).collect()
    }

    /// Few different bases, so that a window that is missed for another would not go unnoticed by
    /// chance.
    fn sequence(most: usize) -> impl Strategy<Value = String> {
        let letter = prop_oneof![30 => prop::char::range('A', 'A'), 30 => Just('C'), 30 => Just('t'), 30 => Just('G'), 2 => Just('N')];
        prop::collection::vec(letter, 0..most).prop_map(String::from_iter)
    }

    fn line_end() -> impl Strategy<Value = &'static str> {
        prop_oneof![Just("\n"), Just("\r\n")]
    }

    /// The sequences, and a FASTA text of them.
    fn fasta() -> impl Strategy<Value = (Vec<String>, String)> {
        let record = (
            "[ -~]{0,30}",
            sequence(150),
            prop::collection::vec(0usize..40, 1..20),
        );
        (
            prop::collection::vec(record, 1..8),
            line_end(),
            any::<bool>(),
            0usize..3,
        )
            .prop_map(|(records, end, ended, blank)| {
                let mut text = end.repeat(blank);
                for (name, sequence, widths) in &records {
                    text += &format!(">{name}");
                    let mut rest = sequence.as_str();
                    for width in widths {
                        let (line, more) = rest.split_at(rest.len().min(*width));
                        text += end;
                        text += line;
                        rest = more;
                    }
                    text += end;
                    text += rest;
                    text += end;
                }
                if !ended {
                    text.truncate(text.len() - end.len());
                }
                (records.into_iter().map(|record| record.1).collect(), text)
            })
    }

    /// The sequences, and a FASTQ text of them with confusing quality lines.
    fn fastq() -> impl Strategy<Value = (Vec<String>, String)> {
        let quality = prop_oneof![Just('@'), Just('+'), Just('I')];
        let record = (
            "[@+ -~]{0,9}",
            sequence(60),
            prop::collection::vec(quality, 60),
            0usize..2,
        );
        (prop::collection::vec(record, 1..12), line_end()).prop_map(|(records, end)| {
            let mut text = String::new();
            for (name, sequence, quality, blank) in &records {
                let quality = String::from_iter(&quality[..sequence.len()]);
                text += &format!(
                    "@{name}{end}{sequence}{end}+{name}{end}{quality}{end}{}",
                    end.repeat(*blank)
                );
            }
            (records.into_iter().map(|record| record.1).collect(), text)
        })
    }

    /// The contents that the text should give, found without any parser.
    fn expected(sequences: &[String], k: K) -> Contents {
        let code = |letter| "ACGT".find(letter).map_or(BREAK, |code| code as u8);
        let codes = |s: &String| s.to_uppercase().chars().map(code).collect::<Vec<_>>();
        let share = |s| Share {
            codes: codes(s),
            records: 1,
            letters: s.len() as u64,
        };
        contents(&sequences.iter().map(share).collect::<Vec<_>>(), k)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn fasta_windows_are_shared_out((sequences, text) in fasta(), k in 1u32..=31, ranks in 1u32..10, more in 0u64..40) {
            let k = K::new(k).unwrap();
            let expected = expected(&sequences, k);
            prop_assert_eq!(&contents(&by_ranges(&text, Format::Fasta, k, ranks), k), &expected);
            prop_assert_eq!(&contents(&by_stripes(&text, Format::Fasta, k, ranks, k.bases() as u64 + more), k), &expected);
        }

        #[test]
        fn fastq_windows_are_shared_out((sequences, text) in fastq(), k in 1u32..=31, ranks in 1u32..10, more in 0u64..40) {
            let k = K::new(k).unwrap();
            let expected = expected(&sequences, k);
            prop_assert_eq!(&contents(&by_ranges(&text, Format::Fastq, k, ranks), k), &expected);
            prop_assert_eq!(&contents(&by_stripes(&text, Format::Fastq, k, ranks, k.bases() as u64 + more), k), &expected);
        }

        /// A range finds a fault exactly when the whole text has one.
        #[test]
        fn damage_is_found_by_some_rank(
            (_, text) in prop_oneof![fastq(), fasta()],
            at in any::<prop::sample::Index>(),
            damage in prop::sample::select(vec!["@", "+", "\n", "\r", "1", "A\nC", ">", ""]),
            ranks in 2u32..10,
        ) {
            let at = at.index(text.len());
            let format = if text.starts_with('@') { Format::Fastq } else { Format::Fasta };
            let damaged = format!("{}{damage}{}", &text[..at], &text[at + 1..]);
            let whole = read_range(&mut Cursor::new(&damaged), format, K::MAX, Part::WHOLE);
            let shares: Result<Vec<_>, _> = (0..ranks)
                .map(|rank| read_range(&mut Cursor::new(&damaged), format, K::MAX, Part { rank, ranks }))
                .collect();
            match (whole, shares) {
                (Ok(whole), Ok(shares)) => prop_assert_eq!(contents(&[whole], K::MAX), contents(&shares, K::MAX)),
                (Err(_), Err(_)) => {}
                (whole, shares) => prop_assert!(false, "{damaged:?}: {whole:?} but {shares:?}"),
            }
        }
    }
}
