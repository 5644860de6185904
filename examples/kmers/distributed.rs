//! Ranks that count together: each k-mer goes, in a batch with others, to the rank that owns it.
//!
//! A batch is a medium active message, and its handler adds it to the table of the rank that it came to. Messages wait in
//! the library's rings, which are small: a rank that sends faster than others count comes to wait, and counts what was
//! sent to it meanwhile.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{Am, Payload, Rank, Reduction, SharedVec, World};
use parking_lot::Mutex;

use crate::kmer::{Hash, K, Roller};
use crate::partition::{Part, Share};
use crate::ranks::{Failure, PROGRESS_CODES, Ranks};
use crate::report::Tally;
use crate::table::{Table, TableError};

/// K-mers of a message: 8 KiB, so that a ring holds a good number, and the buffers of many ranks stay in the cache.
const BATCH: usize = 1024;

/// The job, and what its handlers fill.
pub struct Distributed {
    world: World,
    batch: Am<()>,
    done: Am<u64>,
    counter: Arc<Mutex<Counter>>,
    /// Codes that are done on all ranks. Rank 0 alone is told.
    codes_done: Arc<AtomicU64>,
}

/// The table of this rank, once there is one.
struct Counter {
    table: Option<Table>,
    /// Why there is none any more.
    error: Option<TableError>,
    received: Box<[Hash; BATCH]>,
}

impl Counter {
    /// After an error k-mers are dropped: the job goes on to the point where all ranks learn of it.
    fn add(&mut self, hashes: &[Hash]) {
        add(&mut self.table, &mut self.error, hashes);
    }

    fn receive(&mut self, payload: Payload<'_>) {
        let length = (payload.len() / size_of::<Hash>()).min(BATCH);
        let hashes = &mut self.received[..length];
        if payload.copy_to(0, hashes).is_ok() {
            add(&mut self.table, &mut self.error, hashes);
        }
    }
}

fn add(table: &mut Option<Table>, error: &mut Option<TableError>, hashes: &[Hash]) {
    if let Some(counts) = table
        && let Err(cause) = counts.add_batch(hashes)
    {
        *error = Some(cause);
        *table = None;
    }
}

impl Distributed {
    /// Joins the job that this process was started in, or starts one of `ranks`.
    pub fn join(ranks: Option<u32>) -> argonet::Result<Self> {
        let counter = Arc::new(Mutex::new(Counter {
            table: None,
            error: None,
            received: Box::new([Hash::default(); BATCH]),
        }));
        let codes_done = Arc::new(AtomicU64::new(0));
        let mut builder = World::builder();
        if let Some(ranks) = ranks {
            builder = builder.ranks(ranks);
        }
        let batch = builder.am("kmers batch", {
            let counter = Arc::clone(&counter);
            move |message, ()| counter.lock().receive(message.payload())
        });
        let done = builder.am("kmers done", {
            let codes_done = Arc::clone(&codes_done);
            move |_, codes| {
                codes_done.fetch_add(codes, Ordering::Relaxed);
            }
        });
        Ok(Self {
            world: builder.build()?,
            batch,
            done,
            counter,
            codes_done,
        })
    }

    /// Hands hashes to the rank that owns them, and handles what came from others.
    fn hand_over(&self, owner: Rank, hashes: &[Hash]) -> argonet::Result<()> {
        if owner == self.world.rank() {
            self.counter.lock().add(hashes);
        } else {
            self.world.send_medium(owner, &self.batch, (), hashes)?;
        }
        self.world.poll()?;
        Ok(())
    }

    fn send_all(
        &self,
        share: &Share,
        k: K,
        mut each_piece: impl FnMut() -> argonet::Result<()>,
    ) -> argonet::Result<()> {
        let ranks = self.world.size();
        let mut batches: Vec<_> = (0..ranks).map(|_| Batch::new()).collect();
        let mut roller = Roller::new(k);
        for codes in share.codes.chunks(PROGRESS_CODES) {
            let mut result = Ok(());
            roller.roll(codes, |kmer| {
                let hash = Hash::of(kmer);
                let owner = hash.owner(ranks);
                if let Some(full) = batches[owner as usize].push(hash)
                    && let Err(error) = self.hand_over(Rank(owner), full)
                {
                    result = Err(error);
                }
            });
            result?;
            self.world.send(Rank(0), &self.done, codes.len() as u64)?;
            each_piece()?;
        }
        for (batch, owner) in batches.iter().zip(self.world.ranks()) {
            self.hand_over(owner, batch.rest())?;
        }
        Ok(())
    }
}

