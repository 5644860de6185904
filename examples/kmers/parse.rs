//! FASTA and FASTQ, line by line and free of I/O: bytes go in by pieces of any size, codes of bases
//! come out.

use std::fmt;

use crate::kmer::BREAK;

/// Bytes of a record's name that are kept for messages.
const NAME_LIMIT: usize = 80;

/// The two file formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A `>` line, then any number of sequence lines.
    Fasta,
    /// Four lines a record: `@` and name, sequence, `+`, quality.
    Fastq,
}

/// Where bases go.
pub trait Sink {
    /// A record begins.
    fn record(&mut self);
    /// The next bases of the record: 0 to 3, or [`BREAK`] for a letter that is not `ACGT`.
    fn bases(&mut self, codes: &[u8]);
    /// The record ends.
    fn end(&mut self);
}

/// An error in the text, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, counted from 1 where the scanner started.
    pub line: u64,
    /// Name of the record, if it had one.
    pub record: Option<String>,
    /// The error.
    pub problem: Problem,
}

/// Errors of the text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Sequence before the first `>`.
    #[error("sequence before the first '>' line")]
    NoHeader,
    /// No `@` where a record should start.
    #[error("expected a '@' line to start a record, found {0}")]
    ExpectedHeader(Byte),
    /// No `+` after the sequence.
    #[error("expected the '+' line after the sequence, found {0}")]
    ExpectedPlus(Byte),
    /// A second sequence line.
    #[error("the sequence goes on in a second line; FASTQ must have four lines a record")]
    MultiLine,
    /// Neither a letter nor `-` nor `*` in a sequence.
    #[error("{0} is not a sequence letter")]
    NotSequence(Byte),
    /// Not printable in a quality line.
    #[error("{0} is not a quality letter")]
    NotQuality(Byte),
    /// `\r` without `\n`.
    #[error("a carriage return within a line; lines must end with LF or CR LF")]
    CarriageReturn,
    /// Sequence and quality differ in length.
    #[error("{bases} bases but {qualities} quality letters")]
    QualityLength {
        /// Length of the sequence.
        bases: u64,
        /// Length of the quality line.
        qualities: u64,
    },
    /// The file ends within a FASTQ record.
    #[error("the file ends within this record")]
    Truncated,
}

/// A byte as messages show it.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Byte(pub u8);

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\r' | b'\n' => f.write_str("an empty line"),
            b' '..=b'~' => write!(f, "'{}'", char::from(self.0)),
            other => write!(f, "byte 0x{other:02x}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Header,
    Sequence,
    Plus,
    Quality,
    /// Between FASTQ records.
    Blank,
}

/// Where in the text a scanner starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At the start of the file; for FASTQ at that of any record.
    File,
    /// At the start of a FASTA line, after the file's first.
    Line,
    /// Within a FASTA `>` line.
    Header,
    /// Within a FASTA sequence line.
    Sequence,
}

/// The state between two pieces of text.
pub struct Scanner {
    format: Format,
    /// The present line, or the last one when `at_line_start`.
    line: Line,
    at_line_start: bool,
    in_record: bool,
    carriage_return: bool,
    line_number: u64,
    name: Vec<u8>,
    sequence_length: u64,
    quality_length: u64,
    codes: Vec<u8>,
}

impl Scanner {
    /// A scanner that has seen nothing yet.
    pub fn new(format: Format, start: Start) -> Self {
        Self {
            format,
            line: match (format, start) {
                (Format::Fasta, Start::Header) => Line::Header,
                (Format::Fasta, _) => Line::Sequence,
                (Format::Fastq, _) => Line::Blank,
            },
            at_line_start: matches!(start, Start::File | Start::Line),
            in_record: start != Start::File,
            carriage_return: false,
            line_number: 1,
            name: Vec::new(),
            sequence_length: 0,
            quality_length: 0,
            codes: Vec::new(),
        }
    }

    /// Lines begun so far.
    pub fn line_number(&self) -> u64 {
        self.line_number
    }

    /// Whether the next byte belongs to a `>` or `@` line.
    pub fn in_header(&self) -> bool {
        self.line == Line::Header && !self.at_line_start
    }

    /// Whether the next byte is the first of a FASTQ record, or of a blank line before it.
    pub fn between_records(&self) -> bool {
        self.at_line_start && matches!(self.line, Line::Quality | Line::Blank)
    }

    /// Scans the next piece.
    pub fn feed(&mut self, mut text: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        while let Some(&first) = text.first() {
            if self.carriage_return && first != b'\n' {
                return Err(self.fault(Problem::CarriageReturn));
            }
            if self.at_line_start {
                self.begin_line(first, sink)?;
            }
            let length = text
                .iter()
                .position(|&b| b == b'\n' || b == b'\r')
                .unwrap_or(text.len());
            let (part, rest) = text.split_at(length);
            self.part(part, sink)?;
            let Some((&end, rest)) = rest.split_first() else {
                break;
            };
            if end == b'\n' {
                self.end_line(sink)?;
            } else {
                self.carriage_return = true;
            }
            text = rest;
        }
        Ok(())
    }

