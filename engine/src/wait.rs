//! How long a thread that waits spins, yields and sleeps.

use super::mismatch::PATIENCE;
use argonet_settings::WaitMode;
use core::time::Duration;

/// How long a rank spins and yields before it sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitPolicy {
    /// Empty polls before the first yield; [`ENDLESS`](Self::ENDLESS) for no yield ever.
    pub spins: u32,
    /// Yields before the first sleep; [`ENDLESS`](Self::ENDLESS) for no sleep ever.
    pub yields: u32,
    /// Threads of this rank that may spin at once without keeping other threads from running; where
    /// more wait, they wait as [`CROWDED`](Self::CROWDED) says.
    pub room: u32,
    /// Whether a wait begins with yields instead of spinning: where polls are system calls, which
    /// take longer than a rank that shares the processor needs to be waited for no more.
    pub gives_way: bool,
}

impl WaitPolicy {
    /// A number that is not counted down.
    pub const ENDLESS: u32 = u32::MAX;

    /// For ranks that wait for a processor as much as for a message: a spinning rank keeps the one
    /// that it waits for from running.
    pub const CROWDED: Self = Self {
        spins: 20,
        yields: 20,
        room: 0,
        gives_way: false,
    };

    /// For a thread that serves others beside those of the program: it sleeps at once.
    ///
    /// One that has given way runs late when a message wakes it, as the system takes it for one
    /// that can wait.
    pub const OF_SERVER: Self = Self {
        spins: 20,
        yields: 0,
        room: 0,
        gives_way: false,
    };

    /// The policy for `ranks` ranks that share `processors` processors.
    ///
    /// With a processor for each rank, spinning costs other ranks nothing; with fewer it is nearly
    /// left out.
    #[must_use]
    pub const fn for_host(ranks: u32, processors: u32) -> Self {
        if ranks <= processors {
            Self {
                spins: 20_000,
                yields: 50,
                room: processors / if ranks == 0 { 1 } else { ranks },
                gives_way: false,
            }
        } else {
            Self::CROWDED
        }
    }

    /// The policy of a mode, where [`WaitMode::Auto`] means `automatic`.
    #[must_use]
    pub const fn for_mode(mode: WaitMode, automatic: Self) -> Self {
        let (spins, yields) = match mode {
            WaitMode::Auto => return automatic,
            WaitMode::Spin => (Self::ENDLESS, 0),
            WaitMode::Yield => (20, Self::ENDLESS),
            WaitMode::Sleep => (20, 0),
        };
        let room = u32::MAX;
        Self {
            spins,
            yields,
            room,
            gives_way: false,
        }
    }

    /// The policy where polls ask the system: after some 100 microseconds of them a wake-up costs
    /// little more.
    ///
    /// Where others want to run, too, a rank that spins for longer uses up a turn at the processor
    /// that it may need when its message comes.
    #[must_use]
    pub const fn of_slow_polls(self) -> Self {
        const SPINS: u32 = 100;
        let spins = if self.spins == Self::ENDLESS || self.spins < SPINS {
            self.spins
        } else {
            SPINS
        };
        Self { spins, ..self }
    }

    /// The policy of ranks that communicate over a network, too.
    #[must_use]
    pub const fn over_a_network(self) -> Self {
        let gives_way = self.room == 0;
        Self { gives_way, ..self }
    }
}

/// The step after a poll that found nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Poll again.
    Spin,
    /// Look around whether anything else is the matter, then poll again.
    Look,
    /// Let another process run, then poll again.
    Yield,
    /// Sleep until something arrives or the time is over.
    Sleep(Duration),
}

/// How far a wait has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It may be over in a moment: nothing but polls.
    Begun,
    Spinning,
    Yielding,
    Sleeping,
}

/// The patience of one wait.
#[derive(Debug)]
pub(super) struct Patience {
    policy: WaitPolicy,
    stage: Stage,
    /// Steps before the next stage, or before the next look around.
    left: u32,
    /// The next sleep, and the longest.
    sleep: Duration,
    longest_sleep: Duration,
    shortest_sleep: Duration,
    /// The conduit's epoch before the waiting thread looked last.
    seen: u32,
    /// Whether it begins with yields instead of spinning.
    gives_way: bool,
}

