//! FASTA and FASTQ text: of any text, several ranks together read the same as one alone.

use crate::kmer::K;
use crate::parse::{Format, Scanner, Sink, Start};
use crate::partition::{Part, ReadError, read_range, scan};
use std::io::Cursor;

#[derive(Default)]
struct Count {
    records: u64,
    letters: u64,
}

impl Sink for Count {
    fn record(&mut self) {
        self.records += 1;
    }
    fn bases(&mut self, codes: &[u8]) {
        self.letters += codes.len() as u64;
    }
    fn end(&mut self) {}
}

pub(crate) fn run(data: &[u8]) {
    let format = match data.first() {
        Some(b'>') => Format::Fasta,
        Some(b'@') => Format::Fastq,
        _ => return,
    };
    let mut alone = Count::default();
    let mut scanner = Scanner::new(format, Start::File);
    let well = scan(&mut Cursor::new(data), &mut scanner, &mut alone).is_ok();
    let k = K::new(5).unwrap();
    for ranks in 1..5 {
        let mut sum = Count::default();
        let mut all_well = true;
        for rank in 0..ranks {
            match read_range(&mut Cursor::new(data), format, k, Part { rank, ranks }) {
                Ok(share) => {
                    sum.records += share.records;
                    sum.letters += share.letters;
                }
                Err(ReadError::Fault(_)) => all_well = false,
                Err(ReadError::Io(error)) => panic!("memory cannot fail: {error}"),
            }
        }
        assert_eq!(all_well, well, "{ranks} ranks");
        if well {
            assert_eq!(sum.records, alone.records, "{ranks} ranks");
            assert_eq!(sum.letters, alone.letters, "{ranks} ranks");
        }
    }
}