    /// Ends the text; the last line need not end with `\n`.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        match self.format {
            Format::Fasta => {
                if self.in_record {
                    sink.end();
                }
            }
            Format::Fastq => {
                let cut = self.line == Line::Quality && self.quality_length < self.sequence_length;
                if !self.at_line_start && !cut {
                    self.end_line(sink)?;
                }
                if !self.between_records() {
                    return Err(self.fault(Problem::Truncated));
                }
            }
        }
        Ok(())
    }

    fn begin_line(&mut self, first: u8, sink: &mut impl Sink) -> Result<(), Fault> {
        let blank = matches!(first, b'\n' | b'\r');
        self.line = match (self.format, self.line) {
            (Format::Fasta, _) if first == b'>' => {
                if self.in_record {
                    sink.end();
                }
                self.begin_record(sink)
            }
            (Format::Fasta, _) if self.in_record || blank => Line::Sequence,
            (Format::Fasta, _) => return Err(self.fault(Problem::NoHeader)),
            (Format::Fastq, Line::Header) => Line::Sequence,
            (Format::Fastq, Line::Sequence) if first == b'+' => Line::Plus,
            (Format::Fastq, Line::Sequence) if code(first).is_some() => {
                return Err(self.fault(Problem::MultiLine));
            }
            (Format::Fastq, Line::Sequence) => {
                return Err(self.fault(Problem::ExpectedPlus(Byte(first))));
            }
            (Format::Fastq, Line::Plus) => Line::Quality,
            (Format::Fastq, Line::Quality | Line::Blank) if blank => Line::Blank,
            (Format::Fastq, Line::Quality | Line::Blank) if first == b'@' => {
                self.begin_record(sink)
            }
            (Format::Fastq, Line::Quality | Line::Blank) => {
                self.in_record = false;
                return Err(self.fault(Problem::ExpectedHeader(Byte(first))));
            }
        };
        self.at_line_start = false;
        Ok(())
    }

    fn begin_record(&mut self, sink: &mut impl Sink) -> Line {
        self.in_record = true;
        self.name.clear();
        self.sequence_length = 0;
        self.quality_length = 0;
        sink.record();
        Line::Header
    }

    /// A part of the present line.
    fn part(&mut self, part: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        match self.line {
            Line::Header => {
                let room = NAME_LIMIT - self.name.len().min(NAME_LIMIT);
                self.name.extend_from_slice(&part[..part.len().min(room)]);
            }
            Line::Sequence => {
                self.codes.clear();
                self.codes
                    .extend(part.iter().map(|&letter| CODES[usize::from(letter)]));
                // No early end: the search over good text is one that the compiler turns into
                // vector code.
                if self.codes.iter().fold(0, |most, &code| most.max(code)) > BREAK {
                    let bad = part
                        .iter()
                        .copied()
                        .find(|&letter| code(letter).is_none())
                        .unwrap_or_default();
                    return Err(self.fault(Problem::NotSequence(Byte(bad))));
                }
                self.sequence_length += part.len() as u64;
                sink.bases(&self.codes);
            }
            Line::Quality => {
                if let Some(&bad) = part.iter().find(|letter| !letter.is_ascii_graphic()) {
                    return Err(self.fault(Problem::NotQuality(Byte(bad))));
                }
                self.quality_length += part.len() as u64;
            }
            Line::Plus | Line::Blank => {}
        }
        Ok(())
    }

    fn end_line(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        if self.line == Line::Quality {
            let (bases, qualities) = (self.sequence_length, self.quality_length);
            if bases != qualities {
                return Err(self.fault(Problem::QualityLength { bases, qualities }));
            }
            sink.end();
        }
        self.carriage_return = false;
        self.at_line_start = true;
        self.line_number += 1;
        Ok(())
    }

    fn fault(&self, problem: Problem) -> Fault {
        let name = self.name.get(1..).unwrap_or_default();
        let word = name
            .split(|b| b.is_ascii_whitespace())
            .next()
            .unwrap_or_default();
        let known = self.in_record && !word.is_empty();
        Fault {
            line: self.line_number,
            record: known.then(|| word.escape_ascii().to_string()),
            problem,
        }
    }
}

const NOT_SEQUENCE: u8 = u8::MAX;

static CODES: [u8; 256] = {
    let mut codes = [NOT_SEQUENCE; 256];
    let mut letter = 0;
    while letter < 128 {
        let byte = letter as u8;
        if byte.is_ascii_alphabetic() || byte == b'-' || byte == b'*' {
            codes[letter] = match byte.to_ascii_uppercase() {
                b'A' => 0,
                b'C' => 1,
                b'G' => 2,
                b'T' => 3,
                _ => BREAK,
            };
        }
        letter += 1;
    }
    codes
};

