//! The run of a seed.

use super::account;
use super::conduit::{Host, PortalsNode};
use super::shape::PortalsShape;
use crate::Trace;
use crate::job::{Outcome, Ran, Simulated as _, StartError, outcome, run_over};
use crate::workload::Workload;
use core::fmt;

/// The error of a rank that loses an event.
const LOST: &str = "events were dropped";

/// How the run of a seed ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalsReport {
    /// The seed.
    pub seed: u64,
    /// The shape that was run.
    pub shape: PortalsShape,
    /// Violations; empty if all is well.
    pub violations: Vec<String>,
    /// How the job ended.
    pub outcome: Outcome,
    /// Messages handled.
    pub handled: u64,
}

impl PortalsReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for PortalsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {:#x}: {}; {} handled, {} events in {:?}, digest {:016x}",
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

/// Runs a seed.
///
/// # Errors
/// The error of the system for memory.
pub fn run_portals_seed(seed: u64, trace: Option<Trace>) -> Result<PortalsReport, StartError> {
    run_portals_shape(PortalsShape::draw(seed), trace)
}

/// Runs a workload of a given shape.
///
/// # Errors
/// The error of the system for memory; sizes that do not fit each other.
pub fn run_portals_shape(
    shape: PortalsShape,
    trace: Option<Trace>,
) -> Result<PortalsReport, StartError> {
    let job = &shape.work.job;
    let host = Host::new(&job.sim, shape.sizes, shape.faults)?;
    let work = Workload::new(&shape.work, PortalsNode::IS_ORDERED);
    let seat = |cluster: &_, rank, registered, fiber| {
        let seat = host.seat(cluster, rank, registered, fiber)?;
        // Puts are complete there before its program has begun.
        work.knows_segment(rank, seat.segment.directory());
        Ok(seat)
    };
    let Ran {
        cluster,
        ranks,
        failure,
        abort,
    } = run_over(job, trace, seat, work.register(), work.body())?;
    let outcome = outcome(&cluster, failure, abort);
    let lost = outcome
        .abort
        .as_ref()
        .is_some_and(|abort| abort.message.contains(LOST));
    let violations = if shape.loses_events() && lost {
        // The loss was reported; messages before it are compared all the same.
        work.seen()
    } else {
        let mut violations = work.judge(&outcome);
        if violations.is_empty() {
            violations = account::violations(&ranks);
        }
        violations
    };
    Ok(PortalsReport {
        seed: job.sim.seed,
        handled: work.handled(),
        violations,
        outcome,
        shape,
    })
}
