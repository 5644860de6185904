//! Interface to the ranks that count together, and the one rank that asks no other.

use std::error::Error;

use crate::kmer::{Hash, K, Roller};
use crate::partition::{Part, Share};
use crate::report::Tally;
use crate::table::Table;

/// Codes between two reports of progress.
pub const PROGRESS_CODES: usize = 1 << 16;
/// Hashes that are handed to the table at once.
const BATCH: usize = 512;

/// Why all ranks give up.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An error that this rank is to print.
    #[error(transparent)]
    Here(Box<dyn Error>),
    /// An error that another rank prints.
    #[error("another rank failed")]
    Elsewhere,
}

impl From<argonet::Error> for Failure {
    fn from(error: argonet::Error) -> Self {
        Self::Here(error.into())
    }
}

/// Ranks that count one file together.
///
/// All ranks call each function in the same order.
pub trait Ranks {
    /// Which part of the work this rank has.
    fn part(&self) -> Part;
    /// Waits for all ranks.
    fn barrier(&mut self) -> Result<(), Failure>;
    /// Makes an error of any rank one of all: of the ranks that have one, the lowest gets it to
    /// print.
    fn agree<T>(&mut self, result: Result<T, impl Into<Box<dyn Error>>>) -> Result<T, Failure>;
    /// Counts the windows of all shares.
    ///
    /// Each rank gets the table of the k-mers that it owns. On rank 0 `progress` is called with
    /// numbers of codes, of all shares, as they are done.
    fn count(
        &mut self,
        share: &Share,
        k: K,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Table, Failure>;
    /// Sum of a number over all ranks, on all of them.
    fn sum(&mut self, value: u64) -> Result<u64, Failure>;
    /// The tally of all ranks, on rank 0.
    fn merge(&mut self, tally: Tally) -> Result<Option<Tally>, Failure>;
}

/// One rank, which counts straight into its table.
pub struct Direct;

impl Ranks for Direct {
    fn part(&self) -> Part {
        Part::WHOLE
    }

    fn barrier(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn agree<T>(&mut self, result: Result<T, impl Into<Box<dyn Error>>>) -> Result<T, Failure> {
        result.map_err(|error| Failure::Here(error.into()))
    }

    fn count(
        &mut self,
        share: &Share,
        k: K,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Table, Failure> {
        let table = Table::new(share.letters);
        let mut table = self.agree(table)?;
        let mut roller = Roller::new(k);
        let mut batch = [Hash::default(); BATCH];
        let mut filled = 0;
        for codes in share.codes.chunks(PROGRESS_CODES) {
            let mut result = Ok(());
            roller.roll(codes, |kmer| {
                batch[filled] = Hash::of(kmer);
                filled += 1;
                if filled == BATCH {
                    filled = 0;
                    if let Err(error) = table.add_batch(&batch) {
                        result = Err(error);
                    }
                }
            });
            self.agree(result)?;
            progress(codes.len() as u64);
        }
        let result = table.add_batch(&batch[..filled]);
        self.agree(result.map(|()| table))
    }

    fn sum(&mut self, value: u64) -> Result<u64, Failure> {
        Ok(value)
    }

    fn merge(&mut self, tally: Tally) -> Result<Option<Tally>, Failure> {
        Ok(Some(tally))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::generate::{self, Size};
    use crate::input;
    use crate::report::Limits;
    use crate::scratch::Scratch;
    use crate::sequential;

    const LIMITS: Limits = Limits {
        histogram: 20,
        top: 15,
    };

    fn tally_of(table: &Table, tally: &mut Tally) {
        table.for_each(|kmer, count| tally.add(kmer, count));
    }

    /// The tally of so many ranks, one after the other: each share is read, and its k-mers go to
    /// their owners.
    fn tally_by(path: &Path, k: K, ranks: u32) -> Tally {
        let mut tables: Vec<_> = (0..ranks).map(|_| Table::new(0).unwrap()).collect();
        for rank in 0..ranks {
            let share = input::load(path, k, Part { rank, ranks }).unwrap();
            Roller::new(k).roll(&share.codes, |kmer| {
                let hash = Hash::of(kmer);
                tables[hash.owner(ranks) as usize]
                    .add_batch(&[hash])
                    .unwrap();
            });
        }
        let mut merged = Tally::new(LIMITS);
        for table in &tables {
            let mut tally = Tally::new(LIMITS);
            tally_of(table, &mut tally);
            merged.merge(&tally.words());
        }
        merged
    }

    fn all_agree(path: &Path, k: u32) {
        let k = K::new(k).unwrap();
        let share = input::load(path, k, Part::WHOLE).unwrap();
        let mut expected = Tally::new(LIMITS);
        sequential::count(&share.codes, k)
            .iter()
            .for_each(|(&kmer, &count)| expected.add(kmer, count));

        let mut done = 0;
        let table = Direct.count(&share, k, &mut |codes| done += codes).unwrap();
        assert_eq!(done, share.codes.len() as u64);
        let mut direct = Tally::new(LIMITS);
        tally_of(&table, &mut direct);
        assert_eq!(direct, expected);

        for ranks in [1, 2, 4, 7] {
            assert_eq!(tally_by(path, k, ranks), expected, "{ranks} ranks");
        }
    }

    #[test]
    fn lambda_genome() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kmers/data/lambda_virus.fa");
        for k in [1, 6, 11, 31] {
            all_agree(&path, k);
        }
    }

    #[test]
    fn generated_genome() {
        let scratch = Scratch::new("ranks");
        let mut text = Vec::new();
        generate::write(&mut text, 3, Size(1_000_000)).unwrap();
        all_agree(&scratch.file("generated.fa", &text), 31);
    }
}