/// Polls before the first look around: some microseconds.
const BEGINNING: u32 = 256;
/// Polls or yields between looks of a thread that never sleeps.
const LOOK_EVERY: u32 = 1 << 16;

impl Patience {
    /// Waiting for a message: the sender rings, the long sleep is only a second net.
    ///
    /// The first ones are as long as a call waits before it asks whether others call the same.
    #[must_use]
    pub(super) fn for_message(policy: WaitPolicy) -> Self {
        Self::new(policy, PATIENCE, Duration::from_millis(500))
    }

    /// Waiting for room at a peer: the peer sends no wakeup when it frees some, so the waiting
    /// thread looks itself, less and less often.
    #[must_use]
    pub(super) fn for_room(policy: WaitPolicy) -> Self {
        Self::new(policy, Duration::from_micros(50), Duration::from_millis(5))
    }

    fn new(policy: WaitPolicy, shortest_sleep: Duration, longest_sleep: Duration) -> Self {
        Self {
            policy,
            stage: Stage::Begun,
            left: policy.spins.min(BEGINNING),
            sleep: shortest_sleep,
            shortest_sleep,
            longest_sleep,
            seen: 0,
            gives_way: policy.gives_way,
        }
    }

    /// Makes it begin with yields, before its first [`Step::Look`]: the awaited rank probably waits
    /// for this processor.
    #[inline]
    pub(super) fn give_way(&mut self) {
        self.gives_way = true;
    }

    /// Whether it begins with yields instead of spinning.
    #[inline]
    pub(super) fn gives_way(&self) -> bool {
        self.gives_way
    }

    /// The conduit's epoch is `epoch`, and the waiting thread looks next.
    #[inline]
    pub(super) fn saw(&mut self, epoch: u32) {
        self.seen = epoch;
    }

