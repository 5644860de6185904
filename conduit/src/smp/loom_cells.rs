//! Cells under loom's model checker, for two calls of one word.

use super::cells::{BLOCK_WORDS, Block, DEPTH, Entry};
use super::loom_tests::{ModelKernel, model};
use super::wake::{self, Barrier};
use super::words::Words;
use argonet_base::sync::atomic::AtomicU32;
use loom::sync::Arc;
use loom::thread;

/// So many calls use each cell anew.
const CALLS: u64 = DEPTH + 1;

#[derive(Clone)]
struct Shared(Words);

impl Shared {
    fn new() -> Self {
        Self(Words::zeroed(BLOCK_WORDS))
    }

    fn block(&self) -> Block {
        Block(self.0.clone())
    }
}

fn enter(block: &Block, call: u64, value: u64) {
    let entry = Entry {
        unfinished: 0,
        what: value ^ 0xff,
    };
    block.enter(call, entry, &value.to_ne_bytes());
}

/// Waits for a call, and checks that it came whole.
fn take(block: &Block, call: u64, value: u64) -> Entry {
    let entry = loop {
        match block.look(call) {
            Some(entry) => break entry,
            None => thread::yield_now(),
        }
    };
    let mut data = [0; 8];
    block.read(call, &mut data);
    assert_eq!(u64::from_ne_bytes(data), value);
    assert_eq!(entry.what, value ^ 0xff);
    entry
}

/// One writes, the other reads and publishes the calls that it has finished: nothing is overwritten
/// that is not read.
#[test]
fn cells_are_used_anew_when_they_are_read() {
    model(|| {
        let (writer, reader) = (Shared::new(), Shared::new());
        let (theirs, mine) = (writer.clone(), reader.clone());
        let peer = thread::spawn(move || {
            let (theirs, mine) = (theirs.block(), mine.block());
            for call in 0..CALLS {
                take(&theirs, call, 7 + call);
                mine.finish(call + 1);
            }
        });
        let (mine, theirs) = (writer.block(), reader.block());
        for call in 0..CALLS {
            while theirs.done() + DEPTH <= call {
                thread::yield_now();
            }
            enter(&mine, call, 7 + call);
        }
        peer.join().unwrap();
    });
}

/// Both write and read: the entry of the other into a call says that it has finished those before.
#[test]
fn an_exchange_needs_no_other_word() {
    model(|| {
        let blocks = [Shared::new(), Shared::new()];
        let theirs = blocks.clone();
        let side = |blocks: &[Shared; 2], me: usize| {
            let (mine, theirs) = (blocks[me].block(), blocks[1 - me].block());
            let mut known = 0;
            for call in 0..CALLS {
                assert!(known + DEPTH > call);
                enter(&mine, call, 10 * me as u64 + call);
                let entry = take(&theirs, call, 10 * (1 - me as u64) + call);
                known = call - entry.unfinished;
            }
        };
        let peer = thread::spawn(move || side(&theirs, 1));
        side(&blocks, 0);
        peer.join().unwrap();
    });
}

/// The writer of a cell wakes its sleeper: a lost wake-up is a deadlock, which loom reports.
#[test]
fn a_written_cell_wakes_its_sleeper() {
    model(|| {
        let shared = Shared::new();
        let word = Arc::new(AtomicU32::new(0));
        let kernel = Arc::new(ModelKernel::default());
        let (theirs, their_word, their_kernel) =
            (shared.clone(), Arc::clone(&word), Arc::clone(&kernel));
        let writer = thread::spawn(move || {
            enter(&theirs.block(), 0, 3);
            wake::wake_all([&*their_word].into_iter(), Barrier::Sender, &*their_kernel);
        });
        let block = shared.block();
        while block.look(0).is_none() {
            wake::sleep((&word, true), Barrier::Sender, &*kernel, None, || {
                block.look(0).is_some()
            });
        }
        take(&block, 0, 3);
        writer.join().unwrap();
    });
}
