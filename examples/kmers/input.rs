//! Opens a FASTA or FASTQ file, plain or gzip, and reads one rank's share of it.
//!
//! Reports errors of a bad file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::kmer::K;
use crate::parse::{Byte, Fault, Format, Problem, Scanner, Sink, Start};
use crate::partition::{Part, ReadError, STRIPE_BASES, Share, StripeSink, read_range, scan};

const READ_BYTES: usize = 1 << 18;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Errors of an input file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("{}: not a regular file; every rank must be able to read it on its own", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Nothing, or only blank lines.
    #[error("{}: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Neither FASTA nor FASTQ.
    #[error("{}: line {line}: neither FASTA nor FASTQ, which start with '>' or '@'; this starts with {found}", path.display())]
    NotSequence {
        /// The file.
        path: PathBuf,
        /// The first line that is not blank.
        line: u64,
        /// Its first byte.
        found: Byte,
    },
    /// Gzip data that ends early.
    #[error("{}: line {line}: the gzip data ends here, within a member; the file was cut off", path.display())]
    GzipTruncated {
        /// The file.
        path: PathBuf,
        /// Line of the text, up to which it could be read.
        line: u64,
    },
    /// Gzip data that cannot be decoded.
    #[error("{}: line {line}: the gzip data is damaged here: {source}", path.display())]
    GzipDamaged {
        /// The file.
        path: PathBuf,
        /// Line of the text, up to which it could be read.
        line: u64,
        /// The decoder's answer.
        source: io::Error,
    },
    /// Text that breaks the format's rules.
    #[error("{}: line {line}{}: {problem}", path.display(), in_record(record.as_deref()))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The record's name.
        record: Option<String>,
        /// The error in the text.
        problem: Problem,
    },
    /// A share had a fault that the whole file has not.
    #[error("{}: the file was changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

fn in_record(record: Option<&str>) -> String {
    record
        .map(|name| format!(", record {name}"))
        .unwrap_or_default()
}

/// Reads the share of `part`.
///
/// All parts together have every window of the file once; a file with a fault gives the same error
/// for any number of ranks, though not on each of them.
pub fn load(path: &Path, k: K, part: Part) -> Result<Share, InputError> {
    let io_error = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(io_error)?;
    if !file.metadata().map_err(io_error)?.is_file() {
        return Err(InputError::NotAFile {
            path: path.to_owned(),
        });
    }
    let mut magic = Vec::new();
    Read::by_ref(&mut file)
        .take(GZIP_MAGIC.len() as u64)
        .read_to_end(&mut magic)
        .map_err(io_error)?;
    file.rewind().map_err(io_error)?;
    let mut text = BufReader::with_capacity(READ_BYTES, file);
    if magic == GZIP_MAGIC {
        let mut text = BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(text));
        let mut sink = StripeSink::new(k, part, STRIPE_BASES);
        scan_file(path, &mut text, &mut sink, gzip_error)?;
        return Ok(sink.finish());
    }
    let (format, _) = detect(path, &mut text, plain_error)?;
    let mut file = text.into_inner();
    match read_range(&mut file, format, k, part) {
        Ok(share) => Ok(share),
        Err(ReadError::Io(source)) => Err(io_error(source)),
        Err(ReadError::Fault(_)) => Err(diagnose(path, file)),
    }
}

/// The first fault of a file in which some rank found one: a rank knows its bytes, but not the
/// number of their line.
fn diagnose(path: &Path, mut file: File) -> InputError {
    if let Err(source) = file.rewind() {
        return InputError::Io {
            path: path.to_owned(),
            source,
        };
    }
    let mut text = BufReader::with_capacity(READ_BYTES, file);
    match scan_file(path, &mut text, &mut Nowhere, plain_error) {
        Ok(()) => InputError::Changed {
            path: path.to_owned(),
        },
        Err(error) => error,
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self) {}
    fn bases(&mut self, _codes: &[u8]) {}
    fn end(&mut self) {}
}

/// Turns an error of reading, and the line that it reached, into the file's error.
type Explain = fn(&Path, u64, io::Error) -> InputError;

fn plain_error(path: &Path, _line: u64, source: io::Error) -> InputError {
    InputError::Io {
        path: path.to_owned(),
        source,
    }
}

fn gzip_error(path: &Path, line: u64, source: io::Error) -> InputError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::UnexpectedEof => InputError::GzipTruncated { path, line },
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            InputError::GzipDamaged { path, line, source }
        }
        _ => InputError::Io { path, source },
    }
}

fn scan_file(
    path: &Path,
    text: &mut impl BufRead,
    sink: &mut impl Sink,
    explain: Explain,
) -> Result<(), InputError> {
    let (format, blank_lines) = detect(path, text, explain)?;
    let mut scanner = Scanner::new(format, Start::File);
    scan(text, &mut scanner, sink).map_err(|error| match error {
        ReadError::Io(source) => explain(path, blank_lines + scanner.line_number(), source),
        ReadError::Fault(Fault {
            line,
            record,
            problem,
        }) => InputError::Malformed {
            path: path.to_owned(),
            line: blank_lines + line,
            record,
            problem,
        },
    })
}