fn code(letter: u8) -> Option<u8> {
    Some(CODES[usize::from(letter)]).filter(|&code| code != NOT_SEQUENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events as text: `[` and `]` around a record, digits for codes.
    #[derive(Default)]
    struct Events(String);

    impl Sink for Events {
        fn record(&mut self) {
            self.0.push('[');
        }
        fn bases(&mut self, codes: &[u8]) {
            self.0
                .extend(codes.iter().map(|&code| char::from(b'0' + code)));
        }
        fn end(&mut self) {
            self.0.push(']');
        }
    }

    fn scan(format: Format, text: &str, piece: usize) -> Result<String, Fault> {
        let mut events = Events::default();
        let mut scanner = Scanner::new(format, Start::File);
        for part in text.as_bytes().chunks(piece) {
            scanner.feed(part, &mut events)?;
        }
        scanner.finish(&mut events)?;
        Ok(events.0)
    }

    fn scan_pieces(format: Format, text: &str) -> Result<String, Fault> {
        let whole = scan(format, text, text.len().max(1));
        for piece in 1..7 {
            assert_eq!(scan(format, text, piece), whole, "pieces of {piece}");
        }
        whole
    }

    #[test]
    fn fasta() {
        let cases = [
            (">r\nACGT\nacgt\n", "[01230123]"),
            (">r\r\nAC\r\n\r\nGT\r\n", "[0123]"),
            ("\n\n>a x\nA\n>b\n>c\n\nNnC*-", "[0][][44144]"),
            (">only a header", "[]"),
            (">gt in name > more\nU", "[4]"),
        ];
        for (text, events) in cases {
            assert_eq!(
                scan_pieces(Format::Fasta, text).as_deref(),
                Ok(events),
                "{text:?}"
            );
        }
    }

    #[test]
    fn fastq() {
        let cases = [
            ("@r\nACGT\n+\n@@+>\n", "[0123]"),
            ("@r\r\nAC\r\n+r\r\nII\r\n@s\r\nG\r\n+\r\n+", "[01][2]"),
            ("@r\nN\n+\n!\n\n\n@e\n\n+\n\n\n", "[4][]"),
        ];
        for (text, events) in cases {
            assert_eq!(
                scan_pieces(Format::Fastq, text).as_deref(),
                Ok(events),
                "{text:?}"
            );
        }
    }

    #[test]
    fn faults() {
        use Format::{Fasta, Fastq};
        let cases = [
            (
                Fasta,
                "ACGT\n",
                1,
                None,
                "sequence before the first '>' line",
            ),
            (
                Fasta,
                ">r x\nAC\nA1\n",
                3,
                Some("r"),
                "'1' is not a sequence letter",
            ),
            (
                Fasta,
                ">r\nA\x07\n",
                2,
                Some("r"),
                "byte 0x07 is not a sequence letter",
            ),
            (Fasta, ">\nA C\n", 2, None, "' ' is not a sequence letter"),
            (
                Fasta,
                ">r\rAC\r",
                1,
                Some("r"),
                "a carriage return within a line; lines must end with LF or CR LF",
            ),
            (
                Fastq,
                "@r\nA\n+\nI\n>s\nA\n",
                5,
                None,
                "expected a '@' line to start a record, found '>'",
            ),
            (
                Fastq,
                "@r\nAC\nGT\n+\nIIII\n",
                3,
                Some("r"),
                "the sequence goes on in a second line",
            ),
            (
                Fastq,
                "@r\nA\n\n+\nI\n",
                3,
                Some("r"),
                "expected the '+' line after the sequence, found an empty line",
            ),
            (
                Fastq,
                "@r\nAC\n+\nI\n",
                4,
                Some("r"),
                "2 bases but 1 quality letters",
            ),
            (
                Fastq,
                "@r\nAC\n+\nIII",
                4,
                Some("r"),
                "2 bases but 3 quality letters",
            ),
            (
                Fastq,
                "@r\nAC\n+\nI I\n",
                4,
                Some("r"),
                "' ' is not a quality letter",
            ),
            (
                Fastq,
                "@r\nAC\n+\nI",
                4,
                Some("r"),
                "the file ends within this record",
            ),
            (
                Fastq,
                "@r\nAC\n+\n",
                4,
                Some("r"),
                "the file ends within this record",
            ),
            (
                Fastq,
                "@r\nAC",
                3,
                Some("r"),
                "the file ends within this record",
            ),
            (
                Fastq,
                "@r",
                2,
                Some("r"),
                "the file ends within this record",
            ),
        ];
        for (format, text, line, record, message) in cases {
            let fault = scan_pieces(format, text).expect_err(text);
            assert!(
                fault.problem.to_string().starts_with(message),
                "{text:?}: {}",
                fault.problem
            );
            assert_eq!(
                (fault.line, fault.record.as_deref()),
                (line, record),
                "{text:?}"
            );
        }
    }
}
