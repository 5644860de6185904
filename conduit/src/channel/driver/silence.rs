//! Rails over which nothing comes any more, although the system takes them for whole.
//!
//! A host that is switched off, a cable that is pulled out, a firewall that begins to drop packets:
//! nothing of that ends a rail for the 15 minutes or so in which the system repeats unacknowledged
//! bytes. A peer that computes and does not call the library is silent, too, and must be left
//! alone; its *host* acknowledges bytes that arrive. So it is the host that is looked at: whether
//! something that was sent to it waits to be acknowledged, and when it was heard last.

use crate::channel::rail::Vital;

/// How many looks there are at least in the time after which a rail is given up.
pub(super) const LOOKS: u32 = 8;

/// The caller's next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Nothing.
    Alive,
    /// Nothing is on its way: send something that the host acknowledges.
    Probe,
    /// The rail is of no more use.
    GiveUp,
}

/// The machine of one rail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Silence {
    /// The first look at which the host owed an acknowledgement; nothing has been heard since.
    ///
    /// The system's times before it do not count: a rail may have been idle for hours when it is
    /// used again.
    owed_ns: Option<u64>,
}

impl Silence {
    /// One look.
    ///
    /// `waits`: this rank waits for something of the peer. `limit_ns`: for how long its host may
    /// say nothing.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        limit_ns: u64,
        waits: bool,
        vital: Vital,
    ) -> Verdict {
        let heard_ns = now_ns.saturating_sub(vital.silent_ns);
        if !vital.owed {
            self.owed_ns = None;
            let is_quiet = vital.silent_ns >= limit_ns / 4;
            return if waits && is_quiet {
                Verdict::Probe
            } else {
                Verdict::Alive
            };
        }
        match self.owed_ns {
            // An acknowledgement at that very time may have come after the look.
            Some(since_ns) if heard_ns < since_ns => {
                if now_ns - since_ns >= limit_ns {
                    return Verdict::GiveUp;
                }
            }
            _ => self.owed_ns = Some(now_ns),
        }
        Verdict::Alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = 5_000;

    fn owed(silent_ns: u64) -> Vital {
        Vital {
            owed: true,
            silent_ns,
            rto_ns: 0,
        }
    }

    fn quit(silent_ns: u64) -> Vital {
        Vital {
            owed: false,
            silent_ns,
            rto_ns: 0,
        }
    }

    #[test]
    fn a_host_that_says_nothing_is_given_up_after_the_limit() {
        let mut silence = Silence::default();
        for now in (1000..1000 + LIMIT).step_by(500) {
            assert_eq!(silence.look(now, LIMIT, true, owed(now)), Verdict::Alive);
        }
        let now = 1000 + LIMIT;
        assert_eq!(silence.look(now, LIMIT, true, owed(now)), Verdict::GiveUp);
    }

    /// The last thing was heard an hour ago, and something is sent now.
    #[test]
    fn an_idle_rail_that_is_used_again_has_its_time() {
        let mut silence = Silence::default();
        let now = 3_600_000;
        assert_eq!(silence.look(now, LIMIT, true, owed(now)), Verdict::Alive);
        let later = now + LIMIT - 1;
        assert_eq!(
            silence.look(later, LIMIT, true, owed(later)),
            Verdict::Alive
        );
        assert_eq!(silence.look(later, LIMIT, true, owed(3)), Verdict::Alive);
        let later = later + LIMIT;
        assert_eq!(
            silence.look(later, LIMIT, true, owed(LIMIT + 2)),
            Verdict::GiveUp
        );
    }

    #[test]
    fn an_acknowledgement_at_the_time_of_a_look_counts() {
        let mut silence = Silence::default();
        assert_eq!(silence.look(2, LIMIT, true, owed(2)), Verdict::Alive);
        // It is acknowledged at once, and something is sent at 3.
        let (now, silent_ns) = (LIMIT + 2, LIMIT);
        assert_eq!(
            silence.look(now, LIMIT, true, owed(silent_ns)),
            Verdict::Alive
        );
    }

    /// It does not poll, so nothing that was asked comes; but its host acknowledges each probe.
    #[test]
    fn a_peer_that_computes_is_probed_and_kept() {
        let mut silence = Silence::default();
        let mut heard = 0;
        let mut probes = 0;
        for now in (0..1000 * LIMIT).step_by(600) {
            match silence.look(now, LIMIT, true, quit(now - heard)) {
                Verdict::Probe => {
                    probes += 1;
                    // At the next look the probe has not been acknowledged, at the one after it
                    // has.
                    let next = silence.look(now + 1, LIMIT, true, owed(now + 1 - heard));
                    assert_eq!(next, Verdict::Alive);
                    heard = now + 2;
                }
                verdict => assert_eq!(verdict, Verdict::Alive),
            }
        }
        assert!((2000..=4000).contains(&probes), "{probes}");
    }

    #[test]
    fn a_rail_without_anything_to_wait_for_is_not_probed() {
        let mut silence = Silence::default();
        assert_eq!(
            silence.look(9_000_000, LIMIT, false, quit(9_000_000)),
            Verdict::Alive
        );
    }

    /// A host that answers within less than the limit, and the times of looks.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Look(u64),
        Send,
        Acknowledge,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1u64..2 * LIMIT).prop_map(Step::Look),
            1 => Just(Step::Send),
            1 => Just(Step::Acknowledge),
        ]
    }

    proptest! {
        /// For any sequence of steps: the rail is given up only if an acknowledgement was owed, and
        /// nothing heard, for the whole limit; and then it is, at the second look at the latest.
        #[test]
        fn a_rail_is_given_up_exactly_when_it_is_silent(steps in proptest::collection::vec(step(), 1..200)) {
            let mut silence = Silence::default();
            let (mut now, mut heard, mut since) = (1u64, 0u64, None::<u64>);
            let mut looked_owed = None::<u64>;
            for step in steps {
                match step {
                    Step::Send => since = since.or(Some(now)),
                    Step::Acknowledge => {
                        (heard, since, looked_owed) = (now, None, None);
                        now += 1;
                    }
                    Step::Look(wait) => {
                        now += wait;
                        let vital = Vital { owed: since.is_some(), silent_ns: now - heard, rto_ns: 0 };
                        let verdict = silence.look(now, LIMIT, true, vital);
                        let long = since.is_some_and(|since| now - since >= LIMIT);
                        prop_assert!(verdict != Verdict::GiveUp || long);
                        let seen = looked_owed.is_some_and(|at| now - at >= LIMIT);
                        prop_assert!(!seen || verdict == Verdict::GiveUp);
                        if since.is_some() {
                            looked_owed = looked_owed.or(Some(now));
                        }
                    }
                }
            }
        }
    }
}
