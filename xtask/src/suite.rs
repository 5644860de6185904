//! The stages in their order, their times, and the summary.

use crate::budget::{self, Budget};
use crate::command::processor_time;
use crate::tally::Tally;
use crate::{record, stages};
use std::time::{Duration, Instant};

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// As before every commit.
    Usual,
    /// As before a release: more cases, more preemptions, more repetitions; no stage is ended for
    /// its time.
    Full,
}

/// What a stage gets: its effort, when it is ended, and where it counts.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) effort: Effort,
    pub(crate) until: Instant,
    pub(crate) tally: Tally,
}

/// A stage's result.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) budget: Budget,
    pub(crate) took: Duration,
    /// Processor time of its programs.
    pub(crate) used: Duration,
    pub(crate) tally: Tally,
}

impl Outcome {
    fn late(&self, effort: Effort) -> bool {
        effort == Effort::Usual && self.took > self.budget.time
    }

    fn too_many_skips(&self) -> bool {
        self.tally.skipped.len() > self.budget.skips
    }

    /// Whether the stage did all that it should within its limits.
    pub(crate) fn ok(&self, effort: Effort) -> bool {
        self.tally.failed == 0 && !self.late(effort) && !self.too_many_skips()
    }
}

/// A run of several stages.
pub(crate) struct Suite {
    effort: Effort,
    outcomes: Vec<Outcome>,
}

type Stage = fn(&mut Run);

/// Everything, in order.
const STAGES: [(Budget, Stage); 7] = [
    (budget::BUILD, stages::build),
    (budget::UNIT, stages::unit),
    (budget::SEEDS, stages::seeds),
    (budget::CONFORMANCE, stages::conformance),
    (budget::JOBS, stages::jobs),
    (budget::C, stages::c),
    (budget::ASAN, stages::asan),
];

impl Suite {
    pub(crate) fn new(effort: Effort) -> Self {
        Self {
            effort,
            outcomes: Vec::new(),
        }
    }

    /// Runs the stages named, or all; whether all is well.
    pub(crate) fn run(mut self, only: &[String]) -> bool {
        if let Some(unknown) = only
            .iter()
            .find(|name| STAGES.iter().all(|(b, _)| b.stage != name.as_str()))
        {
            let known: Vec<&str> = STAGES.iter().map(|(b, _)| b.stage).collect();
            eprintln!(
                "there is no stage {unknown}; there are {}",
                known.join(", ")
            );
            return false;
        }
        for (budget, stage) in STAGES {
            if only.is_empty() || only.iter().any(|name| name == budget.stage) {
                self.stage(budget, stage);
            }
        }
        self.summary()
    }

    /// Runs everything and writes the result down.
    pub(crate) fn run_and_record(mut self) -> bool {
        for (budget, stage) in STAGES {
            self.stage(budget, stage);
        }
        let recorded = record::write(&self.outcomes);
        if let Err(error) = &recorded {
            eprintln!("the result could not be recorded: {error}");
        }
        self.summary() && recorded.is_ok()
    }

    /// Runs a part of a stage.
    pub(crate) fn run_one(mut self, budget: Budget, stage: Stage) -> bool {
        self.stage(budget, stage);
        self.summary()
    }

    fn stage(&mut self, budget: Budget, stage: Stage) {
        println!("==> {}", budget.stage);
        let (begun, used) = (Instant::now(), processor_time());
        let limit = match self.effort {
            Effort::Usual => budget.time * 2,
            Effort::Full => Duration::from_secs(12 * 3600),
        };
        let mut run = Run {
            effort: self.effort,
            until: begun + limit,
            tally: Tally::default(),
        };
        stage(&mut run);
        let outcome = Outcome {
            budget,
            took: begun.elapsed(),
            used: processor_time().saturating_sub(used),
            tally: run.tally,
        };
        println!("{}", line(&outcome, self.effort));
        self.outcomes.push(outcome);
    }

    fn summary(&self) -> bool {
        println!("\n==> summary");
        let mut all = Tally::default();
        for outcome in &self.outcomes {
            println!("{}", line(outcome, self.effort));
            all.add(&outcome.tally);
        }
        for name in &all.failures {
            println!("failed: {name}");
        }
        for name in &all.skipped {
            println!("skipped: {name}");
        }
        println!(
            "\n{} passed, {} failed, {} skipped",
            all.passed,
            all.failed,
            all.skipped.len()
        );
        self.outcomes.iter().all(|outcome| outcome.ok(self.effort))
    }
}

fn line(outcome: &Outcome, effort: Effort) -> String {
    let Outcome {
        budget,
        took,
        used,
        tally,
    } = outcome;
    let mut text = format!(
        "    {:<11} {:>4} passed {:>3} failed {:>3} skipped   {:>6.1} s of {:>4} s, {:.0} s of processor time",
        budget.stage,
        tally.passed,
        tally.failed,
        tally.skipped.len(),
        took.as_secs_f64(),
        budget.time.as_secs(),
        used.as_secs_f64(),
    );
    if outcome.late(effort) {
        text += "   FAILED: over its time";
    }
    if outcome.too_many_skips() {
        text += &format!("   FAILED: at most {} may be skipped", budget.skips);
    }
    if tally.failed > 0 {
        text += "   FAILED";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(seconds: u64, skipped: usize, failed: usize) -> Outcome {
        Outcome {
            budget: Budget {
                stage: "x",
                time: Duration::from_secs(10),
                skips: 1,
            },
            took: Duration::from_secs(seconds),
            used: Duration::ZERO,
            tally: Tally {
                failed,
                skipped: vec![String::new(); skipped],
                ..Tally::default()
            },
        }
    }

    #[test]
    fn late_skipped_and_failed_stages_fail() {
        assert!(outcome(10, 1, 0).ok(Effort::Usual));
        assert!(!outcome(11, 0, 0).ok(Effort::Usual));
        assert!(outcome(11, 0, 0).ok(Effort::Full));
        assert!(!outcome(1, 2, 0).ok(Effort::Usual));
        assert!(!outcome(1, 0, 1).ok(Effort::Full));
    }
}