/// The format, by the first line that is not blank, and the number of blank lines before it.
fn detect(
    path: &Path,
    text: &mut impl BufRead,
    explain: Explain,
) -> Result<(Format, u64), InputError> {
    let mut blank_lines = 0;
    loop {
        let piece = match text.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(explain(path, blank_lines + 1, error)),
        };
        match piece.first() {
            None => {
                return Err(InputError::Empty {
                    path: path.to_owned(),
                });
            }
            Some(b'>') => return Ok((Format::Fasta, blank_lines)),
            Some(b'@') => return Ok((Format::Fastq, blank_lines)),
            Some(b'\n') => blank_lines += 1,
            Some(b'\r') => {}
            Some(&other) => {
                let (line, found) = (blank_lines + 1, Byte(other));
                return Err(InputError::NotSequence {
                    path: path.to_owned(),
                    line,
                    found,
                });
            }
        }
        text.consume(1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::scratch::Scratch;
    use crate::sequential;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The error's text, the same for any number of ranks, without the directory.
    fn error_of(contents: &[u8]) -> String {
        let scratch = Scratch::new("input");
        let path = scratch.file("reads", contents);
        let first_error = |ranks| {
            let error = (0..ranks).find_map(|rank| load(&path, K::MAX, Part { rank, ranks }).err());
            error
                .expect("an error")
                .to_string()
                .replace(scratch.path().to_str().unwrap(), "")
        };
        let error = first_error(1);
        for ranks in 2..6 {
            assert_eq!(first_error(ranks), error, "{ranks} ranks");
        }
        error
    }

    #[test]
    fn bad_contents_are_named() {
        let long = format!(
            ">a\n{}\n>b long name\nACGT\nAC7T\n",
            "ACGTTGCA\n".repeat(40)
        );
        let noise: Vec<u8> = (0..2000u32)
            .map(|i| b"ACGT"[(i.wrapping_mul(2_654_435_761) >> 30) as usize])
            .collect();
        let packed = gzip(&[b">r\n", noise.as_slice()].concat());
        let damaged = [&packed[..packed.len() - 8], &[0; 8]].concat();
        let cases: [(&[u8], &str); 15] = [
            (b"", "/reads: the file is empty"),
            (b"\n\r\n\n", "/reads: the file is empty"),
            (&gzip(b""), "/reads: the file is empty"),
            (
                b"\nHello\n",
                "/reads: line 2: neither FASTA nor FASTQ, which start with '>' or '@'; this starts with 'H'",
            ),
            (
                b"\x7fELF",
                "/reads: line 1: neither FASTA nor FASTQ, which start with '>' or '@'; this starts with byte 0x7f",
            ),
            (
                &gzip(b"BAM\x01"),
                "/reads: line 1: neither FASTA nor FASTQ, which start with '>' or '@'; this starts with 'B'",
            ),
            (
                long.as_bytes(),
                "/reads: line 45, record b: '7' is not a sequence letter",
            ),
            (
                b">r\nAC\rGT\r",
                "/reads: line 2, record r: a carriage return within a line; lines must end with LF or CR LF",
            ),
            (
                b"\n@q\nACGT\n+\nII",
                "/reads: line 5, record q: the file ends within this record",
            ),
            (
                b"@q\nACGT\nACGT\n+\nIIIIIIII\n",
                "/reads: line 3, record q: the sequence goes on in a second line; FASTQ must have four lines a record",
            ),
            (
                b"@p\nA\n+\nI\n@q\nACGT\n+\nIII\n",
                "/reads: line 8, record q: 4 bases but 3 quality letters",
            ),
            (
                b"@p\nA\n+\nI\nq\nACGT\n+\nIIII\n",
                "/reads: line 5: expected a '@' line to start a record, found 'q'",
            ),
            (
                &packed[..packed.len() / 2],
                "/reads: line 2: the gzip data ends here, within a member; the file was cut off",
            ),
            (
                &packed[..5],
                "/reads: line 1: the gzip data ends here, within a member; the file was cut off",
            ),
            (
                &damaged,
                "/reads: line 2: the gzip data is damaged here: corrupt gzip stream does not have a matching checksum",
            ),
        ];
        for (contents, message) in cases {
            assert_eq!(error_of(contents), message);
        }
    }

    #[test]
    fn bad_paths_are_named() {
        let scratch = Scratch::new("paths");
        let missing = load(&scratch.path().join("nothing.fa"), K::MAX, Part::WHOLE)
            .unwrap_err()
            .to_string();
        assert!(
            missing.ends_with("nothing.fa: No such file or directory (os error 2)"),
            "{missing}"
        );
        let directory = load(scratch.path(), K::MAX, Part::WHOLE)
            .unwrap_err()
            .to_string();
        assert!(directory.contains(": not a regular file"), "{directory}");
    }

    #[test]
    fn gzip_members_are_one_text() {
        let scratch = Scratch::new("members");
        let text = format!(">a\n{}\n>b\nCCGGTTAA\n", "ACGTTGCATTAG".repeat(20_000));
        let plain = scratch.file("plain", text.as_bytes());
        let (one, two) = text.as_bytes().split_at(text.len() / 3);
        let packed = scratch.file("packed", &[gzip(one), gzip(two)].concat());
        let k = K::new(5).unwrap();
        let counts = |path: &Path, ranks| {
            let mut codes = Vec::new();
            let (mut records, mut letters) = (0, 0);
            for rank in 0..ranks {
                let share = load(path, k, Part { rank, ranks }).unwrap();
                codes.extend(share.codes);
                codes.push(crate::kmer::BREAK);
                records += share.records;
                letters += share.letters;
            }
            (sequential::count(&codes, k), records, letters)
        };
        let expected = counts(&plain, 1);
        assert_eq!((expected.1, expected.2), (2, 240_008));
        for ranks in [1, 2, 3] {
            assert_eq!(counts(&plain, ranks), expected);
            assert_eq!(counts(&packed, ranks), expected);
        }
    }

    #[test]
    fn lambda_genome() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kmers/data/lambda_virus.fa");
        let share = load(&path, K::MAX, Part::WHOLE).unwrap();
        assert_eq!((share.records, share.letters), (1, 48_502));
        assert_eq!(
            sequential::windows(&share.codes, K::MAX).count(),
            48_502 - 30
        );
    }
}
