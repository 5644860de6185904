//! Small collective operations by cells: ranks are threads over one piece of shared memory, and
//! every result is compared with a sequential model.

use super::*;
use argonet_conduit::smp::{Barrier, Smp, SmpConfig};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};

mod teams;

const SEGMENT: u64 = 4096;

/// The most bytes of a call by cells.
const MOST: usize = argonet_conduit::SharedCells::MAX_BYTES;

/// Lengths on both sides of the capacity of one cache line and one cell.
const LENGTHS: [usize; 12] = [0, 1, 7, 8, 47, 48, 49, 64, 175, 176, 177, 1000];

type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// The memory that ranks share.
struct Memory {
    rings: OwnedFd,
    segments: OwnedFd,
    ranks: u32,
}

impl Memory {
    fn new(ranks: u32) -> Self {
        Self {
            rings: memfd_create("rings", MemfdFlags::CLOEXEC).unwrap(),
            segments: SegmentFile::create(ranks, SEGMENT, PageKind::Normal)
                .unwrap()
                .into_fd(),
            ranks,
        }
    }

    fn engine(&self, rank: JobRank, mode: ThreadMode) -> Engine<Smp> {
        let start = std::time::Instant::now();
        self.engine_at(rank, mode, Box::new(move || start.elapsed()))
    }

    /// An engine with the time of `clock`.
    fn engine_at(&self, rank: JobRank, mode: ThreadMode, clock: Clock) -> Engine<Smp> {
        let mut handlers = HandlerTable::default();
        let internals = Internals::register(&mut handlers).unwrap();
        let fd = self.segments.try_clone().unwrap();
        let file = SegmentFile::from_fd(fd, self.ranks, SEGMENT, PageKind::Normal).unwrap();
        let directory = Directory::new(file, rank).unwrap();
        let config = SmpConfig {
            rank,
            first: JobRank(0),
            ranks: self.ranks,
            mode,
            barrier: Barrier::Sender,
            directory: Arc::clone(&directory),
            registered: handlers.registered(),
            segment_len: Arc::new(|_| 0),
        };
        let config = EngineConfig {
            boot: Arc::new(Member {
                rank,
                size: self.ranks,
            }),
            conduit: Smp::new(self.rings.as_fd(), config).unwrap(),
            handlers,
            internals,
            directory,
            segment_len: Arc::new(|_| 0),
            segment_base: Arc::new(|_| 0),
            policy: WaitPolicy::CROWDED,
            wait: WaitMode::Auto,
            stall: None,
            mode,
            operations: 64,
            clock,
        };
        // SAFETY: tests of this module keep the contract.
        unsafe { Engine::new(config) }
    }
}

