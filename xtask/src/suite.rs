//! The stages in their order, their times, and the summary.

use crate::budget::{self, Budget};
use crate::command::processor_time;
use crate::record::Record;
use crate::tally::Tally;
use crate::{asan, fuzz, stages, tools, tsan};
use std::time::{Duration, Instant};

/// How much is done, and the failures beside tests that fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// As on any machine, before every commit: nothing else is a failure, neither time nor what the
    /// machine lacks.
    Usual,
    /// The same on a machine that is there for it: a stage that takes too long fails, and is ended
    /// at twice its time; so does one that skips too much.
    Ci,
    /// As before a release: more cases, more preemptions, more repetitions; nothing may be skipped
    /// unnoticed, and no stage is ended for its time.
    Full,
}

/// Input of a stage: its effort, its end, and its counts.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) effort: Effort,
    pub(crate) until: Instant,
    /// Whether of the checks that build everything once more only those are made whose turn it is.
    pub(crate) takes_turns: bool,
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
        effort == Effort::Ci && self.took > self.budget.time
    }

    fn too_many_skips(&self, effort: Effort) -> bool {
        effort != Effort::Usual && self.tally.skipped.len() > self.budget.skips
    }

    /// Whether the stage did all that it should within its limits.
    pub(crate) fn ok(&self, effort: Effort) -> bool {
        self.tally.failed == 0 && !self.late(effort) && !self.too_many_skips(effort)
    }
}

/// A run of several stages.
pub(crate) struct Suite {
    effort: Effort,
    begun: Instant,
    /// The time limit of all stages together.
    whole: Option<Duration>,
    takes_turns: bool,
    outcomes: Vec<Outcome>,
}

type Stage = fn(&mut Run);

/// Everything, in order.
const STAGES: [(Budget, Stage); 8] = [
    (budget::BUILD, stages::build),
    (budget::UNIT, stages::unit),
    (budget::SEEDS, stages::seeds),
    (budget::CONFORMANCE, stages::conformance),
    (budget::JOBS, stages::jobs),
    (budget::NETWORKS, stages::networks),
    (budget::C, stages::c),
    (budget::ASAN, asan::asan),
];

/// Stages that only a full run has, after those.
const FULL_STAGES: [(Budget, Stage); 6] = [
    (budget::C_PARTS[0], stages::c_part::<1, 4>),
    (budget::C_PARTS[1], stages::c_part::<2, 4>),
    (budget::C_PARTS[2], stages::c_part::<3, 4>),
    (budget::C_PARTS[3], stages::c_part::<4, 4>),
    (budget::TSAN, tsan::tsan),
    (budget::FUZZ, fuzz::all),
];

impl Suite {
    pub(crate) fn new(effort: Effort) -> Self {
        Self {
            effort,
            begun: Instant::now(),
            whole: None,
            takes_turns: false,
            outcomes: Vec::new(),
        }
    }

    /// All stages together may take no more than `whole`, and are ended if they do.
    pub(crate) fn within(self, whole: Duration) -> Self {
        Self {
            whole: Some(whole),
            ..self
        }
    }

    /// Runs the stages named, or all; whether all is well.
    pub(crate) fn run(mut self, only: &[String]) -> bool {
        let Some(chosen) = chosen(STAGES.to_vec(), only) else {
            return false;
        };
        // A stage that is asked for by name has all of its checks.
        self.takes_turns = only.is_empty();
        for (budget, stage) in chosen {
            self.stage(budget, stage);
        }
        self.summary()
    }

    /// Runs the stages named, or all, and writes each result down as soon as it is there.
    pub(crate) fn run_and_record(mut self, only: &[String]) -> bool {
        let all: Vec<(Budget, Stage)> = STAGES.into_iter().chain(FULL_STAGES).collect();
        let order: Vec<&str> = all.iter().map(|(budget, _)| budget.stage).collect();
        let Some(chosen) = chosen(all, only) else {
            return false;
        };
        let record = Record::new();
        let mut recorded = true;
        for (budget, stage) in chosen {
            self.stage(budget, stage);
            let outcome = self
                .outcomes
                .last()
                .map(|outcome| record.write(outcome, &order));
            if let Some(Err(error)) = outcome {
                eprintln!(
                    "the result of {} could not be recorded: {error}",
                    budget.stage
                );
                recorded = false;
            }
        }
        self.summary() && recorded
    }

