//! Collective operations of teams by cells, beside those by messages.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Concatenates and counts: neither commutative nor the same in another order.
///
/// Elements are triples of bytes: first, last, and twice the number of the block plus whether
/// something was wrong.
///
/// # Safety
/// As [`FoldFn`].
unsafe fn join(_: [*const (); 2], left: *const u8, right: *mut u8, count: usize) {
    for at in 0..count {
        // SAFETY: `count` elements of three bytes lie at both places.
        unsafe {
            let left = left.add(3 * at).cast::<[u8; 3]>().read();
            let right = right.add(3 * at).cast::<[u8; 3]>();
            let [first, last, wrong] = right.read();
            let gap = u8::from(left[1].wrapping_add(1) != first || left[2] & !1 != wrong & !1);
            right.write([left[0], last, left[2] | wrong | gap]);
        }
    }
}

const KINDS: [Kind; 11] = [
    Kind::Barrier,
    Kind::Broadcast,
    Kind::Reduce,
    Kind::ReduceAll,
    Kind::Gather,
    Kind::GatherAll,
    Kind::Scatter,
    Kind::Exchange,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::ExclusiveScan,
];

/// A call of a team, in elements of three bytes.
#[derive(Clone, Copy, Debug)]
struct Team3 {
    kind: Kind,
    root: u32,
    count: usize,
}

impl Team3 {
    fn gives_blocks(self) -> bool {
        use Kind::{Exchange, ReduceScatter, Scatter};
        matches!(self.kind, Scatter | Exchange | ReduceScatter)
    }

    fn takes_blocks(self) -> bool {
        use Kind::{Exchange, Gather, GatherAll};
        matches!(self.kind, Exchange | Gather | GatherAll)
    }

    /// The source of a member: runs that begin and end with it, whose numbers say where they are.
    fn source(self, rank: u32, size: u32) -> Vec<u8> {
        let blocks = if self.gives_blocks() { size } else { 1 };
        let elements = blocks as usize * self.count;
        let element = |at: usize| match self.kind.folds() {
            true => [rank as u8, rank as u8, (at / self.count) as u8 * 2],
            false => [rank as u8, at as u8, (at >> 8) as u8 ^ 0x5a],
        };
        (0..elements).flat_map(element).collect()
    }

    /// The target of a member; bytes that stay as they were are `None`.
    fn target(self, rank: u32, size: u32) -> Option<Vec<u8>> {
        let block = 3 * self.count;
        let sources: Vec<_> = (0..size).map(|from| self.source(from, size)).collect();
        let own = |from: u32| &sources[from as usize][rank as usize * block..][..block];
        let block_of = if self.gives_blocks() {
            rank as u8 * 2
        } else {
            0
        };
        let run = |last: u32| [0, last as u8, block_of].repeat(self.count);
        match self.kind {
            Kind::Broadcast => Some(sources[self.root as usize].clone()),
            Kind::Reduce if rank == self.root => Some(run(size - 1)),
            Kind::ReduceAll | Kind::ReduceScatter => Some(run(size - 1)),
            Kind::Gather if rank == self.root => Some(sources.concat()),
            Kind::GatherAll => Some(sources.concat()),
            Kind::Scatter => Some(own(self.root).to_vec()),
            Kind::Exchange => Some((0..size).map(own).collect::<Vec<_>>().concat()),
            Kind::Scan => Some(run(rank)),
            Kind::ExclusiveScan if rank > 0 => Some(run(rank - 1)),
            _ => None,
        }
    }
}

/// A call under way, with its memory.
struct Under {
    event: Event,
    call: Team3,
    _source: Vec<u8>,
    target: Vec<u8>,
}

fn begin(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    team: &Arc<Team>,
    call: Team3,
    waits: bool,
) -> Under {
    begin_at(engine, ctx, team, call, waits, false)
}