/// Runs `f` as each rank of a job.
fn job(size: u32, mode: ThreadMode, f: impl Fn(&Engine<Smp>, &ThreadCtx) + Sync) {
    let memory = Memory::new(size);
    std::thread::scope(|scope| {
        let run = |rank| {
            let (memory, f) = (&memory, &f);
            scope.spawn(move || {
                let engine = memory.engine(rank, mode);
                f(&engine, &ThreadCtx::uncounted());
            })
        };
        let threads: Vec<_> = (0..size).map(JobRank).map(run).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

/// One call, and its result at each rank.
#[derive(Clone, Debug)]
enum Call {
    Barrier,
    Named(Vec<Option<i32>>),
    Pass {
        root: u32,
        fold: bool,
        down: bool,
        len: usize,
    },
}

fn call(size: u32) -> impl Strategy<Value = Call> {
    let len = proptest::sample::select(&LENGTHS[..]);
    let names = proptest::collection::vec(proptest::option::of(0..2i32), size as usize);
    prop_oneof![
        Just(Call::Barrier),
        names.prop_map(Call::Named),
        (0..size, any::<bool>(), any::<bool>(), len).prop_map(|(root, fold, down, len)| {
            Call::Pass {
                root,
                fold,
                down,
                len,
            }
        }),
    ]
}

/// The contribution of a rank to a call.
fn contribution(rank: u32, number: usize, len: usize) -> Vec<u8> {
    let byte = |i: usize| (rank as usize * 89 + number * 31 + i * 7) as u8;
    (0..len).map(byte).collect()
}

/// Not commutative, and every order of operands gives another result.
fn fold(mine: &mut [u8], theirs: &[u8]) {
    for (a, b) in mine.iter_mut().zip(theirs) {
        *a = a.wrapping_mul(3).wrapping_add(*b);
    }
}

fn make(engine: &Engine<Smp>, ctx: &ThreadCtx, number: usize, call: &Call) {
    let (rank, size) = (engine.rank().0, engine.size());
    match call {
        Call::Barrier => engine.barrier(ctx, BarrierKind::Client).unwrap(),
        Call::Named(names) => {
            let name = |name: &Option<i32>| name.map_or(Name::Anonymous, Name::Id);
            let own = name(&names[rank as usize]);
            engine.named_notify(ctx, own).unwrap();
            let mut given: Vec<i32> = names.iter().flatten().copied().collect();
            given.sort_unstable();
            given.dedup();
            let expected = match given.len() {
                0 | 1 => Verdict::Match,
                _ => Verdict::Mismatch,
            };
            assert_eq!(engine.named_wait(ctx, own), Ok(expected));
            let result = given.first().copied().filter(|_| given.len() == 1);
            assert_eq!(engine.named_result(), result);
        }
        &Call::Pass {
            root,
            fold: folds,
            down,
            len,
        } => {
            let mut bytes = contribution(rank, number, len);
            let pass = TreePass {
                root: JobRank(root),
                fold: folds.then_some(&fold),
                down,
                signature: Signature::default(),
            };
            engine.collective(ctx, &pass, &mut bytes, 1).unwrap();
            let mut expected = contribution(if folds { 0 } else { root }, number, len);
            if folds && len <= MOST {
                for other in 1..size {
                    fold(&mut expected, &contribution(other, number, len));
                }
            }
            let defined = (down || (folds && rank == root)) && !(folds && len > MOST);
            assert!(!defined || bytes == expected, "{call:?} at rank {rank}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn results_are_those_of_a_sequential_model(
        (size, calls) in (2u32..6).prop_flat_map(|size| {
            (Just(size), proptest::collection::vec(call(size), 1..60))
        }),
        par in any::<bool>(),
    ) {
        let mode = if par { ThreadMode::Par } else { ThreadMode::Seq };
        job(size, mode, |engine, ctx| {
            for (number, call) in calls.iter().enumerate() {
                make(engine, ctx, number, call);
            }
        });
    }
}

/// A barrier holds all ranks, many times over, while ranks fall asleep.
#[test]
fn a_barrier_holds_all_ranks() {
    let entered = ::core::sync::atomic::AtomicU64::new(0);
    let order = ::core::sync::atomic::Ordering::Relaxed;
    job(5, ThreadMode::Par, |engine, ctx| {
        for round in 0..2000 {
            entered.fetch_add(1, order);
            engine.barrier(ctx, BarrierKind::Client).unwrap();
            let count = entered.load(order);
            assert!(5 * (round + 1) <= count && count < 5 * (round + 2));
        }
    });
}

/// A barrier with names, tried until it is over, does not need other ranks' polls.
#[test]
fn tries_complete_a_named_barrier_without_other_ranks_polls() {
    job(3, ThreadMode::Seq, |engine, ctx| {
        for round in 0..500 {
            engine.named_notify(ctx, Name::Id(round)).unwrap();
            assert!(engine.named_notify(ctx, Name::Anonymous).is_err());
            let mut tries = 0;
            while engine.named_try(ctx, Name::Id(round)).unwrap() != Some(Verdict::Match) {
                tries += 1;
                std::thread::yield_now();
                assert!(tries < 100_000_000, "it never ends");
            }
            assert!(engine.named_wait(ctx, Name::Anonymous).is_err());
        }
    });
}
