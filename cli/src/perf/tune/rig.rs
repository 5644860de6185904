//! Calls of collective operations, timed, and their algorithms under other settings.
#![allow(unsafe_code)]

use super::knobs::Load;
use argonet::{JobRank, Reduction, Result, World};
use argonet_conduit::Conduit;
use argonet_conduit::selector::Selector;
use argonet_engine::{
    AllSync, Call, DataType, Engine, Folding, Hoods, Kind, Operation, Schedule, Situation, Step,
    Task, Team, ThreadCtx, Tuning, plan,
};
use argonet_start::with_thread;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of an element.
const UNIT: usize = size_of::<f64>();

/// The ranks of a job, and memory for their operations.
pub(super) struct Rig<'w> {
    world: &'w World,
    engine: &'w Engine<Selector>,
    team: Arc<Team>,
    hoods: Hoods,
    /// Input and output of a rank.
    memory: RefCell<[Vec<f64>; 2]>,
}

impl<'w> Rig<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        // SAFETY: the world is of this thread, and so is the rig, which borrows it; it calls
        // collective operations of clients alone.
        let engine = unsafe { world.raw().engine() };
        let hoods = Hoods::new(engine.size(), |rank| engine.neighborhood_of(JobRank(rank)));
        Self {
            world,
            engine,
            team: Arc::clone(engine.world_team()),
            hoods,
            memory: RefCell::default(),
        }
    }

    pub(super) fn world(&self) -> &World {
        self.world
    }

    pub(super) fn conduit(&self) -> &'static str {
        self.engine.conduit().name()
    }

    pub(super) fn neighborhoods(&self) -> u32 {
        self.hoods.count()
    }

    /// The tuning of the job.
    pub(super) fn tuning(&self) -> Tuning {
        self.engine.tuning_of(&self.team)
    }

    /// From now on.
    ///
    /// All ranks do the same.
    pub(super) fn tune(&self, tuning: Tuning) {
        self.engine.retune(&self.team, tuning);
    }

    /// A number for the algorithm of the call under a tuning: the same at all ranks if they do the
    /// same.
    ///
    /// Collective, for all pairs at once.
    pub(super) fn ways(&self, of: &[(Load, Tuning)]) -> Result<Vec<u64>> {
        let rank = self.world.rank().0;
        let own = |(load, tuning): &(Load, Tuning)| {
            if !self.engine.goes_by_messages(&self.team, &load.call()) {
                // Pools are as long as scratch is.
                return tuning.scratch_bytes as u64;
            }
            let mut schedule = Schedule::default();
            let situation = Situation {
                rank,
                hoods: &self.hoods,
                tuning,
            };
            let task = Task {
                kind: load.kind,
                root: 0,
                unit: UNIT,
                count: load.block / UNIT,
                ordered: false,
                all_sync: AllSync::default(),
            };
            plan(&situation, &task, &mut schedule);
            let mut way = DefaultHasher::new();
            rank.hash(&mut way);
            for round in 0..schedule.rounds() {
                for step in schedule.messages(round) {
                    step.hash(&mut way);
                    if let Step::Send { from, .. } = step {
                        (from.len > tuning.eager_bytes).hash(&mut way);
                    }
                }
                schedule.local(round).hash(&mut way);
            }
            way.finish()
        };
        let mut ways: Vec<u64> = of.iter().map(own).collect();
        self.world.reduce_all(Reduction::Sum, &mut ways)?;
        Ok(ways)
    }

    /// Nanoseconds of one call, of so many in a row, in which ranks take turns as the root.
    ///
    /// Collective.
    pub(super) fn chunk(&self, load: Load, calls: u64) -> Result<f64> {
        let mut memory = self.memory.borrow_mut();
        let [given, taken] = &mut *memory;
        let elements = load.most_bytes(self.world.size()) / UNIT;
        for area in [&mut *given, &mut *taken] {
            if area.len() < elements {
                area.resize(elements, 1.0);
            }
        }
        let (src, dst) = (given.as_ptr().cast(), taken.as_mut_ptr().cast());
        let call = |number: u64| Call {
            root: match load.kind.is_rooted() {
                true => (number % u64::from(self.world.size())) as u32,
                false => 0,
            },
            src,
            dst,
            ..load.call()
        };
        self.world.barrier()?;
        let start = Instant::now();
        let all = |ctx: &ThreadCtx| {
            (0..calls).try_for_each(|number| {
                // SAFETY: both areas are long enough for the kind and this function's alone until
                // the call returns; they are apart.
                unsafe { self.engine.collective_wait(ctx, &self.team, call(number)) }
            })
        };
        // SAFETY: the context is given to calls of the job's engine.
        unsafe { with_thread(all) }?;
        self.world.barrier()?;
        Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
    }
}

impl Load {
    /// Without memory and root.
    fn call(self) -> Call {
        let folds = self.kind.folds();
        Call {
            unit: UNIT,
            count: self.block / UNIT,
            folding: folds.then(|| Folding::built_in(Operation::Max, DataType::F64)),
            ..Call::of(self.kind)
        }
    }
}

/// Name of a kind in reports.
pub(super) fn name_of(kind: Kind) -> &'static str {
    kind.name()
}