/// With source and target in one place, if so said; for calls that have as much of both.
fn begin_at(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    team: &Arc<Team>,
    call: Team3,
    waits: bool,
    in_place: bool,
) -> Under {
    let size = team.size();
    let source = call.source(team.rank, size);
    let blocks = if call.takes_blocks() { size } else { 1 };
    let mut target = match in_place {
        true => source.clone(),
        false => vec![0xee; blocks as usize * 3 * call.count],
    };
    let folding = call.kind.folds().then_some(Folding {
        is_client_code: true,
        function: join,
        context: [::core::ptr::null(); 2],
        ordered: true,
        signature: Signature::CLOSURE,
    });
    let raw = crate::Call {
        root: call.root,
        unit: 3,
        count: call.count,
        src: if in_place {
            target.as_ptr()
        } else {
            source.as_ptr()
        },
        dst: target.as_mut_ptr(),
        folding,
        ..crate::Call::of(call.kind)
    };
    // SAFETY: the memory is kept until the event is complete.
    let event = unsafe {
        if waits {
            engine.collective_wait(ctx, team, raw).unwrap();
            Event::DONE
        } else {
            engine.collective_start(ctx, team, raw).unwrap()
        }
    };
    Under {
        event,
        call,
        _source: source,
        target,
    }
}

fn end(engine: &Engine<Smp>, ctx: &ThreadCtx, team: &Arc<Team>, under: &Under) {
    engine.wait(ctx, under.event).unwrap();
    let (rank, size) = (team.rank, team.size());
    let untouched = || vec![0xee; under.target.len()];
    let expected = under.call.target(rank, size).unwrap_or_else(untouched);
    assert!(
        under.target == expected,
        "{:?} at rank {rank} of {size}: {:?} instead of {expected:?}",
        under.call,
        under.target
    );
}

