//! Collective operations of teams by lines, beside those by messages.

use super::*;

/// Concatenates and counts: neither commutative nor the same in another order. Elements are (first, last, wrong) triples of bytes.
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
            let gap = u8::from(left[1].wrapping_add(1) != first);
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

    /// What a member gives: runs that begin and end with it, whose numbers say where they are.
    fn source(self, rank: u32, size: u32) -> Vec<u8> {
        let blocks = if self.gives_blocks() { size } else { 1 };
        let elements = blocks as usize * self.count;
        let element = |at: usize| match self.kind.folds() {
            true => [rank as u8, rank as u8, 0],
            false => [rank as u8, at as u8, (at >> 8) as u8 ^ 0x5a],
        };
        (0..elements).flat_map(element).collect()
    }

    /// What it gets; bytes that stay as they were are `None`.
    fn target(self, rank: u32, size: u32) -> Option<Vec<u8>> {
        let block = 3 * self.count;
        let sources: Vec<_> = (0..size).map(|from| self.source(from, size)).collect();
        let own = |from: u32| &sources[from as usize][rank as usize * block..][..block];
        let run = |last: u32| [0, last as u8, 0].repeat(self.count);
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
    let size = team.size();
    let source = call.source(team.rank, size);
    let blocks = if call.takes_blocks() { size } else { 1 };
    let mut target = vec![0xee; blocks as usize * 3 * call.count];
    let folding = call.kind.folds().then_some(Folding {
        function: join,
        context: [::core::ptr::null(); 2],
        ordered: true,
        digest: 77,
    });
    let raw = crate::engine::Call {
        root: call.root,
        unit: 3,
        count: call.count,
        src: source.as_ptr(),
        dst: target.as_mut_ptr(),
        folding,
        ..crate::engine::Call::of(call.kind)
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
    // On both sides of what goes by lines, as a block and as one for each rank.
    let count = proptest::sample::select(&[0usize, 1, 2, 5, 12, 16, 19, 29, 58, 59, 200][..]);
    let kind = proptest::sample::select(&KINDS[..]);
    (kind, 0..size, count, any::<u8>()).prop_map(|(kind, root, count, how)| {
        let root = if kind.is_rooted() { root } else { 0 };
        (Team3 { kind, root, count }, how)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Calls of all kinds, started and waited for, several under way, of the world and of a team of some of its ranks in
    /// another order, with threads that retire them in any order.
    #[test]
    fn calls_of_teams_give_what_the_model_says(
        (size, calls) in (2u32..6).prop_flat_map(|size| {
            (Just(size), proptest::collection::vec(team_call(size), 1..80))
        }),
        par in any::<bool>(),
    ) {
        let mode = if par { ThreadMode::Par } else { ThreadMode::Seq };
        job(size, mode, |engine, ctx| {
            let world = Arc::clone(engine.world_team());
            let choice = Choice { colour: 0, key: -(engine.rank().0 as i32) };
            let backwards = engine.team_split(ctx, &world, Some(choice), Terms::default());
            let backwards = backwards.unwrap().unwrap();
            assert!(world.near.get().is_some());
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