    /// Runs a part of a stage.
    pub(crate) fn run_one(mut self, budget: Budget, stage: impl FnOnce(&mut Run)) -> bool {
        self.stage(budget, stage);
        self.summary()
    }

    fn stage(&mut self, budget: Budget, stage: impl FnOnce(&mut Run)) {
        println!("==> {}", budget.stage);
        let (begun, used) = (Instant::now(), processor_time());
        let limit = match self.effort {
            Effort::Ci => budget.time * 2,
            Effort::Usual | Effort::Full => Duration::from_secs(12 * 3600),
        };
        let mut run = Run {
            effort: self.effort,
            until: until(begun + limit, self.begun, self.whole),
            takes_turns: self.takes_turns,
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
        if !all.skipped.is_empty() {
            print!("{}", tools::advice());
        }
        println!(
            "\n{} passed, {} failed, {} skipped",
            all.passed,
            all.failed,
            all.skipped.len()
        );
        let took = self.begun.elapsed();
        let in_time = self.whole.is_none_or(|whole| took <= whole);
        if let Some(whole) = self.whole {
            println!(
                "{:.0} s of {} s{}",
                took.as_secs_f64(),
                whole.as_secs(),
                if in_time {
                    ""
                } else {
                    "   FAILED: over the time of the whole run"
                }
            );
        }
        in_time && self.outcomes.iter().all(|outcome| outcome.ok(self.effort))
    }
}

/// The stages that `only` names, or all; `None`, after a message, if it names one that does not
/// exist.
fn chosen(stages: Vec<(Budget, Stage)>, only: &[String]) -> Option<Vec<(Budget, Stage)>> {
    let is = |name: &String, (budget, _): &(Budget, Stage)| name == budget.stage;
    if let Some(unknown) = only
        .iter()
        .find(|name| !stages.iter().any(|stage| is(name, stage)))
    {
        let known: Vec<&str> = stages.iter().map(|(budget, _)| budget.stage).collect();
        eprintln!(
            "there is no stage {unknown}; there are {}",
            known.join(", ")
        );
        return None;
    }
    let mut chosen = stages;
    chosen.retain(|stage| only.is_empty() || only.iter().any(|name| is(name, stage)));
    Some(chosen)
}

/// When a stage is ended: at its own limit or at that of the whole run.
fn until(own: Instant, begun: Instant, whole: Option<Duration>) -> Instant {
    whole.map_or(own, |whole| own.min(begun + whole))
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
    if outcome.too_many_skips(effort) {
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

    /// One stage may take longer than its share, as machines differ in what they are slow at; not
    /// all of them, and the whole run may not.
    #[test]
    fn no_stage_may_take_much_more_than_its_share() {
        let sum: Duration = STAGES.iter().map(|(budget, _)| budget.time).sum();
        assert!(sum <= budget::WHOLE * 5 / 4, "{} s", sum.as_secs());
    }

    #[test]
    fn a_run_over_its_whole_time_fails_and_its_stages_are_ended() {
        let fine = |run: &mut Run| run.tally.step("fine", true);
        assert!(
            Suite::new(Effort::Ci)
                .within(budget::WHOLE)
                .run_one(budget::C, fine)
        );
        assert!(
            !Suite::new(Effort::Ci)
                .within(Duration::ZERO)
                .run_one(budget::C, fine)
        );
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(until(begun + second, begun, None), begun + second);
        assert_eq!(
            until(begun + second, begun, Some(2 * second)),
            begun + second
        );
        assert_eq!(
            until(begun + 2 * second, begun, Some(second)),
            begun + second
        );
    }

    #[test]
    fn late_skipped_and_failed_stages_fail_where_they_should() {
        use Effort::{Ci, Full, Usual};
        // Seconds, skipped and failed tests of a stage that may take 10 s and skip one.
        for ((seconds, skipped, failed), well) in [
            ((10, 1, 0), &[Usual, Ci, Full][..]),
            // A busy machine.
            ((11, 0, 0), &[Usual, Full]),
            // One without a compiler that tests want.
            ((1, 2, 0), &[Usual]),
            ((11, 2, 0), &[Usual]),
            ((1, 0, 1), &[]),
        ] {
            let outcome = outcome(seconds, skipped, failed);
            for effort in [Usual, Ci, Full] {
                let (ok, line) = (outcome.ok(effort), line(&outcome, effort));
                assert_eq!(ok, well.contains(&effort), "{effort:?}: {line}");
                assert_eq!(ok, !line.contains("FAILED"), "{effort:?}: {line}");
            }
        }
    }
}
