//! Ranks that count together: each k-mer goes, in a batch with others, to the rank that owns it.
//!
//! A batch is a long active message: it is written into a slot of the owner's memory, and its
//! handler there adds it to the table. The owner gives its slots out to the senders at the start,
//! and each again by the reply to the batch that was in it. So a rank can be ahead of a slower one,
//! or one that the system has stopped for a moment, by as many batches as it has slots there; after
//! that it waits, and counts the batches that others send to it meanwhile.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{Am, AmContext, Rank, Reduction, SharedArray, World};
use parking_lot::Mutex;

use crate::kmer::{Hash, K, Roller};
use crate::partition::{Part, Share};
use crate::ranks::{Failure, PROGRESS_CODES, Ranks};
use crate::report::Tally;
use crate::table::{Table, TableError};

/// K-mers of a message: 8 KiB, so that the buffers for many ranks stay in the cache.
const BATCH: usize = 1024;
/// Slots of a rank for all that send to it: 8 MiB, which is what it counts in some ten
/// milliseconds.
const SLOTS: u32 = 1024;
/// Slots for each that sends, however many they are.
const MIN_SLOTS: u32 = 8;

/// The job, and the state that its handlers fill.
pub struct Distributed<'w> {
    world: &'w World,
    batch: Am<u32>,
    grant: Arc<Am<u32>>,
    done: Am<u64>,
    counter: Arc<Mutex<Counter>>,
    /// By rank, the slots that it has granted and that are not in use.
    ///
    /// Last in, first out: slots in the cache are used again.
    granted: Arc<Mutex<Vec<Vec<u32>>>>,
    /// Codes that are done on all ranks; ranks report theirs to rank 0 alone.
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

    /// Takes a batch out of its slot, gives the slot back, and counts.
    fn receive(&mut self, message: &mut AmContext<'_, '_>, grant: &Am<u32>, slot: u32) {
        let payload = message.payload();
        let length = (payload.len() / size_of::<Hash>()).min(BATCH);
        let hashes = &mut self.received[..length];
        payload
            .copy_to(0, hashes)
            .expect("as many as the payload has");
        message.reply(grant, slot).expect("the only reply");
        add(&mut self.table, &mut self.error, hashes);
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

/// Joins the job that this process was started in, or starts one of `ranks`, and calls `program` on
/// each.
///
/// An error of a rank is printed and ends the job.
pub fn run<T>(
    ranks: Option<u32>,
    program: impl FnOnce(&mut Distributed<'_>) -> Result<T, Box<dyn Error>>,
) -> T {
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
    let granted = Arc::new(Mutex::new(Vec::<Vec<u32>>::new()));
    let grant = Arc::new(builder.am("kmers grant", {
        let granted = Arc::clone(&granted);
        move |message, slot| {
            if let Some(slots) = granted.lock().get_mut(message.source().0 as usize) {
                slots.push(slot);
            }
        }
    }));
    let batch = builder.am("kmers batch", {
        let (counter, grant) = (Arc::clone(&counter), Arc::clone(&grant));
        move |message, slot| counter.lock().receive(message, &grant, slot)
    });
    let done = builder.am("kmers done", {
        let codes_done = Arc::clone(&codes_done);
        move |_, codes| {
            codes_done.fetch_add(codes, Ordering::Relaxed);
        }
    });
    builder.run(|world| {
        granted.lock().resize(world.size() as usize, Vec::new());
        program(&mut Distributed {
            world,
            batch,
            grant,
            done,
            counter,
            granted,
            codes_done,
        })
    })
}

impl Distributed<'_> {
    /// Slots that each rank has for each other.
    fn slots_each(&self) -> u32 {
        (SLOTS / self.world.size()).max(MIN_SLOTS)
    }

    /// Gives this rank's slots out.
    ///
    /// From then on it is sent batches.
    fn grant_slots(&self) -> argonet::Result<()> {
        let each = self.slots_each();
        for rank in self.world.ranks().filter(|&rank| rank != self.world.rank()) {
            for slot in 0..each {
                self.world.send(rank, &*self.grant, rank.0 * each + slot)?;
            }
        }
        Ok(())
    }

    /// A slot of `owner` to write to; waits until there is one.
    fn slot(&self, owner: Rank) -> argonet::Result<u32> {
        let mut slot = None;
        let mut take = || {
            slot = self.granted.lock()[owner.0 as usize].pop();
            slot.is_some()
        };
        self.world.wait_until(&mut take)?;
        Ok(slot.expect("waited for"))
    }

    /// Hands hashes to the rank that owns them, and handles those that came from others.
    fn hand_over(
        &self,
        slots: &SharedArray<Hash>,
        owner: Rank,
        hashes: &[Hash],
    ) -> argonet::Result<()> {
        if owner == self.world.rank() {
            self.counter.lock().add(hashes);
        } else {
            let slot = self.slot(owner)?;
            let first = slot as usize * BATCH;
            let place = slots.on(owner).part(first..first + hashes.len());
            self.world.send_long(place, &self.batch, slot, hashes)?;
        }
        self.world.poll()?;
        Ok(())
    }

    fn send_all(
        &self,
        share: &Share,
        k: K,
        slots: &SharedArray<Hash>,
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
                    && let Err(error) = self.hand_over(slots, Rank(owner), full)
                {
                    result = Err(error);
                }
            });
            result?;
            self.world.send(Rank(0), &self.done, codes.len() as u64)?;
            each_piece()?;
        }
        for (batch, owner) in batches.iter().zip(self.world.ranks()) {
            self.hand_over(slots, owner, batch.rest())?;
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

impl Ranks for Distributed<'_> {
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
        // Owners are even, so each rank's table takes its share of all letters, whichever rank has
        // read them.
        let table = Table::new(letters.div_ceil(self.world.size().into()));
        let table = self.agree(table)?;
        self.counter.lock().table = Some(table);
        let slots = SharedArray::alloc(
            self.world,
            (self.slots_each() * self.world.size()) as usize * BATCH,
        )?;
        self.grant_slots()?;

        let mut shown = 0;
        let mut show = || {
            let done = self.codes_done.load(Ordering::Relaxed);
            if done > shown {
                progress(done - shown);
                shown = done;
            }
            done
        };
        self.send_all(share, k, &slots, || {
            show();
            Ok(())
        })?;
        if self.world.rank() == Rank(0) {
            self.world.wait_until(|| show() >= codes)?;
        }
        self.world.drain()?;
        slots.free(self.world)?;

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
        let tallies = SharedArray::<u64>::alloc(self.world, longest)?;
        tallies.write_from(self.world, 0, &words);
        self.world.barrier()?;
        let first = self.world.rank() == Rank(0);
        if first {
            let mut theirs = vec![0; longest];
            for rank in self.world.ranks().skip(1) {
                self.world.get_into(tallies.on(rank), &mut theirs)?;
                tally.merge(&theirs);
            }
        }
        tallies.free(self.world)?;
        Ok(first.then_some(tally))
    }
}