fn team_call(size: u32) -> impl Strategy<Value = (Team3, u8)> {
    // On both sides of the limit of cells, as a block and as one for each rank.
    let count = proptest::sample::select(&[0usize, 1, 2, 5, 12, 16, 19, 29, 58, 59, 200][..]);
    let kind = proptest::sample::select(&KINDS[..]);
    (kind, 0..size, count, any::<u8>()).prop_map(|(kind, root, count, how)| {
        let root = if kind.is_rooted() { root } else { 0 };
        (Team3 { kind, root, count }, how)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Calls of all kinds, started and waited for, several under way, of the world and of a team of
    /// some of its ranks in another order, with threads that retire them in any order.
    #[test]
    fn calls_of_teams_agree_with_the_model(
        (size, calls) in (2u32..6).prop_flat_map(|size| {
            (Just(size), proptest::collection::vec(team_call(size), 1..80))
        }),
        par in any::<bool>(),
    ) {
        let mode = if par { ThreadMode::Par } else { ThreadMode::Seq };
        job(size, mode, |engine, ctx| {
            let world = Arc::clone(engine.world_team());
            let choice = Choice { color: 0, key: -(engine.rank().0 as i32) };
            let backwards = engine.team_split(ctx, &world, Some(choice), Terms::default());
            let backwards = backwards.unwrap().unwrap();
            assert!(world.shared.get().is_some() && backwards.shared.get().is_some());
            let mut open: Vec<(Arc<Team>, Under)> = Vec::new();
            for &(call, how) in &calls {
                let team = if how & 1 == 0 { &world } else { &backwards };
                let waits = how & 6 == 0;
                open.push((Arc::clone(team), begin(engine, ctx, team, call, waits)));
                // Ranks look at different times, the newest first.
                while open.len() > 1 + (how as usize * 7 + engine.rank().0 as usize * 3) % 40 {
                    let (team, under) = open.pop().unwrap();
                    end(engine, ctx, &team, &under);
                }
            }
            for (team, under) in open {
                end(engine, ctx, &team, &under);
            }
            engine.team_barrier(ctx, &world).unwrap();
            assert_eq!(engine.background.pending(), 0);
        });
    }
}

/// Counts of elements on all sides of the limits of a cell, of pieces that each member combines
/// whole, and of half a pool; and short calls between them.
fn pooled_call(size: u32) -> impl Strategy<Value = (Team3, u8)> {
    let long = &[
        59usize, 700, 1800, 2730, 2731, 3500, 5461, 5462, 9000, 30_000,
    ][..];
    let long = proptest::sample::select(long).prop_flat_map(move |count| {
        let kind = proptest::sample::select(&[Kind::Reduce, Kind::ReduceAll][..]);
        (kind, Just(count), 0..size)
    });
    let short = (proptest::sample::select(&KINDS[..]), Just(2usize), 0..size);
    let call = prop_oneof![2 => long, 1 => short];
    (call, any::<u8>()).prop_map(|((kind, count, root), how)| {
        let root = if kind.is_rooted() { root } else { 0 };
        (Team3 { kind, root, count }, how)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Reductions through pools of 20 KiB, whose order of operands counts, in pieces, in place and
    /// not, several under way beside short calls.
    #[test]
    fn reductions_through_pools_agree_with_the_model(
        (size, calls) in (2u32..6).prop_flat_map(|size| {
            (Just(size), proptest::collection::vec(pooled_call(size), 1..20))
        }),
        par in any::<bool>(),
    ) {
        let mode = if par { ThreadMode::Par } else { ThreadMode::Seq };
        job(size, mode, |engine, ctx| {
            let scratch_bytes = 20 << 10;
            assert!(engine.tune_collectives(Tuning { scratch_bytes, ..Tuning::DEFAULT }));
            let world = Arc::clone(engine.world_team());
            let mut open = Vec::new();
            for &(call, how) in &calls {
                let in_place = call.kind == Kind::ReduceAll && how & 1 == 0;
                let waits = how & 6 == 0;
                open.push(begin_at(engine, ctx, &world, call, waits, in_place));
                while open.len() > 1 + (how as usize * 7 + engine.rank().0 as usize * 3) % 10 {
                    end(engine, ctx, &world, &open.pop().unwrap());
                }
            }
            for under in open {
                end(engine, ctx, &world, &under);
            }
            let pieces = &world.shared.get().unwrap().pieces;
            let long = calls.iter().filter(|(call, _)| call.kind.folds() && call.count > 58);
            assert!(pieces.load(::core::sync::atomic::Ordering::Relaxed) >= long.count() as u64);
            engine.team_barrier(ctx, &world).unwrap();
        });
    }
}

/// More teams than there are slots, one after another, two at a time with common ranks; each has
/// cells, and none reads entries of another team.
#[test]
fn slots_are_given_again_when_all_have_left() {
    job(4, ThreadMode::Seq, |engine, ctx| {
        let world = Arc::clone(engine.world_team());
        let me = engine.rank().0;
        for round in 0..150u32 {
            let split = |color, key| {
                let choice = Some(Choice { color, key });
                let team = engine.team_split(ctx, &world, choice, Terms::default());
                team.unwrap().unwrap()
            };
            let all = split(0, (me ^ round & 3) as i32);
            let half = split((me + round) & 1, 0);
            assert!(
                all.shared.get().is_some() && half.shared.get().is_some(),
                "{round}"
            );
            for call in 0..20 {
                for team in [&all, &half] {
                    let root = call % team.size();
                    let mut bytes = [0; 8];
                    if team.rank == root {
                        bytes = (u64::from(round) << 32 | u64::from(call)).to_ne_bytes();
                    }
                    engine.team_broadcast(ctx, team, root, &mut bytes).unwrap();
                    let expected = u64::from(round) << 32 | u64::from(call);
                    assert_eq!(u64::from_ne_bytes(bytes), expected, "{call}");
                }
            }
            engine.team_leave(ctx, &all, false).unwrap();
            engine.team_leave(ctx, &half, false).unwrap();
        }
        engine.team_barrier(ctx, &world).unwrap();
    });
}

/// The messages of ranks that end because calls differ; the other ranks wait for them, unless they
/// find it too.
fn mismatch_messages(calls: impl Fn(&Engine<Smp>, &ThreadCtx, &Arc<Team>) + Sync) -> Vec<String> {
    let memory = Memory::new(2);
    let (sender, messages) = std::sync::mpsc::channel();
    for rank in [JobRank(0), JobRank(1)] {
        let sender = sender.clone();
        let engine = memory.engine(rank, ThreadMode::Seq);
        let run = || {
            let ctx = ThreadCtx::uncounted();
            let world = Arc::clone(engine.world_team());
            calls(&engine, &ctx, &world);
        };
        // The first calls, and does not wait; the second finds it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        if let Err(panic) = outcome {
            sender.send(*panic.downcast::<String>().unwrap()).unwrap();
        }
    }
    drop(sender);
    messages.iter().collect()
}

#[test]
fn a_mismatch_names_the_call_of_each_rank() {
    let kinds = [
        (Kind::Broadcast, 1, "a broadcast with root 1 and 3 bytes"),
        (Kind::Broadcast, 5, "a broadcast with root 1 and 15 bytes"),
        (Kind::GatherAll, 1, "a gather-all of 3 bytes"),
        // By messages.
        (Kind::Broadcast, 200, "longer"),
        (Kind::Scan, 1, "by a combination of its own"),
    ];
    for (kind, count, text) in kinds {
        let messages = mismatch_messages(|engine, ctx, team| {
            let root = u32::from(kind.is_rooted());
            let call = match team.rank {
                0 => Team3 { kind, root, count },
                _ => Team3 {
                    kind: Kind::Barrier,
                    root: 0,
                    count: 0,
                },
            };
            // Rank 0's memory outlives its engine.
            let under = begin(engine, ctx, team, call, false);
            if team.rank == 0 {
                std::mem::forget(under);
                return;
            }
            // A longer call is left to the one that makes it for a while.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(20) {
                engine.poll(ctx).unwrap();
            }
        });
        assert_eq!(messages.len(), 1, "{messages:?}");
        for part in ["rank 1", "rank 0", "barrier", text] {
            assert!(
                messages[0].contains(part),
                "{part} is missing in {}",
                messages[0]
            );
        }
    }
}

/// A root gives its cell and leaves.
///
/// Another member that calls something else by messages in that place waits for it in vain, and
/// reports that, whether the root calls anything again or not.
#[test]
fn a_long_call_reports_a_root_that_has_left_a_short_one() {
    let short = |kind, root| Team3 {
        kind,
        root,
        count: 5,
    };
    let long = |kind| Team3 {
        kind,
        root: 0,
        count: 200,
    };
    for (first, second, later) in [
        (short(Kind::Broadcast, 0), long(Kind::Broadcast), 0),
        (short(Kind::Broadcast, 0), long(Kind::ReduceAll), 3),
        // More than cells can hold.
        (short(Kind::Broadcast, 0), long(Kind::GatherAll), 20),
        (short(Kind::Reduce, 1), long(Kind::Exchange), 1),
    ] {
        let memory = Memory::new(2);
        let time = Arc::new(AtomicU64::new(0));
        let engines = [0, 1].map(|rank| {
            let time = Arc::clone(&time);
            let clock = move || Duration::from_millis(time.load(Ordering::Relaxed));
            memory.engine_at(JobRank(rank), ThreadMode::Seq, Box::new(clock))
        });
        let ctx = [ThreadCtx::uncounted(), ThreadCtx::uncounted()];
        let call = |at: usize, call| {
            let team = Arc::clone(engines[at].world_team());
            // The memory outlives the engines.
            std::mem::forget(begin(&engines[at], &ctx[at], &team, call, false));
        };
        // Calls that both make alike, by cells and by messages.
        for both in [short(Kind::Broadcast, 0), long(Kind::Broadcast)] {
            call(0, both);
            call(1, both);
        }
        let polls = || {
            for _ in 0..10 {
                time.fetch_add(100, Ordering::Relaxed);
                for (engine, ctx) in engines.iter().zip(&ctx) {
                    engine.poll(ctx).unwrap();
                }
            }
        };
        polls();
        call(1, second);
        polls();
        // Only now, when it has been asked already.
        call(0, first);
        (0..later).for_each(|_| call(0, short(Kind::Broadcast, 0)));
        let run = std::panic::AssertUnwindSafe(polls);
        let panic = std::panic::catch_unwind(run).expect_err("a rank must report it");
        let message = panic.downcast::<String>().unwrap();
        let [first, second] = [first, second].map(|call| call.kind.name());
        for part in ["rank 1: ", "at rank 0", first, second] {
            assert!(message.contains(part), "{part} is missing in {message}");
        }
    }
}

/// A rank that has entered calls and not finished those before keeps others from writing over cells
/// that it has not read.
#[test]
fn an_early_entry_does_not_finish_earlier_calls() {
    let memory = Memory::new(2);
    let engines = [0, 1].map(|rank| memory.engine(JobRank(rank), ThreadMode::Seq));
    let ctx = [ThreadCtx::uncounted(), ThreadCtx::uncounted()];
    let start = |at: usize, kind, number: u64, under: &mut Vec<(Event, Box<[u64; 2]>)>| {
        let team = Arc::clone(engines[at].world_team());
        let mut words = Box::new([number, 0]);
        let src = words.as_ptr().cast();
        let call = crate::Call {
            unit: 8,
            count: usize::from(kind != Kind::Barrier),
            src,
            dst: words.as_mut_ptr().cast(),
            ..crate::Call::of(kind)
        };
        // SAFETY: the words are kept until the events are complete.
        let event = unsafe { engines[at].collective_start(&ctx[at], &team, call) }.unwrap();
        under.push((event, words));
    };
    let kind = |number| match number {
        15 => Kind::Barrier,
        _ => Kind::Broadcast,
    };
    let (mut root, mut reader) = (Vec::new(), Vec::new());
    // The reader enters fifteen broadcasts and a barrier before the root comes; then the root goes
    // on alone.
    (0..16).for_each(|number| start(1, kind(number), 0, &mut reader));
    // Now it has entered all of them.
    engines[1].poll(&ctx[1]).unwrap();
    (0..40).for_each(|number| start(0, kind(number), 100 + number, &mut root));
    (16..40).for_each(|number| start(1, kind(number), 0, &mut reader));
    for _ in 0..100 {
        for (engine, ctx) in engines.iter().zip(&ctx) {
            engine.poll(ctx).unwrap();
        }
    }
    for (number, (event, words)) in (0..).zip(&reader) {
        assert!(engines[1].test(&ctx[1], *event).unwrap(), "call {number}");
        let expected = if number == 15 { 0 } else { 100 + number };
        assert_eq!(words[0], expected, "call {number}");
    }
}

/// A slot that this rank has left is not offered before the others have finished their calls there.
#[test]
fn a_slot_is_kept_until_all_have_finished() {
    let memory = Memory::new(2);
    let engines = [0, 1].map(|rank| memory.engine(JobRank(rank), ThreadMode::Seq));
    let ctx = ThreadCtx::uncounted();
    let world = Arc::clone(engines[0].world_team());
    let bytes = [1u8; 3];
    let call = crate::Call {
        count: 3,
        src: bytes.as_ptr(),
        dst: bytes.as_ptr().cast_mut(),
        ..crate::Call::of(Kind::Broadcast)
    };
    // SAFETY: the root only reads, and is complete at once.
    let event = unsafe { engines[0].collective_start(&ctx, &world, call) }.unwrap();
    assert_eq!(event, Event::DONE);
    // As if the world were a team that can be left.
    let shared = Arc::clone(world.shared.get().unwrap());
    let slot = shared.group.slot;
    engines[0].background.collectives.slots.leave(shared);
    let offers = || engines[0].offer_slots().offer.slots & 1 << slot != 0;
    assert!(!offers());
    engines[1].conduit.shared_cells().unwrap().finish(slot, 1);
    assert!(offers());
}

/// A call by messages is published as soon as the calls by cells before it have been entered, also
/// while later ones wait for room and others by messages follow.
#[test]
fn calls_by_messages_are_published_in_their_places() {
    let memory = Memory::new(2);
    let engines = [0, 1].map(|rank| memory.engine(JobRank(rank), ThreadMode::Seq));
    let ctx = ThreadCtx::uncounted();
    let world = Arc::clone(engines[0].world_team());
    // Sixteen fill the cells. Then calls 16 and 18 wait for room, and 17 and 19 go by messages.
    for count in [5; 16].into_iter().chain([5, 200, 5, 200]) {
        let call = Team3 {
            kind: Kind::Broadcast,
            root: 0,
            count,
        };
        // The memory outlives the engines.
        std::mem::forget(begin(&engines[0], &ctx, &world, call, false));
    }
    let slot = world.shared.get().unwrap().group.slot;
    let cells = engines[1].conduit.shared_cells().unwrap();
    let published = || cells.by_messages(slot, JobRank(0));
    assert_eq!(published(), 0);
    for (finished, due) in [(1, 18), (2, 20)] {
        cells.finish(slot, finished);
        engines[0].poll(&ctx).unwrap();
        assert_eq!(published(), due);
    }
}