/// Hashes on their way to one rank.
struct Batch {
    hashes: Box<[Hash; BATCH]>,
    filled: usize,
}

impl Batch {
    fn new() -> Self {
        Self {
            hashes: Box::new([Hash::default(); BATCH]),
            filled: 0,
        }
    }

    /// Adds one; gives all of them when it was the last that fits, and starts over.
    #[inline]
    fn push(&mut self, hash: Hash) -> Option<&[Hash]> {
        self.hashes[self.filled % BATCH] = hash;
        self.filled += 1;
        if self.filled < BATCH {
            return None;
        }
        self.filled = 0;
        Some(&self.hashes[..])
    }

    fn rest(&self) -> &[Hash] {
        &self.hashes[..self.filled]
    }
}

impl Ranks for Distributed {
    fn part(&self) -> Part {
        Part {
            rank: self.world.rank().0,
            ranks: self.world.size(),
        }
    }

    fn barrier(&mut self) -> Result<(), Failure> {
        Ok(self.world.barrier()?)
    }

    fn agree<T>(&mut self, result: Result<T, impl Into<Box<dyn Error>>>) -> Result<T, Failure> {
        let mut failed = [if result.is_ok() {
            u32::MAX
        } else {
            self.world.rank().0
        }];
        self.world.reduce_all(Reduction::Min, &mut failed)?;
        match result {
            Ok(value) if failed == [u32::MAX] => Ok(value),
            Err(error) if failed == [self.world.rank().0] => Err(Failure::Here(error.into())),
            _ => Err(Failure::Elsewhere),
        }
    }

    fn count(
        &mut self,
        share: &Share,
        k: K,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Table, Failure> {
        let codes = self.sum(share.codes.len() as u64)?;
        let letters = self.sum(share.letters)?;
        // Owners are even, so each rank's table takes its share of all letters, whoever has read them.
        let table = Table::new(letters.div_ceil(self.world.size().into()));
        let table = self.agree(table)?;
        self.counter.lock().table = Some(table);
        // Nobody sends before all have their table.
        self.world.barrier()?;

        let mut shown = 0;
        let mut show = || {
            let done = self.codes_done.load(Ordering::Relaxed);
            if done > shown {
                progress(done - shown);
                shown = done;
            }
            done
        };
        self.send_all(share, k, || {
            show();
            Ok(())
        })?;
        if self.world.rank() == Rank(0) {
            self.world.wait_until(|| show() >= codes)?;
        }
        self.world.drain()?;

        let (table, error) = {
            let mut counter = self.counter.lock();
            (counter.table.take(), counter.error.take())
        };
        // There is one or the other.
        let table = table.ok_or_else(|| error.map_or("no table".into(), Box::<dyn Error>::from));
        self.agree(table)
    }

    fn sum(&mut self, value: u64) -> Result<u64, Failure> {
        let mut sum = [value];
        self.world.reduce_all(Reduction::Sum, &mut sum)?;
        Ok(sum[0])
    }

    fn merge(&mut self, mut tally: Tally) -> Result<Option<Tally>, Failure> {
        let words = tally.words();
        let mut longest = [words.len() as u64];
        self.world.reduce_all(Reduction::Max, &mut longest)?;
        let longest = usize::try_from(longest[0]).unwrap_or(usize::MAX);
        let tallies = SharedVec::<u64>::alloc(&self.world, longest)?;
        tallies.write_from(&self.world, 0, &words);
        self.world.barrier()?;
        let first = self.world.rank() == Rank(0);
        if first {
            let mut theirs = vec![0; longest];
            for rank in self.world.ranks().skip(1) {
                self.world.get_into(tallies.gptr(rank, 0), &mut theirs)?;
                tally.merge(&theirs);
            }
        }
        tallies.free(&self.world)?;
        Ok(first.then_some(tally))
    }
}