    /// The last epoch that [`saw`](Self::saw) got.
    ///
    /// A sleep follows some pauses, so `seen` is never called before `saw`.
    #[must_use]
    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    /// Something happened: start over.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.stage = Stage::Begun;
        self.left = self.policy.spins.min(BEGINNING);
        self.sleep = self.shortest_sleep;
    }

    /// More threads wait than can spin.
    pub(super) fn crowd(&mut self) {
        self.policy = WaitPolicy::CROWDED;
        self.left = self.left.min(self.policy.spins);
    }

    /// The next step after a poll that found nothing.
    #[inline]
    pub(super) fn next(&mut self) -> Step {
        if self.left > 0 {
            self.left -= 1;
            return if self.stage == Stage::Yielding
                || (self.gives_way && self.stage == Stage::Begun)
            {
                Step::Yield
            } else {
                Step::Spin
            };
        }
        self.next_stage()
    }

    #[cold]
    #[inline(never)]
    fn next_stage(&mut self) -> Step {
        let count = |n: u32| {
            if n == WaitPolicy::ENDLESS {
                LOOK_EVERY
            } else {
                n
            }
        };
        match self.stage {
            Stage::Begun => {
                self.stage = Stage::Spinning;
                self.left = count(self.policy.spins).saturating_sub(BEGINNING);
                Step::Look
            }
            Stage::Spinning if self.policy.spins == WaitPolicy::ENDLESS => {
                self.left = LOOK_EVERY;
                Step::Look
            }
            Stage::Spinning => {
                self.stage = Stage::Yielding;
                self.left = count(self.policy.yields);
                Step::Look
            }
            Stage::Yielding if self.policy.yields == WaitPolicy::ENDLESS => {
                self.left = LOOK_EVERY;
                Step::Look
            }
            Stage::Yielding | Stage::Sleeping => {
                self.stage = Stage::Sleeping;
                let now = self.sleep;
                self.sleep = (now * 2).min(self.longest_sleep);
                Step::Sleep(now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps up to the first sleep, or as many as `most`.
    fn steps(patience: &mut Patience, most: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while steps.len() < most && !matches!(steps.last(), Some(Step::Sleep(_))) {
            steps.push(patience.next());
        }
        steps
    }

    #[test]
    fn spins_then_yields_then_sleeps_and_starts_over() {
        let policy = WaitPolicy {
            spins: 2,
            yields: 1,
            room: 1,
            gives_way: false,
        };
        let mut patience = Patience::for_message(policy);
        let sleep = Step::Sleep(PATIENCE);
        let whole = [
            Step::Spin,
            Step::Spin,
            Step::Look,
            Step::Look,
            Step::Yield,
            sleep,
        ];
        assert_eq!(steps(&mut patience, 100), whole);
        assert_eq!(patience.next(), Step::Sleep(PATIENCE * 2));
        assert_eq!(patience.next(), Step::Sleep(Duration::from_millis(500)));
        patience.reset();
        assert_eq!(steps(&mut patience, 100), whole);
    }

    #[test]
    fn slow_polls_are_fewer() {
        let spins = |policy: WaitPolicy| policy.of_slow_polls().spins;
        assert_eq!(spins(WaitPolicy::for_host(2, 2)), 100);
        assert_eq!(spins(WaitPolicy::CROWDED), WaitPolicy::CROWDED.spins);
        let endless = WaitPolicy::for_mode(WaitMode::Spin, WaitPolicy::CROWDED);
        assert_eq!(spins(endless), WaitPolicy::ENDLESS);
    }

    #[test]
    fn over_a_network_crowded_ranks_yield_first() {
        let first = |policy| Patience::for_message(policy).next();
        let crowded = WaitPolicy::for_host(8, 2);
        assert_eq!(first(crowded.over_a_network()), Step::Yield);
        assert_eq!(first(crowded), Step::Spin);
        assert_eq!(
            first(WaitPolicy::for_host(2, 2).over_a_network()),
            Step::Spin
        );
    }

    #[test]
    fn waiting_unannounced_looks_less_and_less_often() {
        let mut patience = Patience::for_room(WaitPolicy::CROWDED);
        let first = steps(&mut patience, 1000).pop();
        assert_eq!(first, Some(Step::Sleep(Duration::from_micros(50))));
        assert_eq!(patience.next(), Step::Sleep(Duration::from_micros(100)));
        for _ in 0..10 {
            patience.next();
        }
        assert_eq!(patience.next(), Step::Sleep(Duration::from_millis(5)));
        patience.reset();
        assert_eq!(steps(&mut patience, 1000).pop(), first);
    }

    #[test]
    fn each_mode_takes_the_steps_of_its_name() {
        let automatic = WaitPolicy::for_host(1, 2);
        let all = |mode| {
            let policy = WaitPolicy::for_mode(mode, automatic);
            steps(&mut Patience::for_message(policy), 300_000)
        };
        let spin = all(WaitMode::Spin);
        assert!(spin.iter().all(|s| matches!(s, Step::Spin | Step::Look)));
        assert!(spin.iter().filter(|s| **s == Step::Look).count() > 3);
        let yielding = all(WaitMode::Yield);
        assert!(!yielding.iter().any(|s| matches!(s, Step::Sleep(_))));
        assert!(yielding.iter().filter(|s| **s == Step::Yield).count() > 200_000);
        assert!(yielding.iter().filter(|s| **s == Step::Look).count() > 3);
        let sleeping = all(WaitMode::Sleep);
        assert!(sleeping.len() < 30 && !sleeping.contains(&Step::Yield));
        assert!(matches!(all(WaitMode::Auto).last(), Some(Step::Sleep(_))));
    }

    #[test]
    fn fewer_processors_than_ranks_means_little_spinning() {
        let crowded = WaitPolicy::for_host(8, 2);
        let roomy = WaitPolicy::for_host(2, 2);
        assert!(crowded.spins * 100 < roomy.spins);
        assert_eq!((roomy.room, WaitPolicy::for_host(2, 8).room), (1, 4));
        let mut patience = Patience::for_message(roomy);
        patience.crowd();
        assert!(steps(&mut patience, 10_000).len() < 100);
    }
}
