//! Work of ranks by a seed, and its checks.
//!
//! Every rank runs phases of random operations: requests of all categories whose handlers are not
//! idempotent, with and without replies; puts and gets, explicit and implicit, in access regions
//! and blocking; negotiated payloads; bursts; computing without polling. In half of the seeds split
//! barriers and broadcasts go on meanwhile. Ranks meet in collectives between phases. Each message
//! of a rank is noted before it leaves, so that handlers can compare while faults last; races are
//! excluded by construction, so that memory has a model.

mod background;
mod memory;
mod observed;
mod program;
mod shape;

use crate::Trace;
use crate::cluster::ChannelNode;
use crate::job::{Failure, JobConfig, Outcome, Rank, Simulated, StartError, run};
use argonet_am::{AmError, HandlerTable};
use argonet_base::JobRank;
use argonet_engine::MISMATCH_PATIENCE;
use argonet_segment::Directory;
use core::fmt;
use core::time::Duration;
use observed::Observed;
use parking_lot::Mutex;
pub use shape::Shape;
use std::sync::Arc;

/// How the run of a seed ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// The shape that was run.
    pub shape: Shape,
    /// Violations; empty if all is well.
    pub violations: Vec<String>,
    /// How the job ended.
    pub outcome: Outcome,
    /// Messages handled, puts and gets.
    pub handled: u64,
}

impl fmt::Display for SeedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (made, broken) = self.outcome.connections;
        write!(
            f,
            "seed {:#x}: {}; {} handled, {} events in {:?}, {made} connections made, {broken} broke, \
             digest {:016x}",
            self.seed,
            self.shape,
            self.handled,
            self.outcome.events,
            self.outcome.took,
            self.outcome.digest
        )?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// Work of all ranks of a job, and observations of it.
pub(crate) struct Workload {
    shape: Shape,
    observed: Arc<Mutex<Observed>>,
}

impl Workload {
    pub(crate) fn new(shape: &Shape, is_ordered: bool) -> Self {
        Self {
            shape: shape.clone(),
            observed: Arc::new(Mutex::new(Observed::new(shape, is_ordered))),
        }
    }

    /// Registers the handlers of each rank.
    pub(crate) fn register(
        &self,
    ) -> impl FnMut(JobRank, &mut HandlerTable) -> Result<(), AmError> + use<> {
        let observed = Arc::clone(&self.observed);
        move |rank, handlers| observed::register(rank, handlers, &observed)
    }

    /// The program of each rank.
    pub(crate) fn body<C: Simulated>(&self) -> impl Fn(&Rank<C>, ()) + 'static + use<C> {
        let (shape, observed) = (self.shape.clone(), Arc::clone(&self.observed));
        move |rank, ()| program::Program::new(rank, &shape, Arc::clone(&observed)).run()
    }

    /// Where the bytes lie that others put into a rank's segment.
    pub(crate) fn knows_segment(&self, rank: u32, directory: &Arc<Directory>) {
        let mut observed = self.observed.lock();
        observed.segments[rank as usize] = Some(Arc::clone(directory));
    }

    /// Violations among the observations, for any end of the job.
    pub(crate) fn seen(&self) -> Vec<String> {
        core::mem::take(&mut self.observed.lock().violations)
    }

    /// Violations of a job that should have ended well: among the observations, and in its end.
    pub(crate) fn judge(&self, outcome: &Outcome) -> Vec<String> {
        let mut violations = self.seen();
        violations.extend(outcome.failure.as_ref().map(ToString::to_string));
        if let Some(abort) = &outcome.abort {
            violations.push(format!("rank {} aborted: {}", abort.rank, abort.message));
        }
        if violations.is_empty() {
            violations = self.observed.lock().incomplete(self.shape.job.sim.ranks);
        }
        violations
    }

    /// Messages handled.
    pub(crate) fn handled(&self) -> u64 {
        self.observed.lock().handled
    }
}

/// Runs a seed.
///
/// # Errors
/// The error of the system for memory.
pub fn run_seed(seed: u64, trace: Option<Trace>) -> Result<SeedReport, StartError> {
    run_shape(Shape::draw(seed), trace)
}

/// Runs a workload of a given shape.
///
/// # Errors
/// The error of the system for memory.
pub fn run_shape(shape: Shape, trace: Option<Trace>) -> Result<SeedReport, StartError> {
    let config: &JobConfig = &shape.job;
    let ranks = config.sim.ranks;
    let work = Workload::new(&shape, ChannelNode::IS_ORDERED);
    let outcome = run(config, trace, work.register(), work.body())?;
    let mut violations = work.seen();
    // A rank that no other has connected to dies unnoticed: that is the launcher's business.
    let stalled = matches!(outcome.failure, Some(Failure::Stalled(_)));
    if let Some(failure) = &outcome.failure
        && !(stalled && outcome.died_unknown)
    {
        violations.push(failure.to_string());
    }
    for rank in &outcome.overslept {
        violations.push(format!("rank {rank} slept on although something had come"));
    }
    match shape.job.sim.faults.deaths.first() {
        None => {
            if let Some(abort) = &outcome.abort {
                violations.push(format!("rank {} aborted: {}", abort.rank, abort.message));
            } else if violations.is_empty() {
                violations.extend(work.observed.lock().incomplete(ranks));
            }
        }
        Some(&(dead, at_ns)) => violations.extend(judge_death(&shape, &outcome, dead, at_ns)),
    }
    let handled = work.handled();
    Ok(SeedReport {
        seed: shape.job.sim.seed,
        shape,
        violations,
        outcome,
        handled,
    })
}

/// A rank died: the job ends in time, and the rank that ends it names the dead.
fn judge_death(shape: &Shape, outcome: &Outcome, dead: u32, at_ns: u64) -> Option<String> {
    // Where no rank ended the job, the others have done all their work, or have stalled, which is a
    // failure already: ranks that are done need not notice.
    let abort = outcome.abort.as_ref()?;
    let (sim, wait) = (&shape.job.sim, shape.job.sim.sizes.dead_after_ns);
    // The connection ends when its host has asked in vain, and then another is asked for. Ranks
    // that have had nothing from it, and have sent it nothing, begin with the question that follows
    // a long wait in a collective call.
    let asked_ns = MISMATCH_PATIENCE.as_nanos() as u64;
    let stop_ns = sim.faults.stop_ns;
    let limit = Duration::from_nanos(at_ns.max(stop_ns) + 3 * wait + stop_ns + asked_ns);
    if !abort
        .message
        .contains(&format!("rank {dead} is taken for dead"))
    {
        Some(format!("rank {dead} died, but: {}", abort.message))
    } else if abort.at_ns < at_ns || Duration::from_nanos(abort.at_ns) > limit {
        Some(format!(
            "rank {dead} died at {at_ns} ns, noticed at {} ns",
            abort.at_ns
        ))
    } else {
        None
    }
}

impl SeedReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether the job did not end in time.
    #[must_use]
    pub fn stalled(&self) -> bool {
        matches!(self.outcome.failure, Some(Failure::Stalled(_)))
    }
}
